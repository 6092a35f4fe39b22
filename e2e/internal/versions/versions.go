// SPDX-License-Identifier: Apache-2.0

// Package versions reads versions.env, the file with all versions on which the project depends.
package versions

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// Set is the content of versions.env.
type Set map[string]string

// Read parses the file at path: KEY=value lines and comments.
func Read(path string) (Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	set := Set{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.ContainsAny(key, " \t") || strings.ContainsAny(value, " \t\"'") {
			return nil, fmt.Errorf("%s:%d: want KEY=value without quotes or spaces: %q", path, n, line)
		}
		if _, twice := set[key]; twice {
			return nil, fmt.Errorf("%s:%d: %s is set twice", path, n, key)
		}
		set[key] = value
	}
	return set, lines.Err()
}

// Get returns a required key.
func (s Set) Get(key string) (string, error) {
	value, ok := s[key]
	if !ok {
		return "", fmt.Errorf("versions.env has no %s", key)
	}
	return value, nil
}

// List returns a comma-separated key as a list.
func (s Set) List(key string) ([]string, error) {
	value, err := s.Get(key)
	if err != nil {
		return nil, err
	}
	return Split(value), nil
}

// Split cuts a list separated by commas or blanks and drops empty items.
func Split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}
