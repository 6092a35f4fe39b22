// SPDX-License-Identifier: Apache-2.0

// Package agent is the part of the rig that runs in a guest. It initialises the system as process
// 1, and then runs the commands that it receives from the channel.
package agent

import (
	"fmt"
	"io"
	"sync"

	"stargate/e2e/internal/wire"
)

// Serve runs the commands that arrive on the channel, until the channel ends.
func Serve(channel io.ReadWriter) error {
	s := &server{out: wire.NewWriter(channel), sessions: map[uint32]*session{}}
	if err := s.out.Send(wire.Frame{Kind: wire.Ready}); err != nil {
		return err
	}
	for {
		f, err := wire.Read(channel)
		if err != nil {
			return fmt.Errorf("reading the channel: %w", err)
		}
		s.handle(f)
	}
}

type server struct {
	out      *wire.Writer
	mu       sync.Mutex
	sessions map[uint32]*session
}

// handle never blocks: the credits limit the length of a session's queue.
func (s *server) handle(f wire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Kind == wire.Open {
		n := newSession(f.Session, s.out)
		s.sessions[f.Session] = n
		go func() {
			status := n.run(f)
			s.mu.Lock()
			delete(s.sessions, f.Session)
			s.mu.Unlock()
			// The call fails only if the channel has ended. Then Serve ends, too.
			_ = s.out.Send(wire.Frame{Session: f.Session, Kind: wire.Exit, Data: wire.Numbers(uint32(status))})
		}()
		return
	}
	if n := s.sessions[f.Session]; n != nil {
		n.handle(f)
	}
}
