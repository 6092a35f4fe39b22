// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// keep is the number of entries of a kind that remain after a new entry was made: those with the
// latest uses. Most kinds need one entry, and a second entry for an older checkout. The listed
// kinds need several entries, for different kernels and lists of packages.
var keep = map[string]int{"guest": 16, "initramfs": 8, "modules": 8}

const keepOthers = 3

// held has the entries that this process uses, each with a shared lock. The locks end with the
// process.
var held struct {
	sync.Mutex
	locks map[string]*os.File
}

// Hold prevents the removal of the entry at path while this process runs, and records the use.
func (d Dir) Hold(path string) error {
	_, err := d.hold(path)
	return err
}

// hold reports whether an entry exists at path, and if so, holds it.
func (d Dir) hold(path string) (bool, error) {
	held.Lock()
	defer held.Unlock()
	if held.locks[path] != nil {
		return true, nil
	}
	if !exists(path) {
		return false, nil
	}
	f, err := d.lock(filepath.Base(path), syscall.LOCK_SH)
	if err != nil {
		return false, err
	}
	if !exists(path) { // another process has removed it during the wait for the lock
		f.Close()
		return false, nil
	}
	if held.locks == nil {
		held.locks = map[string]*os.File{}
	}
	held.locks[path] = f
	now := time.Now()
	return true, os.Chtimes(path, now, now)
}

// entryName matches the name of an entry: its kind, and a hash of its inputs.
var entryName = regexp.MustCompile(`^(.+)-[0-9a-f]{12,16}(\.part)?$`)

// Entries returns the entries of a kind, or of all kinds if kind is "". The result includes
// unfinished entries, and begins with the latest use.
func (d Dir) Entries(kind string) ([]string, error) {
	list, err := os.ReadDir(string(d))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	used := map[string]time.Time{}
	for _, item := range list {
		match := entryName.FindStringSubmatch(item.Name())
		if match == nil || kind != "" && match[1] != kind {
			continue
		}
		info, err := item.Info()
		if err != nil {
			continue // another process has just removed it
		}
		path := filepath.Join(string(d), item.Name())
		found = append(found, path)
		used[path] = info.ModTime()
	}
	sort.Slice(found, func(i, j int) bool { return used[found[i]].After(used[found[j]]) })
	return found, nil
}

// Prune removes unused entries of a kind that exceed the number to keep. An interrupted entry does
// not count, because a later fill resumes it.
func (d Dir) Prune(kind string) error {
	entries, err := d.Entries(kind)
	if err != nil {
		return err
	}
	limit, ok := keep[kind]
	if !ok {
		limit = keepOthers
	}
	for _, path := range entries {
		if strings.HasSuffix(path, part) {
			continue
		}
		if limit--; limit >= 0 {
			continue
		}
		if _, err := d.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes an entry, unless a process uses it or fills it.
func (d Dir) Remove(path string) (removed bool, err error) {
	name := strings.TrimSuffix(filepath.Base(path), part)
	for _, lock := range []string{name + part, name} {
		f, err := d.lock(lock, syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		defer f.Close()
		// A process that waits for this lock then finds no lock file at the path, and
		// starts over.
		defer os.Remove(f.Name())
	}
	return true, os.RemoveAll(path)
}
