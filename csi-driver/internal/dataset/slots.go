// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"sync"
	"time"
)

// slots limits the fills at the same time: of all namespaces, and to one of each namespace. So a
// namespace whose source is slow delays only its own data sets. While others wait, a fill keeps its
// turn only for some time, so that slow sources of several namespaces cannot hold all turns.
type slots struct {
	all  chan struct{} // has one element for each fill
	turn time.Duration

	mu      sync.Mutex
	own     map[string]chan struct{} // by namespace
	waiting int                      // fills that wait for a turn
	leaving int                      // fills that give up their turns for them
}

// errTurn ends a fill whose turn is over.
var errTurn = errors.New("others wait, so it continues at its next turn")

func newSlots(turn time.Duration) *slots {
	return &slots{all: make(chan struct{}, fillsAtOnce), turn: turn, own: map[string]chan struct{}{}}
}

// take waits for a turn, which lasts until end is called.
func (s *slots) take(ctx context.Context, namespace string) (end func(), err error) {
	s.mu.Lock()
	own := s.own[namespace]
	if own == nil {
		own = make(chan struct{}, 1)
		s.own[namespace] = own
	}
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting--
	}()
	for i, c := range []chan struct{}{own, s.all} {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own
			}
			return nil, ctx.Err()
		}
	}
	return func() { <-s.all; <-own }, nil
}

// within returns a context that ends with the cause errTurn when the turn is over and others wait.
// The caller must call stop before it ends its turn.
func (s *slots) within(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	left, done := false, make(chan struct{})
	go func() {
		defer close(done)
		for !left {
			select {
			case <-ctx.Done():
				return
			case <-time.After(s.turn):
			}
			if left = s.leave(); left {
				cancel(errTurn)
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
		if left {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.leaving--
		}
	}
}

// leave reports whether a fill must give up its turn: one fill for each that waits.
func (s *slots) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting <= s.leaving {
		return false
	}
	s.leaving++
	return true
}
