// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"net"
	"sync"
)

// Link is the rig's end of the channel to one guest. It passes the frames of each session to the
// caller that has opened the session.
type Link struct {
	out *Writer

	ready chan struct{} // closed when the agent has answered
	gone  chan struct{} // closed when the channel has ended

	mu       sync.Mutex
	next     uint32
	sessions map[uint32]chan Frame // nil once the channel has ended
}

// NewLink serves a channel until it ends.
func NewLink(channel io.ReadWriter) *Link {
	l := &Link{
		out:      NewWriter(channel),
		ready:    make(chan struct{}),
		gone:     make(chan struct{}),
		sessions: map[uint32]chan Frame{},
	}
	go l.receive(channel)
	return l
}

// Ready returns a channel that is closed when the agent has answered.
func (l *Link) Ready() <-chan struct{} { return l.ready }

// Gone returns a channel that is closed when the guest has ended.
func (l *Link) Gone() <-chan struct{} { return l.gone }

func (l *Link) receive(channel io.Reader) {
	for {
		f, err := Read(channel)
		if err != nil {
			break
		}
		if f.Kind == Ready {
			close(l.ready)
			continue
		}
		l.deliver(f)
	}
	l.mu.Lock()
	for _, frames := range l.sessions {
		close(frames)
	}
	l.sessions = nil
	l.mu.Unlock()
	close(l.gone)
}

// deliver passes a frame to its session. It never blocks (see Queue).
func (l *Link) deliver(f Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	frames := l.sessions[f.Session]
	if frames == nil {
		return
	}
	frames <- f
	if f.Kind == Exit {
		close(frames)
		delete(l.sessions, f.Session)
	}
}

// open starts a session.
func (l *Link) open(r Request) (uint32, <-chan Frame, error) {
	l.mu.Lock()
	if l.sessions == nil {
		l.mu.Unlock()
		return 0, nil, ErrGone
	}
	l.next++
	id, frames := l.next, Queue()
	l.sessions[id] = frames
	l.mu.Unlock()
	f, err := OpenFrame(id, r)
	if err == nil {
		err = l.out.Send(f)
	}
	if err != nil {
		l.mu.Lock()
		delete(l.sessions, id)
		l.mu.Unlock()
	}
	return id, frames, err
}

// Run runs a command in the guest, and returns its exit status.
func (l *Link) Run(args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	c, err := l.Start(args, stdin, stdout, stderr)
	if err != nil {
		return 0, err
	}
	return c.Wait()
}

// Forward connects a client with a new session, until the client or the session ends.
func (l *Link) Forward(r Request, client net.Conn) error {
	id, frames, err := l.open(r)
	if err != nil {
		return err
	}
	go func() {
		for {
			f, err := Read(client)
			if err != nil {
				break
			}
			f.Session = id
			if l.out.Send(f) != nil {
				return
			}
		}
		// An error means that the guest has ended, so it needs no message.
		_ = l.out.Send(Frame{Session: id, Kind: Close})
	}()
	toClient := NewWriter(client)
	lost := false
	for f := range frames {
		if !lost {
			lost = toClient.Send(f) != nil
		}
		if f.Kind == Exit {
			return nil
		}
		if lost && (f.Kind == Stdout || f.Kind == Stderr) {
			// The client no longer reads. This acknowledges the data, so that the
			// command can end.
			_ = l.out.Send(Frame{Session: id, Kind: Ack})
		}
	}
	return ErrGone
}
