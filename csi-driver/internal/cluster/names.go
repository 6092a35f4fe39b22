// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/nodemeta"
	"stargate/csi-driver/internal/pool"
)

// A volume should have only one PersistentVolume. But an upgrade can create a second
// PersistentVolume for a claim, because older charts named PersistentVolumes differently. A user
// can also create one. Kubernetes then deletes the PersistentVolume to which no claim is bound. It
// would delete the volume, too, although the other PersistentVolume needs the volume.

// askLimit is the time that a call waits for the API server. After that time the call fails, and
// its caller repeats it. Until the call ends, repeated calls for the same volume fail.
const askLimit = 30 * time.Second

// known has the names of the driver's PersistentVolumes, by the volumes' names in their handles.
type known struct {
	began time.Time // start of the list request
	by    map[string][]string
}

// Names returns the existing PersistentVolumes of a requested volume. The provisioner's name for a
// PersistentVolume contains this node's name, except in older charts. Names does not search for the
// volume's name in the zone, which may be a digest.
func (n *Node) Names(ctx context.Context, volume pool.ID, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, n.asks)
	defer cancel()
	there, err := n.read(ctx, volume, []string{pool.WithNode(name, n.driver, n.name), name})
	var names []string
	for _, v := range there {
		names = append(names, v.Name)
	}
	return names, err
}

// Keeps returns the PersistentVolumes of a volume that Kubernetes must not delete, each with the
// reason. The list finds PersistentVolumes of any name, but may be slightly outdated. So the driver
// reads the state of each PersistentVolume again.
func (n *Node) Keeps(ctx context.Context, volume pool.ID) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, n.asks)
	defer cancel()
	called, err := n.called(ctx, volume.Name)
	if err != nil {
		return nil, err
	}
	names := append([]string{pool.WithNode(volume.Name, n.driver, n.name), volume.Name}, called...)
	there, err := n.read(ctx, volume, names)
	var keep []string
	for _, v := range there {
		deletes := v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
		if ended := v.Status.Phase == corev1.VolumeReleased || v.Status.Phase == corev1.VolumeFailed; !ended || !deletes {
			keep = append(keep, fmt.Sprintf("%s (%s, %s)", v.Name, v.Status.Phase, v.Spec.PersistentVolumeReclaimPolicy))
		}
	}
	return keep, err
}

// called returns the PersistentVolumes whose handles have this name, on any node. A list is long,
// and users decide how many volumes are deleted at the same time. So only one list request runs at
// a time, and its result serves all calls that have waited for it. A list that began before a call
// is too old for this call: a user may have created a PersistentVolume in between.
func (n *Node) called(ctx context.Context, volume string) ([]string, error) {
	asked := time.Now()
	select {
	case n.listing <- struct{}{}:
		defer func() { <-n.listing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if began := time.Now(); n.known.began.Before(asked) {
		list, err := n.client.CoreV1().PersistentVolumes().List(ctx, recent())
		if err != nil {
			return nil, fmt.Errorf("PersistentVolumes: %w", err)
		}
		n.known = known{began, map[string][]string{}}
		for i := range list.Items {
			if v := &list.Items[i]; v.Spec.CSI != nil && v.Spec.CSI.Driver == n.driver {
				name := pool.NameOf(v.Spec.CSI.VolumeHandle)
				n.known.by[name] = append(n.known.by[name], v.Name)
			}
		}
	}
	return n.known.by[volume], nil
}

// read returns the PersistentVolumes of a volume that have one of these names.
func (n *Node) read(ctx context.Context, volume pool.ID, names []string) (there []*corev1.PersistentVolume, err error) {
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		v, err := n.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("PersistentVolume %s: %w", name, err)
		case n.of(v, volume):
			there = append(there, v)
		}
	}
	return there, nil
}

// of reports whether a PersistentVolume's handle names a given volume of this node. A handle with a
// zone is unique. A handle of an older driver has no zone, so the PersistentVolume's node affinity
// decides.
func (n *Node) of(v *corev1.PersistentVolume, volume pool.ID) bool {
	if v.Spec.CSI == nil || v.Spec.CSI.Driver != n.driver {
		return false
	}
	id, ok := pool.ParseID(v.Spec.CSI.VolumeHandle)
	return ok && id.Name == volume.Name && !id.Elsewhere(volume.Zone) && (id.Zone != "" && id.Zone == volume.Zone || n.here(v))
}

// here reports whether the node affinity of a PersistentVolume has the driver's label for this
// node.
func (n *Node) here(v *corev1.PersistentVolume) bool {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return false
	}
	return slices.ContainsFunc(v.Spec.NodeAffinity.Required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == nodemeta.Topology(n.driver) && r.Operator == corev1.NodeSelectorOpIn && slices.Equal(r.Values, []string{n.name})
		})
	})
}

// tellTwice reports volumes of this node that have several PersistentVolumes, once for each set of
// names.
func (n *Node) tellTwice(ctx context.Context, all []corev1.PersistentVolume, volumes []pool.Volume) {
	in := map[string]string{}
	for _, v := range volumes {
		in[v.Name] = v.Zone
	}
	of := map[string][]*corev1.PersistentVolume{}
	for i := range all {
		v := &all[i]
		if v.Spec.CSI == nil {
			continue
		}
		name := pool.NameOf(v.Spec.CSI.VolumeHandle)
		if zone, there := in[name]; there && n.of(v, pool.ID{Name: name, Zone: zone}) {
			of[name] = append(of[name], v)
		}
	}
	before := n.twice
	n.twice = map[string][]string{}
	for name, by := range of {
		if len(by) < 2 {
			continue
		}
		var names []string
		for _, v := range by {
			names = append(names, v.Name)
		}
		slices.Sort(names)
		n.twice[name] = names
		if slices.Equal(names, before[name]) {
			continue
		}
		klog.FromContext(ctx).Info("Several PersistentVolumes name one volume", "volume", name, "names", names)
		for _, v := range by {
			n.events.Eventf(v, corev1.EventTypeWarning, "VolumeNamedTwice", "PersistentVolumes %s name the same volume, %s on node %s: "+
				"the driver does not delete the volume while one of them must remain", strings.Join(names, " and "), name, n.name)
		}
	}
}
