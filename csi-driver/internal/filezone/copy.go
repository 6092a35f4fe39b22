// SPDX-License-Identifier: Apache-2.0

package filezone

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/step"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// A copy is made under a name that no other volume or snapshot has while it is made; the tool itself
// makes it under a further one, which is left if it is ended.
func (z *Zone) copying(name string) (file, part string) {
	file = z.file(making, name+of)
	return file, file + ".part"
}

// --- snapshots ---------------------------------------------------------------------------------

func (z *Zone) snapshotPath(name, source string) string {
	return filepath.Join(z.config.Dir, name+of+source+snapshotSuffix)
}

func snapshotName(file string) (name, source string, ok bool) {
	both, ok := strings.CutSuffix(file, snapshotSuffix)
	name, source, two := strings.Cut(both, of)
	return name, source, ok && two && zone.ValidName(name) && zone.ValidName(source)
}

// Snapshots looks at all.
func (z *Zone) Snapshots(context.Context) ([]zone.Snapshot, error) {
	entries, err := os.ReadDir(z.config.Dir)
	if err != nil {
		return nil, fault.Wrap(fault.NoZone, err, "zone of files")
	}
	var all []zone.Snapshot
	for _, e := range entries {
		name, source, ok := snapshotName(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "snapshot %s", name)
		}
		all = append(all, zone.Snapshot{
			Name: name, Source: source, Path: z.snapshotPath(name, source), Size: st.Size(), Created: st.ModTime(),
		})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// Snapshot looks at one.
func (z *Zone) Snapshot(ctx context.Context, name string) (zone.Snapshot, error) {
	all, err := z.Snapshots(ctx)
	if err != nil {
		return zone.Snapshot{}, err
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return zone.Snapshot{}, fault.New(fault.NotFound, "there is no snapshot %q", name)
}

// TakeSnapshot has the tool copy a volume beside those who use it.
func (z *Zone) TakeSnapshot(ctx context.Context, name string, source zone.Volume) (zone.Snapshot, error) {
	file, part := z.copying(name)
	err := z.roomFor(ctx, source)
	if err == nil {
		step.Reached(ctx, "file: snapshot begun")
		_, err = z.tools.Run(ctx, tools.Ctl, "-j", "snapshot", source.Path, file)
	}
	if err == nil {
		step.Reached(ctx, "file: snapshot copied")
		err = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, z.snapshotPath(name, source.Name), unix.RENAME_NOREPLACE)
	}
	if err == nil {
		step.Reached(ctx, "file: snapshot named")
		err = z.sync()
	}
	if err != nil {
		return zone.Snapshot{}, z.notCopied(errors.Join(err, removeAll(file, part)), "snapshot "+name)
	}
	return z.Snapshot(ctx, name)
}

// What is not in use is a hole in the copy.
func (z *Zone) roomFor(ctx context.Context, source zone.Volume) error {
	space, err := z.Space(ctx, source)
	if err != nil {
		return err
	}
	room, err := z.free()
	if err != nil {
		return err
	}
	if used := source.Size - space.Free; used > room {
		return fault.New(fault.NoSpace, "%d bytes of volume %s are in use; there is memory for %d", used, source.Name, room)
	}
	return nil
}

// A failure of a known kind stays what it is; the tool's own sentence is passed on.
func (z *Zone) notCopied(err error, what string) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	return fault.Wrap(zone.KindOf(err), err, "%s", what)
}

// DeleteSnapshot takes the name away first, as Delete does.
func (z *Zone) DeleteSnapshot(ctx context.Context, name string) error {
	s, err := z.Snapshot(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	gone := z.file(deleting, name)
	if err := os.Rename(s.Path, gone); err != nil {
		return fault.Wrap(fault.Internal, err, "snapshot %s", name)
	}
	step.Reached(ctx, "file: snapshot without a name")
	if err := os.Remove(gone); err != nil {
		return fault.Wrap(fault.Internal, err, "snapshot %s", name)
	}
	return z.sync()
}

// --- clones ------------------------------------------------------------------------------------

// Clone has the tool copy a volume or a snapshot to an address of its own.
func (z *Zone) Clone(ctx context.Context, spec zone.Spec, source zone.Volume) (zone.Volume, error) {
	if err := z.reserve(ctx, spec); err != nil {
		return zone.Volume{}, err
	}
	defer z.release(spec.Name)
	file, part := z.copying(spec.Name)
	if err := z.clone(ctx, spec, source, file); err != nil {
		return zone.Volume{}, z.notCopied(errors.Join(err, removeAll(file, part)), "volume "+spec.Name)
	}
	return z.Get(ctx, spec.Name)
}

func (z *Zone) clone(ctx context.Context, spec zone.Spec, source zone.Volume, file string) error {
	label := spec.Label
	if label == "" {
		label = spec.Name
	}
	step.Reached(ctx, "file: address of a copy chosen")
	if _, err := z.tools.Run(ctx, tools.Ctl, "-j", "clone", "--base", strconv.FormatInt(z.reserved(spec.Name).Base, 10),
		"--size", strconv.FormatInt(spec.Size, 10), "--label", label, source.Path, file); err != nil {
		return err
	}
	step.Reached(ctx, "file: copied")
	return z.name(ctx, spec, file)
}
