// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

func TestReadersNeverBelowNothing(t *testing.T) {
	page := new([cells]uint64)
	rw := &RWMutex{&object{page: page, cell: &page[100]}, newGate()}
	if less(rw.cell) || *rw.cell != 0 {
		t.Fatalf("after a subtraction from 0, the count of readers is %d", *rw.cell)
	}
	// a reset and the release of another reader come between the load and the store
	if lessThan(rw.cell, 1) || *rw.cell != 0 {
		t.Fatalf("after a reset, the count of readers is %d", *rw.cell)
	}
	*rw.cell = 1
	if !lessThan(rw.cell, 2) || *rw.cell != 0 {
		t.Fatalf("after the release of one of two readers, the count is %d", *rw.cell)
	}
	// two goroutines release one reader
	for turn := 0; turn < 10000; turn++ {
		atomic.StoreUint64(rw.cell, 1)
		var given atomic.Int32
		var both sync.WaitGroup
		for i := 0; i < 2; i++ {
			both.Add(1)
			go func() {
				defer both.Done()
				switch err := rw.RUnlock(); {
				case err == nil:
					given.Add(1)
				case !errors.Is(err, syscall.EPERM):
					t.Error(err)
				}
			}()
		}
		both.Wait()
		if n := atomic.LoadUint64(rw.cell); n != 0 || given.Load() != 1 {
			t.Fatalf("turn %d: %d releases succeeded, and %d readers are counted", turn, given.Load(), n)
		}
	}
	// a reset clears the counts at any moment
	var resetting sync.WaitGroup
	var most, stop atomic.Uint64
	resetting.Add(1)
	go func() {
		defer resetting.Done()
		for stop.Load() == 0 {
			if n := atomic.SwapUint64(rw.cell, 0); n > most.Load() {
				most.Store(n)
			}
		}
	}()
	for turn := 0; turn < 2000000; turn++ {
		if err := rw.RLock(0); err != nil {
			t.Fatal(err)
		}
		if err := rw.RUnlock(); err != nil && !errors.Is(err, syscall.EPERM) {
			t.Fatal(err)
		}
	}
	stop.Store(1)
	resetting.Wait()
	if most.Load() > 1 {
		t.Fatalf("there is one reader, but %d were counted", most.Load())
	}
}
