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

// With the mount option marked, the volume's memory can be opened only through mounts with the
// attribute nodiratime, which only VMs' pods have. Owner and mode are the same in all mounts, so
// without the option every pod of QEMU's group would have access.
const marked = "region_nodiratime"

// module mounts devices by the kernel's module.
type module struct {
	m *mounts.Mounter
	// region has the mount options that set owner and mode of the volume's memory.
	region []string
}

// options returns the mount options that this node's module supports. For a module that is older
// than the mark, it leaves out marked.
func (d *module) options() []string {
	all := slices.Clone(d.region)
	if d.m.Takes(fsType, marked) {
		all = append(all, marked)
	}
	return all
}

// guard restricts a volume's memory to VMs. The volume may have been staged by an earlier driver,
// or by this driver without VMs.
func (d *module) guard(v pool.Volume, staging string) error {
	at, err := d.m.At(staging)
	if err != nil || at == nil || at.FsType != fsType {
		return err // the caller refuses a volume that is not staged
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

// With the mount option noJoin, the node does not join the volume. VMs with read-only memory cannot
// mount a volume that has members.
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
// node first joins and recovers. The node remains a member if another system is a member, or if the
// module is older than nojoin.
func (d *module) unwritten(ctx context.Context, v pool.Volume, path string, o Options) error {
	if d.join(ctx, v, path, o, noJoin) == nil {
		return nil
	}
	if err := d.join(ctx, v, path, o); err != nil {
		return err
	}
	// The unmount may fail because the mount is in use. This is temporary, so the error makes
	// the caller retry.
	if err := d.m.Clear(path, ours); err != nil {
		return errkind.Wrap(errkind.Busy, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "dax: recovered")
	if d.join(ctx, v, path, o, noJoin) == nil {
		return nil
	}
	return d.join(ctx, v, path, o)
}

// outdated removes a member's mount of a volume that no system may write any more. It does not
// remove a mount in use.
func (d *module) outdated(_ context.Context, _ pool.Volume, at *mount.MountInfo, o Options) (bool, error) {
	return o.Unwritten && !slices.Contains(at.SuperOptions, noJoin) && d.m.Clear(at.MountPoint, ours) == nil, nil
}

// fits reports whether a mount has the requested data path.
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

// points returns the mount points of volumes. It reads the number of each device once.
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
