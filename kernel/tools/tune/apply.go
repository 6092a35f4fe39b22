// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"stargate/tune/internal/advice"
	"stargate/tune/internal/change"
)

// changer returns a Changer, which runs programs only on this machine. Below another root it prints
// the program to run.
func (o *options) changer() *change.Changer {
	warn := func(line string) { fmt.Fprintf(os.Stderr, "stargate-tune: %s\n", line) }
	return &change.Changer{Sys: o.sys, Warn: warn, Run: func(program string, arguments ...string) error {
		if !o.sys.Live() {
			warn("run this command in the system itself: " + program + " " + strings.Join(arguments, " "))
			return nil
		}
		out, err := exec.Command(program, arguments...).CombinedOutput()
		if err != nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
		}
		return nil
	}}
}

func (o *options) needRoot(what string) error {
	if o.sys.Live() && os.Geteuid() != 0 {
		return fmt.Errorf("%s needs root; nothing was changed", what)
	}
	return nil
}

func apply(o *options, names []string) error {
	for _, name := range names {
		if !slices.Contains(advice.Rules(), name) {
			return usagef("%q is not a rule: use some of %s", name, strings.Join(advice.Rules(), ", "))
		}
	}
	if !o.dryRun {
		if err := o.needRoot("apply"); err != nil {
			return err
		}
	}
	target, err := change.Look(o.sys)
	if err != nil {
		return err
	}
	in, err := o.input()
	if err != nil {
		return err
	}
	var settings []change.Setting
	for _, one := range advice.On(in) {
		if len(one.Settings) == 0 || len(names) > 0 && !slices.Contains(names, one.Rule) {
			continue
		}
		var refused error
		for _, setting := range one.Settings {
			if err := target.Supports(setting); err != nil {
				refused = err
			}
		}
		if refused != nil && len(names) > 0 {
			return fmt.Errorf("%s: %w; nothing was changed", one.Rule, refused)
		}
		if refused != nil {
			fmt.Fprintf(os.Stderr, "stargate-tune: left out: %s: %v\n", one.Rule, refused)
			continue
		}
		settings = append(settings, one.Settings...)
	}
	c := o.changer()
	var made []change.Setting
	var files []string
	if o.dryRun {
		made, files, err = c.Preview(settings)
	} else {
		made, err = c.Apply(settings)
	}
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(map[string]any{"settings": list(made), "dry_run": o.dryRun, "files": list(files)})
	}
	return showApplied(made, files, o.dryRun)
}

// list is never nil, so that JSON has [] and not null.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

func showApplied(made []change.Setting, files []string, dry bool) error {
	if len(made) == 0 {
		fmt.Println("nothing to change")
		return nil
	}
	word, boot := "applied", false
	if dry {
		word = "would apply"
	}
	for _, one := range made {
		fmt.Printf("%s: %s (%s)\n", word, one, one.Rule)
		boot = boot || one.Kind == change.Argument
	}
	for _, path := range files {
		fmt.Printf("would write: %s\n", path)
	}
	if boot && !dry {
		fmt.Println("kernel arguments take effect after the next boot")
	}
	if !dry {
		fmt.Println("`stargate-tune undo` restores everything")
	}
	return nil
}

func undo(o *options, words []string) error {
	if len(words) > 0 {
		return usagef("undo takes no %q: it undoes all settings of apply", words[0])
	}
	c := o.changer()
	if o.dryRun {
		s, err := c.Status()
		if err != nil {
			return err
		}
		return printUndone(o, s, "would restore")
	}
	if err := o.needRoot("undo"); err != nil {
		return err
	}
	s, err := c.Status()
	if err != nil {
		return err
	}
	if _, err := c.Undo(o.force); err != nil {
		return err
	}
	return printUndone(o, s, "restored")
}

func printUndone(o *options, s *change.Status, word string) error {
	if o.json {
		return printJSON(map[string]any{"settings": list(s.States), "files": list(s.Files), "dry_run": o.dryRun})
	}
	if s.Phase == "none" {
		fmt.Println("nothing to undo")
		return nil
	}
	for _, one := range s.States {
		switch {
		case one.Kind == change.Argument:
			fmt.Printf("%s: the kernel starts without the argument %s from the next boot on\n", word, one.Name)
		default:
			fmt.Printf("%s: %s = %s\n", word, one.Name, one.Old)
		}
	}
	return nil
}

func status(o *options, words []string) error {
	if len(words) > 0 {
		return usagef("status takes no %q: see --help", words[0])
	}
	s, err := o.changer().Status()
	if err != nil {
		return err
	}
	if o.json {
		s.States, s.Files, s.Changed = list(s.States), list(s.Files), list(s.Changed)
		return printJSON(s)
	}
	if s.Phase == "none" {
		fmt.Println("nothing is applied")
		return nil
	}
	if s.Phase != string(change.Applied) {
		fmt.Println("a change was interrupted: `stargate-tune settle` completes or undoes it")
	}
	for _, one := range s.States {
		now := ""
		if one.Word == "changed since" {
			now = " to " + one.Now
		}
		fmt.Printf("%s: %s%s (%s)\n", one.Setting, one.Word, now, one.Rule)
	}
	for _, path := range s.Changed {
		fmt.Printf("%s: changed since, or gone\n", path)
	}
	return nil
}

func settle(o *options, words []string) error {
	if len(words) > 0 {
		return usagef("settle takes no %q: see --help", words[0])
	}
	if err := o.needRoot("settle"); err != nil {
		return err
	}
	return o.changer().Settle(o.boot)
}
