// SPDX-License-Identifier: Apache-2.0

// Package folder has what both kinds of zone keep in files: snapshots, each called NAME@VOLUME.snapshot.
// A file that is being made or deleted has another name. The next process that opens the folder removes it, or Sweep
// does when no call is at it any more: one process at a time has the folder.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
)

// Prefixes of what is half made or half deleted.
const (
	Making   = ".making-"
	Deleting = ".deleting-"
)

const (
	suffix = ".snapshot"
	of     = "@" // no name has one
)

// Folder is one.
type Folder struct {
	Dir string
	// Own tells it from all others, also from one that is mounted in its place: zone.Identity is made of it.
	Own  string
	lock *os.File
	work *work
}

// Place is where a folder is, and what is known of it.
type Place struct {
	Dir  string
	Lock string // the name of its lock's file
	Node string // which has it
	// Left tells which files, besides those that are half made or half deleted, nobody needs.
	Left func(file string) bool
	// Fits is asked with the lock's file before anything else is touched; nil: any folder will do.
	Fits func(lock *os.File) error
}

// work has the names that calls are at: what is half made of others is nobody's.
type work struct {
	mu    sync.Mutex
	names map[string]bool
	room  map[string]int64 // that copies are to take, by name
}

// Begin is Busy while another call, or Sweep, is at what is called so; else end is to be called.
func (f Folder) Begin(name string) (end func(), err error) {
	f.work.mu.Lock()
	defer f.work.mu.Unlock()
	if f.work.names[name] {
		return nil, errkind.New(errkind.Busy, "another call works on %s: try again", name)
	}
	f.work.names[name] = true
	return func() {
		f.work.mu.Lock()
		defer f.work.mu.Unlock()
		delete(f.work.names, name)
	}, nil
}

// Open makes it if it is not there, waits until no other process has it, and removes what they, and
// whoever else has left, have half done. It is held until lock is closed.
func Open(ctx context.Context, p Place) (f Folder, lock *os.File, err error) {
	f = Folder{Dir: p.Dir, work: &work{names: map[string]bool{}, room: map[string]int64{}}}
	if err := os.MkdirAll(p.Dir, 0o750); err != nil {
		return f, nil, err
	}
	if f.lock, err = hold(ctx, filepath.Join(p.Dir, p.Lock)); err != nil {
		return f, nil, err
	}
	if p.Fits != nil {
		err = p.Fits(f.lock)
	}
	if err == nil {
		f.Own, err = own(f.lock, p)
	}
	if err == nil {
		err = f.Sweep(ctx, p.Left)
	}
	if err != nil {
		f.lock.Close()
		return f, nil, err
	}
	return f, f.lock, nil
}

// Entries are what is in it, as long as it is the folder that Open has found. A file system that somebody has mounted
// there since, or has taken away, has another lock, or none: what is in it is not what the driver knows.
func (f Folder) Entries() ([]os.DirEntry, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return nil, err
	}
	return entries, f.same()
}

func (f Folder) same() error {
	held, err := f.lock.Stat()
	if err != nil {
		return err
	}
	there, err := os.Lstat(f.lock.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(held, there) {
		return errkind.New(errkind.NoAnswer, "%s is another folder than the one that was there when the driver started: mount that one again, or restart the driver", f.Dir)
	}
	return err
}

// Half tells whether a file is half made or half deleted.
func Half(file string) bool {
	return strings.HasPrefix(file, Making) || strings.HasPrefix(file, Deleting)
}

// Sweep removes what is half made or half deleted, and what left says is, unless a call is at it. It is told of all
// that it cannot remove.
func (f Folder) Sweep(ctx context.Context, left func(file string) bool) error {
	entries, err := f.Entries()
	if err != nil {
		return err
	}
	var all []error
	for _, e := range entries {
		if Half(e.Name()) || left(e.Name()) {
			all = append(all, f.sweep(ctx, e.Name(), left))
		}
	}
	return errors.Join(all...)
}

func (f Folder) sweep(ctx context.Context, file string, left func(file string) bool) error {
	end, err := f.Begin(nameIn(file))
	if err != nil {
		return nil // somebody is at it
	}
	defer end()
	// The call that was at it may have ended since: with a whole file, or with nothing.
	if !Half(file) && !left(file) {
		return nil
	}
	err = os.Remove(f.Path("", file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		klog.FromContext(ctx).Info("What was left half made or half deleted is removed", "file", file)
	}
	return err
}

// nameIn is the name of what such a file is of: all of their prefixes end with a dash, and begin with a dot.
func nameIn(file string) string {
	_, name, _ := strings.Cut(file, "-")
	name, _, _ = strings.Cut(name, of)
	return name
}

// Path of a file by its name and what comes before it.
func (f Folder) Path(prefix, name string) string { return filepath.Join(f.Dir, prefix+name) }

// Copying is where a copy is made: under a name that no volume or snapshot has. The tool itself makes it
// under a further one, which is left if it is ended.
func (f Folder) Copying(name string) (file, part string) {
	file = f.Path(Making, name+of)
	return file, file + ".part"
}

// Free is what the file system can still give.
func (f Folder) Free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(f.Dir, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Dir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// Sync has the folder on its way to where it survives a power cut, if the file system has such.
func (f Folder) Sync() error {
	dir, err := os.Open(f.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Remove all of these that are there.
func Remove(files ...string) error {
	var all []error
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Snapshot is which one a file is.
func Snapshot(file string) (name, source string, ok bool) {
	both, ok := strings.CutSuffix(file, suffix)
	name, source, two := strings.Cut(both, of)
	return name, source, ok && two && pool.ValidName(name) && pool.ValidName(source)
}

// Snapshots looks at all, by name.
func (f Folder) Snapshots() ([]pool.Snapshot, error) {
	entries, err := f.Entries()
	if err != nil {
		return nil, errkind.Wrap(errkind.NoAnswer, err, "snapshots")
	}
	var all []pool.Snapshot
	for _, e := range entries {
		name, source, ok := Snapshot(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, errkind.Wrap(errkind.Internal, err, "snapshot %s", name)
		}
		all = append(all, pool.Snapshot{
			Name: name, Source: source, Path: f.Path("", e.Name()), Size: st.Size(), Created: st.ModTime(),
		})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// Snapshot looks at one.
func (f Folder) Snapshot(name string) (pool.Snapshot, error) {
	all, err := f.Snapshots()
	if err != nil {
		return pool.Snapshot{}, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return pool.Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q", name)
}

// Called is the file of a snapshot.
func (f Folder) Called(name, source string) string { return f.Path("", name+of+source+suffix) }

// Take has a zone make a file of a volume, and gives it its name. What the volume does not use is a hole.
func (f Folder) Take(ctx context.Context, z pool.Zone, name string, source pool.Volume) (pool.Snapshot, error) {
	end, err := f.Begin(name)
	if err != nil {
		return pool.Snapshot{}, err
	}
	defer end()
	if err := f.same(); err != nil {
		return pool.Snapshot{}, errkind.Wrap(errkind.NoAnswer, err, "snapshots")
	}
	file, part := f.Copying(name)
	defer f.release(name)
	err = f.reserve(ctx, z, name, source)
	if err == nil {
		failpoint.Reached(ctx, "file: snapshot begun")
		err = z.CopyOut(ctx, source, file)
	}
	if err == nil {
		failpoint.Reached(ctx, "file: snapshot copied")
		err = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, f.Called(name, source.Name), unix.RENAME_NOREPLACE)
	}
	if err == nil {
		failpoint.Reached(ctx, "file: snapshot named")
		err = f.Sync()
	}
	if err != nil {
		return pool.Snapshot{}, NotCopied(err, Remove(file, part), "snapshot "+name)
	}
	return f.Snapshot(name)
}

// reserve has a copy take its room, beside those that are being made and have not written all of theirs yet.
func (f Folder) reserve(ctx context.Context, z pool.Zone, name string, source pool.Volume) error {
	space, err := z.Space(ctx, source)
	if err != nil {
		return err
	}
	f.work.mu.Lock()
	defer f.work.mu.Unlock()
	free, err := f.Free()
	if err != nil {
		return errkind.Wrap(errkind.NoAnswer, err, "snapshots")
	}
	for other, room := range f.work.room {
		free -= max(0, room-f.written(other))
	}
	used := source.Size - space.Free
	if used > free {
		return errkind.New(errkind.NoSpace, "%d bytes of volume %s are in use; there is room for %d", used, source.Name, max(0, free))
	}
	f.work.room[name] = used
	return nil
}

func (f Folder) release(name string) {
	f.work.mu.Lock()
	defer f.work.mu.Unlock()
	delete(f.work.room, name)
}

// written is what a copy has taken that is being made.
func (f Folder) written(name string) int64 {
	file, part := f.Copying(name)
	for _, path := range []string{part, file} {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			return st.Blocks * 512
		}
	}
	return 0
}

// NotCopied is why not: a failure of a known kind stays what it is; the tool's own sentence is passed on. left is what
// has failed when it was cleaned up.
func NotCopied(err, left error, what string) error {
	var known *errkind.Error
	if errors.As(err, &known) {
		return NotCleaned(known, left)
	}
	return NotCleaned(errkind.Wrap(pool.KindOf(err), err, "%s", what), left)
}

// NotCleaned is a failure, and the one of cleaning up behind it, if any: Sweep tries that again.
func NotCleaned(err, left error) error {
	if left == nil {
		return err
	}
	return errkind.Wrap(errkind.KindOf(err), err, "what was half made is left for now (%v)", left)
}

// Delete takes the name away first. To delete none is no error.
func (f Folder) Delete(ctx context.Context, name string) error {
	end, err := f.Begin(name)
	if err != nil {
		return err
	}
	defer end()
	s, err := f.Snapshot(name)
	if errkind.Is(err, errkind.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	gone := f.Path(Deleting, name)
	if err := os.Rename(s.Path, gone); err != nil {
		return errkind.Wrap(errkind.Internal, err, "snapshot %s", name)
	}
	failpoint.Reached(ctx, "file: snapshot without a name")
	err = os.Remove(gone)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "snapshot %s", name)
	}
	return nil
}
