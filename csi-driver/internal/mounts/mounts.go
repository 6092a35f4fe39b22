// SPDX-License-Identifier: Apache-2.0

// Package mounts changes this node's mounts. The kernel's own table is the only record of the
// mounts.
package mounts

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// System reads and changes mounts. It is this node's kernel, or in tests a table (package
// mountstest).
type System interface {
	// Entries returns all mounts, in the order of their creation.
	Entries() ([]mount.MountInfo, error)
	// Mount mounts a file system.
	Mount(source, target, fstype string, options []string) error
	// MountServed mounts a file system whose calls a process answers by the given descriptor of
	// /dev/fuse. It leaves out the options that are for this process.
	MountServed(source, target string, fuse *os.File, options []string) error
	// Bind mounts source at target, with the given attributes from the first moment.
	Bind(source, target string, attributes uint64) error
	// Takes reports whether the kernel's file system of a type supports an option.
	Takes(fstype, option string) bool
	// Reconfigure sets further options of the file system that is mounted at a path.
	Reconfigure(path string, options []string) error
	// Close makes a mount read-only, but not its file system.
	Close(path string) error
	// Unmount removes the uppermost mount at a path. It fails with EBUSY while the mount is in
	// use, and with EINVAL if there is none.
	Unmount(path string) error
}

// Served is the type of mounts of MountServed in the kernel's table.
const Served = "fuse.stargatefs"

// Mounter mounts and unmounts.
type Mounter struct{ System }

// New returns a Mounter for this node's kernel. It needs mount(8).
func New() *Mounter { return On(newKernel()) }

// On returns a Mounter for a given System, as in tests.
func On(s System) *Mounter { return &Mounter{s} }

// At returns the uppermost mount at a path, or nil if there is none.
func (m *Mounter) At(path string) (*mount.MountInfo, error) {
	entries, err := m.Entries()
	if err != nil {
		return nil, err
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].MountPoint == path {
			return &entries[i], nil
		}
	}
	return nil, nil
}

// Marked reports whether a mount has the attribute that Bind sets for unix.MOUNT_ATTR_NODIRATIME.
func Marked(e *mount.MountInfo) bool { return slices.Contains(e.MountOptions, "nodiratime") }

// Attributes are the attributes of a bind mount.
func Attributes(readOnly bool, more uint64) uint64 {
	if readOnly {
		return more | unix.MOUNT_ATTR_RDONLY
	}
	return more
}

// ReadOnly reports whether this mount allows no writes.
func ReadOnly(e *mount.MountInfo) bool { return slices.Contains(e.MountOptions, "ro") }

// Clear unmounts the driver's mounts at a path and all mounts in them, starting with the last
// mount. It does not unmount other programs' mounts at the path or below.
func (m *Mounter) Clear(path string, ours func(*mount.MountInfo) bool) error {
	entries, err := m.Entries()
	if err != nil {
		return err
	}
	all, err := within(entries, path, ours)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(all) {
		if err := m.unmount(e.MountPoint); err != nil {
			return err
		}
	}
	return nil
}

// within returns these mounts, in the order of their creation. A mount of another program on top of
// one of them is an error, because its purpose is unknown.
func within(entries []mount.MountInfo, path string, ours func(*mount.MountInfo) bool) ([]mount.MountInfo, error) {
	in := map[int]bool{}
	var all []mount.MountInfo
	for i := range entries {
		e := &entries[i]
		mine := e.MountPoint == path && ours(e)
		if !mine && !in[e.ParentID] {
			continue
		}
		if !mine && e.MountPoint == path {
			return nil, fmt.Errorf("unmount %s: a mount of %s is on top of the driver's mount", path, e.FsType)
		}
		in[e.ID] = true
		all = append(all, *e)
	}
	return all, nil
}

func (m *Mounter) unmount(at string) error {
	err := m.Unmount(at)
	if errors.Is(err, unix.EINVAL) {
		if left, lerr := m.At(at); lerr == nil && left == nil {
			return nil // another process has unmounted it
		}
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", at, err)
	}
	return nil
}
