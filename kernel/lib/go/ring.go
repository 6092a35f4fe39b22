// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// The words of a ring. kernel/core/uapi/semtype.h defines the same words. This file follows
// ringword.h step by step; that header gives the reason for each step.
const (
	grain        = 16
	ringMin      = 64 << 10
	ringMax      = 64 << 20
	partLock     = 0
	partTail     = 1
	partRoom     = 2
	wordTail     = 8
	wordRoom     = 16
	wordHead     = 24
	wordFreed    = 32
	wordSent     = 33
	headBits     = 9
	headCellMask = 511
	posMax       = 1<<55 - 1
	cellFirst    = 128
	cellTries    = 1
	cellClaimed  = 2
	cellBits     = 2
)

const sweepEach = 100 * time.Millisecond

// Ring passes records from any senders to any receivers; each record goes to one receiver.
// Goroutines may share a handle: they send and receive in turn.
type Ring struct {
	*object
	gate   gate       // for senders
	recv   sync.Mutex // for receivers
	base   uintptr
	size   uint64
	grains uint64
	reader uint64 // number of this handle's cell; 0: it has none yet
	single bool
	swept  time.Time

	reserved   []byte // used by the goroutine that has the lock
	reservedAt uint64
	peeked     bool // used by the goroutine that has recv
}

// RingStat is the state of a ring at this moment.
type RingStat struct {
	Size, Used int64
	Sent       uint64
	ClaimsLost uint64 // claims whose receivers died
	Receivers  uint64 // live handles that receive
}

// CreateRing creates a ring, or opens the existing one. The size is 64 KiB to 64 MiB, and is
// rounded up to a power of two.
func CreateRing(volume, name string, size int, o Options) (*Ring, error) {
	if size < 0 || size > ringMax || o.Recursive || o.Guarded || o.ByKernel {
		return nil, wrap(name, syscall.EINVAL)
	}
	bytes := uint64(ringMin)
	for bytes < uint64(size) {
		bytes *= 2
	}
	req := makeRequest(KindRing, bytes, o)
	if o.Single {
		req.flags |= flagSingle
	}
	return newRing(volume, name, req)
}

// OpenRing opens an existing ring.
func OpenRing(volume, name string) (*Ring, error) {
	return newRing(volume, name, openRequest{kind: uint32(KindRing)})
}

func newRing(volume, name string, req openRequest) (*Ring, error) {
	obj, err := openOwning(volume, name, req, false)
	if err != nil {
		return nil, err
	}
	r := &Ring{object: obj, gate: newGate()}
	var st statReply
	err = ioctl(r.fd, iocStat, unsafe.Pointer(&st))
	if err == nil && (st.initial < ringMin || st.initial > ringMax || st.initial&(st.initial-1) != 0) {
		err = syscall.EUCLEAN
	}
	if err == nil {
		r.size, r.grains, r.single = st.initial, st.initial/grain, st.flags&flagSingle != 0
		err = r.mapData()
	}
	if err != nil {
		obj.Close()
		return nil, wrap(name, err)
	}
	return r, nil
}

// mapData maps the data twice, one after the other, so that each record is contiguous.
func (r *Ring) mapData() error {
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	size := uintptr(r.size)
	base, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, 2*size, syscall.PROT_NONE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE, ^uintptr(0), 0)
	if errno != 0 {
		return errno
	}
	for i := uintptr(0); i < 2; i++ {
		_, _, errno = syscall.Syscall6(syscall.SYS_MMAP, base+i*size, size, prot,
			syscall.MAP_SHARED|syscall.MAP_FIXED, uintptr(r.fd), pageSize)
		if errno != 0 {
			syscall.Syscall(syscall.SYS_MUNMAP, base, 2*size, 0)
			return errno
		}
	}
	r.base = base
	return nil
}

// Close closes the handle, which must not be in use.
func (r *Ring) Close() error {
	if r.base != 0 {
		syscall.Syscall(syscall.SYS_MUNMAP, r.base, uintptr(2*r.size), 0)
		r.base = 0
	}
	return r.object.Close()
}

// Fd returns a descriptor for poll and epoll. It is readable while the ring has a record, and
// writable while half of the ring is free. Another receiver may take the record first, so receive
// with Try. Close closes the descriptor.
func (r *Ring) Fd() uintptr { return uintptr(r.fd) }

// Most returns the length of the largest record.
func (r *Ring) Most() int { return int(r.size/2 - grain) }

// Stat returns the state of the ring.
func (r *Ring) Stat() (RingStat, error) {
	var st statReply
	err := ioctl(r.fd, iocStat, unsafe.Pointer(&st))
	return RingStat{int64(st.initial), int64(st.value), st.sent, st.claimsLost, st.receivers}, wrap(r.name, err)
}

func (r *Ring) mode() (uint32, error) {
	var st statReply
	err := ioctl(r.fd, iocStat, unsafe.Pointer(&st))
	return st.mode, err
}

func (r *Ring) askPart(op, part uint32, value, until uint64) (uint64, error) {
	for {
		req := opRequest{op: op, flags: part << 8, value: value, until: until}
		err := ioctl(r.fd, iocOp, unsafe.Pointer(&req))
		if err != syscall.EINTR {
			return req.value, err
		}
	}
}

func (r *Ring) load(word uint64) uint64 { return atomic.LoadUint64(&r.page[word]) }

func grainsOf(n uint64) uint64 { return 1 + (n+grain-1)/grain }

// at returns memory of the ring, which Go does not manage. The caller has checked offset and
// length.
func (r *Ring) at(pos, offset, n uint64) []byte {
	where := r.base + uintptr(pos&(r.grains-1)*grain+offset)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&where)), n)
}

func (r *Ring) record(pos uint64) *[2]uint64 {
	where := r.base + uintptr(pos&(r.grains-1)*grain)
	return *(**[2]uint64)(unsafe.Pointer(&where))
}

// --- sending ---------------------------------------------------------------------------------

// lowest returns the position up to which data may be overwritten. It loads the head first.
func (r *Ring) lowest(freed uint64) uint64 {
	low := r.load(wordHead) >> headBits
	if freed > low {
		freed = 0
	}
	for i := uint64(cellFirst); i < cells; i++ {
		if cell := r.load(i); cell != 0 && cell>>cellBits < low && cell>>cellBits >= freed {
			low = cell >> cellBits
		}
	}
	return low
}

var errNoRoom = errors.New("no room")

func (r *Ring) room(tail, n uint64) error {
	freed := r.load(wordFreed)
	if freed <= tail && tail+n-freed <= r.grains {
		return nil
	}
	low := r.lowest(freed)
	if low > tail || tail-low > r.grains || tail > posMax-n {
		return syscall.EUCLEAN
	}
	atomic.StoreUint64(&r.page[wordFreed], low)
	if tail+n-low > r.grains {
		return errNoRoom
	}
	return nil
}

// wantRoom asks receivers to report freed room. It returns the count to wait for.
func (r *Ring) wantRoom() uint64 {
	for {
		seen := r.load(wordRoom)
		if seen&wordAsked != 0 || atomic.CompareAndSwapUint64(&r.page[wordRoom], seen, seen|wordAsked) {
			return seen&wordCount + 1
		}
	}
}

// awaitRoom waits for receivers, and regularly checks for dead receivers.
func (r *Ring) awaitRoom(tail, n, end uint64) error {
	for {
		count := r.wantRoom()
		err := r.room(tail, n)
		if err != errNoRoom {
			return err
		}
		if end != 0 {
			pause := until(sweepEach)
			if end < pause {
				pause = end
			}
			_, err = r.askPart(opAwait, partRoom, count, pause)
			if err != nil && err != syscall.ETIMEDOUT {
				return err
			}
		}
		switch {
		case time.Since(r.swept) > sweepEach:
			r.swept = time.Now()
			if _, err := r.askPart(opSweep, 0, 0, 0); err != nil {
				return err
			}
		case end == 0:
			return syscall.EAGAIN
		case until(1) >= end:
			return syscall.ETIMEDOUT
		}
	}
}

func (r *Ring) takeLock() bool { return r.me != 0 && atomic.CompareAndSwapUint64(&r.page[0], 0, r.me) }

func (r *Ring) lock(timeout time.Duration) error {
	if r.takeLock() {
		return nil
	}
	err := r.gate.pass(timeout, r.takeLock, func(until uint64) error {
		_, err := r.askPart(opLock, partLock, 0, until)
		return err
	})
	if err == syscall.EOWNERDEAD { // the dead owner sent nothing: there is nothing to repair
		_, err = r.askPart(opConsistent, partLock, 0, 0)
	}
	return err
}

func (r *Ring) unlock() error {
	var err error
	if r.me == 0 || !atomic.CompareAndSwapUint64(&r.page[0], r.me, 0) {
		_, err = r.askPart(opUnlock, partLock, 0, 0)
	}
	r.gate.given()
	return err
}

// Record is a record and its tag.
type Record struct {
	Tag  uint32
	Data []byte
}

// Batch is the largest number of records that one RecvMany claims.
const Batch = 64

// head completes the record at pos, whose payload is already in the ring.
func (r *Ring) head(pos, length uint64, tag uint32) {
	head := r.record(pos)
	atomic.StoreUint64(&head[0], length|uint64(tag)<<32)
	atomic.StoreUint64(&head[1], pos)
}

// publish moves the tail by n grains, which have count records. After that, receivers see these
// records.
func (r *Ring) publish(tail, n, count uint64) error {
	atomic.StoreUint64(&r.page[wordSent], r.load(wordSent)+count)
	if atomic.CompareAndSwapUint64(&r.page[wordTail], tail, tail+n) {
		return nil
	}
	if r.load(wordTail)&wordCount != tail {
		return syscall.EUCLEAN
	}
	_, err := r.askPart(opAdvance, partTail, n, 0)
	return err
}

// begin takes the lock, and waits for room for a record of this length. After an error, begin has
// released the lock.
func (r *Ring) begin(length int, timeout time.Duration) (tail, end uint64, err error) {
	n := grainsOf(uint64(length))
	if n > r.grains/2 {
		return 0, 0, syscall.EMSGSIZE
	}
	end = until(timeout)
	if err := r.lock(timeout); err != nil {
		return 0, 0, err
	}
	tail = r.load(wordTail) & wordCount
	if err := r.ensureRoom(tail, n, end); err != nil {
		r.unlock()
		return 0, 0, err
	}
	return tail, end, nil
}

func (r *Ring) ensureRoom(tail, n, end uint64) error {
	err := r.room(tail, n)
	if err == errNoRoom {
		err = r.awaitRoom(tail, n, end)
	}
	return err
}

// Send sends a record. It waits while the ring has no room.
func (r *Ring) Send(tag uint32, data []byte, timeout time.Duration) error {
	_, err := r.SendMany([]Record{{tag, data}}, timeout)
	return err
}

// SendMany sends records in one turn, and returns the number of sent records. It waits while the
// ring has no room. After an error, the caller may send the remaining records again.
func (r *Ring) SendMany(records []Record, timeout time.Duration) (int, error) {
	for _, rec := range records {
		if len(rec.Data) > r.Most() {
			return 0, wrap(r.name, syscall.EMSGSIZE)
		}
	}
	if len(records) == 0 {
		return 0, nil
	}
	tail, end, err := r.begin(len(records[0].Data), timeout)
	if err != nil {
		return 0, wrap(r.name, err)
	}
	sent := 0
	for err == nil && sent < len(records) {
		err = r.ensureRoom(tail, grainsOf(uint64(len(records[sent].Data))), end)
		if err == nil {
			var n int
			n, tail, err = r.putSome(tail, records[sent:])
			sent += n
		}
	}
	if unlocked := r.unlock(); err == nil {
		err = unlocked
	}
	return sent, wrap(r.name, err)
}

// putSome stores records behind the tail while there is room, and publishes them together. The
// caller has checked that the first one has room. It returns the number of records, and the new
// tail.
func (r *Ring) putSome(tail uint64, records []Record) (int, uint64, error) {
	pos, put := tail, 0
	for _, rec := range records {
		length := uint64(len(rec.Data))
		n, freed := grainsOf(length), r.load(wordFreed)
		if put > 0 && (freed > tail || pos+n-freed > r.grains || pos > posMax-n) {
			break
		}
		copy(r.at(pos, grain, length), rec.Data)
		r.head(pos, length, rec.Tag)
		pos += n
		put++
	}
	if err := r.publish(tail, pos-tail, uint64(put)); err != nil {
		return 0, tail, err
	}
	return put, pos, nil
}

// Reserve returns memory of the ring for a record of up to n bytes. Until Commit or Cancel, all
// other senders wait. Only one goroutine at a time may use a handle for this.
func (r *Ring) Reserve(n int, timeout time.Duration) ([]byte, error) {
	tail, _, err := r.begin(n, timeout)
	if err != nil {
		return nil, wrap(r.name, err)
	}
	r.reservedAt, r.reserved = tail, r.at(tail, grain, uint64(n))
	return r.reserved, nil
}

// Commit sends the first n bytes of the reserved memory. After EINVAL, the memory is still
// reserved.
func (r *Ring) Commit(tag uint32, n int) error {
	if r.reserved == nil {
		return wrap(r.name, syscall.EPERM)
	}
	if n < 0 || n > len(r.reserved) {
		return wrap(r.name, syscall.EINVAL)
	}
	r.reserved = nil
	r.head(r.reservedAt, uint64(n), tag)
	err := r.publish(r.reservedAt, grainsOf(uint64(n)), 1)
	if unlocked := r.unlock(); err == nil {
		err = unlocked
	}
	return wrap(r.name, err)
}

// Cancel releases the reserved memory without sending.
func (r *Ring) Cancel() error {
	if r.reserved == nil {
		return wrap(r.name, syscall.EPERM)
	}
	r.reserved = nil
	return wrap(r.name, r.unlock())
}

// --- receiving -------------------------------------------------------------------------------

var (
	errNone = errors.New("no record")
	errLost = errors.New("another receiver took the record first")
)

func (r *Ring) becomeReader(end uint64) error {
	if r.reader != 0 {
		return nil
	}
	cell, err := r.askPart(opReader, 0, 0, end)
	if err == nil && (cell < cellFirst || cell >= cells) {
		err = syscall.EUCLEAN
	}
	if err == nil {
		r.reader = cell
	}
	return err
}

// help finishes the claim of the reader that moved the head last.
func (r *Ring) help(head uint64) {
	other := head & headCellMask
	if other < cellFirst || other == r.reader {
		return
	}
	cell := r.load(other)
	if cell&cellTries != 0 && cell>>cellBits < head>>headBits {
		atomic.CompareAndSwapUint64(&r.page[other], cell, cell>>cellBits<<cellBits|cellClaimed)
	}
}

func (r *Ring) moveHead(head, n uint64) bool {
	pos := head >> headBits
	next, claimed := (pos+n)<<headBits|r.reader, pos<<cellBits|cellClaimed
	if r.single {
		atomic.StoreUint64(&r.page[r.reader], claimed)
		atomic.StoreUint64(&r.page[wordHead], next)
		return true
	}
	r.help(head)
	if !atomic.CompareAndSwapUint64(&r.page[wordHead], head, next) {
		return false
	}
	atomic.StoreUint64(&r.page[r.reader], claimed)
	return true
}

// look checks the record at pos. No sender overwrites this record meanwhile.
func (r *Ring) look(pos, tail uint64) (Record, error) {
	record := r.record(pos)
	lenTag, at := atomic.LoadUint64(&record[0]), atomic.LoadUint64(&record[1])
	length := lenTag & (1<<32 - 1)
	n := grainsOf(length)
	if tail-pos > r.grains || n > tail-pos || n > r.grains/2 || at != pos {
		return Record{}, syscall.EUCLEAN
	}
	return Record{uint32(lenTag >> 32), r.at(pos, grain, length)}, nil
}

// claim tries once to claim the available records, at most most, with one claim. The data of the
// records is in the ring. If there is no record, claim returns the position.
func (r *Ring) claim(most int) (records []Record, pos uint64, err error) {
	head := r.load(wordHead)
	pos, tail := head>>headBits, r.load(wordTail)&wordCount
	if tail == pos {
		return nil, pos, errNone
	}
	if !r.single {
		atomic.SwapUint64(&r.page[r.reader], pos<<cellBits|cellTries)
		if r.load(wordHead) != head {
			return nil, pos, errLost
		}
	}
	next := pos
	for len(records) < most && next != tail {
		rec, err := r.look(next, tail)
		if err != nil && len(records) == 0 {
			return nil, pos, err
		}
		if err != nil {
			break // a later call reports the invalid record, as its first one
		}
		records = append(records, rec)
		next += grainsOf(uint64(len(rec.Data)))
	}
	if !r.moveHead(head, next-pos) {
		return nil, pos, errLost
	}
	return records, pos, nil
}

// release releases the claimed records, and wakes a sender that waits for room.
func (r *Ring) release() {
	atomic.SwapUint64(&r.page[r.reader], 0)
	seen := r.load(wordRoom)
	if seen <= wordCount || (seen&wordWaiters == 0 &&
		atomic.CompareAndSwapUint64(&r.page[wordRoom], seen, seen&wordCount+1)) {
		return
	}
	r.askPart(opAdvance, partRoom, 1, 0)
}

// After this number of lost races for a record, a receiver assumes that a user forges the head.
const mostRaces = 20000

// await waits for a record at pos, where the ring was empty. If a user has forged this position, no
// record ever comes there. So await returns after a second, and the caller checks again.
func (r *Ring) await(pos, end uint64) error {
	if end == 0 {
		return syscall.EAGAIN
	}
	pause := until(time.Second)
	if end < pause {
		pause = end
	}
	_, err := r.askPart(opAwait, partTail, pos+1, pause)
	if err == syscall.ETIMEDOUT && pause < end {
		return nil
	}
	return err
}

// take claims records, at most most. It waits for the first record. The caller holds r.recv.
func (r *Ring) take(most int, timeout time.Duration) ([]Record, error) {
	end, races := until(timeout), 0
	if err := r.becomeReader(end); err != nil {
		return nil, err
	}
	for {
		records, pos, err := r.claim(most)
		if err == nil {
			return records, nil
		}
		if r.load(r.reader) != 0 {
			r.release()
		}
		switch err {
		case errNone:
			races = 0
			err = r.await(pos, end)
		case errLost:
			err = nil
			if races++; races > mostRaces {
				err = syscall.EUCLEAN
			}
			runtime.Gosched()
		}
		if err != nil {
			return nil, err
		}
	}
}

// Recv takes the next record. It waits while the ring has no record.
func (r *Ring) Recv(timeout time.Duration) (tag uint32, data []byte, err error) {
	records, err := r.RecvMany(1, timeout)
	if err != nil {
		return 0, nil, err
	}
	return records[0].Tag, records[0].Data, nil
}

// RecvMany takes the available records, at most most and at most Batch. It waits for the first
// record.
func (r *Ring) RecvMany(most int, timeout time.Duration) ([]Record, error) {
	if most <= 0 {
		return nil, wrap(r.name, syscall.EINVAL)
	}
	r.recv.Lock()
	defer r.recv.Unlock()
	if most > Batch {
		most = Batch
	}
	records, err := r.take(most, timeout)
	if err != nil {
		return nil, wrap(r.name, err)
	}
	for i := range records {
		records[i].Data = append([]byte{}, records[i].Data...)
	}
	r.release()
	return records, nil
}

// Peek returns the next record in the ring's memory. Senders do not overwrite it until Release.
// Until then no goroutine can receive with this handle.
func (r *Ring) Peek(timeout time.Duration) (tag uint32, data []byte, err error) {
	r.recv.Lock()
	records, err := r.take(1, timeout)
	if err != nil {
		r.recv.Unlock()
		return 0, nil, wrap(r.name, err)
	}
	r.peeked = true
	return records[0].Tag, records[0].Data, nil
}

// Release releases the record that Peek has returned.
func (r *Ring) Release() error {
	if !r.peeked {
		return wrap(r.name, syscall.EPERM)
	}
	r.peeked = false
	r.release()
	r.recv.Unlock()
	return nil
}
