// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// grace is the time for which the agent reads a command's streams after the command's end. Children
// of the command may still have the streams open, and write to them.
const grace = 200 * time.Millisecond

// mostLeftBehind is the maximum output that the agent reads from such children: twice the capacity
// of a pipe or a terminal. The agent drops the rest.
const mostLeftBehind = 128 << 10

// fullRead is the maximum number of bytes that one read of a terminal returns. A shorter read has
// emptied the stream, and uses up a tenth of the grace. So a slow client does not wait without end
// for a child that writes a few bytes again and again.
const fullRead = 4095

// output is one stream of a command. Its end does not depend on children that the command leaves
// behind.
//
// A stream keeps the order of writes. So when the command ends, the pipe contains all of its
// remaining output. The agent reads this output without a time limit, even for a slow client. Later
// output can only come from children, and the agent limits its time and its bytes.
//
// A terminal may deliver a part of the command's output late. The command has already written this
// part, so it arrives within the grace.
type output struct {
	file  *os.File
	ended atomic.Bool // the command has ended

	held int           // the number of bytes of the command that the agent has not read yet
	late bool          // the command has ended, so held is valid
	left time.Duration // the rest of the grace
	more int           // the number of bytes that the agent has read after the command's own
}

// commandEnded makes a waiting reader check how much output remains.
func (o *output) commandEnded() {
	o.ended.Store(true)
	_ = o.file.SetReadDeadline(time.Unix(1, 0)) // an error means that the file is already closed
}

// Read reads the stream. Only one goroutine may call it.
func (o *output) Read(p []byte) (int, error) {
	if !o.late {
		n, err := o.file.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !o.ended.Load() {
			return n, err
		}
		if err := o.hold(); err != nil {
			return 0, err
		}
	}
	if o.held > 0 {
		if len(p) > o.held {
			p = p[:o.held]
		}
		n, err := o.file.Read(p)
		o.held -= n
		return n, err
	}
	if o.left <= 0 || o.more >= mostLeftBehind {
		return 0, io.EOF
	}
	start := time.Now()
	if err := o.file.SetReadDeadline(start.Add(o.left)); err != nil {
		return 0, err
	}
	n, err := o.file.Read(p)
	took := time.Since(start)
	if n < fullRead && took < grace/10 {
		took = grace / 10
	}
	o.left -= took
	o.more += n
	return n, err
}

// hold stores in held the number of bytes in the stream at the end of the command.
func (o *output) hold() error {
	var held int32
	if err := ioctl(o.file, syscall.TIOCINQ, unsafe.Pointer(&held)); err != nil {
		return err
	}
	o.held, o.late = int(held), true
	return o.file.SetReadDeadline(time.Time{})
}
