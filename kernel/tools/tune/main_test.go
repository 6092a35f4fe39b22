// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root makes a guest with three things to change.
func root(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range map[string]string{
		"etc/os-release":                          "ID=debian\nVERSION_ID=12\n",
		"cpuid":                                   "KVMKVMKVM 0x1000 0\n",
		"var/lib/keep":                            "",
		"usr/bin/udevadm":                         "",
		"proc/cmdline":                            "quiet\n",
		"proc/sys/kernel/osrelease":               "6.1.0\n",
		"proc/sys/kernel/nmi_watchdog":            "1\n",
		"sys/devices/system/cpu/online":           "0\n",
		"sys/devices/virtio1/driver/x":            "",
		"sys/devices/virtio1/vda/queue/scheduler": "[mq-deadline] none\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"sys/block/vda": "../devices/virtio1/vda", "sys/devices/virtio1/driver": "../../bus/virtio_blk"} {
		link = filepath.Join(dir, link)
		_ = os.RemoveAll(link)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree returns the complete content of a folder as text.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Type()&fs.ModeSymlink != 0 {
			fmt.Fprintln(&all, path)
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %q\n", path, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// tune runs the program, and returns its output and its status.
func tune(t *testing.T, arguments ...string) (string, int) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, faults := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = write, write
	said := make(chan string)
	go func() {
		data, _ := io.ReadAll(read)
		said <- string(data)
	}()
	status := report(run(arguments))
	os.Stdout, os.Stderr = out, faults
	_ = write.Close()
	return <-said, status
}

func TestFromMeasureToUndo(t *testing.T) {
	dir := root(t)
	was := tree(t, dir)
	facts := filepath.Join(t.TempDir(), "guest.json")
	said, status := tune(t, "measure", "--guest", "--json", "--root", dir)
	if strings.Contains(said, "null") {
		t.Errorf("a list is null: %s", said)
	}
	if err := os.WriteFile(facts, []byte(said), 0o600); err != nil || status != 0 || !json.Valid([]byte(said)) {
		t.Fatal(said, status, err)
	}
	for _, one := range []struct {
		arguments, says string
	}{
		{"measure --guest", "virtio_blk"},
		{"measure", "no VM of KVM runs here"},
		{"measure --json", `"vms": []`},
		{"advise", "scheduler: no second I/O scheduler"},
		{"advise --from " + facts, "nmi-watchdog: no NMI watchdog in a guest"},
		{"advise --json", `"rule": "scheduler"`},
		{"status", "nothing is applied"},
		{"status --json", `"settings": []`},
		{"undo", "nothing to undo"},
		{"apply --dry-run", "would write: /etc/udev/rules.d/90-stargate-tune.rules"},
		{"apply --dry-run --json nmi-watchdog", `"dry_run": true`},
		{"settle", ""},
		{"settle --boot", ""},
	} {
		arguments := append(strings.Fields(one.arguments), "--root", dir)
		if said, status := tune(t, arguments...); status != 0 || !strings.Contains(said, one.says) {
			t.Errorf("%s: status %d, said %s", one.arguments, status, said)
		}
		if now := tree(t, dir); now != was {
			t.Fatalf("%s changed the system: %s", one.arguments, now)
		}
	}
	for _, one := range []struct {
		arguments, says string
	}{
		{"apply", "applied: /sys/block/vda/queue/scheduler = none (scheduler)"},
		{"apply", "nothing to change"},
		{"advise", "nothing to advise"},
		{"status", "kernel.nmi_watchdog = 0: applied (nmi-watchdog)"},
		{"undo --dry-run", "would restore: kernel.nmi_watchdog = 1"},
		{"undo", "restored: /sys/block/vda/queue/scheduler = mq-deadline"},
	} {
		if said, status := tune(t, append(strings.Fields(one.arguments), "--root="+dir)...); status != 0 || !strings.Contains(said, one.says) {
			t.Errorf("%s: status %d, said %s", one.arguments, status, said)
		}
	}
	if now := tree(t, dir); now != was {
		t.Errorf("undone: %s, was %s", now, was)
	}
	if said, status := tune(t, "apply", "nmi-watchdog", "--root", dir); status != 0 || strings.Contains(said, "scheduler") {
		t.Errorf("one rule: status %d, said %s", status, said)
	}
}

func TestRefusals(t *testing.T) {
	dir := root(t)
	unknown := root(t)
	if err := os.WriteFile(filepath.Join(unknown, "etc/os-release"), []byte("ID=other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "proc/cmdline")
	was := tree(t, dir) + tree(t, unknown)
	for _, one := range []struct {
		status          int
		arguments, says string
	}{
		{2, "", "a command is missing"},
		{2, "tune", "unknown command"},
		{2, "measure --no-such", "takes no option --no-such"},
		{2, "measure more", "takes no"},
		{2, "measure --seconds", "needs a value"},
		{2, "measure --seconds 0", "must be a number from 0.1 to 3600"},
		{2, "measure --seconds NaN", "must be a number"},
		{2, "measure --guest --svg x", "remove --guest"},
		{2, "measure --guest=yes", "takes no value"},
		{2, "measure --root /no/such", "must be an existing folder"},
		{2, "advise --patch", "--patch needs --vm"},
		{2, "apply no-such-rule", "is not a rule"},
		{2, "apply --force", "takes no option"},
		{2, "undo scheduler", "undoes all"},
		{1, "advise --from /no/such", "no such file"},
		{1, "advise --from " + bad, "is not a measurement"},
		{1, "advise --vm " + bad, "not JSON of a VirtualMachine"},
		{1, "measure --symbols " + bad + " --root " + dir, "has no symbols"},
		{1, "measure --svg /no/such/x.svg --root " + dir, "drawing the picture"},
		{1, "apply --root " + unknown, "nothing was changed"},
		{1, "apply --dry-run --root " + unknown, "unknown system"},
	} {
		said, status := tune(t, strings.Fields(one.arguments)...)
		if status != one.status || !strings.Contains(said, one.says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: status %d, said %q", one.arguments, status, said)
		}
	}
	if now := tree(t, dir) + tree(t, unknown); now != was {
		t.Errorf("a refusal changed: %s", now)
	}
}

func TestHelpNamesEveryOption(t *testing.T) {
	said, status := tune(t, "--help")
	for _, one := range commands() {
		if !strings.Contains(said, "\n  "+one.name+" ") {
			t.Errorf("no %s", one.name)
		}
		for _, flag := range one.flags {
			if !strings.Contains(said, "\n  --"+flag+" ") && flag != "boot" {
				t.Errorf("no --%s", flag)
			}
		}
	}
	if again, _ := tune(t, "apply", "--help"); status != 0 || again != said {
		t.Errorf("status %d", status)
	}
	if said, status := tune(t, "--version"); status != 0 || said != "stargate-tune unversioned\n" {
		t.Errorf("%q, %d", said, status)
	}
}

func TestPatchOfAVM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vm.json")
	object := `{"kind": "VirtualMachine", "spec": {"template": {"spec": {"domain": {"devices": {"disks": [{"name": "a", "disk": {"bus": "sata"}}]}}}}}}`
	if err := os.WriteFile(path, []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, status := tune(t, "advise", "--vm", path, "--patch"); status != 0 || !strings.HasPrefix(said, `[{"op":"test",`) {
		t.Errorf("%d, %s", status, said)
	}
	if said, status := tune(t, "advise", "--vm", path); status != 0 || !strings.Contains(said, "kubectl patch vm NAME --type=json") {
		t.Errorf("%d, %s", status, said)
	}
}
