// SPDX-License-Identifier: Apache-2.0

// Package driver implements CSI's services for one node: the meaning of a request, and the checks
// before any action. Packages zone and present do the work.
package driver

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/nodemeta"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// Config is the operator's configuration of the driver.
type Config struct {
	Name    string
	Version string
	NodeID  string
	// DefaultSize is the size of a volume without a requested size.
	DefaultSize int64
	// AllowHostSplice lets this node follow file tables that machines write (D5).
	AllowHostSplice bool
	// AllowSuidDev lets a StorageClass have volumes mounted without nosuid and nodev.
	AllowSuidDev bool
	// Inline are parameters of all inline volumes, which no pod's author chooses.
	Inline map[string]string
	// SnapshotFolder: the zone is one of package outside.
	SnapshotFolder bool
	// ControllerExpand claims that calls of the controller reach the volume's node. With one
	// external-resizer for all nodes they do not: kubelet's call on the node does all the work.
	ControllerExpand bool
	// GoneZones are identities of zones whose memory no longer exists: volumes in them count as
	// deleted.
	GoneZones []string
}

func (c Config) gone(of pool.ID) bool { return of.Zone != "" && slices.Contains(c.GoneZones, of.Zone) }

// TopologyKey is the label that tells nodes apart.
func (c Config) TopologyKey() string { return nodemeta.Topology(c.Name) }

func (c Config) topology() *csi.Topology {
	return &csi.Topology{Segments: map[string]string{c.TopologyKey(): c.NodeID}}
}

// Driver serves Identity, Controller and Node.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	config Config
	zone   pool.Zone
	show   publish.Presenter
	mounts *mounts.Mounter
	module *kernelmodule.Module
	folder *mounts.Folder
	calls  *calls

	machines IsMachines // nil: there are none
}

// New puts it together.
func New(config Config, z pool.Zone, show publish.Presenter, m *mounts.Mounter, k *kernelmodule.Module, folder *mounts.Folder) *Driver {
	return &Driver{config: config, zone: z, show: show, mounts: m, module: k, folder: folder, calls: newCalls()}
}
