// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/mounts/mountstest"
	"stargate/csi-driver/internal/pool"
)

// A pod's group can write to the root directory of a new volume. A root directory with a chosen
// owner, or with files, does not change.
func TestGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the group of a directory")
	}
	const others = 1000
	for _, c := range []struct {
		what     string
		uid, gid int
		mode     uint32
		full     bool
		o        Options
		wantGid  int
		wantMode uint32
	}{
		{"new", 0, 0, 0o755, false, Options{Group: 2000}, 2000, 0o2775},
		{"cut off", 0, 0, 0o2775, false, Options{Group: 2000}, 2000, 0o2775},
		{"no group", 0, 0, 0o755, false, Options{}, 0, 0o755},
		{"QEMU's", 0, 0, 0o755, false, Options{Group: 107}, 0, 0o755},
		{"read-only", 0, 0, 0o755, false, Options{Group: 2000, ReadOnly: true}, 0, 0o755},
		{"in use", 0, 0, 0o755, true, Options{Group: 2000}, 0, 0o755},
		{"another group's", 0, others, 0o2775, false, Options{Group: 2000}, others, 0o2775},
		{"somebody's", others, 0, 0o755, false, Options{Group: 2000}, 0, 0o755},
		{"of another mode", 0, 0, 0o700, false, Options{Group: 2000}, 0, 0o700},
	} {
		for _, published := range []bool{false, true} {
			dir, ctx, table := t.TempDir(), context.Background(), mountstest.New()
			staging, target := filepath.Join(dir, "staging"), filepath.Join(dir, "target")
			for _, d := range []string{staging, target} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			d, v := NewDAX(mounts.On(table), 107, true), pool.Volume{Name: "v", Path: "/dev/sm/v"}
			staged := c.o
			if published { // the first pod has no fsGroup, and the second pod has one
				staged.Group = 0
			}
			err := os.Chown(staging, c.uid, c.gid)
			if err == nil {
				err = unix.Chmod(staging, c.mode)
			}
			if err == nil {
				err = d.Stage(ctx, v, staging, staged)
			}
			if err == nil && c.full {
				err = os.WriteFile(filepath.Join(staging, "file"), nil, 0o600)
			}
			if err == nil && !published && c.full {
				continue // the files are created after the mount, because the table requires an empty directory
			}
			if err == nil {
				err = d.Publish(ctx, v, staging, target, c.o)
			}
			if err != nil {
				t.Fatal(err)
			}
			var st unix.Stat_t
			if err := unix.Stat(staging, &st); err != nil {
				t.Fatal(err)
			}
			if int(st.Uid) != c.uid || int(st.Gid) != c.wantGid || st.Mode&0o7777 != c.wantMode {
				t.Errorf("%s: the root is %d:%d, %#o", c.what, st.Uid, st.Gid, st.Mode&0o7777)
			}
		}
	}
}

// A call that cannot set the group of the root directory removes its own mount.
func TestGroupNotGiven(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a read-only file system")
	}
	path, ctx, m := t.TempDir(), context.Background(), mounts.On(mountstest.New())
	if err := unix.Mount("none", path, "tmpfs", unix.MS_RDONLY, "mode=0755"); err != nil {
		t.Skip("no mounts here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	d, v := NewDAX(m, 107, true), pool.Volume{Name: "v", Path: "/dev/sm/v"}
	for what, call := range map[string]func() error{
		"stage":  func() error { return d.Stage(ctx, v, path, Options{Group: 2000}) },
		"direct": func() error { return d.Direct(ctx, v, path, Options{Group: 2000}) },
	} {
		err := call()
		if !errors.Is(err, unix.EROFS) || !errkind.Is(err, errkind.Internal) {
			t.Errorf("%s: %v", what, err)
		}
		if at, err := m.At(path); err != nil || at != nil {
			t.Errorf("%s leaves %+v mounted, %v", what, at, err)
		}
	}
}
