// SPDX-License-Identifier: Apache-2.0

package dax

import (
	"context"
	"time"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

func (r volumeRow) snapshot() pool.Snapshot {
	return pool.Snapshot{
		Name: r.Volume, Zone: pool.Identity(pool.DAX, r.ZoneUUID), Source: r.Origin, Path: r.Device, Size: r.Size,
		Created: time.Unix(0, r.Created),
	}
}

// isSnapshot reports whether a row is a snapshot. If the volume is unreadable, its state does not
// show this, so the name decides.
func (r volumeRow) isSnapshot() bool {
	return r.State == pool.Snapshotted || (r.State == pool.Missing || r.State == pool.Scattered) && pool.IsSnapshot(r.Volume)
}

// readable fails with InUse if the snapshot exists but cannot be read. A volume in this state fails
// in the same way.
func (r volumeRow) readable() error {
	if r.State == pool.Snapshotted {
		return nil
	}
	return errkind.New(errkind.InUse, "snapshot %s: %s", r.Volume, why(r))
}

// Snapshots returns the snapshots, which have stargatectl's tag in LVM.
func (z *Zone) Snapshots(ctx context.Context) ([]pool.Snapshot, error) {
	rows, err := z.rows(ctx)
	if err != nil {
		return nil, err
	}
	var all []pool.Snapshot
	for _, r := range rows {
		if r.State == pool.Snapshotted {
			all = append(all, r.snapshot())
		}
	}
	return all, nil
}

// Snapshot returns one snapshot, with its device.
func (z *Zone) Snapshot(ctx context.Context, of pool.ID) (pool.Snapshot, error) {
	r, err := z.row(ctx, of.Name)
	if errkind.Is(err, errkind.NotFound) || err == nil && !r.isSnapshot() {
		return pool.Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q", of.Name)
	}
	if err == nil {
		err = r.readable()
	}
	if err != nil {
		return pool.Snapshot{}, err
	}
	return r.snapshot(), z.change(ctx, "activate", z.volume(of.Name))
}

// TakeSnapshot runs stargatectl, which allocates and wipes memory, and copies the volume while
// systems use it.
func (z *Zone) TakeSnapshot(ctx context.Context, name string, source pool.Volume, _ pool.Target) (pool.Snapshot, error) {
	if err := z.change(ctx, "snapshot", z.volume(source.Name), name); err != nil {
		return pool.Snapshot{}, err
	}
	failpoint.Reached(ctx, "dax: snapshot made")
	return z.Snapshot(ctx, pool.ID{Name: name})
}

// CopyOut runs stargatectl, which copies the volume while systems use it.
func (z *Zone) CopyOut(ctx context.Context, source pool.Volume, file string) error {
	return z.change(ctx, "snapshot", z.volume(source.Name), file)
}

// DeleteSnapshot runs stargatectl, which wipes and removes a snapshot. It ignores other objects of
// such a name. It fails if the snapshot cannot be wiped now.
func (z *Zone) DeleteSnapshot(ctx context.Context, of pool.ID) error {
	r, err := z.row(ctx, of.Name)
	if errkind.Is(err, errkind.NotFound) || err == nil && !r.isSnapshot() && r.State != pool.Unfinished {
		return nil
	}
	if err == nil && r.State != pool.Unfinished {
		err = r.readable()
	}
	if err != nil {
		return err
	}
	return z.remove(ctx, of.Name)
}

// Clone runs stargatectl, which allocates and wipes memory, copies the source, and sets the copy's
// own address and UUID.
func (z *Zone) Clone(ctx context.Context, spec pool.Spec, source pool.Volume) (pool.Volume, error) {
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
		if stargatectl.ReasonOf(err) == stargatectl.NotFound {
			return pool.Volume{}, errkind.Wrap(errkind.NotFound, err, "source")
		}
		return pool.Volume{}, err
	}
	failpoint.Reached(ctx, "dax: copied")
	return z.Get(ctx, spec.Name)
}
