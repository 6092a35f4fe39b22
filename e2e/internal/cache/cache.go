// SPDX-License-Identifier: Apache-2.0

// Package cache keeps what is expensive to make in folders named after their
// inputs. An entry appears complete or not at all, so an interrupted fill is
// repeated cleanly, and two processes never fill the same entry at once.
package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Dir is the folder of all entries.
type Dir string

// Default is $STARGATE_CACHE, or ~/.cache/stargate.
func Default() (Dir, error) {
	if dir := os.Getenv("STARGATE_CACHE"); dir != "" {
		abs, err := filepath.Abs(dir)
		return Dir(abs), err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the cache: set STARGATE_CACHE (%w)", err)
	}
	return Dir(filepath.Join(home, ".cache", "stargate")), nil
}

// Entry returns the folder of kind for these inputs, calling fill with an
// empty temporary folder first when there is none yet.
func (d Dir) Entry(kind string, inputs []string, fill func(tmp string) error) (string, error) {
	return d.entry(kind, inputs, false, fill)
}

// Resume is Entry for what takes very long: fill finds in its folder what an
// earlier, interrupted or failed, fill for the same inputs has left.
func (d Dir) Resume(kind string, inputs []string, fill func(tmp string) error) (string, error) {
	return d.entry(kind, inputs, true, fill)
}

func (d Dir) entry(kind string, inputs []string, resume bool, fill func(tmp string) error) (string, error) {
	final := d.Path(kind, inputs)
	if exists(final) {
		return final, nil
	}
	unlock, err := d.lock(filepath.Base(final))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(final) { // another process filled it while we waited
		return final, nil
	}
	tmp := final + ".part"
	if !resume {
		if err := os.RemoveAll(tmp); err != nil {
			return "", fmt.Errorf("removing an interrupted %s: %w", kind, err)
		}
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return "", err
	}
	if err := fill(tmp); err != nil {
		if resume {
			return "", fmt.Errorf("making %s: %w (to be resumed in %s)", kind, err, tmp)
		}
		if e := os.RemoveAll(tmp); e != nil {
			return "", fmt.Errorf("making %s: %w (and its remains stay in %s: %v)", kind, err, tmp, e)
		}
		return "", fmt.Errorf("making %s: %w", kind, err)
	}
	return final, os.Rename(tmp, final)
}

// Path is where the entry of kind for these inputs is, or will be.
func (d Dir) Path(kind string, inputs []string) string {
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\n")))
	return filepath.Join(string(d), kind+"-"+hex.EncodeToString(sum[:6]))
}

// lock waits until this process is the only one to fill the named entry.
func (d Dir) lock(name string) (func(), error) {
	dir := filepath.Join(string(d), "locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return Lock(filepath.Join(dir, name))
}

// Lock waits until this process is the only one to hold the lock that the file
// at path stands for; the returned function lets it go. The kernel drops it
// with the process, so nothing can be left locked.
func Lock(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
