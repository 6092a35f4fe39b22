// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
)

// Run looks at copies and data sets periodically until ctx is done. Then it ends the fills; a later
// driver continues them.
func (m *Manager) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, m.stop)()
	for {
		within, cancel := context.WithTimeout(ctx, 2*period)
		if err := m.Look(within); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Data sets cannot be looked at")
		}
		cancel()
		select {
		case <-ctx.Done():
			m.End()
			return
		case <-time.After(m.config.Period):
		}
	}
}

// End ends the fills.
func (m *Manager) End() {
	m.stop()
	m.running.Wait()
}

// Look removes copies that nobody needs, begins fills that no pod has to ask for, and reports to
// the objects.
func (m *Manager) Look(ctx context.Context) error {
	if err := m.adopt(ctx); err != nil {
		return err
	}
	m.adoptLeft(ctx)
	failed := []error{m.lookAtCopies(ctx)}
	all, err := m.cluster.Datasets(ctx)
	if err != nil {
		return errors.Join(append(failed, err)...) // all copies stay
	}
	by := map[string]*v1alpha1.StargateDataset{}
	for i := range all {
		by[string(all[i].UID)] = &all[i]
	}
	if err := m.confirm(ctx, by); err != nil {
		return errors.Join(append(failed, err)...)
	}
	m.endFills(by)
	failed = append(failed, m.removeOld(ctx, by), m.relieve(ctx))
	for _, d := range by {
		failed = append(failed, m.want(ctx, d))
		m.tell(ctx, d)
	}
	m.mu.Lock()
	maps.DeleteFunc(m.told, func(uid string, _ told) bool { return by[uid] == nil })
	m.mu.Unlock()
	return errors.Join(failed...)
}

// holdsNow returns the copies at this moment.
func (m *Manager) holdsNow() []*hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.holds))
}

// lookAtCopies counts the pods of each copy, and forgets copies whose memory was lost.
func (m *Manager) lookAtCopies(ctx context.Context) error {
	var failed []error
	for _, h := range m.holdsNow() {
		_, err := m.zone.Get(ctx, h.volume.Name)
		if errkind.Is(err, errkind.NotFound) {
			m.lost(ctx, h)
			continue
		}
		n, perr := m.pods(h.volume)
		if err := errors.Join(err, perr); err != nil {
			failed = append(failed, err)
			continue
		}
		m.mu.Lock()
		h.pods = n
		if n > 0 {
			h.used = time.Now()
		}
		m.mu.Unlock()
	}
	return errors.Join(failed...)
}

// known returns the data sets with which this node has to do, by their UIDs.
func (m *Manager) known() map[string]key {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]key{}
	for _, h := range m.holds {
		all[h.UID] = key{h.Namespace, h.Name}
	}
	for uid, f := range m.fills {
		all[uid] = f.key
	}
	return all
}

// confirm reads the data sets again that the list does not have. The list may be older than a pod
// that has just named a data set. A copy without a record belongs to no data set.
func (m *Manager) confirm(ctx context.Context, by map[string]*v1alpha1.StargateDataset) error {
	for uid, of := range m.known() {
		if by[uid] != nil || of.name == "" {
			continue
		}
		d, err := m.cluster.Dataset(ctx, of.namespace, of.name)
		switch {
		case errkind.Is(err, errkind.NotFound):
		case err != nil:
			return err
		case string(d.UID) == uid:
			by[uid] = d
		}
	}
	return nil
}

// endFills ends the fills of data sets that no longer exist, or that name other contents now.
func (m *Manager) endFills(by map[string]*v1alpha1.StargateDataset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, f := range m.fills {
		if d := by[uid]; d == nil || d.Wanted() != f.wanted {
			f.cancel()
		}
	}
}

// removeOld removes copies without pods: of data sets that no longer exist, of contents that the
// data set no longer names, of older versions, and those whose time is over.
func (m *Manager) removeOld(ctx context.Context, by map[string]*v1alpha1.StargateDataset) error {
	var failed []error
	for _, h := range m.holdsNow() {
		why := m.whyRemove(h, by[h.UID])
		if why == "" {
			continue
		}
		if _, err := m.removeAside(ctx, h, why); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (m *Manager) whyRemove(h *hold, d *v1alpha1.StargateDataset) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.ahead = d != nil && d.Spec.Fill == v1alpha1.Ahead
	filling := m.fills[h.UID] != nil && !h.Complete
	switch {
	case d == nil:
		return "its data set no longer exists"
	case h.pods > 0 || filling:
		return ""
	case h.Wanted != d.Wanted():
		return "its data set has changed"
	case h.Complete && m.newestLocked(string(d.UID), d.Wanted()) != h:
		return "the node has a newer version"
	case d.Spec.Fill == v1alpha1.Ahead && h.Complete:
		return ""
	case time.Since(h.used) > m.config.Grace:
		return "no pod has used it for " + m.config.Grace.String()
	}
	return ""
}

// relieve removes one copy without pods if the zone has little room for other volumes. A copy ahead
// of pods stays, because the next look would fill it again.
func (m *Manager) relieve(ctx context.Context) error {
	s, err := m.zone.Status(ctx)
	if err != nil || s.Largest > s.Size/pressure {
		return err
	}
	_, err = m.removeOldest(ctx, func(h *hold) bool { return !h.ahead }, m.removeAside)
	return err
}

// want begins a fill that no pod has to ask for: a copy ahead of pods, or a look for a newer
// version.
func (m *Manager) want(ctx context.Context, d *v1alpha1.StargateDataset) error {
	m.mu.Lock()
	h := m.newestLocked(string(d.UID), d.Wanted())
	stale := h != nil && d.Every() > 0 && time.Since(h.checked) > d.Every()
	if stale {
		h.checked = time.Now()
	}
	m.mu.Unlock()
	if !stale && (d.Spec.Fill != v1alpha1.Ahead || h != nil) {
		return nil
	}
	if err := m.here(ctx, d); errkind.Is(err, errkind.InUse) {
		return nil
	} else if err != nil {
		return err
	}
	m.fillFor(d)
	return nil
}

// tell writes this node's entry of the status, if it has changed.
func (m *Manager) tell(ctx context.Context, d *v1alpha1.StargateDataset) {
	uid := string(d.UID)
	is := m.statusOf(uid, d.Wanted())
	m.mu.Lock()
	was, had := m.told[uid]
	m.mu.Unlock()
	_, left := d.Status.Nodes[m.config.Node] // of an earlier driver
	if is == nil && !had && !left || is != nil && had && was.status == *is {
		return
	}
	if err := m.cluster.Tell(ctx, d.Namespace, d.Name, is); err != nil {
		if ctx.Err() == nil && !errkind.Is(err, errkind.NotFound) {
			klog.FromContext(ctx).Error(err, "The status of a data set cannot be written", "namespace", d.Namespace, "dataset", d.Name)
		}
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if is == nil {
		delete(m.told, uid)
		return
	}
	m.told[uid] = told{key{d.Namespace, d.Name}, *is}
}

// statusOf returns the state of a data set on this node; nil: the node has nothing to do with it.
// wanted are the contents that the data set names now; empty: any.
func (m *Manager) statusOf(uid, wanted string) *v1alpha1.NodeStatus {
	m.mu.Lock()
	f, h := m.fills[uid], m.newestLocked(uid, wanted)
	var s *v1alpha1.NodeStatus
	if h != nil {
		s = &v1alpha1.NodeStatus{Phase: v1alpha1.Ready, Percent: 100, Bytes: h.Bytes, TotalBytes: h.Bytes, Pods: h.pods, Version: h.Version}
	}
	m.mu.Unlock()
	if f == nil || s != nil && !f.isFailed() {
		return s
	}
	phase, words, p := f.state()
	if s != nil { // a newer version cannot be filled, and pods get the older one
		s.Message = shorten(words)
		return s
	}
	return &v1alpha1.NodeStatus{
		Phase: phase, Message: shorten(words), Percent: int64(p.Percent()), Bytes: p.Done, TotalBytes: p.Total,
		BytesPerSecond: p.Rate, SecondsLeft: int64(p.Left.Seconds()),
	}
}

func (f *filling) isFailed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failedLocked()
}

// State is the state of one data set on this node, for metrics.
type State struct {
	Namespace, Name string
	v1alpha1.NodeStatus
	Fills, Failures int64
}

// States returns the states of all data sets with which this node has to do.
func (m *Manager) States() []State {
	// A pod may have a copy of a data set that was deleted and made again. A metric has one
	// value for both, which is that of a complete copy.
	by := map[key]*v1alpha1.NodeStatus{}
	for uid, of := range m.known() {
		n := m.statusOf(uid, "")
		if of.name == "" {
			continue // the copy has no record
		}
		if had := by[of]; had == nil || n != nil && n.Phase == v1alpha1.Ready && had.Phase != v1alpha1.Ready {
			by[of] = n
		}
	}
	var all []State
	for of, n := range by {
		s := State{Namespace: of.namespace, Name: of.name}
		if n != nil {
			s.NodeStatus = *n
		}
		m.mu.Lock()
		if c := m.counts[of]; c != nil {
			s.Fills, s.Failures = c.fills, c.failures
		}
		m.mu.Unlock()
		all = append(all, s)
	}
	return all
}
