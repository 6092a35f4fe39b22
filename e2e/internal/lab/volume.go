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

// seenInUse is fsck's text for a count of errors that is not 0: a system has met damage while it
// used the volume.
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
	Unclean  bool      `json:"unclean"` // some system has not unmounted it
}

// checkVolume checks a volume without users against the engine's promises, however its systems
// ended:
//
//   - fsck -n, which reads an unclean volume as recovery would leave it, finds
//     nothing. So recovery cannot hide damage by repairing it.
//   - fsck -p then recovers an unclean volume, and finds nothing to repair.
//   - What it leaves is clean for fsck -n.
//
// The first rule covers the volume's count of errors, which is 0 in a new volume. damageSeen allows
// that count, and nothing else.
func checkVolume(fsck, volume string, damageSeen bool) error {
	looked, err := runFsck(fsck, "-n", volume, damageSeen)
	if err != nil || !looked.Unclean {
		return err // preening stores nothing in a clean volume: it makes the same pass
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
		err = nil // its findings give the reason
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

// wrong returns the findings, without the count of errors if the script allows it. Findings that
// fsck counts but does not list are an error, too.
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
		return "no finding is listed"
	}
	return strings.Join(lines, "\n")
}
