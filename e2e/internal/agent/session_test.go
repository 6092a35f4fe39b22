// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"stargate/e2e/internal/wire"
)

// newLink returns the rig's end of a channel, whose other end is an agent on this machine.
func newLink(t *testing.T) *wire.Link {
	t.Helper()
	// The agent starts commands in /root.
	if _, err := os.Stat("/root"); err != nil {
		t.Skip("this machine has no /root")
	}
	ours, theirs := net.Pipe()
	go func() { _ = Serve(theirs) }() // Serve ends when the test closes the channel
	link := wire.NewLink(ours)
	t.Cleanup(func() { ours.Close() })
	select {
	case <-link.Ready():
	case <-time.After(10 * time.Second):
		t.Fatal("the agent does not answer")
	}
	return link
}

func runCommand(t *testing.T, link *wire.Link, script, stdin string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status, err := link.Run([]string{"bash", "-c", script}, strings.NewReader(stdin), &out, &errs)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return status, out.String(), errs.String()
}

func TestStreamsAndStatus(t *testing.T) {
	link := newLink(t)
	status, out, errs := runCommand(t, link, "cat; echo oops >&2; exit 3", "input")
	if status != 3 || out != "input" || errs != "oops\n" {
		t.Errorf("got %d, %q, %q", status, out, errs)
	}
	if status, _, _ := runCommand(t, link, "kill -9 $$", ""); status != 137 {
		t.Errorf("a killed command's status is %d", status)
	}
}

func TestUnknownProgram(t *testing.T) {
	link := newLink(t)
	var out, errs bytes.Buffer
	status, err := link.Run([]string{"/no/such/program"}, nil, &out, &errs)
	if err != nil || status != 127 || !strings.Contains(errs.String(), "/no/such/program") {
		t.Errorf("got %d, %v, %q", status, err, errs.String())
	}
}

func TestMuchDataBothWaysAtOnce(t *testing.T) {
	link := newLink(t)
	data := make([]byte, 4<<20)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			var out, errs bytes.Buffer
			status, err := link.Run([]string{"cat"}, bytes.NewReader(data), &out, &errs)
			if err != nil || status != 0 || !bytes.Equal(out.Bytes(), data) {
				t.Errorf("status %d, %v, %d bytes, %q", status, err, out.Len(), errs.String())
			}
		}()
	}
	all.Wait()
}

// stuck is a writer that blocks, like a client that does not read its output.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) { <-s; return len(p), nil }

func TestOneStuckReaderStopsNobodyElse(t *testing.T) {
	link := newLink(t)
	block := make(stuck)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The status does not matter, because head ends before yes.
		_, _ = link.Run([]string{"bash", "-c", "yes | head -c 5000000"}, nil, block, block)
	}()
	for i := 0; i < 20; i++ {
		want := fmt.Sprintf("%d\n", i)
		if _, out, _ := runCommand(t, link, "echo "+strings.TrimSpace(want), ""); out != want {
			t.Fatalf("got %q", out)
		}
	}
	close(block)
	<-ended
}

func TestInputThatNobodyReads(t *testing.T) {
	link := newLink(t)
	if status, _, _ := runCommand(t, link, "exit 4", strings.Repeat("x", 4<<20)); status != 4 {
		t.Errorf("status %d", status)
	}
}

func TestChildLeftBehindHoldsNobody(t *testing.T) {
	link := newLink(t)
	start := time.Now()
	status, out, _ := runCommand(t, link, "sleep 30 & echo started", "")
	if status != 0 || out != "started\n" || time.Since(start) > 10*time.Second {
		t.Errorf("status %d, %q after %s", status, out, time.Since(start))
	}
}

// slow is a writer that waits before each part, like a client that reads slowly.
type slow struct {
	bytes.Buffer
	delay time.Duration
}

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(s.delay)
	return s.Buffer.Write(p)
}

// All output of a command arrives, even if the client reads it long after the command's end. At
// that time, the output is in the window, and in the pipe behind the window.
func TestSlowReaderGetsAllOutput(t *testing.T) {
	for what, script := range map[string]string{
		"the pipe is full":                       "head -c 320000 /dev/zero | tr '\\0' x",
		"both streams":                           "head -c 300000 /dev/zero | tr '\\0' x; head -c 20000 /dev/zero >&2",
		"a child has the pipe open":              "sleep 30 & head -c 320000 /dev/zero | tr '\\0' x",
		"a child writes after the command's end": "head -c 320000 /dev/zero | tr '\\0' x; (while echo y; do sleep 0.01; done) &",
		"a signal ends the command":              "head -c 320000 /dev/zero | tr '\\0' x; kill -9 $$",
	} {
		what, script := what, script
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			link := newLink(t)
			var errs bytes.Buffer
			out := &slow{delay: 100 * time.Millisecond}
			start := time.Now()
			status, err := link.Run([]string{"bash", "-c", script}, nil, out, &errs)
			if err != nil || status != 0 && status != 137 {
				t.Errorf("status %d, %v", status, err)
			}
			if n := len(strings.TrimRight(out.String(), "y\n")) + errs.Len(); n != 320000 {
				t.Errorf("%d bytes of 320000 have arrived", n)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("the output took %s", took)
			}
		})
	}
}

// The same with a terminal, which passes on its input in small parts.
func TestSlowReaderOfATerminal(t *testing.T) {
	link := newLink(t)
	client, server := net.Pipe()
	go func() {
		_ = link.Forward(wire.Request{Args: []string{"bash", "-c", "sleep 30 & for i in $(seq 12000); do echo 12345678; done"}, Terminal: true, Rows: 33, Columns: 77}, server)
	}()
	out := &slow{delay: 100 * time.Millisecond}
	status, err := wire.Converse(wire.NewWriter(client), 0, wire.Frames(client), nil, out, out)
	if err != nil || status != 0 || out.Len() != 120000 {
		t.Errorf("status %d, %v, %d bytes of 120000 have arrived", status, err, out.Len())
	}
}

// The agent cuts off the output of children that run after their command's end.
func TestChildrenAreCutOff(t *testing.T) {
	link := newLink(t)
	for _, child := range []string{"yes", "while echo y; do sleep 0.01; done"} {
		start := time.Now()
		status, out, _ := runCommand(t, link, "echo started; ("+child+") & sleep 0.1", "")
		if status != 0 || !strings.HasPrefix(out, "started\n") || time.Since(start) > 10*time.Second {
			t.Errorf("%s: status %d, %d bytes after %s", child, status, len(out), time.Since(start))
		}
	}
}

func TestClientGoesAway(t *testing.T) {
	link := newLink(t)
	client, server := net.Pipe()
	ended := make(chan error)
	go func() {
		ended <- link.Forward(wire.Request{Args: []string{"bash", "-c", "yes; sleep 1000"}}, server)
	}()
	if _, err := wire.Read(client); err != nil {
		t.Fatal(err)
	}
	client.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the command continues without its client")
	}
}

func TestTerminal(t *testing.T) {
	link := newLink(t)
	client, server := net.Pipe()
	go func() {
		_ = link.Forward(wire.Request{Args: []string{"bash", "-c", "tty; stty size"}, Terminal: true, Rows: 33, Columns: 77}, server)
	}()
	var out bytes.Buffer
	status, err := wire.Converse(wire.NewWriter(client), 0, wire.Frames(client), nil, &out, &out)
	if err != nil || status != 0 || !strings.Contains(out.String(), "/dev/pts/") || !strings.Contains(out.String(), "33 77") {
		t.Errorf("status %d, %v, %q", status, err, out.String())
	}
}

func TestChannelEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	link := wire.NewLink(ours)
	go func() {
		_ = wire.NewWriter(theirs).Send(wire.Frame{Kind: wire.Ready})
		_, _ = wire.Read(theirs)
		theirs.Close()
	}()
	var out bytes.Buffer
	if _, err := link.Run([]string{"true"}, nil, &out, &out); err != wire.ErrGone {
		t.Errorf("got %v", err)
	}
}

// Join loses no byte, even if one side sends it before the other side has connected, or after the
// other side has sent its last byte.
func TestJoin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	in, ours := io.Pipe()
	var out bytes.Buffer
	done := make(chan error)
	go func() { done <- Join(path, in, &out) }()
	go func() {
		_, _ = ours.Write([]byte("early"))
		ours.Close()
	}()
	time.Sleep(20 * time.Millisecond)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(conn)
	if err != nil || string(said) != "early" {
		t.Errorf("got %q, %v", said, err)
	}
	if _, err := conn.Write([]byte("late")); err != nil {
		t.Error(err)
	}
	conn.Close()
	if err := <-done; err != nil || out.String() != "late" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestStartedCommand(t *testing.T) {
	link := newLink(t)
	var out bytes.Buffer
	c, err := link.Start([]string{"bash", "-c", "sleep 100 & echo there; wait"}, nil, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Ended():
		t.Error("the command has ended without a signal")
	case <-time.After(100 * time.Millisecond):
	}
	c.Signal(syscall.SIGTERM)
	if status, err := c.Wait(); err != nil || status != 143 || out.String() != "there\n" {
		t.Errorf("status %d, %v, %q", status, err, out.String())
	}
	c.Signal(syscall.SIGKILL) // no effect after the command's end
}
