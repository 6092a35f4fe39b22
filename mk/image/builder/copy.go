// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// ignored returns the patterns of .dockerignore for files that do not belong to the context.
type ignored struct {
	patterns *patternmatcher.PatternMatcher
}

func readIgnored(context string) (*ignored, error) {
	f, err := os.Open(filepath.Join(context, ".dockerignore"))
	if errors.Is(err, fs.ErrNotExist) {
		return &ignored{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := ignorefile.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	p, err := patternmatcher.New(lines)
	if err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	return &ignored{p}, nil
}

func (i *ignored) has(path string) (bool, error) {
	if i == nil || i.patterns == nil {
		return false, nil
	}
	return i.patterns.MatchesOrParentMatches(path)
}

// source is the folder from which a COPY copies: the context, or another stage's files.
type source struct {
	dir    string
	ignore *ignored
}

// copyTo executes COPY SOURCE... TARGET in root; TARGET is relative to workdir.
func (b *builder) copyTo(ctx context.Context, s step, vars *variables, root, workdir string) error {
	from, mode, err := b.copyFlags(ctx, s)
	if err != nil {
		return err
	}
	if len(s.args) < 2 {
		return s.refuse("COPY SOURCE... TARGET")
	}
	words := make([]string, len(s.args))
	for i, arg := range s.args {
		if words[i], err = vars.expand(s, arg); err != nil {
			return err
		}
		if strings.ContainsAny(words[i], "*?[") {
			return s.refuse("COPY %s: patterns are not supported", words[i])
		}
	}
	target := words[len(words)-1]
	folder := strings.HasSuffix(target, "/") || len(words) > 2
	if !filepath.IsAbs(target) {
		target = filepath.Join(workdir, target)
	}
	for _, word := range words[:len(words)-1] {
		if err := from.copy(word, filepath.Join(root, target), folder, mode); err != nil {
			return s.refuse("%v", err)
		}
	}
	return nil
}

// copyFlags reads --from=STAGE and --chmod=MODE; mode 0 leaves the files' modes unchanged.
func (b *builder) copyFlags(ctx context.Context, s step) (source, fs.FileMode, error) {
	from := source{dir: b.context, ignore: b.ignore}
	var mode fs.FileMode
	for _, flag := range s.flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "--from":
			st := b.recipe.stage(value)
			if st == nil {
				return from, 0, s.refuse("%s: no stage has that name", flag)
			}
			d, err := b.execute(ctx, st)
			if err != nil {
				return from, 0, err
			}
			from = source{dir: d.dir}
		case "--chmod":
			n, err := strconv.ParseUint(value, 8, 12)
			if err != nil {
				return from, 0, s.refuse("%s: an octal mode", flag)
			}
			mode = fs.FileMode(n)
		default:
			return from, 0, s.refuse("COPY %s is not supported", name)
		}
	}
	return from, mode, nil
}

// copy copies a file, or a folder's content, to target.
func (src source) copy(word, target string, folder bool, mode fs.FileMode) error {
	path := filepath.Join(src.dir, filepath.Join("/", word)) // never above root
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("COPY %s: %w", word, errors.Unwrap(err))
	}
	if info.IsDir() {
		return src.tree(path, target, mode)
	}
	if folder {
		target = filepath.Join(target, filepath.Base(path))
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return copyFile(path, target, info, mode)
}

func (src source) tree(from, to string, mode fs.FileMode) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(src.dir, path)
		if err != nil {
			return err
		}
		skip, err := src.ignore.has(inside)
		if err != nil || skip {
			if skip && e.IsDir() {
				return fs.SkipDir
			}
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		return copyFile(path, target, info, mode)
	})
}

func copyFile(from, to string, info fs.FileInfo, mode fs.FileMode) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(link, to)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither file, folder nor link", from)
	}
	if mode == 0 {
		mode = info.Mode().Perm()
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Chmod(mode); err != nil { // independent of this process's umask
		out.Close()
		return err
	}
	return out.Close()
}
