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

// grace is how long output is still waited for after a command has ended, from
// children that it left behind with its streams open.
const grace = 200 * time.Millisecond

// mostLeftBehind is how much such children can have said in that time: what a
// pipe or a terminal holds, twice. One that never stops is cut off there.
const mostLeftBehind = 128 << 10

// fullRead is what a terminal hands out at most at once. A read that brings less
// has emptied the stream; it counts as a tenth of the grace, so that a slow
// client does not wait for ever for a child that says a little all the time.
const fullRead = 4095

// output is one stream of a command, whose end does not depend on children that
// the command leaves behind.
//
// A stream keeps the order of what was written. So what it holds when the
// command ends has all that the command wrote, and is read without a limit,
// however slow the client is. Only behind that, where nobody but children can
// have written, time and bytes are limited.
//
// A terminal may hand on a part of what was written a moment later. That comes
// within the grace, as it is there without being waited for.
type output struct {
	file  *os.File
	ended atomic.Bool // the command has

	held int           // bytes of the command's that are still to be read, once known
	late bool          // held is known
	left time.Duration // of grace
	more int           // bytes read behind what was held
}

// commandEnded has a reader that waits for more find out what there is.
func (o *output) commandEnded() {
	o.ended.Store(true)
	_ = o.file.SetReadDeadline(time.Unix(1, 0)) // it may have been closed, which is as good
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

// hold finds out how much the stream holds, now that the command has ended.
func (o *output) hold() error {
	var held int32
	if err := ioctl(o.file, syscall.TIOCINQ, unsafe.Pointer(&held)); err != nil {
		return err
	}
	o.held, o.late = int(held), true
	return o.file.SetReadDeadline(time.Time{})
}
