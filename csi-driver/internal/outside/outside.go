// SPDX-License-Identifier: Apache-2.0

// Package outside extends a zone by a folder of the node for snapshots: on a disk, or on a file
// system that an operator has mounted. A snapshot in the folder takes only the space that the
// volume uses.
package outside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

const lockName = ".stargate-snapshots"

// Folder is a folder of snapshots that only this process changes.
type Folder struct {
	folder folder.Folder
	lock   *os.File
	id     string
}

func nothingMore(string) bool { return false }

// Open opens the folder. It waits until no other process has the folder open, and removes
// incomplete files.
func Open(ctx context.Context, dir, node string) (*Folder, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("folder of snapshots: %q is not an absolute path", dir)
	}
	// Open returns when ctx ends, even while the folder's server does not answer.
	return during(ctx, make(chan struct{}, 1), readLimit, func() (*Folder, error) {
		f, lock, err := folder.Open(ctx, folder.Place{Dir: dir, Lock: lockName, Node: node, Left: nothingMore})
		if err != nil {
			return nil, fmt.Errorf("folder of snapshots: %w", err)
		}
		return &Folder{folder: f, lock: lock, id: pool.Identity(pool.Folder, f.Own)}, nil
	})
}

// Tools returns a copy of t whose programs keep the folder locked until the last program has ended.
func (f *Folder) Tools(t *stargatectl.Tools) *stargatectl.Tools { return t.Holding(f.lock) }

// Close unlocks the folder for another process.
func (f *Folder) Close() error { return f.lock.Close() }

// Beside returns the zone, extended by this folder for snapshots.
func (f *Folder) Beside(z pool.Zone) *Zone {
	return &Zone{
		Zone: z, folder: f.folder, id: f.id, ending: ending,
		reading: make(chan struct{}, 1), changing: make(chan struct{}, changesAtOnce),
	}
}

// Zone is a zone with a folder for snapshots. It embeds pool.Zone for all methods that do not
// concern snapshots.
type Zone struct {
	pool.Zone
	folder files
	id     string
	ending time.Duration

	// Each channel has one element for each read or change that has not ended.
	reading, changing chan struct{}
}

// files has the operations of a folder. The folder may be on a server that does not answer. An
// operation then never ends, and cannot be cancelled.
type files interface {
	Snapshots() ([]pool.Snapshot, error)
	Take(ctx context.Context, z folder.Source, name string, source pool.Volume) (pool.Snapshot, error)
	Delete(ctx context.Context, name string) error
	Sweep(ctx context.Context, left func(file string) bool) error
}

var _ pool.Zone = (*Zone)(nil)

// Place returns the folder's identity for ids that name the folder, and the zone's identity for all
// other ids.
func (z *Zone) Place(ctx context.Context, of pool.ID) (string, error) {
	if of.Zone == z.id {
		return z.id, nil
	}
	return z.Zone.Place(ctx, of)
}

// here marks a snapshot as one in the folder.
func (z *Zone) here(s pool.Snapshot, err error) (pool.Snapshot, error) {
	s.Outside, s.Zone = err == nil, z.id
	return s, err
}

// Snapshots returns the snapshots of the zone and of the folder. If the folder cannot be read, it
// returns the snapshots of the zone with the error, and the reverse.
func (z *Zone) Snapshots(ctx context.Context) ([]pool.Snapshot, error) {
	all, err := z.Zone.Snapshots(ctx)
	here, herr := z.inFolder(ctx)
	if herr != nil && !errkind.Is(herr, errkind.NoAnswer) {
		herr = fmt.Errorf("folder of snapshots: %w", herr)
	}
	for _, s := range here {
		s, _ = z.here(s, nil)
		all = append(all, s)
	}
	// The next page of a list begins after a name, so the complete list must be sorted.
	slices.SortFunc(all, func(a, b pool.Snapshot) int { return strings.Compare(a.Name, b.Name) })
	if herr != nil { // callers check the first kind, and NoZone would count as no failure
		err = errors.Join(herr, err)
	}
	return all, err
}

const (
	// The time limit of a read or a deletion. A longer deletion continues after its call has
	// returned.
	readLimit = 10 * time.Second
	// The time that a copy may take to clean up after its call has ended. It is longer than the
	// time for the copy's tool.
	ending = 90 * time.Second
	// The number of concurrent changes. If they never end, the zone still has programs and
	// threads.
	changesAtOnce = 4
)

// during runs work that may never end. The capacity of places limits the concurrent runs. during
// waits for the work until ctx is done, and for the given time afterwards.
func during[T any](ctx context.Context, places chan struct{}, afterwards time.Duration, work func() (T, error)) (T, error) {
	var is, none T
	var err error
	done := make(chan struct{})
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return none, noAnswer(ctx)
	}
	go func() {
		is, err = work()
		<-places
		close(done)
	}()
	select {
	case <-done:
		return is, err
	case <-ctx.Done():
	}
	select {
	case <-done:
		return is, err
	case <-time.After(afterwards):
		return none, noAnswer(ctx)
	}
}

func noAnswer(ctx context.Context) error {
	return errkind.Wrap(errkind.NoAnswer, ctx.Err(), "folder of snapshots: its server does not answer")
}

// inFolder reads the snapshots in the folder. Only one read runs at a time.
func (z *Zone) inFolder(ctx context.Context) ([]pool.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return during(ctx, z.reading, 0, z.folder.Snapshots)
}

// named returns the snapshot with a name in the folder.
func (z *Zone) named(ctx context.Context, name string) (pool.Snapshot, error) {
	all, err := z.inFolder(ctx)
	if err != nil {
		return pool.Snapshot{}, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return pool.Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q", name)
}

// change runs work that removes files of the folder, if the folder's server answers.
func (z *Zone) change(ctx context.Context, work func() error) error {
	if _, err := z.inFolder(ctx); errkind.Is(err, errkind.NoAnswer) {
		return err
	}
	within, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	_, err := during(within, z.changing, 0, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

// Sweep removes leftovers in the folder and in the zone.
func (z *Zone) Sweep(ctx context.Context) error {
	err := z.change(ctx, func() error { return z.folder.Sweep(ctx, nothingMore) })
	if err != nil && !errkind.Is(err, errkind.NoAnswer) {
		err = errkind.Wrap(errkind.Internal, err, "folder of snapshots")
	}
	return errors.Join(err, z.Zone.Sweep(ctx)) // callers check the first kind, and NoZone would count as no failure
}

// Snapshot searches in the place that the id names. For an id without a place, it searches first in
// the folder, which exists even without a zone, and then in the zone.
func (z *Zone) Snapshot(ctx context.Context, of pool.ID) (pool.Snapshot, error) {
	if of.Elsewhere(z.id) {
		return z.Zone.Snapshot(ctx, of)
	}
	s, err := z.named(ctx, of.Name)
	if of.Zone == "" && errkind.Is(err, errkind.NotFound) {
		return z.Zone.Snapshot(ctx, of)
	}
	return z.here(s, err)
}

// TakeSnapshot copies a volume to the target. If the target allows both places, it uses the folder
// when the zone has no room.
func (z *Zone) TakeSnapshot(ctx context.Context, name string, source pool.Volume, target pool.Target) (pool.Snapshot, error) {
	if target != pool.InFolder {
		s, err := z.Zone.TakeSnapshot(ctx, name, source, pool.InZone)
		if target != pool.Either || !errkind.Is(err, errkind.NoSpace) {
			return s, err
		}
	}
	if _, err := z.inFolder(ctx); errkind.Is(err, errkind.NoAnswer) {
		return pool.Snapshot{}, err
	}
	// A copy has no separate limit. It may take as long as its call.
	return z.here(during(ctx, z.changing, z.ending, func() (pool.Snapshot, error) { return z.folder.Take(ctx, z.Zone, name, source) }))
}

// DeleteSnapshot deletes a snapshot of the zone or of the folder.
func (z *Zone) DeleteSnapshot(ctx context.Context, of pool.ID) error {
	if of.Elsewhere(z.id) {
		return z.Zone.DeleteSnapshot(ctx, of)
	}
	if of.Zone == "" {
		if _, err := z.named(ctx, of.Name); errkind.Is(err, errkind.NotFound) {
			return z.Zone.DeleteSnapshot(ctx, of)
		}
	}
	return z.change(ctx, func() error { return z.folder.Delete(ctx, of.Name) })
}
