// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/pool"
)

// OrphanLimit is how long a volume may be without a PersistentVolume, because a new volume has none
// at first. The same holds for mounts and contents. It is also the interval of the search for
// orphans, because a search lists the volumes of the whole cluster.
const OrphanLimit = 10 * time.Minute

// orphans are volumes and snapshots that no call will delete: made for a claim, and without a
// PersistentVolume; made for a pod, and mounted nowhere; or without a VolumeSnapshotContent.
type orphans struct {
	every int             // one look of this many includes a search
	wait  int             // looks until the next search
	told  map[string]bool // the ones of the last search, and whether they were reported
}

// LookForOrphans sets another limit than OrphanLimit; call it before Run.
func (n *Node) LookForOrphans(limit time.Duration) {
	n.orphans.every = max(1, int((limit+Period-1)/Period))
}

// Orphans is the number of orphans; false: no search has covered enough time yet.
func (n *Node) Orphans() (int64, bool) {
	found := n.orphaned.Load()
	return found, found >= 0
}

func (n *Node) findOrphans(ctx context.Context, z Zone, volumes []pool.Volume) error {
	if n.orphans.wait > 0 {
		n.orphans.wait--
		return nil
	}
	all, err := n.unowned(ctx, z, volumes)
	if err != nil {
		return err // retried with the next look
	}
	n.orphans.wait = n.orphans.every - 1
	before := n.orphans.told
	n.orphans.told = map[string]bool{}
	found := int64(0)
	for _, o := range all {
		told, again := before[o.name]
		n.orphans.told[o.name] = again
		if !again {
			continue
		}
		found++
		if !told {
			klog.FromContext(ctx).Info("Kubernetes will not delete a volume or snapshot: it "+o.why, "name", o.name, "size", o.size)
			n.events.Eventf(n.itself(), corev1.EventTypeWarning, "VolumeOrphaned", "%s %s %s", o.kind, o.name, o.why)
		}
	}
	if before != nil {
		n.orphaned.Store(found)
	}
	return nil
}

// orphan is a volume or snapshot, and the reason why Kubernetes will not delete it.
type orphan struct {
	kind, name string
	size       int64
	why        string
}

const (
	ofNoVolume  = "has no PersistentVolume, so Kubernetes will not delete it: run stargatectl volume delete, or give it a PersistentVolume"
	ofNoPod     = "is mounted for no pod, so Kubernetes will not delete it: if its pod is gone, run stargatectl volume delete"
	ofNoContent = "has no VolumeSnapshotContent, so Kubernetes will not delete it: run stargatectl volume delete, or give it a VolumeSnapshotContent"
)

// unowned are the volumes and snapshots that were made for Kubernetes, and that no object or mount
// of Kubernetes names.
func (n *Node) unowned(ctx context.Context, z Zone, volumes []pool.Volume) ([]orphan, error) {
	// The state in the API server's memory is recent enough.
	recent := metav1.ListOptions{ResourceVersion: "0"}
	list, err := n.client.CoreV1().PersistentVolumes().List(ctx, recent)
	if err != nil {
		return nil, fmt.Errorf("PersistentVolumes: %w", err)
	}
	known := map[string]bool{}
	for i := range list.Items {
		if of := list.Items[i].Spec.CSI; of != nil && of.Driver == n.driver {
			known[of.VolumeHandle] = true
		}
	}
	shown, err := n.shown(volumes)
	if err != nil {
		return nil, fmt.Errorf("mounts of volumes: %w", err)
	}
	var all []orphan
	for _, v := range volumes {
		switch {
		case pool.OfClaim(v.Name) && !known[v.Name] && !known[v.ID()]:
			all = append(all, orphan{"volume", v.Name, v.Size, ofNoVolume})
		case pool.IsEphemeral(v.Name) && len(shown[v.Name]) == 0:
			all = append(all, orphan{"volume", v.Name, v.Size, ofNoPod})
		}
	}
	if n.contents == nil {
		return all, nil // nobody makes snapshots
	}
	contents, err := n.contents.List(ctx, recent)
	if err != nil {
		return nil, fmt.Errorf("contents of snapshots: %w", err)
	}
	for _, c := range contents.Items {
		if of, _, _ := unstructured.NestedString(c.Object, "spec", "driver"); of != n.driver {
			continue
		}
		for _, at := range [][]string{{"spec", "source", "snapshotHandle"}, {"status", "snapshotHandle"}} {
			handle, _, _ := unstructured.NestedString(c.Object, at...)
			known[handle] = true
		}
	}
	snapshots, err := z.Snapshots(ctx)
	if err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	for _, s := range snapshots {
		if pool.IsSnapshot(s.Name) && !known[s.Name] && !known[s.ID()] {
			all = append(all, orphan{"snapshot", s.Name, s.Size, ofNoContent})
		}
	}
	return all, nil
}
