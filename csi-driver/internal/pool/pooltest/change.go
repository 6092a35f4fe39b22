// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"context"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Create creates a complete volume, or nothing.
func (z *Zone) Create(ctx context.Context, spec pool.Spec) (pool.Volume, error) {
	most := spec.MaxSize
	if most == 0 {
		most = max(spec.Size+spec.Reserve, maxFactor*spec.Size)
	}
	info := stargatectl.Info{MaxSize: most, LeaseMS: spec.LeaseMS(), HostSplice: spec.HostSplice, Data: "inplace"}
	if spec.DataAtomic {
		info.Data = "atomic"
	}
	return z.make(ctx, Create, spec, info, 0)
}

// Clone copies a volume or snapshot. The copy has the largest size and the lease of its source.
func (z *Zone) Clone(ctx context.Context, spec pool.Spec, source pool.Volume) (pool.Volume, error) {
	z.mu.Lock()
	of, err := z.sourceLocked(source)
	var info stargatectl.Info
	var used int64
	if err == nil {
		info, used = of.info, of.used
	}
	z.mu.Unlock()
	if err != nil {
		return pool.Volume{}, err
	}
	return z.make(ctx, Clone, spec, info, used)
}

func (z *Zone) sourceLocked(source pool.Volume) (*volume, error) {
	if s, ok := z.snapshots[source.Name]; ok {
		return s, nil
	}
	v, err := z.findLocked(source.Name)
	if err == nil && v.State == pool.Damaged {
		return nil, damaged(v)
	}
	return v, err
}

func (z *Zone) make(ctx context.Context, c Call, spec pool.Spec, info stargatectl.Info, used int64) (pool.Volume, error) {
	return z.change(ctx, c, spec.Name, func() (pool.Span, error) {
		return z.placeLocked(spec)
	}, func(at pool.Span) (pool.Volume, error) {
		info.UUID, info.Label, info.Base, info.Size = z.uuidLocked(), spec.Label, stargatectl.Address(at.Base), spec.Size
		if info.Label == "" {
			info.Label = spec.Name
		}
		v := &volume{info: info, used: used, Volume: pool.Volume{
			Name: spec.Name, Zone: z.config.ID, State: pool.Ready, Path: "/memory/" + spec.Name, Base: info.Base, Size: spec.Size, Memory: at.Size,
			Alignment: pool.Alignment(at.Base), UUID: info.UUID, Label: info.Label, Origin: spec.Origin,
		}}
		z.volumes[spec.Name] = v
		return z.shownLocked(v), nil
	})
}

func (z *Zone) placeLocked(spec pool.Spec) (pool.Span, error) {
	switch {
	case !pool.ValidName(spec.Name) || spec.Size < pool.MinVolume || spec.Size%pool.Extent != 0:
		return pool.Span{}, errkind.New(errkind.Invalid, "%d bytes for %q are no volume", spec.Size, spec.Name)
	case z.volumes[spec.Name] != nil:
		return pool.Span{}, errkind.New(errkind.Exists, "there is a volume %s already", spec.Name)
	}
	space, room := z.spaceLocked(), z.roomLocked()
	base, ok := space.Fit(spec.Size+spec.Reserve, spec.Align)
	if !ok || room < spec.Size+spec.Reserve {
		largest := max(0, min(space.Largest(spec.Align), room)-spec.Reserve)
		return pool.Span{}, errkind.New(errkind.NoSpace, "no contiguous %d bytes are free; the largest possible volume has %d", spec.Size, largest)
	}
	return pool.Span{Base: base, Size: spec.Size + spec.Reserve}, nil
}

// Delete deletes a volume, unless a system uses it.
func (z *Zone) Delete(ctx context.Context, name string) error {
	_, err := do(ctx, z, Delete, func() (any, error) {
		v, err := z.findLocked(name)
		if errkind.Is(err, errkind.NotFound) {
			return nil, nil
		}
		if err == nil {
			err = pool.Unused(name, v.systems)
		}
		if err == nil {
			delete(z.volumes, name)
		}
		return nil, err
	})
	return err
}

// Grow extends a volume by the addresses behind it.
func (z *Zone) Grow(ctx context.Context, name string, size int64) (pool.Volume, error) {
	return z.change(ctx, Grow, name, func() (pool.Span, error) {
		v, err := z.findLocked(name)
		if err == nil && v.State == pool.Damaged {
			err = damaged(v)
		}
		if err != nil || size <= v.Size {
			return pool.Span{}, err
		}
		if most := z.canGrowToLocked(v); size > most {
			return pool.Span{}, errkind.New(errkind.OutOfRange, "volume %s cannot grow to %d bytes; the largest possible size is %d", name, size, most)
		}
		return pool.Span{Base: int64(v.Base) + v.Memory, Size: max(size-v.Memory, 0)}, nil
	}, func(more pool.Span) (pool.Volume, error) {
		v, err := z.findLocked(name)
		if err != nil {
			return pool.Volume{}, err
		}
		v.Size, v.Memory = max(size, v.Size), v.Memory+more.Size
		v.info.Size = v.Size
		return z.shownLocked(v), nil
	})
}

func damaged(v *volume) error {
	return errkind.New(errkind.InUse, "volume %s cannot be used: %s", v.Name, v.Why)
}
