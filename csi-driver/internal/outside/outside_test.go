// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

var background = context.Background()

// lost is a zone that was lost in a power failure, or a zone without room.
type lost struct {
	pool.Zone
	err     error
	asked   int
	copying func() // called in the middle of a copy
}

func (l *lost) Snapshot(context.Context, pool.ID) (pool.Snapshot, error) {
	l.asked++
	return pool.Snapshot{}, l.err
}
func (l *lost) DeleteSnapshot(context.Context, pool.ID) error { l.asked++; return l.err }
func (l *lost) TakeSnapshot(context.Context, string, pool.Volume, pool.Target) (pool.Snapshot, error) {
	l.asked++
	return pool.Snapshot{}, l.err
}
func (l *lost) Space(context.Context, pool.Volume) (stargatectl.Space, error) {
	return stargatectl.Space{}, nil
}
func (l *lost) CopyOut(_ context.Context, _ pool.Volume, file string) error {
	if l.copying != nil {
		l.copying()
	}
	return os.WriteFile(file, []byte("bytes"), 0o600)
}

func open(t *testing.T, z pool.Zone) (*Zone, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snapshots")
	f, err := Open(background, dir, "n1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f.Beside(z), dir
}

// The driver finds and deletes snapshots in the folder even if the zone is lost.
func TestWithoutAZone(t *testing.T) {
	l := &lost{err: errkind.New(errkind.NoZone, "gone")}
	z, dir := open(t, l)
	if _, err := z.TakeSnapshot(background, "s-1", pool.Volume{Name: "v", Size: 1 << 20}, pool.InFolder); err != nil {
		t.Fatal(err)
	}
	if s, err := z.Snapshot(background, pool.ID{Name: "s-1"}); err != nil || !s.Outside || s.Source != "v" || s.Path != filepath.Join(dir, "s-1@v.snapshot") {
		t.Errorf("%+v, %v", s, err)
	}
	if err := z.DeleteSnapshot(background, pool.ID{Name: "s-1"}); err != nil {
		t.Error(err)
	}
	if l.asked > 0 {
		t.Error("the driver called the zone")
	}
	for what, err := range map[string]error{"delete": z.DeleteSnapshot(background, pool.ID{Name: "s-1"}), "look": func() error {
		_, err := z.Snapshot(background, pool.ID{Name: "s-1"})
		return err
	}()} {
		if !errkind.Is(err, errkind.NoZone) {
			t.Errorf("%s: the driver cannot know whether the zone has the snapshot, but returned %v", what, err)
		}
	}
}

// An id names the place of its snapshot, and the driver searches only there. It does not search the
// zone, which may be missing, and whose snapshot of that name is a different one.
func TestPlaceOfID(t *testing.T) {
	l := &lost{err: errkind.New(errkind.NoZone, "gone")}
	z, _ := open(t, l)
	taken, err := z.TakeSnapshot(background, "s-1", pool.Volume{Name: "v", Zone: "0123456789abcdef", Size: 1 << 20}, pool.InFolder)
	if err != nil || taken.Zone == "" || taken.SourceID() != (pool.ID{Name: "v"}) {
		t.Fatalf("%+v, %v", taken, err)
	}
	of, ok := pool.ParseID(taken.ID())
	if at, err := z.Place(background, of); !ok || err != nil || at != taken.Zone {
		t.Errorf("%s is at %q, %v", taken.ID(), at, err)
	}
	there := pool.ID{Name: "s-1", Zone: "0123456789abcdef"}
	if _, err := z.Snapshot(background, there); !errkind.Is(err, errkind.NoZone) {
		t.Errorf("the driver did not call the zone: %v", err)
	}
	if err := z.DeleteSnapshot(background, there); !errkind.Is(err, errkind.NoZone) {
		t.Errorf("the driver did not delete the snapshot in the zone: %v", err)
	}
	asked := l.asked
	if s, err := z.Snapshot(background, of); err != nil || s != taken {
		t.Errorf("the snapshot is %+v, %v, and was %+v", s, err, taken)
	}
	for range 2 {
		if err := z.DeleteSnapshot(background, of); err != nil {
			t.Error(err)
		}
	}
	if _, err := z.Snapshot(background, of); !errkind.Is(err, errkind.NotFound) || l.asked != asked {
		t.Errorf("%v; the driver called the zone %d times", err, l.asked-asked)
	}
}

// If the folder is removed, or another folder is mounted in its place, the driver reports an error.
// It neither finds nor deletes snapshots there.
func TestAnotherFolder(t *testing.T) {
	z, dir := open(t, &lost{})
	taken, err := z.TakeSnapshot(background, "s-1", pool.Volume{Name: "v", Size: 1 << 20}, pool.InFolder)
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
		for _, of := range []pool.ID{{Name: "s-1"}, {Name: "s-1", Zone: taken.Zone}} {
			if err := z.DeleteSnapshot(background, of); !errkind.Is(err, errkind.NoAnswer) {
				t.Errorf("the driver deletes %s from another folder: %v", of, err)
			}
		}
		if _, err := z.TakeSnapshot(background, "s-2", pool.Volume{Name: "v"}, pool.InFolder); !errkind.Is(err, errkind.NoAnswer) {
			t.Errorf("the driver stores a snapshot in another folder: %v", err)
		}
		if _, err := z.folder.Snapshots(); !errkind.Is(err, errkind.NoAnswer) {
			t.Errorf("the driver reads snapshots of another folder: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir+".away", "s-1@v.snapshot")); err != nil {
		t.Error(err)
	}
}

func TestTargets(t *testing.T) {
	full, broken := errkind.New(errkind.NoSpace, "full"), errkind.New(errkind.Internal, "broken")
	for _, c := range []struct {
		target pool.Target
		zone   error
		kind   errkind.Kind
		taken  bool
	}{
		{pool.InZone, full, errkind.NoSpace, false}, {pool.Either, full, 0, true}, {pool.InFolder, full, 0, true},
		{pool.InZone, broken, errkind.Internal, false}, {pool.Either, broken, errkind.Internal, false}, {pool.InFolder, broken, 0, true},
	} {
		z, _ := open(t, &lost{err: c.zone})
		s, err := z.TakeSnapshot(background, "s-1", pool.Volume{Name: "v"}, c.target)
		if s.Outside != c.taken || (err == nil) != c.taken || err != nil && !errkind.Is(err, c.kind) {
			t.Errorf("target %s, and the zone fails with %v: %+v, %v", c.target, c.zone, s, err)
		}
	}
}

// within is a zone that has snapshots.
type within struct {
	lost
	all []pool.Snapshot
	err error
}

func (w *within) Snapshots(context.Context) ([]pool.Snapshot, error) { return w.all, w.err }

// The snapshots of zone and folder form one list, sorted by name, so that its pages are complete.
func TestSorted(t *testing.T) {
	z, _ := open(t, &within{all: []pool.Snapshot{{Name: "s-b"}, {Name: "s-d"}}})
	for _, name := range []string{"s-a", "s-c", "s-e"} {
		if _, err := z.TakeSnapshot(background, name, pool.Volume{Name: "v"}, pool.InFolder); err != nil {
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

// If the zone cannot be read, the snapshots of the folder are still listed, and the reverse.
func TestOneUnread(t *testing.T) {
	w := &within{err: errkind.New(errkind.NoAnswer, "the zone does not answer")}
	z, dir := open(t, w)
	if _, err := z.TakeSnapshot(background, "s-a", pool.Volume{Name: "v"}, pool.InFolder); err != nil {
		t.Fatal(err)
	}
	all, err := z.Snapshots(background)
	if len(all) != 1 || all[0].Name != "s-a" || !errkind.Is(err, errkind.NoAnswer) {
		t.Errorf("without the zone: %+v, %v", all, err)
	}
	w.all, w.err = []pool.Snapshot{{Name: "s-b"}}, nil
	if err := os.Rename(dir, dir+"-gone"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir + "-gone") })
	all, err = z.Snapshots(background)
	if len(all) != 1 || all[0].Name != "s-b" || err == nil {
		t.Errorf("without the folder: %+v, %v", all, err)
	}
}

// Concurrent copies do not use the same room: the second copy gets the rest.
func TestTwoCopiesAtOnce(t *testing.T) {
	l := &lost{}
	z, _ := open(t, l)
	free, err := z.folder.(folder.Folder).Free()
	if err != nil {
		t.Fatal(err)
	}
	take := func(name string) error {
		_, err := z.TakeSnapshot(background, name, pool.Volume{Name: "v", Size: free / 3 * 2}, pool.InFolder)
		return err
	}
	l.copying = func() {
		l.copying = nil
		if err := take("s-2"); !errkind.Is(err, errkind.NoSpace) {
			t.Errorf("during the first copy: %v", err)
		}
	}
	if err := take("s-1"); err != nil {
		t.Error(err)
	}
	if err := take("s-2"); err != nil {
		t.Errorf("after the first copy: %v", err)
	}
}

// Only one process at a time can open the folder. Open refuses a relative path.
func TestOpen(t *testing.T) {
	if _, err := Open(background, "snapshots", "n1"); err == nil {
		t.Error("Open accepts a relative path")
	}
	_, dir := open(t, nil)
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := Open(ctx, dir, "n1"); err == nil {
		t.Error("two processes open the folder at the same time")
	}
}

func (l *lost) Sweep(context.Context) error { l.asked++; return l.err }

// Sweep also removes incomplete copies in the folder, and reports the copies that it cannot remove.
func TestSweepsTheFolder(t *testing.T) {
	z, dir := open(t, &lost{err: errkind.New(errkind.NoZone, "gone")})
	inTheWay := filepath.Join(dir, ".deleting-s-1", "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := z.Sweep(background); !errkind.Is(err, errkind.Internal) {
		t.Errorf("Sweep of a copy that cannot be removed: %v", err)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if err := z.Sweep(background); !errkind.Is(err, errkind.NoZone) {
		t.Errorf("there is no zone: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(inTheWay)); !os.IsNotExist(err) {
		t.Errorf("Sweep does not remove the incomplete copy: %v", err)
	}
}

// silent is a folder on a server that does not answer until it is released.
type silent struct {
	released chan struct{}
	mu       sync.Mutex
	begun    map[string]int
}

func (f *silent) wait(what string) {
	f.mu.Lock()
	f.begun[what]++
	f.mu.Unlock()
	<-f.released
}

func (f *silent) Snapshots() ([]pool.Snapshot, error) {
	f.wait("look")
	return []pool.Snapshot{{Name: "s-2"}}, nil
}
func (f *silent) Take(context.Context, folder.Source, string, pool.Volume) (pool.Snapshot, error) {
	f.wait("take")
	return pool.Snapshot{Name: "s-3"}, nil
}
func (f *silent) Delete(context.Context, string) error { f.wait("delete"); return nil }
func (f *silent) Sweep(context.Context, func(string) bool) error {
	f.wait("sweep")
	return nil
}

// If the folder's server does not answer, every call still ends, and only one read is running.
// Calls to the zone are not affected.
func TestFolderWithoutAnswer(t *testing.T) {
	z, _ := open(t, listed{})
	f := &silent{released: make(chan struct{}), begun: map[string]int{}}
	z.folder = f
	here := pool.ID{Name: "s-2", Zone: z.id}
	calls := map[string]func(context.Context) error{
		"look":   func(ctx context.Context) error { _, err := z.Snapshot(ctx, here); return err },
		"delete": func(ctx context.Context) error { return z.DeleteSnapshot(ctx, here) },
		"sweep":  z.Sweep,
		"take": func(ctx context.Context) error {
			_, err := z.TakeSnapshot(ctx, "s-3", pool.Volume{Name: "v"}, pool.InFolder)
			return err
		},
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
		all, err := z.Snapshots(ctx)
		cancel()
		if len(all) != 1 || !errkind.Is(err, errkind.NoAnswer) {
			t.Errorf("%+v, %v", all, err)
		}
		for what, call := range calls {
			ended := make(chan error, 1)
			ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
			go func() { ended <- call(ctx) }()
			select {
			case err := <-ended:
				if !errkind.Is(err, errkind.NoAnswer) {
					t.Errorf("%s: %v", what, err)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s does not end", what)
			}
			cancel()
		}
	}
	if f.begun["look"] != 1 || len(f.begun) != 1 {
		t.Errorf("the operations that began are %v", f.begun)
	}
	close(f.released)
	if all, err := z.Snapshots(background); len(all) != 2 || err != nil {
		t.Errorf("with an answer: %+v, %v", all, err)
	}
	for what, call := range calls {
		if err := call(background); err != nil || what != "look" && f.begun[what] != 1 {
			t.Errorf("%s with an answer: %v, begun %d times", what, err, f.begun[what])
		}
	}
}

// If a server stops answering during a change, the call still ends after a while. Only a few
// changes can remain in that state, and reads continue.
func TestFolderStopsToAnswer(t *testing.T) {
	z, _ := open(t, listed{})
	f := &silent{released: make(chan struct{}), begun: map[string]int{}}
	z.folder, z.ending = answersReads{f}, 10*time.Millisecond
	here := pool.ID{Name: "s-2", Zone: z.id}
	for range 3 * changesAtOnce {
		ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
		if err := z.DeleteSnapshot(ctx, here); !errkind.Is(err, errkind.NoAnswer) {
			t.Errorf("%v", err)
		}
		if _, err := z.TakeSnapshot(ctx, "s-3", pool.Volume{Name: "v"}, pool.InFolder); !errkind.Is(err, errkind.NoAnswer) {
			t.Errorf("%v", err)
		}
		cancel()
	}
	f.mu.Lock()
	left := f.begun["delete"] + f.begun["take"]
	f.mu.Unlock()
	if left != changesAtOnce {
		t.Errorf("%d changes have begun", left)
	}
	if all, err := z.Snapshots(background); len(all) != 2 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	close(f.released)
}

// answersReads is a folder whose server answers only reads.
type answersReads struct{ *silent }

func (answersReads) Snapshots() ([]pool.Snapshot, error) {
	return []pool.Snapshot{{Name: "s-2"}}, nil
}

// listed is a zone that lists one snapshot.
type listed struct{ pool.Zone }

func (listed) Sweep(context.Context) error { return nil }

func (listed) Snapshots(context.Context) ([]pool.Snapshot, error) {
	return []pool.Snapshot{{Name: "s-1"}}, nil
}
