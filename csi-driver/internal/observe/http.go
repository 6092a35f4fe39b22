// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	probeLimit = 5 * time.Second
	headLimit  = 10 * time.Second
	stopLimit  = 2 * time.Second
)

// Handler serves /metrics, /healthz (is the driver alive? else start it anew) and /readyz (can it serve?).
func Handler(metrics prometheus.Gatherer, alive, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	mux.Handle("/healthz", probe(alive))
	mux.Handle("/readyz", probe(ready))
	return mux
}

func probe(check func(context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeLimit)
		defer cancel()
		if err := check(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// Serve serves until ctx is done.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: headLimit}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("metrics at %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := s.Shutdown(end); err != nil {
		return fmt.Errorf("metrics at %s: %w", l.Addr(), err)
	}
	return nil
}
