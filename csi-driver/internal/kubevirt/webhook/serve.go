// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/crowd"
)

// Any pod can reach the port, so all that a client causes is bounded.
const (
	// An object has up to 1.5 MiB (etcd's limit), and a review of an update has it twice.
	mostReview = 4 << 20
	mostBytes  = mostReview // of all reviews at once
	// All reviews at once have so many values in lists and objects. Go makes a whole struct of
	// each, whatever the text has in its place.
	mostValues = 1 << 15
	// A short review counts as this much, because of its requests to the API server.
	leastReview = 64 << 10
	// How long a text may take to arrive: meanwhile others wait for its share.
	arriving  = 2 * time.Second
	mostConns = 256
	// The API server's headers are short. Go adds 4 KiB to this limit, for each connection.
	mostHeader = 1 << 10
	mostName   = 253
	// The longest time that a review takes. The chart makes the API server wait for 10 seconds.
	reviewLimit = 8 * time.Second
	ending      = 10 * time.Second
)

// Handler serves /mutate and /validate, and /healthz for a client that checks the way to it. Probes
// have a port of their own, because other clients may hold all connections of this one.
func (r *Reviewer) Handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mutate", r.handle(ctx, r.Mutate))
	mux.HandleFunc("POST /validate", r.handle(ctx, r.Validate))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	return mux
}

func (r *Reviewer) handle(ctx context.Context, by review) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		turnAway := func(code int, why string) {
			r.reviews.WithLabelValues(turnedAway).Inc()
			http.Error(w, why, code)
		}
		size := req.ContentLength
		if size < 0 {
			size = mostReview
		}
		if size > mostReview {
			turnAway(http.StatusRequestEntityTooLarge, fmt.Sprintf("a review has at most %d bytes", mostReview))
			return
		}
		within, cancel := context.WithTimeout(klog.NewContext(req.Context(), klog.FromContext(ctx)), limit(req.URL.Query()))
		defer cancel()
		share := max(size, leastReview)
		if err := r.room.Acquire(within, share); err != nil {
			turnAway(http.StatusServiceUnavailable, "too many reviews at once: try again")
			return
		}
		defer r.room.Release(share)
		text, err := read(w, req)
		if err != nil {
			turnAway(http.StatusBadRequest, "the review cannot be read: "+err.Error())
			return
		}
		values := int64(1)
		for _, begins := range []string{",", "{", "["} {
			values += int64(bytes.Count(text, []byte(begins)))
		}
		if values > mostValues {
			turnAway(http.StatusRequestEntityTooLarge, fmt.Sprintf("a review has at most %d values", mostValues))
			return
		}
		if err := r.values.Acquire(within, values); err != nil {
			turnAway(http.StatusServiceUnavailable, "too many reviews at once: try again")
			return
		}
		defer r.values.Release(values)
		var in admissionv1.AdmissionReview
		if err := json.Unmarshal(text, &in); err != nil || in.Request == nil || !named(in.Request) {
			turnAway(http.StatusBadRequest, "the request is no AdmissionReview")
			return
		}
		out := admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Response: r.answer(within, in.Request, by),
		}
		// All migrations come here, and most are of VMs without volumes. This is no answer,
		// so the failurePolicy decides, which lets them migrate.
		if a := out.Response; in.Request.Resource.Resource == migrations && !a.Allowed && a.Result.Code == http.StatusInternalServerError {
			http.Error(w, a.Result.Message, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(out); err != nil {
			klog.FromContext(ctx).Error(err, "The answer to a review could not be sent")
		}
	}
}

// named reports whether a review has names as an API server has them. The log has them for each
// review.
func named(q *admissionv1.AdmissionRequest) bool {
	return !slices.ContainsFunc([]string{string(q.UID), q.Resource.Resource, string(q.Operation), q.Namespace, q.Name},
		func(name string) bool { return len(name) > mostName })
}

// read reads a review that arrives in time.
func read(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(arriving))
	if err != nil && !errors.Is(err, http.ErrNotSupported) { // a recorder of a test has no deadlines
		return nil, err
	}
	return io.ReadAll(http.MaxBytesReader(w, req.Body, mostReview))
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

// Serve answers requests until ctx is done.
func Serve(ctx context.Context, l net.Listener, h http.Handler, c Folder) error {
	// HTTP/2 would keep up to 1 MiB of a connection that nobody reads.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s := &http.Server{
		Handler: h, Protocols: &protocols, MaxHeaderBytes: mostHeader,
		ReadHeaderTimeout: reviewLimit, ReadTimeout: reviewLimit, WriteTimeout: 2 * reviewLimit,
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.Certificate() },
		},
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(crowd.Limit(l, mostConns), "", "") }()
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
