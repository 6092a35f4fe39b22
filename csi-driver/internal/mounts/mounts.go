// SPDX-License-Identifier: Apache-2.0

// Package mounts is what the driver does with this node's mounts, and how a volume is brought to a
// path. The kernel's own table is the only record of it.
package mounts

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

const table = "/proc/self/mountinfo"

// Mounter mounts and unmounts.
type Mounter struct{ m mount.Interface }

// New needs mount(8) and umount(8).
func New() *Mounter { return &Mounter{mount.NewWithoutSystemd("")} }

// Entries are all mounts, in the order of their making.
func (m *Mounter) Entries() ([]mount.MountInfo, error) {
	entries, err := mount.ParseMountInfo(table)
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	return entries, nil
}

// At is the uppermost mount at a path; nil if there is none.
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

// Mount mounts.
func (m *Mounter) Mount(source, target, fstype string, options []string) error {
	if err := m.m.Mount(source, target, fstype, options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// Bind shows at target what is at source. mount(8) and mount-utils need two steps for one that is
// read-only; a crash between them would leave a pod's mount writable, and nobody could tell. So it is
// made elsewhere with all its attributes, and attached in one step.
func (m *Mounter) Bind(source, target string, attributes uint64) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: attributes, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("bind %s with attributes %#x: %w", source, attributes, err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	return nil
}

// Close makes a mount read-only: this one, not its file system.
func (m *Mounter) Close(path string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil {
		return fmt.Errorf("make the mount at %s read-only: %w", path, err)
	}
	return nil
}

// Attributes are those of a bind mount.
func Attributes(readOnly bool, more uint64) uint64 {
	if readOnly {
		return more | unix.MOUNT_ATTR_RDONLY
	}
	return more
}

// ReadOnly tells whether nothing can be written by this mount.
func ReadOnly(e *mount.MountInfo) bool { return slices.Contains(e.MountOptions, "ro") }

// Clear unmounts what is ours at a path, and what is mounted in that, the last first. What else is there, or
// below, is somebody else's and stays.
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

// within are those mounts, in the order of their making. One over ours that is not is in the way: who has made
// it knows what for.
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
			return nil, fmt.Errorf("unmount %s: a mount of %s is over it", path, e.FsType)
		}
		in[e.ID] = true
		all = append(all, *e)
	}
	return all, nil
}

// unmount is not umount(8), which tells what has failed in words alone.
func (m *Mounter) unmount(at string) error {
	err := unix.Unmount(at, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EINVAL) {
		if left, lerr := m.At(at); lerr == nil && left == nil {
			return nil // somebody else was quicker
		}
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", at, err)
	}
	return nil
}
