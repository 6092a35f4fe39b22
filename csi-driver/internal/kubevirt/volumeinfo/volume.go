// SPDX-License-Identifier: Apache-2.0

// Package volumeinfo reads .stargate/volume.json, the description of a mounted claim, and tests
// .stargate/region with one mapping. Both files may be hostile, so the package checks every value
// before it uses the value.
package volumeinfo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	hidden      = ".stargate"
	region      = "region"
	description = "volume.json"

	mostText = 64 << 10
	// Extent is the unit of all addresses and sizes. KVM maps the region by pages of this size.
	Extent = uint64(2) << 20
	// Lowest is the lowest address at which a VM can have a volume (D3).
	Lowest = uint64(4) << 30
	// highest is the end of the physical addresses of any processor.
	highest = uint64(1) << 52
)

// Volume describes a volume that a VM gets.
type Volume struct {
	Claim     string
	Path      string // path of the region in the launcher and in the hook
	Base      uint64
	Size      uint64
	ReadOnly  bool
	Bad       bool // the volume has bad pages, so QEMU cannot allocate it in advance
	ByMachine bool // region@UUID exists, by which the node detects the end of the VM
}

// End returns the first address after the volume.
func (v Volume) End() uint64 { return v.Base + v.Size }

type described struct {
	Version int    `json:"version"`
	Base    string `json:"base"`
	Size    uint64 `json:"size"`
	Mode    string `json:"mode"`
	Joined  bool   `json:"joined"` // the node is a member of the volume
	Bad     bool   `json:"bad"`    // the volume has known bad pages
}

// Read returns the volume of the claim that is mounted in a folder, after all checks.
func Read(claim, folder string, readOnly bool) (Volume, error) {
	v := Volume{Claim: claim, Path: filepath.Join(folder, hidden, region), ReadOnly: readOnly}
	d, err := describedIn(filepath.Join(folder, hidden, description))
	if err == nil {
		err = v.take(d)
	}
	if err == nil {
		err = v.look()
	}
	if err != nil {
		return Volume{}, fmt.Errorf("claim %s: %w", claim, err)
	}
	return v, nil
}

// open opens a regular file. It follows no link, and does not block on a FIFO.
func open(path string, flags int) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: is no regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

func describedIn(path string) (described, error) {
	f, _, err := open(path, unix.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return described{}, fmt.Errorf("there is no %s/%s in the claim's folder: the claim is no volume of StargateFS, or the CSI driver has not mounted it", hidden, description)
	case errors.Is(err, fs.ErrPermission):
		return described{}, fmt.Errorf("%w: the group of QEMU may not read it (--zone-group of the CSI driver)", err)
	case err != nil:
		return described{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err != nil {
		return described{}, err
	}
	return parse(text)
}

var address = regexp.MustCompile(`^0x[0-9a-fA-F]{1,16}$`)

// parse parses the text of volume.json. It ignores unknown keys, because later versions may add
// keys.
func parse(text []byte) (described, error) {
	var d described
	if len(text) > mostText {
		return d, fmt.Errorf("%s is larger than %d bytes, so StargateFS has not written it", description, mostText)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("%s: %w", description, err)
	}
	if d.Version > 1 {
		return d, fmt.Errorf("%s is of version %d, and this hook supports version 1: use the hook of the same release as the CSI driver", description, d.Version)
	}
	if !address.MatchString(d.Base) {
		return d, fmt.Errorf("%s: base %.40q is no address", description, d.Base)
	}
	return d, nil
}

func (v *Volume) take(d described) error {
	base, err := strconv.ParseUint(d.Base[2:], 16, 64)
	if err != nil {
		return fmt.Errorf("%s: base %q: %w", description, d.Base, err)
	}
	_, beyond := bits.Add64(base, d.Size, 0)
	switch {
	case d.Size == 0 || d.Size%Extent != 0 || base%Extent != 0:
		return fmt.Errorf("%s: %d bytes at 0x%x are no pages of 2 MiB", description, d.Size, base)
	case beyond != 0 || base+d.Size > highest:
		return fmt.Errorf("%s: %d bytes at 0x%x are beyond all addresses", description, d.Size, base)
	case base < Lowest:
		return fmt.Errorf("the volume lies at 0x%x, where VMs have their own memory or devices: reserve memory from 4 GiB on for the zone", base)
	}
	v.Base, v.Size, v.Bad = base, d.Size, d.Bad
	v.ReadOnly = v.ReadOnly || d.Mode == "ro"
	if v.ReadOnly && d.Joined {
		return errors.New("its node has joined the volume, so a VM with read-only memory cannot mount the volume: use a claim that is ReadOnlyMany, such as a clone of this claim (dataSource)")
	}
	return nil
}

// look tests the region. It opens the region like QEMU, and makes the same request to the kernel
// that QEMU makes under libvirt.
func (v *Volume) look() error {
	flags := unix.O_RDWR
	if v.ReadOnly {
		flags = unix.O_RDONLY
	}
	f, st, err := open(v.Path, flags)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s/%s in the claim's folder: the volume's memory has no struct pages, or the CSI driver has not mounted the volume", hidden, region)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("the claim is mounted read-only: write it as %s:ro", v.Claim)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the group of QEMU may not open it (--zone-group of the CSI driver)", err)
	case err != nil:
		return err
	}
	defer f.Close()
	if st.Size() < 0 || uint64(st.Size()) != v.Size {
		return fmt.Errorf("%s has %d bytes, but %s has size %d", region, st.Size(), description, v.Size)
	}
	if !v.ReadOnly && !v.Bad {
		if err := allocates(f); err != nil {
			return err
		}
	}
	v.ByMachine = isThere(v.Path + "@00000000-0000-4000-8000-000000000001")
	return nil
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// allocates maps the first page and requests its allocation. Under libvirt, QEMU makes this request
// for all pages. If the kernel does not support the request, QEMU stores a byte to each page
// instead, and so overwrites data of other systems.
func allocates(f *os.File) error {
	page := os.Getpagesize()
	m, err := unix.Mmap(int(f.Fd()), 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("%s cannot be mapped: %w", region, err)
	}
	defer unix.Munmap(m)
	if err := unix.Madvise(m, unix.MADV_POPULATE_WRITE); err != nil {
		return notAllocated(err)
	}
	return nil
}

// notAllocated returns the error for a failed MADV_POPULATE_WRITE. It names the cause, which is the
// memory or the kernel.
func notAllocated(err error) error {
	switch {
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("this node's kernel does not allocate %s in advance (MADV_POPULATE_WRITE: %w), so QEMU would store over what others have written: Linux 5.14 or later is needed", region, err)
	case errors.Is(err, unix.EHWPOISON):
		return fmt.Errorf("the memory of %s is bad (EHWPOISON, %w): a page of it has had a hardware error; stargatectl bad lists the known bad pages of the volume", region, err)
	case errors.Is(err, unix.EFAULT):
		return fmt.Errorf("a page of %s is not available (%w): it is bad memory, or its file system has no room for it", region, err)
	default:
		return fmt.Errorf("a page of %s cannot be allocated: %w", region, err)
	}
}

// Region returns the path that QEMU opens. For a VM with a UUID (in canonical form), this is
// region@UUID if the node offers such names.
func (v Volume) Region(uuid string) string {
	if v.ByMachine && uuid != "" {
		return v.Path + "@" + uuid
	}
	return v.Path
}
