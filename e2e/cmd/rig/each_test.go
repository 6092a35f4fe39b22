// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stargate/e2e/internal/versions"
)

func TestLimitOfAScript(t *testing.T) {
	for _, c := range []struct {
		script string
		limit  time.Duration
		bad    bool
	}{
		{"#!/bin/bash\n# limit: 60\ntrue\n", time.Minute, false},
		{"#!/bin/bash\n#\n\n# kernels: 6.12\n# limit:  1800\n", 30 * time.Minute, false},
		{"#!/bin/bash\ntrue\n# limit: 60\n", scriptLimit, false},
		{"#!/bin/bash\n# The limit: 60 of something\n", scriptLimit, false},
		{"", scriptLimit, false},
		{"# limit: 0\n", 0, true},
		{"# limit: 15m\n", 0, true},
	} {
		limit, err := limitOf(c.script)
		if limit != c.limit || (err != nil) != c.bad {
			t.Errorf("%q: %s, %v", c.script, limit, err)
		}
	}
}

func TestChecksOfAScript(t *testing.T) {
	for output, want := range map[string]string{
		"== a step\n   ok that\n12 checks, 3.4 s\n":       "12 checks",
		"5 checks, 1 s\nand on\n17 checks, 2 s\nrig: x\n": "17 checks",
		"0 checks, 1 s\n":       "",
		"   12 checks\n":        "12 checks", // only this text, without a line end before it
		"more than 12 checks\n": "",
		"12 checksums\n":        "",
		"":                      "",
	} {
		if got := checksIn([]byte(output)); got != want {
			t.Errorf("%q: %q", output, got)
		}
	}
}

// Each argument of --each is a script. The rig refuses options with which scripts cannot share the
// guests.
func TestEachScript(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := script("a.sh", "# limit: 7\n"), script("b", "true\n")
	again, bad := script("other/a.sh", ""), script("bad.sh", "# limit: soon\n")
	r := rig{versions: versions.Set{"KERNEL_DEFAULT": "debug"}}
	parse := func(args ...string) (*options, error) {
		o, err := parseOptions(r, "run", "", append([]string{"--each", dir}, args...))
		if err == nil {
			err = o.checkScript()
		}
		return o, err
	}
	o, err := parse(a, b)
	if err != nil {
		t.Fatal(err)
	}
	list, err := o.scripts()
	if err != nil || len(list) != 2 || list[0] != (oneOf{a, "a", 7 * time.Second}) || list[1] != (oneOf{b, "b", scriptLimit}) {
		t.Errorf("%+v, %v", list, err)
	}
	if time.Duration(o.timeout) < 24*time.Hour {
		t.Errorf("the whole run has a limit of %s", o.timeout.String())
	}
	if o, err = parse("--timeout", "3m", a); err != nil || time.Duration(o.timeout) != 3*time.Minute {
		t.Errorf("%v", err)
	}
	for _, args := range [][]string{
		{}, {"-c", "true"}, {"-c", "true", a}, {"-"}, {filepath.Join(dir, "none.sh")}, {dir}, {a, again}, {bad},
		{"--node", a}, {"--labels", a}, {"--share", "9p", a}, {"--tap", "tap0", a}, {"--disk", a, a}, {"--no-module", a},
	} {
		if _, err := parse(args...); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
