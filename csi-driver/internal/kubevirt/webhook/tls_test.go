// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stargate/csi-driver/internal/kubevirt/certificate"
)

// TestTLS: reviews over real TLS, with a certificate that is renewed while it is trusted.
func TestTLS(t *testing.T) {
	webhooks := metav1.ObjectMeta{Name: "hook"}
	r := usual().reviewer(t,
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: webhooks, Webhooks: make([]admissionregistrationv1.MutatingWebhook, 2)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: webhooks, Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 3)})
	now := time.Now().Add(-61 * time.Minute)
	own := &certificate.Own{Client: r.cluster.Client, Namespace: "ns", Secret: "hook", Names: []string{service}, Mutating: "hook", Validating: "hook",
		Life: 90 * time.Minute, Now: func() time.Time { return now }}
	ctx, stop := context.WithCancel(context.Background())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Serve(ctx, l, r.Handler(ctx), own) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	look := func() []byte {
		t.Helper()
		if err := own.Look(ctx); err != nil {
			t.Fatal(err)
		}
		v, err := r.cluster.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "hook", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return v.Webhooks[2].ClientConfig.CABundle
	}
	first := look()
	res := post(t, l.Addr().String(), first, request("virtualmachineinstances", admissionv1.Create, machineWith("disk", nil)))
	if res.UID != "u" || res.Allowed || !strings.Contains(res.Result.Message, "ceph.example") {
		t.Errorf("%+v", res)
	}
	if same := look(); !bytes.Equal(same, first) {
		t.Error("it is made anew though it is fresh")
	}
	now = now.Add(61 * time.Minute)
	second := look()
	if bytes.Equal(second, first) || !bytes.HasSuffix(second, first) {
		t.Error("it is not renewed, or the old one is not trusted any more")
	}
	if res := post(t, l.Addr().String(), second, request("virtualmachineinstances", admissionv1.Create, machineWith("data", nil))); !res.Allowed {
		t.Errorf("renewed: %+v", res.Result)
	}
	if _, err := client(first).Get("https://" + l.Addr().String() + "/healthz"); err == nil {
		t.Error("a client that knows only the old certificate accepts the server: it does not show the new one")
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
	for body, want := range map[string]int{"": 400, "{}": 400, "[": 400, strings.Repeat(" ", mostReview+1): 413, "[" + strings.Repeat("0,", mostValues) + "0]": 413} {
		res, err := http.Post("http://"+l.Addr().String()+"/mutate", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%d bytes: %d", len(body), res.StatusCode)
		}
	}
}
