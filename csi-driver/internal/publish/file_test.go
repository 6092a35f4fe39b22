// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/mounts/mountstest"
	"stargate/csi-driver/internal/pool"
)

// A call that fails after a mount removes the mount, because kubelet does not repeat the call after
// a final error.
func TestFailuresLeaveNoMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	dir, ctx := t.TempDir(), context.Background()
	staging, target, direct := filepath.Join(dir, "staging"), filepath.Join(dir, "target"), filepath.Join(dir, "direct")
	for _, d := range []string{staging, target, direct} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(d, unix.MNT_DETACH) })
	}
	m := mounts.New()
	f := NewFile(m, nil)
	v := pool.Volume{Name: "v", Path: filepath.Join(dir, "gone"), Memory: 1 << 20}
	none := func(what, path string, err error) {
		t.Helper()
		at, merr := m.At(path)
		if merr != nil || at != nil || !errkind.Is(err, errkind.Internal) {
			t.Errorf("%s: %v; mounted is %+v, %v", what, err, at, merr)
		}
	}
	if err := f.Stage(ctx, v, staging, Options{}); err != nil {
		t.Fatal(err)
	}
	none("publish", target, f.Publish(ctx, v, staging, target, Options{}))
	none("direct", direct, f.Direct(ctx, v, direct, Options{}))
	// A busy mount cannot be removed. The error makes kubelet repeat the call, and a later call
	// removes the mount.
	if err := m.Bind(staging, target, 0); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(ctx, v, staging, target, Options{}); !errkind.Is(err, errkind.Busy) {
		t.Errorf("Publish that leaves a mount fails with %v", err)
	}
	open.Close()
	none("again", target, f.Publish(ctx, v, staging, target, Options{}))
	if err := f.Withdraw(ctx, staging); err != nil {
		t.Error(err)
	}
	// A stage fails if its files do not fit into the shell.
	tiny, options := filepath.Join(dir, "target"), shellOptions
	t.Cleanup(func() { shellOptions = options })
	shellOptions = []string{"size=4k", "nr_inodes=2"}
	none("stage", tiny, f.Stage(ctx, v, tiny, Options{}))
}

// Pods get a read-only shell with a file that is memory and cannot be executed. This holds for any
// class.
func TestBareShells(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		dir, ctx, table := t.TempDir(), context.Background(), mountstest.New()
		staging, target, direct := filepath.Join(dir, "staging"), filepath.Join(dir, "target"), filepath.Join(dir, "direct")
		for _, d := range []string{staging, target, direct} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		f, v := NewFile(mounts.On(table), nil), pool.Volume{Name: "v", Path: filepath.Join(dir, "v.stargate"), Memory: 1 << 20}
		o := Options{ReadOnly: readOnly, Setuid: true, Devices: true}
		err := f.Stage(ctx, v, staging, o)
		if err == nil {
			err = f.Publish(ctx, v, staging, target, o)
		}
		if err == nil {
			err = f.Direct(ctx, v, direct, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		entries, err := table.Entries()
		if err != nil {
			t.Fatal(err)
		}
		of := map[string][]string{}
		for _, e := range entries {
			of[e.MountPoint] = slices.Concat(e.SuperOptions, e.MountOptions)
		}
		bare := []string{"nodev", "nosuid", "noexec"}
		for point, want := range map[string][]string{
			staging: bare, direct: append([]string{"ro"}, bare...), target: {"ro"},
			filepath.Join(target, hidden, region): bare, filepath.Join(direct, hidden, region): bare,
		} {
			for _, option := range want {
				if !slices.Contains(of[point], option) {
					t.Errorf("%s has %v, without %s", point, of[point], option)
				}
			}
		}
		for _, shell := range []string{target, direct} {
			if region := filepath.Join(shell, hidden, region); slices.Contains(of[region], "ro") != readOnly {
				t.Errorf("%s has %v", region, of[region])
			}
		}
	}
}
