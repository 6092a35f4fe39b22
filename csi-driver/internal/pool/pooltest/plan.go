// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"context"
	"sync"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// Call is one of the interface's.
type Call string

const (
	Place          Call = "Place"
	Status         Call = "Status"
	List           Call = "List"
	Get            Call = "Get"
	Activate       Call = "Activate"
	Create         Call = "Create"
	Delete         Call = "Delete"
	Grow           Call = "Grow"
	Clone          Call = "Clone"
	Snapshots      Call = "Snapshots"
	Snapshot       Call = "Snapshot"
	TakeSnapshot   Call = "TakeSnapshot"
	CopyOut        Call = "CopyOut"
	DeleteSnapshot Call = "DeleteSnapshot"
	Info           Call = "Info"
	Space          Call = "Space"
	Systems        Call = "Systems"
	Taken          Call = "Taken"
	Ended          Call = "Ended"
	Sweep          Call = "Sweep"
	Strays         Call = "Strays"
)

// When a call fails.
type When string

const (
	// Before anything is done.
	Before When = "before"
	// After all is done: who has asked does not hear of it.
	After When = "after"
)

// plan is what a test has in mind for the next calls, and which there were.
type plan struct {
	planMu sync.Mutex
	calls  []Call
	fails  map[Call]failure
	holds  map[Call]*hold
}

type failure struct {
	when When
	err  error
}

type hold struct{ reached, released chan struct{} }

func newPlan() plan { return plan{fails: map[Call]failure{}, holds: map[Call]*hold{}} }

// Fail has the next call of a kind fail once.
func (p *plan) Fail(c Call, when When, err error) {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	p.fails[c] = failure{when, err}
}

// Disarm forgets the failures that have not come, and tells whether there were any.
func (p *plan) Disarm() bool {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	armed := len(p.fails) > 0
	clear(p.fails)
	return armed
}

// Hold has the next call of a kind wait in the middle of it. reached is closed when it does.
func (p *plan) Hold(c Call) (reached <-chan struct{}, release func()) {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	h := &hold{make(chan struct{}), make(chan struct{})}
	p.holds[c] = h
	return h.reached, sync.OnceFunc(func() { close(h.released) })
}

// Calls are those that there were since it was asked last.
func (p *plan) Calls() []Call {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	all := p.calls
	p.calls = nil
	return all
}

// fail is what the call is to fail with at that time, if anything.
func (p *plan) fail(c Call, when When) error {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	f, ok := p.fails[c]
	if !ok || f.when != when {
		return nil
	}
	delete(p.fails, c)
	return f.err
}

// begin is at the start of each call.
func (p *plan) begin(ctx context.Context, c Call) error {
	p.planMu.Lock()
	p.calls = append(p.calls, c)
	p.planMu.Unlock()
	if err := ctx.Err(); err != nil {
		return errkind.Wrap(errkind.Internal, err, "%s", c)
	}
	return p.fail(c, Before)
}

// wait is in the middle of each call.
func (p *plan) wait(ctx context.Context, c Call) error {
	p.planMu.Lock()
	h := p.holds[c]
	delete(p.holds, c)
	p.planMu.Unlock()
	if h == nil {
		return nil
	}
	close(h.reached)
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return errkind.Wrap(errkind.Internal, ctx.Err(), "%s", c)
	}
}

// do is one call.
func do[T any](ctx context.Context, z *Zone, c Call, work func() (T, error)) (T, error) {
	var none T
	err := z.begin(ctx, c)
	if err == nil {
		err = z.wait(ctx, c)
	}
	if err != nil {
		return none, err
	}
	z.mu.Lock()
	done, err := work()
	z.mu.Unlock()
	if err == nil {
		err = z.fail(c, After)
	}
	if err != nil {
		return none, err
	}
	return done, nil
}

// change is a call that takes time. What it needs is taken at its beginning, and another one for the same
// volume is Busy until it has ended.
func (z *Zone) change(
	ctx context.Context, c Call, name string, take func() (pool.Span, error), finish func(pool.Span) (pool.Volume, error),
) (pool.Volume, error) {
	if err := z.begin(ctx, c); err != nil {
		return pool.Volume{}, err
	}
	at, err := z.take(name, take)
	if err != nil {
		return pool.Volume{}, err
	}
	err = z.wait(ctx, c)
	z.mu.Lock()
	delete(z.made, name)
	var v pool.Volume
	if err == nil {
		v, err = finish(at)
	}
	z.mu.Unlock()
	if err == nil {
		err = z.fail(c, After)
	}
	if err != nil {
		return pool.Volume{}, err
	}
	return v, nil
}

func (z *Zone) take(name string, take func() (pool.Span, error)) (pool.Span, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if _, ok := z.made[name]; ok {
		return pool.Span{}, errkind.New(errkind.Busy, "volume %s is being changed by another call", name)
	}
	at, err := take()
	if err == nil {
		z.made[name] = at
	}
	return at, err
}
