// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What the kernel's cpio reader needs is fixed: magic, sizes, padding, trailer.
func TestCpio(t *testing.T) {
	var buf bytes.Buffer
	c := &cpio{w: &buf}
	c.dir("d")
	c.file("d/file", []byte("12345"))
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if buf.Len()%4 != 0 {
		t.Errorf("%d bytes: entries must be padded to 4", buf.Len())
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
