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
	ended time.Time // zero as long as nobody has said so
}

// to notes that a machine starts with a volume, of which nothing is its last life's any more.
func (g *given) to(m machine, volume string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.lives, func(_ holding, l life) bool { return !l.ended.IsZero() && now.Sub(l.ended) > known })
	g.lives[holding{m.String(), volume}] = life{uid: m.Metadata.UID}
}

// ended notes that nothing of the volume is the machine's any more.
func (g *given) ended(m machine, volume string, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := holding{m.String(), volume}
	if l, noted := g.lives[at]; noted && l.uid == m.Metadata.UID {
		g.lives[at] = life{l.uid, now}
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

// toAnother tells whether another life of the machine has the volume.
func (g *given) toAnother(m machine, volume string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, noted := g.lives[holding{m.String(), volume}]
	return noted && l.uid != m.Metadata.UID
}
