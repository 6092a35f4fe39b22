// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/stargatectl"
)

// kinds is the only table from reasons of stargatectl to kinds of failure.
var kinds = map[stargatectl.Reason]errkind.Kind{
	stargatectl.Failed:      errkind.Internal,
	stargatectl.BadArgument: errkind.Invalid,
	stargatectl.NotFound:    errkind.NotFound,
	stargatectl.Exists:      errkind.Exists,
	stargatectl.NoRoom:      errkind.NoSpace,
	stargatectl.InUse:       errkind.InUse,
	stargatectl.Busy:        errkind.Busy,
	stargatectl.NoZone:      errkind.NoZone,
	stargatectl.Unusable:    errkind.InUse,
}

// KindOf returns the kind of a tool's failure.
func KindOf(err error) errkind.Kind { return kinds[stargatectl.ReasonOf(err)] }

// Unseen wraps the tool's error when the zone could not be read. Only the reason NoZone means that
// there is no zone. After any other failure, the state of the zone is unknown, and callers keep its
// last known state.
func Unseen(err error, zone string) error {
	kind := errkind.NoAnswer
	if stargatectl.ReasonOf(err) == stargatectl.NoZone {
		kind = errkind.NoZone
	}
	return errkind.Wrap(kind, err, "%s", zone)
}

// Unused returns an error that names a system which uses the volume, or may use it. A state between
// live and dead lasts only a moment, so it counts as use. A system that is dead or suspected does
// not prevent the deletion of the volume.
func Unused(volume string, systems []stargatectl.System) error {
	for _, s := range systems {
		if s.Lives() {
			return errkind.New(errkind.InUse, "volume %s is in use by %q", volume, s.Name)
		}
	}
	for _, s := range systems {
		if s.State == "silent" || s.State == "recovering" {
			return errkind.New(errkind.Busy, "volume %s: %q is %s: try again", volume, s.Name, s.State)
		}
	}
	return nil
}
