// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// make creates the volume of a copy. If a quota or the zone has no room, it first removes copies
// without pods, beginning with the one that was not used for the longest time. It removes none if
// the volume would not have room even without all of them.
func (m *Manager) make(ctx context.Context, d *v1alpha1.StargateDataset, name string, size int64) (pool.Volume, error) {
	for {
		lack := m.reserve(d, name, size)
		if lack.why == nil {
			v, err := m.zone.Create(ctx, pool.Spec{Name: name, Size: size, Align: pool.Extent, Label: label(d), RootMode: "0755"})
			if errkind.Is(err, errkind.Exists) { // the tool of a killed driver has finished
				v, err = m.zone.Get(ctx, name)
			}
			if !errkind.Is(err, errkind.NoSpace) {
				return v, err
			}
			if lack, err = m.lackOfZone(ctx, size, err); err != nil {
				return pool.Volume{}, err
			}
		}
		may := func(h *hold) bool {
			return (lack.in == "" || h.Namespace == lack.in) && !(d.Spec.Fill == v1alpha1.Ahead && h.ahead)
		}
		if m.idle(may) < lack.bytes {
			return pool.Volume{}, lack.why
		}
		gone, err := m.removeOldest(ctx, may, m.remove)
		if err != nil {
			return pool.Volume{}, err
		}
		if !gone {
			return pool.Volume{}, lack.why
		}
	}
}

// lack says why a volume has no room, which namespace's copies must go (empty: any), and how many
// bytes of them at least.
type lack struct {
	why   error
	in    string
	bytes int64
}

// lackOfZone returns how much memory of the zone must become free for a volume.
func (m *Manager) lackOfZone(ctx context.Context, size int64, why error) (lack, error) {
	s, err := m.zone.Status(ctx)
	if err != nil {
		return lack{}, err
	}
	if size > s.Size {
		return lack{why: why, bytes: size}, nil
	}
	return lack{why: why, bytes: max(size-s.Largest, 1)}, nil
}

// idle returns the bytes of the copies that may be removed.
func (m *Manager) idle(may func(*hold) bool) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := int64(0)
	for _, h := range m.holds {
		if h.idle() && h.pods == 0 && may(h) {
			sum += h.volume.Size
		}
	}
	return sum
}

// idle reports whether a copy may be removed for another volume, if no pod has it.
func (h *hold) idle() bool { return h.uses == 0 && !h.removing && time.Now().After(h.promised) }

// label returns the label of a copy's volume.
func label(d *v1alpha1.StargateDataset) string {
	const most = 63
	text := d.Namespace + "/" + d.Name
	return text[:min(len(text), most)]
}

// reserve counts a volume for the quotas, until unreserve is called. If the volume would exceed a
// quota, reserve counts nothing, and says what is missing.
func (m *Manager) reserve(d *v1alpha1.StargateDataset, name string, size int64) lack {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all, own int64
	add := func(namespace string, bytes int64) {
		all += bytes
		if namespace == d.Namespace {
			own += bytes
		}
	}
	for _, h := range m.holds {
		add(h.Namespace, h.volume.Size)
	}
	for _, v := range m.unread {
		add("", v.Size)
	}
	for of, r := range m.reserved {
		if of != name {
			add(r.namespace, r.size)
		}
	}
	delete(m.reserved, name)
	if most := m.config.NamespaceQuota; most > 0 && own+size > most {
		why := errkind.New(errkind.NoSpace, "the copies of namespace %s would take %d bytes of node %s, and its quota is %d", d.Namespace, own+size, m.config.Node, most)
		return lack{why, d.Namespace, own + size - most}
	}
	if most := m.config.NodeQuota; most > 0 && all+size > most {
		why := errkind.New(errkind.NoSpace, "the copies of all data sets would take %d bytes of node %s, and the quota is %d", all+size, m.config.Node, most)
		return lack{why, "", all + size - most}
	}
	m.reserved[name] = reservation{d.Namespace, size}
	return lack{}
}

// unreserve ends the reservation of a volume. If the volume was created, its hold counts instead.
func (m *Manager) unreserve(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reserved, name)
}

// remover removes a copy, and reports whether it is gone.
type remover func(ctx context.Context, h *hold, why string) (bool, error)

// removeOldest removes the copy without pods that was not used for the longest time, of those that
// may go. It reports whether there was one.
func (m *Manager) removeOldest(ctx context.Context, may func(*hold) bool, remove remover) (bool, error) {
	tried := map[*hold]bool{}
	for {
		var oldest *hold
		m.mu.Lock()
		for _, h := range m.holds {
			if !tried[h] && h.idle() && may(h) && (oldest == nil || h.used.Before(oldest.used)) {
				oldest = h
			}
		}
		m.mu.Unlock()
		if oldest == nil {
			return false, nil
		}
		tried[oldest] = true
		if gone, err := remove(ctx, oldest, "another volume needs its memory"); gone || err != nil {
			return gone, err
		}
	}
}

// removeAside removes a copy like remove, but waits only for a while. The wipe of a large volume
// may take minutes, and a look has more to do. A removal that continues counts as done.
func (m *Manager) removeAside(ctx context.Context, h *hold, why string) (bool, error) {
	type result struct {
		gone bool
		err  error
	}
	done := make(chan result, 1)
	m.running.Add(1)
	go func() {
		defer m.running.Done()
		gone, err := m.remove(ctx, h, why)
		if err != nil {
			klog.FromContext(ctx).Error(err, "A copy of a data set cannot be removed", "volume", h.volume.Name)
		}
		done <- result{gone, err}
	}()
	select {
	case r := <-done:
		return r.gone, r.err
	case <-time.After(removeWait):
	case <-ctx.Done():
	}
	return true, nil
}

// remove removes a copy, unless a pod or a call has it.
func (m *Manager) remove(ctx context.Context, h *hold, why string) (bool, error) {
	m.mu.Lock()
	if h.uses > 0 || h.removing || m.holds[h.volume.Name] != h {
		m.mu.Unlock()
		return false, nil
	}
	h.removing = true
	m.mu.Unlock()
	gone, err := m.removeUnused(h)
	m.mu.Lock()
	h.removing = false
	if gone {
		delete(m.holds, h.volume.Name)
	}
	m.mu.Unlock()
	if gone {
		klog.FromContext(ctx).Info("A copy of a data set is removed", "namespace", h.Namespace, "dataset", h.Name, "volume", h.volume.Name, "why", why)
	}
	return gone, err
}

// removeUnused deletes the volume. The memory of a large volume is wiped for minutes, longer than a
// look at all copies may take.
func (m *Manager) removeUnused(h *hold) (bool, error) {
	ctx, cancel := context.WithTimeout(m.ctx, removeLimit)
	defer cancel()
	if n, err := m.pods(h.volume); n > 0 || err != nil {
		return false, err
	}
	if err := m.unmount(ctx, h.volume.Name); err != nil {
		return false, err
	}
	if err := m.zone.Delete(ctx, h.volume.Name); err != nil {
		return false, err
	}
	return true, nil
}

// lost forgets a copy whose volume no longer exists, as after a power cut.
func (m *Manager) lost(ctx context.Context, h *hold) {
	m.mu.Lock()
	there := m.holds[h.volume.Name] == h
	if there {
		delete(m.holds, h.volume.Name)
	}
	m.mu.Unlock()
	if there {
		klog.FromContext(ctx).Info("The memory of a data set's copy is lost", "namespace", h.Namespace, "dataset", h.Name, "volume", h.volume.Name)
	}
	if err := m.unmount(ctx, h.volume.Name); err != nil {
		klog.FromContext(ctx).Error(err, "The mount of a lost copy is left")
	}
}

// adopt finds the copies of an earlier driver. A copy that cannot be read now is kept, and counts
// for the quota of the node; adoptLeft tries it again.
func (m *Manager) adopt(ctx context.Context) error {
	m.mu.Lock()
	done := m.adopted
	m.mu.Unlock()
	if done {
		return nil
	}
	volumes, err := m.zone.List(ctx)
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if !pool.IsDataset(v.Name) {
			continue
		}
		m.adoptOrKeep(ctx, v)
	}
	if ctx.Err() != nil {
		return ctx.Err() // the volumes that were left have not been tried
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adopted = true
	return nil
}

// adoptLeft tries the copies again that could not be read.
func (m *Manager) adoptLeft(ctx context.Context) {
	m.mu.Lock()
	left := slices.Collect(maps.Keys(m.unread))
	m.mu.Unlock()
	for _, name := range left {
		v, err := m.zone.Get(ctx, name)
		switch {
		case err == nil:
			m.adoptOrKeep(ctx, v)
		case errkind.Is(err, errkind.NotFound):
			m.mu.Lock()
			delete(m.unread, name)
			m.mu.Unlock()
		}
	}
}

func (m *Manager) adoptOrKeep(ctx context.Context, v pool.Volume) {
	err := m.adoptOne(ctx, v)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		delete(m.unread, v.Name)
		return
	}
	m.unread[v.Name] = v
	klog.FromContext(ctx).Error(err, "A copy of a data set cannot be read; the driver keeps it, and tries again", "volume", v.Name)
}

// adoptOne reads the record of a copy. A copy without a record was interrupted before it got one;
// it has nothing to keep.
func (m *Manager) adoptOne(ctx context.Context, v pool.Volume) error {
	v, err := m.usable(ctx, v)
	if err != nil {
		return err
	}
	if err := m.mount(ctx, v); err != nil {
		return err
	}
	root, err := os.OpenRoot(m.work(v.Name))
	if err != nil {
		return err
	}
	defer root.Close()
	r, err := readRecord(root)
	if err != nil {
		return err
	}
	made := time.Now()
	if st, err := root.Lstat(fill.RecordFile); err == nil {
		made = st.ModTime()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holds[v.Name] == nil {
		m.holds[v.Name] = &hold{Record: r, volume: v, made: made, used: time.Now(), checked: made}
	}
	return nil
}

// shorten returns the first bytes of an error's text for an object's status.
func shorten(text string) string {
	const most = 1024
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
