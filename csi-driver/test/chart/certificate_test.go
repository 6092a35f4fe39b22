// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"stargate/csi-driver/internal/kubevirt/webhook"
)

const (
	day       = 24 * time.Hour
	life      = 1095 * day
	madeAt    = "stargate.csi.dev/certificate-made"
	expiresAt = "stargate.csi.dev/certificate-expires"
)

// verified checks that a bundle of authorities verifies the first certificate of a text at a given
// time.
func verified(t *testing.T, what string, certificate, bundle []byte, when time.Time) {
	t.Helper()
	trusted := x509.NewCertPool()
	check(t, trusted.AppendCertsFromPEM(bundle), "%s: there is no authority", what)
	block, _ := pem.Decode(certificate)
	if block == nil {
		t.Fatalf("%s: no certificate", what)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rel-webhook.ns.svc", "rel-webhook.ns.svc.cluster.local"} {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name, CurrentTime: when})
		check(t, err == nil, "%s: %s: %v", what, name, err)
	}
	check(t, !leaf.IsCA, "%s: the webhook's key signs further certificates", what)
}

// bundled returns the number of authorities in a bundle.
func bundled(bundle []byte) (n int) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		n++
	}
	return n
}

// serves checks that the webhook uses a certificate that each of the bundles verifies.
func serves(t *testing.T, what string, data map[string][]byte, bundles ...[]byte) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range data {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := webhook.Folder{Dir: dir}.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	for _, bundle := range bundles {
		verified(t, what, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), bundle, time.Now())
	}
}

// seconds returns the time in an annotation, which has seconds since 1970.
func seconds(t *testing.T, s *corev1.Secret, name string) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(s.Annotations[name], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(n, 0)
}

// upgraded returns the chart's Secret after an upgrade in a cluster with these objects. It checks
// that the webhook's pod mounts the Secret, and that the webhooks trust its authorities.
func upgraded(t *testing.T, objects ...string) (*rendering, *corev1.Secret) {
	t.Helper()
	s := set("kubevirt.enabled=true")
	s.server, s.upgrade = answering(t, objects), true
	text, err := template(s)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	r := &rendering{"certificate", text, decoded}
	secret := get[*corev1.Secret](t, r, "rel-webhook-tls")
	equal(t, "type", secret.Type, corev1.SecretTypeTLS)
	_, err = tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	check(t, err == nil, "the key is another certificate's: %v", err)
	keys := []string{"ca.crt", "tls.crt", "tls.key"}
	if len(secret.Data) > 3 {
		keys = []string{"ca.crt", "previous.crt", "previous.key", "tls.crt", "tls.key"}
	}
	equal(t, "keys", sorted(slices.Collect(maps.Keys(secret.Data))), keys)
	equal(t, "authorities", bundled(secret.Data["ca.crt"]), 1+len(keys)/5)
	clients := 0
	trusts := func(c admission.WebhookClientConfig) {
		clients++
		equal(t, "trusted authorities", string(c.CABundle), string(secret.Data["ca.crt"]))
	}
	for _, w := range get[*admission.MutatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		trusts(w.ClientConfig)
	}
	for _, w := range get[*admission.ValidatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		trusts(w.ClientConfig)
	}
	equal(t, "webhooks", clients, 6)
	equal(t, "volume of the pod", podOf(t, r, webhookOwner).spec.Volumes[0].Secret.SecretName, secret.Name)
	return r, secret
}

// stored returns a Secret as YAML.
func stored(t *testing.T, name string, data map[string][]byte, created time.Time, notes map[string]string) string {
	t.Helper()
	text, err := json.Marshal(written{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data, "metadata": written{
		"name": name, "namespace": "ns", "creationTimestamp": created.UTC().Format(time.RFC3339), "annotations": notes}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// trusting returns webhooks (YAML) that trust the authorities of a bundle.
func trusting(t *testing.T, bundle []byte) string {
	t.Helper()
	text, err := json.Marshal(written{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": written{"name": "rel-webhook"},
		"webhooks": []written{{"name": "machines.stargate.csi.dev", "clientConfig": written{"caBundle": bundle}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// times returns the annotations of a certificate with a given age that remains valid for a given
// time.
func times(ago, lasts time.Duration) map[string]string {
	return map[string]string{madeAt: strconv.FormatInt(time.Now().Add(-ago).Unix(), 10), expiresAt: strconv.FormatInt(time.Now().Add(lasts).Unix(), 10)}
}

// TestOwnCertificate checks that an upgrade keeps the certificate until a third of its validity
// remains. Helm creates another certificate if the present one is missing or incomplete. With
// cert-manager, the chart writes no authority into the webhooks.
func TestOwnCertificate(t *testing.T) {
	const name = "rel-webhook-tls"
	now := time.Now()
	_, first := upgraded(t)
	verified(t, "a new one", first.Data["tls.crt"], first.Data["ca.crt"], now.Add(life-day))
	pair, err := tls.X509KeyPair(first.Data["tls.crt"], first.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	check(t, seconds(t, first, expiresAt).Sub(pair.Leaf.NotAfter).Abs() < time.Minute, "it ends at %v", pair.Leaf.NotAfter)
	check(t, seconds(t, first, madeAt).Sub(now).Abs() < time.Minute, "it is made at %v", seconds(t, first, madeAt))
	_, again := upgraded(t)
	check(t, !bytes.Equal(again.Data["tls.crt"], first.Data["tls.crt"]), "two releases have one certificate")
	damaged := maps.Clone(first.Data)
	delete(damaged, "tls.key")
	_, repaired := upgraded(t, stored(t, name, damaged, now, first.Annotations))
	check(t, !bytes.Equal(repaired.Data["ca.crt"], first.Data["ca.crt"]), "an upgrade keeps a certificate without a key")

	for _, c := range []struct {
		what    string
		created time.Time
		notes   map[string]string
		renewed bool
	}{
		{"a new one", now, first.Annotations, false},
		{"more than a third remains", now, times(700*day, 395*day), false},
		{"less than a third remains", now, times(740*day, 355*day), true},
		{"it has ended", now, times(1100*day, -5*day), true},
		{"renewed by a person", now, map[string]string{madeAt: first.Annotations[madeAt], expiresAt: "0"}, true},
		{"of an older chart, valid for ten years", now.Add(-365 * day), nil, false},
		{"of an older chart, three years remain", now.Add(-2555 * day), nil, true},
	} {
		_, next := upgraded(t, stored(t, name, first.Data, c.created, c.notes))
		if !c.renewed {
			equal(t, c.what+": data", next.Data, first.Data)
			check(t, seconds(t, next, expiresAt).After(now.Add(300*day)), "%s: it ends at %v", c.what, seconds(t, next, expiresAt))
			continue
		}
		check(t, seconds(t, next, madeAt).Sub(now).Abs() < time.Minute, "%s: it is made at %v", c.what, seconds(t, next, madeAt))
		// The API server trusts the webhook's certificate, both before and after it has the
		// new bundle.
		serves(t, c.what, next.Data, first.Data["ca.crt"], next.Data["ca.crt"])
		verified(t, c.what+": the new one", next.Data["tls.crt"], next.Data["ca.crt"], now.Add(life-day))
		equal(t, c.what+": the one before", string(next.Data["previous.crt"])+string(next.Data["previous.key"]),
			string(first.Data["tls.crt"])+string(first.Data["tls.key"]))
		_, soon := upgraded(t, stored(t, name, next.Data, c.created, times(2*time.Hour, life)))
		equal(t, c.what+": an upgrade of the same day", soon.Data, next.Data)
		// Pods may still use the previous certificate, so Helm creates no third certificate
		// yet.
		hasty := map[string]string{madeAt: times(20*time.Minute, 0)[madeAt], expiresAt: "0"}
		_, third := upgraded(t, stored(t, name, next.Data, c.created, hasty))
		serves(t, c.what+": a person renews it again", next.Data, third.Data["ca.crt"])
		equal(t, c.what+": a person renews it again", third.Annotations[expiresAt], "0")
		hasty[madeAt] = times(2*day, 0)[madeAt]
		_, third = upgraded(t, stored(t, name, next.Data, c.created, hasty))
		serves(t, c.what+": a person renews it two days later", third.Data, third.Data["ca.crt"])
		check(t, !bytes.Equal(third.Data["tls.crt"], next.Data["tls.crt"]), "%s: the certificate is not renewed two days later", c.what)
		_, later := upgraded(t, stored(t, name, next.Data, c.created, times(2*day, life)))
		equal(t, c.what+": keys of a later upgrade", len(later.Data), 3)
		equal(t, c.what+": certificate of a later upgrade", string(later.Data["tls.crt"]), string(next.Data["tls.crt"]))
		verified(t, c.what+": later", later.Data["tls.crt"], later.Data["ca.crt"], time.Now())
	}

	r := rendered(t, "plugin")
	lacks(t, r, "caBundle", "rel-webhook-tls", "kind: Secret")
	equal(t, "Secret of cert-manager", podOf(t, r, webhookOwner).spec.Volumes[0].Secret.SecretName, "rel-webhook")
}

// TestCertificateOfOlderCharts checks an upgrade from older charts, whose webhook created its
// certificate in another Secret. While the old pods still run, the API server trusts them and the
// new pods. Helm deletes the old Secret.
func TestCertificateOfOlderCharts(t *testing.T) {
	_, first := upgraded(t)
	_, other := upgraded(t)
	// Such a Secret also has the previous authority.
	old := maps.Clone(first.Data)
	old["ca.crt"] = slices.Concat(first.Data["ca.crt"], other.Data["ca.crt"])
	trusts := trusting(t, old["ca.crt"])
	r, next := upgraded(t, trusts, stored(t, "rel-webhook", old, time.Now(), nil))
	serves(t, "during the upgrade", next.Data, first.Data["ca.crt"], next.Data["ca.crt"])
	verified(t, "pods of the older chart", first.Data["tls.crt"], next.Data["ca.crt"], time.Now())
	verified(t, "the new one", next.Data["tls.crt"], next.Data["ca.crt"], time.Now().Add(life-day))
	hook := get[*corev1.Secret](t, r, "rel-webhook")
	equal(t, "when Helm deletes the old Secret", hook.Annotations["helm.sh/hook"], "post-upgrade")
	equal(t, "how", hook.Annotations["helm.sh/hook-delete-policy"], "before-hook-creation,hook-succeeded")
	equal(t, "keys of the Secret with which Helm replaces the old Secret", len(hook.Data), 0)
	// An upgrade that finds both Secrets does not change the new Secret.
	_, kept := upgraded(t, trusts, stored(t, "rel-webhook", old, time.Now(), nil), stored(t, "rel-webhook-tls", next.Data, time.Now(), next.Annotations))
	equal(t, "data of the next upgrade", kept.Data, next.Data)
	r, _ = upgraded(t, stored(t, "rel-webhook-tls", next.Data, time.Now(), next.Annotations))
	equal(t, "Secrets without an old one", len(list[*corev1.Secret](r)), 1)

	// Helm does not delete cert-manager's Secret when cert-manager is turned off.
	r, _ = upgraded(t, stored(t, "rel-webhook", first.Data, time.Now(), map[string]string{"cert-manager.io/certificate-name": "rel-webhook"}))
	equal(t, "Secrets after cert-manager", len(list[*corev1.Secret](r)), 2)
}

// TestNotesOfTheCertificate checks that Helm's notes say when its certificate ends.
func TestNotesOfTheCertificate(t *testing.T) {
	_, first := upgraded(t)
	ends := func(s settings) string {
		r, err := install(s)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(strings.Fields(r.Info.Notes), " ")
		_, words, _ := strings.Cut(notes, "KubeVirt's webhook ends on ")
		return strings.Split(words, ":")[0]
	}
	date := func(after time.Duration) string { return time.Now().Add(after).UTC().Format(time.DateOnly) }
	contains(t, "a new one", []string{date(life), date(life - time.Minute)}, ends(set("kubevirt.enabled=true")))
	s := set("kubevirt.enabled=true")
	s.upgrade = true
	s.server = answering(t, []string{stored(t, "rel-webhook-tls", first.Data, time.Now(), times(500*day, 595*day))})
	equal(t, "one that is kept", ends(s), date(595*day))
	equal(t, "of cert-manager", ends(renderings["plugin"]), "")
	equal(t, "without KubeVirt", ends(settings{}), "")
}

// TestSecretOfAnother checks that the chart neither deletes nor trusts a Secret that has the old
// name by chance.
func TestSecretOfAnother(t *testing.T) {
	_, first := upgraded(t)
	_, other := upgraded(t)
	trusts := trusting(t, other.Data["ca.crt"])
	token := `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: rel-webhook, namespace: ns}, data: {token: eA==}}`
	part := maps.Clone(other.Data)
	delete(part, "tls.key")
	for what, secret := range map[string]string{"a token": token, "another server's certificate": stored(t, "rel-webhook", first.Data, time.Now(), nil),
		"another certificate of cert-manager": stored(t, "rel-webhook", first.Data, time.Now(), map[string]string{"cert-manager.io/certificate-name": "other"}),
		"a certificate without a key":         stored(t, "rel-webhook", part, time.Now(), nil)} {
		r, next := upgraded(t, trusts, secret)
		equal(t, what+": Secrets", len(list[*corev1.Secret](r)), 1)
		equal(t, what+": keys", len(next.Data), 3)
	}
}
