// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func has(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestSources(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put(t, from+"/core/a.c", "a")
	put(t, from+"/module/Kbuild", "k")
	put(t, from+"/user/stargatefs.symvers", "exports of another module")
	put(t, from+"/user/Module.symvers", "product of the source tree")
	put(t, from+"/core/a.o", "product of the source tree")
	put(t, from+"/README.md", "no source")
	put(t, to+"/core/gone.c", "no longer there")
	put(t, to+"/core/gone.o", "product")
	put(t, to+"/module/x.mod.c", "product")
	if err := Sources(from, to); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"core/a.c": true, "module/Kbuild": true, "core/gone.o": true, "module/x.mod.c": true,
		"user/stargatefs.symvers": true, "user/Module.symvers": false,
		"core/a.o": false, "README.md": false, "core/gone.c": false,
	} {
		if has(filepath.Join(to, path)) != want {
			t.Errorf("%s exists: %v, wanted %v", path, !want, want)
		}
	}
}

func TestUnchangedFilesKeepTheirCopies(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put(t, from+"/a.c", "a")
	put(t, from+"/b.c", "b")
	if err := Sources(from, to); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(to + "/a.c")
	if err != nil {
		t.Fatal(err)
	}
	put(t, from+"/b.c", "c")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(from+"/b.c", later, later); err != nil {
		t.Fatal(err)
	}
	if err := Sources(from, to); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(to + "/a.c")
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("an unchanged file was copied again (%v)", err)
	}
	if text, err := os.ReadFile(to + "/b.c"); err != nil || string(text) != "c" {
		t.Errorf("a changed file was not copied: %q, %v", text, err)
	}
}

// A copy may be inside the copied tree, next to another copy.
func TestCopiesAreNotCopied(t *testing.T) {
	from := t.TempDir()
	put(t, from+"/module/a.c", "a")
	one, other := from+"/out/one", from+"/module/other"
	for i := 0; i < 3; i++ {
		for _, to := range []string{one, other} {
			if err := Sources(from, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, to := range []string{one, other} {
		if !has(to+"/module/a.c") || has(to+"/out") || has(to+"/module/other") {
			t.Errorf("%s has files that are not sources", to)
		}
	}
}
