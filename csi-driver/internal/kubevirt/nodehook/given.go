// SPDX-License-Identifier: Apache-2.0

package nodehook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// KubeVirt repeats the report of a VM's end while the VM's object exists. So the driver keeps an
// entry for this time after the last report.
const known = time.Hour

// given records which life of a VM has which volumes. A VM that starts again keeps its name and its
// UUID, but its object has a new UID. By the UID, the driver detects that a late report is about an
// earlier life. A file stores the records, because VMs keep running when the driver restarts.
// Entries from before a boot do no harm: the driver ignores a life whose pods no longer exist.
type given struct {
	file  string // path of the file; empty: the driver loses the records when it restarts
	mu    sync.Mutex
	lives map[holding]life
}

type holding struct{ machine, volume string }

type life struct {
	uid   string
	board string    // the VM's UUID, in canonical form
	pods  []string  // UIDs
	ended time.Time // zero until KubeVirt reports the end
	noted time.Time // zero: the driver has restarted since it recorded the life
}

// note is a record of a life in the file.
type note struct {
	Machine, Volume, UID, Board string
	Pods                        []string
	Ended                       time.Time
}

// recall reads the file if it exists. An unreadable file counts as empty.
func (g *given) recall() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lives = map[holding]life{}
	if g.file == "" {
		return nil
	}
	text, err := os.ReadFile(g.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var notes []note
	if err == nil {
		err = json.Unmarshal(text, &notes)
	}
	if err != nil {
		return fmt.Errorf("notes %s: %w", g.file, err)
	}
	for _, n := range notes {
		g.lives[holding{n.Machine, n.Volume}] = life{uid: n.UID, board: n.Board, pods: n.Pods, ended: n.Ended}
	}
	return nil
}

// keepLocked writes a new file and renames it over the old one.
func (g *given) keepLocked() error {
	if g.file == "" {
		return nil
	}
	notes := []note{}
	for at, l := range g.lives {
		notes = append(notes, note{at.machine, at.volume, l.uid, l.board, l.pods, l.ended})
	}
	text, err := json.Marshal(notes)
	if err == nil {
		err = os.WriteFile(g.file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(g.file+".new", g.file)
	}
	if err != nil {
		return fmt.Errorf("notes %s: %w", g.file, err)
	}
	return nil
}

// to records that a VM starts with a volume. If the VM has a twin on the volume, to returns the
// twin's name and records nothing. So if two twins start at the same time, one is refused. An
// earlier life of the same VM is no twin.
func (g *given) to(m machine, volume string, pods []string, has func(pod string) bool, now time.Time) (twin string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if twin := g.twinLocked(m, volume, has); twin != "" {
		return twin, nil
	}
	maps.DeleteFunc(g.lives, func(_ holding, l life) bool { return !l.ended.IsZero() && now.Sub(l.ended) > known })
	g.lives[holding{m.String(), volume}] = life{uid: m.Metadata.UID, board: m.uuid(), pods: pods, noted: now}
	return "", g.keepLocked()
}

// looked records the end of each life whose pods no longer have the volume. KubeVirt may never
// report that end: the driver was down, or a user deleted an object by force. The list of mounts
// was read at the time began, so it proves nothing about a life that was recorded later.
func (g *given) looked(has func(volume, pod string) bool, began, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at, l := range g.lives {
		if l.ended.IsZero() && l.noted.Before(began) && !slices.ContainsFunc(l.pods, func(pod string) bool { return has(at.volume, pod) }) {
			l.ended = now
			g.lives[at] = l
		}
	}
}

// ended records that the VM no longer holds anything on the volume.
func (g *given) ended(m machine, volume string, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := holding{m.String(), volume}
	if l, noted := g.lives[at]; noted && l.uid == m.Metadata.UID {
		l.ended = now
		g.lives[at] = l
		return g.keepLocked()
	}
	return nil
}

// of returns the names of the volumes that are recorded for this life of the VM.
func (g *given) of(m machine) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for at, l := range g.lives {
		if at.machine == m.String() && l.uid == m.Metadata.UID {
			names = append(names, at.volume)
		}
	}
	slices.Sort(names)
	return names
}

// twin returns the name of another VM with the same UUID that has the volume, running or
// paused. It returns an empty string if there is no such VM. The function has reports whether a pod
// has the volume mounted.
func (g *given) twin(m machine, volume string, has func(pod string) bool) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.twinLocked(m, volume, has)
}

func (g *given) twinLocked(m machine, volume string, has func(pod string) bool) string {
	for at, l := range g.lives {
		if at.volume == volume && at.machine != m.String() && l.board != "" && l.board == m.uuid() &&
			l.ended.IsZero() && slices.ContainsFunc(l.pods, has) {
			return at.machine
		}
	}
	return ""
}

// toAnother reports whether a different life of the VM has the volume.
func (g *given) toAnother(m machine, volume string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, noted := g.lives[holding{m.String(), volume}]
	return noted && l.uid != m.Metadata.UID
}
