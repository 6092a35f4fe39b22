// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"syscall"
)

// Command is a command that was started in the guest.
type Command struct {
	link   *Link
	id     uint32
	ended  chan struct{}
	status int
	err    error
}

// Start starts a command in the guest. It reads stdin and writes the others until the command has
// ended.
func (l *Link) Start(args []string, stdin io.Reader, stdout, stderr io.Writer) (*Command, error) {
	id, frames, err := l.open(Request{Args: args})
	if err != nil {
		return nil, err
	}
	c := &Command{link: l, id: id, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.status, c.err = Converse(l.out, id, frames, stdin, stdout, stderr)
	}()
	return c, nil
}

// Signal sends a signal to the command and its children. It has no effect if the command has ended
// or the guest has gone.
func (c *Command) Signal(sig syscall.Signal) {
	_ = c.link.out.Send(Frame{Session: c.id, Kind: Signal, Data: Numbers(uint32(sig))})
}

// Ended is closed when the command has ended, or when its end cannot be known because the guest has
// gone.
func (c *Command) Ended() <-chan struct{} { return c.ended }

// Wait waits for the command's end and returns its exit status.
func (c *Command) Wait() (int, error) {
	<-c.ended
	return c.status, c.err
}
