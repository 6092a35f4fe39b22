// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"os"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// make creates the volume of a copy. If a quota or the zone has no room, it first removes copies
// without pods, beginning with the one that was not used for the longest time.
func (m *Manager) make(ctx context.Context, d *v1alpha1.StargateDataset, name string, size int64) (pool.Volume, error) {
	for {
		over, in := m.overQuota(d, size)
		if over == nil {
			v, err := m.zone.Create(ctx, pool.Spec{Name: name, Size: size, Align: pool.Extent, Label: label(d), RootMode: "0755"})
			if errkind.Is(err, errkind.Exists) { // the tool of a killed driver has finished
				v, err = m.zone.Get(ctx, name)
			}
			if !errkind.Is(err, errkind.NoSpace) {
				return v, err
			}
			over, in = err, ""
		}
		gone, err := m.removeOldest(ctx, in)
		if err != nil {
			return pool.Volume{}, err
		}
		if !gone {
			return pool.Volume{}, over
		}
	}
}

// label returns the label of a copy's volume.
func label(d *v1alpha1.StargateDataset) string {
	const most = 63
	text := d.Namespace + "/" + d.Name
	return text[:min(len(text), most)]
}

// overQuota returns an error if a copy of this size would exceed a quota. in is the namespace whose
// copies must make room; empty: any.
func (m *Manager) overQuota(d *v1alpha1.StargateDataset, size int64) (over error, in string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all, own int64
	for _, h := range m.holds {
		all += h.volume.Size
		if h.Namespace == d.Namespace {
			own += h.volume.Size
		}
	}
	if most := m.config.NamespaceQuota; most > 0 && own+size > most {
		return errkind.New(errkind.NoSpace, "the copies of namespace %s would take %d bytes of node %s, and its quota is %d", d.Namespace, own+size, m.config.Node, most), d.Namespace
	}
	if most := m.config.NodeQuota; most > 0 && all+size > most {
		return errkind.New(errkind.NoSpace, "the copies of all data sets would take %d bytes of node %s, and the quota is %d", all+size, m.config.Node, most), ""
	}
	return nil, ""
}

// removeOldest removes the copy without pods that was not used for the longest time. It reports
// whether there was one.
func (m *Manager) removeOldest(ctx context.Context, namespace string) (bool, error) {
	tried := map[*hold]bool{}
	for {
		var oldest *hold
		m.mu.Lock()
		for _, h := range m.holds {
			ok := !tried[h] && h.uses == 0 && !h.removing && (namespace == "" || h.Namespace == namespace)
			if ok && (oldest == nil || h.used.Before(oldest.used)) {
				oldest = h
			}
		}
		m.mu.Unlock()
		if oldest == nil {
			return false, nil
		}
		tried[oldest] = true
		if gone, err := m.remove(ctx, oldest, "another volume needs its memory"); gone || err != nil {
			return gone, err
		}
	}
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

// adopt finds the copies of an earlier driver. A copy without a record was interrupted before it
// got one; it has nothing to keep.
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
		if err := m.adoptOne(ctx, v); err != nil {
			klog.FromContext(ctx).Error(err, "A copy of a data set cannot be used; the driver keeps it", "volume", v.Name)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adopted = true
	return nil
}

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
