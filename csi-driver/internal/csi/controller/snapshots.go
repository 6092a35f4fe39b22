// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/csi/volume"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
)

// Snapshots manages the snapshots of the node's zone.
type Snapshots interface {
	Snapshots(ctx context.Context) ([]pool.Snapshot, error)
	Snapshot(ctx context.Context, of pool.ID) (pool.Snapshot, error)
	TakeSnapshot(ctx context.Context, name string, source pool.Volume, target pool.Target) (pool.Snapshot, error)
	DeleteSnapshot(ctx context.Context, of pool.ID) error
}

// shown converts a snapshot to CSI's type. source is the source's id in the request, or empty.
func (d *Controller) shown(s pool.Snapshot, source string) *csi.Snapshot {
	if source == "" {
		source = s.SourceID().String()
	}
	return &csi.Snapshot{
		SnapshotId: s.ID(), SourceVolumeId: source, SizeBytes: s.Size,
		CreationTime: timestamppb.New(s.Created), ReadyToUse: true,
		AccessibleTopology: []*csi.Topology{d.config.Topology()},
	}
}

// CreateSnapshot takes a snapshot, or returns the snapshot that an earlier call took.
func (d *Controller) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if err := checkName(r.GetName()); err != nil {
		return nil, err
	}
	source := r.GetSourceVolumeId()
	if source == "" {
		return nil, errkind.New(errkind.Invalid, "no source volume id is given")
	}
	if err := d.config.Here(r.GetAccessibilityRequirements(), "snapshot"); err != nil {
		return nil, err
	}
	p, err := request.OfSnapshotClass(r.GetParameters())
	if err == nil {
		err = p.Allowed(d.config)
	}
	if err != nil {
		return nil, err
	}
	name := pool.SnapshotName(r.GetName())
	end, err := d.volumes.Begin(name, "CreateSnapshot")
	if err != nil {
		return nil, err
	}
	defer end()
	s, err := d.snapshot(ctx, name, source, p.Target)
	if err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "snapshot: done")
	return &csi.CreateSnapshotResponse{Snapshot: d.shown(s, source)}, nil
}

// snapshot returns an existing snapshot of the volume, or takes the snapshot.
func (d *Controller) snapshot(ctx context.Context, name, source string, target pool.Target) (pool.Snapshot, error) {
	find := func() (pool.Snapshot, error) {
		s, err := d.zone.Snapshot(ctx, pool.ID{Name: name})
		if err == nil && s.Source != pool.NameOf(source) {
			err = errkind.New(errkind.Exists, "a snapshot of this name already exists, of volume %s", s.Source)
		}
		return s, err
	}
	return volume.FindOrMake(find, func() (pool.Snapshot, error) {
		v, err := d.volumes.Whole(ctx, source)
		if err != nil {
			return pool.Snapshot{}, err
		}
		return d.zone.TakeSnapshot(ctx, name, v, target)
	})
}

// DeleteSnapshot deletes a snapshot. It does not check for users, because no system mounts a
// snapshot.
func (d *Controller) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	id := r.GetSnapshotId()
	if id == "" {
		return nil, errkind.New(errkind.Invalid, "no snapshot id is given")
	}
	of, ok := pool.ParseID(id)
	if !ok || !pool.IsSnapshot(of.Name) {
		return &csi.DeleteSnapshotResponse{}, nil // no snapshot can have this name
	}
	end, err := d.volumes.Begin(id, "DeleteSnapshot")
	if err != nil {
		return nil, err
	}
	defer end()
	if gone, err := d.countsAsGone(ctx, of); gone || err != nil {
		return &csi.DeleteSnapshotResponse{}, err
	}
	if err := d.inThisZone(ctx, "snapshot", of); err != nil {
		return nil, err
	}
	if err := d.zone.DeleteSnapshot(ctx, of); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "snapshot: deleted")
	return &csi.DeleteSnapshotResponse{}, nil
}

// GetSnapshot returns one snapshot of this node.
func (d *Controller) GetSnapshot(ctx context.Context, r *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	id := r.GetSnapshotId()
	if id == "" {
		return nil, errkind.New(errkind.Invalid, "no snapshot id is given")
	}
	of, ok := pool.ParseID(id)
	if !ok || !pool.IsSnapshot(of.Name) {
		return nil, errkind.New(errkind.NotFound, "there is no snapshot %q", id)
	}
	s, err := d.findSnapshot(ctx, of)
	if err != nil {
		return nil, err
	}
	return &csi.GetSnapshotResponse{Snapshot: d.shown(s, "")}, nil
}

// findSnapshot returns the snapshot with an id.
func (d *Controller) findSnapshot(ctx context.Context, of pool.ID) (pool.Snapshot, error) {
	s, err := d.zone.Snapshot(ctx, of)
	if err == nil && of.Elsewhere(s.Zone) {
		return pool.Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q: it is in another zone or folder than this node's, %s", of, s.Zone)
	}
	return s, err
}

// ListSnapshots lists this node's snapshots: all snapshots, the snapshots of one volume, or one
// snapshot.
func (d *Controller) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	all, err := d.zone.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	var meant []pool.Snapshot
	for _, s := range all {
		if id := r.GetSnapshotId(); id != "" && !named(id, pool.ID{Name: s.Name, Zone: s.Zone}) {
			continue
		}
		if id := r.GetSourceVolumeId(); id == "" || named(id, s.SourceID()) {
			meant = append(meant, s)
		}
	}
	page, next, err := request.Paginate(meant, func(s pool.Snapshot) string { return s.Name }, r)
	if err != nil {
		return nil, err
	}
	res := &csi.ListSnapshotsResponse{NextToken: next}
	for _, s := range page {
		res.Entries = append(res.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: d.shown(s, r.GetSourceVolumeId())})
	}
	return res, nil
}

// named reports whether an id names the object. An id without a place names the object in any
// place.
func named(id string, is pool.ID) bool {
	of, ok := pool.ParseID(id)
	return ok && of.Name == is.Name && !of.Elsewhere(is.Zone)
}

// --- the source of a copy ------------------------------------------------------------------------

// origin returns the id of a new volume's source. The name in it is empty if the volume is not a
// copy.
func origin(s *csi.VolumeContentSource) (of pool.ID, err error) {
	if s == nil {
		return of, nil
	}
	what, id := "snapshot", s.GetSnapshot().GetSnapshotId()
	if s.GetSnapshot() == nil {
		what, id = "volume", s.GetVolume().GetVolumeId()
	}
	if id == "" {
		return of, errkind.New(errkind.Invalid, "the content source names neither a snapshot nor a volume")
	}
	of, ok := pool.ParseID(id)
	if !ok || pool.IsSnapshot(of.Name) != (what == "snapshot") {
		return of, errkind.New(errkind.NotFound, "there is no %s %q to copy", what, id)
	}
	return of, nil
}

func (d *Controller) source(ctx context.Context, of pool.ID) (pool.Volume, error) {
	if !pool.IsSnapshot(of.Name) {
		return d.volumes.Whole(ctx, of.String())
	}
	s, err := d.findSnapshot(ctx, of)
	return s.Volume(), err
}

// elsewhere returns the error for a source that this node does not have. If the id names another
// zone, the error makes the scheduler try other nodes. If this node has no zone, the driver does
// not know whether the source exists.
func (d *Controller) elsewhere(ctx context.Context, of pool.ID, why error) error {
	here, err := d.zone.Place(ctx, of)
	switch {
	case err != nil:
		return err
	case of.Elsewhere(here) && !d.config.Gone(of):
		return errkind.Wrap(errkind.NoSpace, why, "node %s has another zone than the source of the copy", d.config.NodeID)
	}
	return why
}

// clone copies the source of a request to a new volume. The copy keeps the owner, mode and lease of
// the source.
func (d *Controller) clone(ctx context.Context, spec pool.Spec, of pool.ID, r *csi.CapacityRange) (pool.Volume, error) {
	source, err := d.source(ctx, of)
	if errkind.Is(err, errkind.NotFound) {
		err = d.elsewhere(ctx, of, err)
	}
	if err != nil {
		return source, err
	}
	if spec.Size, err = request.Size(r, source.Size); err != nil {
		return source, err
	}
	if spec.Size < source.Size {
		return source, errkind.New(errkind.OutOfRange, "%s has %d bytes; a copy of it cannot have %d", source.Name, source.Size, spec.Size)
	}
	if err := grows(spec.MaxSize, spec.Size, spec.Reserve); err != nil {
		return source, err
	}
	info, err := d.zone.Info(ctx, source)
	if err != nil {
		return source, err
	}
	if most := max(spec.Size+spec.Reserve, spec.MaxSize); info.MaxSize < most {
		return source, errkind.New(errkind.OutOfRange, "%s and its copies can grow to %d bytes; the request needs %d bytes", source.Name, info.MaxSize, most)
	}
	if info.HostSplice != spec.HostSplice {
		return source, errkind.New(errkind.Invalid, "%s has another hostMode, which a copy of it shares: use a class with the same hostMode", source.Name)
	}
	if info.DataAtomic() != spec.DataAtomic {
		return source, errkind.New(errkind.Invalid, "%s has another dataMode, which a copy of it shares: use a class with the same dataMode", source.Name)
	}
	return d.zone.Clone(ctx, spec, source)
}
