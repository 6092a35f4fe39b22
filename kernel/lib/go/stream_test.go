// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// connsInMemory returns both ends of a stream. Their requests to the kernel fail, so no end can
// wait in the kernel or detect that the other end has left.
func connsInMemory(t *testing.T) (a, b *Conn) {
	t.Helper()
	one, two := ringsInMemory(t, 2), ringsInMemory(t, 2)
	return &Conn{in: one[0], out: two[0], addr: "a"}, &Conn{in: two[1], out: one[1], addr: "a"}
}

func TestStream(t *testing.T) {
	a, b := connsInMemory(t)
	var conn net.Conn = a
	if conn.LocalAddr().Network() != "stargate" || conn.RemoteAddr().String() != "a" {
		t.Fatal(conn.LocalAddr())
	}
	data := make([]byte, 60000)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	if n, err := a.Write(data); n != len(data) || err != nil {
		t.Fatal(n, err)
	}
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write(data); !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
	got, err := io.ReadAll(struct{ io.Reader }{b}) // in parts of 512 bytes and more
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(len(got), err)
	}
	if n, err := b.Read(data); n != 0 || err != io.EOF {
		t.Fatal(n, err)
	}
	// the other direction still works
	if _, err := b.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 3)
	if n, err := a.Read(part); n != 3 || string(part) != "mor" || err != nil {
		t.Fatal(n, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(part); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if err := a.Close(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

func TestStreamDeadlines(t *testing.T) {
	a, b := connsInMemory(t)
	a.SetDeadline(time.Now().Add(-time.Second))
	var timeout net.Error
	if _, err := a.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatal(err)
	}
	if _, err := a.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	a.SetDeadline(time.Time{})
	if _, err := a.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	b.out.Send(77, []byte("x"), Try) // no stream has this tag
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, syscall.EPROTO) {
		t.Fatal(err)
	}
}

func TestStreamOtherEndLeft(t *testing.T) {
	a, b := connsInMemory(t)
	if _, err := b.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	a.gone = 1
	part := make([]byte, 10)
	if n, err := a.Read(part); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := a.Read(part); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	if _, err := a.Write(part); !errors.Is(err, syscall.EPIPE) {
		t.Fatal(err)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]bool{
		"0123456789abcdef": true, "0123456789abcdeF": false, "../../../../../..": false,
		"": false, "0123456789abcde": false, "0123456789abcde/": false,
	} {
		if isNumber([]byte(text)) != want {
			t.Error(text)
		}
	}
}
