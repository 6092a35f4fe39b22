// SPDX-License-Identifier: Apache-2.0

// Package stargate lets processes of all systems that have mounted a StargateFS volume wait for each
// other: of a host, of its virtual machines, of several virtual machines. Objects are in the volume,
// by name; programs in C, Go or a shell use the same ones (libstargate(3), stargate-sem(1)).
//
// It needs no cgo. What nobody is in the way of is one locked instruction on a mapped word; all that
// waits, or has to know who is dead, is the kernel's.
//
// A Mutex, and an RWMutex for writing, is owned by the handle that it was locked with: whichever
// goroutine, on whichever thread, may unlock it, as with those of package sync, and goroutines that
// share a handle wait for each other. Only a recursive Mutex is owned by a thread, on which its
// goroutine stays until it unlocks it. When the process or its system dies with a lock, or the handle is
// closed, the next one gets it with ErrOwnerDied.
package stargate
