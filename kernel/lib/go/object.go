// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Kind is the kind of an object.
type Kind uint32

// The kinds of objects.
const (
	KindMutex Kind = 1 + iota
	KindSemaphore
	KindRWMutex
	KindCond
	KindBarrier
	KindEvent
	KindRing
)

// Options are the options of a new object.
type Options struct {
	Mode      uint32 // permissions, reduced by the umask; 0 means 0600
	Exclusive bool   // fails if the object exists
	Recursive bool   // a mutex that its owner may lock again
	Guarded   bool   // no process can map the object: the kernel performs each operation
	LastUser  bool   // the object is removed when its last user closes it
	ByKernel  bool   // this handle does not map the object
	Single    bool   // for a ring: one handle at a time receives, so all records arrive in order
}

const pageSize = 4096

// object is common to all kinds: a descriptor, and the words if they are mapped. The owner of a
// lock is the descriptor, which me identifies. If me is 0, the calling thread is the owner.
type object struct {
	name  string
	fd    int
	flags uint32
	page  *[cells]uint64
	cell  *uint64
	me    uint64
}

func life(lastUser bool) uint32 {
	if lastUser {
		return 1
	}
	return 0
}

func makeRequest(kind Kind, initial uint64, o Options) openRequest {
	req := openRequest{kind: uint32(kind), how: howCreate, life: life(o.LastUser), mode: o.Mode, initial: initial}
	if req.mode == 0 {
		req.mode = 0o600
	}
	if o.Exclusive {
		req.how |= howExcl
	}
	if o.Recursive {
		req.flags |= flagRecursive
	}
	if !o.Guarded {
		req.flags |= flagMapped
	}
	return req
}

// openOwning opens an object whose locks the handle owns. A recursive mutex counts the locks of its
// owner, so its owner must be a thread.
func openOwning(volume, name string, req openRequest, byKernel bool) (*object, error) {
	again := req
	if req.flags&flagRecursive == 0 {
		req.how |= howByHandle
	}
	o, err := open(volume, name, req, byKernel)
	if err != nil || o.flags&flagRecursive == 0 {
		return o, err
	}
	if req.how&howByHandle == 0 {
		return o, nil
	}
	again.how &^= howExcl
	another, err := open(volume, name, again, byKernel)
	o.Close()
	return another, err
}

func open(volume, name string, req openRequest, byKernel bool) (*object, error) {
	o := &object{name: name}
	err := putName(&req.name, name)
	if len(name) >= nameRoom {
		err = syscall.ENAMETOOLONG
	}
	if err == nil {
		o.fd, err = openVolume(volume)
	}
	if err != nil {
		return nil, wrap(name, err)
	}
	if byKernel {
		req.how |= howByKernel
	}
	err = ioctl(o.fd, iocOpen, unsafe.Pointer(&req))
	o.flags = req.flags
	if err == nil && req.how&howByHandle != 0 {
		err = ioctl(o.fd, iocMe, unsafe.Pointer(&o.me))
	}
	if err == nil && !byKernel && req.flags&flagMapped != 0 {
		err = o.mapWords(req.cell)
	}
	if err != nil {
		syscall.Close(o.fd)
		return nil, wrap(name, err)
	}
	return o, nil
}

func (o *object) mapWords(cell uint32) error {
	at, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, pageSize, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED, uintptr(o.fd), 0)
	if errno != 0 {
		return errno
	}
	// an address outside of Go's memory, which stays valid until Close
	o.page = *(**[cells]uint64)(unsafe.Pointer(&at))
	if cell != 0 {
		o.cell = &o.page[cell]
	}
	return nil
}

// Close closes the handle, which must not be in use.
func (o *object) Close() error {
	if o.page != nil {
		syscall.Syscall(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(o.page)), pageSize, 0)
		o.page, o.cell = nil, nil
	}
	fd := o.fd
	o.fd = -1 // another file may get the number
	return wrap(o.name, syscall.Close(fd))
}

// Remove removes a name. Processes that have the object open can still use it.
func Remove(volume, name string) error {
	var n [nameRoom]byte
	if len(name) >= nameRoom {
		return wrap(name, syscall.ENAMETOOLONG)
	}
	if err := putName(&n, name); err != nil {
		return wrap(name, err)
	}
	fd, err := openVolume(volume)
	if err != nil {
		return wrap(name, err)
	}
	defer syscall.Close(fd)
	return wrap(name, ioctl(fd, iocRemove, unsafe.Pointer(&n)))
}

// --- time ------------------------------------------------------------------------------------

// Forever and Try are time limits: Forever waits without limit, Try does not wait.
const (
	Forever time.Duration = -1
	Try     time.Duration = 0
)

const clockMonotonic = 1

func until(timeout time.Duration) uint64 {
	if timeout <= 0 {
		return uint64(timeout) // 0, or all ones
	}
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return uint64(now.Nano()) + uint64(timeout)
}

// --- requests to the kernel --------------------------------------------------------------------

// ask makes a request. It retries after EINTR, because the Go runtime sends such signals.
func (o *object) ask(op uint32, value, until uint64) (uint64, error) {
	req := opRequest{op: op, value: value, until: until}
	err := ioctl(o.fd, iocOp, unsafe.Pointer(&req))
	for err == syscall.EINTR && op != opDrain {
		req.value = value
		err = ioctl(o.fd, iocOp, unsafe.Pointer(&req))
	}
	return req.value, err
}

// do makes a request after a failed attempt on the word. If no words are mapped, it first tries
// without a wait.
func (o *object) do(op uint32, until uint64) error {
	switch op {
	case opLock, opUnlock, opWait, opPost:
		if o.page == nil && isAtOnce(o.fd, op) {
			return nil
		}
	}
	_, err := o.ask(op, 0, until)
	return err
}

// stat returns the object's value from the kernel.
func (o *object) stat() (uint64, error) {
	var st statReply
	err := ioctl(o.fd, iocStat, unsafe.Pointer(&st))
	return st.value, err
}

// countUp adds to a count. While no thread sleeps, the word is the count and nothing else.
func countUp(word *uint64, by uint64) bool {
	for {
		seen := atomic.LoadUint64(word)
		if seen > wordCount || by > wordCount-seen {
			return false
		}
		if atomic.CompareAndSwapUint64(word, seen, seen+by) {
			return true
		}
	}
}
