// SPDX-License-Identifier: Apache-2.0

// Package zonetest has a zone that is in this process's memory alone, so that tests of what stands upon
// a zone need neither root nor tools; what goes wrong in it is what a test says. Contract holds it, and
// the real ones, to what package zone promises.
package zonetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// Config is of one.
type Config struct {
	Base, Size int64 // addresses
	ID         string
	Memory     int64 // that volumes and snapshots can have together; 0: as much as there are addresses
}

// maxFactor is how many times as large a volume can become, if it was not made for another size.
const maxFactor = 16

// Zone is one. It is of zone.File's kind: nothing of it is a device.
type Zone struct {
	config Config

	mu        sync.Mutex
	volumes   map[string]*volume
	snapshots map[string]*volume
	made      map[string]zone.Span // being made, or to be larger
	number    int                  // of volumes that there have been, for their UUIDs
	plan
}

var _ zone.Zone = (*Zone)(nil)

// volume is one with its file system, or a snapshot of it.
type volume struct {
	zone.Volume
	info     tools.Info
	used     int64
	systems  []tools.System
	snapshot zone.Snapshot
}

// New is empty.
func New(config Config) *Zone {
	if config.Memory == 0 {
		config.Memory = config.Size
	}
	if config.ID == "" {
		config.ID = zone.Identity(zone.File, "memory")
	}
	return &Zone{
		config: config, volumes: map[string]*volume{}, snapshots: map[string]*volume{}, made: map[string]zone.Span{},
		plan: newPlan(),
	}
}

// Kind is zone.File.
func (z *Zone) Kind() zone.Kind { return zone.File }

// Place is the one that the test has chosen.
func (z *Zone) Place(ctx context.Context, _ zone.ID) (string, error) {
	return do(ctx, z, Place, func() (string, error) { return z.config.ID, nil })
}

// Status has the largest volume that Create would make.
func (z *Zone) Status(ctx context.Context) (zone.Status, error) {
	return do(ctx, z, Status, func() (zone.Status, error) {
		space, room := z.spaceLocked(), z.roomLocked()
		return zone.Status{
			Name: "memory", Size: z.config.Size, Free: min(space.Free(), room), Volumes: len(z.volumes),
			Largest: min(space.Largest(zone.Extent), room), Largest1G: min(space.Largest(zone.Gigabyte), room),
		}, nil
	})
}

// List is sorted.
func (z *Zone) List(ctx context.Context) ([]zone.Volume, error) {
	return do(ctx, z, List, func() ([]zone.Volume, error) {
		var all []zone.Volume
		for _, name := range slices.Sorted(maps.Keys(z.volumes)) {
			all = append(all, z.shownLocked(z.volumes[name]))
		}
		return all, nil
	})
}

// Get looks at one.
func (z *Zone) Get(ctx context.Context, name string) (zone.Volume, error) {
	return do(ctx, z, Get, func() (zone.Volume, error) {
		v, err := z.findLocked(name)
		if err != nil {
			return zone.Volume{}, err
		}
		return z.shownLocked(v), nil
	})
}

// Activate makes one Ready.
func (z *Zone) Activate(ctx context.Context, name string) (zone.Volume, error) {
	return do(ctx, z, Activate, func() (zone.Volume, error) {
		v, err := z.findLocked(name)
		if err != nil {
			return zone.Volume{}, err
		}
		if v.State == zone.Inactive {
			v.State = zone.Ready
		}
		return z.shownLocked(v), nil
	})
}

// Sweep finds nothing: who is cut off leaves nothing.
func (z *Zone) Sweep(ctx context.Context) error {
	_, err := do(ctx, z, Sweep, func() (any, error) { return nil, nil })
	return err
}

// Strays are none.
func (z *Zone) Strays(ctx context.Context) ([]string, error) {
	return do(ctx, z, Strays, func() ([]string, error) { return nil, nil })
}

func (z *Zone) findLocked(name string) (*volume, error) {
	if v, ok := z.volumes[name]; ok && zone.ValidName(name) {
		return v, nil
	}
	return nil, fault.New(fault.NotFound, "there is no volume %q", name)
}

// shownLocked is what it is now: how far it can grow depends on the others.
func (z *Zone) shownLocked(v *volume) zone.Volume {
	shown := v.Volume
	if len(v.systems) > 0 && v.State == zone.Ready {
		shown.State = zone.InUse
	}
	shown.CanGrowTo = z.canGrowToLocked(v)
	return shown
}

// The least of memory, addresses, and what it was made for.
func (z *Zone) canGrowToLocked(v *volume) int64 {
	behind := z.spaceLocked().Behind(int64(v.Base) + v.Memory)
	return max(v.Size, min(v.info.MaxSize, v.Memory+behind, v.Memory+z.roomLocked()))
}

func (z *Zone) spaceLocked() zone.Space {
	taken := slices.Collect(maps.Values(z.made))
	for _, v := range z.volumes {
		taken = append(taken, zone.Span{Base: int64(v.Base), Size: v.Memory})
	}
	return zone.NewSpace(zone.Span{Base: z.config.Base, Size: z.config.Size}, taken)
}

// roomLocked is memory that nobody has. A reserve has its own from the start.
func (z *Zone) roomLocked() int64 {
	room := z.config.Memory
	for _, span := range z.made {
		room -= span.Size
	}
	for _, v := range z.volumes {
		room -= v.Memory
	}
	for _, s := range z.snapshots {
		room -= s.Size
	}
	return max(0, room)
}

func (z *Zone) uuidLocked() string {
	z.number++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", z.number)
}
