// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/mirror"
)

// Build is one compilation of an out-of-tree module.
type Build struct {
	Kernel Kernel
	Source string   // folder with the Kbuild file
	Output string   // folder for the module and the products of its build
	Sparse bool     // also check every file with sparse
	Make   []string // further arguments of make
}

// Run builds the module. It copies the sources in the folder above Source. So the source tree stays
// unchanged, and builds for several kernels can run at the same time. Run does not compile
// unchanged sources again. A warning fails the build.
func (b Build) Run(messages io.Writer) error {
	source, err := filepath.Abs(b.Source)
	if err != nil {
		return err
	}
	output, err := filepath.Abs(b.Output)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return err
	}
	unlock, err := cache.Lock(filepath.Join(output, ".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	tree, name := filepath.Dir(source), filepath.Base(source)
	work := filepath.Join(output, "tree-"+b.Kernel.Release)
	if err := mirror.Sources(tree, work); err != nil {
		return fmt.Errorf("copying the sources of %s: %w", tree, err)
	}
	// Sparse must check every file each time. A self-built kernel's tree may have changed.
	lasting := !b.Sparse && b.Kernel.Tree == ""
	if lasting && b.done(name, work, output) {
		return nil
	}
	if err := b.undone(output); err != nil {
		return err
	}
	log, err := b.compile(tree, name, work, messages)
	if err != nil {
		return err
	}
	if b.Sparse && bytes.Contains(log, []byte("sparse is not available")) {
		return fmt.Errorf("the headers of %s do not support sparse: check with another kernel", b.Kernel.Release)
	}
	if warning := firstWarning(log); warning != "" {
		return fmt.Errorf("a warning is an error: %s", warning)
	}
	if err := deliver(filepath.Join(work, name), output); err != nil || !lasting {
		return err
	}
	return b.note(name, work, output)
}

// noteName is the name of a file that lists the inputs and products of a build, next to the
// products. If none of them has changed, the rig does not run make, which would take seconds to
// detect this.
const noteName = ".made-of"

// done reports whether the output is up to date.
func (b Build) done(name, work, output string) bool {
	noted, err := os.ReadFile(filepath.Join(output, noteName))
	if err != nil {
		return false
	}
	now, err := b.madeOf(name, work, output)
	return err == nil && now == string(noted)
}

// undone removes the note, before the output changes.
func (b Build) undone(output string) error {
	err := os.Remove(filepath.Join(output, noteName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// note writes the note, after the output is complete.
func (b Build) note(name, work, output string) error {
	now, err := b.madeOf(name, work, output)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(output, noteName), []byte(now), 0o644)
}

// madeOf returns the text of the note: the call of make, and the properties of each file that make
// compares.
func (b Build) madeOf(name, work, output string) (string, error) {
	var text strings.Builder
	fmt.Fprintln(&text, b.Kernel.Release, b.Kernel.Root, b.makeArgs(name))
	describe := func(path string) error {
		info, err := os.Stat(path)
		if err == nil {
			fmt.Fprintln(&text, path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	}
	err := filepath.WalkDir(work, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !mirror.IsSource(path) {
			return err
		}
		return describe(path)
	})
	if err != nil {
		return "", err
	}
	modules, err := filepath.Glob(filepath.Join(output, "*.ko"))
	if err != nil {
		return "", err
	}
	if modules == nil {
		return "", errors.New("the output has no module")
	}
	for _, module := range modules {
		if err := describe(module); err != nil {
			return "", err
		}
	}
	return text.String(), nil
}

// compile runs make on the copy of the sources and returns its output. A killed make may have left
// an incomplete object that looks complete, so compile removes the products of such a make.
func (b Build) compile(tree, name, work string, messages io.Writer) ([]byte, error) {
	busy := filepath.Join(work, ".busy")
	if _, err := os.Stat(busy); err == nil {
		if err := os.RemoveAll(work); err != nil {
			return nil, err
		}
		if err := mirror.Sources(tree, work); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(busy, nil, 0o644); err != nil {
		return nil, err
	}
	var log bytes.Buffer
	shown := &pathFilter{out: io.MultiWriter(messages, &log), from: "/mnt/src/", to: tree + "/"}
	if err := b.Kernel.Shell(work, shown, b.makeArgs(name)...); err != nil {
		// No signal has killed make, so make has removed unfinished products.
		if e := os.Remove(busy); e != nil {
			return nil, e
		}
		return nil, err
	}
	return log.Bytes(), os.Remove(busy)
}

func (b Build) makeArgs(name string) []string {
	args := []string{"make", "--no-print-directory", fmt.Sprintf("-j%d", runtime.NumCPU()),
		"-C", b.Kernel.BuildDir(), "M=/mnt/src/" + name,
		"KCFLAGS=-Werror",
		"CONFIG_DEBUG_INFO_BTF_MODULES=", // the root has no pahole, and no BTF of the kernel
	}
	if b.Sparse {
		args = append(args, "C=2", "CF=-Wsparse-error -D__CHECK_ENDIAN__")
	}
	return append(append(args, b.Make...), "modules")
}

// deliver copies the built modules to the output folder. Each module appears there only when its
// copy is complete.
func deliver(from, output string) error {
	modules, err := filepath.Glob(filepath.Join(from, "*.ko"))
	if err != nil {
		return err
	}
	if len(modules) == 0 {
		return errors.New("the build made no module: does the Kbuild file name one in obj-m?")
	}
	for _, module := range modules {
		if err := mirror.File(module, filepath.Join(output, filepath.Base(module))); err != nil {
			return err
		}
	}
	return nil
}

var warning = regexp.MustCompile(`(?im)^.*\bwarning:.*$`)

func firstWarning(log []byte) string {
	return string(warning.Find(log))
}

// pathFilter replaces the copies' paths in messages by the paths of the sources.
type pathFilter struct {
	out      io.Writer
	from, to string
	rest     []byte
}

func (f *pathFilter) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	end := bytes.LastIndexByte(f.rest, '\n') + 1
	lines := strings.ReplaceAll(string(f.rest[:end]), f.from, f.to)
	f.rest = append(f.rest[:0], f.rest[end:]...)
	if _, err := io.WriteString(f.out, lines); err != nil {
		return 0, err
	}
	return len(p), nil
}
