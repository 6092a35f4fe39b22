// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"slices"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/machineid"
	"stargate/csi-driver/internal/stargatectl"
)

// Look runs the tools to examine the file systems in volumes. It works for a zone of any kind.
type Look struct{ Tools *stargatectl.Tools }

// Glance is a volume with its content. One program examines all volumes.
type Glance struct {
	Volume
	Seen  bool // false: the other fields are unknown, and the caller must read each of them
	Info  stargatectl.Info
	Space stargatectl.Space
	Taken int
}

// Readable reports whether the file system of the volume can be examined.
func (v Volume) Readable() bool { return v.State == Ready || v.State == InUse }

// Glanced examines all volumes with one run of stargatectl. If that run fails, the caller examines
// each volume separately, and so finds the cause.
func (l Look) Glanced(ctx context.Context, volumes []Volume) ([]Glance, error) {
	var paths []string
	for _, v := range volumes {
		if v.Readable() {
			paths = append(paths, v.Path)
		}
	}
	seen, err := l.Tools.Look(ctx, paths)
	if err != nil && ctx.Err() != nil {
		return nil, errkind.Wrap(errkind.NoAnswer, err, "volumes")
	}
	all := make([]Glance, len(volumes))
	for i, v := range volumes {
		all[i].Volume = v
		if g, ok := seen[v.Path]; ok && v.Readable() {
			all[i] = Glance{v, true, *g.Info, g.Space, g.Taken}
		}
	}
	return all, nil
}

// Info reads the superblock.
func (l Look) Info(ctx context.Context, v Volume) (stargatectl.Info, error) {
	info, err := l.Tools.Info(ctx, v.Path)
	return info, looked(err, v)
}

// Space returns the use of the file system.
func (l Look) Space(ctx context.Context, v Volume) (stargatectl.Space, error) {
	space, err := l.Tools.Space(ctx, v.Path)
	return space, looked(err, v)
}

// Systems returns the systems that have the volume mounted.
func (l Look) Systems(ctx context.Context, v Volume) ([]stargatectl.System, error) {
	systems, err := l.Tools.Systems(ctx, v.Path)
	return systems, looked(err, v)
}

// Taken returns the number of systems in the mount table.
func (l Look) Taken(ctx context.Context, v Volume) (int, error) {
	slots, err := l.Tools.Slots(ctx, v.Path)
	return len(slots), looked(err, v)
}

// Ended fences the systems that an ended VM has left on the volume, and returns their names. A
// system whose heartbeat still moves belongs to another VM, like a slot that a system took during
// the check.
func (l Look) Ended(ctx context.Context, v Volume, machine string) ([]string, error) {
	slots, err := l.Tools.Slots(ctx, v.Path)
	if err != nil {
		return nil, looked(err, v)
	}
	// Dead systems remain in the table until a system mounts the volume. A check of heartbeats
	// takes seconds, so Ended makes it only if there are other systems.
	slots = slices.DeleteFunc(slots, func(s stargatectl.Slot) bool { return s.Dead() || !machineid.Same(s.Machine, machine) })
	if len(slots) == 0 {
		return nil, nil
	}
	systems, err := l.Tools.Systems(ctx, v.Path)
	if err != nil {
		return nil, looked(err, v)
	}
	var names []string
	for _, s := range systems {
		there := slices.ContainsFunc(slots, func(was stargatectl.Slot) bool {
			return was.Slot == s.Slot && was.Incarnation == s.Incarnation && was.Machine == s.Machine
		})
		if !there || s.Lives() || !s.Silent() {
			continue
		}
		if err := l.Tools.Fence(ctx, v.Path, s); err != nil {
			return names, looked(err, v)
		}
		names = append(names, s.Name)
	}
	return names, nil
}

func looked(err error, v Volume) error {
	if err == nil {
		return nil
	}
	return errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
}
