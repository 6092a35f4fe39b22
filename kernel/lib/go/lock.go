// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// thread returns the name of the calling thread in lock words. 0: the thread has no name, and the
// kernel returns the reason. A program without cgo has no thread-local data, so each call asks the
// kernel.
func (o *object) thread() uint64 {
	var me uint64
	if ioctl(o.fd, iocMe, unsafe.Pointer(&me)) != nil {
		return 0
	}
	return me
}

// Mutex is a robust mutex.
type Mutex struct {
	*object
	gate gate
	held uint64 // for a recursive mutex: the thread of the goroutine that has locked it
}

// CreateMutex creates a mutex, or opens the existing one.
func CreateMutex(volume, name string, o Options) (*Mutex, error) {
	obj, err := openOwning(volume, name, makeRequest(KindMutex, 0, o), o.ByKernel)
	if err != nil {
		return nil, err
	}
	return &Mutex{object: obj, gate: newGate()}, nil
}

// OpenMutex opens an existing mutex.
func OpenMutex(volume, name string) (*Mutex, error) {
	obj, err := openOwning(volume, name, openRequest{kind: uint32(KindMutex)}, false)
	if err != nil {
		return nil, err
	}
	return &Mutex{object: obj, gate: newGate()}, nil
}

// Lock locks the mutex. After ErrOwnerDied, too, the caller has the mutex.
func (m *Mutex) Lock(timeout time.Duration) error {
	if m.me == 0 {
		return m.lockThread(timeout)
	}
	if m.take() {
		return nil
	}
	return wrap(m.name, m.gate.pass(timeout, m.take, func(until uint64) error {
		return m.do(opLock, until)
	}))
}

// take locks the mutex through its word, if the mutex is free.
func (m *Mutex) take() bool {
	return m.page != nil && atomic.CompareAndSwapUint64(&m.page[0], 0, m.me)
}

// Unlock unlocks the mutex.
func (m *Mutex) Unlock() error {
	if m.me == 0 {
		return m.unlockThread()
	}
	if m.page == nil || !atomic.CompareAndSwapUint64(&m.page[0], m.me, 0) {
		if err := m.do(opUnlock, 0); err != nil {
			return wrap(m.name, err)
		}
	}
	m.gate.given()
	return nil
}

// lockThread keeps the goroutine on its thread until unlockThread.
func (m *Mutex) lockThread(timeout time.Duration) error {
	runtime.LockOSThread()
	err := m.lockAs(m.thread(), timeout)
	if !owned(err) {
		runtime.UnlockOSThread()
	}
	return wrap(m.name, err)
}

func (m *Mutex) lockAs(me uint64, timeout time.Duration) error {
	if m.page != nil && me != 0 && atomic.CompareAndSwapUint64(&m.page[0], 0, me) {
		m.held = me
		return nil
	}
	err := m.do(opLock, until(timeout))
	if owned(err) {
		m.held = me
	}
	return err
}

func (m *Mutex) unlockThread() error {
	var err error
	// the kernel counts how often the mutex is locked
	if m.page == nil || m.page[1] != 0 || m.held == 0 ||
		!atomic.CompareAndSwapUint64(&m.page[0], m.held, 0) {
		err = m.do(opUnlock, 0)
	}
	if err == nil {
		runtime.UnlockOSThread()
	}
	return wrap(m.name, err)
}

// Consistent declares that the data protected by the mutex has been repaired.
func (m *Mutex) Consistent() error { return wrap(m.name, m.do(opConsistent, 0)) }

// RWMutex is a lock for many readers, or one writer.
type RWMutex struct {
	*object
	gate gate // for writers
}

// CreateRWMutex creates a reader-writer lock, or opens the existing one.
func CreateRWMutex(volume, name string, o Options) (*RWMutex, error) {
	obj, err := openOwning(volume, name, makeRequest(KindRWMutex, 0, o), o.ByKernel)
	if err != nil {
		return nil, err
	}
	return &RWMutex{obj, newGate()}, nil
}

// OpenRWMutex opens an existing reader-writer lock.
func OpenRWMutex(volume, name string) (*RWMutex, error) {
	obj, err := openOwning(volume, name, openRequest{kind: uint32(KindRWMutex)}, false)
	if err != nil {
		return nil, err
	}
	return &RWMutex{obj, newGate()}, nil
}

// less subtracts a reader, but never goes below zero. A reset by another process clears the counts,
// and a count that wraps around would exclude writers forever.
func less(cell *uint64) bool { return lessThan(cell, atomic.LoadUint64(cell)) }

// lessThan does the same, given the count that the caller has loaded last.
func lessThan(cell *uint64, seen uint64) bool {
	for ; seen != 0; seen = atomic.LoadUint64(cell) {
		if atomic.CompareAndSwapUint64(cell, seen, seen-1) {
			return true
		}
	}
	return false
}

// RLock locks for reading. A reader counts itself, then loads the word; a writer takes the word,
// then loads the counts. So at least one of them sees the other.
func (rw *RWMutex) RLock(timeout time.Duration) error {
	if rw.cell != nil && atomic.LoadUint64(&rw.page[0]) == 0 {
		atomic.AddUint64(rw.cell, 1)
		if atomic.LoadUint64(&rw.page[0]) == 0 {
			return nil
		}
		less(rw.cell)
	}
	return wrap(rw.name, rw.do(opRead, until(timeout)))
}

// RUnlock releases a read lock.
func (rw *RWMutex) RUnlock() error {
	if rw.cell == nil {
		return wrap(rw.name, rw.do(opReadEnd, 0))
	}
	if !less(rw.cell) {
		return wrap(rw.name, syscall.EPERM)
	}
	if atomic.LoadUint64(&rw.page[0]) != 0 {
		return wrap(rw.name, rw.do(opRing, 0))
	}
	return nil
}

// Lock locks for writing, as Mutex.Lock does. The kernel does this, because it must check all
// readers' cells anyway.
func (rw *RWMutex) Lock(timeout time.Duration) error {
	return wrap(rw.name, rw.gate.pass(timeout, func() bool { return false }, func(until uint64) error {
		return rw.do(opWrite, until)
	}))
}

// Unlock releases the write lock.
func (rw *RWMutex) Unlock() error {
	err := rw.do(opWriteEnd, 0)
	if err == nil {
		rw.gate.given()
	}
	return wrap(rw.name, err)
}

// Consistent declares that the data protected by the lock has been repaired. The caller has the
// write lock.
func (rw *RWMutex) Consistent() error { return wrap(rw.name, rw.do(opConsistent, 0)) }
