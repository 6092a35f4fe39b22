// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"sync"
)

// slots limits the fills at the same time: of all namespaces, and to one of each namespace. So a
// namespace whose source is slow delays only its own data sets.
type slots struct {
	all chan struct{} // has one element for each fill

	mu  sync.Mutex
	own map[string]chan struct{} // by namespace
}

func newSlots() *slots {
	return &slots{all: make(chan struct{}, fillsAtOnce), own: map[string]chan struct{}{}}
}

// take waits for a turn, which lasts until end is called.
func (s *slots) take(ctx context.Context, namespace string) (end func(), err error) {
	s.mu.Lock()
	own := s.own[namespace]
	if own == nil {
		own = make(chan struct{}, 1)
		s.own[namespace] = own
	}
	s.mu.Unlock()
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
