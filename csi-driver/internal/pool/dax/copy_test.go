// SPDX-License-Identifier: Apache-2.0

package dax

import (
	"fmt"
	"strings"
	"testing"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// of returns a zone with one row, which has the given state.
func (s stand) of(t *testing.T, name string, state pool.State) {
	t.Helper()
	s.put(t, "volumes.json", fmt.Sprintf(`{"volumes": [{"zone": "sm", "volume": %q, "state": %q, "device": "/dev/sm/x", "size": 33554432, "origin": "v"}]}`, name, state))
}

// DeleteSnapshot deletes a snapshot, or reports why it cannot. Otherwise a snapshot whose device is
// missing would keep its memory when the device returns. DeleteSnapshot ignores objects that are no
// snapshots.
func TestDeleteSnapshot(t *testing.T) {
	name := pool.SnapshotName("s")
	for state, want := range map[pool.State]struct {
		deleted bool
		fails   string
	}{
		pool.Snapshotted: {deleted: true},
		pool.Unfinished:  {deleted: true},
		pool.Missing:     {fails: "its device is missing"},
		pool.Scattered:   {fails: "not contiguous any more"},
		pool.Foreign:     {},
		pool.Ready:       {},
		pool.InUse:       {},
		pool.Inactive:    {},
		pool.Moved:       {},
		pool.Damaged:     {},
	} {
		s := newStand(t, "0")
		s.of(t, name, state)
		err := s.DeleteSnapshot(background, pool.ID{Name: name})
		if want.fails == "" && err != nil || want.fails != "" && (!errkind.Is(err, errkind.InUse) || !strings.Contains(err.Error(), want.fails)) {
			t.Errorf("%s: %v", state, err)
		}
		if got := strings.Contains(s.calls(t), "volume delete sm/"+name); got != want.deleted {
			t.Errorf("%s: deleted: %v", state, got)
		}
	}
	s := newStand(t, "0")
	if err := s.DeleteSnapshot(background, pool.ID{Name: name}); err != nil {
		t.Errorf("of none: %v", err)
	}
}

// An unreadable snapshot is still a snapshot. The driver reports it neither as absent nor as a
// volume.
func TestSnapshotThatCannotBeRead(t *testing.T) {
	name := pool.SnapshotName("s")
	for _, state := range []pool.State{pool.Missing, pool.Scattered} {
		s := newStand(t, "0")
		s.of(t, name, state)
		if _, err := s.Snapshot(background, pool.ID{Name: name}); !errkind.Is(err, errkind.InUse) {
			t.Errorf("%s: %v", state, err)
		}
		if _, err := s.Get(background, name); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("%s: as a volume: %v", state, err)
		}
		if all, err := s.List(background); err != nil || len(all) > 0 {
			t.Errorf("%s: among volumes: %+v, %v", state, all, err)
		}
		s.of(t, "v", state)
		if all, err := s.List(background); err != nil || len(all) != 1 || all[0].State.Whole() {
			t.Errorf("%s: a volume: %+v, %v", state, all, err)
		}
		if _, err := s.Snapshot(background, pool.ID{Name: "v"}); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("%s: a volume as a snapshot: %v", state, err)
		}
	}
}
