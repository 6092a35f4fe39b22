// SPDX-License-Identifier: Apache-2.0

// Package fill copies the files of a source into a directory. It reads several ranges at the same
// time, continues after an interruption, and verifies each file before it gives the file its name.
package fill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// File is one file of a source.
type File struct {
	Name   string `json:"name"` // relative, with slashes
	Size   int64  `json:"size"`
	Digest string `json:"digest,omitempty"` // SHA-256 in hexadecimal digits; empty: unknown
	Tag    string `json:"tag,omitempty"`    // the source's name for this version of the content
	Whole  bool   `json:"whole,omitempty"`  // the source cannot send parts of the file
	At     string `json:"-"`                // the place of the file, for the source
}

// Source sends files. Its errors never contain credentials.
type Source interface {
	// Files lists all files.
	Files(ctx context.Context) ([]File, error)
	// Open reads n bytes of a file, from an offset on. A read ends after n bytes, or fails. For
	// a file that the source can only send as a whole, the range is the whole file.
	Open(ctx context.Context, f File, from, n int64) (io.ReadCloser, error)
}

// final is an error that a repetition of the same request cannot change.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Final marks an error that a repetition of the same request cannot change.
func Final(err error) error { return final{err} }

func isFinal(err error) bool {
	var f final
	return errors.As(err, &f)
}

// Limits of a data set.
const (
	MostFiles = 10000
	MostName  = 1024
	mostPart  = 255
	mostDepth = 32
)

// reserved has the names at the top that belong to the driver.
var reserved = []string{stateDir, RecordFile, ".stargate"}

// RecordFile describes the data set. The caller writes it, and Run does not change it.
const RecordFile = ".stargate-dataset.json"

// CheckName refuses a name of a file that is not a plain path below the directory. A source is
// hostile: it may name a path outside, or a name that damages a terminal or a log.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > MostName:
		return fmt.Errorf("a file's name has %d bytes: must be 1 to %d", len(name), MostName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("file %q: the name has control characters, or is not UTF-8", name)
	case path.IsAbs(name) || path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return fmt.Errorf("file %q: the name is not a plain path below the data set", name)
	}
	parts := strings.Split(name, "/")
	if len(parts) > mostDepth || slices.ContainsFunc(parts, func(p string) bool { return len(p) > mostPart }) {
		return fmt.Errorf("file %q: a part of the name has more than %d bytes, or there are more than %d parts", name, mostPart, mostDepth)
	}
	if slices.Contains(reserved, parts[0]) {
		return fmt.Errorf("file %q: the driver uses this name itself", name)
	}
	return nil
}

// Plan has the files of one version of a data set, sorted by name.
type Plan struct {
	Files []File `json:"files"`
	Bytes int64  `json:"bytes"`
	// Tree is the expected digest of the list of all files (TreeDigest). Empty: each file has
	// its own digest.
	Tree string `json:"tree,omitempty"`
}

// NewPlan checks the files of a source. most limits the sum of their sizes.
func NewPlan(files []File, tree string, most int64) (Plan, error) {
	p := Plan{Files: slices.Clone(files), Tree: tree}
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if len(files) == 0 || len(files) > MostFiles {
		return Plan{}, fmt.Errorf("the source has %d files: must be 1 to %d", len(files), MostFiles)
	}
	dirs := map[string]bool{}
	for i, f := range p.Files {
		if err := CheckName(f.Name); err != nil {
			return Plan{}, err
		}
		if i > 0 && p.Files[i-1].Name == f.Name {
			return Plan{}, fmt.Errorf("the source has two files %q", f.Name)
		}
		for d := path.Dir(f.Name); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
		if f.Size < 0 || f.Size > most-p.Bytes {
			return Plan{}, fmt.Errorf("the source has more than %d bytes (spec.size)", most)
		}
		p.Bytes += f.Size
		if f.Digest == "" && tree == "" {
			return Plan{}, fmt.Errorf("file %q has no digest, and there is none for all files (spec.digest)", f.Name)
		}
	}
	for _, f := range p.Files {
		if dirs[f.Name] {
			return Plan{}, fmt.Errorf("the source has %q as a file and as a directory", f.Name)
		}
	}
	return p, nil
}

// Version identifies the contents: data sets with the same names, sizes and digests have the same
// version, wherever their files are.
func (p Plan) Version() string {
	p.Files = slices.Clone(p.Files)
	for i := range p.Files {
		p.Files[i].Tag, p.Files[i].Whole = "", false
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Plan has only texts and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// TreeDigest returns the digest of a list of files: SHA-256 of the lines that `sha256sum` prints
// for them, sorted by name.
func TreeDigest(files []File) string {
	h := sha256.New()
	sorted := slices.Clone(files)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range sorted {
		fmt.Fprintf(h, "%s  %s\n", f.Digest, f.Name)
	}
	return hex.EncodeToString(h.Sum(nil))
}
