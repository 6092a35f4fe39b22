// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"context"
	"sync"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// Call is the name of a method of pool.Zone.
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

// When is the moment of a failure.
type When string

const (
	// The call has done nothing.
	Before When = "before"
	// The call has succeeded, but its caller gets an error.
	After When = "after"
)

// plan has the failures and pauses of the next calls, and the list of past calls.
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

// Fail makes the next call of a method fail once.
func (p *plan) Fail(c Call, when When, err error) {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	p.fails[c] = failure{when, err}
}

// Disarm removes the planned failures that have not happened, and reports whether there were any.
func (p *plan) Disarm() bool {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	armed := len(p.fails) > 0
	clear(p.fails)
	return armed
}

// Hold makes the next call of a method wait in the middle, until release is called. reached is
// closed when the call waits.
func (p *plan) Hold(c Call) (reached <-chan struct{}, release func()) {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	h := &hold{make(chan struct{}), make(chan struct{})}
	p.holds[c] = h
	return h.reached, sync.OnceFunc(func() { close(h.released) })
}

// Calls returns the calls since the last call of Calls.
func (p *plan) Calls() []Call {
	p.planMu.Lock()
	defer p.planMu.Unlock()
	all := p.calls
	p.calls = nil
	return all
}

// fail returns the failure that is planned for the call at this moment, or nil.
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

// begin runs at the start of each call.
func (p *plan) begin(ctx context.Context, c Call) error {
	p.planMu.Lock()
	p.calls = append(p.calls, c)
	p.planMu.Unlock()
	if err := ctx.Err(); err != nil {
		return errkind.Wrap(errkind.Internal, err, "%s", c)
	}
	return p.fail(c, Before)
}

// wait runs in the middle of each call.
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

// do runs one call that changes no addresses.
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

// change runs a call that takes time. It reserves its addresses at the beginning. Other calls for
// the same volume fail with Busy until it has ended.
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
