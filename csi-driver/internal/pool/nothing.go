// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/stargatectl"
)

// Nothing is the zone of a node without one: it has no volumes, and refuses to make any.
type Nothing struct{}

var _ Zone = Nothing{}

func (Nothing) err() error { return errkind.New(errkind.NoZone, "this node has no zone") }

// Kind is None.
func (Nothing) Kind() Kind { return None }

// Place fails: the object may be in an earlier zone of the node.
func (n Nothing) Place(context.Context, ID) (string, error) { return "", n.err() }

// Status is empty.
func (n Nothing) Status(context.Context) (Status, error) { return Status{}, nil }

// List is empty.
func (Nothing) List(context.Context) ([]Volume, error) { return nil, nil }

// Glances returns none.
func (Nothing) Glances(context.Context) ([]Glance, error) { return nil, nil }

// Get finds none.
func (Nothing) Get(_ context.Context, name string) (Volume, error) {
	return Volume{}, errkind.New(errkind.NotFound, "there is no volume %q: this node has no zone", name)
}

// Activate finds none.
func (n Nothing) Activate(ctx context.Context, name string) (Volume, error) { return n.Get(ctx, name) }

// Create is refused.
func (n Nothing) Create(context.Context, Spec) (Volume, error) { return Volume{}, n.err() }

// Clone is refused.
func (n Nothing) Clone(context.Context, Spec, Volume) (Volume, error) { return Volume{}, n.err() }

// Snapshots are none.
func (Nothing) Snapshots(context.Context) ([]Snapshot, error) { return nil, nil }

// Snapshot finds none.
func (Nothing) Snapshot(_ context.Context, of ID) (Snapshot, error) {
	return Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q: this node has no zone", of.Name)
}

// TakeSnapshot is refused.
func (n Nothing) TakeSnapshot(context.Context, string, Volume, Target) (Snapshot, error) {
	return Snapshot{}, n.err()
}

// CopyOut is refused.
func (n Nothing) CopyOut(context.Context, Volume, string) error { return n.err() }

// DeleteSnapshot is refused, as Delete is.
func (n Nothing) DeleteSnapshot(context.Context, ID) error { return n.err() }

// Delete is refused: the bytes in an earlier zone of the node would stay, without any record of
// them.
func (n Nothing) Delete(context.Context, string) error { return n.err() }

// Grow finds none.
func (n Nothing) Grow(ctx context.Context, name string, _ int64) (Volume, error) {
	return n.Get(ctx, name)
}

// Info is refused.
func (n Nothing) Info(context.Context, Volume) (stargatectl.Info, error) {
	return stargatectl.Info{}, n.err()
}

// Space is refused.
func (n Nothing) Space(context.Context, Volume) (stargatectl.Space, error) {
	return stargatectl.Space{}, n.err()
}

// Systems is refused.
func (n Nothing) Systems(context.Context, Volume) ([]stargatectl.System, error) { return nil, n.err() }

// Taken is refused.
func (n Nothing) Taken(context.Context, Volume) (int, error) { return 0, n.err() }

// Ended is refused.
func (n Nothing) Ended(context.Context, Volume, string) ([]string, error) { return nil, n.err() }

// Sweep finds nothing.
func (Nothing) Sweep(context.Context) error { return nil }

// Strays are none.
func (Nothing) Strays(context.Context) ([]string, error) { return nil, nil }
