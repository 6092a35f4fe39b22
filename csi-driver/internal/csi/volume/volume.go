// SPDX-License-Identifier: Apache-2.0

// Package volume finds the volumes that requests name. It allows only one call at a time to change
// a volume.
package volume

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
)

// Zone finds and grows volumes. pool.Zone documents the contract of each method.
type Zone interface {
	Get(ctx context.Context, name string) (pool.Volume, error)
	Activate(ctx context.Context, name string) (pool.Volume, error)
	Grow(ctx context.Context, name string, size int64) (pool.Volume, error)
}

// Shower grows the mounts of a volume after the volume has grown.
type Shower interface {
	Grown(ctx context.Context, v pool.Volume) error
}

// Volumes finds and grows this node's volumes.
type Volumes struct {
	zone  Zone
	show  Shower
	calls *calls
}

// New returns Volumes without calls in progress.
func New(z Zone, show Shower) *Volumes { return &Volumes{zone: z, show: show, calls: newCalls()} }

// Begin records a call that changes a volume. It fails with Busy while another call changes the
// volume. Otherwise the caller must call end.
func (all *Volumes) Begin(id, call string) (end func(), err error) { return all.calls.begin(id, call) }

// FindOrMake finds the object of an earlier call, or creates it. When a driver is killed, its tool
// continues, and may finish between these two steps. FindOrMake then returns the tool's object, as
// if it had existed before.
func FindOrMake[T any](find, make func() (T, error)) (T, error) {
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

// Find returns the volume with an id. If the id names another zone, Find ignores a volume of that
// name in this zone.
func (all *Volumes) Find(ctx context.Context, id string) (pool.Volume, error) {
	of, ok := pool.ParseID(id)
	if !ok {
		return pool.Volume{}, errkind.New(errkind.NotFound, "there is no volume %q", id)
	}
	v, err := all.zone.Get(ctx, of.Name)
	if err == nil && of.Elsewhere(v.Zone) {
		return pool.Volume{}, errkind.New(errkind.NotFound, "there is no volume %q: it is in another zone than this node's, %s", id, v.Zone)
	}
	return v, err
}

// Own returns a volume of the driver. It does not find objects of other programs in the zone.
func (all *Volumes) Own(ctx context.Context, id string) (pool.Volume, error) {
	v, err := all.Find(ctx, id)
	if err == nil && v.State == pool.Foreign {
		return v, errkind.New(errkind.NotFound, "there is no volume %q of this driver: another program has created the object of that name in the zone", id)
	}
	return v, err
}

// Active returns a volume with its device. After a boot, it may have to create the device first.
func (all *Volumes) Active(ctx context.Context, id string) (pool.Volume, error) {
	v, err := all.Find(ctx, id)
	if err == nil && v.State == pool.Inactive {
		return all.zone.Activate(ctx, v.Name)
	}
	return v, err
}

// Whole returns a volume, or an error if the volume cannot be used.
func (all *Volumes) Whole(ctx context.Context, id string) (pool.Volume, error) {
	v, err := all.Active(ctx, id)
	if err != nil {
		return v, err
	}
	if !v.State.Whole() {
		return v, errkind.New(errkind.InUse, "volume %s cannot be used: %s", id, v.Why)
	}
	return v, nil
}

// Expand grows a volume and its mounts to the requested size.
func (all *Volumes) Expand(ctx context.Context, id string, r *csi.CapacityRange, call string) (pool.Volume, error) {
	end, err := all.calls.begin(id, call)
	if err != nil {
		return pool.Volume{}, err
	}
	defer end()
	v, err := all.Whole(ctx, id)
	if err != nil || r.GetRequiredBytes() == 0 && r.GetLimitBytes() == 0 {
		return v, err
	}
	n, err := request.Size(r, v.Size)
	if err != nil {
		return v, err
	}
	if r.GetLimitBytes() != 0 && v.Size > r.GetLimitBytes() {
		return v, errkind.New(errkind.OutOfRange, "volume %s has %d bytes; it cannot shrink to %d", id, v.Size, r.GetLimitBytes())
	}
	if n > v.Size {
		if v, err = all.zone.Grow(ctx, v.Name, n); err != nil {
			return v, err
		}
	}
	// This step also completes an earlier call that was interrupted after it had grown the
	// volume.
	if err := all.show.Grown(ctx, v); err != nil {
		return v, err
	}
	failpoint.Reached(ctx, "expand: done")
	return v, nil
}
