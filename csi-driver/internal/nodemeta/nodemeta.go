// SPDX-License-Identifier: Apache-2.0

// Package nodemeta has the names of labels, taints and attributes that the driver writes on Nodes
// and PersistentVolumes. It also changes Nodes.
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

// Size is the label with the zone's size in MiB. It is a number, so that affinities can compare it.
func Size(driver string) string { return driver + "/zone-mib" }

// Topology is the label that distinguishes nodes. kubelet sets it when the driver registers.
func Topology(driver string) string { return "topology." + driver + "/node" }

// Module is the annotation with the state of the node's module.
func Module(driver string) string { return driver + "/module" }

// Names in volumes' contexts and in classes.
const (
	// ReserveParameter is of a StorageClass: memory behind the volume that is kept for it.
	ReserveParameter = "reserve"
	// MemoryAttribute is of a PersistentVolume: all memory that the volume owns, in bytes, its
	// reserve included.
	MemoryAttribute = "memory"
)

// NotReady is the taint that an operator may give to nodes. The driver removes it when they can
// have volumes.
func NotReady(driver string) string { return driver + "/not-ready" }

// Clear removes all of these from a Node in memory.
func Clear(node *corev1.Node, driver string) {
	delete(node.Labels, Size(driver))
	delete(node.Labels, Topology(driver))
	delete(node.Annotations, Module(driver))
	Ready(node, driver)
}

// Ready removes the taint from it.
func Ready(node *corev1.Node, driver string) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == NotReady(driver) })
}

// Change applies change to a Node, patches only the differences, and reports whether there were
// any. A patch of taints contains all of them, including those of others. So it is valid only for
// that version of the Node, and a Node that has changed since then is read again.
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
