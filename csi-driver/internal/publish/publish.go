// SPDX-License-Identifier: Apache-2.0

// Package publish mounts volumes at kubelet's paths. The way depends on the kind of zone (D11,
// D14).
package publish

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Options has the options of one mount.
type Options struct {
	ReadOnly  bool
	Unwritten bool     // by the access modes, no system stores to the volume
	Flags     []string // options of mount(8), already checked
	Setuid    bool     // allows setuid programs; the volume's writers choose their owners
	Devices   bool     // allows device nodes
	Machine   bool     // the pod runs a VM that has the volume's memory
	Group     int      // group that may write to a new volume's root; 0: not changed
}

// attributes returns the attributes of the pod's mount. Any member of the volume's trust group can
// forge any inode. So by default, no inode may make a user root, or act as a device.
func (o Options) attributes() uint64 {
	var a uint64
	if o.ReadOnly {
		a |= unix.MOUNT_ATTR_RDONLY
	}
	if !o.Setuid {
		a |= unix.MOUNT_ATTR_NOSUID
	}
	if !o.Devices {
		a |= unix.MOUNT_ATTR_NODEV
	}
	return a | o.mark()
}

// mark returns the attribute that marks mounts of VMs' pods, or 0.
func (o Options) mark() uint64 {
	if o.Machine {
		return unix.MOUNT_ATTR_NODIRATIME
	}
	return 0
}

// shown returns the mount points of a volume from the lists that all returns.
func shown(all func([]pool.Volume) (map[string][]string, error), v pool.Volume) ([]string, error) {
	points, err := all([]pool.Volume{v})
	return points[v.Name], err
}

// withMark returns those of the mount points that have the mark.
func withMark(m *mounts.Mounter, all func([]pool.Volume) (map[string][]string, error), v pool.Volume) ([]string, error) {
	points, err := shown(all, v)
	if err != nil {
		return nil, err
	}
	entries, err := m.Entries()
	if err != nil {
		return nil, err
	}
	var with []string
	for i := range entries {
		if e := &entries[i]; mounts.Marked(e) && slices.Contains(points, e.MountPoint) {
			with = append(with, e.MountPoint)
		}
	}
	return with, nil
}

// Usage has a volume's size, and its used and free space and inodes.
type Usage struct{ Size, Used, Free, Inodes, InodesUsed, InodesFree int64 }

// Presenter mounts volumes of one kind of zone. Each call can be repeated, even if the earlier call
// was interrupted.
type Presenter interface {
	// Stage mounts the volume once on the node, at a path. It fails with Exists if the path has
	// another mount, or a mount with other options.
	Stage(ctx context.Context, v pool.Volume, path string, o Options) error
	// Publish mounts a staged volume at target, for a pod.
	Publish(ctx context.Context, v pool.Volume, staging, target string, o Options) error
	// Direct mounts a volume at target without a stage.
	Direct(ctx context.Context, v pool.Volume, target string, o Options) error
	// Shown returns all paths at which the volume is mounted.
	Shown(v pool.Volume) ([]string, error)
	// ShownAll returns these paths for many volumes, by the volumes' names.
	ShownAll(volumes []pool.Volume) (map[string][]string, error)
	// Machines returns the paths in VMs' pods. The mounts at these paths have the mark.
	Machines(v pool.Volume) ([]string, error)
	// Withdraw unmounts whatever volume the other methods have mounted at a path.
	Withdraw(ctx context.Context, path string) error
	// Usage returns the usage of the volume, from its mount or from the volume itself.
	Usage(ctx context.Context, v pool.Volume, path string) (Usage, error)
	// Grown updates the mounts of a volume that has grown.
	Grown(ctx context.Context, v pool.Volume) error
}

// ours reports whether any Presenter has created a mount, for any volume. The zone may no longer
// exist.
func ours(at *mount.MountInfo) bool {
	return at.FsType == fsType || (at.FsType == shellType || at.FsType == mounts.Served) && strings.HasPrefix(at.Source, shellSource) && at.Root == "/"
}

// withdraw removes the mounts of any Presenter at a path. It does not change other mounts at the
// path or below, because the caller may name any path, and other programs may have mounts there.
func withdraw(ctx context.Context, m *mounts.Mounter, path string) error {
	err := m.Clear(path, ours)
	if errors.Is(err, unix.EBUSY) {
		return errkind.Wrap(errkind.Busy, err, "path %s: a process still uses it", path)
	}
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "path %s", path)
	}
	failpoint.Reached(ctx, "mount: gone")
	return nil
}

// undone unmounts a path after a failure, because kubelet does not repeat the call after a final
// error, and the mount would remain. If the unmount fails, the error is Busy, so that kubelet
// repeats the call.
func undone(m *mounts.Mounter, v pool.Volume, path string, err error) error {
	if left := m.Clear(path, ours); left != nil {
		return errkind.Wrap(errkind.Busy, err, "volume %s: a mount is left after a failure (%v)", v.Name, left)
	}
	return errkind.Wrap(errkind.KindOf(err), err, "volume %s", v.Name)
}

func usageOf(s stargatectl.Space) Usage {
	return Usage{s.Size, s.Used, s.Free, s.Inodes, s.InodesUsed, max(s.Inodes-s.InodesUsed, 0)}
}

func inTheWay(path string) error {
	return errkind.New(errkind.Exists, "another mount, or a mount with other options, is at %s", path)
}
