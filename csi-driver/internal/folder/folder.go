// SPDX-License-Identifier: Apache-2.0

// Package folder manages the files that both kinds of zone use for snapshots. Each file has the
// name NAME@VOLUME.snapshot. While a file is being created or deleted, it has another name. Such a
// file is removed by the next process that opens the folder, or by Sweep when no call uses the
// file. Only one process at a time can open the folder.
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
	"stargate/csi-driver/internal/stargatectl"
)

// Prefixes of incomplete files.
const (
	Making   = ".making-"
	Deleting = ".deleting-"
)

const (
	suffix = ".snapshot"
	of     = "@" // names contain no @
)

// Folder is one folder.
type Folder struct {
	Dir string
	// Own distinguishes the folder from all other folders, also from a folder that is mounted
	// in its place. pool.Identity is computed from it.
	Own  string
	lock *os.File
	work *work
}

// Place has the path of a folder, and its properties.
type Place struct {
	Dir  string
	Lock string // name of the lock's file
	Node string // name of the node
	// Left reports which other files are leftovers, in addition to incomplete files.
	Left func(file string) bool
	// Fits checks the lock's file before anything else is changed. If Fits is nil, any folder
	// is accepted.
	Fits func(lock *os.File) error
}

// work has the names that calls use. Incomplete files with other names are leftovers.
type work struct {
	mu    sync.Mutex
	names map[string]bool
	room  map[string]int64 // room reserved for copies in progress, by name
}

// Begin locks a name. It fails with Busy while another call or Sweep uses that name. Otherwise the
// caller must call end.
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

// Open opens a folder, and creates it if it does not exist. It waits until no other process has the
// folder open, and removes incomplete files. Other processes have to wait until lock is closed.
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

// Entries returns the folder's content, if it still is the folder that Open has opened. If a file
// system was mounted or unmounted there since, the lock's file differs or is missing. Entries then
// fails, because the folder's content is unknown.
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
		return errkind.New(errkind.NoAnswer, "%s is no longer the same folder as when the driver started: mount that folder again, or restart the driver", f.Dir)
	}
	return err
}

// Half reports whether a file is incomplete: being created or deleted.
func Half(file string) bool {
	return strings.HasPrefix(file, Making) || strings.HasPrefix(file, Deleting)
}

// Sweep removes incomplete files, and files for which left returns true, unless a call uses them.
// It returns an error for each file that it cannot remove.
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
		return nil // a call uses the file
	}
	defer end()
	// The call that used the file may have ended since, with a complete file or without a file.
	if !Half(file) && !left(file) {
		return nil
	}
	err = os.Remove(f.Path("", file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		klog.FromContext(ctx).Info("Removed an incomplete file", "file", file)
	}
	return err
}

// nameIn returns the object's name in the name of such a file. All prefixes begin with a dot and
// end with a dash.
func nameIn(file string) string {
	_, name, _ := strings.Cut(file, "-")
	name, _, _ = strings.Cut(name, of)
	return name
}

// Path returns the path of a file with a prefix and a name.
func (f Folder) Path(prefix, name string) string { return filepath.Join(f.Dir, prefix+name) }

// Copying returns the path at which a copy is created. No volume or snapshot has this name. The
// tool also uses a further name, which remains if the tool is killed.
func (f Folder) Copying(name string) (file, part string) {
	file = f.Path(Making, name+of)
	return file, file + ".part"
}

// Free returns the space that the file system has left.
func (f Folder) Free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(f.Dir, &st); err != nil {
		return 0, fmt.Errorf("%s: %w", f.Dir, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// Sync makes the folder durable, if the file system supports this.
func (f Folder) Sync() error {
	dir, err := os.Open(f.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Remove removes files, if they exist.
func Remove(files ...string) error {
	var all []error
	for _, file := range files {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Snapshot parses a file's name.
func Snapshot(file string) (name, source string, ok bool) {
	both, ok := strings.CutSuffix(file, suffix)
	name, source, two := strings.Cut(both, of)
	return name, source, ok && two && pool.ValidName(name) && pool.ValidName(source)
}

// Snapshots returns all snapshots, sorted by name. If one snapshot cannot be read, it returns the
// other snapshots with the error.
func (f Folder) Snapshots() ([]pool.Snapshot, error) {
	entries, err := f.Entries()
	if err != nil {
		return nil, errkind.Wrap(errkind.NoAnswer, err, "snapshots")
	}
	var all []pool.Snapshot
	var unread error
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
			unread = errkind.Wrap(errkind.Internal, err, "snapshot %s", name)
			continue
		}
		all = append(all, pool.Snapshot{
			Name: name, Source: source, Path: f.Path("", e.Name()), Size: st.Size(), Created: st.ModTime(),
		})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, unread
}

// Snapshot returns the snapshot with a name.
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

// Called returns the path of a snapshot's file.
func (f Folder) Called(name, source string) string { return f.Path("", name+of+source+suffix) }

// Source is a zone that copies volumes to files. pool.Zone documents the contract of each method.
type Source interface {
	Space(ctx context.Context, v pool.Volume) (stargatectl.Space, error)
	CopyOut(ctx context.Context, source pool.Volume, file string) error
}

// Take copies a volume to a file with the snapshot's name. Unused parts of the volume become holes.
func (f Folder) Take(ctx context.Context, z Source, name string, source pool.Volume) (pool.Snapshot, error) {
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

// reserve reserves room for a copy. Other copies in progress keep the room that they have reserved
// and not written yet.
func (f Folder) reserve(ctx context.Context, z Source, name string, source pool.Volume) error {
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
		return errkind.New(errkind.NoSpace, "%d bytes of volume %s are in use, and the folder has room for %d", used, source.Name, max(0, free))
	}
	f.work.room[name] = used
	return nil
}

func (f Folder) release(name string) {
	f.work.mu.Lock()
	defer f.work.mu.Unlock()
	delete(f.work.room, name)
}

// written returns the space that an unfinished copy uses.
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

// NotCopied wraps the error of a failed copy. It keeps a known kind and the tool's message. left is
// the error of the cleanup.
func NotCopied(err, left error, what string) error {
	var known *errkind.Error
	if errors.As(err, &known) {
		return NotCleaned(known, left)
	}
	return NotCleaned(errkind.Wrap(pool.KindOf(err), err, "%s", what), left)
}

// NotCleaned joins an error with the error of its cleanup, if any. Sweep retries the cleanup.
func NotCleaned(err, left error) error {
	if left == nil {
		return err
	}
	return errkind.Wrap(errkind.KindOf(err), err, "an incomplete file remains until the next cleanup (%v)", left)
}

// Delete deletes a snapshot. It renames the file first. The deletion of an absent snapshot is no
// error.
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
