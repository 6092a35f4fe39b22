// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"context"
	"maps"
	"slices"
	"time"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// Snapshots returns all snapshots, sorted by name.
func (z *Zone) Snapshots(ctx context.Context) ([]pool.Snapshot, error) {
	return do(ctx, z, Snapshots, func() ([]pool.Snapshot, error) {
		var all []pool.Snapshot
		for _, name := range slices.Sorted(maps.Keys(z.snapshots)) {
			all = append(all, z.snapshots[name].snapshot)
		}
		return all, nil
	})
}

// Snapshot returns one snapshot.
func (z *Zone) Snapshot(ctx context.Context, of pool.ID) (pool.Snapshot, error) {
	return do(ctx, z, Snapshot, func() (pool.Snapshot, error) {
		s, ok := z.snapshots[of.Name]
		if !ok {
			return pool.Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q", of.Name)
		}
		return s.snapshot, nil
	})
}

// TakeSnapshot takes a snapshot, which needs as much memory as the volume.
func (z *Zone) TakeSnapshot(ctx context.Context, name string, source pool.Volume, _ pool.Target) (pool.Snapshot, error) {
	return do(ctx, z, TakeSnapshot, func() (pool.Snapshot, error) {
		v, err := z.findLocked(source.Name)
		if err != nil {
			return pool.Snapshot{}, err
		}
		switch {
		case z.snapshots[name] != nil:
			return pool.Snapshot{}, errkind.New(errkind.Exists, "there is a snapshot %s already", name)
		case v.State == pool.Damaged:
			return pool.Snapshot{}, damaged(v)
		case z.roomLocked() < v.Size:
			return pool.Snapshot{}, errkind.New(errkind.NoSpace, "a copy needs %d bytes of memory, and %d are free", v.Size, z.roomLocked())
		}
		s := pool.Snapshot{Name: name, Zone: z.config.ID, Source: v.Name, Path: "/memory/" + name, Size: v.Size, Created: time.Now()}
		z.snapshots[name] = &volume{Volume: s.Volume(), info: v.info, used: v.used, snapshot: s}
		return s, nil
	})
}

// CopyOut fails, because this zone stores no bytes.
func (z *Zone) CopyOut(ctx context.Context, source pool.Volume, _ string) error {
	_, err := do(ctx, z, CopyOut, func() (any, error) {
		return nil, errkind.New(errkind.Unsupported, "volume %s cannot be copied: this zone stores no bytes", source.Name)
	})
	return err
}

// DeleteSnapshot deletes a snapshot, if it exists.
func (z *Zone) DeleteSnapshot(ctx context.Context, of pool.ID) error {
	_, err := do(ctx, z, DeleteSnapshot, func() (any, error) {
		delete(z.snapshots, of.Name)
		return nil, nil
	})
	return err
}
