// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The server stops without an error while a client reads the metrics.
func TestEndsDuringAScrape(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-release })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, h) }()
	go func() {
		if res, err := http.Get("http://" + l.Addr().String()); err == nil {
			res.Body.Close()
		}
	}()
	<-begun
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * stopLimit):
		t.Error("the server does not end")
	}
}

// stuck is a check that does not end until it is released.
type stuck chan struct{}

func (stuck) Describe(ch chan<- *prometheus.Desc) { ch <- desc("stuck", "Nothing.") }
func (s stuck) Collect(chan<- prometheus.Metric)  { <-s }

// Some of the concurrent requests wait. The server tells the rest to retry.
func TestScrapesAtOnce(t *testing.T) {
	s, r := make(stuck), prometheus.NewRegistry()
	r.MustRegister(s)
	h := Handler(r, nil, nil)
	var g sync.WaitGroup
	codes := make(chan int, scrapes+1)
	for range scrapes + 1 {
		g.Add(1)
		go func() {
			defer g.Done()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			codes <- w.Code
		}()
	}
	select {
	case code := <-codes:
		if code != http.StatusServiceUnavailable {
			t.Errorf("a request above the limit gets status %d", code)
		}
	case <-time.After(30 * time.Second):
		t.Error("all requests wait, and none is told to retry")
	}
	close(s)
	g.Wait()
}

// Any number of requests cause one check of the zone in an interval. A client that disconnects
// during the check does not change the answers to other clients. The request of a client that
// disconnects while it waits ends immediately.
func TestReadyIsKept(t *testing.T) {
	var asked atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	ready := kept(func(ctx context.Context) error {
		asked.Add(1)
		close(begun)
		<-release
		return ctx.Err()
	})
	leaves, leave := context.WithCancel(context.Background())
	answers := make(chan error)
	go func() { answers <- ready(leaves) }()
	<-begun
	leave()
	if err := ready(leaves); err == nil {
		t.Error("the request of a disconnected client still waits")
	}
	for range 20 {
		go func() { answers <- ready(context.Background()) }()
	}
	close(release)
	for range 21 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the check ran %d times", n)
	}
}
