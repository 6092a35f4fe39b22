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

// keep is how many entries of a kind stay when another one is made: those used
// last. Of most kinds one is in use at a time, and an older one is for whoever
// goes back to an older checkout; of the following there are several at a time,
// for kernels and lists of packages.
var keep = map[string]int{"guest": 16, "initramfs": 8, "modules": 8}

const keepOthers = 3

// held are the entries that this process uses: each with its lock, shared with
// other users, which ends with the process.
var held struct {
	sync.Mutex
	locks map[string]*os.File
}

// Hold keeps the entry at path from being removed as long as this process
// lives, and notes that it has been used.
func (d Dir) Hold(path string) error {
	_, err := d.hold(path)
	return err
}

// hold tells whether there is an entry at path to be held.
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
	if !exists(path) { // removed while we waited
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

// entryName is a kind and the hash of what an entry is made from.
var entryName = regexp.MustCompile(`^(.+)-[0-9a-f]{12,16}(\.part)?$`)

// Entries are the entries of a kind, or of all if it is "", the one used last
// first; those that were not finished, too.
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
			continue // removed just now
		}
		path := filepath.Join(string(d), item.Name())
		found = append(found, path)
		used[path] = info.ModTime()
	}
	sort.Slice(found, func(i, j int) bool { return used[found[i]].After(used[found[j]]) })
	return found, nil
}

// Prune removes the entries of a kind that are one too many and that nobody
// uses. What was interrupted is not counted: a later fill takes it up.
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

// Remove removes an entry, unless a process uses it or is making it.
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
		// Whoever waits for it finds that it has no name any more, and begins anew.
		defer os.Remove(f.Name())
	}
	return true, os.RemoveAll(path)
}
