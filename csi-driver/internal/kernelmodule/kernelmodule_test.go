// SPDX-License-Identifier: Apache-2.0

package kernelmodule

import (
	"os"
	"path/filepath"
	"testing"
)

const uuid, volume = "11111111-2222-3333-4444-555555555555", "/dev/zone/v"

// at returns the device number for a path of the test's volumes.
func at(path string) string {
	return map[string]string{volume: "252:1", "/dev/zone/other": "252:0"}[path]
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMounted(t *testing.T) {
	dir := t.TempDir()
	if m, err := NewFor(filepath.Join(dir, "none"), at).Mounted(volume); m != nil || err != nil {
		t.Errorf("without a module: %v, %v", m, err)
	}
	module := NewFor(dir, at)
	if m, err := module.Mounted(volume); m != nil || err != nil {
		t.Errorf("nothing is mounted: %v, %v", m, err)
	}
	write(t, filepath.Join(dir, "dm-0"), map[string]string{"dev": "252:0\n", "uuid": "other\n"})
	write(t, filepath.Join(dir, "dm-1"), map[string]string{
		"dev": "252:1\n", "uuid": uuid + "\n", "state": "writable\n", "slot": "3\n", "epoch": "volume 12\nacknowledged 9\n", "operations": "reads 5\nnew thing\n",
		"journal": "commits 7\nreplays 1\nlock_waits 18446744073709551615\n", "errors": "count 2\nlast_ino 3\n",
	})
	m, err := module.Mounted(volume)
	if err != nil || m == nil || m.ShutDown() || !m.Joined {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, c := range []struct {
		file, name string
		want       int64
	}{
		{"epoch", "volume", 12}, {"epoch", "acknowledged", 9}, {"journal", "replays", 1}, {"journal", "lock_waits", 0}, {"errors", "count", 2},
		{"operations", "reads", 5}, {"operations", "new", 0}, {"operations", "none", 0}, {"none", "none", 0},
	} {
		if got := m.Counter(c.file, c.name); got != c.want {
			t.Errorf("%s %s: %d, should be %d", c.file, c.name, got, c.want)
		}
	}
	write(t, filepath.Join(dir, "dm-1"), map[string]string{"slot": "-1\n"})
	if m, err := module.Mounted(volume); err != nil || m.Joined {
		t.Errorf("a mount without a slot: %+v, %v", m, err)
	}
	write(t, filepath.Join(dir, "dm-1"), map[string]string{"state": "shut down\n"})
	if m, err := module.Mounted(volume); err != nil || !m.ShutDown() {
		t.Errorf("%+v, %v", m, err)
	}
	epoch := filepath.Join(dir, "dm-1", "epoch")
	if err := os.Remove(epoch); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/mem", epoch); err != nil { // a read of this path fails with EIO
		t.Fatal(err)
	}
	if m, err := module.Mounted(volume); err != nil || !m.ShutDown() || m.Counter("epoch", "volume") != 0 || m.Counter("errors", "count") != 2 {
		t.Errorf("a mount whose structures are in bad memory: %+v, %v", m, err)
	}
	write(t, filepath.Join(dir, "dm-1"), map[string]string{"state": "writable\n"})
	if m, err := module.Mounted(volume); err == nil {
		t.Errorf("Mounted accepts a writable mount with an unreadable file: %+v", m)
	}
	write(t, filepath.Join(dir, "dm-1"), map[string]string{"state": "shut down\n"})
	if err := os.Remove(filepath.Join(dir, "dm-1", "journal")); err != nil {
		t.Fatal(err)
	}
	if m, err := module.Mounted(volume); m != nil || err != nil {
		t.Errorf("a volume that is unmounted during the read: %+v, %v", m, err)
	}
}

// A member may write another volume's UUID into its own volume. The package still distinguishes the
// two volumes.
func TestForgedUUID(t *testing.T) {
	dir := t.TempDir()
	for name, is := range map[string][2]string{"dm-0": {"252:0", "shut down"}, "dm-1": {"252:1", "writable"}} {
		write(t, filepath.Join(dir, name), map[string]string{
			"dev": is[0] + "\n", "uuid": uuid + "\n", "state": is[1] + "\n", "slot": "0\n", "epoch": "", "operations": "", "journal": "", "errors": "",
		})
	}
	module := NewFor(dir, at)
	all, err := module.All()
	if err != nil {
		t.Fatal(err)
	}
	for path, down := range map[string]bool{"/dev/zone/other": true, volume: false} {
		m, err := module.Mounted(path)
		if err != nil || m == nil || m.ShutDown() != down {
			t.Errorf("%s: %+v, %v", path, m, err)
		}
		if m := all(path); m == nil || m.ShutDown() != down {
			t.Errorf("%s among all: %+v", path, m)
		}
	}
	if m, err := module.Mounted("/zone/file"); m != nil || err != nil || all("/zone/file") != nil {
		t.Errorf("a path without a device has a mount: %+v, %v", m, err)
	}
}

func TestDevice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", file, file + "-none", os.DevNull} {
		if got := Device(path); got != "" {
			t.Errorf("%q is block device %s", path, got)
		}
	}
	all, err := filepath.Glob("/dev/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		st, err := os.Stat(path)
		if err != nil || st.Mode().Type() != os.ModeDevice {
			continue
		}
		of, err := os.ReadFile("/sys/class/block/" + filepath.Base(path) + "/dev")
		if err == nil && Device(path)+"\n" != string(of) {
			t.Errorf("%s is %s, and should be %s", path, Device(path), of)
		}
	}
}
