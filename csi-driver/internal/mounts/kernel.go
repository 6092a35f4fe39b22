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

// kernel is the System of this node's kernel.
type kernel struct{ m mount.Interface }

var _ System = kernel{}

func newKernel() kernel { return kernel{mount.NewWithoutSystemd("")} }

// Entries reads the kernel's table of mounts.
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

var servedFlags = map[string]uintptr{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC, "sync": unix.MS_SYNCHRONOUS,
	"dirsync": unix.MS_DIRSYNC, "noatime": unix.MS_NOATIME, "strictatime": unix.MS_STRICTATIME, "lazytime": unix.MS_LAZYTIME,
}

const (
	selinux = "/sys/fs/selinux"
	// maxRead is IO_MAX of kernel/tools/fuse.
	maxRead = 1 << 20
)

// MountServed is mount(2): mount(8) would look for a program that mounts this type.
func (kernel) MountServed(source, target string, fuse *os.File, options []string) error {
	_, err := os.Stat(selinux)
	flags, more := served(options, err == nil)
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other,max_read=%d%s", fuse.Fd(), maxRead, more)
	if err := unix.Mount(source, target, Served, flags, data); err != nil {
		return fmt.Errorf("mount %s at %s by FUSE: %w", source, target, err)
	}
	return nil
}

// served converts options of mount(8). Without SELinux a context has no effect, as with mount(8).
func served(options []string, labels bool) (flags uintptr, data string) {
	for _, o := range options {
		flags |= servedFlags[o]
		if label, ok := strings.CutPrefix(o, "context="); ok && labels {
			data += fmt.Sprintf(",context=%q", label)
		}
	}
	return flags, data
}

// Bind does not use mount(8): that and mount-utils need two steps for a read-only mount. A crash
// between them would leave a pod's mount writable, and nothing would show it. So the mount is made
// detached with all its attributes, and attached in one step.
func (kernel) Bind(source, target string, attributes uint64) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	defer unix.Close(tree)
	// The source may carry the mark of a VM's mount. The new mount must not inherit it.
	attr := unix.MountAttr{Attr_set: attributes, Attr_clr: unix.MOUNT_ATTR_NODIRATIME &^ attributes, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("bind %s with attributes %#x: %w", source, attributes, err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	return nil
}

// Takes asks the kernel as a mount would, and mounts nothing. An answer that is not about the
// option is left to the mount itself.
func (kernel) Takes(fstype, option string) bool {
	fd, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return !errors.Is(unix.FsconfigSetFlag(fd, option), unix.EINVAL)
}

// Reconfigure does not use mount(8)'s remount, which would also set other options.
func (kernel) Reconfigure(path string, options []string) error {
	fd, err := unix.Fspick(unix.AT_FDCWD, path, unix.FSPICK_CLOEXEC|unix.FSPICK_SYMLINK_NOFOLLOW|unix.FSPICK_NO_AUTOMOUNT)
	if err != nil {
		return fmt.Errorf("options of the file system at %s: %w", path, err)
	}
	defer unix.Close(fd)
	for _, o := range options {
		key, value, has := strings.Cut(o, "=")
		if has {
			err = unix.FsconfigSetString(fd, key, value)
		} else {
			err = unix.FsconfigSetFlag(fd, key)
		}
		if err != nil {
			return fmt.Errorf("option %s of the file system at %s: %w", o, path, err)
		}
	}
	if err := unix.FsconfigReconfigure(fd); err != nil {
		return fmt.Errorf("options %s of the file system at %s: %w", strings.Join(options, ","), path, err)
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

// Unmount does not use umount(8), which reports failures only in words.
func (kernel) Unmount(path string) error { return unix.Unmount(path, unix.UMOUNT_NOFOLLOW) }

// Known reports whether the kernel has a file system of that name, or a module that it loads for
// it.
func Known(fstype string) bool {
	list, err := os.ReadFile(types)
	if err != nil {
		list = nil // the kernel is asked instead
	}
	return known(string(list), fstype, unix.Fsopen)
}

// Opening the file system lets the kernel load its module, as mount does. It is missing only if the
// kernel says so: without permission, or on an old kernel, the answer is unknown.
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
