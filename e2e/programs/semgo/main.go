// SPDX-License-Identifier: Apache-2.0

// Command semgo uses shared semaphores of /mnt/sg by the package for Go.
//
//	semgo all                           checks owners of locks, and durations of waits
//	semgo count NAME FILE GOROUTINES N  each goroutine adds 1 to two words of FILE, N times,
//	                                    under a mutex
//	semgo after NAME                    locks a mutex whose owner has died, and reports this
//	semgo time NAME N                   prints the ns of one lock and unlock: of a mutex that a
//	                                    handle owns, and of one that a thread owns
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

// gives exits with 1 unless err is the error want.
func gives(what string, want, err error) {
	if !errors.Is(err, want) {
		must(fmt.Errorf("%s: got %v, want %v", what, err, want))
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
	gives("a second lock by the same handle", stargate.ErrBusy, m.Lock(stargate.Try))
	gives("a lock by another handle", stargate.ErrBusy, other.Lock(stargate.Try))
	gives("an unlock by another handle", syscall.EPERM, other.Unlock())
	start := time.Now()
	gives("a wait by the same handle", stargate.ErrTimeout, m.Lock(100*time.Millisecond))
	gives("a wait by another handle", stargate.ErrTimeout, other.Lock(100*time.Millisecond))
	if took := time.Since(start); took < 200*time.Millisecond {
		must(fmt.Errorf("two waits of 100 ms ended after %v", took))
	}
	must(elsewhere(m.Unlock))
	must(elsewhere(func() error { return m.Lock(stargate.Try) }))
	time.AfterFunc(50*time.Millisecond, func() { must(m.Unlock()) })
	must(other.Lock(20 * time.Second))
	time.AfterFunc(50*time.Millisecond, func() { must(other.Unlock()) })
	must(m.Lock(20 * time.Second))
	time.AfterFunc(50*time.Millisecond, func() { must(m.Unlock()) })
	must(m.Lock(20 * time.Second)) // another goroutine unlocks it by the same handle
	must(m.Unlock())
	must(other.Lock(stargate.Try))
	must(other.Close())
	gives("a lock after the owner's close", stargate.ErrOwnerDied, m.Lock(20*time.Second))
	must(m.Consistent())
	must(m.Unlock())
	gives("an unlock without a lock", syscall.EPERM, m.Unlock())
	must(m.Close())
	must(stargate.Remove(volume, name))
}

// recursive checks that a recursive mutex counts the locks of its owner, a thread.
func recursive() {
	const name = "go-recursive"
	m := mutex(name, stargate.Options{Recursive: true, Exclusive: true})
	again, err := stargate.OpenMutex(volume, name) // finds out that the mutex is recursive
	must(err)
	must(m.Lock(stargate.Try))
	must(again.Lock(stargate.Try))
	gives("a lock by another goroutine", stargate.ErrBusy, elsewhere(func() error { return m.Lock(stargate.Try) }))
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
	gives("a write lock beside a reader", stargate.ErrBusy, rw.Lock(stargate.Try))
	must(elsewhere(func() error { return rw.RLock(stargate.Try) }))
	must(rw.RUnlock())
	must(rw.RUnlock())
	must(rw.Lock(stargate.Try))
	gives("a read lock beside a writer", stargate.ErrBusy, elsewhere(func() error { return rw.RLock(stargate.Try) }))
	gives("a second write lock", stargate.ErrBusy, rw.Lock(stargate.Try))
	must(elsewhere(rw.Unlock))
	must(stargate.Remove(volume, "go-rw"))
}

// dies checks the error after an owner's death: it starts this program once more, as a process that
// takes the lock and dies.
func dies() {
	m := mutex("go-dies", stargate.Options{})
	self, err := os.Executable()
	must(err)
	var ended *exec.ExitError
	if err := exec.Command(self, "die", "go-dies").Run(); !errors.As(err, &ended) {
		must(fmt.Errorf("the other process did not die: %v", err))
	}
	gives("a lock after the owner's death", stargate.ErrOwnerDied, m.Lock(20*time.Second))
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

// count lets all goroutines count under one handle of the mutex.
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
					must(errors.New("the words differ, so another owner has the mutex too"))
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

// measure prints the cost of a mutex that a handle owns, and of a recursive mutex. A thread owns
// the recursive mutex, so the package asks the kernel for the thread at each call.
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
		gives("a lock after the owner's death", stargate.ErrOwnerDied, m.Lock(20*time.Second))
		must(m.Consistent())
		must(m.Unlock())
		fmt.Println("its owner died")
	default:
		fmt.Println("usage: semgo all | count NAME FILE GOROUTINES N | after NAME | time NAME N")
		os.Exit(2)
	}
}
