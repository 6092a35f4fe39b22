// SPDX-License-Identifier: Apache-2.0

// Package publish brings volumes to the paths at which kubelet wants them, each kind of zone in its
// own way (D11, D14).
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

// mark is the attribute by which the mount of a machine's pod is known.
func (o Options) mark() uint64 {
	if o.Machine {
		return unix.MOUNT_ATTR_NODIRATIME
	}
	return 0
}

// markedOf are those with it of some mounts, by their points.
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

// Presenter knows how volumes of a kind of zone are shown. All its calls can be repeated, also after
// one that was cut off.
type Presenter interface {
	// Stage shows the volume at a path, once on the node; Exists if it, or something else, is there
	// in another way.
	Stage(ctx context.Context, v pool.Volume, path string, o Options) error
	// Publish shows at target, for a pod, what is staged.
	Publish(ctx context.Context, v pool.Volume, staging, target string, o Options) error
	// Direct shows it at target without a stage.
	Direct(ctx context.Context, v pool.Volume, target string, o Options) error
	// Shown are all paths where the volume is.
	Shown(v pool.Volume) ([]string, error)
	// ShownAll are the same of many volumes, by their names.
	ShownAll(volumes []pool.Volume) (map[string][]string, error)
	// Machines are those that were published to machines' pods. The mounts themselves tell.
	Machines(v pool.Volume) ([]string, error)
	// Usage asks the mount, or the volume.
	Usage(ctx context.Context, v pool.Volume, path string) (Usage, error)
	// Grown is to be called when the volume has become larger.
	Grown(ctx context.Context, v pool.Volume) error
}

// ours reports whether a Presenter has made a mount, of any volume: the zone may be gone by now.
func ours(at *mount.MountInfo) bool {
	return at.FsType == fsType || at.FsType == shellType && strings.HasPrefix(at.Source, shellSource) && at.Root == "/"
}

// Withdraw undoes the work of any Presenter at a path. Nothing else is touched, there or below: the
// caller chooses the path, and others may have volumes there.
func Withdraw(ctx context.Context, m *mounts.Mounter, path string) error {
	err := m.Clear(path, ours)
	if errors.Is(err, unix.EBUSY) {
		return errkind.Wrap(errkind.Busy, err, "path %s: somebody still uses it", path)
	}
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "path %s", path)
	}
	failpoint.Reached(ctx, "mount: gone")
	return nil
}

// undone takes back what has been made at a path when the rest of it fails: who is refused does not come again,
// and nobody would unmount it. What cannot be taken back is as if the call had not ended, so that he does.
func undone(m *mounts.Mounter, v pool.Volume, path string, err error) error {
	if left := m.Clear(path, ours); left != nil {
		return errkind.Wrap(errkind.Busy, err, "volume %s: a mount is left (%v) of what failed", v.Name, left)
	}
	return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
}

func usageOf(s stargatectl.Space) Usage {
	return Usage{s.Size, s.Used, s.Free, s.Inodes, s.InodesUsed, max(s.Inodes-s.InodesUsed, 0)}
}

func inTheWay(path string) error {
	return errkind.New(errkind.Exists, "something else, or the same in another way, is mounted at %s", path)
}
