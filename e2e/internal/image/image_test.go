// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"stargate/e2e/internal/agent"
)

// The kernel requires fixed values in a cpio archive: magic, sizes, padding and trailer.
func TestCpio(t *testing.T) {
	var buf bytes.Buffer
	c := &cpio{w: &buf}
	c.dir("d")
	c.file("d/file", []byte("12345"))
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if buf.Len()%4 != 0 {
		t.Errorf("the archive has %d bytes, which is no multiple of 4", buf.Len())
	}
	if _, err := exec.LookPath("cpio"); err != nil {
		return
	}
	cmd := exec.Command("cpio", "-idm", "--quiet")
	cmd.Dir, cmd.Stdin = t.TempDir(), &buf
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(cmd.Dir, "d/file")); err != nil || string(text) != "12345" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestPayload(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/tree/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/tree/sub/run", []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run", dir+"/tree/sub/link"); err != nil {
		t.Fatal(err)
	}
	if err := (Payload{"root/in/tree": dir + "/tree"}).Write(dir + "/tar"); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(dir + "/tar")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string]byte{}
	for archive := tar.NewReader(f); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = header.Typeflag
	}
	for name, kind := range map[string]byte{
		"root/in/tree/": tar.TypeDir, "root/in/tree/sub/run": tar.TypeReg, "root/in/tree/sub/link": tar.TypeSymlink,
	} {
		if got[name] != kind && got[filepath.Clean(name)] != kind {
			t.Errorf("%s: %q in %v", name, got[name], got)
		}
	}
	if info, err := f.Stat(); err != nil || info.Size()%diskUnit != 0 {
		t.Errorf("size %d, %v", info.Size(), err)
	}
}

func TestMissingPayload(t *testing.T) {
	if err := (Payload{"x": "/no/such/file"}).Write(t.TempDir() + "/tar"); err == nil {
		t.Error("accepted")
	}
}

// A sparse file keeps its bytes in the guest. Neither the archive nor the guest's copy stores its
// large holes.
func TestSparsePayload(t *testing.T) {
	const size = 1 << 30
	dir := t.TempDir()
	data := map[int64]string{0: "", 4096: "near", 700 << 20: "far", size - 4: "last"}
	files := map[string]int64{"empty": 0, "hole": size, "data": size, "small-hole": smallHole / 2}
	if err := os.Mkdir(dir+"/tree", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, size := range files {
		f, err := os.Create(dir + "/tree/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		for at, text := range data {
			if name != "data" {
				continue
			}
			if _, err := f.WriteAt([]byte(text), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := (Payload{"in": dir + "/tree"}).Write(dir + "/tar"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir + "/tar"); err != nil || info.Size() > 4<<20 {
		t.Fatalf("an archive of %d bytes, %v", info.Size(), err)
	}
	if err := agent.Unpack(dir+"/tar", dir+"/root"); err != nil {
		t.Fatal(err)
	}
	for name, size := range files {
		info, err := os.Stat(dir + "/root/in/" + name)
		if err != nil || info.Size() != size || info.Sys().(*syscall.Stat_t).Blocks > 4<<20/512 {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	if out, err := exec.Command("cmp", dir+"/tree/data", dir+"/root/in/data").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
