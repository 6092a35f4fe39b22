// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// certify stores a new certificate in the folder, and returns the certificates that a client has to
// trust.
func certify(t *testing.T, dir string) (bundle []byte) {
	t.Helper()
	return certifyFrom(t, dir, time.Time{}, time.Now().Add(time.Hour))
}

func certifyFrom(t *testing.T, dir string, begins, ends time.Time) (bundle []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{service},
		NotBefore: begins, NotAfter: ends, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, is, is, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	for name, text := range map[string][]byte{"tls.crt": bundle, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bundle
}

// TestTLS checks reviews over real TLS while the certificate is replaced.
func TestTLS(t *testing.T) {
	r := usual().reviewer(t)
	ctx, stop := context.WithCancel(context.Background())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir, done := t.TempDir(), make(chan error)
	go func() { done <- Serve(ctx, l, r.Handler(ctx), Folder{dir}) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	if _, err := client(nil).Get("https://" + l.Addr().String() + "/healthz"); err == nil {
		t.Error("the webhook serves HTTPS before it has a certificate")
	}
	first := certify(t, dir)
	long, err := http.NewRequest(http.MethodGet, "https://"+l.Addr().String()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	long.Header.Set("X-Long", strings.Repeat("x", 16<<10))
	if res, err := client(first).Do(long); err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("long headers: %v, %v", res, err)
	}
	res := post(t, l.Addr().String(), first, request("virtualmachineinstances", admissionv1.Create, machineWith("disk", nil)))
	if res.UID != "u" || res.Allowed || !strings.Contains(res.Result.Message, "ceph.example") {
		t.Errorf("%+v", res)
	}
	second := certify(t, dir)
	if res := post(t, l.Addr().String(), second, request("virtualmachineinstances", admissionv1.Create, machineWith("data", nil))); !res.Allowed {
		t.Errorf("after the certificate was replaced: %+v", res.Result)
	}
	if _, err := client(first).Get("https://" + l.Addr().String() + "/healthz"); err == nil {
		t.Error("a client that trusts only the old certificate accepts the server, so the server does not use the new certificate")
	}
}

func client(bundle []byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: service},
	}}
}

func post(t *testing.T, address string, bundle []byte, q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	text, err := json.Marshal(admissionv1.AdmissionReview{Request: q})
	if err != nil {
		t.Fatal(err)
	}
	res, err := client(bundle).Post("https://"+address+"/validate", "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out admissionv1.AdmissionReview
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Response == nil || out.APIVersion != "admission.k8s.io/v1" {
		t.Fatalf("%d, %v, %+v", res.StatusCode, err, out)
	}
	return out.Response
}

func TestNoReviews(t *testing.T) {
	h := usual().reviewer(t).Handler(context.Background())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	defer s.Close()
	for body, want := range map[string]int{"": 400, "{}": 400, "[": 400, strings.Repeat(" ", mostReview+1): 413,
		"[" + strings.Repeat("0,", mostValues) + "0]": 413, strings.Repeat(`{"":`, mostValues): 413, strings.Repeat("[", mostValues): 413,
		`{"request":{"name":"` + strings.Repeat("x", mostName+1) + `"}}`: 400, `{"request":{"namespace":"` + strings.Repeat("x", mostReview/2) + `"}}`: 400,
		`{"request":{"name":"` + strings.Repeat("x", mostName) + `"}}`: 200} {
		res, err := http.Post("http://"+l.Addr().String()+"/mutate", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("a review of %d bytes gets status %d", len(body), res.StatusCode)
		}
	}
}
