// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"stargate/e2e/internal/kernel"
)

// misuse is the error of an invalid command line. Its message is one line. The rig prints it before
// it fetches, makes or starts anything.
type misuse string

func (m misuse) Error() string { return string(m) }

func misused(format string, args ...interface{}) error {
	return misuse(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

// parse reads the flags of a sub-command. rest describes the other arguments. Their number must be
// at least `least`, and at most `most`, unless `most` is negative.
func parse(flags *flag.FlagSet, rest string, least, most int, args []string) error {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	name := flags.Name()
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Printf("usage: e2e/rig %s\n", strings.Join(strings.Fields(name+" [FLAG]... "+rest), " "))
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return status(0)
	}
	if err != nil {
		return misused("%s: %v; e2e/rig %s -h lists its flags", name, err, name)
	}
	switch n := flags.NArg(); {
	case n < least:
		return misused("%s wants %s", name, rest)
	case most >= 0 && n > most:
		return misused("%s: unexpected argument %q", name, flags.Arg(most))
	}
	return nil
}

// operands returns the words after the flags, without the first "--". It returns an error if a word
// before "--" looks like a flag, because the rig reads no flags after the first other word.
func operands(name string, words []string) ([]string, error) {
	for i, word := range words {
		if word == "--" {
			return append(words[:i:i], words[i+1:]...), nil
		}
		if i > 0 && len(word) > 1 && word[0] == '-' {
			return nil, misused("%s: %s comes after %s: put flags before it, and put -- before its own arguments that begin with -", name, word, words[0])
		}
	}
	return words, nil
}

// checkKernel returns an error for an unknown kernel.
func (r rig) checkKernel(name string) error {
	if name == kernel.DebugName {
		return nil
	}
	if strings.ContainsRune(name, '/') {
		if _, err := kernel.Own(name); err != nil {
			return misused("kernel: %v", err)
		}
		return nil
	}
	if err := kernel.Known(r.versions, name); err != nil {
		return misused("%v", err)
	}
	return nil
}

// checkFolder returns an error unless the path is a folder. If the caller names files, the folder
// must have one of them.
func checkFolder(what, path string, files ...string) error {
	info, err := os.Stat(path)
	if err != nil {
		return misused("%s: %v", what, err)
	}
	if !info.IsDir() {
		return misused("%s: %s is not a folder", what, path)
	}
	for _, name := range files {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return nil
		}
	}
	if len(files) > 0 {
		return misused("%s: %s has no %s", what, path, strings.Join(files, " and no "))
	}
	return nil
}
