// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"sync/atomic"
	"syscall"
	"time"
)

// gate is the place where goroutines wait for a lock that their common handle owns. The goroutines
// wait here for each other, and one of them waits in the kernel for other owners.
type gate struct {
	turn    chan struct{} // full while a goroutine waits in the kernel
	wake    chan struct{} // full after a goroutine has released the lock
	waiting *int32
}

func newGate() gate {
	return gate{make(chan struct{}, 1), make(chan struct{}, 1), new(int32)}
}

// given wakes a goroutine that waits for another goroutine of this handle. The caller has already
// freed the word, so a goroutine that counts itself as a waiter later finds the lock free.
func (g *gate) given() {
	if atomic.LoadInt32(g.waiting) == 0 {
		return
	}
	select {
	case g.wake <- struct{}{}:
	default: // a goroutine was already woken, and has not checked yet
	}
}

// pass gets the lock. take locks the word immediately, or fails. ask lets the kernel wait, and
// returns EDEADLK if another goroutine of this handle has the lock.
func (g *gate) pass(timeout time.Duration, take func() bool, ask func(until uint64) error) error {
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	if err := wait(g.turn, true, timeout, late); err != nil {
		return err
	}
	defer func() { <-g.turn }()
	atomic.AddInt32(g.waiting, 1)
	defer atomic.AddInt32(g.waiting, -1)
	end := until(timeout)
	for !take() {
		if err := ask(end); err != syscall.EDEADLK {
			return err
		}
		if err := wait(g.wake, false, timeout, late); err != nil {
			return err
		}
	}
	return nil
}

// wait sends to a channel, or receives from it, within the time limit.
func wait(c chan struct{}, in bool, timeout time.Duration, late <-chan time.Time) error {
	put, get := c, c
	if in {
		get = nil
	} else {
		put = nil
	}
	if timeout == Try {
		select {
		case put <- struct{}{}:
			return nil
		case <-get:
			return nil
		default:
			return syscall.EAGAIN
		}
	}
	select {
	case put <- struct{}{}:
		return nil
	case <-get:
		return nil
	case <-late:
		return syscall.ETIMEDOUT
	}
}
