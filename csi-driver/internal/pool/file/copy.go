// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"strconv"

	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// --- snapshots ---------------------------------------------------------------------------------

// Snapshots returns all snapshots of the zone.
func (z *Zone) Snapshots(context.Context) ([]pool.Snapshot, error) {
	all, err := z.folder.Snapshots()
	for i := range all {
		all[i].Zone = z.id
	}
	return all, err
}

// Snapshot returns one snapshot.
func (z *Zone) Snapshot(_ context.Context, of pool.ID) (pool.Snapshot, error) {
	return z.here(z.folder.Snapshot(of.Name))
}

// TakeSnapshot runs the tool, which copies a volume while systems use it.
func (z *Zone) TakeSnapshot(ctx context.Context, name string, source pool.Volume, _ pool.Target) (pool.Snapshot, error) {
	return z.here(z.folder.Take(ctx, z, name, source))
}

func (z *Zone) here(s pool.Snapshot, err error) (pool.Snapshot, error) {
	s.Zone = z.id
	return s, err
}

// CopyOut runs the tool, which copies a volume while systems use it.
func (z *Zone) CopyOut(ctx context.Context, source pool.Volume, file string) error {
	return z.ask(ctx, source, "-j", "snapshot", source.Path, file)
}

// DeleteSnapshot deletes a snapshot. Like Delete, it renames the file first.
func (z *Zone) DeleteSnapshot(ctx context.Context, of pool.ID) error {
	return z.folder.Delete(ctx, of.Name)
}

// --- clones ------------------------------------------------------------------------------------

// Clone runs the tool, which copies a volume or a snapshot to a new volume with its own address.
func (z *Zone) Clone(ctx context.Context, spec pool.Spec, source pool.Volume) (pool.Volume, error) {
	return z.added(ctx, spec, func() error {
		file, part := z.folder.Copying(spec.Name)
		if err := z.clone(ctx, spec, source, file); err != nil {
			return folder.NotCopied(err, folder.Remove(file, part), "volume "+spec.Name)
		}
		return nil
	})
}

func (z *Zone) clone(ctx context.Context, spec pool.Spec, source pool.Volume, file string) error {
	label := spec.Label
	if label == "" {
		label = spec.Name
	}
	failpoint.Reached(ctx, "file: address of a copy chosen")
	if _, err := z.tools.Run(ctx, stargatectl.Ctl, "-j", "clone", "--base", strconv.FormatInt(z.reserved(spec.Name).Base, 10),
		"--size", strconv.FormatInt(spec.Size, 10), "--label", label, source.Path, file); err != nil {
		return err
	}
	failpoint.Reached(ctx, "file: copied")
	return z.name(ctx, spec, file)
}
