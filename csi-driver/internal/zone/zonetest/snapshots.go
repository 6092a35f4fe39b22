// SPDX-License-Identifier: Apache-2.0

package zonetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/zone"
)

// Snapshots is sorted.
func (z *Zone) Snapshots(ctx context.Context) ([]zone.Snapshot, error) {
	return do(ctx, z, Snapshots, func() ([]zone.Snapshot, error) {
		var all []zone.Snapshot
		for _, name := range slices.Sorted(maps.Keys(z.snapshots)) {
			all = append(all, z.snapshots[name].snapshot)
		}
		return all, nil
	})
}

// Snapshot looks at one.
func (z *Zone) Snapshot(ctx context.Context, of zone.ID) (zone.Snapshot, error) {
	return do(ctx, z, Snapshot, func() (zone.Snapshot, error) {
		s, ok := z.snapshots[of.Name]
		if !ok {
			return zone.Snapshot{}, fault.New(fault.NotFound, "there is no snapshot %q", of.Name)
		}
		return s.snapshot, nil
	})
}

// TakeSnapshot takes as much memory as the volume has.
func (z *Zone) TakeSnapshot(ctx context.Context, name string, source zone.Volume, _ zone.Target) (zone.Snapshot, error) {
	return do(ctx, z, TakeSnapshot, func() (zone.Snapshot, error) {
		v, err := z.findLocked(source.Name)
		if err != nil {
			return zone.Snapshot{}, err
		}
		switch {
		case z.snapshots[name] != nil:
			return zone.Snapshot{}, fault.New(fault.Exists, "there is a snapshot %s already", name)
		case v.State == zone.Damaged:
			return zone.Snapshot{}, damaged(v)
		case z.roomLocked() < v.Size:
			return zone.Snapshot{}, fault.New(fault.NoSpace, "there are %d bytes of memory for a copy of %d", z.roomLocked(), v.Size)
		}
		s := zone.Snapshot{Name: name, Zone: z.config.ID, Source: v.Name, Path: "/memory/" + name, Size: v.Size, Created: time.Now()}
		z.snapshots[name] = &volume{Volume: s.Volume(), info: v.info, used: v.used, snapshot: s}
		return s, nil
	})
}

// CopyOut has no bytes that it could copy.
func (z *Zone) CopyOut(ctx context.Context, source zone.Volume, _ string) error {
	_, err := do(ctx, z, CopyOut, func() (any, error) {
		return nil, fault.New(fault.Unsupported, "volume %s is in no memory from which it could be copied", source.Name)
	})
	return err
}

// DeleteSnapshot deletes one, or none.
func (z *Zone) DeleteSnapshot(ctx context.Context, of zone.ID) error {
	_, err := do(ctx, z, DeleteSnapshot, func() (any, error) {
		delete(z.snapshots, of.Name)
		return nil, nil
	})
	return err
}
