// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"
)

// The kernel's interface. The C headers kernel/core/uapi/semctl.h and semtype.h define the same
// numbers, under the same names.

const nameRoom = 256

const (
	howCreate   = 1 << 0
	howExcl     = 1 << 1
	howByKernel = 1 << 3
	howByHandle = 1 << 4

	atOnce = 0xd700 // the advice for fadvise64(2) is this number plus opLock, ...

	flagRecursive = 1 << 0
	flagMapped    = 1 << 1
	flagSingle    = 1 << 2
)

const (
	opLock = 1 + iota
	opUnlock
	opConsistent
	opWait
	opPost
	opRead
	opReadEnd
	opWrite
	opWriteEnd
	opDrain
	opRing
	opCondLook
	opCondWait
	opSignal
	opBroadcast
	opMeet
	opAdvance
	opAwait
	opReader
	opSweep
)

const (
	wordCount   = 1<<62 - 1
	wordValue   = 0x7fffffff
	wordAsked   = 1 << 62
	wordWaiters = 1 << 63
	cellKernel  = 64
	cells       = 512
)

type openRequest struct {
	name                               [nameRoom]byte
	kind, how, flags, life, mode, cell uint32
	initial                            uint64
	reserved                           [2]uint64
}

type opRequest struct {
	op, flags    uint32
	until, value uint64
	reserved     uint64
}

type statReply struct {
	name                                    [nameRoom]byte
	kind, life, flags, serial               uint32
	uid, gid, mode, died, lost              uint32
	slot                                    int32
	pid, tid                                uint32
	created, users, waiters, initial, value uint64
	since                                   uint64
	comm                                    [16]byte
	system                                  [64]byte
	claimsLost, sent, receivers             uint64
	reserved                                uint64
}

const (
	dirWrite = 1
	dirRead  = 2
)

// request returns the number that _IOC() makes of these parts.
func request(dir, number, size uintptr) uintptr {
	return dir<<30 | size<<16 | 0xd7<<8 | number
}

var (
	iocOpen   = request(dirRead|dirWrite, 16, unsafe.Sizeof(openRequest{}))
	iocMe     = request(dirRead, 17, 8)
	iocOp     = request(dirRead|dirWrite, 18, unsafe.Sizeof(opRequest{}))
	iocStat   = request(dirRead|dirWrite, 19, unsafe.Sizeof(statReply{}))
	iocRemove = request(dirWrite, 21, nameRoom)
)

// ioctl retries after a signal of the Go runtime, which is safe because times are absolute.
func ioctl(fd int, what uintptr, arg unsafe.Pointer) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), what, uintptr(arg))
	runtime.KeepAlive(arg)
	if errno != 0 {
		return errno
	}
	return nil
}

// isAtOnce returns whether the kernel has done op without a wait. Go's scheduler does not learn of
// this call, because the call never blocks.
func isAtOnce(fd int, op uint32) bool {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_FADVISE64, uintptr(fd), 0, 0, uintptr(atOnce+op), 0, 0)
	return errno == 0
}

// putName copies a name. A name that is too long is refused by the kernel.
func putName(to *[nameRoom]byte, name string) error {
	for i := 0; i < len(name); i++ {
		if name[i] == 0 {
			return syscall.EINVAL
		}
	}
	copy(to[:], name)
	return nil
}

var sentences = map[syscall.Errno]string{
	syscall.EAGAIN:          "the object is not available at this moment",
	syscall.ETIMEDOUT:       "timed out: the object was not available in time",
	syscall.EDEADLK:         "the caller has already locked the object",
	syscall.EBUSY:           "another thread already waits or receives with this handle, or another handle receives",
	syscall.EMSGSIZE:        "the record is larger than half the ring",
	syscall.EUSERS:          "the ring has the largest possible number of receivers",
	syscall.EOPNOTSUPP:      "a system has mounted the volume with a module that does not support rings: update that module",
	syscall.EPERM:           "not allowed: the caller has not locked the object, or does not own it",
	syscall.EOWNERDEAD:      "locked, but its last owner died: data that it protects may be inconsistent",
	syscall.ENOTRECOVERABLE: "an owner died, and no later owner repaired the data: reset or remove the object",
	syscall.EOVERFLOW:       "the count would be too large, or this mount maps no owner for the calling user",
	syscall.ENOENT:          "there is no object of that name",
	syscall.EEXIST:          "an object of that name already exists",
	syscall.EINVAL:          "the name is invalid (1 to 255 bytes, no slash), or objects of this kind do not support the operation",
	syscall.ENAMETOOLONG:    "a name has at most 255 bytes",
	syscall.EPROTOTYPE:      "the object is of another kind",
	syscall.EACCES:          "the object's owner and mode do not permit this, or those of the volume's root do not permit a new object",
	syscall.EUCLEAN:         "damaged: see the kernel's log, and run fsck.stargatefs",
	syscall.ECONNREFUSED:    "no process listens on that name",
	syscall.EADDRINUSE:      "another process listens on that name",
	syscall.ECONNRESET:      "the other end has died, or has closed without a shutdown: its last bytes may be missing",
	syscall.EPIPE:           "the other end does not read any more",
	syscall.EPROTO:          "the other end sends invalid data",
	syscall.EROFS:           "the volume is mounted read-only",
	syscall.ENODEV:          "the path is not on a mounted StargateFS volume",
	syscall.EXDEV:           "only a part of the volume is mounted there, without its semaphores",
	syscall.ENOSPC:          "the volume is full",
	syscall.EIO:             "the other systems have fenced this system: unmount and mount the volume again",
}

// Error is the error of an operation on an object. It wraps an errno, so that errors.Is(err,
// syscall.ENOENT) works.
type Error struct {
	Name  string
	Errno syscall.Errno
}

func (e *Error) Error() string {
	why, known := sentences[e.Errno]
	if !known {
		why = e.Errno.Error()
	}
	return e.Name + ": " + why
}

// Unwrap returns the errno.
func (e *Error) Unwrap() error { return e.Errno }

// Errors that a program must distinguish.
var (
	// ErrOwnerDied: the caller has the lock, but the last owner died while it had the lock.
	// Repair the data that the lock protects, then call Consistent.
	ErrOwnerDied error = syscall.EOWNERDEAD
	// ErrLost: an owner of the mutex died, and a later owner unlocked the mutex without a call
	// of Consistent.
	ErrLost error = syscall.ENOTRECOVERABLE
	// ErrTimeout: the time limit has passed.
	ErrTimeout error = syscall.ETIMEDOUT
	// ErrBusy: the operation was not possible without a wait.
	ErrBusy error = syscall.EAGAIN
)

func wrap(name string, err error) error {
	var errno syscall.Errno
	if err == nil || !errors.As(err, &errno) {
		return err
	}
	return &Error{Name: name, Errno: errno}
}

// owned returns whether the caller has the lock after err.
func owned(err error) bool { return err == nil || errors.Is(err, ErrOwnerDied) }
