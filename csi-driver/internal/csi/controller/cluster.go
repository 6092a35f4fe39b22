// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/types"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// Parameters that name the claim of a new volume (set by the provisioner with
// --extra-create-metadata).
const (
	claimName      = request.ForeignPrefix + "pvc/name"
	claimNamespace = request.ForeignPrefix + "pvc/namespace"
)

// Cluster reads the PersistentVolumes of this node. cluster.Node documents the contract of each
// method.
type Cluster interface {
	Names(ctx context.Context, volume pool.ID, name string) ([]string, error)
	Keeps(ctx context.Context, volume pool.ID) ([]string, error)
	Made(volume, pv string, claim types.NamespacedName)
}

// AskCluster sets the Cluster that the service queries about volumes. Call it before the service
// handles calls. Without a Cluster, the service does not check for other PersistentVolumes of a
// volume.
func (d *Controller) AskCluster(c Cluster) { d.cluster = c }

// onlyName fails with InUse if the requested volume already has a PersistentVolume with another
// name. An older chart has created that PersistentVolume, and the claim is not bound to it yet.
// With a second PersistentVolume, Kubernetes would bind the claim to one of them. It would then
// delete the other one, and with it the volume of both.
func (d *Controller) onlyName(ctx context.Context, volume string, r *csi.CreateVolumeRequest) error {
	if d.cluster == nil {
		return nil
	}
	names, err := d.cluster.Names(ctx, pool.ID{Name: volume}, d.config.NameOf(r))
	if err != nil {
		return unasked(volume, err)
	}
	for _, other := range names {
		if other != r.GetName() {
			return errkind.New(errkind.InUse, "volume %s has the PersistentVolume %s already, and gets no second one: "+
				"wait until Kubernetes binds the claim to that PersistentVolume, or delete that PersistentVolume", volume, other)
		}
	}
	return nil
}

// nobodyKeeps fails with InUse if a PersistentVolume that must remain names the volume. The
// provisioner deletes the volume of a PersistentVolume that is Released and has the policy Delete.
// Its state may be outdated, or the volume may have a second PersistentVolume.
func (d *Controller) nobodyKeeps(ctx context.Context, volume pool.ID) error {
	if d.cluster == nil {
		return nil
	}
	keep, err := d.cluster.Keeps(ctx, volume)
	if err != nil {
		return unasked(volume.Name, err)
	}
	if len(keep) > 0 {
		return errkind.New(errkind.InUse, "volume %s is not deleted, because PersistentVolume %s names it: to delete another PersistentVolume and keep the volume, "+
			"set persistentVolumeReclaimPolicy of that PersistentVolume to Retain, and delete it", volume.Name, strings.Join(keep, " and "))
	}
	return nil
}

func unasked(volume string, err error) error {
	return errkind.Wrap(errkind.NoAnswer, err, "the PersistentVolumes of volume %s cannot be read from the cluster", volume)
}

// tellMade passes the claim of a new volume to the Cluster.
func (d *Controller) tellMade(volume string, r *csi.CreateVolumeRequest) {
	of := types.NamespacedName{Namespace: r.GetParameters()[claimNamespace], Name: r.GetParameters()[claimName]}
	if d.cluster != nil && of.Namespace != "" && of.Name != "" {
		d.cluster.Made(volume, r.GetName(), of)
	}
}
