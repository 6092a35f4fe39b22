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
	f, lock, err := folder.Open(ctx, folder.Place{Dir: dir, Lock: lockName, Node: node, Left: nothingMore})
	if err != nil {
		return nil, fmt.Errorf("folder of snapshots: %w", err)
	}
	return &Folder{folder: f, lock: lock, id: pool.Identity(pool.Folder, f.Own)}, nil
}

// Tools keep the folder locked until the last of them has ended.
func (f *Folder) Tools(t *stargatectl.Tools) *stargatectl.Tools { return t.Holding(f.lock) }

// Close releases the folder for another process.
func (f *Folder) Close() error { return f.lock.Close() }

// Beside is a zone whose snapshots may go there.
func (f *Folder) Beside(z pool.Zone) *Zone {
	return &Zone{Zone: z, folder: f.folder, id: f.id, read: f.folder.Snapshots, reading: make(chan struct{}, 1)}
}

// Zone is another zone with a folder. It passes on all other methods, so it holds the whole
// interface.
type Zone struct {
	pool.Zone
	folder folder.Folder
	id     string

	read    func() ([]pool.Snapshot, error)
	reading chan struct{} // full while somebody reads
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
	if herr != nil {
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

// readLimit is how long a reading of the folder may take.
const readLimit = 10 * time.Second

// inFolder reads the folder, which may be on a server that does not answer: then the reading never
// ends. There is one reading at a time.
func (z *Zone) inFolder(ctx context.Context) ([]pool.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	var all []pool.Snapshot
	var err error
	done := make(chan struct{})
	select {
	case z.reading <- struct{}{}:
		go func() {
			all, err = z.read()
			<-z.reading
			close(done)
		}()
	case <-ctx.Done():
		return nil, errkind.Wrap(errkind.NoAnswer, ctx.Err(), "it does not answer")
	}
	select {
	case <-done:
		return all, err
	case <-ctx.Done():
		return nil, errkind.Wrap(errkind.NoAnswer, ctx.Err(), "it does not answer")
	}
}

// Sweep sweeps both.
func (z *Zone) Sweep(ctx context.Context) error {
	err := z.folder.Sweep(ctx, nothingMore)
	if err != nil {
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
	s, err := z.folder.Snapshot(of.Name)
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
	return z.here(z.folder.Take(ctx, z.Zone, name, source))
}

// DeleteSnapshot deletes a snapshot of the zone or of the folder.
func (z *Zone) DeleteSnapshot(ctx context.Context, of pool.ID) error {
	if of.Elsewhere(z.id) {
		return z.Zone.DeleteSnapshot(ctx, of)
	}
	if of.Zone == "" {
		if _, err := z.folder.Snapshot(of.Name); errkind.Is(err, errkind.NotFound) {
			return z.Zone.DeleteSnapshot(ctx, of)
		}
	}
	return z.folder.Delete(ctx, of.Name)
}
