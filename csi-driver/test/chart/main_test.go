// SPDX-License-Identifier: Apache-2.0

// Package chart tests charts/stargate. Helm's own library renders the chart in this process. The
// tests decode the objects as strictly as an API server, and compare their fields. `make
// test SUITE=chart` runs it.
package chart

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// home returns the root of the source tree.
const home = "../../.."

var checked atomic.Int64

// TestMain prints the number of checks. A run without checks fails, unless it only lists tests.
func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	fmt.Println(checked.Load(), "checks")
	lists := flag.Lookup("test.list").Value.String() != ""
	if checked.Load() == 0 && !lists {
		fmt.Fprintln(os.Stderr, "the chart's tests ran without a check")
		status = max(status, 1)
	}
	os.Exit(status)
}

// TestRunWithoutChecks runs this program without any test.
func TestRunWithoutChecks(t *testing.T) {
	for flag, passes := range map[string]bool{"-test.run=^$": false, "-test.list=^$": true} {
		said, err := exec.Command(os.Args[0], flag).CombinedOutput()
		check(t, (err == nil) == passes, "%s: %v, and it said %s", flag, err, said)
	}
}

// check counts one check, and fails the test if it does not hold.
func check(t *testing.T, ok bool, wrong string, about ...any) {
	t.Helper()
	checked.Add(1)
	if !ok {
		t.Errorf(wrong, about...)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	check(t, reflect.DeepEqual(got, want), "%s:\n got %#v\nwant %#v", what, got, want)
}

// contains checks that each of the given elements is in the list.
func contains(t *testing.T, what string, list []string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		check(t, slices.Contains(list, w), "%s: %q is not in %q", what, w, list)
	}
}

// lacks checks that the rendered text contains none of the given words.
func lacks(t *testing.T, r *rendering, words ...string) {
	t.Helper()
	for _, w := range words {
		check(t, !strings.Contains(r.text, w), "%s has %q", r.name, w)
	}
}

// sorted returns a sorted copy.
func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// run starts a program of the tree with its root as the working folder.
func run(program string, args ...string) (string, error) {
	command := exec.Command(program, args...)
	command.Dir = home
	said, err := command.CombinedOutput()
	return string(said), err
}
