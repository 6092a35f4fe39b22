// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Exit statuses of fsck.stargatefs, which are bits.
const (
	fsckRepaired = 1
	fsckDamage   = 4
)

// seenInUse is a finding of fsck: the volume's count of errors is not 0, because a system has met
// damage while it used the volume.
const seenInUse = "damage was seen while in use"

// finding is one error that fsck found.
type finding struct {
	What   string `json:"what"`
	Inode  uint64 `json:"inode"`
	Offset string `json:"offset"`
}

// fsckResult is fsck's JSON output for a volume.
type fsckResult struct {
	Findings []finding `json:"findings"`
	Found    int       `json:"found"`
	Unclean  bool      `json:"unclean"` // at least one system has not unmounted the volume
}

// checkVolume checks that a volume without users has no damage, no matter how its systems ended:
//
//   - fsck -n finds nothing. It reads an unclean volume as recovery would leave it. So recovery
//     cannot hide damage by repairing it.
//   - If the volume is unclean, fsck -p recovers it, and finds nothing to repair.
//   - After that, fsck -n finds nothing, and the volume is clean.
//
// The first rule includes the volume's count of errors, which is 0 in a new volume. If damageSeen
// is set, the count may have any value, but the other rules still apply.
func checkVolume(fsck, volume string, damageSeen bool) error {
	looked, err := runFsck(fsck, "-n", volume, damageSeen)
	if err != nil || !looked.Unclean {
		return err // in a clean volume, fsck -p would only repeat this check
	}
	if _, err = runFsck(fsck, "-p", volume, damageSeen); err != nil {
		return err
	}
	looked, err = runFsck(fsck, "-n", volume, damageSeen)
	if err == nil && looked.Unclean {
		err = errors.New("fsck.stargatefs -p has left the volume unclean")
	}
	return err
}

// runFsck returns an error if fsck finds an error, or cannot run.
func runFsck(fsck, mode, volume string, damageSeen bool) (fsckResult, error) {
	var out, errs bytes.Buffer
	var result fsckResult
	cmd := exec.Command(fsck, mode, "--json", volume)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode()&^(fsckRepaired|fsckDamage) == 0 {
		err = nil // the caller reports the findings
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &result)
	}
	if err != nil {
		return result, fmt.Errorf("fsck.stargatefs %s: %w\n%s%s", mode, err, out.String(), errs.String())
	}
	if wrong := result.wrong(damageSeen); wrong != "" {
		return result, fmt.Errorf("fsck.stargatefs %s: %d found, exit status %d:\n%s", mode, result.Found,
			cmd.ProcessState.ExitCode(), wrong)
	}
	return result, nil
}

// wrong returns the findings as text. If damageSeen is set, it omits the count of errors. It also
// reports findings that fsck counts, but does not list.
func (r fsckResult) wrong(damageSeen bool) string {
	var lines []string
	allowed := 0
	for _, f := range r.Findings {
		if damageSeen && strings.HasPrefix(f.What, seenInUse) {
			allowed++
			continue
		}
		line := fmt.Sprintf("%s (at %s)", f.What, f.Offset)
		if f.Inode != 0 {
			line = fmt.Sprintf("inode %d: %s", f.Inode, line)
		}
		lines = append(lines, line)
	}
	if lines == nil && r.Found > allowed {
		return "fsck lists no finding"
	}
	return strings.Join(lines, "\n")
}
