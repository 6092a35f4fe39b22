// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"sync/atomic"
	"syscall"
	"time"
)

// Cursor coordinates one producer and one consumer of a ring of bytes that both have mapped, on any
// systems. It works like stargate_cursor of C: two event counters hold the progress of both sides.
type Cursor struct {
	published, consumed *Event
	room                uint64
}

// OpenCursor opens a cursor. Both sides call it; room is the size of the ring.
func OpenCursor(volume, name string, room uint64) (*Cursor, error) {
	if room == 0 {
		return nil, wrap(name, syscall.EINVAL)
	}
	published, err := CreateEvent(volume, name+".published", Options{Mode: 0o666})
	if err != nil {
		return nil, err
	}
	consumed, err := CreateEvent(volume, name+".consumed", Options{Mode: 0o666})
	if err != nil {
		published.Close()
		return nil, err
	}
	return &Cursor{published, consumed, room}, nil
}

// Close closes both events.
func (c *Cursor) Close() error {
	err := c.published.Close()
	if e := c.consumed.Close(); err == nil {
		err = e
	}
	return err
}

// Read returns the present count.
func (e *Event) Read() (uint64, error) {
	if e.page != nil {
		return atomic.LoadUint64(&e.page[0]) & wordCount, nil
	}
	value, err := e.stat()
	return value, wrap(e.name, err)
}

func (c *Cursor) both() (published, consumed uint64, err error) {
	if published, err = c.published.Read(); err == nil {
		consumed, err = c.consumed.Read()
	}
	if err == nil && published-consumed > c.room {
		err = wrap(c.published.name, syscall.EUCLEAN)
	}
	return published, consumed, err
}

func least(a, b uint64) uint64 {
	if a < b {
		return a
	}
	return b
}

// PublishAt returns the position in the ring for the next bytes, and the number of bytes that fit
// there contiguously.
func (c *Cursor) PublishAt(timeout time.Duration) (at, room uint64, err error) {
	published, consumed, err := c.both()
	if err == nil && published-consumed == c.room {
		if err = c.consumed.Await(consumed+1, timeout); err == nil {
			published, consumed, err = c.both()
		}
	}
	if err != nil {
		return 0, 0, err
	}
	at = published % c.room
	return at, least(c.room-(published-consumed), c.room-at), nil
}

// Publish announces bytes. It returns EINVAL for more bytes than PublishAt has returned as room.
func (c *Cursor) Publish(bytes uint64) error {
	published, consumed, err := c.both()
	if err == nil && bytes > c.room-(published-consumed) {
		err = wrap(c.published.name, syscall.EINVAL)
	}
	if err != nil {
		return err
	}
	return c.published.Advance(bytes)
}

// ConsumeAt returns the position of the next bytes, and the number of bytes that are contiguous
// there.
func (c *Cursor) ConsumeAt(timeout time.Duration) (at, bytes uint64, err error) {
	published, consumed, err := c.both()
	if err == nil && published == consumed {
		if err = c.published.Await(consumed+1, timeout); err == nil {
			published, consumed, err = c.both()
		}
	}
	if err != nil {
		return 0, 0, err
	}
	at = consumed % c.room
	return at, least(published-consumed, c.room-at), nil
}

// Consume frees bytes of the ring. It returns EINVAL for more bytes than the ring has.
func (c *Cursor) Consume(bytes uint64) error {
	published, consumed, err := c.both()
	if err == nil && bytes > published-consumed {
		err = wrap(c.consumed.name, syscall.EINVAL)
	}
	if err != nil {
		return err
	}
	return c.consumed.Advance(bytes)
}
