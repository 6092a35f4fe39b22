// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"context"
	"slices"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/machineid"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

const inodes = 1 << 16

// look calls at with the volume or snapshot, unless it is damaged or absent.
func look[T any](ctx context.Context, z *Zone, c Call, v pool.Volume, at func(*volume) (T, error)) (T, error) {
	return do(ctx, z, c, func() (T, error) {
		found, ok := z.volumes[v.Name]
		if s, is := z.snapshots[v.Name]; is {
			found, ok = s, true
		}
		if !ok || found.State == pool.Damaged {
			var none T
			return none, errkind.New(errkind.Internal, "volume %s: there is no file system at %s", v.Name, v.Path)
		}
		return at(found)
	})
}

// Glances returns the volumes without their content. Callers then use the other calls, which may
// fail.
func (z *Zone) Glances(ctx context.Context) ([]pool.Glance, error) {
	volumes, err := z.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []pool.Glance
	for _, v := range volumes {
		all = append(all, pool.Glance{Volume: v})
	}
	return all, nil
}

// Info returns the superblock of a volume.
func (z *Zone) Info(ctx context.Context, v pool.Volume) (stargatectl.Info, error) {
	return look(ctx, z, Info, v, func(v *volume) (stargatectl.Info, error) { return v.info, nil })
}

// Space returns the use of a volume.
func (z *Zone) Space(ctx context.Context, v pool.Volume) (stargatectl.Space, error) {
	return look(ctx, z, Space, v, func(v *volume) (stargatectl.Space, error) {
		return stargatectl.Space{Size: v.Size, Used: v.used, Free: v.Size - v.used, LargestFree: v.Size - v.used, InodesUsed: 1, Inodes: inodes}, nil
	})
}

// Systems returns the systems that the last Use has set.
func (z *Zone) Systems(ctx context.Context, v pool.Volume) ([]stargatectl.System, error) {
	return look(ctx, z, Systems, v, func(v *volume) ([]stargatectl.System, error) { return slices.Clone(v.systems), nil })
}

// Taken returns the number of these systems.
func (z *Zone) Taken(ctx context.Context, v pool.Volume) (int, error) {
	return look(ctx, z, Taken, v, func(v *volume) (int, error) { return len(v.systems), nil })
}

// Ended removes those systems of a VM whose heartbeats have stopped.
func (z *Zone) Ended(ctx context.Context, v pool.Volume, machine string) ([]string, error) {
	return look(ctx, z, Ended, v, func(v *volume) ([]string, error) {
		var names []string
		v.systems = slices.DeleteFunc(v.systems, func(s stargatectl.System) bool {
			ended := machineid.Same(s.Machine, machine) && !s.Lives() && s.Silent()
			if ended {
				names = append(names, s.Name)
			}
			return ended
		})
		return names, nil
	})
}
