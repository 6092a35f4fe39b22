// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"sync/atomic"
	"syscall"
	"time"
)

// gate is where goroutines wait for a lock that their common handle owns: for each other, and one of
// them, in the kernel, for everybody else.
type gate struct {
	turn    chan struct{} // who asks the kernel
	wake    chan struct{} // it has been given back here
	waiting *int32
}

func newGate() gate {
	return gate{make(chan struct{}, 1), make(chan struct{}, 1), new(int32)}
}

// given tells the one who waits for a goroutine of this handle. It is called when the word says so
// already: who counts himself after that finds it free.
func (g *gate) given() {
	if atomic.LoadInt32(g.waiting) == 0 {
		return
	}
	select {
	case g.wake <- struct{}{}:
	default: // it has been told, and not looked yet
	}
}

// pass gets the lock: take does it at once, or not; ask lets the kernel wait, which says EDEADLK if
// another goroutine has it by the same handle.
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

// wait puts something into a channel, or takes it out, in time.
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
