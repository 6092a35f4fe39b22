// SPDX-License-Identifier: Apache-2.0

package filezone

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// Get looks at one volume.
func (z *Zone) Get(ctx context.Context, name string) (zone.Volume, error) {
	if !zone.ValidName(name) {
		return zone.Volume{}, notFound(name)
	}
	space, _, err := z.space(ctx)
	if err != nil {
		return zone.Volume{}, err
	}
	return z.look(ctx, name, space)
}

// Activate has nothing to do: files are there.
func (z *Zone) Activate(ctx context.Context, name string) (zone.Volume, error) {
	return z.Get(ctx, name)
}

// List looks at all.
func (z *Zone) List(ctx context.Context) ([]zone.Volume, error) {
	names, err := z.names()
	if err != nil {
		return nil, err
	}
	space, _, err := z.space(ctx)
	if err != nil {
		return nil, err
	}
	var volumes []zone.Volume
	for _, name := range names {
		v, err := z.look(ctx, name, space)
		if fault.Is(err, fault.NotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		volumes = append(volumes, v)
	}
	return volumes, nil
}

// Status is of the whole zone.
func (z *Zone) Status(ctx context.Context) (zone.Status, error) {
	names, err := z.names()
	if err != nil {
		return zone.Status{}, err
	}
	space, unread, err := z.space(ctx)
	if err != nil {
		return zone.Status{}, err
	}
	room, err := z.free()
	if err != nil {
		return zone.Status{}, err
	}
	strays, err := z.Strays(ctx)
	if err != nil {
		return zone.Status{}, err
	}
	why := ""
	if unread != "" {
		why = allTaken(unread)
	}
	return zone.Status{
		Name: z.config.Dir, Size: z.config.Size, Damaged: unread != "", Why: why,
		Free:      min(space.Free(), room),
		Largest:   min(space.Largest(zone.Extent), room),
		Largest1G: min(space.Largest(zone.Gigabyte), room),
		Addresses: space.Largest(zone.Extent), Addresses1G: space.Largest(zone.Gigabyte),
		Volumes: len(names), Others: len(strays),
	}, nil
}

func allTaken(unread string) string {
	return "volume " + unread + " cannot be read, so that nobody knows which addresses are not its own: none are given away until it is restored or deleted"
}

func notFound(name string) error { return fault.New(fault.NotFound, "there is no volume %q", name) }

func (z *Zone) look(ctx context.Context, name string, space zone.Space) (zone.Volume, error) {
	v := zone.Volume{Name: name, Path: z.path(name), State: zone.Ready}
	st, err := os.Stat(v.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, notFound(name)
	}
	if err != nil {
		return v, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	v.Size = st.Size()
	info, err := z.tools.Info(ctx, v.Path)
	var refused *tools.Refused
	if errors.As(err, &refused) {
		if _, err := os.Stat(v.Path); errors.Is(err, fs.ErrNotExist) {
			return v, notFound(name)
		}
		v.State, v.Why = zone.Damaged, refused.Said
		return v, nil
	}
	if err != nil {
		return v, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	z.mu.Lock()
	z.noteLocked(st, int64(info.Base))
	z.mu.Unlock()
	v.UUID, v.Label, v.Base = info.UUID, info.Label, info.Base
	v.Origin, _ = os.Readlink(z.folder.Path(origin, name)) // most have none
	v.Size, v.Memory, v.Alignment = info.Size, st.Size(), zone.Alignment(int64(info.Base))
	v.CanGrowTo, err = z.canGrowTo(v, info, space)
	return v, err
}

// Memory, addresses, and what it was made for: the least of them counts.
func (z *Zone) canGrowTo(v zone.Volume, info tools.Info, space zone.Space) (int64, error) {
	room, err := z.free()
	if err != nil {
		return 0, err
	}
	behind := space.Behind(int64(v.Base) + v.Memory)
	return max(v.Size, min(info.MaxSize, v.Memory+behind, v.Size+room)), nil
}

// space has what volumes take of the addresses, those that are being made included; and one that may have any.
func (z *Zone) space(ctx context.Context) (space zone.Space, unread string, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.spaceLocked(ctx)
}

func (z *Zone) spaceLocked(ctx context.Context) (space zone.Space, unread string, err error) {
	names, err := z.names()
	if err != nil {
		return space, "", err
	}
	all := zone.Span{Base: z.config.Base, Size: z.config.Size}
	var taken []zone.Span
	for _, name := range names {
		span, err := z.spanLocked(ctx, name)
		if fault.Is(err, fault.InUse) {
			span, unread, err = all, name, nil
		}
		if err != nil {
			return space, "", err
		}
		taken = append(taken, span)
	}
	for _, span := range z.made {
		taken = append(taken, span)
	}
	return zone.NewSpace(all, taken), unread, nil
}

// base is the address of a file when its inode was changed last. A store through a mapping need not count as
// a change: so each look at the volume notes it, too.
type base struct {
	at      int64
	changed syscall.Timespec
}

func (z *Zone) noteLocked(st fs.FileInfo, at int64) {
	inode := st.Sys().(*syscall.Stat_t)
	z.bases[inode.Ino] = base{at, inode.Ctim}
}

// spanLocked asks for a file's address when the file has changed. One that cannot be read any more keeps what
// it had: a machine may have it there, and it may be restored. InUse: nobody knows what that was.
func (z *Zone) spanLocked(ctx context.Context, name string) (zone.Span, error) {
	st, err := os.Stat(z.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return zone.Span{}, nil
	}
	if err != nil {
		return zone.Span{}, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	inode := st.Sys().(*syscall.Stat_t)
	known, ok := z.bases[inode.Ino]
	if ok && known.changed == inode.Ctim {
		return zone.Span{Base: known.at, Size: st.Size()}, nil
	}
	info, err := z.tools.Info(ctx, z.path(name))
	if err == nil {
		z.noteLocked(st, int64(info.Base))
		return zone.Span{Base: int64(info.Base), Size: st.Size()}, nil
	}
	var refused *tools.Refused
	if !errors.As(err, &refused) {
		return zone.Span{}, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	if _, err := os.Stat(z.path(name)); errors.Is(err, fs.ErrNotExist) {
		return zone.Span{}, nil // deleted meanwhile
	}
	if !ok {
		return zone.Span{}, fault.Wrap(fault.InUse, err, "volume %s", name)
	}
	return zone.Span{Base: known.at, Size: st.Size()}, nil
}
