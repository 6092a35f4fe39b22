// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

const (
	table = "/proc/self/mountinfo"
	types = "/proc/filesystems"
)

// kernel is that of this node.
type kernel struct{ m mount.Interface }

var _ System = kernel{}

func newKernel() kernel { return kernel{mount.NewWithoutSystemd("")} }

// Entries reads its table.
func (kernel) Entries() ([]mount.MountInfo, error) {
	entries, err := mount.ParseMountInfo(table)
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	return entries, nil
}

// Mount is mount(8).
func (k kernel) Mount(source, target, fstype string, options []string) error {
	if err := k.m.Mount(source, target, fstype, options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// Bind is not mount(8)'s: that and mount-utils need two steps for one that is read-only; a crash between
// them would leave a pod's mount writable, and nobody could tell. So it is made elsewhere with all its
// attributes, and attached in one step.
func (kernel) Bind(source, target string, attributes uint64) error {
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

// Close sets one attribute.
func (kernel) Close(path string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil {
		return fmt.Errorf("make the mount at %s read-only: %w", path, err)
	}
	return nil
}

// Unmount is not umount(8), which tells what has failed in words alone.
func (kernel) Unmount(path string) error { return unix.Unmount(path, unix.UMOUNT_NOFOLLOW) }

// Known tells whether the kernel has a file system of that name, or a module that it loads for it.
func Known(fstype string) bool {
	list, err := os.ReadFile(types)
	if err != nil {
		list = nil // it is asked, then
	}
	return known(string(list), fstype, unix.Fsopen)
}

// To open one has the kernel load its module, as mount does. It is missing if the kernel says so: who
// may not ask, or asks an old kernel, knows nothing.
func known(list, fstype string, open func(string, int) (int, error)) bool {
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 0 && f[len(f)-1] == fstype {
			return true
		}
	}
	fd, err := open(fstype, unix.FSOPEN_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return !errors.Is(err, unix.ENODEV)
}
