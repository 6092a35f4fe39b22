// SPDX-License-Identifier: Apache-2.0

package dax

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Reserved memory and LVM exist only in a VM (e2e/scenarios/csi.sh). In these tests, a script
// prints stargatectl's output, so that the tests see the reaction to each output. The script logs
// its arguments in the file calls, and prints zone.json, volumes.json, or the requested row. A call
// that changes something ends as the file status says: with a number, a reason for programs, and a
// message.
const script = `#!/bin/sh
cd "$(dirname "$0")"
[ "$1" != -j ] || shift
echo "$*" >>calls
refuse() { [ -z "$2" ] || echo "{\"reason\": \"$2\"}"; echo "stargatectl: $3" >&2; exit "$1"; }
case "$1 $2" in
"zone show") cat zone.json ;;
"volume list") cat volumes.json ;;
"volume show") tr -d '\n' <volumes.json | grep -o "{[^{]*\"volume\": \"${3#*/}\"[^}]*}" || refuse 3 not-found "there is none" ;;
*) read status reason words <status; [ "$status" = 0 ] || refuse "$status" "${reason#-}" "$words" ;;
esac
`

const zoneJSON = `{"zones": [{"zone": "sm", "uuid": "Ab-1", "size": 1073741824, "free": 536870912, "largest_volume": 268435456, "largest_volume_1g": 0,
  "volumes": 2, "others": 1, "devices": [{"path": "/dev/pmem0", "base": "0x400200000", "size": 1073741824, "present": true, "dax": true}]}]}`

const volumesJSON = `{"volumes": [
  {"zone": "sm", "zone_uuid": "Ab-1", "volume": "b", "state": "ready", "device": "/dev/sm/b", "base": "0x410000000", "size": 33554432, "alignment": 268435456,
   "uuid": "u", "label": "l", "can_grow_to": 67108864, "systems": 0},
  {"zone": "sm", "volume": "a", "state": "in use", "device": "/dev/sm/a", "base": "0x400200000", "size": 67108864, "file_system": 33554432,
   "alignment": 2097152, "can_grow_to": 67108864, "systems": 1, "mounted": "/mnt"},
  {"zone": "sm", "volume": "half", "state": "unfinished", "device": "/dev/sm/half", "base": "0x420000000", "size": 33554432, "alignment": 2097152},
  {"zone": "sm", "volume": "other", "state": "foreign", "device": "/dev/sm/other", "base": "0x430000000", "size": 33554432, "alignment": 2097152},
  {"zone": "sm", "volume": "gone", "state": "moved", "device": "/dev/sm/gone", "base": "0x440000000", "size": 33554432, "alignment": 2097152}]}`

type stand struct {
	*Zone
	dir string
}

func (s stand) put(t *testing.T, name, text string) {
	t.Helper()
	mode := os.FileMode(0o644)
	if !strings.Contains(name, ".json") {
		mode = 0o755
	}
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func (s stand) calls(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func newStand(t *testing.T, status string) stand {
	t.Helper()
	s := stand{dir: t.TempDir()}
	s.put(t, stargatectl.Ctl, script)
	s.put(t, stargatectl.Mkfs, script)
	s.put(t, "zone.json", zoneJSON)
	s.put(t, "volumes.json", volumesJSON)
	s.put(t, "status", status)
	found, err := stargatectl.New(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Zone, err = New("sm", found, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	return s
}

var background = context.Background()

func TestLooks(t *testing.T) {
	s := newStand(t, "0")
	st, err := s.Status(background)
	if err != nil || st.Largest != 256<<20 || st.Largest1G != 0 || st.Free != 512<<20 || st.Damaged {
		t.Errorf("%+v, %v", st, err)
	}
	if id, err := s.Place(background, pool.ID{}); err != nil || id == "" || id != pool.Identity(pool.DAX, "Ab-1") {
		t.Errorf("the zone's identity is %q, %v", id, err)
	} else if v, err := s.Get(background, "b"); err != nil || v.Zone != id {
		t.Errorf("a volume is in zone %q, %v", v.Zone, err)
	}
	volumes, err := s.List(background)
	names := ""
	for _, v := range volumes {
		names += v.Name + " "
	}
	if err != nil || names != "a b gone " {
		t.Errorf("%s, %v", names, err)
	}
	if a := volumes[0]; a.Size != 32<<20 || a.Base != 0x400200000 || a.State != pool.InUse || a.CanGrowTo != 64<<20 {
		t.Errorf("%+v: the volume has grown, but its file system has not", a)
	}
	if gone := volumes[2]; gone.State.Whole() || !strings.Contains(gone.Why, "relocate") {
		t.Errorf("%+v", gone)
	}
	for _, name := range []string{"half", "none"} {
		if _, err := s.Get(background, name); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := s.Get(background, "b"); err != nil || b.Size != 32<<20 || b.Base != 0x410000000 {
		t.Errorf("%+v, %v", b, err)
	}
	if strays, err := s.Strays(background); err != nil || fmt.Sprint(strays) != "[other]" {
		t.Errorf("%v, %v", strays, err)
	}
	s.put(t, "zone.json", strings.Replace(zoneJSON, `"present": true`, `"present": false`, 1))
	if st, err := s.Status(background); err != nil || !st.Damaged || !strings.Contains(st.Why, "/dev/pmem0") {
		t.Errorf("%+v, %v", st, err)
	}
	s.put(t, "zone.json", `{"zones": []}`)
	if _, err := s.Status(background); !errkind.Is(err, errkind.NoZone) {
		t.Errorf("%v", err)
	}
	s.put(t, "zone.json", `nonsense`)
	if _, err := s.Status(background); !errkind.Is(err, errkind.NoAnswer) {
		t.Errorf("%v", err)
	}
}

// If the kernel cannot mount the file system, the zone exists but has no room.
func TestKernelWithoutFileSystem(t *testing.T) {
	s := newStand(t, "0")
	s.mountable = func() bool { return false }
	st, err := s.Status(background)
	if err != nil || !st.Damaged || !strings.Contains(st.Why, "stargatefs") || st.Size != 1<<30 {
		t.Errorf("%+v, %v", st, err)
	}
	if st.LargestAt(pool.Extent, 0) > 0 || st.LargestAt(pool.Gigabyte, 0) > 0 {
		t.Errorf("the zone has room: %+v", st)
	}
	s.madeNowhere(t, "stargatefs")
	if calls := s.calls(t); strings.Contains(calls, "volume create") || strings.Contains(calls, "volume clone") {
		t.Errorf("the driver still runs stargatectl:\n%s", calls)
	}
}

// madeNowhere fails the test unless the driver refuses a new volume with an error that sends it to
// another node.
func (s stand) madeNowhere(t *testing.T, why string) {
	t.Helper()
	spec := pool.Spec{Name: "n", Size: pool.MinVolume, Align: pool.Extent}
	makes := map[string]func() error{
		"create": func() error { _, err := s.Create(background, spec); return err },
		"clone":  func() error { _, err := s.Clone(background, spec, pool.Volume{Name: "b"}); return err },
	}
	for what, do := range makes {
		if err := do(); !errkind.Is(err, errkind.NoSpace) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A damaged zone has no room, so that the scheduler tries other nodes. The driver still finds
// existing volumes.
func TestDamagedHasNoRoom(t *testing.T) {
	s := newStand(t, "1 failed Input/output error")
	s.put(t, "zone.json", strings.Replace(zoneJSON, `"dax": true`, `"dax": false`, 1))
	st, err := s.Status(background)
	if err != nil || !st.Damaged || st.LargestAt(pool.Extent, 0) > 0 || st.LargestAt(pool.Gigabyte, 0) > 0 {
		t.Errorf("%+v, %v", st, err)
	}
	s.madeNowhere(t, "/dev/pmem0")
	if _, err := s.Get(background, "b"); err != nil {
		t.Error(err)
	}
}

// stargatectl removes leftovers before each change of the zone. So Sweep runs `stargatectl volume
// delete` with a name that no volume has. With the name of a leftover, that command could delete a
// volume that another command has just completed. Without leftovers, Sweep changes nothing.
func TestSweep(t *testing.T) {
	s := newStand(t, "3 not-found there is none")
	if err := s.Sweep(background); err != nil {
		t.Error(err)
	}
	if calls := s.calls(t); strings.Count(calls, "volume delete") != 1 || !strings.Contains(calls, "volume delete sm/"+pool.Nobodys()+"\n") {
		t.Errorf("calls:\n%s", calls)
	}
	s.put(t, "status", "1 failed Input/output error")
	if err := s.Sweep(background); !errkind.Is(err, errkind.Internal) {
		t.Error(err)
	}
	s = newStand(t, "0")
	s.put(t, "volumes.json", strings.Replace(volumesJSON, `"unfinished"`, `"snapshot"`, 1))
	if err := s.Sweep(background); err != nil || s.calls(t) != "volume list sm\n" {
		t.Errorf("%v, calls:\n%s", err, s.calls(t))
	}
}

// The driver treats a zone as absent only if the tool reports that it is absent. If the tool fails
// or is killed, the state of the zone is unknown.
func TestNoZoneAndNoAnswer(t *testing.T) {
	looks := map[string]func(s stand, ctx context.Context) error{
		"status": func(s stand, ctx context.Context) error { _, err := s.Status(ctx); return err },
		"list":   func(s stand, ctx context.Context) error { _, err := s.List(ctx); return err },
		"get":    func(s stand, ctx context.Context) error { _, err := s.Get(ctx, "b"); return err },
		"delete": func(s stand, ctx context.Context) error { return s.Delete(ctx, "b") },
	}
	ended, end := context.WithCancel(background)
	end()
	for what, look := range looks {
		for answer, kind := range map[string]errkind.Kind{
			`echo '{"reason": "no-zone"}'; echo "there is no zone" >&2; exit 9`:        errkind.NoZone,
			`echo '{"reason": "failed"}'; echo "Input/output error" >&2; exit 1`:       errkind.NoAnswer,
			`echo '{"reason": "busy"}'; echo "another command is running" >&2; exit 7`: errkind.NoAnswer,
			`echo "stargatectl: killed" >&2; kill -9 $$`:                               errkind.NoAnswer,
			`echo "[]"`: errkind.NoAnswer,
		} {
			s := newStand(t, "0")
			s.put(t, stargatectl.Ctl, "#!/bin/sh\n"+answer+"\n")
			if err := look(s, background); !errkind.Is(err, kind) {
				t.Errorf("%s, %s: %v", what, answer, err)
			}
		}
		if err := look(newStand(t, "0"), ended); !errkind.Is(err, errkind.NoAnswer) {
			t.Errorf("%s, and no caller waits: %v", what, err)
		}
	}
}

func TestCommands(t *testing.T) {
	s := newStand(t, "0")
	spec := pool.Spec{
		Name: "b", Size: 32 << 20, Align: pool.Gigabyte, Label: "two words", MaxSize: 1 << 30, RootMode: "1777", RootOwner: "1:2", Lease: "9",
		HostSplice: true, DataAtomic: true,
	}
	if _, err := s.Create(background, spec); err != nil {
		t.Error(err)
	}
	if _, err := s.Grow(background, "b", 64<<20); err != nil {
		t.Error(err)
	}
	if v, err := s.Grow(background, "a", 1<<20); err != nil || v.Size != 32<<20 {
		t.Errorf("Grow to less than the volume's size: %+v, %v", v, err)
	}
	if v, err := s.Activate(background, "b"); err != nil || v.Name != "b" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, name := range []string{"half", "none", "other"} {
		if err := s.Delete(background, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	calls := s.calls(t)
	for _, line := range []string{
		"volume create sm/b --size 33554432 --align 1073741824 -- --label two words --max-size 1073741824" +
			" --root-owner 1:2 --root-mode 1777 --lease 9 --param host-splice --param data-atomic\n",
		"volume resize sm/b --size 67108864\n", "volume delete sm/half\n", "volume activate sm/b\n",
	} {
		if !strings.Contains(calls, line) {
			t.Errorf("without %q:\n%s", line, calls)
		}
	}
	for _, line := range []string{"delete sm/none", "delete sm/other", "resize sm/a"} {
		if strings.Contains(calls, line) {
			t.Errorf("with %q:\n%s", line, calls)
		}
	}
}

// Each reason of the tool becomes a kind of failure. The error has the tool's message.
func TestFailures(t *testing.T) {
	calls := map[string]func(s stand) error{
		"create": func(s stand) error {
			_, err := s.Create(background, pool.Spec{Name: "n", Size: 512 << 20, Align: pool.Extent})
			return err
		},
		"delete":   func(s stand) error { return s.Delete(background, "b") },
		"grow":     func(s stand) error { _, err := s.Grow(background, "b", 128<<20); return err },
		"activate": func(s stand) error { _, err := s.Activate(background, "b"); return err },
	}
	for _, c := range []struct {
		status string
		kind   errkind.Kind
		grow   errkind.Kind // the kind for grow, if it differs
	}{
		{"1 failed Input/output error", errkind.Internal, 0},
		{"1 - Input/output error", errkind.Internal, 0},
		{"127 - no such program", errkind.Internal, 0},
		{"2 - --size is nonsense", errkind.Invalid, 0},
		{"2 bad-argument --root-mode is nonsense", errkind.Invalid, 0},
		{"3 not-found there is no such volume", errkind.NotFound, 0},
		{"4 exists sm/a: exists already", errkind.Exists, 0},
		{"5 no-room no contiguous 512 MiB are free", errkind.NoSpace, errkind.OutOfRange},
		{"6 in-use is in use by g1", errkind.InUse, 0},
		{"7 busy another stargatectl is at work on it", errkind.Busy, 0},
		{"9 no-zone there is no zone", errkind.NoZone, 0},
		{"10 unusable is damaged", errkind.InUse, 0},
		{"11 of-later-days of a later version", errkind.Internal, 0},
	} {
		for name, do := range calls {
			want := c.kind
			if name == "grow" && c.grow != 0 {
				want = c.grow
			}
			err := do(newStand(t, c.status))
			if name == "delete" && want == errkind.NotFound {
				if err != nil {
					t.Errorf("another program has deleted the volume meanwhile: %v", err)
				}
				continue
			}
			words := strings.SplitN(c.status, " ", 3)[2]
			if !errkind.Is(err, want) || err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s, %s: kind %d, %v", name, c.status, errkind.KindOf(err), err)
			}
		}
	}
	if _, err := New("_bad", nil, nil); err == nil {
		t.Error("New accepts an invalid name of a zone")
	}
}

// The driver runs no command with an invalid name. Such a name may be LVM's own, or one that
// programs cannot handle.
func TestNamesThatCannotBe(t *testing.T) {
	s := newStand(t, "0")
	for _, name := range []string{"", "a\x00", "../b", "-f", "b other", strings.Repeat("n", 64)} {
		if _, err := s.Get(background, name); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("volume %q: %v", name, err)
		}
		if _, err := s.Snapshot(background, pool.ID{Name: name}); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("snapshot %q: %v", name, err)
		}
		if err := s.Delete(background, name); err != nil {
			t.Errorf("volume %q: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "calls")); err == nil {
		t.Errorf("calls: %s", s.calls(t))
	}
}

// Delete uses force for a volume with a damaged superblock. It does not use force for a readable
// volume, because the superblock names its users. With force, stargatectl still refuses a volume
// that a process of this node has open.
func TestDeleteDamaged(t *testing.T) {
	damaged := strings.Replace(volumesJSON, `"moved"`, `"damaged"`, 1)
	for name, want := range map[string]string{"gone": "volume delete sm/gone --force\n", "b": "volume delete sm/b\n"} {
		s := newStand(t, "0")
		s.put(t, "volumes.json", damaged)
		if err := s.Delete(background, name); err != nil || !strings.HasSuffix(s.calls(t), "\n"+want) {
			t.Errorf("%s: %v; the calls of stargatectl:\n%s", name, err, s.calls(t))
		}
	}
	s := newStand(t, "6 in-use is open here in another program")
	s.put(t, "volumes.json", damaged)
	if err := s.Delete(background, "gone"); !errkind.Is(err, errkind.InUse) {
		t.Errorf("%v", err)
	}
}
