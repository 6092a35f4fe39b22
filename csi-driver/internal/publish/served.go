// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
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

// Servers starts the servers that answer the calls of FUSE mounts (package keeper).
type Servers interface {
	// Serve starts a server for the mount with this descriptor, and returns when the server has
	// joined the volume. The caller closes its descriptor.
	Serve(ctx context.Context, name, volume string, options []string, mount *os.File) error
	// Serving reports whether the volume's mount has a server, or will soon have one again. It
	// returns an error if the keeper does not answer.
	Serving(ctx context.Context, name string) (bool, error)
	// Gone waits until the server of an unmounted volume has left the volume.
	Gone(ctx context.Context, name string) error
}

// served mounts files by servers (docs/fuse.md).
type served struct {
	m       *mounts.Mounter
	servers Servers
	device  func() (*os.File, error) // opens /dev/fuse
}

// serverOptions are the mount options that the driver passes to a server.
var serverOptions = []string{"noatime", "errors=continue", "errors=remount-ro"}

func (s *served) mount(ctx context.Context, v pool.Volume, path string, o Options) error {
	// After an unmount, the server of the old mount may not have left the volume yet.
	if err := s.servers.Gone(ctx, v.Name); err != nil {
		return err
	}
	fuse, err := s.device()
	if err != nil {
		return err
	}
	defer fuse.Close()
	flags := slices.Clone(o.Flags)
	if o.ReadOnly {
		flags = append(flags, "ro")
	}
	if !o.Setuid {
		flags = append(flags, "nosuid")
	}
	if !o.Devices {
		flags = append(flags, "nodev")
	}
	if err := s.m.MountServed(shellSource+v.Name, path, fuse, flags); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "fuse: mounted")
	options := slices.DeleteFunc(flags, func(f string) bool { return f != "ro" && !slices.Contains(serverOptions, f) })
	if err := s.servers.Serve(ctx, v.Name, v.Path, options, fuse); err != nil {
		if left := s.m.Clear(path, ours); left != nil {
			return errkind.Wrap(errkind.Busy, err, "volume %s: a mount is left after a failure (%v)", v.Name, left)
		}
		return err
	}
	failpoint.Reached(ctx, "fuse: served")
	return nil
}

func (s *served) of(v pool.Volume, at *mount.MountInfo) (bool, error) {
	return isServed(v.Name, at), nil
}

func isServed(name string, at *mount.MountInfo) bool {
	return at.FsType == mounts.Served && at.Source == shellSource+name && at.Root == "/"
}

// fits returns true, because a server has only one data path.
func (s *served) fits(*mount.MountInfo, Options) bool { return true }

// outdated removes a mount that no server will serve any more. Pods that use this mount must be
// restarted. New pods get a new mount.
func (s *served) outdated(ctx context.Context, v pool.Volume, at *mount.MountInfo, _ Options) (bool, error) {
	serving, err := s.servers.Serving(ctx, v.Name)
	if err != nil || serving {
		return false, err
	}
	if err := s.m.Clear(at.MountPoint, ours); err != nil {
		return false, errkind.Wrap(errkind.Busy, err, "volume %s: its mount has no server", v.Name)
	}
	return true, nil
}

// guard does nothing, because such a mount has no .stargate/region.
func (s *served) guard(pool.Volume, string) error { return nil }

// points returns the mount points of volumes. It leaves out the mounts in shells, which no pod
// uses.
func (s *served) points(entries []mount.MountInfo, _ []pool.Volume) map[string][]string {
	points := map[string][]string{}
	for i := range entries {
		e := &entries[i]
		if name, ok := strings.CutPrefix(e.Source, shellSource); ok && isServed(name, e) && !inShell(entries, e) {
			points[name] = append(points[name], e.MountPoint)
		}
	}
	return points
}

// inShell reports whether a mount is in a shell. Such a mount is the stage of the pods' mounts.
func inShell(entries []mount.MountInfo, e *mount.MountInfo) bool {
	return slices.ContainsFunc(entries, func(of mount.MountInfo) bool {
		return of.ID == e.ParentID && of.FsType == shellType && strings.HasPrefix(of.Source, shellSource)
	})
}

// servedAt returns the volumes that have a server's mount at a path, or in a shell at this path.
func servedAt(entries []mount.MountInfo, path string) []string {
	var names []string
	for i := range entries {
		e := &entries[i]
		name, ok := strings.CutPrefix(e.Source, shellSource)
		if !ok || !isServed(name, e) || slices.Contains(names, name) {
			continue
		}
		if e.MountPoint == path || inShell(entries, e) && strings.HasPrefix(e.MountPoint, path+"/") {
			names = append(names, name)
		}
	}
	return names
}

// tidy unmounts stages that no pod uses, except those of volumes that are being published. It
// returns the volumes that are no longer mounted.
func (s *served) tidy(publishing map[string]int) (gone []string, err error) {
	entries, err := s.m.Entries()
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "mounts")
	}
	used := s.points(entries, nil)
	for i := range entries {
		e := &entries[i]
		name := strings.TrimPrefix(e.Source, shellSource)
		if !isServed(name, e) || len(used[name]) > 0 || publishing[name] > 0 {
			continue
		}
		if err := s.m.Clear(e.MountPoint, ours); err != nil && !errors.Is(err, unix.EBUSY) {
			return gone, errkind.Wrap(errkind.Internal, err, "volume %s", name)
		} else if err == nil {
			gone = append(gone, name)
			if err := dropCopies(e.MountPoint); err != nil {
				return gone, err
			}
		}
	}
	return gone, nil
}

// dropCopies removes the directory of a former mount. The kernel then also removes the copies of
// the mount in other namespaces, such as a container that has kubelet's folder without propagation.
// Such copies would keep the mount's server alive. dropCopies does not remove a directory that has
// files, or that is a mount point again.
func dropCopies(path string) error {
	if err := mounts.RemoveDir(path); err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	return nil
}

// left returns those of the given volumes that are no longer mounted.
func (s *served) left(names []string) (gone []string, err error) {
	entries, err := s.m.Entries()
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "mounts")
	}
	for _, name := range names {
		if !slices.ContainsFunc(entries, func(e mount.MountInfo) bool { return isServed(name, &e) }) {
			gone = append(gone, name)
		}
	}
	return gone, nil
}
