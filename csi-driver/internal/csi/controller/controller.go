// SPDX-License-Identifier: Apache-2.0

// Package controller implements CSI's Controller service for one node: volumes and their snapshots.
// Package health implements the calls about the health of volumes.
package controller

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"stargate/csi-driver/internal/csi/health"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/csi/volume"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Zone has the methods of the node's zone that the service needs. pool.Zone documents the contract
// of each method.
type Zone interface {
	Snapshots
	Place(ctx context.Context, of pool.ID) (string, error)
	Status(ctx context.Context) (pool.Status, error)
	Glances(ctx context.Context) ([]pool.Glance, error)
	Get(ctx context.Context, name string) (pool.Volume, error)
	Info(ctx context.Context, v pool.Volume) (stargatectl.Info, error)
	Create(ctx context.Context, spec pool.Spec) (pool.Volume, error)
	Clone(ctx context.Context, spec pool.Spec, source pool.Volume) (pool.Volume, error)
	Delete(ctx context.Context, name string) error
}

// Shower returns the paths at which a volume is mounted.
type Shower interface {
	Shown(v pool.Volume) ([]string, error)
}

// Controller handles the calls of Kubernetes' CSI sidecars.
type Controller struct {
	csi.UnimplementedControllerServer

	config  request.Config
	zone    Zone
	show    Shower
	volumes *volume.Volumes
	health  *health.Health
	cluster Cluster // nil: the service does not query the cluster
}

// New returns a Controller. The node's other services use the same volumes and health.
func New(config request.Config, z Zone, show Shower, volumes *volume.Volumes, h *health.Health) *Controller {
	return &Controller{config: config, zone: z, show: show, volumes: volumes, health: h}
}

const nameMax = 128 // length of the longest name in CSI, in bytes

// ControllerGetCapabilities lists the calls that the service supports.
func (d *Controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
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
		health.ControllerCondition,
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

func (d *Controller) volume(v pool.Volume, context map[string]string) *csi.Volume {
	return &csi.Volume{
		VolumeId: v.ID(), CapacityBytes: v.Size, VolumeContext: context,
		AccessibleTopology: []*csi.Topology{d.config.Topology()},
	}
}

// CreateVolume creates a volume, or returns the volume that an earlier call created.
func (d *Controller) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	s, n, err := d.checkCreate(r)
	if err != nil {
		return nil, err
	}
	name := pool.NameFor(d.config.NameOf(r))
	spec := s.Spec(name, n)
	of, err := origin(r.GetVolumeContentSource())
	if err != nil {
		return nil, err
	}
	spec.Origin = of.Name
	end, err := d.volumes.Begin(name, "CreateVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := d.onlyName(ctx, name, r); err != nil {
		return nil, err
	}
	v, err := d.create(ctx, spec, of, r.GetCapacityRange(), func(v pool.Volume) error {
		if v.Origin != spec.Origin {
			return errkind.New(errkind.Exists, "there is a volume %s already, which is a copy of %q, and not of %q", name, v.Origin, spec.Origin)
		}
		return d.compatible(ctx, v, spec, r.GetCapacityRange())
	})
	if errkind.Is(err, errkind.NoZone) {
		// Another node may have a zone. After NoSpace, the scheduler tries other nodes.
		return nil, errkind.Wrap(errkind.NoSpace, err, "node %s", d.config.NodeID)
	}
	if err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "create: done")
	d.tellMade(v.Name, r)
	made := d.volume(v, s.Context(v))
	made.ContentSource = r.GetVolumeContentSource()
	return &csi.CreateVolumeResponse{Volume: made}, nil
}

// create returns an existing volume if it fits the request, or creates the volume.
func (d *Controller) create(ctx context.Context, spec pool.Spec, of pool.ID, r *csi.CapacityRange, fits func(pool.Volume) error) (pool.Volume, error) {
	find := func() (pool.Volume, error) {
		v, err := d.volumes.Active(ctx, spec.Name)
		if err == nil {
			err = fits(v)
		}
		return v, err
	}
	return volume.FindOrMake(find, func() (pool.Volume, error) {
		if spec.Origin != "" {
			return d.clone(ctx, spec, of, r)
		}
		return d.zone.Create(ctx, spec)
	})
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

func (d *Controller) checkCreate(r *csi.CreateVolumeRequest) (request.Settings, int64, error) {
	var s request.Settings
	if err := checkName(d.config.NameOf(r)); err != nil {
		return s, 0, err
	}
	if err := request.CheckAll(r.GetVolumeCapabilities()); err != nil {
		return s, 0, err
	}
	if len(r.GetMutableParameters()) > 0 {
		return s, 0, errkind.New(errkind.Invalid, "a VolumeAttributesClass is not supported: only the size of a volume can be modified")
	}
	s, err := request.OfClass(r.GetParameters())
	if err == nil {
		err = s.Allowed(d.config)
	}
	if err != nil {
		return s, 0, err
	}
	// VMs mount volumes by their labels. The default label is the claim's name, because users
	// know it.
	if claim := r.GetParameters()[claimName]; s.Label == "" && len(claim) <= request.MostLabel {
		s.Label = claim
	}
	n, err := request.Size(r.GetCapacityRange(), d.config.DefaultSize)
	if err != nil {
		return s, 0, err
	}
	// The size of a copy depends on its source, which create reads first.
	if r.GetVolumeContentSource() == nil {
		if err := grows(s.MaxSize, n, s.Reserve); err != nil {
			return s, 0, err
		}
	}
	return s, n, d.config.Here(r.GetAccessibilityRequirements(), "volume")
}

// grows checks whether maxSize allows the volume's size and its reserve. If most is 0, only
// stargatectl can check the limit.
func grows(most, size, reserve int64) error {
	if most != 0 && most < size+reserve {
		return errkind.New(errkind.Invalid, "parameter maxSize=%d is less than the volume's size and its reserve, %d", most, size+reserve)
	}
	return nil
}

// compatible checks that an existing volume has the requested parameters. It does not check owner
// and mode of the root, because users may have changed them. A copy has its source's lease.
func (d *Controller) compatible(ctx context.Context, v pool.Volume, spec pool.Spec, r *csi.CapacityRange) error {
	if !v.State.Whole() {
		return other(v, "and %s", v.Why)
	}
	if !request.Within(v.Size, r) {
		return other(v, "with %d bytes", v.Size)
	}
	if v.Alignment < spec.Align {
		return other(v, "at an address that is a multiple of only %d bytes", v.Alignment)
	}
	if least := pool.RoundUp(max(r.GetRequiredBytes(), pool.MinVolume), pool.Extent) + spec.Reserve; spec.Reserve > 0 && v.Memory < least {
		return other(v, "with %d bytes of memory, which is less than the required %d", v.Memory, least)
	}
	info, err := d.zone.Info(ctx, v)
	if err != nil {
		return err
	}
	return d.alike(v, info, spec)
}

// alike compares the requested parameters with those in the superblock.
func (d *Controller) alike(v pool.Volume, info stargatectl.Info, spec pool.Spec) error {
	switch {
	case info.HostSplice != spec.HostSplice:
		return other(v, "with another hostMode")
	case info.DataAtomic() != spec.DataAtomic:
		return other(v, "with another dataMode")
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
func (d *Controller) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := r.GetVolumeId()
	if err := request.GivenVolume(id); err != nil {
		return nil, err
	}
	of, ok := pool.ParseID(id)
	if !ok {
		return &csi.DeleteVolumeResponse{}, nil // no volume can have this name
	}
	end, err := d.volumes.Begin(id, "DeleteVolume")
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

// countsAsGone reports whether an id names a zone or folder that the operator has declared lost.
// All nodes have the same list of lost zones. If this node has the zone, the zone does not count as
// lost.
func (d *Controller) countsAsGone(ctx context.Context, of pool.ID) (bool, error) {
	if !d.config.Gone(of) {
		return false, nil
	}
	here, err := d.zone.Place(ctx, of)
	if errkind.Is(err, errkind.NoZone) {
		return true, nil
	}
	return err == nil && here != of.Zone, err
}

// deletable fails with InUse if the volume is mounted on the node, or is in another zone.
func (d *Controller) deletable(ctx context.Context, of pool.ID) error {
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
	return d.nobodyKeeps(ctx, pool.ID{Name: v.Name, Zone: v.Zone})
}

// ValidateVolumeCapabilities confirms the capabilities and parameters that CreateVolume would
// accept.
func (d *Controller) ValidateVolumeCapabilities(ctx context.Context,
	r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	switch {
	case r.GetVolumeId() == "":
		return nil, errkind.New(errkind.Invalid, "no volume id is given")
	case len(r.GetVolumeCapabilities()) == 0:
		return nil, errkind.New(errkind.Invalid, "no volume capabilities are given")
	}
	if _, err := d.volumes.Own(ctx, r.GetVolumeId()); err != nil {
		return nil, err
	}
	err := request.CheckAll(r.GetVolumeCapabilities())
	if err == nil {
		_, err = request.OfClass(r.GetParameters())
	}
	if err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

// GetCapacity reports the size of the largest free extent, which limits the size of a new volume.
// The sum of all free extents has no meaning, because a volume is contiguous (D2).
func (d *Controller) GetCapacity(ctx context.Context, r *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	nothing := &csi.GetCapacityResponse{MaximumVolumeSize: wrapperspb.Int64(0)}
	if t := r.GetAccessibleTopology(); t != nil && !d.config.Ours(t) {
		return nothing, nil
	}
	if caps := r.GetVolumeCapabilities(); len(caps) > 0 && request.CheckAll(caps) != nil {
		return nothing, nil
	}
	p, err := request.OfClass(r.GetParameters())
	if err != nil {
		return nil, err
	}
	if p.Allowed(d.config) != nil {
		return nothing, nil
	}
	s, err := d.zone.Status(ctx)
	if errkind.Is(err, errkind.NoZone) {
		return nothing, nil
	}
	if err != nil {
		return nil, err
	}
	largest := min(s.LargestAt(p.Align, p.Reserve), pool.MaxVolume)
	if largest < pool.MinVolume {
		return nothing, nil
	}
	return &csi.GetCapacityResponse{
		AvailableCapacity: s.Free,
		MaximumVolumeSize: wrapperspb.Int64(largest),
		MinimumVolumeSize: wrapperspb.Int64(pool.MinVolume),
	}, nil
}

// ControllerExpandVolume grows a volume completely, like NodeExpandVolume: it grows the volume's
// mounts, too.
func (d *Controller) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if err := request.GivenVolume(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetCapacityRange() == nil {
		return nil, errkind.New(errkind.Invalid, "no capacity range is given")
	}
	v, err := d.volumes.Expand(ctx, r.GetVolumeId(), r.GetCapacityRange(), "ControllerExpandVolume")
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: v.Size}, nil
}

// inThisZone fails if a volume or snapshot that should be deleted is, or was, in another zone.
// Otherwise its bytes would remain there without any record of them.
func (d *Controller) inThisZone(ctx context.Context, what string, of pool.ID) error {
	if of.Zone == "" {
		return nil // an earlier driver created the id
	}
	here, err := d.zone.Place(ctx, of)
	if err == nil && of.Elsewhere(here) {
		err = d.inAnotherZone(what, of, here)
	}
	return err
}

func (d *Controller) inAnotherZone(what string, of pool.ID, here string) error {
	place := "zone"
	if pool.IsSnapshot(of.Name) {
		place = "zone or folder" // the id does not distinguish them
	}
	return errkind.New(errkind.InUse, "%s %s is in %s %s, and node %s has zone %s now: it is not deleted. Give the node that %s again; "+
		"or, if its memory is lost permanently, start the driver with --gone-zone %s", what, of.Name, place, of.Zone, d.config.NodeID, here, place, of.Zone)
}
