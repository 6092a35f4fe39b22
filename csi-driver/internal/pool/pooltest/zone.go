// SPDX-License-Identifier: Apache-2.0

// Package pooltest simulates a zone in this process's memory. Tests with it need neither root nor
// tools, and can set its failures. Contract checks that this zone and the real zones fulfil the
// contract in package pool.
package pooltest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Config describes a Zone.
type Config struct {
	Base, Size int64 // addresses
	ID         string
	Memory     int64 // for all volumes and snapshots together; 0: the same as Size
}

// maxFactor is the default limit of growth: a multiple of the volume's first size.
const maxFactor = 16

// Zone is a zone in memory. Its kind is pool.File, because it has no devices.
type Zone struct {
	config Config

	mu        sync.Mutex
	volumes   map[string]*volume
	snapshots map[string]*volume
	made      map[string]pool.Span // reserved for volumes that are being created or extended
	number    int                  // number of volumes ever created, for their UUIDs
	plan
}

var _ pool.Zone = (*Zone)(nil)

// volume is a volume with its file system, or a snapshot.
type volume struct {
	pool.Volume
	info     stargatectl.Info
	used     int64
	systems  []stargatectl.System
	snapshot pool.Snapshot
}

// New returns an empty zone.
func New(config Config) *Zone {
	if config.Memory == 0 {
		config.Memory = config.Size
	}
	if config.ID == "" {
		config.ID = pool.Identity(pool.File, "memory")
	}
	return &Zone{
		config: config, volumes: map[string]*volume{}, snapshots: map[string]*volume{}, made: map[string]pool.Span{},
		plan: newPlan(),
	}
}

// Kind returns pool.File.
func (z *Zone) Kind() pool.Kind { return pool.File }

// Place returns the identity that the test has set.
func (z *Zone) Place(ctx context.Context, _ pool.ID) (string, error) {
	return do(ctx, z, Place, func() (string, error) { return z.config.ID, nil })
}

// Status returns the state of the zone, with the size of the largest volume that Create would
// accept.
func (z *Zone) Status(ctx context.Context) (pool.Status, error) {
	return do(ctx, z, Status, func() (pool.Status, error) {
		space, room := z.spaceLocked(), z.roomLocked()
		return pool.Status{
			Name: "memory", Size: z.config.Size, Free: min(space.Free(), room), Volumes: len(z.volumes),
			Largest: min(space.Largest(pool.Extent), room), Largest1G: min(space.Largest(pool.Gigabyte), room),
		}, nil
	})
}

// List returns all volumes, sorted by name.
func (z *Zone) List(ctx context.Context) ([]pool.Volume, error) {
	return do(ctx, z, List, func() ([]pool.Volume, error) {
		var all []pool.Volume
		for _, name := range slices.Sorted(maps.Keys(z.volumes)) {
			all = append(all, z.shownLocked(z.volumes[name]))
		}
		return all, nil
	})
}

// Get returns one volume.
func (z *Zone) Get(ctx context.Context, name string) (pool.Volume, error) {
	return do(ctx, z, Get, func() (pool.Volume, error) {
		v, err := z.findLocked(name)
		if err != nil {
			return pool.Volume{}, err
		}
		return z.shownLocked(v), nil
	})
}

// Activate sets a volume's state to Ready.
func (z *Zone) Activate(ctx context.Context, name string) (pool.Volume, error) {
	return do(ctx, z, Activate, func() (pool.Volume, error) {
		v, err := z.findLocked(name)
		if err != nil {
			return pool.Volume{}, err
		}
		if v.State == pool.Inactive {
			v.State = pool.Ready
		}
		return z.shownLocked(v), nil
	})
}

// Sweep does nothing, because interrupted calls leave nothing.
func (z *Zone) Sweep(ctx context.Context) error {
	_, err := do(ctx, z, Sweep, func() (any, error) { return nil, nil })
	return err
}

// Strays returns no objects.
func (z *Zone) Strays(ctx context.Context) ([]string, error) {
	return do(ctx, z, Strays, func() ([]string, error) { return nil, nil })
}

func (z *Zone) findLocked(name string) (*volume, error) {
	if v, ok := z.volumes[name]; ok && pool.ValidName(name) {
		return v, nil
	}
	return nil, errkind.New(errkind.NotFound, "there is no volume %q", name)
}

// shownLocked returns the present state of a volume. It computes CanGrowTo, which depends on the
// other volumes.
func (z *Zone) shownLocked(v *volume) pool.Volume {
	shown := v.Volume
	if len(v.systems) > 0 && v.State == pool.Ready {
		shown.State = pool.InUse
	}
	shown.CanGrowTo = z.canGrowToLocked(v)
	return shown
}

// canGrowToLocked returns the smallest of the limits: memory, addresses, largest size of the file
// system.
func (z *Zone) canGrowToLocked(v *volume) int64 {
	behind := z.spaceLocked().Behind(int64(v.Base) + v.Memory)
	return max(v.Size, min(v.info.MaxSize, v.Memory+behind, v.Memory+z.roomLocked()))
}

func (z *Zone) spaceLocked() pool.Space {
	taken := slices.Collect(maps.Values(z.made))
	for _, v := range z.volumes {
		taken = append(taken, pool.Span{Base: int64(v.Base), Size: v.Memory})
	}
	return pool.NewSpace(pool.Span{Base: z.config.Base, Size: z.config.Size}, taken)
}

// roomLocked returns the free memory. A reserve takes memory from the creation of its volume on.
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
