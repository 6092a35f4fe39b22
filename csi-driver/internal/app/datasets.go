// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"path/filepath"

	"stargate/csi-driver/internal/dataset"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
	"stargate/csi-driver/internal/stargatectl"
)

// openDatasets returns the node's copies of data sets; nil if there are none. Their mounts are in
// kubelet's folder, so that they outlive the driver's container.
func openDatasets(c Config, z pool.Zone, show publish.Presenter, of dataset.Cluster) (*dataset.Manager, error) {
	if !c.Datasets.Enabled || z.Kind() == pool.None {
		return nil, nil
	}
	kubelet, err := filepath.EvalSymlinks(c.KubeletDir)
	if err != nil {
		return nil, fmt.Errorf("kubelet's folder: %w", err)
	}
	t, err := stargatectl.New(c.ToolsDir)
	if err != nil {
		return nil, err
	}
	if c.Catalog != nil {
		of = c.Catalog
	}
	config := dataset.Config{
		Node: c.Driver.NodeID, Dir: filepath.Join(kubelet, "plugins", c.Driver.Name, "datasets"),
		Hosts: c.Datasets.Hosts, NodeQuota: c.Datasets.NodeQuota, NamespaceQuota: c.Datasets.NamespaceQuota,
		Grace: c.Datasets.Grace, Wait: c.Datasets.Wait, Period: c.Datasets.Period, Seal: t.Seal,
	}
	return dataset.New(config, z, show, of), nil
}
