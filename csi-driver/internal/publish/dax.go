// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
)

const fsType = "stargatefs"

// Mountable reports whether this node's kernel has the file system.
func Mountable() bool { return mounts.Known(fsType) }

// DAX mounts volumes on the node; pods see the mount, VMs its .stargate/region.
type DAX struct {
	m *mounts.Mounter
	// region are mount options with owner and mode of the volume's memory.
	region []string
	// group is QEMU's.
	group int
}

// marked opens the volume's memory only through mounts with the attribute nodiratime: those of VMs'
// pods. Owner and mode are the same in all mounts, so they alone would give it to every pod of
// QEMU's group.
const marked = "region_nodiratime"

var _ Presenter = (*DAX)(nil)

// NewDAX is for zones of reserved memory. Processes of that group have it for VMs, if machines is
// set.
func NewDAX(m *mounts.Mounter, group int, machines bool) *DAX {
	if !machines {
		return &DAX{m, nil, group}
	}
	return &DAX{m, []string{fmt.Sprintf("region_gid=%d", group), "region_mode=0660"}, group}
}

// options are those that this node's module has. A module older than the mark is served as before.
func (d *DAX) options() []string {
	all := slices.Clone(d.region)
	if d.m.Takes(fsType, marked) {
		all = append(all, marked)
	}
	return all
}

// guard limits a volume's memory to VMs, also if the volume was staged by an earlier driver, or by
// this one without VMs.
func (d *DAX) guard(v pool.Volume, staging string) error {
	at, err := d.m.At(staging)
	if err != nil || at == nil || at.FsType != fsType {
		return err // a volume that is not staged is not published
	}
	missing := slices.DeleteFunc(d.options(), func(o string) bool { return slices.Contains(at.SuperOptions, o) })
	if len(missing) == 0 {
		return nil
	}
	if err := d.m.Reconfigure(staging, missing); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s: mount options that restrict its memory", v.Name)
	}
	return nil
}

// noJoin keeps the node out of the volume, so that VMs can have its memory read-only: they could
// not mount it beside a member.
const noJoin = "nojoin"

// Stage mounts the device.
func (d *DAX) Stage(ctx context.Context, v pool.Volume, path string, o Options) error {
	at, err := d.m.At(path)
	if err != nil {
		return err
	}
	there := at != nil
	if there {
		if err := d.same(v, at, o); err != nil {
			return err
		}
		if !o.Unwritten || slices.Contains(at.SuperOptions, noJoin) || d.m.Clear(path, ours) != nil {
			return nil
		}
	}
	if o.Unwritten {
		return d.unwritten(ctx, v, path, o)
	}
	if err := d.mount(ctx, v, path, o); err != nil {
		return err
	}
	if err = d.give(path, o); err == nil {
		return nil
	}
	if !there {
		return undone(d.m, v, path, err)
	}
	return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
}

// give lets a pod's group write to a volume's root as long as the volume is as it was made: empty,
// with a root that belongs to root. It never walks through files, because others may use them, and
// never changes a user's choice. A VM's pod has QEMU's group for the volume's memory; it needs no
// files, and is often the first.
func (d *DAX) give(path string, o Options) error {
	if o.Group == 0 || o.Group == d.group || o.ReadOnly {
		return nil
	}
	if err := giveNew(path, o.Group); err != nil {
		return fmt.Errorf("its root for group %d: %w", o.Group, err)
	}
	return nil
}

func giveNew(path string, group int) error {
	root, err := os.Open(path)
	if err != nil {
		return err
	}
	defer root.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return err
	}
	if st.Uid != 0 || st.Gid != 0 || st.Mode&0o7777 != newRoot && st.Mode&0o7777 != givenRoot {
		return nil
	}
	if _, err := root.Readdirnames(1); !errors.Is(err, io.EOF) {
		return err // nil, if there is something in it
	}
	// The mode comes first: a call that was cut off between the two leaves root's group, and
	// the next one continues.
	if err := unix.Fchmod(int(root.Fd()), givenRoot); err != nil {
		return err
	}
	return unix.Fchown(int(root.Fd()), -1, group)
}

// Modes of a volume's root: newRoot if the class names none, givenRoot once a pod's group owns it.
// New files in a root with givenRoot belong to that group, too.
const (
	newRoot   = 0o755
	givenRoot = 0o2775
)

func (d *DAX) mount(ctx context.Context, v pool.Volume, path string, o Options, more ...string) error {
	flags := slices.Concat(o.Flags, d.options(), more)
	if o.ReadOnly {
		flags = append(flags, "ro")
	}
	if !o.Setuid {
		flags = append(flags, "nosuid")
	}
	if !o.Devices {
		flags = append(flags, "nodev")
	}
	if err := d.m.Mount(v.Path, path, fsType, flags); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "dax: mounted")
	return nil
}

// unwritten mounts a volume without joining it. If the last writer has left work for recovery, the
// node joins first and recovers. It stays a member if another system is one, or if the module is
// older than nojoin.
func (d *DAX) unwritten(ctx context.Context, v pool.Volume, path string, o Options) error {
	if d.mount(ctx, v, path, o, noJoin) == nil {
		return nil
	}
	if err := d.mount(ctx, v, path, o); err != nil {
		return err
	}
	// A member's mount would work as well. The unmount may fail because the mount is in use.
	// That passes, so the caller retries.
	if err := d.m.Clear(path, ours); err != nil {
		return errkind.Wrap(errkind.Busy, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "dax: recovered")
	if d.mount(ctx, v, path, o, noJoin) == nil {
		return nil
	}
	return d.mount(ctx, v, path, o)
}

// same checks that an existing mount is the wanted one; otherwise the mount is in the way.
func (d *DAX) same(v pool.Volume, at *mount.MountInfo, o Options) error {
	ours, err := isOf(v, at)
	if err != nil {
		return err
	}
	if !ours || mounts.ReadOnly(at) != o.ReadOnly {
		return inTheWay(at.MountPoint)
	}
	for _, f := range o.Flags {
		if strings.HasPrefix(f, "map=") && !slices.Contains(at.SuperOptions, f) && f != "map=walk" {
			return inTheWay(at.MountPoint)
		}
	}
	return nil
}

func isOf(v pool.Volume, at *mount.MountInfo) (bool, error) {
	var st unix.Stat_t
	if err := unix.Stat(v.Path, &st); err != nil {
		return false, errkind.Wrap(errkind.Internal, err, "device %s", v.Path)
	}
	return at.FsType == fsType && st.Mode&unix.S_IFMT == unix.S_IFBLK && at.Root == "/" &&
		int(unix.Major(st.Rdev)) == at.Major && int(unix.Minor(st.Rdev)) == at.Minor, nil
}

// Publish binds.
func (d *DAX) Publish(ctx context.Context, v pool.Volume, staging, target string, o Options) error {
	at, err := d.m.At(target)
	if err != nil {
		return err
	}
	if at != nil {
		ours, err := isOf(v, at)
		if err != nil {
			return err
		}
		if ours && mounts.ReadOnly(at) == o.ReadOnly && (o.Machine || !mounts.Marked(at)) {
			return nil
		}
		return inTheWay(target)
	}
	if err := d.guard(v, staging); err != nil {
		return err
	}
	// An earlier driver, without this step, may have staged it.
	if err := d.give(staging, o); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	if err := d.m.Bind(staging, target, o.attributes()); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "dax: bound")
	return nil
}

// Direct mounts the device for one pod alone.
func (d *DAX) Direct(ctx context.Context, v pool.Volume, target string, o Options) error {
	return d.Stage(ctx, v, target, o)
}

// Shown are its mounts.
func (d *DAX) Shown(v pool.Volume) ([]string, error) {
	all, err := d.ShownAll([]pool.Volume{v})
	return all[v.Name], err
}

// ShownAll reads the table once, and looks at each device once.
func (d *DAX) ShownAll(volumes []pool.Volume) (map[string][]string, error) {
	entries, err := d.m.Entries()
	if err != nil {
		return nil, err
	}
	type device struct{ major, minor int }
	points := map[device][]string{}
	for _, e := range entries {
		if e.FsType == fsType && e.Root == "/" {
			of := device{e.Major, e.Minor}
			points[of] = append(points[of], e.MountPoint)
		}
	}
	all := map[string][]string{}
	for _, v := range volumes {
		var st unix.Stat_t
		if unix.Stat(v.Path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK {
			all[v.Name] = points[device{int(unix.Major(st.Rdev)), int(unix.Minor(st.Rdev))}]
		}
	}
	return all, nil
}

// Machines are its mounts with the mark.
func (d *DAX) Machines(v pool.Volume) ([]string, error) {
	shown, err := d.Shown(v)
	if err != nil {
		return nil, err
	}
	return markedOf(d.m, shown)
}

// Usage is the mount's.
func (d *DAX) Usage(_ context.Context, v pool.Volume, path string) (Usage, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Usage{}, errkind.Wrap(errkind.Internal, err, "volume %s at %s", v.Name, path)
	}
	unit := fs.Bsize
	return Usage{
		Size: int64(fs.Blocks) * unit, Used: int64(fs.Blocks-fs.Bfree) * unit, Free: int64(fs.Bavail) * unit,
		Inodes: signed(fs.Files), InodesUsed: signed(fs.Files - min(fs.Ffree, fs.Files)), InodesFree: signed(fs.Ffree),
	}, nil
}

// signed is a counter that the volume's members can write.
func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Grown has nothing to do: the module has followed.
func (d *DAX) Grown(context.Context, pool.Volume) error { return nil }
