// SPDX-License-Identifier: Apache-2.0

package daxzone

import (
	"context"
	"time"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/step"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

func (r volumeRow) snapshot() zone.Snapshot {
	return zone.Snapshot{
		Name: r.Volume, Zone: zone.Identity(zone.DAX, r.ZoneUUID), Source: r.Origin, Path: r.Device, Size: r.Size,
		Created: time.Unix(0, r.Created),
	}
}

// isSnapshot goes by the name where the state says no more than that nobody can read it.
func (r volumeRow) isSnapshot() bool {
	return r.State == zone.Snapshotted || (r.State == zone.Missing || r.State == zone.Scattered) && zone.IsSnapshot(r.Volume)
}

// readable is InUse, as for a volume, of a snapshot that is there and that nobody can read.
func (r volumeRow) readable() error {
	if r.State == zone.Snapshotted {
		return nil
	}
	return fault.New(fault.InUse, "snapshot %s: %s", r.Volume, why(r))
}

// Snapshots has those with stargatectl's tag.
func (z *Zone) Snapshots(ctx context.Context) ([]zone.Snapshot, error) {
	rows, err := z.rows(ctx)
	if err != nil {
		return nil, err
	}
	var all []zone.Snapshot
	for _, r := range rows {
		if r.State == zone.Snapshotted {
			all = append(all, r.snapshot())
		}
	}
	return all, nil
}

// Snapshot has one, with its device there.
func (z *Zone) Snapshot(ctx context.Context, of zone.ID) (zone.Snapshot, error) {
	r, err := z.row(ctx, of.Name)
	if fault.Is(err, fault.NotFound) || err == nil && !r.isSnapshot() {
		return zone.Snapshot{}, fault.New(fault.NotFound, "there is no snapshot %q", of.Name)
	}
	if err == nil {
		err = r.readable()
	}
	if err != nil {
		return zone.Snapshot{}, err
	}
	return r.snapshot(), z.change(ctx, "activate", z.volume(of.Name))
}

// TakeSnapshot has stargatectl cut and wipe, and copy beside those who use the volume.
func (z *Zone) TakeSnapshot(ctx context.Context, name string, source zone.Volume, _ zone.Target) (zone.Snapshot, error) {
	if err := z.change(ctx, "snapshot", z.volume(source.Name), name); err != nil {
		return zone.Snapshot{}, err
	}
	step.Reached(ctx, "dax: snapshot made")
	return z.Snapshot(ctx, zone.ID{Name: name})
}

// CopyOut has stargatectl copy beside those who use the volume.
func (z *Zone) CopyOut(ctx context.Context, source zone.Volume, file string) error {
	return z.change(ctx, "snapshot", z.volume(source.Name), file)
}

// DeleteSnapshot has stargatectl wipe and remove it. What else has such a name is left alone; one that cannot be
// wiped now is not forgotten.
func (z *Zone) DeleteSnapshot(ctx context.Context, of zone.ID) error {
	r, err := z.row(ctx, of.Name)
	if fault.Is(err, fault.NotFound) || err == nil && !r.isSnapshot() && r.State != zone.Unfinished {
		return nil
	}
	if err == nil && r.State != zone.Unfinished {
		err = r.readable()
	}
	if err != nil {
		return err
	}
	return z.remove(ctx, of.Name)
}

// Clone has stargatectl cut, wipe, copy, and give it an address and a UUID of its own.
func (z *Zone) Clone(ctx context.Context, spec zone.Spec, source zone.Volume) (zone.Volume, error) {
	from, to := z.volume(source.Name), spec.Name
	if source.Outside {
		from, to = source.Path, z.volume(spec.Name)
	}
	args := []string{"clone", from, to, "--size", decimal(spec.Size), "--align", decimal(spec.Align)}
	args = append(args, reserve(spec)...)
	if spec.Label != "" {
		args = append(args, "--label", spec.Label)
	}
	if err := z.makes(ctx, args...); err != nil {
		if tools.ReasonOf(err) == tools.NotFound {
			return zone.Volume{}, fault.Wrap(fault.NotFound, err, "source")
		}
		return zone.Volume{}, err
	}
	step.Reached(ctx, "dax: copied")
	return z.Get(ctx, spec.Name)
}
