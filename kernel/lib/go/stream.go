// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The records of a stream. kernel/lib/stream.c defines the same records, and explains how the two
// ends find each other.
const (
	tagData     = 0
	tagEnd      = 1
	tagAccepted = 2

	numberLen    = 16
	nameMost     = 230
	requestsSize = ringMin
	blockMost    = 64 << 10
	streamSize   = 1 << 20
)

// lookEach is the interval at which a waiting call checks for the other end's death, a new
// deadline, and Close.
const lookEach = 250 * time.Millisecond

// Addr is the name of a stream or a listener.
type Addr string

// Network returns "stargate".
func (a Addr) Network() string { return "stargate" }

func (a Addr) String() string { return string(a) }

// deadline is the end of all reads, or of all writes. 0: no deadline.
type deadline struct{ ns int64 }

func (d *deadline) set(t time.Time) {
	var ns int64
	if !t.IsZero() {
		ns = t.UnixNano()
	}
	atomic.StoreInt64(&d.ns, ns)
}

// slice returns the time until the next check, or an error if the deadline has passed.
func (d *deadline) slice() (time.Duration, error) {
	ns := atomic.LoadInt64(&d.ns)
	if ns == 0 {
		return lookEach, nil
	}
	left := time.Until(time.Unix(0, ns))
	if left <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	if left > lookEach {
		left = lookEach
	}
	return left, nil
}

// Conn is a stream to a process on any system: a net.Conn over a pair of rings. If the other end
// dies, reads return the bytes that it had written, and then ECONNRESET; writes return EPIPE.
type Conn struct {
	in, out     *Ring
	addr        Addr
	read, write sync.Mutex
	till, from  deadline // deadlines of writes and of reads
	rest        []byte   // the unread bytes of the present record
	ended       bool     // the other end has shut down its side
	shut        bool     // this end has shut down its side
	met, gone   int32    // the other end has been seen; the other end has left
	closed      int32
	looked      int64
}

var _ net.Conn = (*Conn)(nil)

func openEnd(volume, name, number string, n string, make bool, mode uint32) (*Ring, error) {
	full := name + "." + number + "." + n
	if !make {
		return OpenRing(volume, full)
	}
	return CreateRing(volume, full, streamSize, Options{Mode: mode, Exclusive: true, Single: true, LastUser: true})
}

// newConn takes over both rings, also if it returns an error.
func newConn(in, out *Ring, name string) (*Conn, error) {
	if err := in.becomeReader(until(lookEach)); err != nil {
		in.Close()
		out.Close()
		return nil, wrap(name, err)
	}
	return &Conn{in: in, out: out, addr: Addr(name)}, nil
}

// openConn opens the two rings with this number. The client receives from the first ring.
func openConn(volume, name, number string, client bool, mode uint32) (*Conn, error) {
	one, err := openEnd(volume, name, number, "1", client, mode)
	if err != nil {
		return nil, err
	}
	two, err := openEnd(volume, name, number, "2", client, mode)
	if err != nil {
		one.Close()
		return nil, err
	}
	if client {
		return newConn(one, two, name)
	}
	return newConn(two, one, name)
}

// hasLeft returns whether the other end was seen earlier, and has left.
func (c *Conn) hasLeft() bool {
	atomic.StoreInt64(&c.looked, time.Now().UnixNano())
	st, err := c.out.Stat()
	if err == nil && st.Receivers > 0 {
		atomic.StoreInt32(&c.met, 1)
	} else if err == nil && atomic.LoadInt32(&c.met) != 0 {
		atomic.StoreInt32(&c.gone, 1)
	}
	return atomic.LoadInt32(&c.gone) != 0
}

func (c *Conn) fail(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	var ours *Error
	if errors.As(err, &ours) { // the error already contains the name
		err = ours.Errno
	}
	return &net.OpError{Op: op, Net: c.addr.Network(), Addr: c.addr, Err: err}
}

// Read reads some bytes. It waits for the first byte.
func (c *Conn) Read(to []byte) (int, error) {
	c.read.Lock()
	defer c.read.Unlock()
	if atomic.LoadInt32(&c.closed) != 0 {
		return 0, c.fail("read", net.ErrClosed)
	}
	for len(c.rest) == 0 && !c.ended {
		if err := c.next(); err != nil {
			return 0, c.fail("read", err)
		}
	}
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, c.rest)
	c.rest = c.rest[n:]
	if len(c.rest) == 0 {
		c.in.Release()
	}
	return n, nil
}

// next waits for the next record, and keeps it for reads.
func (c *Conn) next() error {
	for {
		last := atomic.LoadInt32(&c.gone) != 0 // if true, this attempt still finds the last records
		if atomic.LoadInt32(&c.closed) != 0 {
			return net.ErrClosed
		}
		wait, err := c.from.slice()
		if err != nil {
			return err
		}
		if last {
			wait = Try
		}
		tag, data, err := c.in.Peek(wait)
		switch {
		case err == nil && tag == tagData && len(data) > 0:
			c.rest = data
			return nil
		case err == nil:
			c.in.Release()
			c.ended = tag == tagEnd
			if !c.ended {
				return syscall.EPROTO
			}
			return nil
		case !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrBusy):
			return err
		case last:
			return syscall.ECONNRESET
		}
		c.hasLeft()
	}
}

// Write writes all bytes. It waits while the ring has no room.
func (c *Conn) Write(from []byte) (int, error) {
	c.write.Lock()
	defer c.write.Unlock()
	if c.shut {
		return 0, c.fail("write", syscall.EPIPE)
	}
	block, done := c.out.Most(), 0
	if block > blockMost {
		block = blockMost
	}
	for done < len(from) {
		n := len(from) - done
		if n > block {
			n = block
		}
		if err := c.send(tagData, from[done:done+n]); err != nil {
			return done, c.fail("write", err)
		}
		done += n
	}
	return done, nil
}

func (c *Conn) send(tag uint32, data []byte) error {
	for {
		if atomic.LoadInt32(&c.closed) != 0 {
			return net.ErrClosed
		}
		if time.Now().UnixNano()-atomic.LoadInt64(&c.looked) > int64(lookEach) {
			c.hasLeft()
		}
		if atomic.LoadInt32(&c.gone) != 0 {
			return syscall.EPIPE
		}
		wait, err := c.till.slice()
		if err == nil {
			err = c.out.Send(tag, data, wait)
			if errors.Is(err, ErrTimeout) {
				c.hasLeft()
				continue
			}
		}
		return err
	}
}

// CloseWrite shuts down this direction: the other end reads the written bytes, and then the end of
// file. Reads still work.
func (c *Conn) CloseWrite() error {
	c.write.Lock()
	defer c.write.Unlock()
	if c.shut {
		return nil
	}
	err := c.send(tagEnd, nil)
	c.shut = err == nil
	return c.fail("close", err)
}

// Close ends the stream. Waiting reads and writes end with net.ErrClosed. If the written bytes fill
// the ring, the other end reads them, and then gets ECONNRESET.
func (c *Conn) Close() error {
	if !atomic.CompareAndSwapInt32(&c.closed, 0, 1) {
		return c.fail("close", net.ErrClosed)
	}
	c.write.Lock() // waiting calls check this at intervals of lookEach
	defer c.write.Unlock()
	c.read.Lock()
	defer c.read.Unlock()
	if !c.shut {
		c.out.Send(tagEnd, nil, Try)
	}
	c.rest = nil
	err := c.in.Close()
	if outErr := c.out.Close(); err == nil {
		err = outErr
	}
	return err
}

// LocalAddr returns the name of the stream.
func (c *Conn) LocalAddr() net.Addr { return c.addr }

// RemoteAddr returns the name of the stream, too.
func (c *Conn) RemoteAddr() net.Addr { return c.addr }

// SetDeadline sets the end of reads and of writes. A waiting call detects the change within
// lookEach.
func (c *Conn) SetDeadline(t time.Time) error {
	c.from.set(t)
	c.till.set(t)
	return nil
}

// SetReadDeadline sets the end of reads.
func (c *Conn) SetReadDeadline(t time.Time) error { c.from.set(t); return nil }

// SetWriteDeadline sets the end of writes.
func (c *Conn) SetWriteDeadline(t time.Time) error { c.till.set(t); return nil }

// Listener listens on a name that clients dial.
type Listener struct {
	requests     *Ring
	volume, name string
	use          sync.Mutex
	closed       int32
}

var _ net.Listener = (*Listener)(nil)

// Listen listens on a name of up to 230 bytes. Clients create their rings with the same mode (0
// means 0600).
func Listen(volume, name string, mode uint32) (*Listener, error) {
	if len(name) > nameMost {
		return nil, wrap(name, syscall.ENAMETOOLONG)
	}
	r, err := CreateRing(volume, name, requestsSize, Options{Mode: mode, Single: true, LastUser: true})
	if err != nil {
		return nil, err
	}
	if err := r.becomeReader(until(lookEach)); err != nil {
		r.Close()
		if err == syscall.EBUSY {
			err = syscall.EADDRINUSE
		}
		return nil, wrap(name, err)
	}
	return &Listener{requests: r, volume: volume, name: name}, nil
}

func isNumber(text []byte) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(text) == numberLen
}

// Accept returns the next client's stream.
func (l *Listener) Accept() (net.Conn, error) {
	l.use.Lock()
	defer l.use.Unlock()
	for atomic.LoadInt32(&l.closed) == 0 {
		_, number, err := l.requests.Recv(lookEach)
		if errors.Is(err, ErrTimeout) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !isNumber(number) { // any process that may send to the ring chooses these bytes
			continue
		}
		if c := l.answer(string(number)); c != nil {
			return c, nil
		}
	}
	return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
}

// answer returns nil if the client has given up meanwhile.
func (l *Listener) answer(number string) *Conn {
	c, err := openConn(l.volume, l.name, number, false, 0)
	if err != nil {
		return nil
	}
	c.met = 1
	if c.hasLeft() || c.out.Send(tagAccepted, nil, Try) != nil {
		c.Close()
		return nil
	}
	return c
}

// Close stops listening on the name. Existing streams stay open.
func (l *Listener) Close() error {
	if !atomic.CompareAndSwapInt32(&l.closed, 0, 1) {
		return nil
	}
	l.use.Lock()
	defer l.use.Unlock()
	return l.requests.Close()
}

// Addr returns the name of the listener.
func (l *Listener) Addr() net.Addr { return Addr(l.name) }

func listens(requests *Ring) error {
	st, err := requests.Stat()
	if err == nil && st.Receivers == 0 {
		err = syscall.ECONNREFUSED
	}
	return err
}

// Dial returns a stream to the process that listens on a name. timeout may be Forever.
func Dial(volume, name string, timeout time.Duration) (*Conn, error) {
	requests, err := OpenRing(volume, name)
	if errors.Is(err, syscall.ENOENT) {
		err = wrap(name, syscall.ECONNREFUSED)
	}
	if err != nil {
		return nil, err
	}
	defer requests.Close()
	var random [numberLen / 2]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	mode, err := requests.mode()
	if err == nil {
		err = listens(requests)
	}
	if err != nil {
		return nil, wrap(name, err)
	}
	number := hex.EncodeToString(random[:])
	c, err := openConn(volume, name, number, true, mode)
	if err != nil {
		return nil, err
	}
	if timeout >= 0 {
		c.SetDeadline(time.Now().Add(timeout))
	}
	if err := c.awaitAnswer(requests, number); err != nil {
		c.Close()
		return nil, c.fail("dial", err)
	}
	c.met = 1
	c.SetDeadline(time.Time{})
	return c, nil
}

func (c *Conn) awaitAnswer(requests *Ring, number string) error {
	var wait time.Duration
	err := ErrTimeout
	for errors.Is(err, ErrTimeout) {
		if wait, err = c.till.slice(); err == nil {
			err = requests.Send(tagData, []byte(number), wait)
		}
	}
	for err == nil {
		wait, err = c.from.slice()
		if err != nil {
			break
		}
		var tag uint32
		tag, _, err = c.in.Recv(wait)
		if err == nil && tag != tagAccepted {
			return syscall.EPROTO
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, ErrTimeout) {
			err = listens(requests)
		}
	}
	return err
}
