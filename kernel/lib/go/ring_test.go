// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// ringsInMemory returns handles of a ring in memory of this process. The handles can do all
// operations that need no kernel. Requests to the kernel fail.
func ringsInMemory(t *testing.T, n int) []*Ring {
	t.Helper()
	name := [2]byte{'r'}
	fd, _, errno := syscall.Syscall(319, uintptr(unsafe.Pointer(&name)), 0, 0) // memfd_create
	if errno != 0 {
		t.Skip(errno)
	}
	file := int(fd)
	t.Cleanup(func() { syscall.Close(file) })
	if err := syscall.Ftruncate(file, pageSize+ringMin); err != nil {
		t.Fatal(err)
	}
	var all []*Ring
	for i := 0; i < n; i++ {
		o := &object{name: fmt.Sprint("ring", i), fd: file, me: uint64(i + 1)}
		if err := o.mapWords(0); err != nil {
			t.Fatal(err)
		}
		r := &Ring{object: o, gate: newGate(), size: ringMin, grains: ringMin / grain,
			reader: cellFirst + uint64(i), swept: time.Now().Add(time.Hour)}
		if err := r.mapData(); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func payload(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 10+i) }

func TestRingBatches(t *testing.T) {
	rings := ringsInMemory(t, 2)
	a, b := rings[0], rings[1]
	if _, err := b.RecvMany(10, Try); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	var records []Record
	for i := 0; i < 100; i++ {
		records = append(records, Record{uint32(i), payload(i)})
	}
	if n, err := a.SendMany(records, Try); n != 100 || err != nil {
		t.Fatal(n, err)
	}
	next := 0
	for _, most := range []int{1000, 7, 1000} {
		got, err := b.RecvMany(most, Try)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range got {
			if rec.Tag != uint32(next) || !bytes.Equal(rec.Data, payload(next)) {
				t.Fatalf("record %d: %v", next, rec)
			}
			next++
		}
		if want := map[int]int{64: 64, 71: 7, 100: 29}[next]; want != len(got) {
			t.Fatal(next, len(got))
		}
	}
	// a part of the records has room; the rest follows
	for i := range records {
		records[i].Data = make([]byte, 3000)
	}
	sent, err := a.SendMany(records, Try)
	if !errors.Is(err, ErrBusy) || sent != ringMin/3024 {
		t.Fatal(sent, err)
	}
	if _, err := b.RecvMany(3, Try); err != nil {
		t.Fatal(err)
	}
	if n, err := a.SendMany(records[sent:], Try); n != 3 || !errors.Is(err, ErrBusy) {
		t.Fatal(n, err)
	}
	records[99].Data = make([]byte, a.Most()+1)
	if n, err := a.SendMany(records, Try); n != 0 || !errors.Is(err, syscall.EMSGSIZE) {
		t.Fatal(n, err)
	}
}

func TestRingInPlace(t *testing.T) {
	rings := ringsInMemory(t, 2)
	a, b := rings[0], rings[1]
	if err := a.Commit(1, 0); !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
	room, err := a.Reserve(100, Try)
	if err != nil || len(room) != 100 {
		t.Fatal(len(room), err)
	}
	if err := a.Cancel(); err != nil {
		t.Fatal(err)
	}
	if room, err = a.Reserve(100, Try); err != nil {
		t.Fatal(err)
	}
	copy(room, "hello")
	if err := a.Commit(9, 101); !errors.Is(err, syscall.EINVAL) {
		t.Fatal(err)
	}
	if err := a.Commit(9, 5); err != nil {
		t.Fatal(err)
	}
	tag, data, err := b.Peek(Try)
	if err != nil || tag != 9 || string(data) != "hello" {
		t.Fatal(tag, data, err)
	}
	for n := 0; ; n++ { // a peeked record keeps its place
		if err := a.Send(0, make([]byte, 1000), Try); err != nil {
			break
		}
		if _, _, err := a.Recv(Try); err != nil || n > ringMin/1016 {
			t.Fatal(n, err)
		}
	}
	if string(data) != "hello" {
		t.Fatal(data)
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	if err := b.Release(); !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
	if err := a.Send(0, make([]byte, 1000), Try); err != nil {
		t.Fatal(err)
	}
}

// With forged words and records, each call returns an error, and accesses only the ring.
func TestRingForged(t *testing.T) {
	r := ringsInMemory(t, 1)[0]
	if err := r.Send(1, []byte("abc"), Try); err != nil {
		t.Fatal(err)
	}
	for _, length := range []uint64{17, 70000, 1<<32 - 1} {
		r.record(0)[0] = length
		if _, _, err := r.Recv(Try); !errors.Is(err, syscall.EUCLEAN) {
			t.Fatal(length, err)
		}
	}
	r.record(0)[0] = 3
	r.page[wordTail] = 1 << 40
	if _, _, err := r.Recv(Try); !errors.Is(err, syscall.EUCLEAN) {
		t.Fatal(err)
	}
	if err := r.Send(1, []byte("abc"), Try); !errors.Is(err, syscall.EUCLEAN) {
		t.Fatal(err)
	}
}

// Several receivers share the records of one sender: each record arrives once and complete.
func TestRingShared(t *testing.T) {
	const readers, all = 3, 20000
	rings := ringsInMemory(t, 1+readers)
	var wait sync.WaitGroup
	var lock sync.Mutex
	seen := make([]int, all)
	left := all
	for _, r := range rings[1:] {
		wait.Add(1)
		go func(r *Ring) {
			defer wait.Done()
			for {
				records, err := r.RecvMany(5, Try)
				lock.Lock()
				for _, rec := range records {
					seen[rec.Tag]++
					left--
					if !bytes.Equal(rec.Data, payload(int(rec.Tag)%50)) {
						t.Error(rec.Tag)
					}
				}
				done := left == 0
				lock.Unlock()
				if done || (err != nil && !errors.Is(err, ErrBusy)) {
					if err != nil && !errors.Is(err, ErrBusy) {
						t.Error(err)
					}
					return
				}
			}
		}(r)
	}
	for i := 0; i < all; {
		err := rings[0].Send(uint32(i), payload(i%50), Try)
		if err == nil {
			i++
		} else if !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
	wait.Wait()
	for i, n := range seen {
		if n != 1 {
			t.Fatal(i, n)
		}
	}
}
