// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program prints the values of the kernel's header, as the compiler sees them.
const program = `
#include <stdio.h>
#include "uapi/semctl.h"
int main(void)
{
	printf("%lu %lu %lu %lu %lu ", (unsigned long)SG_IOC_SEM_OPEN, (unsigned long)SG_IOC_SEM_ME,
	       (unsigned long)SG_IOC_SEM_OP, (unsigned long)SG_IOC_SEM_STAT, (unsigned long)SG_IOC_SEM_REMOVE);
	printf("%d ", SG_SEM_AT_ONCE);
	printf("%d %d %d ", SG_SEM_OP_LOCK, SG_SEM_OP_DRAIN, SG_SEM_OP_AWAIT);
	printf("%llu %llu %llu %llu ", (unsigned long long)SG_SEMW_COUNT, (unsigned long long)SG_SEMW_VALUE,
	       (unsigned long long)SG_SEMW_ASKED, (unsigned long long)SG_SEMW_WAITERS);
	printf("%u %u %u %u ", SG_SEM_CREATE, SG_SEM_EXCL, SG_SEM_BY_KERNEL, SG_SEM_BY_HANDLE);
	printf("%u %u ", SG_SEM_RECURSIVE, SG_SEM_MAPPED);
	printf("%u %d %d %d ", SG_SEM_SINGLE, SG_SEM_RING, SG_SEM_OP_READER, SG_SEM_OP_SWEEP);
	printf("%u %u %u %u ", SG_SEM_PART(SG_RING_TAIL), SG_SEM_PART(SG_RING_ROOM),
	       SG_RING_WORD(SG_RING_TAIL), SG_RING_WORD(SG_RING_ROOM));
	printf("%u %u %u %u ", SG_RING_HEAD, SG_RING_FREED, SG_RING_SENT, SG_SEM_CELL_FIRST);
	printf("%llu %llu %llu ", (unsigned long long)SG_RING_HEAD_AT(5, 7), (unsigned long long)SG_RING_POS_MAX,
	       (unsigned long long)SG_RING_CELL_AT(5, SG_RING_TRIES | SG_RING_CLAIMED));
	return 0;
}
`

func TestSameAsHeader(t *testing.T) {
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "abi.c"), filepath.Join(dir, "abi")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-I../../core", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := []uint64{
		uint64(iocOpen), uint64(iocMe), uint64(iocOp), uint64(iocStat), uint64(iocRemove),
		atOnce,
		opLock, opDrain, opAwait, wordCount, wordValue, wordAsked, wordWaiters,
		howCreate, howExcl, howByKernel, howByHandle, flagRecursive, flagMapped,
		flagSingle, uint64(KindRing), opReader, opSweep, partTail << 8, partRoom << 8, wordTail, wordRoom,
		wordHead, wordFreed, wordSent, cellFirst, 5<<headBits | 7, posMax,
		5<<cellBits | cellTries | cellClaimed,
	}
	for i, word := range strings.Fields(string(out)) {
		if got := decimal(word); got != ours[i] {
			t.Errorf("number %d: %d here, %d in the header", i, ours[i], got)
		}
	}
	if n := len(strings.Fields(string(out))); n != len(ours) {
		t.Errorf("%d numbers compared, not %d", n, len(ours))
	}
}

func decimal(text string) (n uint64) {
	for _, c := range text {
		n = n*10 + uint64(c-'0')
	}
	return n
}

func TestNotOnAVolume(t *testing.T) {
	for _, path := range []string{t.TempDir(), "/nowhere", "/"} {
		if _, err := OpenMutex(path, "a"); !errors.Is(err, syscall.ENODEV) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := OpenMutex("/", strings.Repeat("x", 256)); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Error(err)
	}
	if _, err := OpenMutex("/", "a\x00b"); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
	err := Remove("/", "a")
	if want := "a: the path is not on a mounted StargateFS volume"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestTimes(t *testing.T) {
	if until(Try) != 0 || until(Forever) != ^uint64(0) {
		t.Error("until() returns wrong values for Try and Forever")
	}
	a, b := until(time.Second), until(2*time.Second)
	if b-a < uint64(time.Second) || b-a > uint64(2*time.Second) {
		t.Errorf("a second later: %d", b-a)
	}
}

func TestUnescape(t *testing.T) {
	if got := unescape(`/mnt/a\040b\134c`); got != `/mnt/a b\c` {
		t.Error(got)
	}
}

func TestCountUp(t *testing.T) {
	word := uint64(5)
	if !countUp(&word, 3) || word != 8 {
		t.Error(word)
	}
	word |= wordWaiters
	if countUp(&word, 1) {
		t.Error("somebody sleeps")
	}
	word = wordCount - 1
	if countUp(&word, 2) || !countUp(&word, 1) {
		t.Error("countUp does not count up to the limit")
	}
}

// After a close, the number of a descriptor soon belongs to another file.
func TestCloseTwice(t *testing.T) {
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(pipe[1])
	o := object{name: "o", fd: pipe[0]}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := syscall.Dup(pipe[1])
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(other)
	if err := o.Close(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("the second Close: %v, not EBADF", err)
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(other, &stat); err != nil {
		t.Errorf("another file was closed: %v", err)
	}
}
