// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// filling is the work to get one complete copy, which lasts until a try succeeds. There is at most
// one for each data set, so concurrent pods wait for the same one.
type filling struct {
	key
	wanted   string // StargateDataset.Wanted
	cancel   context.CancelFunc
	progress *fill.Progress
	done     chan struct{} // closed after the last try

	mu     sync.Mutex
	failed chan struct{} // closed by the next failed try
	err    error         // of the last try
	next   time.Time     // of the next try
	asked  time.Time     // when a pod last asked
	begun  bool          // bytes are on their way
}

// fillFor returns the fill of a data set, which it begins if there is none.
func (m *Manager) fillFor(d *v1alpha1.StargateDataset) *filling {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fills[string(d.UID)]
	if f != nil {
		if f.wanted != d.Wanted() {
			f.cancel() // the data set has changed
		}
		f.ask()
		return f
	}
	ctx, cancel := context.WithCancel(m.ctx)
	f = &filling{
		key: key{d.Namespace, d.Name}, wanted: d.Wanted(), cancel: cancel, progress: &fill.Progress{},
		done: make(chan struct{}), failed: make(chan struct{}), asked: time.Now(),
	}
	m.fills[string(d.UID)] = f
	m.running.Add(1)
	go func() {
		defer m.running.Done()
		defer cancel()
		m.fillUntil(ctx, d, f)
		m.mu.Lock()
		delete(m.fills, string(d.UID))
		m.mu.Unlock()
		close(f.done)
	}()
	return f
}

func (f *filling) ask() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = time.Now()
}

// failedOnce returns a channel that is closed when a try fails, or has failed.
func (f *filling) failedOnce() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failedLocked() {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return f.failed
}

// failedLocked reports whether the last try has failed, and the next has not begun.
func (f *filling) failedLocked() bool { return f.err != nil && !f.begun }

func (f *filling) fail(err error, next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.next, f.begun = err, next, false
	close(f.failed)
	f.failed = make(chan struct{})
}

// start notes that bytes are on their way.
func (f *filling) start() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = true
}

// pause notes that the fill waits for its next turn.
func (f *filling) pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.begun = nil, false
}

// state returns the phase, and a sentence about it.
func (f *filling) state() (phase, words string, s fill.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s = f.progress.State()
	switch {
	case f.failedLocked():
		return v1alpha1.Failed, f.err.Error(), s
	case !f.begun:
		return v1alpha1.Filling, "it waits for its turn, or for the source's list of files", fill.State{}
	}
	return v1alpha1.Filling, s.String(), s
}

// waiting returns the error for a pod that must wait.
func (f *filling) waiting(node string) error {
	phase, words, _ := f.state()
	if phase == v1alpha1.Failed {
		f.mu.Lock()
		left := max(0, time.Until(f.next)).Round(time.Second)
		kind := errkind.KindOf(f.err)
		f.mu.Unlock()
		if kind != errkind.NoSpace && kind != errkind.Invalid {
			kind = errkind.NotReady
		}
		return errkind.New(kind, "data set %s/%s cannot be filled on node %s: %s; the driver tries again in %s", f.namespace, f.name, node, words, left)
	}
	return errkind.New(errkind.NotReady, "data set %s/%s is being filled on node %s: %s", f.namespace, f.name, node, words)
}

// fillUntil tries to fill a copy until it succeeds, or nobody needs it any more. The time between
// tries grows.
func (m *Manager) fillUntil(ctx context.Context, d *v1alpha1.StargateDataset, f *filling) {
	for gap := m.config.First; ; gap = min(2*gap, m.config.Last) {
		err := m.try(ctx, d, f)
		if err == nil || ctx.Err() != nil {
			return
		}
		if errors.Is(err, errTurn) {
			f.pause()
			continue
		}
		m.count(f.key, func(c *counts) { c.failures++ })
		f.fail(err, time.Now().Add(gap))
		klog.FromContext(ctx).Info("A data set cannot be filled", "namespace", d.Namespace, "dataset", d.Name, "reason", err.Error(), "again", gap)
		m.cluster.Event(d, true, "FillFailed", shorten("node "+m.config.Node+": "+err.Error()))
		m.tell(ctx, d)
		select {
		case <-ctx.Done():
			return
		case <-time.After(gap):
		}
		again, err := m.cluster.Dataset(ctx, d.Namespace, d.Name)
		switch {
		case errkind.Is(err, errkind.NotFound) || err == nil && again.UID != d.UID:
			return
		case err == nil && again.Wanted() != f.wanted:
			return // the next pod begins a fill of the new contents
		case err == nil:
			d = again
		}
		f.mu.Lock()
		lonely := time.Since(f.asked) > patience && d.Spec.Fill != v1alpha1.Ahead
		f.mu.Unlock()
		if lonely {
			return
		}
	}
}

// try makes one try.
func (m *Manager) try(ctx context.Context, d *v1alpha1.StargateDataset, f *filling) (err error) {
	end, err := m.slots.take(ctx, d.Namespace)
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := m.slots.within(ctx)
	defer stop()
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), errTurn) {
			err = errTurn
		}
	}()
	src, plan, err := m.plan(ctx, d)
	if err != nil {
		return err
	}
	h, err := m.volumeFor(ctx, d, plan)
	if err != nil {
		return err
	}
	defer m.release(h)
	m.mu.Lock()
	whole := h.Complete
	if whole { // the source still has this version
		h.made = time.Now()
	}
	m.mu.Unlock()
	if whole {
		return nil
	}
	f.progress.Begin(plan.Bytes)
	f.start()
	m.cluster.Event(d, false, "Filling", "node "+m.config.Node+" fills a copy")
	ended := m.follow(ctx, d)
	err = m.fill(ctx, d, h, src, plan, f)
	ended()
	if err != nil {
		return err
	}
	m.count(f.key, func(c *counts) { c.fills++ })
	m.cluster.Event(d, false, "Filled", "node "+m.config.Node+" has a complete copy")
	m.tell(ctx, d)
	return nil
}

// plan asks the source for its files.
func (m *Manager) plan(ctx context.Context, d *v1alpha1.StargateDataset) (fill.Source, fill.Plan, error) {
	most, err := d.Bytes()
	if err != nil {
		return nil, fill.Plan{}, err
	}
	src, err := m.open(ctx, d)
	if err != nil {
		return nil, fill.Plan{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, planLimit)
	defer cancel()
	files, err := src.Files(ctx)
	if err != nil {
		return nil, fill.Plan{}, err
	}
	plan, err := fill.NewPlan(files, d.Tree(), most)
	return src, plan, err
}

// fill fills the volume of a copy, and makes the copy complete.
func (m *Manager) fill(ctx context.Context, d *v1alpha1.StargateDataset, h *hold, src fill.Source, plan fill.Plan, f *filling) error {
	if err := m.mount(ctx, h.volume); err != nil {
		return err
	}
	dir := m.work(h.volume.Name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", h.volume.Name)
	}
	defer root.Close()
	// A fill removes files that it does not know.
	n, err := m.pods(h.volume)
	if err != nil {
		return err
	}
	if n > 0 {
		return errkind.New(errkind.Busy, "%d pods have volume %s, so it is not filled again", n, h.volume.Name)
	}
	if err := writeRecord(root, h.Record); err != nil {
		return err
	}
	config := fill.Config{Root: root, Source: src, Plan: plan, Progress: f.progress}
	if m.config.Seal != nil && d.Seals() {
		config.Seal = func(ctx context.Context, names []string) error { return m.config.Seal(ctx, dir, names) }
	}
	if err := fill.Run(ctx, config); err != nil {
		return err
	}
	whole := h.Record
	whole.Complete = true
	if err := writeRecord(root, whole); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h.Complete, h.made, h.used, h.checked = true, time.Now(), time.Now(), time.Now()
	h.promised = time.Now().Add(min(m.config.Grace, promise))
	return nil
}

// follow writes the progress into the status until the returned function is called.
func (m *Manager) follow(ctx context.Context, d *v1alpha1.StargateDataset) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			m.tell(ctx, d)
			select {
			case <-ctx.Done():
			case <-time.After(tellEvery):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// sizeFor returns the size of a volume for files. The index of a file takes a page of 4 KiB for
// each 2 MiB, and sizeFor adds twice as much. The last page of a file is not full, and readers
// reserve pages that they do not use.
func sizeFor(plan fill.Plan) int64 {
	const base, each, index = int64(12) << 20, int64(8) << 10, 256
	if plan.Bytes > pool.MaxVolume { // the sum would overflow, and no zone has room
		return pool.MaxVolume
	}
	return pool.RoundUp(max(plan.Bytes+plan.Bytes/index+int64(len(plan.Files))*each+base, pool.MinVolume), pool.Extent)
}

// volumeFor returns the volume for a version of a data set, which an earlier try may have made. The
// caller must release it.
func (m *Manager) volumeFor(ctx context.Context, d *v1alpha1.StargateDataset, plan fill.Plan) (*hold, error) {
	name := pool.DatasetName(string(d.UID), plan.Version()+d.Wanted())
	if err := m.adoptEarlier(ctx, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	h := m.holds[name]
	if h != nil && h.removing {
		m.mu.Unlock()
		return nil, errkind.New(errkind.Busy, "an earlier copy is still being removed")
	}
	record := Record{Namespace: d.Namespace, Name: d.Name, UID: string(d.UID), Wanted: d.Wanted(), Version: plan.Version(), Bytes: plan.Bytes}
	if h != nil {
		if h.UID == "" { // an earlier driver was killed before it wrote the record
			h.Record = record
		}
		h.uses++
		m.mu.Unlock()
		return m.still(ctx, h)
	}
	m.mu.Unlock()
	// An earlier volume of that name may have lost its memory while it was mounted.
	if err := m.unmount(ctx, name); err != nil {
		return nil, err
	}
	defer m.unreserve(name)
	v, err := m.make(ctx, d, name, sizeFor(plan))
	if err != nil {
		return nil, err
	}
	h = &hold{Record: record, volume: v, made: time.Now(), used: time.Now(), uses: 1, ahead: d.Spec.Fill == v1alpha1.Ahead}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds[name] = h
	return h, nil
}

// adoptEarlier reads the record of a volume that the zone has and this driver does not know. The
// volume may have the complete copy that running pods use, so it must not be filled again.
func (m *Manager) adoptEarlier(ctx context.Context, name string) error {
	m.mu.Lock()
	known := m.holds[name] != nil
	m.mu.Unlock()
	if known {
		return nil
	}
	v, err := m.zone.Get(ctx, name)
	if errkind.Is(err, errkind.NotFound) {
		return nil
	}
	if err == nil {
		err = m.adoptOne(ctx, v)
	}
	if err != nil {
		return errkind.Wrap(errkind.NotReady, err, "an earlier copy cannot be read")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unread, name)
	return nil
}

// still checks that the volume of a copy still exists.
func (m *Manager) still(ctx context.Context, h *hold) (*hold, error) {
	v, err := m.zone.Get(ctx, h.volume.Name)
	if err == nil {
		v, err = m.usable(ctx, v)
	}
	if err != nil {
		m.release(h)
		if errkind.Is(err, errkind.NotFound) {
			m.lost(ctx, h)
		}
		return nil, err
	}
	return h, nil
}

func (m *Manager) count(of key, how func(*counts)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts[of] == nil {
		m.counts[of] = &counts{}
	}
	how(m.counts[of])
}
