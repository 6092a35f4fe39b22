// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
)

// This is the one place where a reason of stargatectl becomes a kind of failure, for zones of each
// kind.
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

// Unseen is the failure of a look at a whole zone. The absence of a zone is known only if a tool
// reports it. A tool that fails, times out or is killed reports nothing, and the last known state
// stays valid.
func Unseen(err error, zone string) error {
	kind := fault.NoAnswer
	if tools.ReasonOf(err) == tools.NoZone {
		kind = fault.NoZone
	}
	return fault.Wrap(kind, err, "%s", zone)
}

// Unused fails as long as a system uses a volume, and names it, or as long as one may: a system in
// transition is live or fenced in a moment. Systems that are dead or suspected do not keep the
// volume.
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
