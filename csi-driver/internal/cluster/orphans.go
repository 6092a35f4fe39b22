// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/zone"
)

// Of so many looks one is for orphans, as it lists the volumes of the whole cluster. It is also how long one
// has to be without a PersistentVolume: one that is just being made has none yet, either.
const orphansEvery = 20

// orphans are volumes that were made for claims and that no PersistentVolume has any more: nobody will ask the
// driver to delete them.
type orphans struct {
	looks int
	told  map[string]bool // those that had none at the last look, and whether it has been said
}

// Orphans is how many there are; false: nobody has looked for long enough.
func (n *Node) Orphans() (int64, bool) {
	found := n.orphaned.Load()
	return found, found >= 0
}

func (n *Node) findOrphans(ctx context.Context, volumes []zone.Volume) error {
	if n.orphans.looks++; n.orphans.looks%orphansEvery != 1 {
		return nil
	}
	// What the API server has in memory will do.
	list, err := n.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		n.orphans.looks-- // with the next look
		return fmt.Errorf("PersistentVolumes: %w", err)
	}
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
		if !zone.OfClaim(v.Name) || known[v.Name] {
			continue
		}
		told, again := before[v.Name]
		n.orphans.told[v.Name] = again
		if !again {
			continue
		}
		found++
		if !told {
			klog.FromContext(ctx).Info("A volume has no PersistentVolume: nobody will delete it", "volume", v.Name, "size", v.Size)
			n.events.Eventf(n.itself(), corev1.EventTypeWarning, "VolumeOrphaned",
				"volume %s has no PersistentVolume: nobody will delete it, unless by stargatectl volume delete", v.Name)
		}
	}
	if before != nil {
		n.orphaned.Store(found)
	}
	return nil
}
