// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Create creates a file under a temporary name, and renames it when it is complete.
func (z *Zone) Create(ctx context.Context, spec pool.Spec) (pool.Volume, error) {
	return z.added(ctx, spec, func() error {
		temporary := z.folder.Path(folder.Making, spec.Name)
		if err := z.make(ctx, spec, temporary); err != nil {
			// A failed mkfs leaves no file. A later failure leaves the temporary file.
			return folder.NotCleaned(err, folder.Remove(temporary))
		}
		return nil
	})
}

// added makes a volume by add. No other volume gets its addresses meanwhile.
func (z *Zone) added(ctx context.Context, spec pool.Spec, add func() error) (pool.Volume, error) {
	if err := z.reserve(ctx, spec); err != nil {
		return pool.Volume{}, err
	}
	defer z.release(spec.Name)
	end, err := z.folder.Begin(spec.Name)
	if err != nil {
		return pool.Volume{}, err
	}
	defer end()
	if err := add(); err != nil {
		return pool.Volume{}, err
	}
	return z.Get(ctx, spec.Name)
}

func (z *Zone) make(ctx context.Context, spec pool.Spec, temporary string) error {
	args := append([]string{"--quiet", "--size", strconv.FormatInt(spec.Size, 10), "--phys", strconv.FormatInt(z.reserved(spec.Name).Base, 10)}, spec.Options()...)
	if spec.Label == "" {
		args = append(args, "--label", spec.Name)
	}
	failpoint.Reached(ctx, "file: address chosen")
	if _, err := z.tools.Run(ctx, stargatectl.Mkfs, append(args, temporary)...); err != nil {
		return z.notMade(err, spec)
	}
	failpoint.Reached(ctx, "file: formatted")
	return z.name(ctx, spec, temporary)
}

// name sets the owner, the place and the name of a complete volume.
func (z *Zone) name(ctx context.Context, spec pool.Spec, temporary string) error {
	// Without this check, the place of an existing volume would be overwritten.
	if had, err := z.stat(spec.Name); had != nil || err != nil {
		if err == nil {
			err = errkind.New(errkind.Exists, "there is a volume %s already", spec.Name)
		}
		return err
	}
	if err := z.lengthen(spec, temporary); err != nil {
		return err
	}
	// A deleted volume of that name may have left a link with its origin.
	link := z.folder.Path(origin, spec.Name)
	err := folder.Remove(link)
	if err == nil && spec.Origin != "" {
		err = os.Symlink(spec.Origin, link)
	}
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", spec.Name)
	}
	// QEMU is not root: the group gives it access to the bytes.
	if err := os.Chown(temporary, 0, z.config.Group); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", spec.Name)
	}
	if err := os.Chmod(temporary, 0o660); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", spec.Name)
	}
	failpoint.Reached(ctx, "file: owned")
	if err := z.put(spec.Name, z.reserved(spec.Name)); err != nil {
		return err
	}
	failpoint.Reached(ctx, "file: placed")
	if err := unix.Renameat2(unix.AT_FDCWD, temporary, unix.AT_FDCWD, z.path(spec.Name), unix.RENAME_NOREPLACE); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", spec.Name)
	}
	failpoint.Reached(ctx, "file: named")
	return z.folder.Sync()
}

// lengthen appends the reserve to a volume. QEMU allocates the complete file when a VM starts, so
// lengthen allocates the reserve's memory now. If the reserve were a hole, the VM could not start
// in a full zone.
func (z *Zone) lengthen(spec pool.Spec, temporary string) error {
	if spec.Reserve == 0 {
		return nil
	}
	f, err := os.OpenFile(temporary, os.O_RDWR, 0)
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", spec.Name)
	}
	defer f.Close()
	err = unix.Fallocate(int(f.Fd()), 0, spec.Size, spec.Reserve)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
		err = f.Truncate(spec.Size + spec.Reserve)
	case errors.Is(err, unix.ENOSPC): // another process has taken the memory
		return errkind.New(errkind.NoSpace, "volume %s: no memory is left for its reserve of %d bytes", spec.Name, spec.Reserve)
	}
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s: its reserve", spec.Name)
	}
	return nil
}

// notMade returns the error for a failed mkfs. If mkfs has refused an option, the request is
// invalid. Any other failure may be temporary: another process may have taken the memory first.
func (z *Zone) notMade(err error, spec pool.Spec) error {
	var refused *stargatectl.Refused
	if !errors.As(err, &refused) {
		return errkind.Wrap(errkind.Internal, err, "volume %s", spec.Name)
	}
	if refused.Status == 2 {
		return errkind.Wrap(errkind.Invalid, err, "volume %s", spec.Name)
	}
	if room, ferr := z.free(); ferr == nil && room < spec.Size+spec.Reserve {
		return noSpace(spec.Size, max(0, room-spec.Reserve), spec.Align)
	}
	return errkind.Wrap(errkind.Internal, err, "volume %s", spec.Name)
}

func noSpace(size, largest, align int64) error {
	at := ""
	if align > pool.Extent {
		at = " at such an address"
	}
	return errkind.New(errkind.NoSpace, "no contiguous %d bytes are free%s; the largest possible volume has %d", size, at, largest)
}

func (z *Zone) reserved(name string) pool.Span {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.made[name]
}

// reserve reserves addresses for a new volume.
func (z *Zone) reserve(ctx context.Context, spec pool.Spec) error {
	return z.settled(ctx, func(t taken) error {
		if _, ok := z.made[spec.Name]; ok {
			return errkind.New(errkind.Busy, "volume %s is being changed by another call", spec.Name)
		}
		if t.unread != "" {
			return errkind.New(errkind.NoSpace, "%s", allTaken(t.unread))
		}
		room, err := z.free()
		if err != nil {
			return err
		}
		base, ok := t.space.Fit(spec.Size+spec.Reserve, spec.Align)
		if !ok || room < spec.Size+spec.Reserve {
			return noSpace(spec.Size, max(0, min(t.space.Largest(spec.Align), room)-spec.Reserve), spec.Align)
		}
		z.made[spec.Name] = pool.Span{Base: base, Size: spec.Size + spec.Reserve}
		return nil
	})
}

func (z *Zone) release(name string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.made, name)
}

// Delete deletes a volume. It renames the file first, so that Sweep or the next Open removes the
// file after a crash. The kernel zeroes the file's memory before another user gets it.
func (z *Zone) Delete(ctx context.Context, name string) error {
	v, err := z.Get(ctx, name)
	if errkind.Is(err, errkind.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	end, err := z.folder.Begin(name)
	if err != nil {
		return err
	}
	defer end()
	if err := z.unused(ctx, v); err != nil {
		return err
	}
	failpoint.Reached(ctx, "file: found unused")
	gone := z.folder.Path(folder.Deleting, name)
	if err := os.Rename(v.Path, gone); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	failpoint.Reached(ctx, "file: without a name")
	if err := folder.Remove(z.folder.Path(origin, name), z.folder.Path(place, name), gone); err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	failpoint.Reached(ctx, "file: removed")
	return z.folder.Sync()
}

// unused returns an error while a system uses the volume. It changes nothing.
func (z *Zone) unused(ctx context.Context, v pool.Volume) error {
	// The driver does not let a program read such a file (see stretched). A process that uses
	// the volume has the file open.
	longer, err := z.longer(v.Name)
	if err != nil {
		return err
	}
	if longer {
		if written(v.Path) {
			return errkind.New(errkind.InUse, "volume %s is in use: a process has its file open, which is longer than the volume", v.Name)
		}
		return nil
	}
	// A check of heartbeats takes a second or two, so it is made only if there are systems.
	taken, err := z.Taken(ctx, v)
	var refused *stargatectl.Refused
	if v.State == pool.Damaged && errors.As(err, &refused) {
		return nil // no system can have it mounted, or join
	}
	if err != nil && ctx.Err() == nil && !written(v.Path) {
		return nil // an unreadable volume has no system that could store in it
	}
	if err != nil || taken == 0 {
		return err
	}
	systems, err := z.Systems(ctx, v)
	if err != nil {
		return err
	}
	err = pool.Unused(v.Name, systems)
	if errkind.Is(err, errkind.Busy) && !written(v.Path) {
		return nil // the recovering system was killed: no process has the memory
	}
	return err
}

// Grow extends a volume. It reserves the addresses behind the volume, and runs the tool that
// extends the file and the file system.
func (z *Zone) Grow(ctx context.Context, name string, size int64) (pool.Volume, error) {
	v, err := z.Get(ctx, name)
	if err != nil || size <= v.Size {
		return v, err
	}
	end, err := z.folder.Begin(name)
	if err != nil {
		return v, err
	}
	defer end()
	had, err := z.extend(ctx, v, size)
	if err != nil {
		return v, err
	}
	defer z.release(name)
	failpoint.Reached(ctx, "file: more addresses reserved")
	// The place is stored first, because a volume whose file is longer than its place counts as
	// damaged.
	if err := z.put(name, pool.Span{Base: had.Base, Size: max(had.Size, size)}); err != nil {
		return v, err
	}
	failpoint.Reached(ctx, "file: place noted")
	if err := z.ask(ctx, v, "-j", "grow", "--size", strconv.FormatInt(size, 10), v.Path); err != nil {
		err = errkind.Wrap(pool.KindOf(err), err, "volume %s", name)
		if st, serr := z.stat(name); serr == nil && st != nil && st.Size() <= had.Size {
			err = folder.NotCleaned(err, z.put(name, had))
		}
		return v, err
	}
	failpoint.Reached(ctx, "file: grown")
	return z.Get(ctx, name)
}

// canHave checks whether a volume can grow to a size. most is the largest size that its file system
// and the free memory allow. The error is Busy if another volume may have the addresses behind this
// volume, because that volume's file changes at the moment.
func (t taken) canHave(v pool.Volume, had pool.Span, size, most int64) error {
	behind := min(most, had.Size+t.space.Behind(had.Base+had.Size))
	switch {
	case size <= behind:
		return nil
	case size <= most && t.changing != "":
		return errkind.New(errkind.Busy, "volume %s: the addresses behind it are not known to be free, "+
			"because the file of volume %s changes: try again", v.Name, t.changing)
	case size <= most && t.unread != "":
		return errkind.New(errkind.OutOfRange, "volume %s cannot grow to %d bytes: %s", v.Name, size, allTaken(t.unread))
	}
	return errkind.New(errkind.OutOfRange, "volume %s cannot grow to %d bytes; the largest possible size is %d", v.Name, size, max(behind, v.Size))
}

// extend reserves the addresses behind a volume. It returns the volume's present span.
func (z *Zone) extend(ctx context.Context, v pool.Volume, size int64) (had pool.Span, err error) {
	info, err := z.Info(ctx, v)
	if err != nil {
		return had, err
	}
	err = z.settled(ctx, func(t taken) error {
		if _, ok := z.made[v.Name]; ok {
			return errkind.New(errkind.Busy, "volume %s is being changed by another call", v.Name)
		}
		// The volume has more memory than its file system if it has a reserve, or if an
		// earlier call was killed.
		var ok bool
		if had, ok = t.of[v.Name]; !ok {
			return errkind.New(errkind.Busy, "volume %s has changed meanwhile: try again", v.Name)
		}
		room, err := z.free()
		if err != nil {
			return err
		}
		if err := t.canHave(v, had, size, min(info.MaxSize, allocated(v)+room)); err != nil {
			return err
		}
		z.made[v.Name] = pool.Span{Base: had.Base + had.Size, Size: max(size-had.Size, 0)}
		return nil
	})
	return had, err
}
