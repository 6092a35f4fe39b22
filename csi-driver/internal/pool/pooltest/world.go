// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"fmt"
	"maps"
	"slices"

	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// The following methods change a zone without its driver.

// Use sets the systems that have a volume mounted. Without systems, the volume is unused.
func (z *Zone) Use(name string, systems ...stargatectl.System) {
	z.edit(name, func(v *volume) { v.systems = systems })
}

// Damage makes a volume unreadable.
func (z *Zone) Damage(name, why string) {
	z.edit(name, func(v *volume) { v.State, v.Why = pool.Damaged, why })
}

// Deactivate removes the device of a volume, as happens at a boot.
func (z *Zone) Deactivate(name string) {
	z.edit(name, func(v *volume) { v.State = pool.Inactive })
}

// MeetErrors sets the error count of a volume's file system.
func (z *Zone) MeetErrors(name string, n int64) {
	z.edit(name, func(v *volume) { v.info.Errors = n })
}

func (z *Zone) edit(name string, how func(*volume)) {
	z.mu.Lock()
	defer z.mu.Unlock()
	v, ok := z.volumes[name]
	if !ok {
		panic(fmt.Sprintf("a test names volume %q, which does not exist", name))
	}
	how(v)
}

// Left returns a line for each object in the zone. Two zones with the same lines are equal.
func (z *Zone) Left() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(z.volumes)) {
		v := z.volumes[name]
		lines = append(lines, fmt.Sprintf("volume %s of %q: %d of %d bytes, %s", name, v.Origin, v.Size, v.Memory, v.State))
	}
	for _, name := range slices.Sorted(maps.Keys(z.snapshots)) {
		lines = append(lines, fmt.Sprintf("snapshot %s of %s: %d bytes", name, z.snapshots[name].snapshot.Source, z.snapshots[name].Size))
	}
	for _, name := range slices.Sorted(maps.Keys(z.made)) {
		lines = append(lines, fmt.Sprintf("%s is not finished", name))
	}
	return lines
}
