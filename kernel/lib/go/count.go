// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"sync/atomic"
	"time"
)

// Semaphore is a counting semaphore.
type Semaphore struct{ *object }

// CreateSemaphore creates a semaphore with this value, or opens the existing one.
func CreateSemaphore(volume, name string, value uint32, o Options) (*Semaphore, error) {
	obj, err := open(volume, name, makeRequest(KindSemaphore, uint64(value), o), o.ByKernel)
	if err != nil {
		return nil, err
	}
	return &Semaphore{obj}, nil
}

// OpenSemaphore opens an existing semaphore.
func OpenSemaphore(volume, name string) (*Semaphore, error) {
	obj, err := open(volume, name, openRequest{kind: uint32(KindSemaphore)}, false)
	if err != nil {
		return nil, err
	}
	return &Semaphore{obj}, nil
}

// Wait decrements the value; it waits while the value is 0.
func (s *Semaphore) Wait(timeout time.Duration) error {
	for s.page != nil {
		seen := atomic.LoadUint64(&s.page[0])
		if seen&wordValue == 0 || seen&wordAsked != 0 {
			break
		}
		if atomic.CompareAndSwapUint64(&s.page[0], seen, seen-1) {
			return nil
		}
	}
	return wrap(s.name, s.do(opWait, until(timeout)))
}

// Post increments the value.
func (s *Semaphore) Post() error {
	for s.page != nil {
		seen := atomic.LoadUint64(&s.page[0])
		if seen&wordWaiters != 0 || seen&wordValue == wordValue {
			break
		}
		if atomic.CompareAndSwapUint64(&s.page[0], seen, seen+1) {
			return nil
		}
	}
	return wrap(s.name, s.do(opPost, 0))
}

// Event is a counter that only grows.
type Event struct{ *object }

// CreateEvent creates an event, or opens the existing one.
func CreateEvent(volume, name string, o Options) (*Event, error) {
	obj, err := open(volume, name, makeRequest(KindEvent, 0, o), o.ByKernel)
	if err != nil {
		return nil, err
	}
	return &Event{obj}, nil
}

// OpenEvent opens an existing event.
func OpenEvent(volume, name string) (*Event, error) {
	obj, err := open(volume, name, openRequest{kind: uint32(KindEvent)}, false)
	if err != nil {
		return nil, err
	}
	return &Event{obj}, nil
}

// Advance increases the count.
func (e *Event) Advance(by uint64) error {
	if e.page != nil && countUp(&e.page[0], by) {
		return nil
	}
	_, err := e.ask(opAdvance, by, 0)
	return wrap(e.name, err)
}

// Await waits until the count has reached count.
func (e *Event) Await(count uint64, timeout time.Duration) error {
	if e.page != nil && atomic.LoadUint64(&e.page[0])&wordCount >= count {
		return nil
	}
	_, err := e.ask(opAwait, count, until(timeout))
	return wrap(e.name, err)
}

// Barrier lets a number of parties wait for each other.
type Barrier struct{ *object }

// CreateBarrier creates a barrier for this number of parties, or opens the existing one.
func CreateBarrier(volume, name string, parties uint32, o Options) (*Barrier, error) {
	obj, err := open(volume, name, makeRequest(KindBarrier, uint64(parties), o), true)
	if err != nil {
		return nil, err
	}
	return &Barrier{obj}, nil
}

// OpenBarrier opens an existing barrier.
func OpenBarrier(volume, name string) (*Barrier, error) {
	obj, err := open(volume, name, openRequest{kind: uint32(KindBarrier)}, true)
	if err != nil {
		return nil, err
	}
	return &Barrier{obj}, nil
}

// Wait waits for the other parties. For exactly one of them, last is true.
func (b *Barrier) Wait(timeout time.Duration) (last bool, err error) {
	value, err := b.ask(opMeet, 0, until(timeout))
	return err == nil && value == 1, wrap(b.name, err)
}

// Cond is a condition: a signal means that data has changed that a mutex protects.
type Cond struct{ *object }

// CreateCond creates a condition, or opens the existing one.
func CreateCond(volume, name string, o Options) (*Cond, error) {
	obj, err := open(volume, name, makeRequest(KindCond, 0, o), o.ByKernel)
	if err != nil {
		return nil, err
	}
	return &Cond{obj}, nil
}

// OpenCond opens an existing condition.
func OpenCond(volume, name string) (*Cond, error) {
	obj, err := open(volume, name, openRequest{kind: uint32(KindCond)}, false)
	if err != nil {
		return nil, err
	}
	return &Cond{obj}, nil
}

// Wait unlocks the mutex, waits for a signal, and locks the mutex again, also after an error.
func (c *Cond) Wait(m *Mutex, timeout time.Duration) error {
	seen, err := c.ask(opCondLook, 0, 0)
	if err != nil {
		return wrap(c.name, err)
	}
	if err := m.Unlock(); err != nil {
		return err
	}
	_, err = c.ask(opCondWait, seen, until(timeout))
	if again := m.Lock(Forever); again != nil {
		return again
	}
	return wrap(c.name, err)
}

// Signal wakes at least one waiter.
func (c *Cond) Signal() error { return c.signal(opSignal) }

// Broadcast wakes all waiters.
func (c *Cond) Broadcast() error { return c.signal(opBroadcast) }

func (c *Cond) signal(op uint32) error {
	if c.page != nil && countUp(&c.page[0], 1) {
		return nil
	}
	return wrap(c.name, c.do(op, 0))
}
