// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A deleted Secret is made anew. API servers trust the other replica's certificate until that
// replica looks again. They trust no older certificate.
func TestDeletedSecret(t *testing.T) {
	const name = "hook.ns.svc"
	ctx, hook := context.Background(), metav1.ObjectMeta{Name: "hook"}
	client := fake.NewClientset(
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: hook, Webhooks: []admissionregistrationv1.MutatingWebhook{
			{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("Cg==")}}}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: hook, Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 1)})
	replica := func() *Own {
		return &Own{Client: client, Namespace: "ns", Secret: "hook", Names: []string{name}, Mutating: "hook", Validating: "hook", Life: time.Hour, Now: time.Now}
	}
	look := func(o *Own) {
		t.Helper()
		if err := o.Look(ctx); err != nil {
			t.Fatal(err)
		}
	}
	believed := func(cert []byte) bool {
		t.Helper()
		v, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "hook", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(v.Webhooks[0].ClientConfig.CABundle)
		c, err := x509.ParseCertificate(cert)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Verify(x509.VerifyOptions{Roots: pool, DNSName: name})
		return err == nil
	}
	shown := func(o *Own) []byte {
		t.Helper()
		c, err := o.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		return c.Certificate[0]
	}
	deleted := func() {
		t.Helper()
		if err := client.CoreV1().Secrets("ns").Delete(ctx, "hook", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	one, other := replica(), replica()
	look(one)
	look(other)
	first := shown(one)
	if !believed(first) || !bytes.Equal(first, shown(other)) {
		t.Fatal("replicas do not show one certificate that is believed")
	}
	deleted()
	one = replica() // it has been started anew, and remembers nothing
	look(one)
	if bytes.Equal(shown(one), first) || !believed(shown(one)) {
		t.Error("there is no new certificate, or nobody believes it")
	}
	if !bytes.Equal(shown(other), first) || !believed(first) {
		t.Error("the replica that has not looked yet is not believed")
	}
	look(other)
	if !bytes.Equal(shown(other), shown(one)) {
		t.Error("the other replica goes on with the old one")
	}
	deleted()
	look(other)
	if believed(first) {
		t.Error("the certificate before the previous one is still accepted")
	}
	m, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "hook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rest := m.Webhooks[0].ClientConfig.CABundle; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d certificates are believed", n)
	}
}

// A Secret of another program is used if its bundle verifies its certificate. Otherwise it is
// replaced.
func TestSecretOfOthers(t *testing.T) {
	const name = "hook.ns.svc"
	ctx, hook := context.Background(), metav1.ObjectMeta{Name: "hook"}
	own := func() *Own {
		return &Own{Namespace: "ns", Secret: "hook", Names: []string{name}, Mutating: "hook", Validating: "hook", Life: time.Hour, Now: time.Now}
	}
	cert, key, err := own().make()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := own().make()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		bundle []byte
		kept   bool
	}{
		"its own":            {cert, true},
		"its own and others": {append(bytes.Clone(other), cert...), true},
		"none":               {nil, false},
		"another one's":      {other, false},
		"no certificate":     {[]byte("ca"), false},
	} {
		client := fake.NewClientset(
			&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: hook, Webhooks: make([]admissionregistrationv1.MutatingWebhook, 1)},
			&admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: hook, Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 1)},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hook", Namespace: "ns"}, Type: corev1.SecretTypeTLS,
				Data: map[string][]byte{certKey: cert, keyKey: key, bundleKey: c.bundle}})
		o := own()
		o.Client = client
		if err := o.Look(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		shown, err := o.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		if kept := bytes.Equal(shown.Certificate[0], pair.Certificate[0]); kept != c.kept {
			t.Errorf("%s: kept: %v", what, kept)
		}
		v, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "hook", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(v.Webhooks[0].ClientConfig.CABundle)
		is, err := x509.ParseCertificate(shown.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := is.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("%s: the API server does not believe what is shown: %v", what, err)
		}
	}
}
