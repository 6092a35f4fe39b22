// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Offsets in a volume of 16 MiB that mkfs.stargatefs makes (docs/format.md).
const (
	errorsAt = 4096 + 3*16 + 2*8 // the volume's count of errors, in the hot page
	slotsAt  = 0x2000
	slotSize = 256
	chunksAt = 0xc7000 // entries of 128 bytes, each with its bitmap in the second half
	lastBits = chunksAt + 5*128 + 64
)

// slotDead is the state of a slot whose system is dead.
const slotDead = 2

// volume is a new image that a test changes.
type volume struct {
	t    *testing.T
	path string
	fsck string
}

func newVolume(t *testing.T) volume {
	t.Helper()
	tools, err := filepath.Abs("../../../build/tools")
	if err != nil {
		t.Fatal(err)
	}
	v := volume{t, filepath.Join(t.TempDir(), "volume"), filepath.Join(tools, "fsck.stargatefs")}
	mkfs := filepath.Join(tools, "mkfs.stargatefs")
	for _, tool := range []string{mkfs, v.fsck} {
		if _, err := os.Stat(tool); err != nil {
			t.Skipf("%v: make build", err)
		}
	}
	f, err := os.Create(v.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(16 << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if out, err := exec.Command(mkfs, "--phys", "0x400000000", v.path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return v
}

// put stores a word.
func (v volume) put(offset int64, word uint64) {
	v.t.Helper()
	f, err := os.OpenFile(v.path, os.O_RDWR, 0)
	if err != nil {
		v.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, word), offset); err != nil {
		v.t.Fatal(err)
	}
}

// die makes the volume look as after a power cut of its only system.
func (v volume) die() {
	v.put(4096+3*16, 1) // the newest incarnation, which is that system's
	v.put(slotsAt+5*slotSize, slotDead|1<<32)
}

// leak marks pages as used, although they belong to no file.
func (v volume) leak() {
	v.put(lastBits, ^uint64(0))
	v.put(lastBits+8, 1<<36-1)
}

func (v volume) check(damageSeen bool) error { return checkVolume(v.fsck, v.path, damageSeen) }

// wants fails the test unless the error of checkVolume has all these words.
func wants(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("checkVolume accepts the volume, instead of reporting %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not contain %q: %v", word, err)
		}
	}
}

func TestCleanVolumePasses(t *testing.T) {
	if err := newVolume(t).check(false); err != nil {
		t.Error(err)
	}
}

func TestVolumeOfADeadSystemPasses(t *testing.T) {
	v := newVolume(t)
	v.die()
	looked, err := runFsck(v.fsck, "-n", v.path, false)
	if err != nil || !looked.Unclean {
		t.Fatalf("%+v, %v", looked, err)
	}
	if err := v.check(false); err != nil {
		t.Error(err)
	}
	if looked, err = runFsck(v.fsck, "-n", v.path, false); err != nil || looked.Unclean {
		t.Errorf("checkVolume has not recovered the volume: %+v, %v", looked, err)
	}
}

// Damage that recovery or preening would repair silently is still an error.
func TestLeakedPagesAreSeen(t *testing.T) {
	for _, dead := range []bool{false, true} {
		v := newVolume(t)
		v.leak()
		if dead {
			v.die()
		}
		wants(t, v.check(false), "fsck.stargatefs -n", "pages")
		wants(t, v.check(true), "fsck.stargatefs -n", "pages")
	}
}

func TestDamageSeenInUse(t *testing.T) {
	for _, dead := range []bool{false, true} {
		v := newVolume(t)
		v.put(errorsAt, 3)
		if dead {
			v.die()
		}
		wants(t, v.check(false), seenInUse+", 3 times")
		if err := v.check(true); err != nil {
			t.Errorf("checkVolume reports damage that the script expects: %v", err)
		}
	}
}

func TestLeakedPagesAndDamageSeen(t *testing.T) {
	v := newVolume(t)
	v.leak()
	v.put(errorsAt, 3)
	v.die()
	err := v.check(false)
	wants(t, err, seenInUse+", 3 times", "pages")
	wants(t, v.check(true), "pages")
}

func TestNoVolume(t *testing.T) {
	v := newVolume(t)
	if err := os.Truncate(v.path, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(v.path, 16<<20); err != nil {
		t.Fatal(err)
	}
	wants(t, v.check(false), "fsck.stargatefs -n", "holds no superblock of a StargateFS")
}

// fakeFsck makes a program that replaces fsck.stargatefs. For each mode, it exits with a status and
// prints a result. The second call with -n uses the result of the key -n2.
func fakeFsck(t *testing.T, answers map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for mode, answer := range answers {
		if err := os.WriteFile(filepath.Join(dir, mode), []byte(answer), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf(`#!/bin/sh
cd %s
mode=./$1
[ ! -e "$mode.done" ] || mode=$mode"2"
touch "$mode.done"
read -r status <"$mode"
tail -n +2 "$mode"
exit "$status"
`, dir)
	path := filepath.Join(dir, "fsck")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRecoveryThatRepairs(t *testing.T) {
	const (
		unclean   = "0\n" + `{"findings": [], "found": 0, "unclean": true}`
		clean     = "0\n" + `{"findings": [], "found": 0, "unclean": false}`
		recovered = "1\n" + `{"findings": [], "found": 0, "unclean": true}`
	)
	for what, c := range map[string]struct {
		answers map[string]string
		wrong   string
	}{
		"all is well": {map[string]string{"-n": unclean, "-p": recovered, "-n2": clean}, ""},
		"preening repairs": {map[string]string{"-n": unclean, "-n2": clean,
			"-p": "1\n" + `{"findings": [{"what": "a leak", "offset": "0x10"}], "found": 1, "unclean": true}`}, "-p: 1 found, exit status 1:\na leak (at 0x10)"},
		"preening repairs, and lists nothing": {map[string]string{"-n": unclean, "-n2": clean,
			"-p": "1\n" + `{"findings": [], "found": 7, "unclean": true}`}, "7 found"},
		"preening leaves damage": {map[string]string{"-n": unclean, "-p": recovered,
			"-n2": "4\n" + `{"findings": [{"what": "a hole", "inode": 9, "offset": "0x20"}], "found": 1}`}, "inode 9: a hole"},
		"preening leaves it unclean": {map[string]string{"-n": unclean, "-p": recovered, "-n2": unclean}, "left the volume unclean"},
		"fsck dies":                  {map[string]string{"-n": "139\n"}, "exit status 139"},
		"fsck says nothing":          {map[string]string{"-n": "0\n"}, "unexpected end of JSON"},
	} {
		err := checkVolume(fakeFsck(t, c.answers), "volume", false)
		if c.wrong == "" && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: the error does not contain %q: %v", what, c.wrong, err)
		}
	}
}
