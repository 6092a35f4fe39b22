// SPDX-License-Identifier: Apache-2.0

package fill

import (
	"fmt"
	"sync"
	"time"
)

// window is the time over which the rate is computed.
const window = 10 * time.Second

// Progress counts the bytes of a run. Several goroutines may use it.
type Progress struct {
	mu          sync.Mutex
	total, done int64
	samples     []sample
}

type sample struct {
	at   time.Time
	done int64
}

// State is the progress at one moment.
type State struct {
	Total, Done int64
	Rate        int64         // bytes in a second, over the last seconds
	Left        time.Duration // 0: unknown
}

// Begin sets the number of bytes of a run.
func (p *Progress) Begin(total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.done, p.samples = total, 0, nil
}

func (p *Progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := time.Now()
	// One sample for each half second, and at most those of the window.
	if k := len(p.samples); k == 0 || now.Sub(p.samples[k-1].at) > window/20 {
		p.samples = append(p.samples, sample{now, p.done})
	}
	for len(p.samples) > 2 && now.Sub(p.samples[0].at) > window {
		p.samples = p.samples[1:]
	}
}

// State returns the progress now.
func (p *Progress) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := State{Total: p.total, Done: p.done}
	if len(p.samples) > 0 {
		first := p.samples[0]
		if took := time.Since(first.at); took > 0 {
			s.Rate = int64(float64(p.done-first.done) / took.Seconds())
		}
	}
	if s.Rate > 0 {
		s.Left = time.Duration(float64(s.Total-s.Done) / float64(s.Rate) * float64(time.Second)).Round(time.Second)
	}
	return s
}

// Percent returns the complete part, rounded down, so that 100 means complete.
func (s State) Percent() int {
	if s.Total == 0 {
		return 100
	}
	return int(float64(s.Done) / float64(s.Total) * 100)
}

func (s State) String() string {
	if s.Rate <= 0 {
		return fmt.Sprintf("%d %% of %d bytes", s.Percent(), s.Total)
	}
	return fmt.Sprintf("%d %% of %d bytes, %.1f MiB/s, %s left", s.Percent(), s.Total, float64(s.Rate)/(1<<20), s.Left)
}
