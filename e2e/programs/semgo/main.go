// SPDX-License-Identifier: Apache-2.0

// Command semgo uses shared semaphores of /mnt/sg by the package for Go.
//
//	semgo all                           owners of locks, and durations of waits
//	semgo count NAME FILE GOROUTINES N  each N times, with a mutex: two words of FILE + 1
//	semgo after NAME                    locks a mutex whose owner has died, and reports that
//	semgo time NAME N                   ns for locking and unlocking once, by a handle and by
//	a thread
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	stargate "stargate/lib"
)

const volume = "/mnt/sg"

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// gives expects exactly this error.
func gives(what string, want, err error) {
	if !errors.Is(err, want) {
		must(fmt.Errorf("%s: %v, not %v", what, err, want))
	}
}

func mutex(name string, o stargate.Options) *stargate.Mutex {
	m, err := stargate.CreateMutex(volume, name, o)
	must(err)
	return m
}

// elsewhere calls f on another goroutine, and returns after that goroutine has ended.
func elsewhere(f func() error) error {
	done := make(chan error)
	go func() { done <- f() }()
	return <-done
}

func locks(o stargate.Options) {
	const name = "go-mutex"
	m, other := mutex(name, o), mutex(name, o)
	must(m.Lock(stargate.Try))
	gives("by the same handle", stargate.ErrBusy, m.Lock(stargate.Try))
	gives("by another one", stargate.ErrBusy, other.Lock(stargate.Try))
	gives("... not its own", syscall.EPERM, other.Unlock())
	start := time.Now()
	gives("in time", stargate.ErrTimeout, m.Lock(100*time.Millisecond))
	gives("in time, by another one", stargate.ErrTimeout, other.Lock(100*time.Millisecond))
	if took := time.Since(start); took < 200*time.Millisecond {
		must(fmt.Errorf("too early, after %v", took))
	}
	must(elsewhere(m.Unlock))
	must(elsewhere(func() error { return m.Lock(stargate.Try) }))
	time.AfterFunc(50*time.Millisecond, func() { must(m.Unlock()) })
	must(other.Lock(20 * time.Second))
	time.AfterFunc(50*time.Millisecond, func() { must(other.Unlock()) })
	must(m.Lock(20 * time.Second))
	time.AfterFunc(50*time.Millisecond, func() { must(m.Unlock()) })
	must(m.Lock(20 * time.Second)) // by another goroutine with the same handle
	must(m.Unlock())
	must(other.Lock(stargate.Try))
	must(other.Close())
	gives("closed with it", stargate.ErrOwnerDied, m.Lock(20*time.Second))
	must(m.Consistent())
	must(m.Unlock())
	gives("not locked", syscall.EPERM, m.Unlock())
	must(m.Close())
	must(stargate.Remove(volume, name))
}

// A recursive mutex counts its owner thread's locks.
func recursive() {
	const name = "go-recursive"
	m := mutex(name, stargate.Options{Recursive: true, Exclusive: true})
	again, err := stargate.OpenMutex(volume, name) // which finds that out
	must(err)
	must(m.Lock(stargate.Try))
	must(again.Lock(stargate.Try))
	gives("another goroutine", stargate.ErrBusy, elsewhere(func() error { return m.Lock(stargate.Try) }))
	must(m.Unlock())
	must(again.Unlock())
	must(elsewhere(func() error {
		must(m.Lock(stargate.Try))
		return m.Unlock()
	}))
	must(stargate.Remove(volume, name))
}

func rwlock() {
	rw, err := stargate.CreateRWMutex(volume, "go-rw", stargate.Options{})
	must(err)
	must(rw.RLock(stargate.Try))
	gives("somebody reads", stargate.ErrBusy, rw.Lock(stargate.Try))
	must(elsewhere(func() error { return rw.RLock(stargate.Try) }))
	must(rw.RUnlock())
	must(rw.RUnlock())
	must(rw.Lock(stargate.Try))
	gives("somebody writes", stargate.ErrBusy, elsewhere(func() error { return rw.RLock(stargate.Try) }))
	gives("... by the same handle", stargate.ErrBusy, rw.Lock(stargate.Try))
	must(elsewhere(rw.Unlock))
	must(stargate.Remove(volume, "go-rw"))
}

// dies starts this program again, as a process that takes the lock and dies.
func dies() {
	m := mutex("go-dies", stargate.Options{})
	self, err := os.Executable()
	must(err)
	var ended *exec.ExitError
	if err := exec.Command(self, "die", "go-dies").Run(); !errors.As(err, &ended) {
		must(fmt.Errorf("it did not die: %v", err))
	}
	gives("a process that died", stargate.ErrOwnerDied, m.Lock(20*time.Second))
	must(m.Consistent())
	must(m.Unlock())
	must(stargate.Remove(volume, "go-dies"))
}

func words(path string) *[2]uint64 {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(err)
	b, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must(err)
	return (*[2]uint64)(unsafe.Pointer(&b[0]))
}

// count lets all goroutines count by one handle.
func count(name, path string, goroutines, n int) {
	m, err := stargate.OpenMutex(volume, name)
	must(err)
	w := words(path)
	var all sync.WaitGroup
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := 0; k < n; k++ {
				must(m.Lock(stargate.Forever))
				if w[0] != w[1] {
					must(errors.New("another one is at it"))
				}
				w[0]++
				w[1]++
				must(m.Unlock())
			}
		}()
	}
	all.Wait()
}

func perLock(m *stargate.Mutex, n int) int64 {
	start := time.Now()
	for i := 0; i < n; i++ {
		must(m.Lock(stargate.Forever))
		must(m.Unlock())
	}
	return time.Since(start).Nanoseconds() / int64(n)
}

// measure also measures a recursive object, for which the package queries the thread from the
// kernel.
func measure(name string, n int) {
	handle := mutex(name, stargate.Options{LastUser: true})
	thread := mutex(name+"-r", stargate.Options{LastUser: true, Recursive: true})
	perLock(handle, n/10)
	perLock(thread, n/10)
	fmt.Println(perLock(handle, n), perLock(thread, n))
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "all":
		locks(stargate.Options{})
		locks(stargate.Options{ByKernel: true})
		locks(stargate.Options{Guarded: true})
		recursive()
		rwlock()
		dies()
		fmt.Println("all of it")
	case len(args) == 2 && args[0] == "die":
		must(mutex(args[1], stargate.Options{}).Lock(stargate.Try))
		must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	case len(args) == 5 && args[0] == "count":
		count(args[1], args[2], number(args[3]), number(args[4]))
	case len(args) == 3 && args[0] == "time":
		measure(args[1], number(args[2]))
	case len(args) == 2 && args[0] == "after":
		m, err := stargate.OpenMutex(volume, args[1])
		must(err)
		gives("after a death", stargate.ErrOwnerDied, m.Lock(20*time.Second))
		must(m.Consistent())
		must(m.Unlock())
		fmt.Println("its owner died")
	default:
		fmt.Println("usage: see the head of main.go")
		os.Exit(2)
	}
}
