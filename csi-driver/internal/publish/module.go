// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
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

// marked opens the volume's memory only through mounts with the attribute nodiratime: those of VMs'
// pods. Owner and mode are the same in all mounts, so they alone would give it to every pod of
// QEMU's group.
const marked = "region_nodiratime"

// module mounts devices.
type module struct {
	m *mounts.Mounter
	// region are mount options with owner and mode of the volume's memory.
	region []string
}

// options are those that this node's module has. A module older than the mark is served as before.
func (d *module) options() []string {
	all := slices.Clone(d.region)
	if d.m.Takes(fsType, marked) {
		all = append(all, marked)
	}
	return all
}

// guard limits a volume's memory to VMs, also if the volume was staged by an earlier driver, or by
// this one without VMs.
func (d *module) guard(v pool.Volume, staging string) error {
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

func (d *module) mount(ctx context.Context, v pool.Volume, path string, o Options) error {
	if o.Unwritten {
		return d.unwritten(ctx, v, path, o)
	}
	return d.join(ctx, v, path, o)
}

func (d *module) join(ctx context.Context, v pool.Volume, path string, o Options, more ...string) error {
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
func (d *module) unwritten(ctx context.Context, v pool.Volume, path string, o Options) error {
	if d.join(ctx, v, path, o, noJoin) == nil {
		return nil
	}
	if err := d.join(ctx, v, path, o); err != nil {
		return err
	}
	// A member's mount would work as well. The unmount may fail because the mount is in use.
	// That passes, so the caller retries.
	if err := d.m.Clear(path, ours); err != nil {
		return errkind.Wrap(errkind.Busy, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "dax: recovered")
	if d.join(ctx, v, path, o, noJoin) == nil {
		return nil
	}
	return d.join(ctx, v, path, o)
}

// outdated is a member's mount of a volume that nobody is to write any more. It stays if it is in
// use.
func (d *module) outdated(_ context.Context, _ pool.Volume, at *mount.MountInfo, o Options) (bool, error) {
	return o.Unwritten && !slices.Contains(at.SuperOptions, noJoin) && d.m.Clear(at.MountPoint, ours) == nil, nil
}

// fits compares the data paths.
func (d *module) fits(at *mount.MountInfo, o Options) bool {
	for _, f := range o.Flags {
		if strings.HasPrefix(f, "map=") && !slices.Contains(at.SuperOptions, f) && f != "map=walk" {
			return false
		}
	}
	return true
}

func (d *module) of(v pool.Volume, at *mount.MountInfo) (bool, error) {
	var st unix.Stat_t
	if err := unix.Stat(v.Path, &st); err != nil {
		return false, errkind.Wrap(errkind.Internal, err, "device %s", v.Path)
	}
	return at.FsType == fsType && st.Mode&unix.S_IFMT == unix.S_IFBLK && at.Root == "/" &&
		int(unix.Major(st.Rdev)) == at.Major && int(unix.Minor(st.Rdev)) == at.Minor, nil
}

// points looks at each device once.
func (d *module) points(entries []mount.MountInfo, volumes []pool.Volume) map[string][]string {
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
	return all
}
