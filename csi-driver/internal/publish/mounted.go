// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
)

// mounter mounts volumes as file systems. There are two kinds: by the kernel's module, and by
// servers.
type mounter interface {
	// mount mounts a volume at a path where nothing is mounted.
	mount(ctx context.Context, v pool.Volume, path string, o Options) error
	// of reports whether a mount belongs to the volume.
	of(v pool.Volume, at *mount.MountInfo) (bool, error)
	// fits reports whether a mount of the volume has the given options.
	fits(at *mount.MountInfo, o Options) bool
	// outdated removes a mount of the volume that must be created again. It reports whether it
	// has removed the mount.
	outdated(ctx context.Context, v pool.Volume, at *mount.MountInfo, o Options) (bool, error)
	// guard adds missing options to a stage of an earlier driver.
	guard(v pool.Volume, staging string) error
	// points returns the mount points of volumes, by the volumes' names.
	points(entries []mount.MountInfo, volumes []pool.Volume) map[string][]string
}

// Mounted presents volumes as mounts: once on the node, and bound from there for pods.
type Mounted struct {
	m  *mounts.Mounter
	by mounter
	// group is the group of QEMU.
	group int
}

var _ Presenter = (*Mounted)(nil)

// NewDAX returns the Presenter for zones of reserved memory, which mounts by the kernel's module.
// If machines is set, processes of the given group can open a volume's memory for VMs:
// .stargate/region of the mount.
func NewDAX(m *mounts.Mounter, group int, machines bool) *Mounted {
	by := &module{m: m}
	if machines {
		by.region = []string{fmt.Sprintf("region_gid=%d", group), "region_mode=0660"}
	}
	return &Mounted{m, by, group}
}

// Stage mounts the volume.
func (d *Mounted) Stage(ctx context.Context, v pool.Volume, path string, o Options) error {
	at, err := d.m.At(path)
	if err != nil {
		return err
	}
	if at != nil {
		if err := d.same(v, at, o); err != nil {
			return err
		}
		if again, err := d.by.outdated(ctx, v, at, o); err != nil || !again {
			return err
		}
	}
	if err := d.by.mount(ctx, v, path, o); err != nil {
		return err
	}
	if err := d.give(ctx, path, o); err != nil {
		return undone(d.m, v, path, err)
	}
	return nil
}

// same returns an error if an existing mount is not the requested mount.
func (d *Mounted) same(v pool.Volume, at *mount.MountInfo, o Options) error {
	ours, err := d.by.of(v, at)
	if err != nil {
		return err
	}
	if !ours || mounts.ReadOnly(at) != o.ReadOnly || !d.by.fits(at, o) {
		return inTheWay(at.MountPoint)
	}
	return nil
}

// give sets a pod's group as the group of a volume's root directory, so that the pod can write. It
// does this only for a new volume, which is empty and whose root directory belongs to root. It
// never walks through files, because other systems may use them, and never changes a user's choice.
// It ignores QEMU's group, which a VM's pod has for the volume's memory.
//
// The mount's server may die meanwhile, and a call that waits for the next server cannot be
// cancelled. So give returns at its time limit, and the call continues in its goroutine. If give
// waited for the call, it would also delay the end of the volume's pods.
func (d *Mounted) give(ctx context.Context, path string, o Options) error {
	if o.Group == 0 || o.Group == d.group || o.ReadOnly {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, giveLimit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- giveNew(ctx, path, o.Group) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("setting group %d of its root directory: %w", o.Group, err)
		}
		return nil
	case <-ctx.Done():
		return errkind.Wrap(errkind.NoAnswer, ctx.Err(), "setting group %d of its root directory: the mount at %s does not answer", o.Group, path)
	}
}

const giveLimit = 30 * time.Second

func giveNew(ctx context.Context, path string, group int) error {
	root, err := os.Open(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return err
	}
	if st.Uid != 0 || st.Gid != 0 || st.Mode&0o7777 != newRoot && st.Mode&0o7777 != givenRoot {
		return nil
	}
	if _, err := root.Readdirnames(1); !errors.Is(err, io.EOF) {
		return err // nil if the directory has files
	}
	// The mode is set first. If a call is interrupted between the two steps, the directory
	// still has root's group, and the next call continues.
	if err := unix.Fchmod(int(root.Fd()), givenRoot); err != nil {
		return err
	}
	return unix.Fchown(int(root.Fd()), -1, group)
}

// Modes of a volume's root directory: newRoot if the class names no mode, givenRoot after a pod's
// group was set. New files in a directory with givenRoot also belong to that group.
const (
	newRoot   = 0o755
	givenRoot = 0o2775
)

// Publish binds the staged mount at target.
func (d *Mounted) Publish(ctx context.Context, v pool.Volume, staging, target string, o Options) error {
	at, err := d.m.At(target)
	if err != nil {
		return err
	}
	if at != nil {
		ours, err := d.by.of(v, at)
		if err != nil {
			return err
		}
		if ours && mounts.ReadOnly(at) == o.ReadOnly && (o.Machine || !mounts.Marked(at)) {
			return nil
		}
		return inTheWay(target)
	}
	if err := d.by.guard(v, staging); err != nil {
		return err
	}
	// An earlier driver, which did not have this step, may have staged the volume.
	if err := d.give(ctx, staging, o); err != nil {
		return errkind.Wrap(errkind.KindOf(err), err, "volume %s", v.Name)
	}
	if err := d.m.Bind(staging, target, o.attributes()); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "volume: bound")
	return nil
}

// Direct mounts the volume for only one pod.
func (d *Mounted) Direct(ctx context.Context, v pool.Volume, target string, o Options) error {
	return d.Stage(ctx, v, target, o)
}

// Shown returns the mount points of the volume.
func (d *Mounted) Shown(v pool.Volume) ([]string, error) {
	return shown(d.ShownAll, v)
}

// ShownAll returns the mount points of many volumes. It reads the table of mounts once.
func (d *Mounted) ShownAll(volumes []pool.Volume) (map[string][]string, error) {
	entries, err := d.m.Entries()
	if err != nil {
		return nil, err
	}
	return d.by.points(entries, volumes), nil
}

// Machines returns the volume's mount points with the mark.
func (d *Mounted) Machines(v pool.Volume) ([]string, error) {
	return withMark(d.m, d.ShownAll, v)
}

// Withdraw unmounts the driver's mounts at a path.
func (d *Mounted) Withdraw(ctx context.Context, path string) error { return withdraw(ctx, d.m, path) }

// Usage reads the usage from the mount.
func (d *Mounted) Usage(_ context.Context, v pool.Volume, path string) (Usage, error) {
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

// signed converts a counter to a signed number. The volume's members can write any value to the
// counter.
func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Grown does nothing, because the kernel has already grown the mount.
func (d *Mounted) Grown(context.Context, pool.Volume) error { return nil }
