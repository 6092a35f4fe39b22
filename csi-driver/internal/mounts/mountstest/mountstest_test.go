// SPDX-License-Identifier: Apache-2.0

package mountstest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"stargate/csi-driver/internal/mounts"
)

// The table behaves like the kernel: mounts at a path are a stack, each has its attributes, and
// files are removed with their mount.
func TestTable(t *testing.T) {
	staged, bound := t.TempDir(), t.TempDir()
	table := New()
	m := mounts.On(table)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(m.Mount("shell", staged, "tmpfs", []string{"size=64k"}))
	must(os.WriteFile(filepath.Join(staged, "file"), nil, 0o600))
	if err := m.Mount("over", staged, "tmpfs", nil); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("Mount on a folder with files: %v", err)
	}
	must(m.Bind(staged, bound, mounts.Attributes(true, 0)))
	must(m.Bind("/volume", filepath.Join(bound, "region"), 0))
	at, err := m.At(bound)
	if err != nil || at == nil || at.Source != "shell" || at.Root != "/" || !mounts.ReadOnly(at) {
		t.Errorf("the bound mount is %+v, %v", at, err)
	}
	region, err := m.At(filepath.Join(bound, "region"))
	if err != nil || region == nil || region.ParentID != at.ID || region.Root != "/volume" || mounts.ReadOnly(region) {
		t.Errorf("the region is %+v, %v", region, err)
	}
	must(m.Close(staged))
	if at, err := m.At(staged); err != nil || !mounts.ReadOnly(at) {
		t.Errorf("the closed mount is %+v, %v", at, err)
	}
	if err := m.Unmount(bound); !errors.Is(err, unix.EBUSY) {
		t.Errorf("Unmount of a mount that contains another mount: %v", err)
	}
	must(m.Clear(bound, func(e *mount.MountInfo) bool { return e.Source == "shell" }))
	if shown := table.Shown(); !slices.Equal(shown, []string{staged}) {
		t.Errorf("the mount points are %v", shown)
	}
	must(m.Unmount(staged))
	if left, err := os.ReadDir(staged); err != nil || len(left) > 0 {
		t.Errorf("after the unmount, the folder has the files %v, %v", left, err)
	}
	if err := m.Unmount(staged); !errors.Is(err, unix.EINVAL) {
		t.Errorf("Unmount of a path without a mount: %v", err)
	}
}

// A planned failure happens once, at the planned call.
func TestFail(t *testing.T) {
	table := New()
	for c, do := range map[Call]func() error{
		Entries: func() error { _, err := table.Entries(); return err },
		Mount:   func() error { return table.Mount("s", t.TempDir(), "tmpfs", nil) },
		Bind:    func() error { return table.Bind("/s", t.TempDir(), 0) },
	} {
		table.Fail(c, unix.EIO)
		if err := do(); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: %v", c, err)
		}
		if err := do(); err != nil {
			t.Errorf("%s again: %v", c, err)
		}
		table.FailAt(c, 2, unix.EIO)
		if first, second := do(), do(); first != nil || !errors.Is(second, unix.EIO) || table.Disarm() {
			t.Errorf("%s: the first and the second call return %v, %v", c, first, second)
		}
	}
}
