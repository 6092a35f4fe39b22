// SPDX-License-Identifier: Apache-2.0

// Package dax implements a zone of reserved memory (D1, D2): a volume group that `stargatectl zone`
// and `stargatectl volume` manage. LVM stores all of its state. If a command fails, the error
// contains the command's message.
package dax

import (
	"context"
	"sort"
	"strconv"

	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Zone is one volume group.
type Zone struct {
	name      string
	tools     *stargatectl.Tools
	mountable func() bool
	pool.Look
}

var _ pool.Zone = (*Zone)(nil)

// New returns the zone with a name. The zone need not exist yet. mountable reports whether the
// kernel has the file system. Pods need it; LVM and the tools do not.
func New(name string, t *stargatectl.Tools, mountable func() bool) (*Zone, error) {
	if !pool.ValidName(name) {
		return nil, errkind.New(errkind.Invalid, "%q is not a valid name of a zone", name)
	}
	return &Zone{name: name, tools: t, mountable: mountable, Look: pool.Look{Tools: t}}, nil
}

// Kind returns pool.DAX.
func (z *Zone) Kind() pool.Kind { return pool.DAX }

func (z *Zone) volume(name string) string { return z.name + "/" + name }

type device struct {
	Path    string `json:"path"`
	Present bool   `json:"present"`
	DAX     bool   `json:"dax"`
}

type zoneRow struct {
	Zone      string   `json:"zone"`
	UUID      string   `json:"uuid"`
	Size      int64    `json:"size"`
	Free      int64    `json:"free"`
	Largest   int64    `json:"largest_volume"`
	Largest1G int64    `json:"largest_volume_1g"`
	Volumes   int      `json:"volumes"`
	Others    int      `json:"others"`
	Devices   []device `json:"devices"`
}

// Status returns the state of the zone. It fails with NoZone if the zone does not exist.
func (z *Zone) Status(ctx context.Context) (pool.Status, error) {
	r, err := z.show(ctx)
	if err != nil {
		return pool.Status{}, err
	}
	return z.status(r), nil
}

// Place returns the zone's identity. It contains the volume group's UUID, because a later group may
// have the same name.
func (z *Zone) Place(ctx context.Context, _ pool.ID) (string, error) {
	r, err := z.show(ctx)
	return pool.Identity(pool.DAX, r.UUID), err
}

func (z *Zone) show(ctx context.Context) (zoneRow, error) {
	var shown struct {
		Zones []zoneRow `json:"zones"`
	}
	if err := z.tools.JSON(ctx, &shown, "zone", "show", z.name); err != nil {
		return zoneRow{}, pool.Unseen(err, "zone "+z.name)
	}
	for _, r := range shown.Zones {
		if r.Zone == z.name {
			return r, nil
		}
	}
	return zoneRow{}, errkind.New(errkind.NoZone, "this node has no zone %q: make it with stargatectl zone create", z.name)
}

const noFileSystem = "this node's kernel has no file system stargatefs, so no volume can be mounted: " +
	"load its module; the Node's annotation and the log of the driver's init container have the reason"

func (z *Zone) status(r zoneRow) pool.Status {
	s := pool.Status{
		Name: z.name, Size: r.Size, Free: r.Free, Largest: r.Largest, Largest1G: r.Largest1G,
		Volumes: r.Volumes, Others: r.Others,
	}
	for _, d := range r.Devices {
		if !d.Present || !d.DAX {
			s.Damaged, s.Why = true, "device "+d.Path+" is missing, or is not DAX capable"
		}
	}
	if !s.Damaged && !z.mountable() {
		s.Damaged, s.Why = true, noFileSystem
	}
	if s.Damaged {
		s.Largest, s.Largest1G = 0, 0
	}
	return s
}

// makes runs a command of stargatectl that creates a volume. If the zone cannot have any new
// volume, the error is NoSpace, so that the scheduler chooses another node. stargatectl's own error
// for a damaged zone would not have that effect. If the kernel does not have the file system, makes
// also refuses, because the volume could not be mounted.
func (z *Zone) makes(ctx context.Context, args ...string) error {
	if !z.mountable() {
		return errkind.New(errkind.NoSpace, "zone %s has no room for volumes: %s", z.name, noFileSystem)
	}
	err := z.change(ctx, args...)
	if !errkind.Is(err, errkind.Internal) {
		return err
	}
	if s, unread := z.Status(ctx); unread == nil && s.Damaged {
		return errkind.New(errkind.NoSpace, "zone %s has no room for volumes: %s", z.name, s.Why)
	}
	return err
}

type volumeRow struct {
	ZoneUUID   string              `json:"zone_uuid"`
	Volume     string              `json:"volume"`
	State      pool.State          `json:"state"`
	Device     string              `json:"device"`
	Base       stargatectl.Address `json:"base"`
	Size       int64               `json:"size"`
	FileSystem int64               `json:"file_system"`
	CanGrowTo  int64               `json:"can_grow_to"`
	Alignment  int64               `json:"alignment"`
	UUID       string              `json:"uuid"`
	Label      string              `json:"label"`
	Origin     string              `json:"origin"`
	Created    int64               `json:"created"`
}

func (r volumeRow) volume() pool.Volume {
	v := pool.Volume{
		Name: r.Volume, Zone: pool.Identity(pool.DAX, r.ZoneUUID), State: r.State, Path: r.Device, Base: r.Base, Size: r.Size, Memory: r.Size,
		CanGrowTo: r.CanGrowTo, Alignment: r.Alignment, UUID: r.UUID, Label: r.Label,
		Origin: r.Origin,
	}
	if r.FileSystem != 0 && r.FileSystem < r.Size {
		v.Size = r.FileSystem // the volume has a reserve, or a tool died while it extended the volume
	}
	if !r.State.Whole() {
		v.Why = why(r)
	}
	return v
}

func why(r volumeRow) string {
	switch r.State {
	case pool.Moved:
		return "its memory has another address than the one for which it was created: run stargatectl volume relocate"
	case pool.Damaged:
		return "its superblock cannot be read: run stargatectl volume check"
	case pool.Missing:
		return "its device is missing"
	case pool.Scattered:
		return "it is not contiguous any more: copy its files to a new volume"
	}
	return "it is " + string(r.State)
}

func (z *Zone) rows(ctx context.Context) ([]volumeRow, error) {
	var shown struct {
		Volumes []volumeRow `json:"volumes"`
	}
	if err := z.tools.JSON(ctx, &shown, "volume", "list", z.name); err != nil {
		return nil, pool.Unseen(err, "zone "+z.name)
	}
	sort.Slice(shown.Volumes, func(i, j int) bool { return shown.Volumes[i].Volume < shown.Volumes[j].Volume })
	return shown.Volumes, nil
}

// List returns the volumes, which have stargatectl's tag in LVM.
func (z *Zone) List(ctx context.Context) ([]pool.Volume, error) {
	rows, err := z.rows(ctx)
	if err != nil {
		return nil, err
	}
	var volumes []pool.Volume
	for _, r := range rows {
		if r.State != pool.Foreign && r.State != pool.Unfinished && !r.isSnapshot() {
			volumes = append(volumes, r.volume())
		}
	}
	return volumes, nil
}

// Glances returns all volumes with their content. It runs two programs: one lists LVM's rows, and
// one examines all volumes.
func (z *Zone) Glances(ctx context.Context) ([]pool.Glance, error) {
	volumes, err := z.List(ctx)
	if err != nil {
		return nil, err
	}
	return z.Glanced(ctx, volumes)
}

// row returns LVM's row of a volume. It fails with NotFound if there is no row.
func (z *Zone) row(ctx context.Context, name string) (volumeRow, error) {
	var r volumeRow
	if !pool.ValidName(name) {
		return r, errkind.New(errkind.NotFound, "there is no volume %q", name)
	}
	err := z.tools.JSON(ctx, &r, "volume", "show", z.volume(name))
	switch stargatectl.ReasonOf(err) {
	case stargatectl.NotFound, stargatectl.BadArgument: // no volume can have this name
		return r, errkind.New(errkind.NotFound, "there is no volume %q", name)
	}
	if err != nil {
		return r, pool.Unseen(err, "zone "+z.name)
	}
	return r, nil
}

// Get returns one volume. It does not find an incomplete volume, which Sweep or the next change of
// the zone removes.
func (z *Zone) Get(ctx context.Context, name string) (pool.Volume, error) {
	r, err := z.row(ctx, name)
	if err != nil {
		return pool.Volume{}, err
	}
	if r.State == pool.Unfinished {
		return pool.Volume{}, errkind.New(errkind.NotFound, "volume %q is not completely created, or not completely deleted", name)
	}
	if r.isSnapshot() {
		return pool.Volume{}, errkind.New(errkind.NotFound, "%q is a snapshot, not a volume", name)
	}
	return r.volume(), nil
}

// Sweep removes leftovers. Before any change, stargatectl wipes and removes all incomplete volumes
// that no command holds. So Sweep runs the deletion of a name that no volume has. It does not name
// a leftover, because the leftover may be complete by then.
func (z *Zone) Sweep(ctx context.Context) error {
	rows, err := z.rows(ctx)
	if err != nil {
		return err
	}
	left := false
	for _, r := range rows {
		if r.State == pool.Unfinished {
			left = true
			klog.FromContext(ctx).Info("Removing an incomplete volume, unless a program works on it", "volume", r.Volume, "size", r.Size)
		}
	}
	if !left {
		return nil
	}
	return z.remove(ctx, pool.Nobodys())
}

// Strays returns the logical volumes that other programs have created.
func (z *Zone) Strays(ctx context.Context) ([]string, error) {
	rows, err := z.rows(ctx)
	if err != nil {
		return nil, err
	}
	var strays []string
	for _, r := range rows {
		if r.State == pool.Foreign {
			strays = append(strays, r.Volume)
		}
	}
	return strays, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// change runs stargatectl to change a volume. The messages of stargatectl already name the volume.
func (z *Zone) change(ctx context.Context, args ...string) error {
	if _, err := z.tools.Run(ctx, stargatectl.Ctl, append([]string{"-j", "volume"}, args...)...); err != nil {
		return &errkind.Error{Kind: pool.KindOf(err), Err: err}
	}
	return nil
}

// Activate makes LVM create the volume's device.
func (z *Zone) Activate(ctx context.Context, name string) (pool.Volume, error) {
	if err := z.change(ctx, "activate", z.volume(name)); err != nil {
		return pool.Volume{}, err
	}
	return z.Get(ctx, name)
}

// Create runs stargatectl, which allocates, wipes and formats a volume.
func (z *Zone) Create(ctx context.Context, spec pool.Spec) (pool.Volume, error) {
	args := []string{"create", z.volume(spec.Name), "--size", decimal(spec.Size), "--align", decimal(spec.Align)}
	args = append(args, reserve(spec)...)
	if options := spec.Options(); len(options) > 0 {
		args = append(append(args, "--"), options...)
	}
	if err := z.makes(ctx, args...); err != nil {
		return pool.Volume{}, err
	}
	failpoint.Reached(ctx, "dax: made")
	return z.Get(ctx, spec.Name)
}

func reserve(spec pool.Spec) []string {
	if spec.Reserve == 0 {
		return nil
	}
	return []string{"--reserve", decimal(spec.Reserve)}
}

// Delete runs stargatectl, which wipes and removes the volume. Delete ignores volumes of other
// programs.
func (z *Zone) Delete(ctx context.Context, name string) error {
	r, err := z.row(ctx, name)
	if errkind.Is(err, errkind.NotFound) || err == nil && (r.State == pool.Foreign || r.State == pool.Snapshotted) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.State == pool.Damaged {
		// stargatectl cannot read which systems use the volume, so it needs --force.
		// stargatectl still checks that no process on this node has the device open, and
		// that no other node has the memory. Without --force, a member that damages its
		// volume on purpose could keep the memory forever.
		return z.remove(ctx, name, "--force")
	}
	return z.remove(ctx, name)
}

func (z *Zone) remove(ctx context.Context, name string, options ...string) error {
	if err := z.change(ctx, append([]string{"delete", z.volume(name)}, options...)...); err != nil && !errkind.Is(err, errkind.NotFound) {
		return err // NotFound: another program has deleted the volume
	}
	failpoint.Reached(ctx, "dax: deleted")
	return nil
}

// Grow runs stargatectl, which extends the volume in place.
func (z *Zone) Grow(ctx context.Context, name string, size int64) (pool.Volume, error) {
	v, err := z.Get(ctx, name)
	if err != nil || size <= v.Size {
		return v, err
	}
	err = z.change(ctx, "resize", z.volume(name), "--size", decimal(size))
	if errkind.Is(err, errkind.NoSpace) {
		return v, errkind.Wrap(errkind.OutOfRange, err, "the volume cannot become so large") // a volume is not moved to grow
	}
	if err != nil {
		return v, err
	}
	failpoint.Reached(ctx, "dax: grown")
	return z.Get(ctx, name)
}
