// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"syscall"
)

// Command is a command that runs in the guest, or has run there.
type Command struct {
	link   *Link
	id     uint32
	ended  chan struct{}
	status int
	err    error
}

// Start starts a command in the guest. Until the command ends, its input comes from stdin, and its
// output goes to stdout and stderr.
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

// Ended returns a channel that is closed when the command or the guest has ended.
func (c *Command) Ended() <-chan struct{} { return c.ended }

// Wait waits for the command's end and returns its exit status.
func (c *Command) Wait() (int, error) {
	<-c.ended
	return c.status, c.err
}
