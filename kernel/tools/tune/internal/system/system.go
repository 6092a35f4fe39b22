// SPDX-License-Identifier: Apache-2.0

// Package system reads and writes files below a root folder. "/" is the machine itself; any other
// folder belongs to a test or an image. A missing file is not an error if a kernel may lack it.
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

// limit is the maximum size of a read. The files of /proc and /sys that this program reads are
// shorter.
const limit = 8 << 20

// entries is the maximum number of names in a listing of a folder.
const entries = 1 << 16

// System is a tree of files.
type System struct{ Root string }

// Live reports whether this system is the machine on which the program runs.
func (s System) Live() bool { return s.Root == "/" }

// Path returns the path of a system's file on this machine.
func (s System) Path(path string) string { return filepath.Join(s.Root, path) }

// Read returns the content of a file.
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

// Text returns a file's content without the white space around it, or nothing if it cannot be read.
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

// Real returns the path below the root with all symbolic links resolved, or nothing.
func (s System) Real(path string) string {
	real, err := filepath.EvalSymlinks(s.Path(path))
	if err != nil {
		return ""
	}
	return real
}

// List returns the sorted names in a folder, or none if the folder does not exist.
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

// Exists reports whether a path exists.
func (s System) Exists(path string) bool {
	_, err := os.Stat(s.Path(path))
	return err == nil
}

// Set writes a value to a file of /sys or /proc, which must exist. In another root it changes a
// file of choices as the kernel does: it moves the brackets to the chosen word.
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

// Release returns the kernel's release.
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
