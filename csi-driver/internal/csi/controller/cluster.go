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

// Keys of the claim for which a volume is made (the provisioner's --extra-create-metadata).
const (
	claimName      = request.ForeignPrefix + "pvc/name"
	claimNamespace = request.ForeignPrefix + "pvc/namespace"
)

// Cluster knows the PersistentVolumes of this node. cluster.Node has the contract of each method.
type Cluster interface {
	Names(ctx context.Context, volume pool.ID) ([]string, error)
	Made(volume, pv string, claim types.NamespacedName)
}

// AskCluster lets the service ask the cluster about volumes; call it before the first call. Without
// it a volume has the names that the calls give.
func (d *Controller) AskCluster(c Cluster) { d.cluster = c }

// onlyName fails with InUse if a volume to make has a PersistentVolume of another name already. An
// older chart has made that one, and the claim is not bound to it yet. With a second one, Kubernetes
// would bind the claim to one of them, and delete the other one with the volume of both.
func (d *Controller) onlyName(ctx context.Context, volume, name string) error {
	names, err := d.names(ctx, pool.ID{Name: volume})
	if err != nil {
		return err
	}
	for _, other := range names {
		if other != name {
			return errkind.New(errkind.InUse, "volume %s has the PersistentVolume %s already, and gets no second one: "+
				"Kubernetes binds the claim to it, or delete it", volume, other)
		}
	}
	return nil
}

// lastName fails with InUse if several PersistentVolumes name a volume that is to be deleted.
func (d *Controller) lastName(ctx context.Context, volume pool.ID) error {
	names, err := d.names(ctx, volume)
	if err == nil && len(names) > 1 {
		return errkind.New(errkind.InUse, "PersistentVolumes %s name the same volume, %s, so it is not deleted: keep the one that its claim has, "+
			"set persistentVolumeReclaimPolicy of the other one to Retain, and delete that one", strings.Join(names, " and "), volume.Name)
	}
	return err
}

func (d *Controller) names(ctx context.Context, volume pool.ID) ([]string, error) {
	if d.cluster == nil {
		return nil, nil
	}
	names, err := d.cluster.Names(ctx, volume)
	if err != nil {
		return nil, errkind.Wrap(errkind.NoAnswer, err, "the cluster cannot be asked for the names of volume %s", volume.Name)
	}
	return names, nil
}

// tellMade tells the cluster for which claim a volume is made.
func (d *Controller) tellMade(volume string, r *csi.CreateVolumeRequest) {
	of := types.NamespacedName{Namespace: r.GetParameters()[claimNamespace], Name: r.GetParameters()[claimName]}
	if d.cluster != nil && of.Namespace != "" && of.Name != "" {
		d.cluster.Made(volume, r.GetName(), of)
	}
}
