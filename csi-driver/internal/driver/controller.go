// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

const nameMax = 128 // bytes that CSI allows

// ControllerGetCapabilities lists the calls that are served.
func (d *Driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	claims := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
		csi.ControllerServiceCapability_RPC_GET_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_GET_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH,
		csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		controllerCondition,
	}
	if d.config.ControllerExpand {
		claims = append(claims, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME)
	}
	res := &csi.ControllerGetCapabilitiesResponse{}
	for _, c := range claims {
		res.Capabilities = append(res.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: c}},
		})
	}
	return res, nil
}

func (d *Driver) volume(v pool.Volume, context map[string]string) *csi.Volume {
	return &csi.Volume{
		VolumeId: v.ID(), CapacityBytes: v.Size, VolumeContext: context,
		AccessibleTopology: []*csi.Topology{d.config.topology()},
	}
}

// CreateVolume makes a volume, or finds the one that an earlier call has made.
func (d *Driver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	s, n, err := d.checkCreate(r)
	if err != nil {
		return nil, err
	}
	name := pool.NameFor(r.GetName())
	spec := s.spec(name, n)
	of, err := origin(r.GetVolumeContentSource())
	if err != nil {
		return nil, err
	}
	spec.Origin = of.Name
	end, err := d.calls.begin(name, "CreateVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	v, err := d.create(ctx, spec, of, r.GetCapacityRange(), func(v pool.Volume) error {
		if v.Origin != spec.Origin {
			return errkind.New(errkind.Exists, "there is a volume %s already, which is a copy of %q, and not of %q", name, v.Origin, spec.Origin)
		}
		return d.compatible(ctx, v, spec, r.GetCapacityRange())
	})
	if errkind.Is(err, errkind.NoZone) {
		// Another node may have one: that is what this code makes the scheduler try.
		return nil, errkind.Wrap(errkind.NoSpace, err, "node %s", d.config.NodeID)
	}
	if err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "create: done")
	made := d.volume(v, s.context(v))
	made.ContentSource = r.GetVolumeContentSource()
	return &csi.CreateVolumeResponse{Volume: made}, nil
}

// create finds a volume, which has to fit, or makes it.
func (d *Driver) create(ctx context.Context, spec pool.Spec, of pool.ID, r *csi.CapacityRange, fits func(pool.Volume) error) (pool.Volume, error) {
	find := func() (pool.Volume, error) {
		v, err := d.active(ctx, spec.Name)
		if err == nil {
			err = fits(v)
		}
		return v, err
	}
	return findOrMake(find, func() (pool.Volume, error) {
		if spec.Origin != "" {
			return d.clone(ctx, spec, of, r)
		}
		return d.zone.Create(ctx, spec)
	})
}

// findOrMake finds what an earlier call has made, or makes it. A tool that a dead driver has
// started continues, and may finish between the two steps. Its result then counts as if it had
// existed before.
func findOrMake[T any](find, make func() (T, error)) (T, error) {
	found, err := find()
	if !errkind.Is(err, errkind.NotFound) {
		return found, err
	}
	made, err := make()
	if errkind.Is(err, errkind.Exists) {
		if found, gone := find(); !errkind.Is(gone, errkind.NotFound) {
			return found, gone
		}
	}
	return made, err
}

func checkName(name string) error {
	switch {
	case name == "":
		return errkind.New(errkind.Invalid, "no name is given")
	case len(name) > nameMax || !utf8.ValidString(name):
		return errkind.New(errkind.Invalid, "a name has up to %d bytes of UTF-8; this one has %d", nameMax, len(name))
	}
	return nil
}

func (d *Driver) checkCreate(r *csi.CreateVolumeRequest) (settings, int64, error) {
	var s settings
	if err := checkName(r.GetName()); err != nil {
		return s, 0, err
	}
	if err := checkAll(r.GetVolumeCapabilities()); err != nil {
		return s, 0, err
	}
	if len(r.GetMutableParameters()) > 0 {
		return s, 0, errkind.New(errkind.Invalid, "a VolumeAttributesClass is not supported: nothing of a volume can be modified but its size")
	}
	s, err := parse(parameters, r.GetParameters())
	if err == nil {
		err = s.allowed(d.config)
	}
	if err != nil {
		return s, 0, err
	}
	// VMs mount volumes by their labels: a user knows the name of the claim.
	if claim := r.GetParameters()[foreignPrefix+"pvc/name"]; s.label == "" && len(claim) <= mostLabel {
		s.label = claim
	}
	n, err := size(r.GetCapacityRange(), d.config.DefaultSize)
	if err != nil {
		return s, 0, err
	}
	// The size of a copy is known once its source is.
	if r.GetVolumeContentSource() == nil {
		if err := grows(s.maxSize, n, s.reserve); err != nil {
			return s, 0, err
		}
	}
	return s, n, d.here(r.GetAccessibilityRequirements(), "volume")
}

// grows checks whether a volume can have its size and its reserve. 0: only the tool knows the
// bound.
func grows(most, size, reserve int64) error {
	if most != 0 && most < size+reserve {
		return errkind.New(errkind.Invalid, "parameter maxSize=%d is less than the volume's size and its reserve, %d", most, size+reserve)
	}
	return nil
}

// here checks whether a volume or snapshot may be on this node.
func (d *Driver) here(t *csi.TopologyRequirement, what string) error {
	if t == nil || len(t.GetRequisite())+len(t.GetPreferred()) == 0 {
		return nil
	}
	for _, one := range append(append([]*csi.Topology{}, t.GetRequisite()...), t.GetPreferred()...) {
		if d.ours(one) {
			return nil
		}
	}
	return errkind.New(errkind.NoSpace, "the %s is wanted on other nodes than %s", what, d.config.NodeID)
}

// ours reports whether a topology is this node's, which has one key: a topology with another key is
// on no node.
func (d *Driver) ours(t *csi.Topology) bool {
	for key, value := range t.GetSegments() {
		if key != d.config.TopologyKey() || value != d.config.NodeID {
			return false
		}
	}
	return true
}

// compatible tells whether a volume that is there is the one that is asked for, as far as it still shows: the owner
// and mode of its root are whoever's who uses it. A copy has some things from its source.
func (d *Driver) compatible(ctx context.Context, v pool.Volume, spec pool.Spec, r *csi.CapacityRange) error {
	if !v.State.Whole() {
		return other(v, "and %s", v.Why)
	}
	if !within(v.Size, r) {
		return other(v, "with %d bytes", v.Size)
	}
	if v.Alignment < spec.Align {
		return other(v, "at an address that is a multiple of %d bytes only", v.Alignment)
	}
	if least := pool.RoundUp(max(r.GetRequiredBytes(), pool.MinVolume), pool.Extent) + spec.Reserve; spec.Reserve > 0 && v.Memory < least {
		return other(v, "with %d bytes of memory that is its own, and not %d", v.Memory, least)
	}
	info, err := d.zone.Info(ctx, v)
	if err != nil {
		return err
	}
	return d.alike(v, info, spec)
}

// alike is about what stands in its superblock.
func (d *Driver) alike(v pool.Volume, info stargatectl.Info, spec pool.Spec) error {
	switch {
	case info.HostSplice != spec.HostSplice:
		return other(v, "with another hostMode")
	case info.MaxSize < spec.MaxSize:
		return other(v, "which can grow to %d bytes", info.MaxSize)
	case info.Label != spec.Label && (spec.Label != "" || info.Label != "" && info.Label != v.Name):
		return other(v, "with the label %q", info.Label)
	case spec.Origin == "" && info.LeaseMS != spec.LeaseMS():
		return other(v, "with another lease, of %d ms", info.LeaseMS)
	}
	return nil
}

func other(v pool.Volume, format string, args ...any) error {
	return errkind.New(errkind.Exists, "there is a volume %s already, %s", v.Name, fmt.Sprintf(format, args...))
}

// DeleteVolume deletes an unused volume.
func (d *Driver) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := r.GetVolumeId()
	if err := given(id); err != nil {
		return nil, err
	}
	of, ok := pool.ParseID(id)
	if !ok {
		return &csi.DeleteVolumeResponse{}, nil // no volume can have that name
	}
	end, err := d.calls.begin(id, "DeleteVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	if gone, err := d.countsAsGone(ctx, of); gone || err != nil {
		return &csi.DeleteVolumeResponse{}, err
	}
	if err := d.deletable(ctx, of); err != nil {
		return nil, err
	}
	if err := d.zone.Delete(ctx, of.Name); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "delete: done")
	return &csi.DeleteVolumeResponse{}, nil
}

// countsAsGone tells whether what an id names was in a zone, or folder, of which the operator has said that it is gone for
// good. All nodes are told the same: the one that this node has is not gone.
func (d *Driver) countsAsGone(ctx context.Context, of pool.ID) (bool, error) {
	if !d.config.gone(of) {
		return false, nil
	}
	here, err := d.zone.Place(ctx, of)
	if errkind.Is(err, errkind.NoZone) {
		return true, nil
	}
	return err == nil && here != of.Zone, err
}

// deletable is InUse as long as the volume is shown somewhere on the node, and if it is in another zone.
func (d *Driver) deletable(ctx context.Context, of pool.ID) error {
	v, err := d.zone.Get(ctx, of.Name)
	if errkind.Is(err, errkind.NotFound) {
		return d.inThisZone(ctx, "volume", of)
	}
	if err != nil {
		return err
	}
	if of.Elsewhere(v.Zone) {
		return d.inAnotherZone("volume", of, v.Zone)
	}
	shown, err := d.show.Shown(v)
	if err != nil {
		return err
	}
	if len(shown) > 0 {
		return errkind.New(errkind.InUse, "volume %s is mounted at %s", v.Name, shown[0])
	}
	return nil
}

// ValidateVolumeCapabilities confirms what CreateVolume would have accepted.
func (d *Driver) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	switch {
	case r.GetVolumeId() == "":
		return nil, errkind.New(errkind.Invalid, "no volume id is given")
	case len(r.GetVolumeCapabilities()) == 0:
		return nil, errkind.New(errkind.Invalid, "no volume capabilities are given")
	}
	if _, err := d.own(ctx, r.GetVolumeId()); err != nil {
		return nil, err
	}
	err := checkAll(r.GetVolumeCapabilities())
	if err == nil {
		_, err = parse(parameters, r.GetParameters())
	}
	if err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

// GetCapacity reports the largest free extent as the largest volume: the sum has no meaning (D2).
func (d *Driver) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	nothing := &csi.GetCapacityResponse{MaximumVolumeSize: wrapperspb.Int64(0)}
	if t := r.GetAccessibleTopology(); t != nil && !d.ours(t) {
		return nothing, nil
	}
	if caps := r.GetVolumeCapabilities(); len(caps) > 0 && checkAll(caps) != nil {
		return nothing, nil
	}
	p, err := parse(parameters, r.GetParameters())
	if err != nil {
		return nil, err
	}
	if p.allowed(d.config) != nil {
		return nothing, nil
	}
	s, err := d.zone.Status(ctx)
	if errkind.Is(err, errkind.NoZone) {
		return nothing, nil
	}
	if err != nil {
		return nil, err
	}
	largest := min(s.LargestAt(p.align, p.reserve), pool.MaxVolume)
	if largest < pool.MinVolume {
		return nothing, nil
	}
	return &csi.GetCapacityResponse{
		AvailableCapacity: s.Free,
		MaximumVolumeSize: wrapperspb.Int64(largest),
		MinimumVolumeSize: wrapperspb.Int64(pool.MinVolume),
	}, nil
}

// ControllerExpandVolume does all the work, as NodeExpandVolume does: a mounted volume follows.
func (d *Driver) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if err := given(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetCapacityRange() == nil {
		return nil, errkind.New(errkind.Invalid, "no capacity range is given")
	}
	v, err := d.expand(ctx, r.GetVolumeId(), r.GetCapacityRange(), "ControllerExpandVolume")
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: v.Size}, nil
}

func (d *Driver) expand(ctx context.Context, id string, r *csi.CapacityRange, call string) (pool.Volume, error) {
	end, err := d.calls.begin(id, call)
	if err != nil {
		return pool.Volume{}, err
	}
	defer end()
	v, err := d.whole(ctx, id)
	if err != nil || r.GetRequiredBytes() == 0 && r.GetLimitBytes() == 0 {
		return v, err
	}
	n, err := size(r, v.Size)
	if err != nil {
		return v, err
	}
	if r.GetLimitBytes() != 0 && v.Size > r.GetLimitBytes() {
		return v, errkind.New(errkind.OutOfRange, "volume %s has %d bytes; it cannot shrink to %d", id, v.Size, r.GetLimitBytes())
	}
	if n > v.Size {
		if v, err = d.zone.Grow(ctx, v.Name, n); err != nil {
			return v, err
		}
	}
	// This also completes an earlier call that was cut off between the two.
	if err := d.show.Grown(ctx, v); err != nil {
		return v, err
	}
	failpoint.Reached(ctx, "expand: done")
	return v, nil
}

// find is the volume that an id names. If the id names another zone, a volume of that name here is another one.
func (d *Driver) find(ctx context.Context, id string) (pool.Volume, error) {
	of, ok := pool.ParseID(id)
	if !ok {
		return pool.Volume{}, errkind.New(errkind.NotFound, "there is no volume %q", id)
	}
	v, err := d.zone.Get(ctx, of.Name)
	if err == nil && of.Elsewhere(v.Zone) {
		return pool.Volume{}, errkind.New(errkind.NotFound, "there is no volume %q: it is in another zone than this node's, %s", id, v.Zone)
	}
	return v, err
}

// own is a volume of the driver's: what somebody else has made in the zone is none.
func (d *Driver) own(ctx context.Context, id string) (pool.Volume, error) {
	v, err := d.find(ctx, id)
	if err == nil && v.State == pool.Foreign {
		return v, errkind.New(errkind.NotFound, "there is no volume %q of this driver: what has that name in the zone was made by others", id)
	}
	return v, err
}

// active is a volume as it is when its device is there, which after a boot it need not be yet.
func (d *Driver) active(ctx context.Context, id string) (pool.Volume, error) {
	v, err := d.find(ctx, id)
	if err == nil && v.State == pool.Inactive {
		return d.zone.Activate(ctx, v.Name)
	}
	return v, err
}

// whole is a volume that can be used.
func (d *Driver) whole(ctx context.Context, id string) (pool.Volume, error) {
	v, err := d.active(ctx, id)
	if err != nil {
		return v, err
	}
	if !v.State.Whole() {
		return v, errkind.New(errkind.InUse, "volume %s cannot be used: %s", id, v.Why)
	}
	return v, nil
}

// inThisZone is an error if what is to be deleted is, or was, in another zone: there its bytes would stay, and
// nobody would know of them any more.
func (d *Driver) inThisZone(ctx context.Context, what string, of pool.ID) error {
	if of.Zone == "" {
		return nil // from an earlier driver
	}
	here, err := d.zone.Place(ctx, of)
	if err == nil && of.Elsewhere(here) {
		err = d.inAnotherZone(what, of, here)
	}
	return err
}

func (d *Driver) inAnotherZone(what string, of pool.ID, here string) error {
	place := "zone"
	if pool.IsSnapshot(of.Name) {
		place = "zone or folder" // which of them the id does not say
	}
	return errkind.New(errkind.InUse, "%s %s is in %s %s, and node %s has zone %s now: it is not deleted. Give the node that %s again; "+
		"or, if its memory is gone for good, name it to the driver by --gone-zone %s", what, of.Name, place, of.Zone, d.config.NodeID, here, place, of.Zone)
}
