// SPDX-License-Identifier: Apache-2.0

// Command rig runs scenarios on real kernels in virtual machines.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/chroot"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
)

// rig is what every sub-command works with.
type rig struct {
	home     string // the e2e folder
	cache    cache.Dir
	versions versions.Set
}

var commands = map[string]func(rig, []string) error{
	"fetch":            fetch,
	"build-module":     buildModule,
	"kernel-build-dir": kernelBuildDir,
}

func main() {
	chroot.Enter(os.Args[1:])
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		usage()
		os.Exit(2)
	}
	r, err := open()
	if err == nil {
		err = commands[os.Args[1]](r, os.Args[2:])
	}
	if err != nil {
		say.Line("%v", err)
		os.Exit(1)
	}
}

func open() (rig, error) {
	home := os.Getenv("RIG_HOME")
	if home == "" {
		return rig{}, fmt.Errorf("start me as e2e/rig")
	}
	dir, err := cache.Default()
	if err != nil {
		return rig{}, err
	}
	set, err := versions.Read(filepath.Join(filepath.Dir(home), "versions.env"))
	return rig{home: home, cache: dir, versions: set}, err
}

func usage() {
	var names []string
	for name := range commands {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: e2e/rig COMMAND ...\ncommands: %v\n", names)
}
