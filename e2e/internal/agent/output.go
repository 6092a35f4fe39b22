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

// grace is how long the agent waits, after a command has ended, for output of its children that
// still have its streams open.
const grace = 200 * time.Millisecond

// mostLeftBehind is the maximum output that the agent reads from such children: twice the capacity
// of a pipe or a terminal. The agent drops further output.
const mostLeftBehind = 128 << 10

// fullRead is the maximum that one read of a terminal returns. A shorter read has emptied the
// stream, and counts as a tenth of the grace. So a slow client does not wait endlessly for a child
// that writes a little at a time.
const fullRead = 4095

// output is one stream of a command. Its end does not depend on children that the command leaves
// behind.
//
// A stream keeps the order of writes. So at the end of the command the pipe contains all remaining
// output of the command. The agent reads it without a time limit, even for a slow client. Output
// after that point can only come from children, and the agent limits its time and bytes.
//
// A terminal may pass on a part of the output a moment later. That part arrives within the grace,
// because the command has already written it.
type output struct {
	file  *os.File
	ended atomic.Bool // the command has ended

	held int           // bytes of the command that are still to be read, once known
	late bool          // held is known
	left time.Duration // of grace
	more int           // bytes read behind what was held
}

// commandEnded makes a waiting reader check how much output remains.
func (o *output) commandEnded() {
	o.ended.Store(true)
	_ = o.file.SetReadDeadline(time.Unix(1, 0)) // an error means that it is already closed
}

// Read is for one reader.
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

// hold reads how many bytes the stream holds after the end of the command.
func (o *output) hold() error {
	var held int32
	if err := ioctl(o.file, syscall.TIOCINQ, unsafe.Pointer(&held)); err != nil {
		return err
	}
	o.held, o.late = int(held), true
	return o.file.SetReadDeadline(time.Time{})
}
