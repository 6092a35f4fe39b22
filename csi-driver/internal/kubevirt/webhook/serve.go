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

// Any pod can reach the port, so these limits bound what a client can use.
const (
	// An object has up to 1.5 MiB (etcd's limit), and a review of an update has two versions of
	// it.
	mostReview = 4 << 20
	mostBytes  = mostReview // limit for all reviews in memory
	// The limit of values in lists and objects, for all reviews in memory. Go allocates a
	// complete struct for each value, however short its text is.
	mostValues = 1 << 15
	// A short review counts as this many bytes, because of its requests to the API server.
	leastReview = 64 << 10
	// The time in which a review's text must arrive. During this time, other reviews may wait
	// for the memory that the review has reserved.
	arriving  = 2 * time.Second
	mostConns = 256
	// The API server's headers are short. Go adds 4 KiB to this limit, for each connection.
	mostHeader = 1 << 10
	mostName   = 253
	// The longest time that a review takes. The chart sets the API server's timeout to 10
	// seconds.
	reviewLimit = 8 * time.Second
	ending      = 10 * time.Second
)

// Handler serves /mutate and /validate, and /healthz for a client that checks the connection.
// Probes have a separate port, because other clients may hold all connections of this port.
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
		// The API server sends all migrations, and most are of VMs without volumes. This
		// error is not a verdict. So the webhook's failurePolicy applies, which admits the
		// migration.
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

// named reports whether a review has names that an API server accepts. The webhook logs these names
// for each review.
func named(q *admissionv1.AdmissionRequest) bool {
	return !slices.ContainsFunc([]string{string(q.UID), q.Resource.Resource, string(q.Operation), q.Namespace, q.Name},
		func(name string) bool { return len(name) > mostName })
}

// read reads a review's text, with a limit on the time.
func read(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(arriving))
	if err != nil && !errors.Is(err, http.ErrNotSupported) { // a test's recorder supports no deadlines
		return nil, err
	}
	return io.ReadAll(http.MaxBytesReader(w, req.Body, mostReview))
}

// limit returns the time that a review may take. An API server sends its own limit with each
// request, and must get the answer earlier. Without an answer, it accepts the object if the
// webhook's failurePolicy is Ignore.
func limit(query url.Values) time.Duration {
	waits, err := time.ParseDuration(query.Get("timeout"))
	if err != nil || waits <= 0 {
		return reviewLimit
	}
	return min(waits*4/5, reviewLimit)
}

// Serve handles requests until ctx is done.
func Serve(ctx context.Context, l net.Listener, h http.Handler, c Folder) error {
	// With HTTP/2, the server would buffer up to 1 MiB of a connection that it does not read.
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
