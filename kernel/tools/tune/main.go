// SPDX-License-Identifier: Apache-2.0

// stargate-tune shows the causes of a virtual machine's exits and wake-ups, and advises changes. It
// can also make and undo these changes.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

var version = "unversioned" // set by the linker

// usageError is an invalid command line: status 2.
type usageError struct{ error }

func usagef(format string, arguments ...any) error {
	return usageError{fmt.Errorf(format, arguments...)}
}

type command struct {
	name string
	help string
	run  func(*options, []string) error
	// flags that this command takes, by name
	flags []string
}

// init fills commands, because help, which is in the table, also prints it.
func commands() []command {
	return []command{
		{"measure", "show exits and wake-ups of all VMs of this host, or (--guest) the settings of this guest", measure,
			[]string{"guest", "seconds", "json", "svg", "symbols", "root"}},
		{"advise", "print which settings to change, why, the expected saving, and how to undo the change", advise,
			[]string{"seconds", "json", "from", "dedicated", "vm", "patch", "root"}},
		{"apply", "make the settings that advise prints for this guest, or those of the named rules", apply,
			[]string{"seconds", "json", "from", "dedicated", "dry-run", "root"}},
		{"undo", "restore everything as it was before apply", undo, []string{"json", "dry-run", "force", "root"}},
		{"status", "show the settings that apply has made, and their values now", status, []string{"json", "root"}},
		{"settle", "complete or undo a change that a crash has interrupted; a service does this at each boot", settle,
			[]string{"boot", "root"}},
	}
}

func main() {
	os.Exit(report(run(os.Args[1:])))
}

// report prints an error as one line, and returns the status.
func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "stargate-tune: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return usagef("a command is missing: one of measure, advise, apply, undo, status; --help explains them")
	}
	name, rest := arguments[0], arguments[1:]
	switch name {
	case "-h", "--help", "help":
		fmt.Print(help())
		return nil
	case "-V", "--version":
		fmt.Println("stargate-tune " + version)
		return nil
	}
	all := commands()
	i := slices.IndexFunc(all, func(one command) bool { return one.name == name })
	if i < 0 {
		return usagef("unknown command %q: use measure, advise, apply, undo or status", name)
	}
	if slices.Contains(rest, "-h") || slices.Contains(rest, "--help") {
		fmt.Print(help())
		return nil
	}
	o, words, err := parse(all[i], rest)
	if err != nil {
		return err
	}
	return all[i].run(o, words)
}

func help() string {
	text := "usage: stargate-tune COMMAND [OPTION]... [RULE]...\n\nCommands:\n"
	for _, one := range commands() {
		text += fmt.Sprintf("  %-9s %s\n", one.name, one.help)
	}
	return text + `
Options:
  --guest           (measure) this guest, instead of the VMs of this host
  --seconds N       measure for N seconds: 0.1 to 3600, 3 by default
  --from FILE       (advise, apply) use a measurement that measure --json made; may be repeated
  --dedicated       (advise, apply) each vCPU has a processor of its own
  --vm FILE         (advise) the VirtualMachine of KubeVirt that kubectl get vm NAME -o json prints
  --patch           (advise --vm) print only the patch, for kubectl patch vm NAME --type=json
  --symbols FILE    (measure) name addresses by a copy of the guest's /proc/kallsyms
  --svg FILE        (measure) draw a picture of the exits
  --dry-run         (apply, undo) say what would change, and change nothing
  --force           (undo) remove files that were changed since apply, too
  --json            print JSON
  --root DIR        work on the files below DIR, an image or a test, not on this machine
`
}
