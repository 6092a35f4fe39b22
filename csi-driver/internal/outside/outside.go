// SPDX-License-Identifier: Apache-2.0

// Package outside is a zone whose snapshots may also be in a folder of the node: on a disk, or on a
// file system that an operator has mounted. There they take only the space that the volume uses.
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

// Folder is a folder that only this process changes.
type Folder struct {
	folder folder.Folder
	lock   *os.File
	id     string
}

func nothingMore(string) bool { return false }

// Open waits until no other process has the folder, and removes half-finished files.
func Open(ctx context.Context, dir, node string) (*Folder, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("folder of snapshots: %q is not an absolute path", dir)
	}
	// The driver can be ended while the folder does not answer.
	return during(ctx, make(chan struct{}, 1), readLimit, func() (*Folder, error) {
		f, lock, err := folder.Open(ctx, folder.Place{Dir: dir, Lock: lockName, Node: node, Left: nothingMore})
		if err != nil {
			return nil, fmt.Errorf("folder of snapshots: %w", err)
		}
		return &Folder{folder: f, lock: lock, id: pool.Identity(pool.Folder, f.Own)}, nil
	})
}

// Tools keep the folder locked until the last of them has ended.
func (f *Folder) Tools(t *stargatectl.Tools) *stargatectl.Tools { return t.Holding(f.lock) }

// Close releases the folder for another process.
func (f *Folder) Close() error { return f.lock.Close() }

// Beside is a zone whose snapshots may go there.
func (f *Folder) Beside(z pool.Zone) *Zone {
	return &Zone{
		Zone: z, folder: f.folder, id: f.id, ending: ending,
		reading: make(chan struct{}, 1), changing: make(chan struct{}, changesAtOnce),
	}
}

// Zone is another zone with a folder. It passes on all other methods, so it holds the whole
// interface.
type Zone struct {
	pool.Zone
	folder files
	id     string
	ending time.Duration

	// One element for each reading, and for each change, that has not ended.
	reading, changing chan struct{}
}

// files are the operations of a folder. It may be on a server that does not answer: then the
// operation never ends, and nothing can end it.
type files interface {
	Snapshots() ([]pool.Snapshot, error)
	Take(ctx context.Context, z folder.Source, name string, source pool.Volume) (pool.Snapshot, error)
	Delete(ctx context.Context, name string) error
	Sweep(ctx context.Context, left func(file string) bool) error
}

var _ pool.Zone = (*Zone)(nil)

// Place is the folder for ids that name it, and the zone for all others.
func (z *Zone) Place(ctx context.Context, of pool.ID) (string, error) {
	if of.Zone == z.id {
		return z.id, nil
	}
	return z.Zone.Place(ctx, of)
}

// here is a snapshot in the folder.
func (z *Zone) here(s pool.Snapshot, err error) (pool.Snapshot, error) {
	s.Outside, s.Zone = err == nil, z.id
	return s, err
}

// Snapshots returns the snapshots of the zone and of the folder. If the zone or the folder cannot
// be read, it returns the snapshots of the other with the error.
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
	// Pages of a list continue behind a name, so the whole list is sorted.
	slices.SortFunc(all, func(a, b pool.Snapshot) int { return strings.Compare(a.Name, b.Name) })
	if herr != nil { // callers look at the first kind of failure, and a missing zone (NoZone) is not one
		err = errors.Join(herr, err)
	}
	return all, err
}

const (
	// How long a reading or a deletion may take. A longer deletion goes on without its call.
	readLimit = 10 * time.Second
	// How long a copy may take to clean up when its call has ended: longer than its tool.
	ending = 90 * time.Second
	// Changes at a time, so that those that never end leave programs and threads for the zone.
	changesAtOnce = 4
)

// during does work that may never end, in one of a number of places. It waits for the work until
// ctx is done, and for a while afterwards.
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

// inFolder reads the folder. There is one reading at a time.
func (z *Zone) inFolder(ctx context.Context) ([]pool.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	return during(ctx, z.reading, 0, z.folder.Snapshots)
}

// named is the snapshot of that name in the folder.
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

// change removes files of the folder, if it answers.
func (z *Zone) change(ctx context.Context, work func() error) error {
	if _, err := z.inFolder(ctx); errkind.Is(err, errkind.NoAnswer) {
		return err
	}
	within, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	_, err := during(within, z.changing, 0, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

// Sweep sweeps both.
func (z *Zone) Sweep(ctx context.Context) error {
	err := z.change(ctx, func() error { return z.folder.Sweep(ctx, nothingMore) })
	if err != nil && !errkind.Is(err, errkind.NoAnswer) {
		err = errkind.Wrap(errkind.Internal, err, "folder of snapshots")
	}
	return errors.Join(err, z.Zone.Sweep(ctx)) // callers look at the first kind of failure, and a missing zone (NoZone) is not one
}

// Snapshot looks where the id says. For a name alone it looks in the folder first, which exists
// even without a zone, and then in the zone.
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

// TakeSnapshot copies to the target, or to the folder if the zone has no room and either will do.
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
	// A copy takes as long as its call may take.
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
