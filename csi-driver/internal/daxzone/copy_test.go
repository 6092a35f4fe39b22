// SPDX-License-Identifier: Apache-2.0

package daxzone

import (
	"fmt"
	"strings"
	"testing"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/zone"
)

// of has one row, of that state.
func (s stand) of(t *testing.T, name string, state zone.State) {
	t.Helper()
	s.put(t, "volumes.json", fmt.Sprintf(`{"volumes": [{"zone": "sm", "volume": %q, "state": %q, "device": "/dev/sm/x", "size": 33554432, "origin": "v"}]}`, name, state))
}

// A snapshot is deleted, or it is said why it is not: whose device is away would keep its memory for good when that
// comes back. What is no snapshot is left alone.
func TestDeleteSnapshot(t *testing.T) {
	name := zone.SnapshotName("s")
	for state, want := range map[zone.State]struct {
		deleted bool
		fails   string
	}{
		zone.Snapshotted: {deleted: true},
		zone.Unfinished:  {deleted: true},
		zone.Missing:     {fails: "its device is not there"},
		zone.Scattered:   {fails: "one piece of memory"},
		zone.Foreign:     {},
		zone.Ready:       {},
		zone.InUse:       {},
		zone.Inactive:    {},
		zone.Moved:       {},
		zone.Damaged:     {},
	} {
		s := newStand(t, "0")
		s.of(t, name, state)
		err := s.DeleteSnapshot(background, zone.ID{Name: name})
		if want.fails == "" && err != nil || want.fails != "" && (!fault.Is(err, fault.InUse) || !strings.Contains(err.Error(), want.fails)) {
			t.Errorf("%s: %v", state, err)
		}
		if got := strings.Contains(s.calls(t), "volume delete sm/"+name); got != want.deleted {
			t.Errorf("%s: deleted: %v", state, got)
		}
	}
	s := newStand(t, "0")
	if err := s.DeleteSnapshot(background, zone.ID{Name: name}); err != nil {
		t.Errorf("of none: %v", err)
	}
}

// One that cannot be read is a snapshot all the same, and neither gone nor a volume.
func TestSnapshotThatCannotBeRead(t *testing.T) {
	name := zone.SnapshotName("s")
	for _, state := range []zone.State{zone.Missing, zone.Scattered} {
		s := newStand(t, "0")
		s.of(t, name, state)
		if _, err := s.Snapshot(background, zone.ID{Name: name}); !fault.Is(err, fault.InUse) {
			t.Errorf("%s: %v", state, err)
		}
		if _, err := s.Get(background, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: as a volume: %v", state, err)
		}
		if all, err := s.List(background); err != nil || len(all) > 0 {
			t.Errorf("%s: among volumes: %+v, %v", state, all, err)
		}
		s.of(t, "v", state)
		if all, err := s.List(background); err != nil || len(all) != 1 || all[0].State.Whole() {
			t.Errorf("%s: a volume: %+v, %v", state, all, err)
		}
		if _, err := s.Snapshot(background, zone.ID{Name: "v"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: a volume as a snapshot: %v", state, err)
		}
	}
}
