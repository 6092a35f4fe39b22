// SPDX-License-Identifier: Apache-2.0

// Package stargate lets processes of all systems that have mounted a StargateFS volume wait for
// each other. The systems are a host and its virtual machines. Objects are in the volume, by name;
// programs in C, Go or a shell use the same ones (libstargate(3), stargate-sem(1)).
//
// The package needs no cgo. An operation that does not wait is one locked instruction on a mapped
// word. The kernel performs all operations that wait, or that need to know which owners are dead.
//
// The owner of a locked Mutex, or of an RWMutex locked for writing, is the handle. Any goroutine,
// on any thread, may unlock it, as with the locks of package sync. Goroutines that share a handle
// wait for each other. Only a recursive Mutex is owned by a thread, on which its goroutine stays
// until it unlocks it. If the process or its system dies with a lock, or the handle is closed, the
// next owner gets the lock with ErrOwnerDied.
package stargate
