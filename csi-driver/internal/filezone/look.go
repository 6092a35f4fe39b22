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
	space, err := z.space(ctx)
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
	space, err := z.space(ctx)
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
	space, err := z.space(ctx)
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
	return zone.Status{
		Name: z.config.Dir, Size: z.config.Size,
		Free:      min(space.Free(), room),
		Largest:   min(space.Largest(zone.Extent), room),
		Largest1G: min(space.Largest(zone.Gigabyte), room),
		Addresses: space.Largest(zone.Extent), Addresses1G: space.Largest(zone.Gigabyte),
		Volumes: len(names), Others: len(strays),
	}, nil
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

// space has what volumes take of the addresses, those that are being made included.
func (z *Zone) space(ctx context.Context) (zone.Space, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.spaceLocked(ctx)
}

func (z *Zone) spaceLocked(ctx context.Context) (zone.Space, error) {
	names, err := z.names()
	if err != nil {
		return zone.Space{}, err
	}
	var taken []zone.Span
	for _, name := range names {
		span, err := z.spanLocked(ctx, name)
		if err != nil {
			return zone.Space{}, err
		}
		taken = append(taken, span)
	}
	for _, span := range z.made {
		taken = append(taken, span)
	}
	return zone.NewSpace(zone.Span{Base: z.config.Base, Size: z.config.Size}, taken), nil
}

// spanLocked asks for a file's address once. One that cannot be read has none: what it has is memory.
func (z *Zone) spanLocked(ctx context.Context, name string) (zone.Span, error) {
	st, err := os.Stat(z.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return zone.Span{}, nil
	}
	if err != nil {
		return zone.Span{}, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	inode := st.Sys().(*syscall.Stat_t).Ino
	base, ok := z.bases[inode]
	if !ok {
		info, err := z.tools.Info(ctx, z.path(name))
		var refused *tools.Refused
		if errors.As(err, &refused) {
			return zone.Span{}, nil
		}
		if err != nil {
			return zone.Span{}, fault.Wrap(fault.Internal, err, "volume %s", name)
		}
		base = int64(info.Base)
		z.bases[inode] = base
	}
	return zone.Span{Base: base, Size: st.Size()}, nil
}
