// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

var background = context.Background()

// lost is a zone that a power cut has taken, or that has no room.
type lost struct {
	zone.Zone
	err     error
	asked   int
	copying func() // in the middle of a copy
}

func (l *lost) Snapshot(context.Context, zone.ID) (zone.Snapshot, error) {
	l.asked++
	return zone.Snapshot{}, l.err
}
func (l *lost) DeleteSnapshot(context.Context, zone.ID) error { l.asked++; return l.err }
func (l *lost) TakeSnapshot(context.Context, string, zone.Volume, zone.Target) (zone.Snapshot, error) {
	l.asked++
	return zone.Snapshot{}, l.err
}
func (l *lost) Space(context.Context, zone.Volume) (tools.Space, error) { return tools.Space{}, nil }
func (l *lost) CopyOut(_ context.Context, _ zone.Volume, file string) error {
	if l.copying != nil {
		l.copying()
	}
	return os.WriteFile(file, []byte("bytes"), 0o600)
}

func open(t *testing.T, z zone.Zone) (*Zone, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snapshots")
	f, err := Open(background, dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Beside(z), dir
}

// What is outside is there, and can be deleted, when the zone is not.
func TestWithoutAZone(t *testing.T) {
	l := &lost{err: fault.New(fault.NoZone, "gone")}
	z, dir := open(t, l)
	if _, err := z.TakeSnapshot(background, "s-1", zone.Volume{Name: "v", Size: 1 << 20}, zone.InFolder); err != nil {
		t.Fatal(err)
	}
	if s, err := z.Snapshot(background, zone.ID{Name: "s-1"}); err != nil || !s.Outside || s.Source != "v" || s.Path != filepath.Join(dir, "s-1@v.snapshot") {
		t.Errorf("%+v, %v", s, err)
	}
	if err := z.DeleteSnapshot(background, zone.ID{Name: "s-1"}); err != nil {
		t.Error(err)
	}
	if l.asked > 0 {
		t.Error("the zone was asked")
	}
	for what, err := range map[string]error{"delete": z.DeleteSnapshot(background, zone.ID{Name: "s-1"}), "look": func() error {
		_, err := z.Snapshot(background, zone.ID{Name: "s-1"})
		return err
	}()} {
		if !fault.Is(err, fault.NoZone) {
			t.Errorf("%s: nobody knows whether the zone has it, and it is %v", what, err)
		}
	}
}

// An id says where its snapshot is, and is served there alone: one of that name in the zone is another one. A snapshot
// that is gone from the folder is not looked for in the zone, which may be away.
func TestWhereAnIDSays(t *testing.T) {
	l := &lost{err: fault.New(fault.NoZone, "gone")}
	z, _ := open(t, l)
	taken, err := z.TakeSnapshot(background, "s-1", zone.Volume{Name: "v", Zone: "0123456789abcdef", Size: 1 << 20}, zone.InFolder)
	if err != nil || taken.Zone == "" || taken.SourceID() != (zone.ID{Name: "v"}) {
		t.Fatalf("%+v, %v", taken, err)
	}
	of, ok := zone.ParseID(taken.ID())
	if at, err := z.Place(background, of); !ok || err != nil || at != taken.Zone {
		t.Errorf("%s is at %q, %v", taken.ID(), at, err)
	}
	there := zone.ID{Name: "s-1", Zone: "0123456789abcdef"}
	if _, err := z.Snapshot(background, there); !fault.Is(err, fault.NoZone) {
		t.Errorf("the zone was not asked: %v", err)
	}
	if err := z.DeleteSnapshot(background, there); !fault.Is(err, fault.NoZone) {
		t.Errorf("the zone was not asked to delete it: %v", err)
	}
	asked := l.asked
	if s, err := z.Snapshot(background, of); err != nil || s != taken {
		t.Errorf("%+v, %v, and was %+v", s, err, taken)
	}
	for range 2 {
		if err := z.DeleteSnapshot(background, of); err != nil {
			t.Error(err)
		}
	}
	if _, err := z.Snapshot(background, of); !fault.Is(err, fault.NotFound) || l.asked != asked {
		t.Errorf("%v; the zone was asked %d times", err, l.asked-asked)
	}
}

// A folder that is taken away, or another one that is mounted in its place, is not the one that snapshots are in: the
// driver says so, and neither finds nor loses anything there.
func TestAnotherFolder(t *testing.T) {
	z, dir := open(t, &lost{})
	taken, err := z.TakeSnapshot(background, "s-1", zone.Volume{Name: "v", Size: 1 << 20}, zone.InFolder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	for _, lock := range []bool{false, true} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if lock {
			if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, of := range []zone.ID{{Name: "s-1"}, {Name: "s-1", Zone: taken.Zone}} {
			if err := z.DeleteSnapshot(background, of); !fault.Is(err, fault.NoAnswer) {
				t.Errorf("%s is deleted from another folder: %v", of, err)
			}
		}
		if _, err := z.TakeSnapshot(background, "s-2", zone.Volume{Name: "v"}, zone.InFolder); !fault.Is(err, fault.NoAnswer) {
			t.Errorf("one goes into another folder: %v", err)
		}
		if _, err := z.folder.Snapshots(); !fault.Is(err, fault.NoAnswer) {
			t.Errorf("another folder is looked at: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir+".away", "s-1@v.snapshot")); err != nil {
		t.Error(err)
	}
}

func TestTargets(t *testing.T) {
	full, broken := fault.New(fault.NoSpace, "full"), fault.New(fault.Internal, "broken")
	for _, c := range []struct {
		target zone.Target
		zone   error
		kind   fault.Kind
		taken  bool
	}{
		{zone.InZone, full, fault.NoSpace, false}, {zone.Either, full, 0, true}, {zone.InFolder, full, 0, true},
		{zone.InZone, broken, fault.Internal, false}, {zone.Either, broken, fault.Internal, false}, {zone.InFolder, broken, 0, true},
	} {
		z, _ := open(t, &lost{err: c.zone})
		s, err := z.TakeSnapshot(background, "s-1", zone.Volume{Name: "v"}, c.target)
		if s.Outside != c.taken || (err == nil) != c.taken || err != nil && !fault.Is(err, c.kind) {
			t.Errorf("%s of a zone that is %v: %+v, %v", c.target, c.zone, s, err)
		}
	}
}

// within has snapshots in the zone.
type within struct {
	lost
	all []zone.Snapshot
}

func (w *within) Snapshots(context.Context) ([]zone.Snapshot, error) { return w.all, nil }

// What is inside and what is outside is one list by name: pages of it lose nothing.
func TestSorted(t *testing.T) {
	z, _ := open(t, &within{all: []zone.Snapshot{{Name: "s-b"}, {Name: "s-d"}}})
	for _, name := range []string{"s-a", "s-c", "s-e"} {
		if _, err := z.TakeSnapshot(background, name, zone.Volume{Name: "v"}, zone.InFolder); err != nil {
			t.Fatal(err)
		}
	}
	all, err := z.Snapshots(background)
	names := ""
	for _, s := range all {
		names += s.Name + " "
	}
	if err != nil || names != "s-a s-b s-c s-d s-e " {
		t.Errorf("%s, %v", names, err)
	}
}

// Copies that are made at once do not take the same room: the second one finds what the first one has left.
func TestTwoCopiesAtOnce(t *testing.T) {
	l := &lost{}
	z, _ := open(t, l)
	free, err := z.folder.Free()
	if err != nil {
		t.Fatal(err)
	}
	take := func(name string) error {
		_, err := z.TakeSnapshot(background, name, zone.Volume{Name: "v", Size: free / 3 * 2}, zone.InFolder)
		return err
	}
	l.copying = func() {
		l.copying = nil
		if err := take("s-2"); !fault.Is(err, fault.NoSpace) {
			t.Errorf("beside the first one: %v", err)
		}
	}
	if err := take("s-1"); err != nil {
		t.Error(err)
	}
	if err := take("s-2"); err != nil {
		t.Errorf("after the first one: %v", err)
	}
}

// One process has it; a path that depends on where that was started is none.
func TestOpen(t *testing.T) {
	if _, err := Open(background, "snapshots", "n1"); err == nil {
		t.Error("a relative path")
	}
	_, dir := open(t, nil)
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := Open(ctx, dir, "n1"); err == nil {
		t.Error("two have it")
	}
}

func (l *lost) Sweep(context.Context) error { l.asked++; return l.err }

// The sweep removes half-made copies outside of the zone, too, and tells which ones it cannot remove.
func TestSweepsTheFolder(t *testing.T) {
	z, dir := open(t, &lost{err: fault.New(fault.NoZone, "gone")})
	inTheWay := filepath.Join(dir, ".deleting-s-1", "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := z.Sweep(background); !fault.Is(err, fault.Internal) {
		t.Errorf("it cannot be removed: %v", err)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := z.Sweep(background); !fault.Is(err, fault.NoZone) {
		t.Errorf("there is no zone: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(inTheWay)); !os.IsNotExist(err) {
		t.Errorf("it is left: %v", err)
	}
}
