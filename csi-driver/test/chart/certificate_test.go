// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// ownCertificate checks the certificate that Helm makes: the webhooks trust the authority that has
// signed it, and the webhook's pod has it.
func ownCertificate(t *testing.T, text string) *corev1.Secret {
	t.Helper()
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	r := &rendering{"certificate", text, objects}
	secret := get[*corev1.Secret](t, r, "rel-webhook-tls")
	equal(t, "type", secret.Type, corev1.SecretTypeTLS)
	equal(t, "keys", sorted(slices.Collect(maps.Keys(secret.Data))), []string{"ca.crt", "tls.crt", "tls.key"})
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	check(t, trusted.AppendCertsFromPEM(secret.Data["ca.crt"]), "there is no authority")
	for _, name := range []string{"rel-webhook.ns.svc", "rel-webhook.ns.svc.cluster.local"} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name, CurrentTime: time.Now().AddDate(9, 11, 0)})
		check(t, err == nil, "%s: %v", name, err)
	}
	check(t, !pair.Leaf.IsCA, "the webhook's key signs further certificates")
	clients := 0
	trusts := func(c admission.WebhookClientConfig) {
		clients++
		equal(t, "trusted authority", string(c.CABundle), string(secret.Data["ca.crt"]))
	}
	for _, w := range get[*admission.MutatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		trusts(w.ClientConfig)
	}
	for _, w := range get[*admission.ValidatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		trusts(w.ClientConfig)
	}
	equal(t, "webhooks", clients, 6)
	equal(t, "volume of the pod", podOf(t, r, webhookOwner).spec.Volumes[0].Secret.SecretName, secret.Name)
	return secret
}

// TestOwnCertificate: an upgrade keeps the certificate. Helm makes another one if it is gone, or not
// whole. cert-manager puts its authority into the webhooks itself.
func TestOwnCertificate(t *testing.T) {
	with := func(objects ...string) *corev1.Secret {
		t.Helper()
		s := set("kubevirt.enabled=true")
		s.server, s.upgrade = answering(t, objects), true
		text, err := template(s)
		if err != nil {
			t.Fatal(err)
		}
		return ownCertificate(t, text)
	}
	there := func(data map[string][]byte) string {
		text, err := json.Marshal(written{"apiVersion": "v1", "kind": "Secret", "metadata": written{"name": "rel-webhook-tls", "namespace": "ns"}, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := with()
	kept := with(there(first.Data))
	equal(t, "certificate after an upgrade", kept.Data, first.Data)
	again := with()
	check(t, !bytes.Equal(again.Data["tls.crt"], first.Data["tls.crt"]), "two releases have one certificate")
	damaged := maps.Clone(first.Data)
	delete(damaged, "tls.key")
	repaired := with(there(damaged))
	check(t, !bytes.Equal(repaired.Data["ca.crt"], first.Data["ca.crt"]), "a certificate without a key is kept")
	r := rendered(t, "plugin")
	lacks(t, r, "caBundle", "rel-webhook-tls", "kind: Secret")
	equal(t, "Secret of cert-manager", podOf(t, r, webhookOwner).spec.Volumes[0].Secret.SecretName, "rel-webhook")
}
