// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stargate/e2e/internal/versions"
)

func parseAll(args ...string) (*options, error) {
	return parseOptions(rig{versions: versions.Set{"KERNEL_DEFAULT": "debug"}}, "run", "SCRIPT", args)
}

func TestDefaults(t *testing.T) {
	o, err := parseAll("script", "plain", "-", "--", "--not-a-flag", "--")
	if err != nil {
		t.Fatal(err)
	}
	if o.guests != 1 || o.size != 256<<20 || o.memory != 1536<<20 || len(o.kernels) != 1 || o.kernels[0] != "debug" || o.noMount ||
		!reflect.DeepEqual(o.script, []string{"script", "plain", "-", "--not-a-flag", "--"}) {
		t.Errorf("got %+v", o)
	}
}

func TestFlags(t *testing.T) {
	one, other := t.TempDir(), filepath.Join(t.TempDir(), "a b")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := parseAll("--guests", "2", "--size", "1G", "--pkgs", "python3 attr", "--pkgs", "acl",
		"--mount-opts", "map=walk", "--mount-opts", "ro,noatime", "--copy-in", other, "--copy-in", one, "--no-module", "-c", "true")
	if err != nil {
		t.Fatal(err)
	}
	if o.guests != 2 || o.size != 1<<30 || o.mountOpts.String() != "map=walk,ro,noatime" || !o.noMount || o.text != "true" ||
		!reflect.DeepEqual([]string(o.packages), []string{"python3", "attr", "acl"}) ||
		!reflect.DeepEqual([]string(o.copyIn), []string{other, one}) {
		t.Errorf("got %+v", o)
	}
}

func TestRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--guests", "0"}, {"--guests", "17"}, {"--size", "3M"}, {"--size", "0"}, {"--size", "many"}, {"--mem", "13G"},
		{"--cpus", "0"}, {"--share", "nfs"}, {"--share", "9p", "--share", "9p"}, {"--icount", "--share", "9p"}, {"--icount", "--net"}, {"--icount", "--bells"}, {"--no-module", "--bells"}, {"--node", "--no-mount", "--bells"}, {"--icount", "--cpus", "2"}, {"--icount", "--guests", "2"},
		{"--cpus", "256"}, {"--size", "1T"}, {"--timeout", "0s"}, {"--timeout", "5"}, {"--no-such-flag"}, {"--guests"},
		{"--kernel", "2.4"}, {"--kernel", "debug,2.4"}, {"--kernel", "debug,"}, {"--kernel", "/no/such/kernel"}, {"--pkgs", "a;b"}, {"--pkgs", "--x"},
		{"--copy-in", "/no/such/file"}, {"--copy-in", ""}, {"--copy-in", "/"}, {"--copy-in", "/dev/null"}, {"--mem", "0"}, {"--mem", "128M", "--kernel", "6.12"},
		{"--mem", "512M", "--kernel", "debug"}, {"--size", "14M"}, {"--labels", "--pages"},
		{"--append", strings.Repeat("word ", 300)}, {"--copy-in", "/etc", "--copy-in", "/usr/../etc"},
	} {
		_, err := parseAll(append(args, "script")...)
		var m misuse
		if !errors.As(err, &m) || strings.Contains(m.Error(), "\n") {
			t.Errorf("%v: not refused in one line: %v", args, err)
		}
	}
}

// The rig refuses a flag after the script, because it would pass the flag to the script.
func TestFlagsAfterTheScript(t *testing.T) {
	for _, args := range [][]string{
		{"script", "--kernel", "debug"}, {"script", "argument", "-h"}, {"-", "--pages"}, {"-c", "true", "argument", "--pages"},
	} {
		_, err := parseAll(args...)
		var m misuse
		if !errors.As(err, &m) || !strings.Contains(m.Error(), "put flags before") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// Options of a guest that is the node of a cluster.
func TestMember(t *testing.T) {
	disk := t.TempDir() + "/disk"
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parseAll("--tap", "n2", "--disk", disk, "--nested", "--mem", "3G", "script")
	if err != nil || o.tap != "n2" || o.disk != disk || !o.nested || o.memory != 3<<30 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range [][]string{
		{"--tap", "n2,script=yes"}, {"--tap", "n2", "--net"}, {"--tap", "n2", "--guests", "2"}, {"--tap", "n2", "--icount"},
		{"--disk", "/no/such/file"}, {"--disk", "/dev/null"}, {"--disk", disk, "--guests", "2"}, {"--disk", disk, "--node"},
		{"--nested", "--cpus", "2"}, {"--nested", "--node"}, {"--nested", "--icount"},
	} {
		_, err := parseAll(append(args, "script")...)
		var m misuse
		if !errors.As(err, &m) || strings.Contains(m.Error(), "\n") {
			t.Errorf("%v: not refused in one line: %v", args, err)
		}
	}
}

func TestMemory(t *testing.T) {
	for kernelName, want := range map[string]size{"debug": 1536 << 20, "6.12": 512 << 20} {
		if got := defaultMemory([]string{"6.1", kernelName}, false); got != want {
			t.Errorf("%s: %s", kernelName, got)
		}
	}
	if o, err := parseAll("--mem", "1G", "--size", "2M", "--no-mount", "script"); err != nil || o.memory != 1<<30 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parseAll("--labels", "--size", "2M", "script"); err != nil || !o.labels || !o.noMount {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestNode(t *testing.T) {
	set := versions.Set{"KERNEL_DEFAULT": "6.12", "KERNELS": "6.12", "KERNEL_BUILD_PACKAGES": "make",
		"KERNEL_6_12_SUITE": "trixie", "KERNEL_6_12_IMAGE": "image", "KERNEL_6_12_HEADERS": "headers"}
	parseNode := func(args ...string) (*options, error) {
		return parseOptions(rig{versions: set}, "run", "SCRIPT", append(args, "script"))
	}
	o, err := parseNode("--node", "--guests", "2", "--zone", "dram")
	if err != nil || !o.node || o.nodeOn != "6.12" || o.zone != zoneDRAM || o.memory != 384<<20 {
		t.Errorf("got %+v, %v", o, err)
	}
	if _, err := parseNode("--node", "--guests", "0"); err != nil {
		t.Errorf("the rig refuses a node without guests: %v", err)
	}
	if _, err := parseNode("--node", "--no-mount", "--size", "2M"); err != nil {
		t.Errorf("the rig refuses a node in which the script mounts the volume: %v", err)
	}
	for _, args := range [][]string{
		{"--zone", "dram"}, {"--node-kernel", "6.12"}, {"--node", "--zone", "disk"}, {"--node", "--no-module"},
		{"--node", "--icount"}, {"--node", "--labels"}, {"--node", "--share", "9p"}, {"--node", "--net"}, {"--node", "--guests", "16", "--mem", "1G"}, {"--node", "--node-kernel", "2.4"},
	} {
		_, err := parseNode(args...)
		var m misuse
		if !errors.As(err, &m) || strings.Contains(m.Error(), "\n") {
			t.Errorf("%v: not refused in one line: %v", args, err)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"4096": 4096, "2k": 2 << 10, "256M": 256 << 20, "1GiB": 1 << 30, "16T": 16 << 40} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%s: %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "M", "-1", "1.5G", "99999999T", "1P"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("accepted: %q", text)
		}
	}
	if s := size(3 << 20); s.String() != "3M" {
		t.Errorf("got %s", s)
	}
}
