// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
)

// No path of a request leads out of the folder.
func FuzzInside(f *testing.F) {
	root := f.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(root, "kubelet"), 0o755), os.Mkdir(filepath.Join(root, "kubelet", "a"), 0o755),
		os.Mkdir(filepath.Join(root, "outside"), 0o755),
		os.Symlink(filepath.Join(root, "outside"), filepath.Join(root, "kubelet", "l")),
		os.Symlink("..", filepath.Join(root, "kubelet", "a", "up")),
		os.Symlink("kubelet", filepath.Join(root, "link")),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	folder, err := OpenFolder(filepath.Join(root, "link"))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"a", "a/b/c", "l", "l/x", "a/up/a", "../outside", "a/../..", "", ".", "a//b", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, below string) {
		path, err := folder.Inside(filepath.Join(root, "link") + "/" + below)
		if err != nil {
			return
		}
		kubelet := filepath.Join(root, "kubelet")
		if !strings.HasPrefix(path, kubelet+"/") {
			t.Fatalf("%q is %q", below, path)
		}
		for at := path; at != kubelet; at = filepath.Dir(at) {
			if st, err := os.Lstat(at); err == nil && st.Mode()&os.ModeSymlink != 0 {
				t.Fatalf("%q: %q is a link", below, at)
			}
		}
	})
}

func TestInside(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(root, "said")); err != nil {
		t.Fatal(err)
	}
	folder, err := OpenFolder(filepath.Join(root, "said"))
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(root, "real"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := folder.Inside(filepath.Join(root, "said", "pods", "x"))
	if err != nil || got != filepath.Join(real, "pods", "x") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := OpenFolder("relative"); err == nil {
		t.Error("a relative folder is taken")
	}
}

// In a fenced mount, every access fails (EIO of the module). Inside accepts the path of the mount,
// so that it can be unmounted, but refuses paths in it.
func TestInsideFencedMount(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "pods", "dead"), 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := OpenFolder(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dead := range []error{unix.EIO, unix.ESTALE} {
		folder.open = func(dirfd int, path string, how *unix.OpenHow) (int, error) {
			if path == "pods/dead" || strings.HasPrefix(path, "pods/dead/") {
				return -1, dead
			}
			return unix.Openat2(dirfd, path, how)
		}
		for path, ok := range map[string]bool{"pods/dead": true, "pods/dead/in": false, "pods/dead/in/it": false, "pods/other": true} {
			at, err := folder.Inside(filepath.Join(root, path))
			if ok != (err == nil) || err != nil && !errkind.Is(err, errkind.Internal) {
				t.Errorf("%v at %s: %q, %v", dead, path, at, err)
			}
		}
	}
}
