// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"time"

	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// Publish mounts a data set for a pod, read-only. If this node has no complete copy yet, Publish
// makes the driver fill one, and waits for it for a while. Then it fails with NotReady, and the
// message has the progress. Kubelet shows the message in an Event of the pod, and calls again.
func (m *Manager) Publish(ctx context.Context, namespace, name, target string) error {
	if err := m.adopt(ctx); err != nil {
		return err
	}
	if again, err := m.giveAgain(ctx, namespace, name, target); again {
		return err
	}
	d, err := m.cluster.Dataset(ctx, namespace, name)
	if err != nil {
		return err
	}
	if err := m.here(ctx, d); err != nil {
		return err
	}
	h := m.take(d)
	if h == nil {
		if err := m.await(ctx, d); err != nil {
			return err
		}
		if h = m.take(d); h == nil {
			return errkind.New(errkind.NotReady, "data set %s/%s: node %s has no copy of these contents yet; the next call begins to fill it", namespace, name, m.config.Node)
		}
	}
	defer m.release(h)
	return m.give(ctx, d, h, target)
}

// giveAgain repeats the mount of a pod that has a copy already, as after a restart of kubelet. The
// pod keeps its version, whatever the data set names now. again is false if the pod has no copy, or
// has lost it.
func (m *Manager) giveAgain(ctx context.Context, namespace, name, target string) (again bool, err error) {
	v, ok := m.At(target)
	if !ok {
		return false, nil
	}
	m.mu.Lock()
	h := m.holds[v.Name]
	if h == nil || h.removing || !h.Complete || h.Namespace != namespace || h.Name != name {
		m.mu.Unlock()
		return false, nil
	}
	h.uses++
	m.mu.Unlock()
	defer m.release(h)
	if v, err = m.zone.Get(ctx, v.Name); errkind.Is(err, errkind.NotFound) {
		return false, nil
	} else if err != nil {
		return true, err
	}
	return true, m.showTo(ctx, v, target)
}

// here checks that this node may have the data set.
func (m *Manager) here(ctx context.Context, d *v1alpha1.StargateDataset) error {
	if len(d.Spec.NodeSelector) == 0 {
		return nil
	}
	labels, err := m.cluster.NodeLabels(ctx)
	if err != nil {
		return err
	}
	for k, v := range d.Spec.NodeSelector {
		if labels[k] != v {
			return errkind.New(errkind.InUse, "data set %s/%s: is not for node %s, which has no label %s=%s (spec.nodeSelector)", d.Namespace, d.Name, m.config.Node, k, v)
		}
	}
	return nil
}

// give mounts a complete copy for a pod.
func (m *Manager) give(ctx context.Context, d *v1alpha1.StargateDataset, h *hold, target string) error {
	v, err := m.zone.Get(ctx, h.volume.Name)
	if errkind.Is(err, errkind.NotFound) {
		m.lost(ctx, h)
		m.fillFor(d)
		return errkind.New(errkind.NotReady, "data set %s/%s: the memory of its copy on node %s was lost; it is filled again", d.Namespace, d.Name, m.config.Node)
	}
	if err != nil {
		return err
	}
	if err := mounts.MakeDir(target); err != nil {
		return err
	}
	return m.showTo(ctx, v, target)
}

// showTo mounts a copy at a pod's path.
func (m *Manager) showTo(ctx context.Context, v pool.Volume, target string) error {
	v, err := m.usable(ctx, v)
	if err != nil {
		return err
	}
	if err := m.mount(ctx, v); err != nil {
		return err
	}
	return m.show.Publish(ctx, v, m.staging(v.Name), target, publish.Options{ReadOnly: true})
}

// usable makes the volume of a copy usable after a boot.
func (m *Manager) usable(ctx context.Context, v pool.Volume) (pool.Volume, error) {
	if v.State == pool.Inactive {
		return m.zone.Activate(ctx, v.Name)
	}
	if !v.State.Whole() {
		return v, errkind.New(errkind.InUse, "volume %s cannot be used: %s", v.Name, v.Why)
	}
	return v, nil
}

// take returns the newest complete copy, and keeps it from being removed until release is called.
func (m *Manager) take(d *v1alpha1.StargateDataset) *hold {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.newestLocked(string(d.UID), d.Wanted())
	if h != nil {
		h.uses++
		h.used, h.promised = time.Now(), time.Time{}
	}
	return h
}

func (m *Manager) release(h *hold) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.uses--
	h.used = time.Now()
}

// newestLocked returns the newest complete copy of a data set with the wanted contents; empty: with
// any contents.
func (m *Manager) newestLocked(uid, wanted string) *hold {
	var newest *hold
	for _, h := range m.holds {
		fits := h.UID == uid && (wanted == "" || h.Wanted == wanted) && h.Complete && !h.removing
		if fits && (newest == nil || h.made.After(newest.made)) {
			newest = h
		}
	}
	return newest
}

// await waits until the fill of a data set has ended, or the pod's call has waited long enough.
func (m *Manager) await(ctx context.Context, d *v1alpha1.StargateDataset) error {
	f := m.fillFor(d)
	select {
	case <-f.done:
		return nil
	case <-f.failedOnce():
	case <-time.After(m.config.Wait):
	case <-ctx.Done():
	}
	select {
	case <-f.done:
		return nil
	default:
		return f.waiting(m.config.Node)
	}
}

// At returns the volume of the copy that is mounted at a path.
func (m *Manager) At(path string) (pool.Volume, bool) {
	m.mu.Lock()
	var all []pool.Volume
	for _, h := range m.holds {
		all = append(all, h.volume)
	}
	m.mu.Unlock()
	for _, v := range all {
		paths, err := m.show.Shown(v)
		if err != nil {
			return pool.Volume{}, false
		}
		for _, p := range paths {
			if p == path {
				return v, true
			}
		}
	}
	return pool.Volume{}, false
}
