// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// lock is a word, and a kernel that knows two owners: this handle, and another one.
type lock struct {
	word uint64
	gate gate
	in   int32 // waiters in the kernel with this handle: a second waiter gets EBUSY
}

const (
	ours  = 7
	other = 9
)

func (l *lock) take() bool { return atomic.CompareAndSwapUint64(&l.word, 0, ours) }

func (l *lock) ask(end uint64) error {
	if !atomic.CompareAndSwapInt32(&l.in, 0, 1) {
		return syscall.EBUSY
	}
	defer atomic.StoreInt32(&l.in, 0)
	for {
		switch {
		case l.take():
			return nil
		case atomic.LoadUint64(&l.word) == ours:
			return syscall.EDEADLK
		case end == 0:
			return syscall.EAGAIN
		case end != ^uint64(0) && until(1) >= end:
			return syscall.ETIMEDOUT
		}
		runtime.Gosched()
	}
}

func (l *lock) lock(timeout time.Duration) error {
	if l.take() {
		return nil
	}
	return l.gate.pass(timeout, l.take, l.ask)
}

func (l *lock) unlock(t *testing.T) {
	if !atomic.CompareAndSwapUint64(&l.word, ours, 0) {
		t.Error("not ours")
	}
	l.gate.given()
}

// Goroutines of one handle compete with another owner that locks and unlocks: each goroutine gets
// the lock.
func TestGateCounts(t *testing.T) {
	const goroutines, rounds = 8, 20000
	l := lock{gate: newGate()}
	var count int
	var stop int32
	var all, else_ sync.WaitGroup
	else_.Add(1)
	go func() {
		defer else_.Done()
		for atomic.LoadInt32(&stop) == 0 {
			if atomic.CompareAndSwapUint64(&l.word, 0, other) {
				count++
				count--
				atomic.StoreUint64(&l.word, 0)
			}
			runtime.Gosched()
		}
	}()
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < rounds; n++ {
				if err := l.lock(20 * time.Second); err != nil {
					t.Error(err)
					return
				}
				count++
				l.unlock(t)
			}
		}()
	}
	all.Wait()
	atomic.StoreInt32(&stop, 1)
	else_.Wait()
	if count != goroutines*rounds {
		t.Errorf("%d of %d", count, goroutines*rounds)
	}
	if *l.gate.waiting != 0 || len(l.gate.turn) != 0 {
		t.Error("a goroutine still waits")
	}
}

func TestGateTimes(t *testing.T) {
	for _, owner := range []uint64{ours, other} {
		l := lock{gate: newGate(), word: owner}
		if err := l.lock(Try); err != syscall.EAGAIN {
			t.Errorf("%d, try: %v", owner, err)
		}
		start := time.Now()
		if err := l.lock(50 * time.Millisecond); err != syscall.ETIMEDOUT {
			t.Errorf("%d, a while: %v", owner, err)
		}
		if took := time.Since(start); took < 50*time.Millisecond || took > 10*time.Second {
			t.Errorf("%d, a while: %v", owner, took)
		}
		// two goroutines wait; the second one gets its time-out while the first one still
		// waits
		first := make(chan error)
		go func() { first <- l.lock(Forever) }()
		for atomic.LoadInt32(l.gate.waiting) == 0 {
			runtime.Gosched()
		}
		if err := l.lock(Try); err != syscall.EAGAIN {
			t.Errorf("%d, second, try: %v", owner, err)
		}
		if err := l.lock(20 * time.Millisecond); err != syscall.ETIMEDOUT {
			t.Errorf("%d, second, a while: %v", owner, err)
		}
		atomic.StoreUint64(&l.word, 0)
		l.gate.given()
		if err := <-first; err != nil {
			t.Errorf("%d, first: %v", owner, err)
		}
	}
}
