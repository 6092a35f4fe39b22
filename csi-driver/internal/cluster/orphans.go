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

// OrphanLimit is how long a volume may be without a PersistentVolume, as one that is just being made has none
// yet, either; and how often orphans are looked for, as that lists the volumes of the whole cluster.
const OrphanLimit = 10 * time.Minute

// orphans are volumes that were made for claims and that no PersistentVolume has any more: nobody will ask the
// driver to delete them.
type orphans struct {
	every int             // of so many looks one is for them
	wait  int             // looks until the next one that is
	told  map[string]bool // those that had none at the last look, and whether it has been said
}

// LookForOrphans is for another limit than OrphanLimit; before Run.
func (n *Node) LookForOrphans(limit time.Duration) {
	n.orphans.every = max(1, int((limit+Period-1)/Period))
}

// Orphans is how many there are; false: nobody has looked for long enough.
func (n *Node) Orphans() (int64, bool) {
	found := n.orphaned.Load()
	return found, found >= 0
}

func (n *Node) findOrphans(ctx context.Context, volumes []pool.Volume) error {
	if n.orphans.wait > 0 {
		n.orphans.wait--
		return nil
	}
	// What the API server has in memory will do.
	list, err := n.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("PersistentVolumes: %w", err) // with the next look
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
