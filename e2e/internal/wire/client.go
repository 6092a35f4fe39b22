// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
)

// ErrGone means that the guest has ended before the command.
var ErrGone = errors.New("the guest went away before the command ended")

// Converse is the client's side of an open session: it sends stdin, writes the received output, and
// returns the exit status.
func Converse(w *Writer, session uint32, frames <-chan Frame, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	credits := NewCredits()
	done := make(chan struct{})
	defer close(done)
	go func() {
		if stdin != nil && Pump(w, session, Stdin, stdin, credits, done) != nil {
			return // the loop below detects the broken channel as well
		}
		_ = w.Send(Frame{Session: session, Kind: EOF})
	}()
	for f := range frames {
		out := stdout
		switch f.Kind {
		case Exit:
			return int(f.Number(0)), nil
		case Ack:
			credits.Give()
			continue
		case Stderr:
			out = stderr
		case Stdout:
		default:
			continue
		}
		if _, err := out.Write(f.Data); err != nil {
			return 0, err
		}
		// An error means that the other end has disconnected. Its last frames are read
		// next.
		_ = w.Send(Frame{Session: session, Kind: Ack})
	}
	return 0, ErrGone
}

// Frames reads frames from r into a channel, which it closes at the end of r.
func Frames(r io.Reader) <-chan Frame {
	frames := Queue()
	go func() {
		defer close(frames)
		for {
			f, err := Read(r)
			if err != nil {
				return
			}
			frames <- f
		}
	}()
	return frames
}
