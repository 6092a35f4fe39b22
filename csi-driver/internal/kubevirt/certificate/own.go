// SPDX-License-Identifier: Apache-2.0

// Package certificate provides the webhook's certificate. The webhook makes and renews one itself,
// or reads one from a folder.
package certificate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

const (
	certKey, keyKey, bundleKey = corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"

	skew = 5 * time.Minute
)

// Own is a self-signed certificate. All replicas read the same one from a Secret. Own makes a new
// certificate when a third of the old one's life is left. Clients trust both until the next
// renewal, so replicas may serve either.
type Own struct {
	Client    kubernetes.Interface
	Namespace string
	Secret    string
	Names     []string // DNS names of the service
	// Names of the webhook configurations whose caBundle is set.
	Mutating, Validating string
	Life                 time.Duration
	Now                  func() time.Time

	current atomic.Pointer[tls.Certificate]
}

// Certificate returns the current certificate.
func (o *Own) Certificate() (*tls.Certificate, error) {
	c := o.current.Load()
	if c == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return c, nil
}

// Run calls Look every period until ctx is done.
func (o *Own) Run(ctx context.Context, period time.Duration) {
	for {
		if err := o.Look(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "The certificate cannot be checked or renewed")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(period):
		}
	}
}

// Look makes or renews the certificate if needed. It writes the trust bundle before it serves the
// certificate.
func (o *Own) Look(ctx context.Context) error {
	var secret *corev1.Secret
	err := retry.OnError(retry.DefaultBackoff, raced, func() (err error) {
		secret, err = o.secret(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("secret %s: %w", o.Secret, err)
	}
	c, err := tls.X509KeyPair(secret.Data[certKey], secret.Data[keyKey])
	if err != nil {
		return fmt.Errorf("secret %s: %w", o.Secret, err)
	}
	if err := o.trust(ctx, secret.Data[bundleKey]); err != nil {
		return err
	}
	o.current.Store(&c)
	return nil
}

// raced reports whether another replica has changed the Secret first.
func raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

func (o *Own) secret(ctx context.Context) (*corev1.Secret, error) {
	secrets := o.Client.CoreV1().Secrets(o.Namespace)
	s, err := secrets.Get(ctx, o.Secret, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, err
	}
	if !missing && o.fresh(s.Data) {
		return s, nil
	}
	cert, key, err := o.make()
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{certKey: cert, keyKey: key, bundleKey: cert}
	was := s.Data[certKey]
	if missing {
		if was, err = o.trusted(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := parse(was); err == nil {
		data[bundleKey] = append(bytes.Clone(cert), was...)
	}
	klog.FromContext(ctx).Info("Made a certificate", "secret", o.Secret, "names", o.Names, "life", o.Life)
	if missing {
		return secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: o.Secret, Namespace: o.Namespace}, Type: corev1.SecretTypeTLS, Data: data,
		}, metav1.CreateOptions{})
	}
	s = s.DeepCopy()
	s.Data = data
	return secrets.Update(ctx, s, metav1.UpdateOptions{})
}

// trusted returns the certificate that the API server trusts now. If the Secret was deleted, the
// other replicas serve this certificate until their next Look.
func (o *Own) trusted(ctx context.Context) ([]byte, error) {
	m, err := o.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, o.Mutating, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	if len(m.Webhooks) == 0 {
		return nil, nil
	}
	block, _ := pem.Decode(m.Webhooks[0].ClientConfig.CABundle)
	if block == nil {
		return nil, nil
	}
	return pem.EncodeToMemory(block), nil
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("not a PEM certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

// fresh reports whether the bundle verifies the certificate for each name, and a third of its life
// is left. A Secret from another program may have an unrelated bundle, or none. API servers would
// then refuse the certificate.
func (o *Own) fresh(data map[string][]byte) bool {
	pair, err := tls.X509KeyPair(data[certKey], data[keyKey])
	if err != nil {
		return false
	}
	c, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return false
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(data[bundleKey])
	for _, raw := range pair.Certificate[1:] {
		if more, err := x509.ParseCertificate(raw); err == nil {
			between.AddCert(more)
		}
	}
	for _, name := range o.Names {
		if _, err := c.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name, CurrentTime: o.Now()}); err != nil {
			return false
		}
	}
	return o.Now().Add(c.NotAfter.Sub(c.NotBefore) / 3).Before(c.NotAfter)
}

func (o *Own) make() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	now := o.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: o.Names[0]}, DNSNames: o.Names,
		NotBefore: now.Add(-skew), NotAfter: now.Add(o.Life), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey}), nil
}

// trust writes the bundle into the webhook configurations, from which the API server reads it.
func (o *Own) trust(ctx context.Context, bundle []byte) error {
	api := o.Client.AdmissionregistrationV1()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		m, err := api.MutatingWebhookConfigurations().Get(ctx, o.Mutating, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("webhooks: %w", err)
		}
		changed := false
		for i := range m.Webhooks {
			changed = put(&m.Webhooks[i].ClientConfig.CABundle, bundle) || changed
		}
		if changed {
			if _, err := api.MutatingWebhookConfigurations().Update(ctx, m, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		v, err := api.ValidatingWebhookConfigurations().Get(ctx, o.Validating, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("webhooks: %w", err)
		}
		changed = false
		for i := range v.Webhooks {
			changed = put(&v.Webhooks[i].ClientConfig.CABundle, bundle) || changed
		}
		if !changed {
			return nil
		}
		_, err = api.ValidatingWebhookConfigurations().Update(ctx, v, metav1.UpdateOptions{})
		return err
	})
}

func put(at *[]byte, bundle []byte) bool {
	if bytes.Equal(*at, bundle) {
		return false
	}
	*at = bundle
	return true
}
