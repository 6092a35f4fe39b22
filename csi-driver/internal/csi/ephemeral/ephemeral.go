// SPDX-License-Identifier: Apache-2.0

// Package ephemeral creates and deletes inline (ephemeral) volumes.
//
// An inline volume is part of a pod: the driver creates it when the pod starts, and deletes it with
// the pod. The volume's name shows that it is inline, so the driver stores no state. The volume's
// id shows this, too: kubelet's ids for inline volumes ("csi-" and 64 digits) are longer than any
// name in the zone. The id of a claim's volume contains a name in the zone.
package ephemeral

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/csi/volume"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// Zone has the methods of the node's zone that inline volumes need. pool.Zone documents the
// contract of each method.
type Zone interface {
	Kind() pool.Kind
	Status(ctx context.Context) (pool.Status, error)
	Get(ctx context.Context, name string) (pool.Volume, error)
	Create(ctx context.Context, spec pool.Spec) (pool.Volume, error)
	Delete(ctx context.Context, name string) error
}

// Shower mounts a volume for a pod.
type Shower interface {
	Direct(ctx context.Context, v pool.Volume, target string, o publish.Options) error
	Withdraw(ctx context.Context, path string) error
}

// Volumes creates and deletes the inline volumes of this node.
type Volumes struct {
	config  request.Config
	zone    Zone
	show    Shower
	volumes *volume.Volumes
}

// New returns Volumes. The node's other services use the same volume.Volumes.
func New(config request.Config, z Zone, show Shower, volumes *volume.Volumes) *Volumes {
	return &Volumes{config: config, zone: z, show: show, volumes: volumes}
}

// Inline reports whether a volume context belongs to an inline volume.
func Inline(context map[string]string) bool { return context[request.ContextInline] == "true" }

// isClaims reports whether an id belongs to a claim's volume.
func isClaims(id string) bool {
	_, ok := pool.ParseID(id)
	return ok
}

// Publish creates a pod's inline volume, and mounts it at target.
func (d *Volumes) Publish(ctx context.Context, r *csi.NodePublishVolumeRequest, target string) (*csi.NodePublishVolumeResponse, error) {
	if isClaims(r.GetVolumeId()) {
		return nil, errkind.New(errkind.Invalid, "%q is the id of a claim's volume, and not of an inline one", r.GetVolumeId())
	}
	if d.config.NoInline {
		return nil, errkind.New(errkind.InUse, "the operator allows only inline volumes that name a data set (attribute dataset); for others, set inlineVolumes.enabled")
	}
	o, err := d.config.MountOptions(r.GetVolumeCapability(), nil)
	if err != nil {
		return nil, err
	}
	s, err := d.config.InlineSettings(r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	if err := s.Allowed(d.config); err != nil {
		return nil, err
	}
	m, err := request.HostMode(s.Context(pool.Volume{}))
	if err != nil {
		return nil, err
	}
	o.Flags, o.ReadOnly = append(o.Flags, m...), o.ReadOnly || r.GetReadonly()
	n, err := request.Size(&csi.CapacityRange{RequiredBytes: s.Size}, d.config.DefaultSize)
	if err != nil {
		return nil, err
	}
	end, err := d.volumes.Begin(r.GetVolumeId(), "NodePublishVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	// The directory is created before the volume, and only on a node with a zone. So if the
	// directory does not exist, no volume was created.
	if _, err := d.zone.Status(ctx); err != nil {
		return nil, err
	}
	if d.zone.Kind() == pool.None {
		return nil, errkind.New(errkind.NoZone, "node %s has no zone", d.config.NodeID)
	}
	if err := mounts.MakeDir(target); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "publish: directory made")
	if err := d.makeAndShow(ctx, s.Spec(pool.EphemeralName(r.GetVolumeId()), n), target, o); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// makeAndShow creates the volume, or finds the volume of an earlier call, and mounts it. kubelet
// does not repeat the call after a final error. So a call that fails removes the volume that it
// created. It does not remove the volume of an earlier call, because a pod may have it. The code
// Aborted then makes kubelet unpublish the volume later.
func (d *Volumes) makeAndShow(ctx context.Context, spec pool.Spec, target string, o publish.Options) error {
	fresh := false
	v, err := volume.FindOrMake(func() (pool.Volume, error) { return d.volumes.Active(ctx, spec.Name) }, func() (pool.Volume, error) {
		fresh = true
		return d.zone.Create(ctx, spec)
	})
	if err == nil {
		err = d.show.Direct(ctx, v, target, o)
	}
	if err == nil {
		return nil
	}
	left := errkind.New(errkind.Exists, "the volume existed before this call")
	if fresh {
		left = d.remove(ctx, spec.Name, target)
	}
	if left == nil || comesAgain[errkind.KindOf(err)] {
		return err
	}
	return errkind.Wrap(errkind.Busy, err, "an inline volume is left (%v)", left)
}

// comesAgain has the kinds of failure after which kubelet repeats the call.
var comesAgain = map[errkind.Kind]bool{errkind.Busy: true, errkind.NoSpace: true, errkind.NoZone: true, errkind.NoAnswer: true}

func (d *Volumes) remove(ctx context.Context, name, target string) error {
	if err := d.show.Withdraw(ctx, target); err != nil {
		return err
	}
	if err := d.zone.Delete(ctx, name); err != nil {
		return err
	}
	return mounts.RemoveDir(target)
}

// Delete deletes a pod's inline volume. It ignores a claim's volume, so that the claim's pod can
// end while the zone does not answer. On a node that never had a zone, the driver created no target
// directory, and the pod can end. If the directory exists and the zone does not answer, the volume
// may exist, so Delete fails and kubelet repeats the call. The same happens while a VM of this pod
// still uses the volume.
func (d *Volumes) Delete(ctx context.Context, id, target string) error {
	if isClaims(id) {
		return nil
	}
	err := d.zone.Delete(ctx, pool.EphemeralName(id))
	if (errkind.Is(err, errkind.NoZone) || errkind.Is(err, errkind.NoAnswer)) && !mounts.DirThere(target) {
		return nil
	}
	if errkind.Is(err, errkind.InUse) {
		return errkind.Wrap(errkind.Busy, err, "inline volume")
	}
	return err
}

// Get returns a claim's volume or an inline volume.
func (d *Volumes) Get(ctx context.Context, id string) (pool.Volume, error) {
	v, err := d.volumes.Find(ctx, id)
	if !errkind.Is(err, errkind.NotFound) {
		return v, err
	}
	if e, eerr := d.zone.Get(ctx, pool.EphemeralName(id)); !errkind.Is(eerr, errkind.NotFound) {
		return e, eerr
	}
	return v, err
}
