// SPDX-License-Identifier: Apache-2.0

// Package request checks and interprets CSI requests: parameters of classes, capabilities, sizes
// and pages of lists, for the driver's configuration. It asks neither the zone nor the node.
package request

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/nodemeta"
	"stargate/csi-driver/internal/pool"
)

// Config is the operator's configuration of the driver.
type Config struct {
	Name    string
	Version string
	NodeID  string
	// DefaultSize is the size of a volume without a requested size.
	DefaultSize int64
	// AllowHostSplice lets this node follow file tables that VMs write (D5).
	AllowHostSplice bool
	// AllowSuidDev lets a StorageClass have volumes mounted without nosuid and nodev.
	AllowSuidDev bool
	// Inline are parameters of all inline volumes, which no pod's author chooses.
	Inline map[string]string
	// SnapshotFolder is set if the zone has a folder for snapshots (package outside).
	SnapshotFolder bool
	// ControllerExpand claims that calls of the controller reach the volume's node. With one
	// external-resizer for all nodes they do not: kubelet's call on the node does all the work.
	ControllerExpand bool
	// GoneZones are identities of zones whose memory no longer exists: volumes in them count as
	// deleted.
	GoneZones []string
}

// Gone reports whether an id names a zone or folder whose memory no longer exists.
func (c Config) Gone(of pool.ID) bool { return of.Zone != "" && slices.Contains(c.GoneZones, of.Zone) }

// NameOf is the name in the zone of a volume to make, before pool.NameFor.
func (c Config) NameOf(r *csi.CreateVolumeRequest) string {
	return pool.WithoutNode(r.GetName(), c.Name, c.NodeID)
}

// TopologyKey is the label that tells nodes apart.
func (c Config) TopologyKey() string { return nodemeta.Topology(c.Name) }

// Topology is this node's.
func (c Config) Topology() *csi.Topology {
	return &csi.Topology{Segments: map[string]string{c.TopologyKey(): c.NodeID}}
}

// Here checks whether a volume or snapshot may be on this node.
func (c Config) Here(t *csi.TopologyRequirement, what string) error {
	if t == nil || len(t.GetRequisite())+len(t.GetPreferred()) == 0 {
		return nil
	}
	if slices.ContainsFunc(slices.Concat(t.GetRequisite(), t.GetPreferred()), c.Ours) {
		return nil
	}
	return errkind.New(errkind.NoSpace, "the %s is requested on other nodes, not on %s", what, c.NodeID)
}

// Ours reports whether a topology is this node's. This node has one key: a topology with another
// key is on no node.
func (c Config) Ours(t *csi.Topology) bool {
	for key, value := range t.GetSegments() {
		if key != c.TopologyKey() || value != c.NodeID {
			return false
		}
	}
	return true
}

// GivenVolume checks that a request names a volume.
func GivenVolume(id string) error {
	if id == "" {
		return errkind.New(errkind.Invalid, "no volume id is given")
	}
	return nil
}
