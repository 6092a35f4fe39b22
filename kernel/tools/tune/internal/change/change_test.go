// SPDX-License-Identifier: Apache-2.0

package change

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stargate/tune/internal/system"
)

// guest makes the tree of a Debian guest with the files that settings change.
func guest(t *testing.T, more map[string]string) system.System {
	t.Helper()
	sys := system.System{Root: t.TempDir()}
	files := map[string]string{
		"/etc/os-release":                             "ID=debian\nVERSION_ID=\"13\"\n",
		"/cpuid":                                      "KVMKVMKVM 0x1 0x0\n",
		"/var/lib/.keep":                              "",
		"/etc/default/grub":                           "GRUB_CMDLINE_LINUX_DEFAULT=quiet\n",
		"/usr/sbin/update-grub":                       "",
		"/usr/bin/udevadm":                            "",
		"/etc/sysctl.d/README":                        "",
		"/proc/cmdline":                               "quiet\n",
		"/proc/sys/kernel/nmi_watchdog":               "1\n",
		"/proc/sys/kernel/printk":                     "7\t4\t1\t7\n",
		"/sys/block/vda/queue/scheduler":              "[mq-deadline] kyber none\n",
		"/sys/class/net/eth0/napi_defer_hard_irqs":    "0\n",
		"/boot/grub/grub.cfg":                         "linux quiet\n",
		"/etc/udev/rules.d/10-others.rules":           "# of others\n",
		"/sys/devices/system/cpu/online":              "0-1\n",
		"/etc/default/grub.d/00-others.cfg":           "# of others\n",
		"/sys/class/bdi/0:50/read_ahead_kb":           "128\n",
		"/sys/class/net/eth0/gro_flush_timeout":       "0\n",
		"/sys/devices/system/clocksource/clocksource": "",
	}
	maps.Copy(files, more)
	for path, text := range files {
		write(t, sys, path, text)
	}
	return sys
}

func write(t *testing.T, sys system.System, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(sys.Path(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sys.Path(path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree returns the content of a root: names, modes and contents of files.
func tree(t *testing.T, sys system.System) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(sys.Root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, sys.Root)
		if entry.IsDir() {
			found[name] = info.Mode().String()
			return nil
		}
		data, err := os.ReadFile(path)
		found[name] = fmt.Sprintf("%s %x %q", info.Mode(), sha256.Sum256(data), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func sameTree(t *testing.T, when string, want, got map[string]string) {
	t.Helper()
	for name, is := range want {
		if got[name] != is {
			t.Errorf("%s: %s is %s, and was %s", when, name, got[name], is)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s: %s is left", when, name)
		}
	}
}

// updateGrub works like Debian's: it puts the words of the drop-ins into a new grub.cfg, which
// atomically replaces the old one.
func updateGrub(sys system.System) func(string, ...string) error {
	return func(program string, _ ...string) error {
		if program != "/usr/sbin/update-grub" {
			return nil
		}
		line := "linux quiet"
		for _, name := range sys.List("/etc/default/grub.d") {
			for text := range strings.SplitSeq(sys.Text("/etc/default/grub.d/"+name), "\n") {
				if words, ours := strings.CutPrefix(text, `GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT `); ours {
					line += " " + strings.TrimSuffix(words, `"`)
				}
			}
		}
		if err := os.WriteFile(sys.Path(grubConfig)+".new", []byte(line+"\n"), 0o644); err != nil {
			return err
		}
		return os.Rename(sys.Path(grubConfig)+".new", sys.Path(grubConfig))
	}
}

var settings = []Setting{
	{"scheduler", Attribute, "/sys/block/vda/queue/scheduler", "none", `SUBSYSTEM=="block", KERNEL=="vd*"`},
	{"nmi-watchdog", Sysctl, "kernel.nmi_watchdog", "0", ""},
	{"serial-console", Sysctl, "kernel.printk", "4 4 1 7", ""},
}

var withArgument = append(slices.Clone(settings), Setting{"haltpoll", Argument, "cpuidle_haltpoll.force=1", "", ""})

// kinds lists kinds of systems, which store settings in different ways.
var kinds = map[string]struct {
	files    map[string]string
	settings []Setting
}{
	"files":     {nil, settings},
	"arguments": {nil, withArgument},
	"tuned": {map[string]string{"/usr/sbin/tuned": "", "/etc/tuned/active_profile": "throughput-performance\n",
		"/etc/tuned/profile_mode": "auto\n"}, withArgument},
	"tuned of trixie": {map[string]string{"/usr/sbin/tuned": "", "/usr/lib/tuned/profiles/x/tuned.conf": ""}, settings},
	"no folders":      {map[string]string{}, withArgument},
}

func prepared(t *testing.T, name string) (system.System, []Setting) {
	kind := kinds[name]
	sys := guest(t, kind.files)
	if name == "no folders" {
		for _, path := range []string{"/etc/sysctl.d", "/etc/udev", "/etc/default/grub.d"} {
			if err := os.RemoveAll(sys.Path(path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return sys, kind.settings
}

func changer(sys system.System) *Changer { return &Changer{Sys: sys, Run: updateGrub(sys)} }

func TestApplyAndUndo(t *testing.T) {
	for name := range kinds {
		t.Run(name, func(t *testing.T) {
			sys, wanted := prepared(t, name)
			c := changer(sys)
			was := tree(t, sys)
			made, err := c.Apply(wanted)
			if err != nil {
				t.Fatal(err)
			}
			if len(made) != len(wanted) {
				t.Errorf("made %d settings of %d", len(made), len(wanted))
			}
			for path, want := range map[string]string{"/sys/block/vda/queue/scheduler": "mq-deadline kyber [none]",
				"/proc/sys/kernel/nmi_watchdog": "0", "/proc/sys/kernel/printk": "4 4 1 7"} {
				if got := sys.Text(path); got != want {
					t.Errorf("%s is %q, should be %q", path, got, want)
				}
			}
			applied := tree(t, sys)
			if again, err := c.Apply(wanted); err != nil || len(again) != 0 {
				t.Errorf("applied again: %v, %v", again, err)
			}
			sameTree(t, "applied again", applied, tree(t, sys))
			status, err := c.Status()
			if err != nil || status.Phase != string(Applied) || len(status.States) != len(wanted) {
				t.Errorf("status %+v, %v", status, err)
			}
			if r, err := c.Undo(false); err != nil || r == nil {
				t.Fatal(r, err)
			}
			sameTree(t, "undone", was, tree(t, sys))
			if r, err := c.Undo(false); err != nil || r != nil {
				t.Errorf("undone again: %v, %v", r, err)
			}
			sameTree(t, "undone again", was, tree(t, sys))
		})
	}
}

func TestFiles(t *testing.T) {
	sys, wanted := prepared(t, "arguments")
	if _, err := changer(sys).Apply(wanted); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		sysctlFile: header + "kernel.nmi_watchdog = 0\nkernel.printk = 4 4 1 7\n",
		udevFile:   header + "SUBSYSTEM==\"block\", KERNEL==\"vd*\", ATTR{queue/scheduler}=\"none\"\n",
		grubFile:   header + "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT cpuidle_haltpoll.force=1\"\n",
		grubConfig: "linux quiet cpuidle_haltpoll.force=1\n",
	} {
		if got, _ := sys.Read(path); got != want {
			t.Errorf("%s: %q, should be %q", path, got, want)
		}
	}
	sys, wanted = prepared(t, "tuned")
	if _, err := changer(sys).Apply(wanted); err != nil {
		t.Fatal(err)
	}
	want := header + "[main]\nsummary=settings of stargate-tune\ninclude=throughput-performance\n" +
		"\n[sysctl]\nkernel.nmi_watchdog=0\nkernel.printk=4 4 1 7\n" +
		"\n[sysfs]\n/sys/block/vda/queue/scheduler=none\n"
	if got, _ := sys.Read("/etc/tuned/stargate-tune/tuned.conf"); got != want {
		t.Errorf("profile: %q, should be %q", got, want)
	}
	if got := sys.Text("/etc/tuned/active_profile"); got != profile {
		t.Errorf("active profile: %q", got)
	}
	if sys.Exists(sysctlFile) || sys.Exists(udevFile) {
		t.Error("apply wrote files beside the profile")
	}
}

// crash ends a change at a step, as a power cut does: no code of the change runs afterwards.
type crash struct{}

// until runs a change up to step n; it returns true if the change ended before.
func until(c *Changer, n int, change func() error) (ended bool, name string, err error) {
	defer func() {
		c.step = nil
		if caught := recover(); caught != nil {
			if _, ours := caught.(crash); !ours {
				panic(caught)
			}
		}
	}()
	count := 0
	c.step = func(at string) {
		if count++; count > n {
			name = at
			panic(crash{})
		}
	}
	err = change()
	return true, "", err
}

// boot simulates a boot: the kernel's values are reset, then the files of sysctl, udev, tuned and
// the boot loader take effect, and then the service runs settle.
func boot(t *testing.T, c *Changer) {
	t.Helper()
	sys := c.Sys
	write(t, sys, "/proc/cmdline", strings.TrimPrefix(sys.Text(grubConfig), "linux ")+"\n")
	for path, text := range map[string]string{"/proc/sys/kernel/nmi_watchdog": "1\n", "/proc/sys/kernel/printk": "7\t4\t1\t7\n",
		"/sys/block/vda/queue/scheduler": "[mq-deadline] kyber none\n"} {
		write(t, sys, path, text)
	}
	active := sys.Text("/etc/tuned/active_profile") == profile
	tuned := ""
	for _, at := range []string{"/etc/tuned/", "/etc/tuned/profiles/"} {
		if active {
			tuned += sys.Text(at + profile + "/tuned.conf")
		}
	}
	if strings.Contains(sys.Text(sysctlFile)+tuned, "nmi_watchdog") {
		write(t, sys, "/proc/sys/kernel/nmi_watchdog", "0\n")
		write(t, sys, "/proc/sys/kernel/printk", "4\t4\t1\t7\n")
	}
	if strings.Contains(sys.Text(udevFile)+tuned, "scheduler") {
		write(t, sys, "/sys/block/vda/queue/scheduler", "mq-deadline kyber [none]\n")
	}
	if err := c.Settle(true); err != nil {
		t.Fatalf("settling: %v", err)
	}
}

// state returns which settings are in effect: all, none, or a mixture.
func state(sys system.System, wanted []Setting) string {
	all, none := true, true
	for _, one := range wanted {
		var is bool
		if one.Kind == Argument {
			is = slices.Contains(strings.Fields(sys.Text("/proc/cmdline")), one.Name)
		} else {
			now, _ := one.now(sys)
			is = same(now, one.Value)
		}
		all, none = all && is, none && !is
	}
	switch {
	case all:
		return "all"
	case none:
		return "none"
	default:
		return "a mixture"
	}
}

// Two kinds of crash: after a power cut the system boots; or only the program dies, and runs again.
func TestCrashAtEachStep(t *testing.T) {
	for name := range kinds {
		for _, verb := range []string{"apply", "undo"} {
			for _, after := range []string{"boot", "undo", "apply", "settle"} {
				if name != "arguments" && (after == "apply" || after == "settle") {
					continue // as many steps as for undo
				}
				t.Run(name+"/"+verb+"/"+after, func(t *testing.T) {
					crashes(t, name, verb, after)
				})
			}
		}
	}
}

func crashes(t *testing.T, name, verb, after string) {
	seen := map[string]int{}
	for n := 0; ; n++ {
		sys, wanted := prepared(t, name)
		c := changer(sys)
		was := tree(t, sys)
		if verb == "undo" {
			if _, err := c.Apply(wanted); err != nil {
				t.Fatal(err)
			}
			if name == "arguments" || name == "tuned" || name == "no folders" {
				boot(t, c) // so that the running kernel has the arguments
			}
		}
		ended, step, err := until(c, n, func() error {
			if verb == "undo" {
				_, err := c.Undo(false)
				return err
			}
			_, err := c.Apply(wanted)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			break
		}
		when := fmt.Sprintf("%s, crash at step %d (%s), then %s", verb, n, step, after)
		switch after {
		case "boot":
			boot(t, c)
		case "settle":
			err = c.Settle(false)
		case "apply":
			_, err = c.Apply(wanted)
		}
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		is := state(sys, wanted)
		if after == "boot" {
			if is == "a mixture" {
				t.Errorf("%s: a mixture of settings", when)
			}
			seen[is]++
			// The files match the values, so the next boot results in the same state.
			boot(t, c)
			if again := state(sys, wanted); again != is {
				t.Errorf("%s: %s after one boot, %s after two", when, is, again)
			}
		}
		if r, err := load(sys); err != nil || r != nil && r.Phase != Applied && after != "undo" {
			t.Errorf("%s: record %+v, %v", when, r, err)
		}
		if _, err := c.Undo(false); err != nil {
			t.Fatalf("%s: undo: %v", when, err)
		}
		write(t, sys, "/proc/cmdline", "quiet\n")
		sameTree(t, when, was, tree(t, sys))
		if t.Failed() {
			return
		}
	}
	if after == "boot" && (seen["all"] == 0 || seen["none"] == 0) {
		t.Errorf("the crashes left these outcomes: %v; each outcome must occur", seen)
	}
}

func TestAWriteThatFailsChangesNothing(t *testing.T) {
	sys, wanted := prepared(t, "arguments")
	// The kernel does not have this scheduler, so the choice does not change.
	wanted = append(slices.Clone(wanted), Setting{"x", Attribute, "/sys/block/vda/queue/scheduler2", "bfq", `A=="b"`})
	write(t, sys, "/sys/block/vda/queue/scheduler2", "[none] kyber\n")
	was := tree(t, sys)
	_, err := changer(sys).Apply(wanted)
	if err == nil || !strings.Contains(err.Error(), "the kernel keeps") || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("said %v", err)
	}
	got := tree(t, sys)
	for _, one := range []map[string]string{was, got} {
		delete(one, "/sys/block/vda/queue/scheduler2") // unlike sysfs, a file of the test accepts the value
	}
	sameTree(t, "refused", was, got)
}

func TestUpdateGrubFails(t *testing.T) {
	sys, wanted := prepared(t, "arguments")
	was := tree(t, sys)
	c := changer(sys)
	works, failed := c.Run, false
	c.Run = func(program string, words ...string) error {
		if !failed {
			failed = true
			return errors.New("exit status 1: no space")
		}
		return works(program, words...)
	}
	if _, err := c.Apply(wanted); err == nil || !strings.Contains(err.Error(), "update-grub: exit status 1: no space; nothing was changed") {
		t.Errorf("said %v", err)
	}
	sameTree(t, "refused", was, tree(t, sys))
}

func TestRefusals(t *testing.T) {
	for name, one := range map[string]struct {
		files    map[string]string
		settings []Setting
		said     string
	}{
		"unknown distribution": {map[string]string{"/etc/os-release": "ID=plan9\nVERSION_ID=4\n"}, settings, `unknown system "plan9 4"`},
		"no distribution":      {map[string]string{"/etc/os-release": ""}, settings, `unknown system ""`},
		"later release":        {map[string]string{"/etc/os-release": "ID=debian\nVERSION_ID=14\n"}, settings, `unknown system "debian 14"`},
		"no guest":             {map[string]string{"/cpuid": ""}, settings, "not a guest of KVM"},
		"another hypervisor":   {map[string]string{"/cpuid": "VMwareVMware 0 0"}, settings, "not a guest of KVM"},
		"no such sysctl":       {nil, []Setting{{"x", Sysctl, "kernel.absent", "1", ""}}, "this kernel has no /proc/sys/kernel/absent"},
		"two lines":            {nil, []Setting{{"x", Sysctl, "kernel.nmi_watchdog", "1\n2", ""}}, "more than one line"},
		"a quote":              {nil, []Setting{{"x", Argument, `a"b`, "", ""}}, "not a kernel argument"},
		"outside of sysfs":     {nil, []Setting{{"x", Attribute, "/etc/passwd", "", ""}}, "not an attribute of sysfs"},
		"no kind":              {nil, []Setting{{"x", "other", "/sys/x", "", ""}}, "not a kind of setting"},
		"a file without record": {map[string]string{sysctlFile: "of others"}, settings,
			"exists without a record"},
		"a damaged record": {map[string]string{recordFile: "{"}, settings, "is damaged"},
		"a later record":   {map[string]string{recordFile: `{"version": 9}`}, settings, "has version 9"},
	} {
		t.Run(name, func(t *testing.T) {
			sys := guest(t, one.files)
			was := tree(t, sys)
			made, err := changer(sys).Apply(one.settings)
			if err == nil || !strings.Contains(err.Error(), one.said) || strings.Contains(err.Error(), "\n") || made != nil {
				t.Errorf("said %v, made %v", err, made)
			}
			sameTree(t, "refused", was, tree(t, sys))
		})
	}
	t.Run("no boot loader", func(t *testing.T) {
		sys := guest(t, nil)
		if err := os.Remove(sys.Path("/usr/sbin/update-grub")); err != nil {
			t.Fatal(err)
		}
		was := tree(t, sys)
		if _, err := changer(sys).Apply(withArgument); err == nil || !strings.Contains(err.Error(), "no /usr/sbin/update-grub") {
			t.Errorf("said %v", err)
		}
		sameTree(t, "refused", was, tree(t, sys))
	})
	t.Run("other settings are applied", func(t *testing.T) {
		sys := guest(t, nil)
		if _, err := changer(sys).Apply(settings[:1]); err != nil {
			t.Fatal(err)
		}
		was := tree(t, sys)
		if _, err := changer(sys).Apply(settings); err == nil || !strings.Contains(err.Error(), "undo` first") {
			t.Errorf("said %v", err)
		}
		sameTree(t, "refused", was, tree(t, sys))
	})
	t.Run("another stargate-tune runs", func(t *testing.T) {
		sys := guest(t, nil)
		c := changer(sys)
		unlock, err := c.lock()
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		was := tree(t, sys)
		if _, err := changer(sys).Apply(settings); err == nil || !strings.Contains(err.Error(), "another stargate-tune") {
			t.Errorf("said %v", err)
		}
		sameTree(t, "refused", was, tree(t, sys))
	})
}

func TestUndoKeepsTheChangesOfOthers(t *testing.T) {
	sys := guest(t, nil)
	c := changer(sys)
	var said []string
	c.Warn = func(line string) { said = append(said, line) }
	if _, err := c.Apply(settings); err != nil {
		t.Fatal(err)
	}
	write(t, sys, sysctlFile, "kernel.nmi_watchdog = 0\n# and mine\n")
	applied := tree(t, sys)
	if _, err := c.Undo(false); err == nil || !strings.Contains(err.Error(), sysctlFile) {
		t.Errorf("said %v", err)
	}
	sameTree(t, "refused", applied, tree(t, sys))
	write(t, sys, "/sys/block/vda/queue/scheduler", "mq-deadline [kyber] none\n")
	if status, err := c.Status(); err != nil || status.States[0].Word != "changed since" || len(status.Changed) != 1 {
		t.Errorf("status %+v, %v", status, err)
	}
	if _, err := c.Undo(true); err != nil {
		t.Fatal(err)
	}
	if got := sys.Text("/sys/block/vda/queue/scheduler"); got != "mq-deadline [kyber] none" {
		t.Errorf("undo changed the other program's scheduler to %q", got)
	}
	if got := sys.Text("/proc/sys/kernel/nmi_watchdog"); got != "1" || sys.Exists(sysctlFile) {
		t.Errorf("with --force: nmi_watchdog %q", got)
	}
	if len(said) != 1 || !strings.Contains(said[0], "another program has changed it") {
		t.Errorf("warned %q", said)
	}
}

func TestAFormerFileComesBackAsItWas(t *testing.T) {
	sys, wanted := prepared(t, "tuned")
	path := sys.Path("/etc/tuned/active_profile")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	c := changer(sys)
	if _, err := c.Apply(wanted); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Undo(false); err != nil {
		t.Fatal(err)
	}
	now, err := os.Stat(path)
	if err != nil || now.Mode() != was.Mode() || !now.ModTime().Equal(was.ModTime()) {
		t.Errorf("mode %v, time %v; were %v, %v (%v)", now.Mode(), now.ModTime(), was.Mode(), was.ModTime(), err)
	}
}

func TestPreviewChangesNothing(t *testing.T) {
	sys, wanted := prepared(t, "arguments")
	was := tree(t, sys)
	made, paths, err := changer(sys).Preview(wanted)
	if err != nil || len(made) != len(wanted) || len(paths) != 3 {
		t.Errorf("%v, %v, %v", made, paths, err)
	}
	sameTree(t, "dry run", was, tree(t, sys))
}
