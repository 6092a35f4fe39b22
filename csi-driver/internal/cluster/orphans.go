// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/pool"
)

// OrphanLimit is how long a volume may be without a PersistentVolume, because a new volume has none
// at first. It is also the interval of the search for orphans, because a search lists the volumes
// of the whole cluster.
const OrphanLimit = 10 * time.Minute

// orphans are volumes that were made for claims and have no PersistentVolume any more: no call to
// delete them will come.
type orphans struct {
	every int             // one look of this many includes a search
	wait  int             // looks until the next search
	told  map[string]bool // volumes without one at the last search, and whether this was reported
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

func (n *Node) findOrphans(ctx context.Context, volumes []pool.Volume) error {
	if n.orphans.wait > 0 {
		n.orphans.wait--
		return nil
	}
	// The state in the API server's memory is recent enough.
	list, err := n.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("PersistentVolumes: %w", err) // retried with the next look
	}
	n.orphans.wait = n.orphans.every - 1
	known := map[string]bool{}
	for i := range list.Items {
		if of := list.Items[i].Spec.CSI; of != nil && of.Driver == n.driver {
			known[of.VolumeHandle] = true
		}
	}
	before := n.orphans.told
	n.orphans.told = map[string]bool{}
	found := int64(0)
	for _, v := range volumes {
		if !pool.OfClaim(v.Name) || known[v.Name] || known[v.ID()] {
			continue
		}
		told, again := before[v.Name]
		n.orphans.told[v.Name] = again
		if !again {
			continue
		}
		found++
		if !told {
			klog.FromContext(ctx).Info("A volume has no PersistentVolume: Kubernetes will not delete it", "volume", v.Name, "size", v.Size)
			n.events.Eventf(n.itself(), corev1.EventTypeWarning, "VolumeOrphaned",
				"volume %s has no PersistentVolume, so Kubernetes will not delete it: run stargatectl volume delete, or give it a PersistentVolume", v.Name)
		}
	}
	if before != nil {
		n.orphaned.Store(found)
	}
	return nil
}
