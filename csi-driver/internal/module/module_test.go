// SPDX-License-Identifier: Apache-2.0

package module

import (
	"os"
	"path/filepath"
	"testing"
)

const uuid = "11111111-2222-3333-4444-555555555555"

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
	if m, err := New(filepath.Join(dir, "none")).Mounted(uuid); m != nil || err != nil {
		t.Errorf("without a module: %v, %v", m, err)
	}
	module := New(dir)
	if m, err := module.Mounted(uuid); m != nil || err != nil {
		t.Errorf("nothing is mounted: %v, %v", m, err)
	}
	write(t, filepath.Join(dir, "dm-0"), map[string]string{"uuid": "other\n"})
	write(t, filepath.Join(dir, "dm-1"), map[string]string{
		"uuid": uuid + "\n", "state": "writable\n", "slot": "3\n", "epoch": "volume 12\nacknowledged 9\n", "operations": "reads 5\nnew thing\n",
		"journal": "commits 7\nreplays 1\nlock_waits 18446744073709551615\n", "errors": "count 2\nlast_ino 3\n",
	})
	m, err := module.Mounted(uuid)
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
	if m, err := module.Mounted(uuid); err != nil || m.Joined {
		t.Errorf("it only reads: %+v, %v", m, err)
	}
	write(t, filepath.Join(dir, "dm-1"), map[string]string{"state": "shut down\n"})
	if m, err := module.Mounted(uuid); err != nil || !m.ShutDown() {
		t.Errorf("%+v, %v", m, err)
	}
	epoch := filepath.Join(dir, "dm-1", "epoch")
	if err := os.Remove(epoch); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/mem", epoch); err != nil { // where a read is EIO
		t.Fatal(err)
	}
	if m, err := module.Mounted(uuid); err != nil || !m.ShutDown() || m.Counter("epoch", "volume") != 0 || m.Counter("errors", "count") != 2 {
		t.Errorf("it stands on bad memory: %+v, %v", m, err)
	}
	write(t, filepath.Join(dir, "dm-1"), map[string]string{"state": "writable\n"})
	if m, err := module.Mounted(uuid); err == nil {
		t.Errorf("it does not, and cannot be read: %+v", m)
	}
	write(t, filepath.Join(dir, "dm-1"), map[string]string{"state": "shut down\n"})
	if err := os.Remove(filepath.Join(dir, "dm-1", "journal")); err != nil {
		t.Fatal(err)
	}
	if m, err := module.Mounted(uuid); m != nil || err != nil {
		t.Errorf("unmounted meanwhile: %+v, %v", m, err)
	}
}
