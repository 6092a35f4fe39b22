// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Reviews in memory have mostBytes together. Others wait, are refused in time, and are read once a
// review that does not arrive has lost its share.
func TestManyBytes(t *testing.T) {
	for _, length := range []string{"Content-Length: 4194304", "Transfer-Encoding: chunked"} {
		r := usual().reviewer(t)
		s := httptest.NewServer(r.Handler(context.Background()))
		defer s.Close()
		post := func(query string) (int, time.Duration) {
			t.Helper()
			began := time.Now()
			res, err := http.Post(s.URL+"/mutate"+query, "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode, time.Since(began)
		}
		slow, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		began := time.Now()
		if _, err := io.WriteString(slow, "POST /mutate HTTP/1.1\r\nHost: h\r\n"+length+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		for r.room.TryAcquire(1) { // it is not there yet
			r.room.Release(1)
			if time.Since(began) > arriving {
				t.Fatalf("%s: it is read without a share", length)
			}
			time.Sleep(time.Millisecond)
		}
		if code, took := post("?timeout=1s"); code != http.StatusServiceUnavailable || took > arriving {
			t.Errorf("%s: a second review: %d after %v", length, code, took)
		}
		if code, _ := post("?timeout=10s"); code != http.StatusBadRequest {
			t.Errorf("%s: a review that waits longer: %d", length, code)
		}
		res, err := http.ReadResponse(bufio.NewReader(slow), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); res.StatusCode != http.StatusBadRequest || took < arriving || took > reviewLimit {
			t.Errorf("%s: the one that does not arrive: %d after %v", length, res.StatusCode, took)
		}
	}
}

// Further connections wait until one of the mostConns ends. None is HTTP/2, which has buffers of its
// own.
func TestManyConnections(t *testing.T) {
	dir := t.TempDir()
	bundle := certify(t, dir)
	ctx, stop := context.WithCancel(context.Background())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Serve(ctx, l, usual().reviewer(t).Handler(ctx), Folder{dir}) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	get := func(limit time.Duration) (*http.Response, error) {
		c := client(bundle)
		c.Timeout, c.Transport.(*http.Transport).ForceAttemptHTTP2 = limit, true
		res, err := c.Get("https://" + l.Addr().String() + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return res, err
	}
	res, err := get(reviewLimit)
	if err != nil || res.ProtoMajor != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	var open []net.Conn
	for range mostConns {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	if res, err := get(time.Second); err == nil {
		t.Errorf("with %d connections: %s", mostConns, res.Status)
	}
	if err := open[0].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := get(reviewLimit); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

// A review may take longer than its text may take to arrive, and the connection serves later ones.
func TestLongReview(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := read(w, req); err != nil {
			t.Error(err)
		}
		select {
		case <-req.Context().Done():
			w.WriteHeader(http.StatusServiceUnavailable)
		case <-time.After(arriving + 300*time.Millisecond):
		}
	}))
	defer s.Close()
	for turn := range 2 {
		response, err := s.Client().Post(s.URL, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			t.Errorf("review %d: %s", turn, response.Status)
		}
	}
}
