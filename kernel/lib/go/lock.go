// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// thread returns the calling thread's name in words; 0: it has none, and the kernel returns the
// reason. A program without cgo cannot store data by thread, so each call asks the kernel.
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
	held uint64 // of a recursive one: the thread of the goroutine that has it
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

// Lock locks the mutex. After ErrOwnerDied the mutex is locked as well.
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

// take locks the mutex by its word, if it is free.
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
	// the kernel counts how often it is locked
	if m.page == nil || m.page[1] != 0 || m.held == 0 ||
		!atomic.CompareAndSwapUint64(&m.page[0], m.held, 0) {
		err = m.do(opUnlock, 0)
	}
	if err == nil {
		runtime.UnlockOSThread()
	}
	return wrap(m.name, err)
}

// Consistent declares that what the mutex protects has been repaired.
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

// less subtracts a reader, but not below zero. A reset by another process clears the counts, and a
// count that wraps around would keep writers out for ever.
func less(cell *uint64) bool { return lessThan(cell, atomic.LoadUint64(cell)) }

// lessThan does the same, given the count that was seen last.
func lessThan(cell *uint64, seen uint64) bool {
	for ; seen != 0; seen = atomic.LoadUint64(cell) {
		if atomic.CompareAndSwapUint64(cell, seen, seen-1) {
			return true
		}
	}
	return false
}

// RLock locks it for reading. A reader counts itself, then looks at the word; a writer takes the
// word, then looks at the counts: one of them sees the other.
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

// RUnlock unlocks it after reading.
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

// Lock locks it for writing, as Mutex.Lock does. The kernel does this, because it looks at all
// readers' cells in any case.
func (rw *RWMutex) Lock(timeout time.Duration) error {
	return wrap(rw.name, rw.gate.pass(timeout, func() bool { return false }, func(until uint64) error {
		return rw.do(opWrite, until)
	}))
}

// Unlock unlocks it after writing.
func (rw *RWMutex) Unlock() error {
	err := rw.do(opWriteEnd, 0)
	if err == nil {
		rw.gate.given()
	}
	return wrap(rw.name, err)
}

// Consistent declares that what the lock protects has been repaired; the caller has it locked for
// writing.
func (rw *RWMutex) Consistent() error { return wrap(rw.name, rw.do(opConsistent, 0)) }
