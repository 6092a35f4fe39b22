// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// contextDataset is the attribute of an inline volume that names a data set of the pod's namespace.
const contextDataset = "dataset"

// Datasets mounts this node's copies of data sets. Package dataset documents the contract.
type Datasets interface {
	Publish(ctx context.Context, namespace, name, target string) error
	At(path string) (pool.Volume, bool)
}

// ServeDatasets sets the node's copies of data sets. Call it before the service handles calls.
func (d *Node) ServeDatasets(all Datasets) { d.datasets = all }

// publishDataset mounts a data set for a pod, always read-only. Such a volume takes no memory for
// the pod, so it is allowed where other inline volumes are not.
func (d *Node) publishDataset(ctx context.Context, r *csi.NodePublishVolumeRequest, name, target string) (*csi.NodePublishVolumeResponse, error) {
	if err := request.Check(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if d.datasets == nil {
		return nil, errkind.New(errkind.InUse, "data set %q: node %s has no data sets; the operator can turn them on (datasets.enabled)", name, d.config.NodeID)
	}
	for key := range r.GetVolumeContext() {
		if key != contextDataset && !strings.HasPrefix(key, request.ForeignPrefix) {
			return nil, errkind.New(errkind.Invalid, "a volume with %s has no attribute %q", contextDataset, key)
		}
	}
	namespace := r.GetVolumeContext()[contextPodNamespace]
	if name == "" || namespace == "" {
		return nil, errkind.New(errkind.Invalid, "attribute %s must name a data set of the pod's namespace", contextDataset)
	}
	end, err := d.volumes.Begin(r.GetVolumeId(), "NodePublishVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := d.datasets.Publish(ctx, namespace, name, target); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}
