// SPDX-License-Identifier: Apache-2.0

// Command rig runs scenarios on real kernels in virtual machines.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/chroot"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
)

// rig is the common state of all sub-commands.
type rig struct {
	home     string // the e2e folder
	cache    cache.Dir
	versions versions.Set
}

// command is a sub-command.
type command struct {
	help string
	run  func(rig, []string) error
}

func commands() map[string]command {
	return map[string]command{
		"run":              {"run a scenario on guests with a shared volume", run},
		"shell":            {"start the same guests, and open a shell in the first", shell},
		"attach":           {"run a shell or a command in a guest of a run in progress", attach},
		"doctor":           {"print the machine's capabilities and missing requirements", doctor},
		"clean":            {"remove the rig's caches", clean},
		"fetch":            {"fill the caches, so that later runs need no network", fetch},
		"build-module":     {"compile a module for a kernel; a warning is an error", buildModule},
		"debug-kernel":     {"build the kernel of --kernel debug: KASAN, lockdep, kmemleak", debugKernel},
		"kernel-build-dir": {"print the folder against which modules are built", kernelBuildDir},
		"qemu":             {"run the emulator, for machines that are not the rig's guests", qemu},
		"judge":            {"find lines in kernel logs that tests forbid", judge},
	}
}

// status is an error that ends the rig with an exit status and without a message.
type status int

func (s status) Error() string { return fmt.Sprintf("status %d", int(s)) }

// The rig's own exit statuses. In all other cases, a run ends with the status of its script.
const (
	statusMisuse  = 2
	statusUnsound = 123 // the script succeeded, but a kernel log or the volume had an error
	statusTimeout = 124
	statusRig     = 125 // the rig could not do its work
)

func main() {
	chroot.Enter(os.Args[1:])
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case clientCommand:
			os.Exit(client(os.Args[2:]))
		case keeperCommand:
			os.Exit(keep(os.Args[2:]))
		}
	}
	err := dispatch(os.Args[1:])
	var code status
	var wrong misuse
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case errors.As(err, &wrong):
		say.Line("%s", wrong)
		os.Exit(statusMisuse)
	case err != nil:
		say.Line("%v", err)
		os.Exit(statusRig)
	}
}

// dispatch calls the sub-command that the first argument names.
func dispatch(args []string) error {
	if len(args) == 0 {
		usage(os.Stderr)
		return status(statusMisuse)
	}
	switch args[0] {
	case "-h", "--help", "help":
		usage(os.Stdout)
		return nil
	}
	c, ok := commands()[args[0]]
	if !ok {
		return misused("unknown command %q; e2e/rig -h lists the commands", args[0])
	}
	r, err := open()
	if err != nil {
		return err
	}
	return c.run(r, args[1:])
}

func open() (rig, error) {
	home := os.Getenv("RIG_HOME")
	if home == "" {
		return rig{}, fmt.Errorf("start this program as e2e/rig")
	}
	dir, err := cache.Default()
	if err != nil {
		return rig{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return rig{}, err
	}
	// The rig's program is in the cache, with one folder for each state of its sources.
	if own := filepath.Dir(self); filepath.Dir(own) == string(dir) {
		if err := dir.Hold(own); err != nil {
			return rig{}, err
		}
		if err := dir.Prune("rig"); err != nil {
			return rig{}, err
		}
	}
	set, err := versions.Read(filepath.Join(filepath.Dir(home), "versions.env"))
	return rig{home: home, cache: dir, versions: set}, err
}

func usage(to io.Writer) {
	all := commands()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintln(to, "usage: e2e/rig COMMAND ...   (see e2e/README.md; -h after a command lists its flags)")
	for _, name := range names {
		fmt.Fprintf(to, "  %-17s %s\n", name, all[name].help)
	}
}
