// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
)

// The one place where a reason of stargatectl becomes a kind of failure, for zones of each kind.
var kinds = map[tools.Reason]fault.Kind{
	tools.Failed:      fault.Internal,
	tools.BadArgument: fault.Invalid,
	tools.NotFound:    fault.NotFound,
	tools.Exists:      fault.Exists,
	tools.NoRoom:      fault.NoSpace,
	tools.InUse:       fault.InUse,
	tools.Busy:        fault.Busy,
	tools.NoZone:      fault.NoZone,
	tools.Unusable:    fault.InUse,
}

// KindOf is that of what a tool has not done.
func KindOf(err error) fault.Kind { return kinds[tools.ReasonOf(err)] }

// Unseen is what a look at a whole zone has failed with. That there is none is known only if it is said: a tool
// that fails, waits in vain or is killed knows nothing, and what was known of the zone before stays true.
func Unseen(err error, zone string) error {
	kind := fault.NoAnswer
	if tools.ReasonOf(err) == tools.NoZone {
		kind = fault.NoZone
	}
	return fault.Wrap(kind, err, "%s", zone)
}

// Unused is an error as long as somebody uses a volume, who is named, or may: who is between life and death
// is one or the other in a moment. Who is dead, or silent for so long that he is suspected to be, does not
// keep it.
func Unused(volume string, systems []tools.System) error {
	for _, s := range systems {
		if s.Lives() {
			return fault.New(fault.InUse, "volume %s is in use by %q", volume, s.Name)
		}
	}
	for _, s := range systems {
		if s.State == "silent" || s.State == "recovering" {
			return fault.New(fault.Busy, "volume %s: %q is %s: try again", volume, s.Name, s.State)
		}
	}
	return nil
}
