// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/step"
	"stargate/csi-driver/internal/zone"
)

func shown(s zone.Snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: s.Name, SourceVolumeId: s.Source, SizeBytes: s.Size,
		CreationTime: timestamppb.New(s.Created), ReadyToUse: true,
	}
}

// CreateSnapshot takes one, or finds the one that an earlier call has taken.
func (d *Driver) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if err := checkName(r.GetName()); err != nil {
		return nil, err
	}
	source := r.GetSourceVolumeId()
	if source == "" {
		return nil, fault.New(fault.Invalid, "no source volume id is given")
	}
	p, err := parse(snapshotParameters, r.GetParameters())
	if err == nil {
		err = p.allowed(d.config)
	}
	if err != nil {
		return nil, err
	}
	name := zone.SnapshotName(r.GetName())
	end, err := d.calls.begin(name, "CreateSnapshot")
	if err != nil {
		return nil, err
	}
	defer end()
	s, err := d.snapshot(ctx, name, source, p.target)
	if err != nil {
		return nil, err
	}
	step.Reached(ctx, "snapshot: done")
	return &csi.CreateSnapshotResponse{Snapshot: shown(s)}, nil
}

// snapshot finds one, which has to be of that volume, or takes it.
func (d *Driver) snapshot(ctx context.Context, name, source string, target zone.Target) (zone.Snapshot, error) {
	find := func() (zone.Snapshot, error) {
		s, err := d.zone.Snapshot(ctx, name)
		if err == nil && s.Source != source {
			err = fault.New(fault.Exists, "there is such a snapshot already, of volume %s", s.Source)
		}
		return s, err
	}
	return findOrMake(find, func() (zone.Snapshot, error) {
		v, err := d.whole(ctx, source)
		if err != nil {
			return zone.Snapshot{}, err
		}
		return d.zone.TakeSnapshot(ctx, name, v, target)
	})
}

// DeleteSnapshot deletes one. Nobody can be using it.
func (d *Driver) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	id := r.GetSnapshotId()
	if id == "" {
		return nil, fault.New(fault.Invalid, "no snapshot id is given")
	}
	if !zone.IsSnapshot(id) {
		return &csi.DeleteSnapshotResponse{}, nil // there cannot be one
	}
	end, err := d.calls.begin(id, "DeleteSnapshot")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := d.zone.DeleteSnapshot(ctx, id); err != nil {
		return nil, err
	}
	step.Reached(ctx, "snapshot: deleted")
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot has one, which another node's driver does not have.
func (d *Driver) GetSnapshot(ctx context.Context, r *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	id := r.GetSnapshotId()
	if id == "" {
		return nil, fault.New(fault.Invalid, "no snapshot id is given")
	}
	if !zone.IsSnapshot(id) {
		return nil, fault.New(fault.NotFound, "there is no snapshot %q", id)
	}
	s, err := d.zone.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: shown(s)}, nil
}

// ListSnapshots has those of this node; of one volume, or one alone, if asked for.
func (d *Driver) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	all, err := d.zone.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	var meant []zone.Snapshot
	for _, s := range all {
		if (r.GetSnapshotId() == "" || s.Name == r.GetSnapshotId()) && (r.GetSourceVolumeId() == "" || s.Source == r.GetSourceVolumeId()) {
			meant = append(meant, s)
		}
	}
	page, next, err := paginate(meant, func(s zone.Snapshot) string { return s.Name }, r.GetStartingToken(), r.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	res := &csi.ListSnapshotsResponse{NextToken: next}
	for _, s := range page {
		res.Entries = append(res.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: shown(s)})
	}
	return res, nil
}

// --- what a volume is a copy of ------------------------------------------------------------------

// origin is the name of what a volume is to be a copy of; "" if it is to be empty.
func origin(s *csi.VolumeContentSource) (string, error) {
	if s == nil {
		return "", nil
	}
	what, name := "snapshot", s.GetSnapshot().GetSnapshotId()
	if s.GetSnapshot() == nil {
		what, name = "volume", s.GetVolume().GetVolumeId()
	}
	switch {
	case name == "":
		return "", fault.New(fault.Invalid, "the content source names neither a snapshot nor a volume")
	case zone.IsSnapshot(name) != (what == "snapshot"):
		return "", fault.New(fault.NotFound, "there is no %s %q to copy", what, name)
	}
	return name, nil
}

func (d *Driver) source(ctx context.Context, name string) (zone.Volume, error) {
	if !zone.IsSnapshot(name) {
		return d.whole(ctx, name)
	}
	s, err := d.zone.Snapshot(ctx, name)
	return s.Volume(), err
}

// clone makes a copy of what a request names. Owner, mode and lease are those of what is copied.
func (d *Driver) clone(ctx context.Context, spec zone.Spec, r *csi.CapacityRange) (zone.Volume, error) {
	source, err := d.source(ctx, spec.Origin)
	if err != nil {
		return source, err
	}
	if spec.Size, err = size(r, source.Size); err != nil {
		return source, err
	}
	if spec.Size < source.Size {
		return source, fault.New(fault.OutOfRange, "%s has %d bytes; a copy of it cannot have %d", source.Name, source.Size, spec.Size)
	}
	if err := grows(spec.MaxSize, spec.Size, spec.Reserve); err != nil {
		return source, err
	}
	info, err := d.zone.Info(ctx, source)
	if err != nil {
		return source, err
	}
	if most := max(spec.Size+spec.Reserve, spec.MaxSize); info.MaxSize < most {
		return source, fault.New(fault.OutOfRange, "%s can grow to %d bytes, and so can a copy of it; %d are wanted", source.Name, info.MaxSize, most)
	}
	if info.HostSplice != spec.HostSplice {
		return source, fault.New(fault.Invalid, "%s has another hostMode, which a copy of it shares: take a class with that", source.Name)
	}
	return d.zone.Clone(ctx, spec, source)
}
