// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
)

// formats returns a zone whose mkfs is a script, with the file's path as its last argument.
func formats(t *testing.T, mkfs string) *Zone {
	t.Helper()
	return zoneWith(t, toolsOf(t, script, "#!/bin/sh\nfor file; do :; done\n"+mkfs))
}

func (z *Zone) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(z.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

var small = pool.Spec{Name: "w", Size: 16 << 20, Align: pool.Extent}

// Only root and QEMU's group can access the file of a volume.
func TestOwnerOfFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can set another group of a file")
	}
	z := formats(t, `truncate -s 16M "$file"`)
	z.config.Group = 107
	_, _ = z.Create(background, small) // the final read finds no file system
	var st unix.Stat_t
	if err := unix.Stat(z.path(small.Name), &st); err != nil {
		t.Fatal(err)
	}
	if st.Mode&0o7777 != 0o660 || st.Uid != 0 || st.Gid != 107 {
		t.Errorf("mode %o, owner %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
	}
}

// A failed call also reports which leftovers it could not remove. The next Sweep removes them.
func TestNotCleanedUp(t *testing.T) {
	z := formats(t, `mkdir -p "$file/in the way"; echo "mkfs.stargatefs: bad label" >&2; exit 2`)
	_, err := z.Create(background, small)
	if !errkind.Is(err, errkind.Invalid) || !strings.Contains(err.Error(), "bad label") || !strings.Contains(err.Error(), folder.Making+"w: directory not empty") {
		t.Errorf("the error of a failed cleanup is: %v", err)
	}
	if err := z.Sweep(background); err == nil || !strings.Contains(err.Error(), folder.Making+"w") {
		t.Errorf("a failed sweep reports: %v", err)
	}
	if err := os.Remove(filepath.Join(z.folder.Path(folder.Making, "w"), "in the way")); err != nil {
		t.Fatal(err)
	}
	if err := z.Sweep(background); err != nil || len(z.files(t)) > 0 {
		t.Errorf("after Sweep, the zone has the files %q, %v", z.files(t), err)
	}
}

// Sweep removes files that no call uses, of any kind, and nothing else.
func TestSweep(t *testing.T) {
	z := formats(t, `: >"$file"; exec sleep 600`)
	kept := []string{"v" + suffix, origin + "v", "somebody's", pool.SnapshotName("s") + "@v.snapshot"}
	left := []string{folder.Making + "x", folder.Making + "x@", folder.Making + "x@.part", folder.Deleting + "x-y", origin + "x"}
	for _, name := range slices.Concat(kept, left) {
		if err := os.WriteFile(filepath.Join(z.config.Dir, name), []byte(`{"base": "0x1000000000"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(background)
	done := make(chan error, 1)
	go func() { _, err := z.Create(ctx, small); done <- err }()
	work := folder.Making + "w"
	for !slices.Contains(z.files(t), work) {
		time.Sleep(time.Millisecond)
	}
	err := z.Sweep(background)
	want := slices.Sorted(slices.Values(append(slices.Clone(kept), work, place+"v")))
	if got := z.files(t); err != nil || !slices.Equal(got, want) {
		t.Errorf("the files are %q, %v; should be %q", got, err, want)
	}
	cancel()
	<-done
	if got := z.files(t); slices.Contains(got, work) {
		t.Errorf("there are %q", got)
	}
}
