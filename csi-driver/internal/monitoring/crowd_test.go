// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A client that holds many connections does not delay probes. The server closes most of these
// connections.
func TestProbeInACrowd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	alive := func(context.Context) error { return nil }
	go func() { done <- Serve(ctx, l, Handler(prometheus.NewRegistry(), alive, alive)) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var held []net.Conn
	for range 4 * mostConns {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/readyz", "/healthz"} {
		res, err := client.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	open := 0
	for _, c := range held {
		if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); os.IsTimeout(err) {
			open++
		}
	}
	if open == 0 || open > mostConns {
		t.Errorf("%d connections are open", open)
	}
}

// A client that opens connections all the time does not end a connection of another address, even
// if that connection's answer is slow.
func TestScrapeInACrowd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, release := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-release })
	ctx, stop := context.WithCancel(context.Background())
	done, answer := make(chan error), make(chan error)
	go func() { done <- Serve(ctx, l, slow) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	go func() {
		res, err := http.Get("http://" + l.Addr().String())
		if err == nil {
			res.Body.Close()
		}
		answer <- err
	}()
	<-begun
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 4 * mostConns {
		c, err := other.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	close(release)
	if err := <-answer; err != nil {
		t.Errorf("a slow answer: %v", err)
	}
}
