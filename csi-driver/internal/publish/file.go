// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Files for VMs (D11): the volume's memory, and its address.
const (
	hidden      = ".stargate"
	region      = "region"
	description = "volume.json"
	stage       = "files" // folder of the mount for pods, if there are servers
)

// The shell is a small file system for these names. Its source's name identifies it. It is
// read-only, because a pod that mistook it for the volume would lose data.
const (
	shellType   = "tmpfs"
	shellSource = "stargate/"
)

var shellOptions = []string{"size=64k", "nr_inodes=16", "mode=0755", "nodev", "nosuid", "noexec"}

// spacer reports the usage of a volume that this node has not mounted.
type spacer interface {
	Space(ctx context.Context, v pool.Volume) (stargatectl.Space, error)
}

// File presents a volume as a folder that contains the volume's file (D14). With servers, only VMs'
// pods get this folder, and all other pods get a mount of the volume. The mount is created for the
// first such pod, and removed after the last one. So a volume that only VMs use has no server.
type File struct {
	m    *mounts.Mounter
	zone spacer
	by   *served  // nil: pods cannot mount volumes
	pods *Mounted // mounts by these servers

	mu         sync.Mutex
	publishing map[string]int // calls, by the name of their volume
	ending     map[string]int // calls that wait for the end of a volume's server
	ended      chan struct{}  // closed when such a call has waited, and made anew
}

var _ Presenter = (*File)(nil)

// NewFile returns the Presenter for zones of files without mounts for pods.
func NewFile(m *mounts.Mounter, z spacer) *File { return &File{m: m, zone: z} }

// NewServedFile gives pods mounts by servers. group is QEMU's; device opens /dev/fuse.
func NewServedFile(m *mounts.Mounter, z spacer, group int, servers Servers, device func() (*os.File, error)) *File {
	by := &served{m, servers, device}
	return &File{m: m, zone: z, by: by, pods: &Mounted{m, by, group},
		publishing: map[string]int{}, ending: map[string]int{}, ended: make(chan struct{})}
}

// mounts reports whether a pod gets a mount.
func (f *File) mounts(o Options) bool { return f.pods != nil && !o.Machine }

// begin keeps the stage of a volume until end is called. It waits for calls that end the volume's
// last server. Such a call identifies the server by the volume's name, so it would end the next
// server.
func (f *File) begin(ctx context.Context, v pool.Volume) (end func(), err error) {
	for {
		busy := f.begun(v.Name)
		if busy == nil {
			return func() { f.count(f.publishing, v.Name, -1) }, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, errkind.New(errkind.Busy, "volume %s: its last server has not ended yet", v.Name)
		}
	}
}

// begun counts a call that publishes a volume, or returns a channel that is closed later.
func (f *File) begun(name string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ending[name] > 0 {
		return f.ended
	}
	f.publishing[name]++
	return nil
}

func (f *File) count(calls map[string]int, name string, by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if calls[name] += by; calls[name] == 0 {
		delete(calls, name)
	}
}

// mayBe refuses to give a read-only volume to pods and VMs at the same time. A pod's server is a
// member, and VMs cannot mount read-only memory while the volume has a member.
func (f *File) mayBe(v pool.Volume, o Options) error {
	if f.pods == nil || !o.Unwritten {
		return nil
	}
	entries, err := f.m.Entries()
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		other := isServed(v.Name, e) && !inShell(entries, e)
		if f.mounts(o) {
			other = isShell(v, e) && mounts.Marked(e)
		}
		if other {
			return errkind.New(errkind.InUse, "volume %s is read-only for all (ReadOnlyMany), so virtual machines and other pods of this node cannot have it at the same time; it is mounted at %s", v.Name, e.MountPoint)
		}
	}
	return nil
}

// give mounts the volume for a pod, in the shell at the staging path, and binds it from there.
func (f *File) give(ctx context.Context, v pool.Volume, staging, target string, o Options) error {
	end, err := f.begin(ctx, v)
	if err != nil {
		return err
	}
	defer end()
	at, err := f.m.At(target)
	if err != nil {
		return err
	}
	if at != nil { // this is a repeated call, which needs no server
		return f.pods.Publish(ctx, v, staging, target, o)
	}
	at, err = f.m.At(staging)
	if err != nil {
		return err
	}
	if at == nil || !isShell(v, at) {
		return errkind.New(errkind.InUse, "volume %s is not staged at %s", v.Name, staging)
	}
	path := filepath.Join(staging, hidden, stage)
	if err := mounts.MakeDir(path); err != nil {
		return err
	}
	// A pod's mount may be read-only. The stage is read-only only if all pods' mounts are.
	common := o
	common.ReadOnly = o.Unwritten
	if err := f.pods.Stage(ctx, v, path, common); err != nil {
		return err
	}
	return f.pods.Publish(ctx, v, path, target, o)
}

// tidy unmounts stages that no pod uses, and returns the volumes that are mounted nowhere any more:
// those, and others that were mounted at path. No call begins to publish meanwhile, because it
// would bind a stage that is being unmounted. No call publishes the returned volumes until mayBegin
// is called.
func (f *File) tidy(before []mount.MountInfo, path string) (gone []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gone, err = f.by.tidy(f.publishing); err != nil {
		return nil, err
	}
	left, err := f.by.left(servedAt(before, path))
	if err != nil {
		return nil, err
	}
	for _, name := range left {
		// A call that publishes the volume waits for the last server itself.
		if f.publishing[name] == 0 && !slices.Contains(gone, name) {
			gone = append(gone, name)
		}
	}
	for _, name := range gone {
		f.ending[name]++
	}
	return gone, nil
}

// mayBegin lets calls publish the volumes that tidy has returned.
func (f *File) mayBegin(gone []string) {
	for _, name := range gone {
		f.count(f.ending, name, -1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.ended)
	f.ended = make(chan struct{})
}

// Withdraw also ends the servers of volumes that no pod uses any more.
func (f *File) Withdraw(ctx context.Context, path string) error {
	if f.pods == nil {
		return withdraw(ctx, f.m, path)
	}
	before, err := f.m.Entries()
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "path %s", path)
	}
	if err := withdraw(ctx, f.m, path); err != nil {
		return err
	}
	if slices.ContainsFunc(before, func(e mount.MountInfo) bool { return e.MountPoint == path && e.FsType == mounts.Served }) {
		// kubelet calls again while the directory exists.
		if err := dropCopies(path); err != nil {
			return err
		}
		if err := mounts.MakeDir(path); err != nil {
			return err
		}
	}
	gone, err := f.tidy(before, path)
	if err != nil {
		return err
	}
	defer f.mayBegin(gone)
	failpoint.Reached(ctx, "fuse: unmounted")
	for _, name := range gone {
		if err := f.by.servers.Gone(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

type described struct {
	Kind      pool.Kind           `json:"kind"`
	Volume    string              `json:"volume"`
	UUID      string              `json:"uuid"`
	Base      stargatectl.Address `json:"base"`
	Size      int64               `json:"size"`
	Alignment int64               `json:"alignment"`
}

func isShell(v pool.Volume, at *mount.MountInfo) bool {
	return at.FsType == shellType && at.Source == shellSource+v.Name && at.Root == "/"
}

// Stage creates the shell at kubelet's staging path. Pods get it read-only. The shell is complete
// when it has a description.
func (f *File) Stage(ctx context.Context, v pool.Volume, path string, _ Options) error {
	at, err := f.m.At(path)
	if err != nil {
		return err
	}
	if at != nil && !isShell(v, at) {
		return inTheWay(path)
	}
	if at == nil {
		if err := f.m.Mount(shellSource+v.Name, path, shellType, shellOptions); err != nil {
			return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
		}
		failpoint.Reached(ctx, "shell: mounted")
	}
	if _, err := os.Lstat(filepath.Join(path, hidden, description)); err == nil {
		return nil
	}
	if err := fill(v, path); err != nil {
		return undone(f.m, v, path, err)
	}
	failpoint.Reached(ctx, "shell: filled")
	return nil
}

func fill(v pool.Volume, path string) error {
	dir := filepath.Join(path, hidden)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// Publish binds the volume's file over this empty file.
	if err := os.WriteFile(filepath.Join(dir, region), nil, 0o660); err != nil {
		return err
	}
	return write(v, path)
}

// The new description is renamed over the old one, so that a complete description always exists.
func write(v pool.Volume, path string) error {
	text, err := json.MarshalIndent(described{pool.File, v.Name, v.UUID, v.Base, v.Memory, v.Alignment}, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(path, hidden, description)
	if err := os.WriteFile(name+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Publish binds the shell and the volume's file in it, or a mount of the volume. If a pod already
// has one of the two, it keeps this one when another driver repeats the call.
func (f *File) Publish(ctx context.Context, v pool.Volume, staging, target string, o Options) error {
	if err := f.mayBe(v, o); err != nil {
		return err
	}
	at, err := f.m.At(target)
	if err != nil {
		return err
	}
	switch {
	case at != nil && isShell(v, at):
		return f.region(ctx, v, target, o.ReadOnly)
	case f.mounts(o):
		return f.give(ctx, v, staging, target, o)
	case at != nil:
		return inTheWay(target)
	}
	if err := f.m.Bind(staging, target, mounts.Attributes(true, o.mark())); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	failpoint.Reached(ctx, "shell: bound")
	return f.bindRegion(ctx, v, target, o.ReadOnly)
}

// region binds the volume's memory for a pod. The memory may be read-only for one pod and writable
// for another. A pod may already use the mount of an earlier call, so this mount remains if this
// call fails.
func (f *File) region(ctx context.Context, v pool.Volume, target string, readOnly bool) error {
	path := filepath.Join(target, hidden, region)
	at, err := f.m.At(path)
	if err != nil {
		return err
	}
	if at != nil && mounts.ReadOnly(at) == readOnly {
		return nil
	}
	if at != nil {
		return inTheWay(path)
	}
	return f.bindRegion(ctx, v, target, readOnly)
}

// bindRegion binds the region in a shell that has none yet. If this fails, it removes the shell at
// target, because the shell alone is no volume.
func (f *File) bindRegion(ctx context.Context, v pool.Volume, target string, readOnly bool) error {
	const bare = unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	if err := f.m.Bind(v.Path, filepath.Join(target, hidden, region), mounts.Attributes(readOnly, bare)); err != nil {
		return undone(f.m, v, target, err)
	}
	failpoint.Reached(ctx, "region: bound")
	return nil
}

// Direct creates a shell for one pod, or a mount of the volume. The shell is complete when it is
// read-only and has its region.
func (f *File) Direct(ctx context.Context, v pool.Volume, target string, o Options) error {
	at, err := f.m.At(target)
	if err != nil {
		return err
	}
	if f.mounts(o) && (at == nil || !isShell(v, at)) {
		end, err := f.begin(ctx, v)
		if err != nil {
			return err
		}
		defer end()
		return f.pods.Direct(ctx, v, target, o)
	}
	if at == nil || !mounts.ReadOnly(at) {
		if err := f.Stage(ctx, v, target, o); err != nil {
			return err
		}
		if err := f.m.Close(target); err != nil {
			return undone(f.m, v, target, err)
		}
		failpoint.Reached(ctx, "shell: closed")
		return f.bindRegion(ctx, v, target, o.ReadOnly) // the shell becomes read-only before it gets its region
	}
	if !isShell(v, at) {
		return inTheWay(target)
	}
	return f.region(ctx, v, target, o.ReadOnly)
}

// Shown returns the paths of the volume's shells, and of its mounts for pods.
func (f *File) Shown(v pool.Volume) ([]string, error) {
	return shown(f.ShownAll, v)
}

// ShownAll returns these paths for many volumes. It reads the table of mounts once.
func (f *File) ShownAll(volumes []pool.Volume) (map[string][]string, error) {
	entries, err := f.m.Entries()
	if err != nil {
		return nil, err
	}
	points := map[string][]string{}
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Source, shellSource); ok && isShell(pool.Volume{Name: name}, &e) {
			points[name] = append(points[name], e.MountPoint)
		}
	}
	all := map[string][]string{}
	var served map[string][]string
	if f.by != nil {
		served = f.by.points(entries, volumes)
	}
	for _, v := range volumes {
		all[v.Name] = slices.Concat(points[v.Name], served[v.Name])
	}
	return all, nil
}

// Machines returns the paths of the shells with the mark.
func (f *File) Machines(v pool.Volume) ([]string, error) {
	return withMark(f.m, f.ShownAll, v)
}

// Usage reads the usage from the volume.
func (f *File) Usage(ctx context.Context, v pool.Volume, _ string) (Usage, error) {
	s, err := f.zone.Space(ctx, v)
	return usageOf(s), err
}

// Grown writes the new size into the descriptions. Pods read the description at the staging path.
func (f *File) Grown(_ context.Context, v pool.Volume) error {
	entries, err := f.m.Entries()
	if err != nil {
		return err
	}
	for i := range entries {
		if !isShell(v, &entries[i]) || mounts.ReadOnly(&entries[i]) {
			continue
		}
		if err := write(v, entries[i].MountPoint); err != nil {
			return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
		}
	}
	return nil
}
