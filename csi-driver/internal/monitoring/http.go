// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"stargate/csi-driver/internal/crowd"
)

const (
	probeLimit = 5 * time.Second
	headLimit  = 10 * time.Second
	idleLimit  = time.Minute
	stopLimit  = 2 * time.Second
	// A read of a zone that does not answer ends earlier.
	metricsLimit = lookLimit + 5*time.Second
	scrapes      = 4       // concurrent requests for metrics
	mostConns    = 64      // kubelet and monitors need far fewer
	mostHeader   = 4 << 10 // Go adds the same size for each connection
)

// Handler serves /metrics, /healthz (the driver is alive; otherwise kubelet restarts it) and
// /readyz (the driver can serve).
func Handler(metrics prometheus.Gatherer, alive, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapes, Timeout: metricsLimit,
	}))
	mux.Handle("/healthz", probe(alive))
	mux.Handle("/readyz", probe(kept(ready)))
	return mux
}

// kept runs one check for all requests that arrive at about the same time. Any client can reach the
// port, and each check runs a program that examines the zone. A waiting request ends with its
// client.
func kept(check func(context.Context) error) func(context.Context) error {
	var (
		one  = make(chan struct{}, 1)
		last time.Time
		said error
	)
	return func(ctx context.Context) error {
		select {
		case one <- struct{}{}:
			defer func() { <-one }()
		case <-ctx.Done():
			return ctx.Err()
		}
		if last.IsZero() || time.Since(last) > fresh {
			// The client may disconnect, but other clients still get the answer.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeLimit)
			defer cancel()
			said = check(ctx)
			last = time.Now()
		}
		return said
	}
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

// Serve handles requests until ctx is done. Any pod can reach the port, so Serve limits what a
// client can use.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{
		Handler: h, MaxHeaderBytes: mostHeader, ReadHeaderTimeout: headLimit, ReadTimeout: headLimit,
		WriteTimeout: headLimit + metricsLimit + headLimit, IdleTimeout: idleLimit,
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(crowd.Limit(l, mostConns)) }()
	select {
	case err := <-done:
		return fmt.Errorf("metrics at %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err := s.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close() // a waiting client can retry with the next driver
	}
	if err != nil {
		return fmt.Errorf("metrics at %s: %w", l.Addr(), err)
	}
	return nil
}
