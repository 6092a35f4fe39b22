// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"sync/atomic"
	"syscall"
	"time"
)

// Cursor coordinates one producer and one consumer, on any systems, of a ring of bytes that both
// have mapped. It is the same as stargate_cursor of C: two events hold the progress of each.
type Cursor struct {
	published, consumed *Event
	room                uint64
}

// OpenCursor is called by both sides; room is the size of the ring.
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

// PublishAt returns where in the ring the next bytes go, and how many fit contiguously.
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

// Publish announces bytes; more than PublishAt has room for are EINVAL.
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

// ConsumeAt returns where the next bytes are, and how many are contiguous.
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

// Consume frees bytes of the ring; more than are there are EINVAL.
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
