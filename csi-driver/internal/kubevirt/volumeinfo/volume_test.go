// SPDX-License-Identifier: Apache-2.0

package volumeinfo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	base = uint64(64) << 30
	size = uint64(4) << 20
)

// lay creates the folder of a mounted claim.
func lay(t *testing.T, text string, length int64) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, hidden), 0o755); err != nil {
		t.Fatal(err)
	}
	if text != "" {
		store(t, filepath.Join(dir, hidden, description), []byte(text), 0)
	}
	if length >= 0 {
		store(t, filepath.Join(dir, hidden, region), nil, length)
	}
	return dir
}

func store(t *testing.T, path string, text []byte, length int64) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if length > 0 {
		if err := os.Truncate(path, length); err != nil {
			t.Fatal(err)
		}
	}
}

func described1(base, size uint64, more string) string {
	return fmt.Sprintf(`{"version": 1, "uuid": "x", "base": "0x%x", "size": %d, "alignment": 2097152%s}`, base, size, more)
}

func TestRead(t *testing.T) {
	dir := lay(t, described1(base, size, `, "mode": "rw", "later": [1]`), int64(size))
	mark := []byte("bytes of others")
	path := filepath.Join(dir, hidden, region)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteAt(mark, 0)
	v, err := Read("data", dir, false)
	if err != nil || v.Base != base || v.Size != size || v.ReadOnly || v.ByMachine || v.End() != base+size || v.Region("U") != path {
		t.Errorf("%+v, %v", v, err)
	}
	got := make([]byte, len(mark))
	if f.ReadAt(got, 0); string(got) != string(mark) {
		t.Errorf("Read has changed the region to %q", got)
	}
	if v, err := Read("data", dir, true); err != nil || !v.ReadOnly {
		t.Errorf("read-only: %+v, %v", v, err)
	}
	// The module offers a name of the region for each VM's UUID. One such file is enough for
	// the test.
	store(t, path+"@00000000-0000-4000-8000-000000000001", nil, 0)
	if v, err := Read("data", dir, false); err != nil || v.Region("abc") != path+"@abc" || v.Region("") != path {
		t.Errorf("by VM: %+v, %v", v, err)
	}
	store(t, filepath.Join(dir, hidden, description), []byte(described1(base, size, `, "mode": "ro"`)), 0)
	if v, err := Read("data", dir, false); err != nil || !v.ReadOnly {
		t.Errorf("mounted read-only: %+v, %v", v, err)
	}
	store(t, filepath.Join(dir, hidden, description), []byte(described1(base, size, `, "mode": "rw", "joined": true`)), 0)
	if v, err := Read("data", dir, false); err != nil || v.ReadOnly {
		t.Errorf("a member: %+v, %v", v, err)
	}
	if _, err := Read("data", dir, true); err == nil || !strings.Contains(err.Error(), "claim data: its node has joined the volume") {
		t.Errorf("a member, read-only: %v", err)
	}
}

// Read reports a known bad page and does not touch the first page, which may be the bad page.
func TestBad(t *testing.T) {
	for text, bad := range map[string]bool{``: false, `, "bad": false`: false, `, "bad": true`: true} {
		dir := lay(t, described1(base, size, `, "mode": "rw", "joined": true`+text), int64(size))
		if v, err := Read("data", dir, false); err != nil || v.Bad != bad || v.ReadOnly {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
	dir := lay(t, described1(base, size, `, "bad": 1`), int64(size))
	if v, err := Read("data", dir, false); err == nil {
		t.Errorf("a number: %+v", v)
	}
}

func TestRefusals(t *testing.T) {
	good := described1(base, size, "")
	for _, c := range []struct {
		dir   string
		words string
	}{
		{t.TempDir(), "is no volume of StargateFS"},
		{lay(t, "", int64(size)), "is no volume of StargateFS"},
		{lay(t, good, -1), "no struct pages"},
		{lay(t, good, int64(size)-1), "region has 4194303 bytes, but volume.json has size 4194304"},
		{lay(t, "{", int64(size)), "volume.json: "},
		{lay(t, `[]`, int64(size)), "volume.json: "},
		{lay(t, `{"size": -1}`, int64(size)), "volume.json: "},
		{lay(t, `{"base": 1, "size": 1}`, int64(size)), "volume.json: "},
		{lay(t, `{"base": "64G", "size": 4194304}`, int64(size)), "is no address"},
		{lay(t, `{"base": "0x10000000000000000", "size": 4194304}`, int64(size)), "is no address"},
		{lay(t, strings.Repeat(" ", mostText+1), int64(size)), "so StargateFS has not written it"},
		{lay(t, `{"version": 2, "base": "0x0", "size": 1}`, int64(size)), "of the same release"},
		{lay(t, described1(base+4096, size, ""), int64(size)), "no pages of 2 MiB"},
		{lay(t, described1(base, 0, ""), 0), "no pages of 2 MiB"},
		{lay(t, described1(^uint64(0)&^(Extent-1), size, ""), int64(size)), "beyond all addresses"},
		{lay(t, described1(1<<52, size, ""), int64(size)), "beyond all addresses"},
		{lay(t, described1(1<<30, size, ""), int64(size)), "reserve memory from 4 GiB on"},
	} {
		_, err := Read("data", c.dir, false)
		if err == nil || !strings.Contains(err.Error(), c.words) || !strings.HasPrefix(err.Error(), "claim data: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("not refused with %q: %v", c.words, err)
		}
	}
}

// TestNoFiles checks that Read follows no link, opens no directory, and does not block on a FIFO.
func TestNoFiles(t *testing.T) {
	for _, name := range []string{description, region} {
		for what, make := range map[string]func(path string) error{
			"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
			"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o600) },
			"directory": func(path string) error { return os.Mkdir(path, 0o700) },
			"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
		} {
			dir := lay(t, described1(base, size, ""), int64(size))
			path := filepath.Join(dir, hidden, name)
			os.Remove(path)
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			if v, err := Read("data", dir, false); err == nil {
				t.Errorf("%s for %s: %+v", what, name, v)
			}
		}
	}
}

// The error names the cause: an old kernel, bad pages, or another errno.
func TestNotAllocated(t *testing.T) {
	for reason, words := range map[unix.Errno]string{
		unix.EINVAL:    "Linux 5.14 or later is needed",
		unix.EHWPOISON: "hardware error",
		unix.EFAULT:    "bad memory, or its file system has no room",
		unix.ENOMEM:    "cannot allocate memory",
		unix.EIO:       "input/output error",
	} {
		err := notAllocated(reason)
		if !errors.Is(err, reason) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is %v, without %q", unix.ErrnoName(reason), err, words)
		}
		if strings.Contains(err.Error(), "5.14") != (reason == unix.EINVAL) {
			t.Errorf("%s: %v", unix.ErrnoName(reason), err)
		}
	}
}

// The kernel has no page after the end of a file. The request then fails with EFAULT, which differs
// from the error of an old kernel.
func TestAllocates(t *testing.T) {
	path := filepath.Join(t.TempDir(), region)
	store(t, path, nil, 0)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := allocates(f); !errors.Is(err, unix.EFAULT) || strings.Contains(err.Error(), "Linux 5.14") {
		t.Errorf("a file that ends before its first page: %v", err)
	}
}

// For any text as volume.json, Read returns an error of one line, or a volume at an address that a
// VM can use.
func FuzzDescription(f *testing.F) {
	f.Add([]byte(described1(base, size, "")))
	f.Add([]byte(`{"kind":"file","volume":"pvc-1","uuid":"","base":"0x1000000000","size":33554432,"alignment":2097152}`))
	f.Add([]byte(`{"base":"0x1000000000","size":33554432,"bad":true}`))
	f.Add([]byte(`{"base":"0xffffffffffe00000","size":18446744073709551615,"mode":"ro"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := parse(text)
		v := Volume{}
		if err == nil {
			err = v.take(d)
		}
		if err != nil {
			if len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has %d bytes: %q", len(err.Error()), err)
			}
			return
		}
		if v.Base < Lowest || v.End() <= v.Base || v.End() > highest || v.Base%Extent != 0 || v.Size%Extent != 0 {
			t.Errorf("%+v", v)
		}
	})
}
