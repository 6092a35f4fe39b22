// SPDX-License-Identifier: Apache-2.0

// Package publish mounts volumes at kubelet's paths, for each kind of zone in its own way (D11,
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

// Options are of one mount.
type Options struct {
	ReadOnly  bool
	Unwritten bool     // no system stores to the volume, here or elsewhere, by its access modes
	Flags     []string // of mount(8), checked
	Setuid    bool     // programs in the volume may run as their owners, which its writers choose
	Devices   bool     // its device nodes are devices
	Machine   bool     // the pod runs a VM that has the volume's memory
	Group     int      // may write a new volume's root; 0: as it was made
}

// attributes are those of the pod's mount. Any member of a volume's group can forge any inode, so
// no inode may make a user root, or act as a device.
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

// mark is the attribute that marks mounts of VMs' pods.
func (o Options) mark() uint64 {
	if o.Machine {
		return unix.MOUNT_ATTR_NODIRATIME
	}
	return 0
}

// markedOf are the mount points with the mark, of the given ones.
func markedOf(m *mounts.Mounter, points []string) ([]string, error) {
	entries, err := m.Entries()
	if err != nil {
		return nil, err
	}
	var marked []string
	for i := range entries {
		if e := &entries[i]; mounts.Marked(e) && slices.Contains(points, e.MountPoint) {
			marked = append(marked, e.MountPoint)
		}
	}
	return marked, nil
}

// Usage is how full a volume is.
type Usage struct{ Size, Used, Free, Inodes, InodesUsed, InodesFree int64 }

// Presenter mounts volumes of one kind of zone. Each call can be repeated, also after one that was
// cut off.
type Presenter interface {
	// Stage mounts the volume at a path, once on the node. It fails with Exists if another
	// mount, or one with other options, is there.
	Stage(ctx context.Context, v pool.Volume, path string, o Options) error
	// Publish mounts a staged volume at target, for a pod.
	Publish(ctx context.Context, v pool.Volume, staging, target string, o Options) error
	// Direct mounts a volume at target without a stage.
	Direct(ctx context.Context, v pool.Volume, target string, o Options) error
	// Shown are all paths at which the volume is mounted.
	Shown(v pool.Volume) ([]string, error)
	// ShownAll are the same for many volumes, by their names.
	ShownAll(volumes []pool.Volume) (map[string][]string, error)
	// Machines are the paths in VMs' pods. The mounts carry a mark.
	Machines(v pool.Volume) ([]string, error)
	// Withdraw undoes the others' work at a path, whatever volume is there.
	Withdraw(ctx context.Context, path string) error
	// Usage is the use of the volume, from its mount or from the volume itself.
	Usage(ctx context.Context, v pool.Volume, path string) (Usage, error)
	// Grown makes the mounts follow a volume that has grown.
	Grown(ctx context.Context, v pool.Volume) error
}

// ours reports whether a Presenter has made a mount, of any volume: the zone may be gone by now.
func ours(at *mount.MountInfo) bool {
	return at.FsType == fsType || (at.FsType == shellType || at.FsType == mounts.Served) && strings.HasPrefix(at.Source, shellSource) && at.Root == "/"
}

// withdraw undoes the work of any Presenter at a path. Nothing else is touched, there or below: the
// caller chooses the path, and others may have volumes there.
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

// undone unmounts a path after a failure: kubelet does not call again after a final error, and the
// mount would stay. If the unmount fails, the error is Busy, so that kubelet calls again.
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
	return errkind.New(errkind.Exists, "another mount, or one with other options, is at %s", path)
}
