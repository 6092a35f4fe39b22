// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// logged returns a zone with scripted tools that log their arguments.
func logged(t *testing.T) (z *Zone, asked func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	text := "#!/bin/sh\necho \"$*\" >>" + log + "\ncase $2 in slots | systems) cat " + dir + "/$2; exit ;; esac\n" + script[len("#!/bin/sh\n"):]
	for _, name := range []string{"slots", "systems"} {
		is := `{"` + name + `": [{"slot": 1, "incarnation": 2, "name": "a", "state": "recovering"}]}`
		if err := os.WriteFile(filepath.Join(dir, name), []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	z = zoneWith(t, toolsOf(t, text, text))
	return z, func() string {
		said, err := os.ReadFile(log)
		if err == nil {
			err = os.Remove(log)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(said)
	}
}

const mib = int64(1) << 20

// says writes an address into a volume's file. The length does not change.
func (z *Zone) says(t *testing.T, name string, base int64) {
	t.Helper()
	f, err := os.OpenFile(z.path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, `{"base": "%#x", "size": %d, "max_size": %d}`+"\n", base, 32*mib, 64*mib); err != nil {
		t.Fatal(err)
	}
	if st, err := f.Stat(); err != nil || st.Size() < 32*mib {
		if err := f.Truncate(32 * mib); err != nil {
			t.Fatal(err)
		}
	}
}

// Members that have a volume as memory can write the address in its superblock. This does not
// affect other volumes. The volume keeps its addresses, and does not get the written addresses. The
// driver refuses to use the volume.
func TestMemberWritesAnotherAddress(t *testing.T) {
	const evil, good = int64(64) << 30, int64(64)<<30 + 32*mib
	for what, says := range map[string]int64{
		"behind a neighbour": good + 32*mib, "its neighbour's": good, "far away": good + 512*mib, "outside of the zone": 1 << 40,
	} {
		z, _ := logged(t)
		z.says(t, "evil", evil)
		z.says(t, "good", good)
		before, err := z.Status(background)
		if err != nil {
			t.Fatal(err)
		}
		z.says(t, "evil", says)
		for range 2 {
			if s, err := z.Status(background); err != nil || s.Largest != before.Largest || s.Free != before.Free || s.Damaged {
				t.Errorf("%s: the status is %+v, %v, and was %+v", what, s, err, before)
			}
			v, err := z.Get(background, "evil")
			if err != nil || v.State != pool.Moved || !strings.Contains(v.Why, fmt.Sprintf("%#x", says)) {
				t.Errorf("%s: %+v, %v", what, v, err)
			}
			v, err = z.Get(background, "good")
			if err != nil || v.State != pool.Ready {
				t.Errorf("%s: its neighbour is %+v, %v", what, v, err)
			}
			if _, err := z.extend(background, v, 64*mib); err != nil {
				t.Errorf("%s: its neighbour cannot grow: %v", what, err)
			}
			z.release("good")
			if err := z.reserve(background, pool.Spec{Name: "new", Size: 16 * mib, Align: pool.Extent}); err != nil || z.reserved("new").Base != good+32*mib {
				t.Errorf("%s: a new volume is at %#x, %v", what, z.reserved("new").Base, err)
			}
			z.release("new")
			z.Close() // another driver takes over
			if z, err = Open(background, z.config, z.tools); err != nil {
				t.Fatal(err)
			}
		}
		z.Close()
	}
}

// Members that have a volume as memory can extend its file. Such a file takes no addresses from
// other volumes, and no program examines it. The driver never truncates the file, because an
// operator may have extended the file and the file system.
func TestMemberExtendsFile(t *testing.T) {
	const evil, good = int64(64) << 30, int64(64)<<30 + 32*mib
	z, asked := logged(t)
	z.says(t, "evil", evil)
	z.says(t, "good", good)
	before, err := z.Status(background)
	if err != nil {
		t.Fatal(err)
	}
	longer := func() {
		t.Helper()
		if err := os.Truncate(z.path("evil"), 1<<40); err != nil {
			t.Fatal(err)
		}
		asked()
	}
	longer()
	if s, err := z.Status(background); err != nil || s.Largest != before.Largest || s.Damaged {
		t.Errorf("the status is %+v, %v, and was %+v", s, err, before)
	}
	if all, err := z.List(background); err != nil || len(all) != 2 || all[0].State != pool.Damaged || all[1].State != pool.Ready {
		t.Errorf("%+v, %v", all, err)
	}
	if v, err := z.Get(background, "evil"); err != nil || v.State != pool.Damaged || v.Size != 32*mib || !strings.Contains(v.Why, "longer") {
		t.Errorf("%+v, %v", v, err)
	}
	if err := z.reserve(background, pool.Spec{Name: "new", Size: 16 * mib, Align: pool.Extent}); err != nil || z.reserved("new").Base != good+32*mib {
		t.Errorf("a new volume is at %#x, %v", z.reserved("new").Base, err)
	}
	z.release("new")
	if said := asked(); strings.Contains(said, "evil") {
		t.Errorf("a program has read the extended file: %s", said)
	}
	if err := z.Sweep(background); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(z.path("evil")); err != nil || st.Size() != 1<<40 {
		t.Errorf("Sweep has truncated the file: %v, %v", st, err)
	}
	if err := os.Truncate(z.path("evil"), 32*mib); err != nil {
		t.Fatal(err)
	}
	if v, err := z.Get(background, "evil"); err != nil || v.State != pool.Ready || v.Memory != 32*mib {
		t.Errorf("after its file was truncated, the volume is %+v, %v", v, err)
	}
	if st, err := os.Stat(z.path("good")); err != nil || st.Size() != 32*mib {
		t.Errorf("its neighbour has %v, %v", st, err)
	}
	longer()
	held, err := os.OpenFile(z.path("evil"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Delete(background, "evil"); !errkind.Is(err, errkind.InUse) {
		t.Errorf("Delete while a process has the file open: %v", err)
	}
	if st, err := held.Stat(); err != nil || st.Size() != 1<<40 {
		t.Errorf("a refused deletion has truncated the file: %v, %v", st, err)
	}
	if said := asked(); strings.Contains(said, "evil") {
		t.Errorf("a program has read the extended file: %s", said)
	}
	held.Close()
	if err := z.Delete(background, "evil"); err != nil {
		t.Error(err)
	}
	if got := z.files(t); strings.Join(got, " ") != place+"good good"+suffix {
		t.Errorf("there are %q", got)
	}
}

// A volume's stored place remains when the creation of another volume of its name fails.
func TestNotMadeTwice(t *testing.T) {
	z := formats(t, `truncate -s 16M "$file"`)
	z.says(t, "w", 64<<30+512*mib)
	if _, err := z.Status(background); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Create(background, small); !errkind.Is(err, errkind.Exists) {
		t.Errorf("made: %v", err)
	}
	if at, noted, err := z.placed("w"); err != nil || !noted || at != (pool.Span{Base: 64<<30 + 512*mib, Size: 32 * mib}) {
		t.Errorf("the volume's stored place is %+v, %v, %v", at, noted, err)
	}
	if err := z.Sweep(background); err != nil || len(z.files(t)) != 2 {
		t.Errorf("there are %q, %v", z.files(t), err)
	}
}

// If a VM was killed while it recovered a slot, the slot remains in recovery. It prevents the
// volume's deletion only while a process can store in the volume.
func TestKilledDuringRecovery(t *testing.T) {
	z, _ := logged(t)
	z.says(t, "v", 64<<30)
	held, err := os.OpenFile(z.path("v"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Delete(background, "v"); !errkind.Is(err, errkind.Busy) {
		t.Errorf("Delete while a process can store in the volume: %v", err)
	}
	held.Close()
	if err := z.Delete(background, "v"); err != nil {
		t.Errorf("Delete after the last process has closed the file: %v", err)
	}
}
