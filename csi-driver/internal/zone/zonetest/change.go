// SPDX-License-Identifier: Apache-2.0

package zonetest

import (
	"context"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// Create makes one, whole or not at all.
func (z *Zone) Create(ctx context.Context, spec zone.Spec) (zone.Volume, error) {
	most := spec.MaxSize
	if most == 0 {
		most = max(spec.Size+spec.Reserve, maxFactor*spec.Size)
	}
	return z.make(ctx, Create, spec, tools.Info{MaxSize: most, LeaseMS: spec.LeaseMS(), HostSplice: spec.HostSplice}, 0)
}

// Clone has from its source how far it can grow, and the lease.
func (z *Zone) Clone(ctx context.Context, spec zone.Spec, source zone.Volume) (zone.Volume, error) {
	z.mu.Lock()
	of, err := z.sourceLocked(source)
	var info tools.Info
	var used int64
	if err == nil {
		info, used = of.info, of.used
	}
	z.mu.Unlock()
	if err != nil {
		return zone.Volume{}, err
	}
	return z.make(ctx, Clone, spec, info, used)
}

func (z *Zone) sourceLocked(source zone.Volume) (*volume, error) {
	if s, ok := z.snapshots[source.Name]; ok {
		return s, nil
	}
	v, err := z.findLocked(source.Name)
	if err == nil && v.State == zone.Damaged {
		return nil, damaged(v)
	}
	return v, err
}

func (z *Zone) make(ctx context.Context, c Call, spec zone.Spec, info tools.Info, used int64) (zone.Volume, error) {
	return z.change(ctx, c, spec.Name, func() (zone.Span, error) {
		return z.placeLocked(spec)
	}, func(at zone.Span) (zone.Volume, error) {
		info.UUID, info.Label, info.Base, info.Size = z.uuidLocked(), spec.Label, tools.Address(at.Base), spec.Size
		if info.Label == "" {
			info.Label = spec.Name
		}
		v := &volume{info: info, used: used, Volume: zone.Volume{
			Name: spec.Name, Zone: z.config.ID, State: zone.Ready, Path: "/memory/" + spec.Name, Base: info.Base, Size: spec.Size, Memory: at.Size,
			Alignment: zone.Alignment(at.Base), UUID: info.UUID, Label: info.Label, Origin: spec.Origin,
		}}
		z.volumes[spec.Name] = v
		return z.shownLocked(v), nil
	})
}

func (z *Zone) placeLocked(spec zone.Spec) (zone.Span, error) {
	switch {
	case !zone.ValidName(spec.Name) || spec.Size < zone.MinVolume || spec.Size%zone.Extent != 0:
		return zone.Span{}, fault.New(fault.Invalid, "%d bytes for %q are no volume", spec.Size, spec.Name)
	case z.volumes[spec.Name] != nil:
		return zone.Span{}, fault.New(fault.Exists, "there is a volume %s already", spec.Name)
	}
	space, room := z.spaceLocked(), z.roomLocked()
	base, ok := space.Fit(spec.Size+spec.Reserve, spec.Align)
	if !ok || room < spec.Size+spec.Reserve {
		largest := max(0, min(space.Largest(spec.Align), room)-spec.Reserve)
		return zone.Span{}, fault.New(fault.NoSpace, "no contiguous %d bytes are free; the largest possible volume has %d", spec.Size, largest)
	}
	return zone.Span{Base: base, Size: spec.Size + spec.Reserve}, nil
}

// Delete asks those who have it.
func (z *Zone) Delete(ctx context.Context, name string) error {
	_, err := do(ctx, z, Delete, func() (any, error) {
		v, err := z.findLocked(name)
		if fault.Is(err, fault.NotFound) {
			return nil, nil
		}
		if err == nil {
			err = zone.Unused(name, v.systems)
		}
		if err == nil {
			delete(z.volumes, name)
		}
		return nil, err
	})
	return err
}

// Grow takes the addresses behind it.
func (z *Zone) Grow(ctx context.Context, name string, size int64) (zone.Volume, error) {
	return z.change(ctx, Grow, name, func() (zone.Span, error) {
		v, err := z.findLocked(name)
		if err == nil && v.State == zone.Damaged {
			err = damaged(v)
		}
		if err != nil || size <= v.Size {
			return zone.Span{}, err
		}
		if most := z.canGrowToLocked(v); size > most {
			return zone.Span{}, fault.New(fault.OutOfRange, "volume %s cannot grow to %d bytes; the largest possible size is %d", name, size, most)
		}
		return zone.Span{Base: int64(v.Base) + v.Memory, Size: max(size-v.Memory, 0)}, nil
	}, func(more zone.Span) (zone.Volume, error) {
		v, err := z.findLocked(name)
		if err != nil {
			return zone.Volume{}, err
		}
		v.Size, v.Memory = max(size, v.Size), v.Memory+more.Size
		v.info.Size = v.Size
		return z.shownLocked(v), nil
	})
}

func damaged(v *volume) error {
	return fault.New(fault.InUse, "volume %s cannot be used: %s", v.Name, v.Why)
}
