// SPDX-License-Identifier: Apache-2.0

// Package system reads and writes files below a root folder: "/" is the machine itself, and any
// other folder is a test's or an image's. Absent files are no error where a fact may be absent.
package system

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// limit bounds each read: no file of /proc or /sys that matters here is longer.
const limit = 8 << 20

// entries bounds each listing of a folder.
const entries = 1 << 16

// System is a tree of files.
type System struct{ Root string }

// Live says whether this is the machine that the program runs on.
func (s System) Live() bool { return s.Root == "/" }

// Path is where a file of the system lies here.
func (s System) Path(path string) string { return filepath.Join(s.Root, path) }

// Read returns a whole file.
func (s System) Read(path string) (string, error) {
	file, err := os.Open(s.Path(path))
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return "", err
	}
	if len(data) > limit {
		return "", fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return string(data), nil
}

// Text returns a file without the space around it, or nothing if it cannot be read.
func (s System) Text(path string) string {
	text, err := s.Read(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// Number returns the number that a file holds, and false if it holds none.
func (s System) Number(path string) (int64, bool) {
	n, err := strconv.ParseInt(s.Text(path), 10, 64)
	return n, err == nil
}

// Link returns the last name in the target of a symbolic link, or nothing.
func (s System) Link(path string) string {
	target, err := os.Readlink(s.Path(path))
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// Real returns a path without symbolic links, below the root; or nothing.
func (s System) Real(path string) string {
	real, err := filepath.EvalSymlinks(s.Path(path))
	if err != nil {
		return ""
	}
	return real
}

// List returns the sorted names in a folder; none if there is no such folder.
func (s System) List(path string) []string {
	dir, err := os.Open(s.Path(path))
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(entries)
	sort.Strings(names)
	return names
}

// Exists says whether there is something at a path.
func (s System) Exists(path string) bool {
	_, err := os.Stat(s.Path(path))
	return err == nil
}

// Set writes a value to a file of /sys or /proc, which must exist. In another root it does as the
// kernel does with a file of choices: it moves the brackets.
func (s System) Set(path, value string) error {
	flags := os.O_WRONLY
	if !s.Live() {
		flags |= os.O_TRUNC
		if chosen, words := s.Chosen(path); len(words) > 1 && strings.Contains(s.Text(path), "["+chosen+"]") {
			for i, word := range words {
				if word == value {
					words[i] = "[" + word + "]"
				}
			}
			value = strings.Join(words, " ")
		}
	}
	file, err := os.OpenFile(s.Path(path), flags, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value + "\n")
	return errors.Join(err, file.Close())
}

// Chosen returns the word in brackets of a file such as "mq-deadline [none]", and all its words.
func (s System) Chosen(path string) (string, []string) {
	var chosen string
	words := strings.Fields(s.Text(path))
	for i, word := range words {
		if strings.HasPrefix(word, "[") && strings.HasSuffix(word, "]") {
			chosen = word[1 : len(word)-1]
			words[i] = chosen
		}
	}
	if chosen == "" && len(words) == 1 {
		chosen = words[0]
	}
	return chosen, words
}

// Release is the kernel's release.
func (s System) Release() string { return s.Text("/proc/sys/kernel/osrelease") }

// Distribution returns ID and VERSION_ID of os-release.
func (s System) Distribution() (id, version string) {
	text := s.Text("/etc/os-release")
	if text == "" {
		text = s.Text("/usr/lib/os-release")
	}
	for line := range strings.SplitSeq(text, "\n") {
		key, value, _ := strings.Cut(line, "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			id = value
		case "VERSION_ID":
			version = value
		}
	}
	return id, version
}
