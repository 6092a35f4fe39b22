// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/nodemeta"
	"stargate/csi-driver/internal/pool"
)

// Names are the PersistentVolumes of this node whose handle is a volume. There should be one. But
// an upgrade can give a claim a second one, because older charts named it differently; and a person
// can write one. Kubernetes then deletes the one that no claim is bound to, and would delete the
// volume of the other one with it.
//
// Names asks for the names that this chart and older ones give, and for those that the last search
// for orphans has seen twice.
func (n *Node) Names(ctx context.Context, volume pool.ID) ([]string, error) {
	names := []string{pool.WithNode(volume.Name, n.driver, n.name), volume.Name}
	if twice := n.twice.Load(); twice != nil {
		names = append(names, (*twice)[volume.Name]...)
	}
	slices.Sort(names)
	var there []string
	for _, name := range slices.Compact(names) {
		v, err := n.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("PersistentVolume %s: %w", name, err)
		case n.here(v) && same(v, volume):
			there = append(there, name)
		}
	}
	return there, nil
}

// same reports whether a PersistentVolume's handle is a volume. Handles of older drivers have no
// zone.
func same(v *corev1.PersistentVolume, volume pool.ID) bool {
	of, ok := pool.ParseID(v.Spec.CSI.VolumeHandle)
	return ok && of.Name == volume.Name && !of.Elsewhere(volume.Zone)
}

// here reports whether a PersistentVolume is this driver's, and of this node.
func (n *Node) here(v *corev1.PersistentVolume) bool {
	if v.Spec.CSI == nil || v.Spec.CSI.Driver != n.driver || v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return false
	}
	return slices.ContainsFunc(v.Spec.NodeAffinity.Required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == nodemeta.Topology(n.driver) && r.Operator == corev1.NodeSelectorOpIn && slices.Equal(r.Values, []string{n.name})
		})
	})
}

// tellTwice reports volumes of this node that several PersistentVolumes name, once for each set of
// names.
func (n *Node) tellTwice(ctx context.Context, all []corev1.PersistentVolume, volumes []pool.Volume) {
	in := map[string]string{}
	for _, v := range volumes {
		in[v.Name] = v.Zone
	}
	of := map[string][]*corev1.PersistentVolume{}
	for i := range all {
		if v := &all[i]; n.here(v) {
			name := pool.NameOf(v.Spec.CSI.VolumeHandle)
			if zone, there := in[name]; there && same(v, pool.ID{Name: name, Zone: zone}) {
				of[name] = append(of[name], v)
			}
		}
	}
	var before map[string][]string
	if was := n.twice.Load(); was != nil {
		before = *was
	}
	twice := map[string][]string{}
	for name, by := range of {
		if len(by) < 2 {
			continue
		}
		var names []string
		for _, v := range by {
			names = append(names, v.Name)
		}
		slices.Sort(names)
		twice[name] = names
		if slices.Equal(names, before[name]) {
			continue
		}
		klog.FromContext(ctx).Info("Several PersistentVolumes name one volume: the driver does not delete it", "volume", name, "names", names)
		for _, v := range by {
			n.events.Eventf(v, corev1.EventTypeWarning, "VolumeNamedTwice", "PersistentVolumes %s name the same volume, %s on node %s: "+
				"the driver does not delete it until one of them is left", strings.Join(names, " and "), name, n.name)
		}
	}
	n.twice.Store(&twice)
}
