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

// kernel is the System that changes the mounts of this node's kernel.
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

// Mount runs mount(8).
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
	// maxRead must be equal to IO_MAX in kernel/tools/fuse.
	maxRead = 1 << 20
)

// MountServed calls mount(2), because mount(8) would search for a program that mounts this type.
func (kernel) MountServed(source, target string, fuse *os.File, options []string) error {
	_, err := os.Stat(selinux)
	flags, more := served(options, err == nil)
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other,max_read=%d%s", fuse.Fd(), maxRead, more)
	if err := unix.Mount(source, target, Served, flags, data); err != nil {
		return fmt.Errorf("mount %s at %s by FUSE: %w", source, target, err)
	}
	return nil
}

// served converts options of mount(8) to those of mount(2). Without SELinux, a context has no
// effect, as with mount(8).
func served(options []string, labels bool) (flags uintptr, data string) {
	for _, o := range options {
		flags |= servedFlags[o]
		if label, ok := strings.CutPrefix(o, "context="); ok && labels {
			data += fmt.Sprintf(",context=%q", label)
		}
	}
	return flags, data
}

// Bind creates a bind mount. It does not use mount(8) or mount-utils, which need two steps for a
// read-only mount. A crash between these steps would leave a pod's mount writable without a trace.
// So Bind creates a detached mount with all its attributes, and attaches it in one step.
func (kernel) Bind(source, target string, attributes uint64) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	defer unix.Close(tree)
	// The source may have the attribute of a VM's mount. The new mount must not inherit this
	// attribute.
	attr := unix.MountAttr{Attr_set: attributes, Attr_clr: unix.MOUNT_ATTR_NODIRATIME &^ attributes, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return fmt.Errorf("bind %s with attributes %#x: %w", source, attributes, err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	return nil
}

// Takes passes the option to the kernel like a mount, but mounts nothing. It ignores errors that do
// not concern the option; the mount itself reports them.
func (kernel) Takes(fstype, option string) bool {
	fd, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return !errors.Is(unix.FsconfigSetFlag(fd, option), unix.EINVAL)
}

// Reconfigure sets the options. It does not use the remount of mount(8), which would also set other
// options.
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

// Close sets the read-only attribute of a mount.
func (kernel) Close(path string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil {
		return fmt.Errorf("make the mount at %s read-only: %w", path, err)
	}
	return nil
}

// Unmount calls umount2(2). It does not use umount(8), which reports failures only as text.
func (kernel) Unmount(path string) error { return unix.Unmount(path, unix.UMOUNT_NOFOLLOW) }

// Known reports whether the kernel has a file system with the given name, or a module that it can
// load for it.
func Known(fstype string) bool {
	list, err := os.ReadFile(types)
	if err != nil {
		list = nil // the kernel decides below
	}
	return known(string(list), fstype, unix.Fsopen)
}

// fsopen makes the kernel load the file system's module, like mount. The file system is missing
// only if the error says so. Without permission, or on an old kernel, the answer is unknown.
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
