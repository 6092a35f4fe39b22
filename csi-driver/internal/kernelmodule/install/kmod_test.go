// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

const release = "6.12.0-test"

// machine is a fake node, with a root directory and programs.
type machine struct {
	root string
	does map[string]func() (string, error)
	ran  []string
}

func (m *machine) Run(_ context.Context, program string, args ...string) (string, error) {
	m.ran = append(m.ran, strings.Join(append([]string{program}, args...), " "))
	if do := m.does[program]; do != nil {
		return do()
	}
	if program == "test" && len(args) == 2 {
		return "", m.there(args[1])
	}
	return program + ": not found", errors.New("exit status 127")
}

// there reports whether a file exists in the node's root directory. Links lead to paths in that
// directory.
func (m *machine) there(path string) error {
	at := filepath.Join(m.root, path)
	if to, err := os.Readlink(filepath.Dir(at)); err == nil {
		at = filepath.Join(m.root, to, filepath.Base(at))
	}
	_, err := os.Stat(at)
	return err
}

func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

const (
	without = "nodev\tsysfs\n\text4\nnodev\tnotstargatefs\n"
	with    = without + "\tstargatefs\n"
)

// loads returns a program that makes the kernel have the module.
func loads(t *testing.T, root string) func() (string, error) {
	return func() (string, error) {
		put(t, root, map[string]string{"proc/filesystems": with, "sys/module/stargatefs/version": "0.1.0\n"})
		return "", nil
	}
}

func fails(said string) func() (string, error) {
	return func() (string, error) { return said, errors.New("exit status 1") }
}

func works() (string, error) { return "", nil }

func says(words string) func() (string, error) { return func() (string, error) { return words, nil } }

func TestEnsure(t *testing.T) {
	sources := t.TempDir()
	put(t, sources, map[string]string{
		"dkms.conf": "PACKAGE_NAME=\"stargatefs\"\nPACKAGE_VERSION=\"0.1\"\n", "core/format/version.h": "#define SG_RELEASE\t\"0.1.0\"\n", "module/super.c": "x",
	})
	modules := map[string]string{"proc/modules": "", "proc/filesystems": without}
	headers := map[string]string{"lib/modules/" + release + "/build/Makefile": ""}
	linked := map[string]string{"usr/src/linux-headers-" + release + "/Makefile": ""}
	type does = map[string]func(root string) func() (string, error)
	always := func(f func() (string, error)) func(string) func() (string, error) {
		return func(string) func() (string, error) { return f }
	}
	loading := func(root string) func() (string, error) { return loads(t, root) }
	// The state of the kernel after a program.
	unloading := func(root string) func() (string, error) {
		return func() (string, error) { put(t, root, map[string]string{"proc/filesystems": without}); return "", nil }
	}
	loadingOld := func(root string) func() (string, error) {
		return func() (string, error) {
			put(t, root, map[string]string{"proc/filesystems": with, "sys/module/stargatefs/version": "0.0.9\n"})
			return "", nil
		}
	}
	inUse := always(fails("rmmod: ERROR: Module stargatefs is in use\n"))
	const elf = "ELF"
	locked := map[string]string{"sys/kernel/security/lockdown": "none [integrity] confidentiality"}
	old := map[string]string{"proc/modules": "", "proc/filesystems": with, "sys/module/stargatefs/version": "0.0.9"}
	for _, c := range []struct {
		name     string
		files    []map[string]string
		does     does
		prebuilt string // content of the prebuilt module
		notThat  bool   // prebuilt modules may not be used
		noBuild  bool
		link     string // target of the link to the kernel's headers
		how      How
		words    string
		built    bool // built by DKMS, even if another module is loaded
	}{
		{name: "this release is loaded", files: []map[string]string{{"proc/filesystems": with, "sys/module/stargatefs/version": "0.1.0"}}, how: WasLoaded, words: "version 0.1.0"},
		{name: "another release is loaded, and in use", files: []map[string]string{old, headers}, does: does{"dkms": always(works), "rmmod": inUse}, how: WasLoaded,
			words: "the image has 0.1.0: drain the node", built: true},
		{name: "another release is loaded, and not in use", files: []map[string]string{old, headers}, does: does{"dkms": always(works), "rmmod": unloading, "modprobe": loading},
			how: Built, words: "version 0.1.0"},
		{name: "another release is loaded, and this release installed", files: []map[string]string{old}, does: does{"modinfo": always(says("0.1.0\n")), "rmmod": unloading, "modprobe": loading},
			noBuild: true, how: Installed, words: "version 0.1.0"},
		{name: "another release is loaded, and this release prebuilt", files: []map[string]string{old}, does: does{"rmmod": unloading, "insmod": loading}, prebuilt: elf, how: Prebuilt, words: "version 0.1.0"},
		{name: "another release is loaded, and the prebuilt module does not fit", files: []map[string]string{old}, does: does{"modinfo": always(says("0.0.9")), "rmmod": unloading, "modprobe": loadingOld,
			"insmod": always(fails("Invalid module format"))}, prebuilt: elf, how: Installed, words: "the image has 0.1.0: insmod"},
		{name: "another release is loaded, and no module can be built", files: []map[string]string{old}, does: does{"rmmod": unloading}, how: WasLoaded, words: "the image has 0.1.0: the node has no DKMS"},
		{name: "another release is loaded, and builds are not allowed", files: []map[string]string{old}, does: does{"rmmod": unloading}, noBuild: true, how: WasLoaded, words: "may not be built"},
		{name: "another release is loaded, and the kernel accepts no more modules", files: []map[string]string{old, {"proc/sys/kernel/modules_disabled": "1\n"}}, does: does{"rmmod": unloading},
			how: WasLoaded, words: "the image has 0.1.0: the kernel takes no more"},
		{name: "another release is loaded, with secure boot", files: []map[string]string{old, headers, {"sys/module/module/parameters/sig_enforce": "Y\n"}},
			does: does{"dkms": always(works), "rmmod": unloading}, how: WasLoaded, words: "the image has 0.1.0: drain the node", built: true},
		{name: "another is installed", files: []map[string]string{modules, headers}, does: does{"modinfo": always(says("0.0.9\n")), "dkms": always(works), "modprobe": loading},
			how: Built, words: "version 0.1.0"},
		{name: "another release is installed, and no module can be built", files: []map[string]string{modules}, does: does{"modinfo": always(says("0.0.9\n")), "modprobe": loadingOld},
			how: Installed, words: "version 0.0.9: the image has 0.1.0: the node has no DKMS"},
		{name: "a kernel without", files: []map[string]string{{"proc/filesystems": without}}, how: None, words: "without loadable modules"},
		{name: "a kernel that accepts no more modules", files: []map[string]string{modules, {"proc/sys/kernel/modules_disabled": "1\n"}}, how: None, words: "until the next boot"},
		{name: "installed", files: []map[string]string{modules}, does: does{"modinfo": always(says("0.1.0\n")), "modprobe": loading}, how: Installed, words: "version 0.1.0"},
		{name: "installed, built for another kernel", files: []map[string]string{modules, headers}, does: does{"modinfo": always(says("0.1.0\n")), "dkms": always(works),
			"modprobe": always(fails("modprobe: ERROR: could not insert 'stargatefs': Exec format error"))}, how: None, words: "modprobe stargatefs: modprobe: ERROR: could not insert 'stargatefs': Exec format error"},
		{name: "installed, secure boot", files: []map[string]string{modules, {"sys/kernel/security/lockdown": "none [integrity] confidentiality"}},
			does: does{"modinfo": always(says("0.1.0\n")), "modprobe": always(fails("Key was rejected by service"))}, noBuild: true, how: None, words: "secure boot"},
		{name: "installed, but loads no file system", files: []map[string]string{modules}, does: does{"modinfo": always(says("0.1.0\n")), "modprobe": always(works)}, how: None, words: "still lacks the file system"},
		{name: "prebuilt", files: []map[string]string{modules}, does: does{"insmod": loading}, prebuilt: elf, how: Prebuilt},
		{name: "prebuilt, and builds are not allowed", files: []map[string]string{modules, headers}, does: does{"insmod": loading}, prebuilt: elf, noBuild: true, how: Prebuilt},
		{name: "prebuilt, but prebuilt modules may not be used", files: []map[string]string{modules, headers}, does: does{"insmod": loading, "dkms": always(works), "modprobe": loading},
			prebuilt: elf, notThat: true, how: Built},
		{name: "prebuilt, refused, and no module can be built", files: []map[string]string{modules}, does: does{"insmod": always(fails("insmod: ERROR: Invalid module format"))},
			prebuilt: elf, how: None, words: "Invalid module format; the node has no DKMS"},
		{name: "prebuilt, refused, and builds are not allowed", files: []map[string]string{modules, headers}, does: does{"insmod": always(fails("insmod: ERROR: Invalid module format")),
			"dkms": always(works), "modprobe": loading}, prebuilt: elf, noBuild: true, how: None, words: "Invalid module format; kernel " + release + " has no module"},
		{name: "prebuilt, refused, and then built by DKMS", files: []map[string]string{modules, headers}, does: does{"insmod": always(fails("insmod: ERROR: Invalid module format")),
			"dkms": always(works), "modprobe": loading}, prebuilt: elf, how: Built, words: "version 0.1.0"},
		{name: "another release is loaded, the prebuilt module is refused, and DKMS builds the module", files: []map[string]string{old, headers}, does: does{"rmmod": unloading, "dkms": always(works), "modprobe": loading,
			"insmod": always(fails("Invalid module format"))}, prebuilt: elf, how: Built, words: "version 0.1.0"},
		{name: "prebuilt, secure boot", files: []map[string]string{modules, locked}, does: does{"insmod": loading}, prebuilt: elf, how: None,
			words: "the node has no DKMS to build stargatefs for kernel " + release + ": apt-get install dkms linux-headers-" + release + "; the image's own module is not used: the kernel takes only signed"},
		{name: "prebuilt, secure boot, and DKMS signs", files: []map[string]string{modules, headers, locked}, does: does{"insmod": always(fails("Key was rejected by service")),
			"dkms": always(works), "modprobe": loading}, prebuilt: elf, how: Built},
		{name: "prebuilt and signed, secure boot", files: []map[string]string{modules, headers, locked}, does: does{"insmod": loading, "dkms": always(works)},
			prebuilt: elf + "~Module signature appended~\n", how: Prebuilt},
		{name: "prebuilt, signed with an unknown key, secure boot", files: []map[string]string{modules, locked}, does: does{"insmod": always(fails("Key was rejected by service"))},
			prebuilt: elf + "~Module signature appended~\n", how: None, words: "secure boot"},
		{name: "builds are not allowed", files: []map[string]string{modules, headers}, noBuild: true, how: None, words: "may not be built"},
		{name: "no DKMS", files: []map[string]string{modules, headers}, how: None, words: "apt-get install dkms linux-headers-" + release},
		{name: "no headers", files: []map[string]string{modules}, does: does{"dkms": always(works)}, how: None, words: "no headers of kernel " + release},
		{name: "built", files: []map[string]string{modules, headers}, does: does{"dkms": always(works), "modprobe": loading}, how: Built, words: "version 0.1.0"},
		{name: "built, where Debian has headers", files: []map[string]string{modules, linked}, link: "/usr/src/linux-headers-" + release, does: does{"dkms": always(works), "modprobe": loading}, how: Built},
		{name: "headers removed, but their link remains", files: []map[string]string{modules}, link: "/usr/src/linux-headers-" + release, does: does{"dkms": always(works)}, how: None, words: "no headers of kernel " + release},
		{name: "built, but refused by the kernel", files: []map[string]string{modules, headers}, does: does{"dkms": always(works), "modprobe": always(fails("modprobe: ERROR: Exec format error"))}, how: None, words: "modprobe stargatefs: modprobe: ERROR: Exec format error"},
		{name: "built, secure boot", files: []map[string]string{modules, headers, {"sys/module/module/parameters/sig_enforce": "Y\n"}},
			does: does{"dkms": always(works), "modprobe": always(fails("Key was rejected by service"))}, how: None, words: "secure boot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &machine{root: t.TempDir(), does: map[string]func() (string, error){}}
			for _, f := range c.files {
				put(t, m.root, f)
			}
			if c.link != "" {
				link(t, c.link, filepath.Join(m.root, "lib/modules", release, "build"))
			}
			for program, do := range c.does {
				m.does[program] = do(m.root)
			}
			config := Config{Host: m.root, Sources: sources, Prebuilt: t.TempDir(), Release: release, Build: !c.noBuild}
			if c.prebuilt != "" {
				put(t, config.Prebuilt, map[string]string{release + "/stargatefs.ko": c.prebuilt})
			}
			if c.notThat {
				config.Prebuilt = ""
			}
			r := Ensure(context.Background(), config, m)
			if r.How != c.how || !strings.Contains(r.String(), c.words) || !strings.Contains(r.String(), release) {
				t.Errorf("%s; should be %q and say %q", r, c.how, c.words)
			}
			if c.how == None && r.Why == "" {
				t.Error("no reason is given")
			}
			if c.how == Built || c.built {
				if text, err := os.ReadFile(filepath.Join(m.root, "usr/src/stargatefs-0.1/module/super.c")); err != nil || string(text) != "x" {
					t.Errorf("the module's sources are not copied to the node: %v", err)
				}
				if want := "dkms install --force stargatefs/0.1 -k " + release; !strings.Contains(strings.Join(m.ran, "\n"), want) {
					t.Errorf("the programs that ran are %q, without %q", m.ran, want)
				}
			}
			if _, err := os.Stat(filepath.Join(m.root, "run/stargatefs/stargatefs.ko")); err == nil {
				t.Error("a module is left in /run")
			}
		})
	}
}

func TestBuildFails(t *testing.T) {
	root, sources := t.TempDir(), t.TempDir()
	put(t, sources, map[string]string{"dkms.conf": "PACKAGE_VERSION=\"0.1\""})
	put(t, root, map[string]string{"proc/modules": "", "proc/filesystems": without, "lib/modules/" + release + "/build/Makefile": ""})
	m := &machine{root: root, does: map[string]func() (string, error){}}
	asked := 0
	m.does["dkms"] = func() (string, error) {
		if asked++; asked == 1 { // --version
			return "dkms-3", nil
		}
		return "Building module:\nError! Bad return status for module build\n", fmt.Errorf("exit status 10")
	}
	r := Ensure(context.Background(), Config{Host: root, Sources: sources, Release: release, Build: true}, m)
	if r.How != None || !strings.Contains(r.Why, "dkms install stargatefs/0.1 -k "+release+": Error! Bad return status") {
		t.Errorf("%s", r)
	}
}

func TestTell(t *testing.T) {
	ctx := context.Background()
	client := fake.NewSimpleClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID("u")}})
	now := clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	tell := func(r Result) []corev1.Event {
		t.Helper()
		if err := Tell(ctx, client, now, "d.example", "n1", r); err != nil {
			t.Fatal(err)
		}
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil || node.Annotations["d.example/module"] != r.String() {
			t.Errorf("%v, %v", node.Annotations, err)
		}
		events, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return events.Items
	}
	if events := tell(Result{How: Installed, Release: release, Version: "1"}); len(events) != 0 {
		t.Errorf("%v", events)
	}
	events := tell(Result{How: None, Release: release, Why: "no headers"})
	if len(events) != 1 || events[0].Reason != "NoModule" || !strings.Contains(events[0].Message, "no headers") || events[0].InvolvedObject.Name != "n1" {
		t.Errorf("%v", events)
	}
	if err := Tell(ctx, client, now, "d.example", "other", Result{}); err == nil {
		t.Error("Tell succeeds for a node that does not exist")
	}
}
