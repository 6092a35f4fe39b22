// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// If a folder's bytes survive a boot, its identity remains the same while its lock is the same
// file, whichever process opens it. Open writes a torn word again. In memory, the identity remains
// the same while the node and the folder keep their names.
func TestOwn(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "folder")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(memory) })
	for _, in := range []string{t.TempDir(), memory} {
		dir := filepath.Join(in, "zone")
		open := func(node string) string {
			t.Helper()
			f, lock, err := Open(context.Background(), Place{Dir: dir, Lock: ".lock", Node: node, Left: func(string) bool { return false }})
			if err != nil {
				t.Fatal(err)
			}
			lock.Close()
			return f.Own
		}
		first := open("n1")
		if again := open("n1"); again != first {
			t.Errorf("the identity is %s, and after another Open %s", first, again)
		}
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		volatile := Volatile(st.Type)
		if in == memory && !volatile {
			t.Errorf("%s is no file system in memory", in)
		}
		if other := open("n2"); (other == first) == volatile {
			t.Errorf("another node's identity is %s, and this node's %s", other, first)
		}
		for what, text := range map[string]string{"torn": "0123", "of an earlier driver": "", "none": "not a word of its own, as it should be"} {
			if err := os.WriteFile(filepath.Join(dir, ".lock"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if made := open("n1"); (made == first) != volatile || made != open("n1") {
				t.Errorf("%s: the identity was %s, and is %s", what, first, made)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if made := open("n1"); (made == first) != volatile {
			t.Errorf("another folder of that name also has the identity %s", made)
		}
	}
}
