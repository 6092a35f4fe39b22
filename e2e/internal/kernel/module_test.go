// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The rig skips a build only if make would have nothing to do. A change of a source, of a product
// or of the call of make causes a build.
func TestBuildIsLeftOut(t *testing.T) {
	b := Build{Kernel: Kernel{Release: "6.12", Root: "/root-1"}}
	for what, change := range map[string]func(work, output string) Build{
		"nothing":              func(work, output string) Build { return b },
		"a source's text":      func(work, output string) Build { write(t, work+"/module/a.c", "int b;;"); return b },
		"a source's time":      func(work, output string) Build { touch(t, work+"/module/a.c"); return b },
		"a header elsewhere":   func(work, output string) Build { write(t, work+"/core/new.h", ""); return b },
		"a source is gone":     func(work, output string) Build { remove(t, work+"/module/a.c"); return b },
		"the module's time":    func(work, output string) Build { touch(t, output+"/a.ko"); return b },
		"the module is gone":   func(work, output string) Build { remove(t, output+"/a.ko"); return b },
		"one module more":      func(work, output string) Build { write(t, output+"/b.ko", ""); return b },
		"the note is gone":     func(work, output string) Build { remove(t, output+"/"+noteName); return b },
		"the kernel":           func(work, output string) Build { c := b; c.Kernel.Release = "6.13"; return c },
		"its headers":          func(work, output string) Build { c := b; c.Kernel.Root = "/root-2"; return c },
		"an argument of make":  func(work, output string) Build { c := b; c.Make = []string{"V=1"}; return c },
		"a product of a build": func(work, output string) Build { write(t, work+"/module/a.o", "new"); return b },
	} {
		work, output := t.TempDir(), t.TempDir()
		for _, dir := range []string{work + "/module", work + "/core"} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, work+"/module/a.c", "int a;")
		write(t, output+"/a.ko", "module")
		if b.done("module", work, output) {
			t.Errorf("%s: done returned true before the build", what)
		}
		if err := b.note("module", work, output); err != nil {
			t.Fatal(err)
		}
		same := what == "nothing" || what == "a product of a build"
		if change(work, output).done("module", work, output) != same {
			t.Errorf("%s has changed: done does not report correctly whether a build is needed", what)
		}
		if err := b.undone(output); err != nil {
			t.Error(err)
		}
		if b.done("module", work, output) {
			t.Errorf("%s: done returned true during the build", what)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(filepath.Clean(path)); err != nil {
		t.Fatal(err)
	}
}
