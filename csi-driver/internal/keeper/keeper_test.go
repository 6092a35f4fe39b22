// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2/ktesting"

	"stargate/csi-driver/internal/errkind"
)

// servers simulates processes that a test ends.
type servers struct {
	mu      sync.Mutex
	started []Spec
	seen    []byte            // first byte of the memory at each start
	ends    []chan error      // functions that end the running servers
	refuse  func(n int) error // error of the nth start, before the server joins
}

func (s *servers) run(of Spec, _, memory *os.File, began func(int), joined func()) error {
	s.mu.Lock()
	first := []byte{0}
	_, _ = memory.ReadAt(first, 0)
	s.started, s.seen = append(s.started, of), append(s.seen, first[0])
	n, end := len(s.started), make(chan error)
	_, err := memory.WriteAt([]byte{byte(n)}, 0)
	if err == nil && s.refuse != nil {
		err = s.refuse(n)
	}
	s.ends = append(s.ends, end)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	began(n)
	joined()
	return <-end
}

// end ends the last started server.
func (s *servers) end(err error) {
	s.mu.Lock()
	last := s.ends[len(s.ends)-1]
	s.mu.Unlock()
	last <- err
}

func (s *servers) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.started)
}

// world is a keeper at a socket, with a Client of it.
type world struct {
	t      *testing.T
	socket string
	servers
	stop func()
	*Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "sgkeep") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, socket: filepath.Join(dir, "s")}
	w.begin()
	t.Cleanup(func() { w.stop() })
	w.Client = NewClient("unix://"+w.socket, ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true))))
	return w
}

// begin starts a keeper. stop ends the keeper, but not its servers, which this test cannot kill.
func (w *world) begin() {
	w.t.Helper()
	os.Remove(w.socket)
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := New(Config{Dir: "/zone", Release: "1.2.3", Run: w.run}, ktesting.NewLogger(w.t, ktesting.NewConfig(ktesting.BufferLogs(true))))
	done := make(chan error, 1)
	go func() { done <- k.Serve(ctx, l) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// mount returns a mount's descriptor. ended reports whether all copies of it are closed.
func (w *world) mount() (mount *os.File, ended func() bool) {
	w.t.Helper()
	r, mount, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { r.Close() })
	over := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, r); close(over) }()
	return mount, func() bool {
		select {
		case <-over:
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	}
}

// served starts a server for a volume, like package publish.
func (w *world) served(name string) (ended func() bool) {
	w.t.Helper()
	mount, ended := w.mount()
	defer mount.Close()
	if err := w.Serve(context.Background(), name, "/zone/"+name, []string{"noatime"}, mount); err != nil {
		w.t.Fatal(err)
	}
	return ended
}

func (w *world) soon(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not within a minute: %s", what)
		}
		_ = w.Follow(context.Background())
	}
}

// A mount has one server until the mount ends. Then no process has the mount's descriptor.
func TestServe(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	ended := w.served("v")
	if is, err := w.Serving(ctx, "v"); err != nil || !is {
		t.Errorf("volume v has a server: %v, %v", is, err)
	}
	if is, err := w.Serving(ctx, "other"); err != nil || is {
		t.Errorf("volume other has a server: %v, %v", is, err)
	}
	mount, _ := w.mount()
	if err := w.Serve(ctx, "v", "/zone/v", nil, mount); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second server: %v", err)
	}
	mount.Close()
	if ended() {
		t.Error("no process holds the mount's descriptor")
	}
	w.end(nil)
	if err := w.Gone(ctx, "v"); err != nil {
		t.Error(err)
	}
	w.soon("no process holds the mount's descriptor", ended)
	if n := w.count(); n != 1 {
		t.Errorf("%d servers were started", n)
	}
}

// If a server dies, the keeper starts another server with the same memory. If servers die
// repeatedly, it does not.
func TestReplaced(t *testing.T) {
	w := newWorld(t)
	ended := w.served("v")
	for n := 2; n <= mostRestarts+1; n++ {
		w.end(errors.New("killed"))
		w.soon(fmt.Sprintf("server %d", n), func() bool { return w.count() == n })
	}
	if got := w.Status(); got.Restarts["v"] != mostRestarts || got.Held != 1 || !got.Up {
		w.soon("the status counts the restarts", func() bool { return w.Status().Restarts["v"] == mostRestarts })
	}
	w.withServers(func() {
		for i, first := range w.seen {
			if first != byte(i) {
				t.Errorf("server %d finds the byte %d in the memory of its predecessor", i+1, first)
			}
		}
	})
	w.end(errors.New("killed"))
	w.soon("the keeper drops the mount", ended)
	if got := w.Status(); got.Held != 0 || len(got.Restarts) != 0 {
		t.Errorf("held is %+v", got)
	}
}

func (w *world) withServers(do func()) {
	w.servers.mu.Lock()
	defer w.servers.mu.Unlock()
	do()
}

func (w *world) refuses(is func(n int) error) { w.withServers(func() { w.refuse = is }) }

// If a server cannot join, Serve returns the reason, and nothing is left.
func TestNotServed(t *testing.T) {
	w := newWorld(t)
	w.refuses(func(int) error { return errors.New("/zone/v: is no volume") })
	mount, ended := w.mount()
	err := w.Serve(context.Background(), "v", "/zone/v", nil, mount)
	if err == nil || !strings.Contains(err.Error(), "/zone/v: is no volume") || !errkind.Is(err, errkind.Internal) {
		t.Errorf("%v", err)
	}
	mount.Close()
	w.soon("no process holds the mount's descriptor", ended)
	if got := w.Status(); got.Held != 0 {
		t.Errorf("held is %+v", got)
	}
}

// A new driver gets the descriptors of the mounts from the keeper, and passes them to a new keeper.
func TestSuccessors(t *testing.T) {
	w, ctx := newWorld(t), context.Background()
	ended := w.served("v")
	first := w.Client
	second := NewClient(w.socket, first.log)
	if is, err := second.Serving(ctx, "v"); err != nil || !is {
		t.Fatalf("a new driver: %v, %v", is, err)
	}
	first.mu.Lock() // the first driver ends
	first.dropLocked(first.held["v"])
	first.mu.Unlock()
	w.Client = second
	w.stop()
	if _, err := w.Serving(ctx, "v"); !errkind.Is(err, errkind.NoAnswer) {
		t.Errorf("without a keeper: %v", err)
	}
	if got := w.Status(); got.Up || got.Held != 1 {
		t.Errorf("without a keeper: %+v", got)
	}
	refused := 0
	w.refuses(func(int) error { // the mount's last server has not ended yet
		if refused++; refused <= 2 {
			return errors.New("a server starts while the last server still runs")
		}
		return nil
	})
	w.begin()
	w.soon("another server", func() bool { return w.count() == 4 && w.Status().Restarts["v"] == 1 })
	w.withServers(func() {
		if w.seen[3] != 3 || !slices.Equal(w.started[3].Options, []string{"noatime"}) || w.started[3].Volume != "/zone/v" {
			t.Errorf("the new server has %d in its memory, and its state is %+v", w.seen[3], w.started[3])
		}
	})
	if ended() {
		t.Error("no process holds the mount's descriptor")
	}
}

// The driver drops a mount that every keeper refuses after a time, so that the mount's pods do not
// wait forever.
func TestRefusedForGood(t *testing.T) {
	w := newWorld(t)
	ended := w.served("v")
	w.stop()
	var mu sync.Mutex
	refusals := 0
	w.refuses(func(int) error {
		mu.Lock()
		defer mu.Unlock()
		refusals++
		return errors.New("of another release")
	})
	w.begin()
	w.soon("the keeper has refused the mount often", func() bool { mu.Lock(); defer mu.Unlock(); return refusals >= 30 })
	if w.Status().Held != 1 {
		t.Error("the driver drops the mount immediately")
	}
	w.Client.mu.Lock()
	w.patience = 0
	w.Client.mu.Unlock()
	w.soon("the driver drops the mount", func() bool { return w.Status().Held == 0 })
	w.withServers(func() { w.ends[0] <- nil }) // ends the first keeper's server, which the keeper's end does not kill in this test
	w.soon("no process holds the mount's descriptor", ended)
}

// A keeper with another protocol refuses Serve, but still lists its mounts.
func TestSkew(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var r request
			got, _ := receive(c.(*net.UnixConn), &r)
			closeAll(got)
			a := reply{Protocol: Protocol + 1, Release: "9.9.9", Instance: "i"}
			if r.Call == callServe {
				a.Error = "the call has another version"
			}
			_ = send(c.(*net.UnixConn), a)
			c.Close()
		}
	}()
	c := NewClient(socket, ktesting.NewLogger(t, ktesting.NewConfig()))
	if err := c.Follow(context.Background()); err != nil {
		t.Error(err)
	}
	r, mount, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer mount.Close()
	err = c.Serve(context.Background(), "v", "/zone/v", nil, mount)
	if !errkind.Is(err, errkind.InUse) || !strings.Contains(err.Error(), "9.9.9") || !strings.Contains(err.Error(), "delete the keeper's pod") {
		t.Errorf("%v", err)
	}
	// A mount of an earlier keeper waits for a driver whose protocol the new keeper supports.
	files, err := copies(mount, mount)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{spec: Spec{Name: "v", Volume: "/zone/v"}, instance: "earlier", mount: files[0], memory: files[1]}
	c.patience, c.held["v"] = 0, h
	for range 3 {
		c.adopt(context.Background(), h)
	}
	if c.Status().Held != 1 {
		t.Error("the driver drops the mount")
	}
	h.close()
}

// The keeper starts no server for a request that the driver would never send.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	for _, of := range []Spec{
		{"", "/zone/v", nil}, {"../v", "/zone/v", nil}, {"v", "/etc/passwd", nil}, {"v", "/zone/../etc/passwd", nil},
		{"v", "/zone/v/w", nil}, {"v", "v", nil}, {"v", "/zone/v", []string{"allow_other"}}, {"v", "/zone/v", []string{"ro,cache=1"}},
	} {
		mount, _ := w.mount()
		if err := w.Serve(context.Background(), of.Name, of.Volume, of.Options, mount); err == nil {
			t.Errorf("the keeper starts a server for %+v", of)
		}
		mount.Close()
	}
	if err := w.Serve(context.Background(), "v", "/zone/v", nil, os.Stdin); err != nil {
		t.Error(err)
	}
	w.end(nil)
	for _, r := range []request{{Call: "hold", Spec: Spec{Name: "none"}}, {Call: "x"}, {Call: callServe, Protocol: Protocol, Spec: Spec{Name: "v", Volume: "/zone/v"}}} {
		if _, _, err := w.call(context.Background(), time.Minute, r); err == nil {
			t.Errorf("%+v is answered", r)
		}
	}
	if n := w.count(); n != 1 {
		t.Errorf("%d servers were started", n)
	}
}

// A keeper lists a server, and does not pass its descriptors, as a process without free descriptors
// does. The mount has a server: it must not be replaced.
func TestNotPassed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var r request
			answer := reply{Protocol: Protocol, Instance: "one"}
			uc := conn.(*net.UnixConn)
			if _, err := receive(uc, &r); err == nil && r.Call == callList {
				answer.Servers = []Server{{Spec: Spec{Name: "v"}, ID: "server"}}
			} else {
				answer.Error = "too many open files"
			}
			_ = send(uc, answer)
			conn.Close()
		}
	}()
	c := NewClient("unix://"+socket, ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true))))
	for name, want := range map[string]bool{"v": true, "w": false} {
		if got, err := c.Serving(context.Background(), name); got != want || err != nil {
			t.Errorf("volume %s: served %v, %v", name, got, err)
		}
	}
}

// A mount ends while a call passes it to a new keeper: the driver keeps none of its descriptors.
func TestDroppedMeanwhile(t *testing.T) {
	w := newWorld(t)
	mount, ended := w.mount()
	mine, err := copies(mount)
	if err != nil {
		t.Fatal(err)
	}
	h := &held{spec: Spec{Name: "v", Volume: "/zone/v"}, mount: mine[0], adopting: true}
	w.Client.mu.Lock()
	w.held["v"] = h
	w.dropLocked(h)
	w.Client.mu.Unlock()
	if err := w.give(context.Background(), h, mount); err == nil || h.memory != nil {
		t.Errorf("the memory is kept: %v", err)
	}
	mount.Close()
	w.end(nil)
	w.soon("no descriptor of the mount is left", ended)
}
