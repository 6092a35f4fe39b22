// SPDX-License-Identifier: Apache-2.0

// Package request checks and interprets CSI requests: parameters of classes, capabilities, sizes
// and pages of lists. The result depends only on the request and the driver's configuration, not on
// the zone or the node.
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
	// AllowSuidDev allows a StorageClass to mount volumes without nosuid and nodev.
	AllowSuidDev bool
	// Inline has the parameters that the operator sets for all inline volumes. A pod's author
	// cannot set them.
	Inline map[string]string
	// NoInline makes the driver refuse inline volumes, except those of data sets.
	NoInline bool
	// SnapshotFolder is set if the zone has a folder for snapshots (package outside).
	SnapshotFolder bool
	// ControllerExpand is set if the resizer's calls reach the volume's node. One
	// external-resizer for all nodes calls the driver of only one node. Then only kubelet's
	// call on the volume's node grows the volume.
	ControllerExpand bool
	// GoneZones has the identities of zones whose memory no longer exists. Volumes in these
	// zones count as deleted.
	GoneZones []string
}

// Gone reports whether an id names a zone or folder whose memory no longer exists.
func (c Config) Gone(of pool.ID) bool { return of.Zone != "" && slices.Contains(c.GoneZones, of.Zone) }

// NameOf returns the name of a requested volume in the zone, before pool.NameFor shortens it.
func (c Config) NameOf(r *csi.CreateVolumeRequest) string {
	return pool.WithoutNode(r.GetName(), c.Name, c.NodeID)
}

// TopologyKey returns the label that distinguishes nodes.
func (c Config) TopologyKey() string { return nodemeta.Topology(c.Name) }

// Topology returns this node's topology.
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

// Ours reports whether a topology is this node's. This node has only one key, so a topology with
// another key matches no node.
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
