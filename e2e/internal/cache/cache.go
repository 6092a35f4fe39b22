// SPDX-License-Identifier: Apache-2.0

// Package cache keeps results that are expensive to make. Each entry is a folder, whose name
// depends on the result's inputs. An entry appears only when it is complete, so an interrupted fill
// can be repeated. Two processes never fill the same entry at the same time. Unused entries can be
// removed at any time (clean.go).
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Dir is the folder of all entries.
type Dir string

const (
	part  = ".part" // suffix of the name of an unfinished entry
	locks = "locks" // folder with two locks for each entry: for users, and for its maker
)

// Default returns $STARGATE_CACHE, or ~/.cache/stargate.
func Default() (Dir, error) {
	if dir := os.Getenv("STARGATE_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Dir(abs), err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the cache: set STARGATE_CACHE (%w)", err)
	}
	return Dir(filepath.Join(home, ".cache", "stargate")), nil
}

// Entry returns the folder of kind for these inputs. If that folder does not exist, Entry first
// calls fill with an empty temporary folder.
func (d Dir) Entry(kind string, inputs []string, fill func(tmp string) error) (string, error) {
	return d.entry(kind, inputs, false, fill)
}

// Resume is Entry for very long fills. If an earlier fill for the same inputs was interrupted or
// failed, fill gets its folder, with its files.
func (d Dir) Resume(kind string, inputs []string, fill func(tmp string) error) (string, error) {
	return d.entry(kind, inputs, true, fill)
}

func (d Dir) entry(kind string, inputs []string, resume bool, fill func(tmp string) error) (string, error) {
	final := d.Path(kind, inputs)
	for {
		// From now on, no process removes the entry while this process runs.
		if there, err := d.hold(final); there || err != nil {
			return final, err
		}
		if err := d.fill(final, resume, fill); err != nil {
			return "", fmt.Errorf("making %s: %w", kind, err)
		}
		if err := d.Prune(kind); err != nil {
			return "", fmt.Errorf("removing old %s: %w", kind, err)
		}
	}
}

// fill fills the entry and gives it its final name, unless another process has already done so.
func (d Dir) fill(final string, resume bool, fill func(tmp string) error) error {
	filling, err := d.lock(filepath.Base(final)+part, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer filling.Close()
	if exists(final) {
		return nil
	}
	tmp := final + part
	if !resume {
		if err := os.RemoveAll(tmp); err != nil {
			return fmt.Errorf("removing an interrupted entry: %w", err)
		}
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		err = d.whyNoRoom(err)
		if resume {
			return fmt.Errorf("%w (to be resumed in %s)", err, tmp)
		}
		if e := os.RemoveAll(tmp); e != nil {
			return fmt.Errorf("%w (parts of the entry stay in %s: %v)", err, tmp, e)
		}
		return err
	}
	now := time.Now()
	if err := os.Chtimes(tmp, now, now); err != nil {
		return err
	}
	return os.Rename(tmp, final)
}

// enough is the disk space that is enough for all entries together.
const enough = 3 << 30

// whyNoRoom adds the free space to an error if the space is low. Programs that fill an entry do not
// always report a full disk as the reason.
func (d Dir) whyNoRoom(failure error) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(string(d), &st); err != nil {
		return failure
	}
	return addRoom(failure, string(d), int64(st.Bavail)*st.Bsize)
}

func addRoom(failure error, dir string, free int64) error {
	if free >= enough {
		return failure
	}
	return fmt.Errorf("%w (only %d MiB are free in %s: $STARGATE_CACHE may name another place)", failure, free>>20, dir)
}

// Path returns the path of the entry of kind for these inputs. The entry need not exist.
func (d Dir) Path(kind string, inputs []string) string {
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\n")))
	return filepath.Join(string(d), kind+"-"+hex.EncodeToString(sum[:6]))
}

// lock takes the lock of an entry, in the mode how of flock(2).
func (d Dir) lock(name string, how int) (*os.File, error) {
	dir := filepath.Join(string(d), locks)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(dir, name), how)
}

// Lock takes an exclusive lock on the file at path. The returned function releases the lock. If the
// process ends, the kernel releases it.
func Lock(path string) (func(), error) {
	f, err := lockFile(path, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// lockFile locks a file that a holder of the lock may remove. If the path names another file after
// the wait, lockFile starts over with that file.
func lockFile(path string, how int) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		for {
			err = syscall.Flock(int(f.Fd()), how)
			if err != syscall.EINTR {
				break
			}
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		ours, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(ours, named) {
			return f, nil
		}
		f.Close()
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
