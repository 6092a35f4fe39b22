// SPDX-License-Identifier: Apache-2.0

// Package mountstest simulates mounts in a table, so that tests need neither root nor real mounts.
package mountstest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"stargate/csi-driver/internal/mounts"
)

// Table is a mounts.System. Files below a mount point are in the real folder, and are removed with
// the mount, like those of a tmpfs. They do not appear at targets of bind mounts.
type Table struct {
	mu      sync.Mutex
	entries []mount.MountInfo
	last    int
	own     map[int]bool // mounts whose files are in the folder: all except bind mounts
	fails   map[Call]*failure
	lacks   map[string]bool // options that the file systems do not have
}

var _ mounts.System = (*Table)(nil)

// New returns a table with a root mount.
func New() *Table {
	root := mount.MountInfo{ID: 1, MountPoint: "/", Root: "/", FsType: "ext4", Source: "root"}
	return &Table{entries: []mount.MountInfo{root}, last: root.ID, own: map[int]bool{}, fails: map[Call]*failure{}, lacks: map[string]bool{}}
}

// Call is the name of a method that a test can make fail.
type Call string

const (
	Entries     Call = "entries"
	Mount       Call = "mount"
	MountServed Call = "mount by a server"
	Bind        Call = "bind"
	Close       Call = "close"
	Reconfigure Call = "reconfigure"
	Unmount     Call = "unmount"
)

// failure is a planned failure. It happens once, after a number of calls that succeed.
type failure struct {
	after int
	err   error
}

// Fail makes the next call of a method fail before it does anything.
func (t *Table) Fail(c Call, err error) { t.FailAt(c, 1, err) }

// FailAt does the same for the nth call from now on.
func (t *Table) FailAt(c Call, n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fails[c] = &failure{n - 1, err}
}

// Disarm removes the planned failures that have not happened, and reports whether there were any.
func (t *Table) Disarm() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	armed := len(t.fails) > 0
	clear(t.fails)
	return armed
}

func (t *Table) failLocked(c Call) error {
	f := t.fails[c]
	if f == nil {
		return nil
	}
	if f.after > 0 {
		f.after--
		return nil
	}
	delete(t.fails, c)
	return f.err
}

// Shown returns all mount points except the root.
func (t *Table) Shown() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var points []string
	for _, e := range t.entries[1:] {
		points = append(points, e.MountPoint)
	}
	return points
}

// Entries returns copies of all mounts.
func (t *Table) Entries() ([]mount.MountInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.failLocked(Entries); err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	return slices.Clone(t.entries), nil
}

// Mount adds a mount. It fails unless the directory is empty, because the table cannot hide files.
func (t *Table) Mount(source, target, fstype string, options []string) error {
	return t.mount(Mount, source, target, fstype, options)
}

// MountServed adds a mount. It does not use the descriptor, because a table has no calls to answer.
func (t *Table) MountServed(source, target string, _ *os.File, options []string) error {
	return t.mount(MountServed, source, target, mounts.Served, options)
}

func (t *Table) mount(call Call, source, target, fstype string, options []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.failLocked(call)
	if err == nil {
		var in []os.DirEntry
		if in, err = os.ReadDir(target); err == nil && len(in) > 0 {
			err = unix.ENOTEMPTY
		}
	}
	if err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	t.addLocked(mount.MountInfo{Root: "/", Source: source, MountPoint: target, FsType: fstype, SuperOptions: options})
	t.own[t.last] = true
	return nil
}

// Bind mounts the file system that contains source at target, too.
func (t *Table) Bind(source, target string, attributes uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.failLocked(Bind); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	of := t.entries[t.in(source)]
	root, err := filepath.Rel(of.MountPoint, source)
	if err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	of.Root, of.MountPoint, of.MountOptions = filepath.Join(of.Root, root), target, nil
	for _, a := range []struct {
		bit  uint64
		name string
	}{{unix.MOUNT_ATTR_RDONLY, "ro"}, {unix.MOUNT_ATTR_NOSUID, "nosuid"}, {unix.MOUNT_ATTR_NODEV, "nodev"}, {unix.MOUNT_ATTR_NOEXEC, "noexec"}, {unix.MOUNT_ATTR_NODIRATIME, "nodiratime"}} {
		if attributes&a.bit != 0 {
			of.MountOptions = append(of.MountOptions, a.name)
		}
	}
	t.addLocked(of)
	return nil
}

// Lack makes all file systems refuse an option.
func (t *Table) Lack(option string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lacks[option] = true
}

// Takes reports whether file systems support an option. They support all options except those of
// Lack.
func (t *Table) Takes(_, option string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.lacks[option]
}

// Reconfigure changes all mounts of the file system, which have the same source.
func (t *Table) Reconfigure(path string, options []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.at(path)
	err := t.failLocked(Reconfigure)
	if err == nil && at < 0 {
		err = unix.EINVAL
	}
	if err != nil {
		return fmt.Errorf("options of the file system at %s: %w", path, err)
	}
	for i := range t.entries {
		e := &t.entries[i]
		if e.Source != t.entries[at].Source {
			continue
		}
		for _, o := range options {
			key, _, _ := strings.Cut(o, "=")
			kept := slices.DeleteFunc(slices.Clone(e.SuperOptions), func(had string) bool {
				return had == key || strings.HasPrefix(had, key+"=")
			})
			e.SuperOptions = append(kept, o)
		}
	}
	return nil
}

// Close sets the option ro of a mount.
func (t *Table) Close(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := t.at(path)
	err := t.failLocked(Close)
	if err == nil && i < 0 {
		err = unix.EINVAL
	}
	if err != nil {
		return fmt.Errorf("make the mount at %s read-only: %w", path, err)
	}
	t.entries[i].MountOptions = []string{"ro"}
	return nil
}

// Unmount removes the uppermost mount at a path.
func (t *Table) Unmount(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.failLocked(Unmount); err != nil {
		return err
	}
	i := t.at(path)
	if i <= 0 {
		return unix.EINVAL
	}
	if slices.ContainsFunc(t.entries, func(e mount.MountInfo) bool { return e.ParentID == t.entries[i].ID }) {
		return unix.EBUSY
	}
	own := t.own[t.entries[i].ID]
	t.entries = slices.Delete(t.entries, i, i+1)
	if own {
		return empty(path)
	}
	return nil
}

func empty(path string) error {
	in, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range in {
		if err := os.RemoveAll(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) addLocked(e mount.MountInfo) {
	t.last++
	e.ID, e.ParentID = t.last, t.entries[t.in(e.MountPoint)].ID
	t.entries = append(t.entries, e)
}

// at returns the index of the uppermost mount at a path, or -1 if there is none.
func (t *Table) at(path string) int {
	for i, e := range slices.Backward(t.entries) {
		if e.MountPoint == path {
			return i
		}
	}
	return -1
}

// in returns the index of the mount that contains a path: the uppermost mount at the longest
// matching mount point.
func (t *Table) in(path string) int {
	in := 0
	for i, e := range t.entries {
		below := e.MountPoint == path || strings.HasPrefix(path, strings.TrimSuffix(e.MountPoint, "/")+"/")
		if below && len(e.MountPoint) >= len(t.entries[in].MountPoint) {
			in = i
		}
	}
	return in
}
