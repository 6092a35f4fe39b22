// SPDX-License-Identifier: Apache-2.0

// Package nodemeta defines the names of labels, taints and attributes that the driver writes on
// Nodes and PersistentVolumes. It also changes Nodes.
package nodemeta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
)

// Size returns the label for the zone's size in MiB. The value is a number, so that affinities can
// compare it.
func Size(driver string) string { return driver + "/zone-mib" }

// Topology returns the label that distinguishes nodes. kubelet sets it when the driver registers.
func Topology(driver string) string { return "topology." + driver + "/node" }

// Module returns the annotation for the state of the node's module.
func Module(driver string) string { return driver + "/module" }

// Names of attributes in volume contexts, and of parameters in classes.
const (
	// ReserveParameter is a parameter of a StorageClass: the size of the memory that is
	// reserved behind the volume.
	ReserveParameter = "reserve"
	// MemoryAttribute is an attribute of a PersistentVolume: the size of the volume's memory in
	// bytes, including its reserve.
	MemoryAttribute = "memory"
)

// NotReady returns the taint that an operator may set on nodes. The driver removes the taint when
// the node can have volumes.
func NotReady(driver string) string { return driver + "/not-ready" }

// Clear removes all of these labels, annotations and taints from a Node in memory.
func Clear(node *corev1.Node, driver string) {
	delete(node.Labels, Size(driver))
	delete(node.Labels, Topology(driver))
	delete(node.Annotations, Module(driver))
	Ready(node, driver)
}

// Ready removes the taint from a Node in memory.
func Ready(node *corev1.Node, driver string) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == NotReady(driver) })
}

// Change applies the function change to a Node, patches only the differences, and reports whether
// there were any. A patch of taints contains all taints, including those of other programs. So the
// patch is valid only for one version of the Node. If the Node has changed meanwhile, Change reads
// it again and retries.
func Change(
	ctx context.Context, client kubernetes.Interface, was *corev1.Node, change func(*corev1.Node),
) (bool, error) {
	nodes := client.CoreV1().Nodes()
	name, changed := was.Name, false
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		if was == nil {
			if was, err = nodes.Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		changed, err = patch(ctx, nodes, was, change)
		was = nil
		return err
	})
	if err != nil {
		return false, fmt.Errorf("node %s: %w", name, err)
	}
	return changed, nil
}

func patch(
	ctx context.Context, nodes typedcorev1.NodeInterface, was *corev1.Node, change func(*corev1.Node),
) (bool, error) {
	is := was.DeepCopy()
	change(is)
	if equality.Semantic.DeepEqual(was, is) {
		return false, nil
	}
	unversioned := was.DeepCopy()
	unversioned.ResourceVersion = "" // so that the patch includes the version
	before, err := json.Marshal(unversioned)
	if err != nil {
		return false, err
	}
	after, err := json.Marshal(is)
	if err != nil {
		return false, err
	}
	differs, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil {
		return false, err
	}
	kind := types.StrategicMergePatchType
	_, err = nodes.Patch(ctx, was.Name, kind, differs, metav1.PatchOptions{})
	return err == nil, err
}
