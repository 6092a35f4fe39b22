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
	// Pages gives the range struct pages, and its device the DAX flag, like the zone of a node
	// (memmap= on the kernel command line, D1). Without Pages, the range is a raw namespace of
	// an NVDIMM, as in VMs, and has neither.
	Pages bool
	// Labels gives the NVDIMM a label area, so that it can have several namespaces. The label
	// area is in the same file, behind the range.
	Labels bool
	at     int64 // the address of the range in one guest; 0: Base
}

// labelRoom is the room for the label area in the file. The label area itself has only 128K, but
// the range must have a size that Linux accepts: a multiple of 16M.
const labelRoom = 2 << 20

// rangeDir is a folder in memory.
const rangeDir = "/dev/shm"

// RangeRoom returns the free memory for ranges.
func RangeRoom() (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(rangeDir, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", rangeDir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// NewRange makes a range of zeros in /dev/shm. Its file has no name, so the file exists only while
// a process has it open. It ends with the rig and its guests, even if a signal kills them.
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

// Path returns the path of the range for programs on this host.
func (r *Range) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.File.Fd())
}

// WithPages returns the same memory with struct pages, as a node has it.
func (r *Range) WithPages() *Range { return &Range{File: r.File, Size: r.Size, Pages: true} }

// At returns the same memory at another address. Guests then see the range as a node does after a
// boot with another memmap=.
func (r *Range) At(base int64) *Range {
	moved := *r
	moved.at = base
	return &moved
}

// base returns the guest's address of the range.
func (r *Range) base() int64 {
	if r.at != 0 {
		return r.at
	}
	return Base
}

// Wipe fills the range with zeros, as a power cut clears DRAM.
func (r *Range) Wipe() error {
	if err := r.File.Truncate(0); err != nil {
		return err
	}
	return r.File.Truncate(r.fileSize())
}

// Clear fills the range with zeros, while VMs have it mapped.
func (r *Range) Clear() error {
	const punchHole, keepSize = 2, 1
	return syscall.Fallocate(int(r.File.Fd()), punchHole|keepSize, 0, r.fileSize())
}

// maxMemoryMiB returns the limit of the guest's memory for -m. The limit must include the range.
// QEMU counts from the end of the guest's RAM, so twice the range's end is enough.
func (r *Range) maxMemoryMiB() int64 {
	return (2*r.base() + r.fileSize() + 1<<30) >> 20
}

// kernelWords returns the words for the kernel command line that select the range's driver.
func (r *Range) kernelWords() []string {
	if r.Pages {
		return []string{fmt.Sprintf("memmap=%d!%#x", r.Size, r.base()), "rig.skip=nfit"}
	}
	return []string{"rig.skip=nd_e820"}
}

// args returns the arguments that attach the file at path as an NVDIMM at the range's address. QEMU
// must not preallocate the memory, because that would rewrite bytes that other systems use. It maps
// the file at a multiple of 2 MiB, because other mappings get no large pages.
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
