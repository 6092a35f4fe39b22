// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

const (
	mostReview = 8 << 20
	// The longest time that a review takes. The chart makes the API server wait for 10 seconds.
	reviewLimit = 8 * time.Second
	ending      = 10 * time.Second
)

// Handler serves /mutate, /validate, and /healthz for probes.
func (r *Reviewer) Handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mutate", r.handle(ctx, r.Mutate))
	mux.HandleFunc("POST /validate", r.handle(ctx, r.Validate))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	return mux
}

func (r *Reviewer) handle(ctx context.Context, by review) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, req.Body, mostReview))
		if err != nil {
			http.Error(w, fmt.Sprintf("a review has at most %d bytes", mostReview), http.StatusRequestEntityTooLarge)
			return
		}
		var in admissionv1.AdmissionReview
		if err := json.Unmarshal(text, &in); err != nil || in.Request == nil {
			http.Error(w, "the request is no AdmissionReview", http.StatusBadRequest)
			return
		}
		within, cancel := context.WithTimeout(klog.NewContext(req.Context(), klog.FromContext(ctx)), limit(req.URL.Query()))
		defer cancel()
		out := admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Response: r.answer(within, in.Request, by),
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			klog.FromContext(ctx).Error(err, "The answer to a review could not be sent")
		}
	}
}

// limit is how long a review may take. An API server sends its own limit with each request, and
// must get the answer earlier. Without an answer it accepts the object if the webhook's
// failurePolicy is Ignore.
func limit(query url.Values) time.Duration {
	waits, err := time.ParseDuration(query.Get("timeout"))
	if err != nil || waits <= 0 {
		return reviewLimit
	}
	return min(waits*4/5, reviewLimit)
}

// Certificates returns the certificate for clients.
type Certificates interface {
	Certificate() (*tls.Certificate, error)
}

// Serve answers requests until ctx is done.
func Serve(ctx context.Context, l net.Listener, h http.Handler, c Certificates) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: reviewLimit, ReadTimeout: reviewLimit, WriteTimeout: 2 * reviewLimit,
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Certificate() },
		},
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(l, "", "") }()
	select {
	case err := <-done:
		return fmt.Errorf("webhook: %w", err)
	case <-ctx.Done():
	}
	within, cancel := context.WithTimeout(context.Background(), ending)
	defer cancel()
	if err := s.Shutdown(within); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}
