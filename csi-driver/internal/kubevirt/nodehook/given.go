// SPDX-License-Identifier: Apache-2.0

package nodehook

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// KubeVirt says that a machine has ended as long as its object is there, so what it had is known for some
// time after the first word of it.
const known = time.Hour

// given is which life of a machine has which volumes. A machine that is started again has its name and its
// UUID again, but not the UID of its object: by that a late word of its last end is told from its new life.
type given struct {
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

// to notes that a machine starts with a volume, unless it has a twin there, which is the answer then: of two that
// start at once one is refused. A machine's own last life does not count.
func (g *given) to(m machine, volume string, pods []string, has func(pod string) bool, now time.Time) (twin string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if twin := g.twinLocked(m, volume, has); twin != "" {
		return twin
	}
	maps.DeleteFunc(g.lives, func(_ holding, l life) bool { return !l.ended.IsZero() && now.Sub(l.ended) > known })
	g.lives[holding{m.String(), volume}] = life{uid: m.Metadata.UID, board: m.uuid(), pods: pods}
	return ""
}

// ended notes that nothing of the volume is the machine's any more.
func (g *given) ended(m machine, volume string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := holding{m.String(), volume}
	if l, noted := g.lives[at]; noted && l.uid == m.Metadata.UID {
		l.ended = now
		g.lives[at] = l
	}
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
