// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/stargatectl"
)

// Nothing replaces the zone on a node that has none. It has no volumes, and refuses to create
// volumes.
type Nothing struct{}

var _ Zone = Nothing{}

func (Nothing) err() error { return errkind.New(errkind.NoZone, "this node has no zone") }

// Kind returns None.
func (Nothing) Kind() Kind { return None }

// Place fails, because the object may be in an earlier zone of the node.
func (n Nothing) Place(context.Context, ID) (string, error) { return "", n.err() }

// Status returns an empty status.
func (n Nothing) Status(context.Context) (Status, error) { return Status{}, nil }

// List returns no volumes.
func (Nothing) List(context.Context) ([]Volume, error) { return nil, nil }

// Glances returns no volumes.
func (Nothing) Glances(context.Context) ([]Glance, error) { return nil, nil }

// Get fails with NotFound.
func (Nothing) Get(_ context.Context, name string) (Volume, error) {
	return Volume{}, errkind.New(errkind.NotFound, "there is no volume %q: this node has no zone", name)
}

// Activate fails with NotFound.
func (n Nothing) Activate(ctx context.Context, name string) (Volume, error) { return n.Get(ctx, name) }

// Create fails with NoZone.
func (n Nothing) Create(context.Context, Spec) (Volume, error) { return Volume{}, n.err() }

// Clone fails with NoZone.
func (n Nothing) Clone(context.Context, Spec, Volume) (Volume, error) { return Volume{}, n.err() }

// Snapshots returns no snapshots.
func (Nothing) Snapshots(context.Context) ([]Snapshot, error) { return nil, nil }

// Snapshot fails with NotFound.
func (Nothing) Snapshot(_ context.Context, of ID) (Snapshot, error) {
	return Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q: this node has no zone", of.Name)
}

// TakeSnapshot fails with NoZone.
func (n Nothing) TakeSnapshot(context.Context, string, Volume, Target) (Snapshot, error) {
	return Snapshot{}, n.err()
}

// CopyOut fails with NoZone.
func (n Nothing) CopyOut(context.Context, Volume, string) error { return n.err() }

// DeleteSnapshot fails, for the same reason as Delete.
func (n Nothing) DeleteSnapshot(context.Context, ID) error { return n.err() }

// Delete fails. Otherwise the volume's bytes in an earlier zone of the node could remain without
// any record of them.
func (n Nothing) Delete(context.Context, string) error { return n.err() }

// Grow fails with NotFound.
func (n Nothing) Grow(ctx context.Context, name string, _ int64) (Volume, error) {
	return n.Get(ctx, name)
}

// Info fails with NoZone.
func (n Nothing) Info(context.Context, Volume) (stargatectl.Info, error) {
	return stargatectl.Info{}, n.err()
}

// Space fails with NoZone.
func (n Nothing) Space(context.Context, Volume) (stargatectl.Space, error) {
	return stargatectl.Space{}, n.err()
}

// Systems fails with NoZone.
func (n Nothing) Systems(context.Context, Volume) ([]stargatectl.System, error) { return nil, n.err() }

// Taken fails with NoZone.
func (n Nothing) Taken(context.Context, Volume) (int, error) { return 0, n.err() }

// Ended fails with NoZone.
func (n Nothing) Ended(context.Context, Volume, string) ([]string, error) { return nil, n.err() }

// Sweep does nothing.
func (Nothing) Sweep(context.Context) error { return nil }

// Strays returns no objects.
func (Nothing) Strays(context.Context) ([]string, error) { return nil, nil }
