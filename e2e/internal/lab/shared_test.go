// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"reflect"
	"strings"
	"testing"

	"stargate/e2e/internal/vm"
)

const bootedState = `file	/root	d 700 0:0
file	/root/in/data	f 644 0:0 5 1000.5
mount	/	/dev/vda ext4
mount	/tmp	tmpfs tmpfs
block	vda	8388608
link	lo
setting	/proc/sys/kernel/hostname	g1
setting	/proc/sys/vm/swappiness	60
`

// The rig removes leftovers of scripts in order: a mount before the mount that it covers, and
// devices before the files that may contain their data.
func TestLeftOversAreUndone(t *testing.T) {
	booted := parseState(bootedState)
	now := parseState(strings.ReplaceAll(bootedState, "swappiness\t60", "swappiness\t10") +
		`file	/mnt/a	d 755 0:0
file	/tmp/x	f 644 0:0 1 2000.5
mount	/mnt/a	/dev/loop0 ext4
mount	/mnt/a/b	none tmpfs
mount	/tmp	none overlay
block	loop0	2048
cgroup	/sys/fs/cgroup/a
cgroup	/sys/fs/cgroup/a/b
`)
	want := strings.Fields(`umount /tmp umount /mnt/a/b umount /mnt/a devices - remove /mnt/a remove /tmp/x
		set /proc/sys/vm/swappiness=60`)
	want[7] = ""
	got := booted.undo(now)
	var files []string
	for i := 0; i < len(got); i += 2 {
		if got[i] == "rmdir" {
			files = append(files, got[i+1])
		}
	}
	if !reflect.DeepEqual(files, []string{"/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a"}) {
		t.Errorf("control groups: %q", files)
	}
	var others []string
	for i := 0; i < len(got); i += 2 {
		if got[i] != "rmdir" {
			others = append(others, got[i], got[i+1])
		}
	}
	if !reflect.DeepEqual(others, want) {
		t.Errorf("got %q, wanted %q", others, want)
	}
	if booted.differs(now) == "" {
		t.Error("differs found no difference")
	}
}

func TestNothingIsLeftOver(t *testing.T) {
	booted := parseState(bootedState)
	if work := booted.undo(parseState(bootedState)); work != nil {
		t.Errorf("got %q", work)
	}
	if other := booted.differs(parseState(bootedState)); other != "" {
		t.Error(other)
	}
}

// The rig detects changes that it cannot undo, and reboots the guest.
func TestChangesThatStayAreSeen(t *testing.T) {
	booted := parseState(bootedState)
	for what, c := range map[string]struct{ from, to string }{
		"a file of the rig was replaced":     {"f 644 0:0 5 1000.5", "f 644 0:0 6 1700.5"},
		"a file was removed":                 {"file\t/root/in/data\tf 644 0:0 5 1000.5\n", ""},
		"a folder has another mode":          {"d 700 0:0", "d 777 0:0"},
		"a file system was unmounted":        {"mount\t/tmp\ttmpfs tmpfs\n", ""},
		"a disk has another size":            {"vda\t8388608", "vda\t16"},
		"a new interface exists":             {"link\tlo\n", "link\tlo\nlink\teth0\n"},
		"a setting that tidy cannot restore": {"hostname\tg1", "hostname\tg7"},
	} {
		now := parseState(strings.Replace(bootedState, c.from, c.to, 1))
		if booted.differs(now) == "" {
			t.Errorf("%s: not seen", what)
		}
	}
}

// The rig judges only the part of a log that was written during the current script. A script also
// sees only this part.
func TestOnlyTheUnjudgedPartCounts(t *testing.T) {
	l := testLab()
	m := l.members["g1"]
	log := []byte("[    1.0] BUG: of the last script\n[    2.0] BUG: of this one\n")
	if got := m.unjudged("console", log); len(got) != len(log) {
		t.Errorf("the unjudged part of an ended life is %q", got)
	}
	m.guest, m.judged = &vm.Guest{Console: "console"}, int64(len("[    1.0] BUG: of the last script\n"))
	if got := string(m.unjudged("console", log)); got != "[    2.0] BUG: of this one\n" {
		t.Errorf("got %q", got)
	}
	if got := m.unjudged("another", log); len(got) != len(log) {
		t.Errorf("the unjudged part of an earlier life is %q", got)
	}
}
