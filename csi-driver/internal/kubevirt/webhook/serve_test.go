// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/klog/v2"
)

// The reviews in memory share mostBytes. Further reviews wait, or are refused in time. A review
// that does not arrive loses its share, and the webhook then reads a waiting review.
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
		for r.room.TryAcquire(1) { // the review has no share yet
			r.room.Release(1)
			if time.Since(began) > arriving {
				t.Fatalf("%s: the webhook reads the review without a share", length)
			}
			time.Sleep(time.Millisecond)
		}
		if code, took := post("?timeout=1s"); code != http.StatusServiceUnavailable || took > arriving {
			t.Errorf("%s: a second review: %d after %v", length, code, took)
		}
		if code, _ := post("?timeout=10s"); code != http.StatusBadRequest {
			t.Errorf("%s: a review that may wait longer got status %d", length, code)
		}
		res, err := http.ReadResponse(bufio.NewReader(slow), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); res.StatusCode != http.StatusBadRequest || took < arriving || took > reviewLimit {
			t.Errorf("%s: the review that does not arrive got status %d after %v", length, res.StatusCode, took)
		}
	}
}

// A migration may be of a VM without volumes. While the webhook cannot read the VM, it returns an
// error instead of a verdict, so that the failurePolicy applies.
func TestMigrationWithoutAnswer(t *testing.T) {
	r := usual().reviewer(t)
	s := httptest.NewServer(r.Handler(context.Background()))
	defer s.Close()
	post := func(resource string) int {
		t.Helper()
		text, err := json.Marshal(admissionv1.AdmissionReview{Request: request(resource, admissionv1.Create,
			[]byte(`{"metadata":{"name":"m","namespace":"ns"},"spec":{"vmiName":"plain"}}`))})
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(s.URL+"/validate?timeout=100ms", "application/json", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if code := post(migrations); code != http.StatusOK {
		t.Errorf("with an answer of the API server: status %d", code)
	}
	if err := r.cluster.objects.Acquire(context.Background(), mostObjects); err != nil {
		t.Fatal(err)
	}
	defer r.cluster.objects.Release(mostObjects)
	if code := post(migrations); code != http.StatusServiceUnavailable {
		t.Errorf("while other reviews read objects: status %d", code)
	}
}

// A client that holds all connections neither delays an API server nor closes its connections. No
// connection uses HTTP/2, which has its own buffers.
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
	settings := client(bundle).Transport.(*http.Transport).TLSClientConfig
	settings.NextProtos = []string{"h2", "http/1.1"}
	connect := func() *tls.Conn {
		t.Helper()
		c, err := tls.DialWithDialer(&net.Dialer{Timeout: reviewLimit}, "tcp", l.Addr().String(), settings)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if p := c.ConnectionState().NegotiatedProtocol; p == "h2" {
			t.Error("the server accepts HTTP/2")
		}
		return c
	}
	asks := func(what string, c *tls.Conn) {
		t.Helper()
		err := c.SetDeadline(time.Now().Add(reviewLimit))
		if err == nil {
			_, err = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", what, res.Status, err)
		}
	}
	old := settings.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if c, err := tls.Dial("tcp", l.Addr().String(), old); err == nil {
		c.Close()
		t.Error("the server accepts an old version of TLS")
	}
	first := connect()
	asks("alone", first)
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	var held []net.Conn
	for i := range 2 * mostConns {
		c, err := other.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		held = append(held, c)
		if i%64 == 0 { // the server closes an idle connection after a while
			asks("with a connection from before", first)
		}
	}
	asks("with a connection from before", first)
	asks("with a new connection", connect())
	open := func() (n int) {
		for _, c := range held {
			if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); os.IsTimeout(err) {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(reviewLimit / 2); open() >= mostConns; { // the server may not have accepted the last connections yet
		if time.Now().After(end) {
			t.Fatalf("%d connections are open", open())
		}
	}
}

// A review may take longer than the time limit for its text. The connection then still serves later
// reviews.
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

// A new certificate replaces the previous certificate after a while. By then, API servers have
// received the new authority, and the certificate is valid by their clocks, too.
func TestCertificateBefore(t *testing.T) {
	dir := t.TempDir()
	names := []string{"tls.crt", "tls.key"}
	put := func(as []string, begins, lasts time.Duration) {
		t.Helper()
		certifyFrom(t, dir, time.Now().Add(begins), time.Now().Add(begins+lasts))
		for i, name := range names {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, as[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := []string{"previous.crt", "previous.key"}
	for _, c := range []struct {
		what       string
		age        time.Duration // age of the new certificate
		previous   time.Duration // validity of the previous certificate, which began two hours ago
		isPrevious bool
	}{
		{"the clock is behind", -time.Minute, 3 * time.Hour, true},
		{"new", time.Minute, 3 * time.Hour, true},
		{"new, and the previous certificate has expired", time.Minute, time.Hour, false},
		{"known to all", mature + time.Minute, 3 * time.Hour, false},
	} {
		put(before, -2*time.Hour, c.previous)
		put(names, -c.age, time.Hour*24)
		got, err := Folder{dir}.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		if begins := time.Since(got.Leaf.NotBefore); (begins > 110*time.Minute) != c.isPrevious {
			t.Errorf("%s: got a certificate that began %v ago", c.what, begins)
		}
	}
	for _, name := range before {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(names, -time.Minute, time.Hour)
	if got, err := (Folder{dir}).Certificate(); err != nil || time.Since(got.Leaf.NotBefore) > time.Hour {
		t.Errorf("without a previous certificate: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "tls.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := (Folder{dir}).Certificate(); err == nil {
		t.Error("Certificate accepts a folder without a key")
	}
}

// The webhook logs repeatedly that the certificate ends soon, from the time of the alert on.
func TestCertificateEnds(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		what      string
		age, left time.Duration
		warns     bool
	}{
		{"of three years, a month remains", 1065 * day, 30 * day, false},
		{"of three years, less than three weeks remain", 1074*day + time.Hour, 21*day - time.Hour, true},
		{"a certificate of three years has expired", 1096 * day, -day, true},
		{"of three days, one day remains", 2 * day, day, false},
		{"of three days, eleven hours remain", 61 * time.Hour, 11 * time.Hour, true},
	} {
		dir, warned := t.TempDir(), make(chan string, 100)
		certifyFrom(t, dir, time.Now().Add(-c.age), time.Now().Add(c.left))
		log := funcr.New(func(_, words string) {
			select {
			case warned <- words:
			default:
			}
		}, funcr.Options{})
		ctx, stop := context.WithTimeout(klog.NewContext(context.Background(), log), 30*time.Second)
		done := make(chan struct{})
		go func() { Folder{dir}.Watch(ctx, time.Millisecond); close(done) }()
		if !c.warns {
			time.Sleep(20 * time.Millisecond)
		}
		for range map[bool]int{true: 3}[c.warns] {
			select {
			case words := <-warned:
				if !strings.Contains(words, "ends") {
					t.Errorf("%s: %s", c.what, words)
				}
			case <-ctx.Done():
				t.Errorf("%s: there is no warning", c.what)
			}
		}
		stop()
		<-done
		if !c.warns && len(warned) > 0 {
			t.Errorf("%s: %s", c.what, <-warned)
		}
	}
}

// The metrics count reviews by their outcome, and report when the certificate begins and ends.
func TestMetrics(t *testing.T) {
	r := usual().reviewer(t)
	dir := t.TempDir()
	ends := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	begins := ends.Add(-4 * time.Hour)
	certifyFrom(t, dir, begins, ends)
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.Metrics(Folder{dir}, klog.Background())...)
	has := func(want map[string]float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := strings.Split(f.GetName(), "_")[3] // begins, expires
				if len(m.GetLabel()) > 0 {
					name = m.GetLabel()[0].GetValue()
				}
				got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
	}
	has(map[string]float64{allowed: 0, refused: 0, unasked: 0, turnedAway: 0, "begins": float64(begins.Unix()), "expires": float64(ends.Unix())})
	h := r.Handler(context.Background())
	ended, end := context.WithCancel(context.Background())
	end()
	post := func(ctx context.Context, body string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/validate", strings.NewReader(body)).WithContext(ctx))
	}
	review := func(volumes string) string {
		text, err := json.Marshal(admissionv1.AdmissionReview{Request: request("virtualmachineinstances", admissionv1.Create, machineWith(volumes, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	post(context.Background(), review("data"))
	post(context.Background(), review("nowhere"))
	post(context.Background(), review("Data"))
	post(context.Background(), "{}")
	post(ended, review("data")) // the client has disconnected
	r.cluster.lists.TryAcquire(mostLists)
	soon, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	post(soon, review("mine"))
	if err := os.Remove(filepath.Join(dir, "tls.crt")); err != nil {
		t.Fatal(err)
	}
	has(map[string]float64{allowed: 1, refused: 2, unasked: 1, turnedAway: 2})
}
