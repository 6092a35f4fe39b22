// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"os"
	"syscall"
)

// Base is the guest-physical address of the shared range, in every guest.
const Base = 0x400000000

// Range is the memory that all guests share.
type Range struct {
	File *os.File
	Size int64
	// Pages gives the range struct pages and its device the DAX flag, like a node's own zone
	// (memmap= of the kernel command line, D1). Without, it is an NVDIMM's raw namespace, as in
	// VMs, which has neither.
	Pages bool
	// Labels gives that NVDIMM a label area, so that it can have several namespaces. The area
	// lies behind the range, in the same file.
	Labels bool
	at     int64 // the address of the range for one guest; 0: Base
}

// labelRoom is larger than the minimum, 128K, and the rest is lost. The range itself must keep a
// size that Linux accepts (a multiple of 16M).
const labelRoom = 2 << 20

// rangeDir is memory, as the range must be.
const rangeDir = "/dev/shm"

// RangeRoom is the free memory for ranges.
func RangeRoom() (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(rangeDir, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", rangeDir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// NewRange makes a range of zeros in /dev/shm. Its file has no name. The file exists as long as a
// process holds it, so it ends with the rig and its guests, however they end.
func NewRange(size int64, pages, labels bool) (*Range, error) {
	r := &Range{Size: size, Pages: pages, Labels: labels}
	f, err := os.CreateTemp(rangeDir, "stargate-rig-")
	if err != nil {
		return nil, fmt.Errorf("making the shared range: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.Truncate(r.fileSize()); err != nil {
		f.Close()
		return nil, fmt.Errorf("making a shared range of %d bytes: %w", size, err)
	}
	r.File = f
	return r, nil
}

func (r *Range) fileSize() int64 {
	if r.Labels {
		return r.Size + labelRoom
	}
	return r.Size
}

// Path names the range for programs outside of the guests.
func (r *Range) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.File.Fd())
}

// WithPages is the same memory with struct pages, as in a node.
func (r *Range) WithPages() *Range { return &Range{File: r.File, Size: r.Size, Pages: true} }

// At is the same memory for a guest that has it at another address than the others, like a node
// after a boot with another memmap=.
func (r *Range) At(base int64) *Range {
	moved := *r
	moved.at = base
	return &moved
}

// base is the guest's address of the range.
func (r *Range) base() int64 {
	if r.at != 0 {
		return r.at
	}
	return Base
}

// Wipe fills it with zeros, as a power cut does with memory that forgets.
func (r *Range) Wipe() error {
	if err := r.File.Truncate(0); err != nil {
		return err
	}
	return r.File.Truncate(r.fileSize())
}

// Clear fills it with zeros while VMs have it mapped.
func (r *Range) Clear() error {
	const punchHole, keepSize = 2, 1
	return syscall.Fallocate(int(r.File.Fd()), punchHole|keepSize, 0, r.fileSize())
}

// maxMemoryMiB is the limit that the guest's physical memory must be able to reach: QEMU counts
// from the guest's RAM, so twice the distance is enough.
func (r *Range) maxMemoryMiB() int64 {
	return (2*r.base() + r.fileSize() + 1<<30) >> 20
}

// kernelWords name the driver for the range: the others leave it alone.
func (r *Range) kernelWords() []string {
	if r.Pages {
		return []string{fmt.Sprintf("memmap=%d!%#x", r.Size, r.base()), "rig.skip=nfit"}
	}
	return []string{"rig.skip=nd_e820"}
}

// args attach the range, which QEMU finds at path, as an NVDIMM at its fixed address. Preallocation
// would rewrite bytes that others use, and a mapping that does not begin at 2 MiB has no large
// pages.
func (r *Range) args(path string) []string {
	labels := ""
	if r.Labels {
		labels = ",label-size=128K" // the minimum
	}
	return []string{
		"-object", fmt.Sprintf("memory-backend-file,id=range,mem-path=%s,size=%d,align=2M,share=on,prealloc=off", quoted(path), r.fileSize()),
		"-device", fmt.Sprintf("nvdimm,id=range0,memdev=range,addr=%#x%s", r.base(), labels),
	}
}
