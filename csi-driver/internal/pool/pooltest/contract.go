// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// ContractSize is the size of the zones that Contract tests. A zone has exactly this range of
// addresses, and at least this much memory.
const ContractSize = 256 * mib

const mib = int64(1) << 20

// Contract checks that a zone of any kind fulfils the contract in package pool. It runs for the
// fake zone and for real zones: tests with a fake that differs from real zones would prove nothing.
// empty creates an empty zone.
func Contract(t *testing.T, empty func(t *testing.T) pool.Zone) {
	for name, check := range map[string]func(contract){
		"none": contract.none, "create": contract.create, "capacity": contract.capacity, "grow": contract.grow,
		"reserve": contract.reserve, "snapshots": contract.snapshots, "clones": contract.clones, "cancelled": contract.cancelled,
		"parameters": contract.parameters,
	} {
		t.Run(name, func(t *testing.T) { check(contract{t, empty(t), context.Background()}) })
	}
}

type contract struct {
	*testing.T
	z   pool.Zone
	ctx context.Context
}

func (c contract) fails(what string, err error, kind errkind.Kind, words ...string) {
	c.Helper()
	if !errkind.Is(err, kind) {
		c.Errorf("%s: %v is not of kind %d", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			c.Errorf("%s: %q is not in %q", what, w, err)
		}
	}
}

func (c contract) must(what string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", what, err)
	}
}

func (c contract) made(name string, size int64) pool.Volume {
	c.Helper()
	v, err := c.z.Create(c.ctx, pool.Spec{Name: name, Size: size, Align: pool.Extent})
	c.must("create "+name, err)
	return v
}

func (c contract) status() pool.Status {
	c.Helper()
	s, err := c.z.Status(c.ctx)
	c.must("status", err)
	return s
}

// Get does not find an absent volume, and the deletion of an absent volume succeeds.
func (c contract) none() {
	_, err := c.z.Get(c.ctx, "v")
	c.fails("get", err, errkind.NotFound)
	_, err = c.z.Get(c.ctx, "no/name")
	c.fails("get an invalid name", err, errkind.NotFound)
	_, err = c.z.Activate(c.ctx, "v")
	c.fails("activate", err, errkind.NotFound)
	_, err = c.z.Grow(c.ctx, "v", 32*mib)
	c.fails("grow", err, errkind.NotFound)
	_, err = c.z.Snapshot(c.ctx, pool.ID{Name: pool.SnapshotName("s")})
	c.fails("snapshot", err, errkind.NotFound)
	c.must("delete", c.z.Delete(c.ctx, "v"))
	c.must("delete a snapshot", c.z.DeleteSnapshot(c.ctx, pool.ID{Name: pool.SnapshotName("s")}))
	if s := c.status(); s.Volumes != 0 || s.Free != ContractSize || s.Largest != ContractSize || s.Damaged {
		c.Errorf("the empty zone is %+v", s)
	}
	if all, err := c.z.List(c.ctx); err != nil || len(all) != 0 {
		c.Errorf("the empty zone has %v, %v", all, err)
	}
}

// Get finds a new volume by its name. List returns the volumes in order.
func (c contract) create() {
	b := c.made("b", 32*mib)
	c.made("a", 16*mib)
	if b.Name != "b" || b.State != pool.Ready || b.Size != 32*mib || b.Memory != 32*mib || b.UUID == "" || int64(b.Base)%pool.Extent != 0 {
		c.Errorf("volume b is %+v", b)
	}
	got, err := c.z.Get(c.ctx, "b")
	if got.CanGrowTo = b.CanGrowTo; err != nil || got != b {
		c.Errorf("made %+v, found %+v, %v", b, got, err)
	}
	all, err := c.z.List(c.ctx)
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Name != "b" || c.status().Volumes != 2 {
		c.Errorf("the volumes are %+v, %v", all, err)
	}
	if _, err := c.z.Create(c.ctx, pool.Spec{Name: "b", Size: 16 * mib, Align: pool.Extent}); err == nil {
		c.Error("the zone creates a second volume with the same name")
	}
	if got, err := c.z.Get(c.ctx, "b"); err != nil || got.UUID != b.UUID || got.Size != b.Size {
		c.Errorf("the first volume of that name is %+v, %v", got, err)
	}
	if taken, err := c.z.Taken(c.ctx, b); err != nil || taken != 0 {
		c.Errorf("%d systems have it, %v", taken, err)
	}
	c.must("delete", c.z.Delete(c.ctx, "b"))
	_, err = c.z.Get(c.ctx, "b")
	c.fails("get what is deleted", err, errkind.NotFound)
}

// Status reports the largest free range, not the sum of free ranges. A volume of this size can be
// created.
func (c contract) capacity() {
	for _, name := range []string{"a", "b", "c", "d"} {
		c.made(name, 64*mib)
	}
	_, err := c.z.Create(c.ctx, pool.Spec{Name: "e", Size: 16 * mib, Align: pool.Extent})
	c.fails("create in a full zone", err, errkind.NoSpace, " 0")
	c.must("delete", c.z.Delete(c.ctx, "b"))
	c.must("delete", c.z.Delete(c.ctx, "d"))
	if s := c.status(); s.Free != 128*mib || s.Largest != 64*mib {
		c.Errorf("two free ranges of 64 MiB: %+v", s)
	}
	_, err = c.z.Create(c.ctx, pool.Spec{Name: "e", Size: 66 * mib, Align: pool.Extent})
	c.fails("a volume larger than the largest size", err, errkind.NoSpace, "67108864")
	c.made("e", 64*mib)
}

// A volume grows to at least the given size, up to the limit that the error names.
func (c contract) grow() {
	v := c.made("v", 32*mib)
	if v.CanGrowTo != ContractSize {
		c.Errorf("volume v can grow to %d", v.CanGrowTo)
	}
	grown, err := c.z.Grow(c.ctx, "v", 64*mib)
	if err != nil || grown.Size != 64*mib || grown.UUID != v.UUID || grown.Base != v.Base {
		c.Errorf("grown, volume v is %+v, %v", grown, err)
	}
	if same, err := c.z.Grow(c.ctx, "v", 32*mib); err != nil || same.Size != 64*mib {
		c.Errorf("Grow to less than the volume's size: %+v, %v", same, err)
	}
	_, err = c.z.Grow(c.ctx, "v", ContractSize+2*mib)
	c.fails("Grow to more than the zone's size", err, errkind.OutOfRange, "268435456")
	if got, err := c.z.Get(c.ctx, "v"); err != nil || got.Size != 64*mib {
		c.Errorf("after a refusal volume v is %+v, %v", got, err)
	}
}

// A volume keeps its reserve when other volumes are created.
func (c contract) reserve() {
	v, err := c.z.Create(c.ctx, pool.Spec{Name: "v", Size: 32 * mib, Reserve: 32 * mib, Align: pool.Extent})
	c.must("create", err)
	if v.Size != 32*mib || v.Memory != 64*mib {
		c.Errorf("volume v has %d bytes, and %d with its reserve", v.Size, v.Memory)
	}
	c.made("w", ContractSize-64*mib)
	if v, err = c.z.Get(c.ctx, "v"); err != nil || v.CanGrowTo < 32*mib || v.CanGrowTo > 64*mib {
		c.Errorf("volume v can grow to %d, %v", v.CanGrowTo, err)
	}
	_, err = c.z.Create(c.ctx, pool.Spec{Name: "x", Size: 16 * mib, Align: pool.Extent})
	c.fails("create in the reserve", err, errkind.NoSpace)
}

// A snapshot remains when its volume is deleted. List does not return snapshots.
func (c contract) snapshots() {
	v := c.made("v", 16*mib)
	late, early := pool.SnapshotName("s"), pool.SnapshotName("t")
	if late < early {
		late, early = early, late
	}
	for _, name := range []string{late, early} {
		s, err := c.z.TakeSnapshot(c.ctx, name, v, pool.InZone)
		if err != nil || s.Name != name || s.Source != "v" || s.Size != 16*mib || s.Created.IsZero() {
			c.Errorf("the snapshot is %+v, %v", s, err)
		}
	}
	c.must("delete the source", c.z.Delete(c.ctx, "v"))
	all, err := c.z.Snapshots(c.ctx)
	if err != nil || len(all) != 2 || all[0].Name != early || all[1].Name != late {
		c.Errorf("the snapshots are %+v, %v", all, err)
	}
	if vs, err := c.z.List(c.ctx); err != nil || len(vs) != 0 {
		c.Errorf("List returns snapshots: %+v, %v", vs, err)
	}
	c.must("delete", c.z.DeleteSnapshot(c.ctx, pool.ID{Name: early}))
	_, err = c.z.Snapshot(c.ctx, pool.ID{Name: early})
	c.fails("get what is deleted", err, errkind.NotFound)
	if s, err := c.z.Snapshot(c.ctx, pool.ID{Name: late}); err != nil || s.Source != "v" {
		c.Errorf("the other snapshot is %+v, %v", s, err)
	}
}

// A copy is a volume with its own identity. It names its source, and may be larger.
func (c contract) clones() {
	v, err := c.z.Create(c.ctx, pool.Spec{Name: "v", Size: 16 * mib, Align: pool.Extent, Lease: "30"})
	c.must("create", err)
	s, err := c.z.TakeSnapshot(c.ctx, pool.SnapshotName("s"), v, pool.InZone)
	c.must("snapshot", err)
	info, err := c.z.Info(c.ctx, s.Volume())
	if err != nil || info.Size != 16*mib || info.MaxSize != 256*mib {
		c.Errorf("the snapshot has superblock %+v, %v", info, err)
	}
	for name, source := range map[string]pool.Volume{"of-volume": v, "of-snapshot": s.Volume()} {
		got, err := c.z.Clone(c.ctx, pool.Spec{Name: name, Size: 32 * mib, Align: pool.Extent, Origin: source.Name}, source)
		if err != nil || got.Size != 32*mib || got.Origin != source.Name || got.UUID == v.UUID || got.Base == v.Base {
			c.Errorf("%s: %+v, %v", name, got, err)
		}
		if info, err := c.z.Info(c.ctx, got); err != nil || info.Label != name || info.LeaseMS != 30000 || info.MaxSize != 256*mib {
			c.Errorf("%s has superblock %+v, %v", name, info, err)
		}
		_, err = c.z.Clone(c.ctx, pool.Spec{Name: "large", Size: ContractSize, Align: pool.Extent, Origin: source.Name}, source)
		c.fails("a copy without room", err, errkind.NoSpace)
	}
}

// A call that is cancelled before it begins changes nothing.
func (c contract) cancelled() {
	v := c.made("v", 16*mib)
	ended, cancel := context.WithCancel(c.ctx)
	cancel()
	if _, err := c.z.Create(ended, pool.Spec{Name: "w", Size: 16 * mib, Align: pool.Extent}); err == nil {
		c.Error("a cancelled call has created a volume")
	}
	if _, err := c.z.Clone(ended, pool.Spec{Name: "x", Size: 16 * mib, Align: pool.Extent, Origin: "v"}, v); err == nil {
		c.Error("a cancelled call has created a copy")
	}
	if _, err := c.z.TakeSnapshot(ended, pool.SnapshotName("s"), v, pool.InZone); err == nil {
		c.Error("a cancelled call has taken a snapshot")
	}
	_, err := c.z.Grow(ended, "v", 32*mib)
	if got, gerr := c.z.Get(c.ctx, "v"); err == nil || gerr != nil || got.Size != 16*mib {
		c.Errorf("a cancelled call has grown a volume: %v, %+v, %v", err, got, gerr)
	}
	all, err := c.z.List(c.ctx)
	if names := slices.Collect(namesOf(all)); err != nil || !slices.Equal(names, []string{"v"}) {
		c.Errorf("the volumes are %v, %v", names, err)
	}
	if s := c.status(); s.Largest != ContractSize-16*mib {
		c.Errorf("a cancelled call still occupies memory: %+v", s)
	}
	// The name of the cancelled call's volume can be used again.
	c.made("w", 16*mib)
}

func namesOf(all []pool.Volume) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range all {
			if !yield(v.Name) {
				return
			}
		}
	}
}

// A volume has the parameters of its Spec.
func (c contract) parameters() {
	spec := pool.Spec{
		Name: "v", Size: 16 * mib, Align: pool.Gigabyte, Label: "a label", MaxSize: 64 * mib, Lease: "60", HostSplice: true, DataAtomic: true,
		RootMode: "1777", RootOwner: "1:2",
	}
	v, err := c.z.Create(c.ctx, spec)
	c.must("create", err)
	info, err := c.z.Info(c.ctx, v)
	if err != nil || info.Label != "a label" || info.MaxSize != 64*mib || info.LeaseMS != 60000 || !info.HostSplice || !info.DataAtomic() || info.Size != 16*mib {
		c.Errorf("the superblock is %+v, %v", info, err)
	}
	if v.Label != info.Label || v.UUID != info.UUID || v.Base != info.Base || v.Alignment < pool.Gigabyte {
		c.Errorf("the volume is %+v, and its superblock %+v", v, info)
	}
	if most := v.CanGrowTo; most != 64*mib {
		c.Errorf("the volume can grow to %d", most)
	}
	if space, err := c.z.Space(c.ctx, v); err != nil || space.Size == 0 || space.Size < space.Free || space.Inodes <= space.InodesUsed {
		c.Errorf("the space is %+v, %v", space, err)
	}
}
