// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/mounts/mountstest"
	"stargate/csi-driver/internal/pool"
)

// Mounts on the node and in pods have nosuid and nodev, unless the class removes these options.
func TestNoSetuidNoDevices(t *testing.T) {
	for _, c := range []struct {
		o     Options
		wants []string
	}{
		{Options{}, []string{"nosuid", "nodev"}},
		{Options{ReadOnly: true}, []string{"nosuid", "nodev"}},
		{Options{Unwritten: true, ReadOnly: true}, []string{"nosuid", "nodev"}},
		{Options{Setuid: true}, []string{"nodev"}},
		{Options{Devices: true}, []string{"nosuid"}},
		{Options{Setuid: true, Devices: true}, nil},
	} {
		dir, ctx, table := t.TempDir(), context.Background(), mountstest.New()
		staging, target, direct := filepath.Join(dir, "staging"), filepath.Join(dir, "target"), filepath.Join(dir, "direct")
		for _, d := range []string{staging, target, direct} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		d, v := NewDAX(mounts.On(table), 107, true), pool.Volume{Name: "v", Path: "/dev/sm/v"}
		if err := d.Stage(ctx, v, staging, c.o); err != nil {
			t.Fatal(err)
		}
		if err := d.Publish(ctx, v, staging, target, c.o); err != nil {
			t.Fatal(err)
		}
		if err := d.Direct(ctx, v, direct, c.o); err != nil {
			t.Fatal(err)
		}
		all, err := table.Entries()
		if err != nil || len(all) != 4 {
			t.Fatalf("%d mounts, %v", len(all), err)
		}
		for i, has := range [][]string{all[1].SuperOptions, all[2].MountOptions, all[3].SuperOptions} {
			for _, option := range []string{"nosuid", "nodev"} {
				if slices.Contains(has, option) != slices.Contains(c.wants, option) {
					t.Errorf("%+v: %s has %v", c.o, all[i+1].MountPoint, has)
				}
			}
		}
	}
}

// A volume's memory can be opened only through mounts of VMs' pods, which have the mark. This holds
// for any stage and any class.
func TestMemoryForMachines(t *testing.T) {
	const open, closed = "region_gid=107,region_mode=0660,region_nodiratime", "region_nodiratime"
	for _, c := range []struct {
		what     string
		machines bool // the driver gives VMs the memory
		before   string
		lacks    bool // the module is older than the mark
		want     string
	}{
		{"staged by this driver", true, "", false, open},
		{"without machines", false, "", false, closed},
		{"staged by an earlier driver", true, "map=walk,region_gid=107,region_mode=0660", false, "map=walk," + open},
		{"staged without machines", true, closed, false, "region_nodiratime,region_gid=107,region_mode=0660"},
		{"staged by an earlier driver, without machines", false, "region_gid=107,region_mode=0660", false, open},
		{"an earlier module", true, "", true, "region_gid=107,region_mode=0660"},
	} {
		dir, ctx, table := t.TempDir(), context.Background(), mountstest.New()
		staging, pod, machine := filepath.Join(dir, "staging"), filepath.Join(dir, "pod"), filepath.Join(dir, "machine")
		for _, d := range []string{staging, pod, machine} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if c.lacks {
			table.Lack("region_nodiratime")
		}
		d, v := NewDAX(mounts.On(table), 107, c.machines), pool.Volume{Name: "v", Path: "/dev/sm/v"}
		err := error(nil)
		if c.before == "" {
			err = d.Stage(ctx, v, staging, Options{Setuid: true, Devices: true})
		} else {
			err = table.Mount(v.Path, staging, fsType, strings.Split(c.before, ","))
		}
		if err == nil {
			err = d.Publish(ctx, v, staging, pod, Options{})
		}
		if err == nil {
			err = d.Publish(ctx, v, staging, machine, Options{Machine: true})
		}
		if err != nil {
			t.Fatal(err)
		}
		all, err := table.Entries()
		if err != nil || len(all) != 4 {
			t.Fatalf("%d mounts, %v", len(all), err)
		}
		if got := strings.Join(all[1].SuperOptions, ","); got != c.want {
			t.Errorf("%s: %s, and not %s", c.what, got, c.want)
		}
		if mounts.Marked(&all[2]) || !mounts.Marked(&all[3]) {
			t.Errorf("%s: the pod has %v, the VM %v", c.what, all[2].MountOptions, all[3].MountOptions)
		}
	}
}

// If an earlier driver has staged a volume without nosuid and nodev, this driver publishes it with
// these options. So a setuid program of root in it makes no user root, and a device node in it has
// no effect.
func TestSetuidPlanted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	id, err := exec.LookPath("id")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(id)
	if err != nil {
		t.Fatal(err)
	}
	dir, ctx, m := t.TempDir(), context.Background(), mounts.New()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	staging, target := filepath.Join(dir, "staging"), filepath.Join(dir, "target")
	for _, d := range []string{staging, target} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(d, unix.MNT_DETACH) })
	}
	if err := unix.Mount("staged", staging, "tmpfs", 0, "mode=0755"); err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(filepath.Join(staging, "id"), text, 0o755)
	if err == nil {
		err = unix.Chmod(filepath.Join(staging, "id"), 0o4755)
	}
	if err == nil {
		err = unix.Mknod(filepath.Join(staging, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))
	}
	if err != nil {
		t.Fatal(err)
	}
	runsAs := func(path string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(path, "id"), "-u")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if as := runsAs(staging); as != "0" {
		t.Skipf("a setuid program runs as %s even without nosuid, so this machine cannot run the test", as)
	}
	if err := NewDAX(m, 107, true).Publish(ctx, pool.Volume{Name: "v"}, staging, target, Options{}); err != nil {
		t.Fatal(err)
	}
	if as := runsAs(target); as != "65534" {
		t.Errorf("a setuid program in the volume runs as %s", as)
	}
	if f, err := os.Open(filepath.Join(target, "zero")); err == nil {
		f.Close()
		t.Error("a device node in the volume is a device")
	}
}
