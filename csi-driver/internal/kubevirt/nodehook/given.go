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

// KubeVirt says that a machine has ended as long as its object is there, so what it had is known for some
// time after the first word of it.
const known = time.Hour

// given is which life of a machine has which volumes. A machine that is started again has its name and its
// UUID again, but not the UID of its object: by that a late word of its last end is told from its new life.
// A file holds it, because machines outlive the driver. Entries from before a boot do no harm: the driver ignores a
// life that has no pod any more.
type given struct {
	file  string // none: it is forgotten with the driver
	mu    sync.Mutex
	lives map[holding]life
}

type holding struct{ machine, volume string }

type life struct {
	uid   string
	board string    // its UUID, in canonical form
	pods  []string  // by their UIDs
	ended time.Time // zero as long as nobody has said so
}

// note is a life in the file.
type note struct {
	Machine, Volume, UID, Board string
	Pods                        []string
	Ended                       time.Time
}

// recall reads the file, if there is one; what cannot be read is as if nothing had been given.
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

// keepLocked writes it: a new file takes the place of the old one.
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

// to notes that a machine starts with a volume, unless it has a twin there, which is the answer then: of two that
// start at once one is refused. A machine's own last life does not count.
func (g *given) to(m machine, volume string, pods []string, has func(pod string) bool, now time.Time) (twin string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if twin := g.twinLocked(m, volume, has); twin != "" {
		return twin, nil
	}
	maps.DeleteFunc(g.lives, func(_ holding, l life) bool { return !l.ended.IsZero() && now.Sub(l.ended) > known })
	g.lives[holding{m.String(), volume}] = life{uid: m.Metadata.UID, board: m.uuid(), pods: pods}
	return "", g.keepLocked()
}

// ended notes that nothing of the volume is the machine's any more.
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

// of are the volumes that this life of the machine has had, by name.
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

// twin is another machine of the same UUID that has the volume, if has says so of its pods: it runs, or is paused.
// Empty if there is none.
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

// toAnother tells whether another life of the machine has the volume.
func (g *given) toAnother(m machine, volume string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, noted := g.lives[holding{m.String(), volume}]
	return noted && l.uid != m.Metadata.UID
}
