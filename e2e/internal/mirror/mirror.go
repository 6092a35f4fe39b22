// SPDX-License-Identifier: Apache-2.0

// Package mirror copies source trees and changes only files that differ, so that make sees which
// files changed.
package mirror

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// marker is a file in every copy. A copy may be inside the tree that is copied. The marker shows
// that the copy is not a part of the sources.
const marker = ".copy-of-sources"

// Sources makes the folder `to` a copy of the source files of `from`. In the copy, products of a
// build remain.
func Sources(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, marker), nil, 0o644); err != nil {
		return err
	}
	seen := map[string]bool{}
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if _, err := os.Stat(filepath.Join(path, marker)); err == nil && path != from {
				return fs.SkipDir
			}
			return nil
		}
		if !IsSource(name) {
			return nil
		}
		seen[name] = true
		return update(path, filepath.Join(to, name))
	})
	if err != nil {
		return err
	}
	return dropOthers(to, seen)
}

// IsSource reports whether a file belongs to a kernel module's sources. Sources are files that
// people have written, and the file with the exported symbols of another module, which the build
// needs.
func IsSource(name string) bool {
	base := filepath.Base(name)
	if strings.HasSuffix(base, ".mod.c") || strings.HasPrefix(base, ".") {
		return false
	}
	switch filepath.Ext(base) {
	case ".c", ".h", ".S", ".mk":
		return true
	}
	return base == "Kbuild" || base == "Makefile" || base == "stargatefs.symvers"
}

// dropOthers removes sources that are no longer in the original.
func dropOthers(dir string, keep map[string]bool) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !IsSource(name) || keep[name] {
			return err
		}
		return os.Remove(path)
	})
}

// update copies a file unless the copy already has its size and time.
func update(from, to string) error {
	have, err := os.Stat(to)
	if err == nil {
		want, err := os.Stat(from)
		if err != nil {
			return err
		}
		if have.Size() == want.Size() && have.ModTime().Equal(want.ModTime()) {
			return nil
		}
	}
	return File(from, to)
}

// File copies a regular file with its mode and time. The copy appears only when it is complete.
func File(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := os.Chmod(out.Name(), info.Mode().Perm()); err != nil {
		return err
	}
	if err := os.Chtimes(out.Name(), info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}
