// SPDX-License-Identifier: Apache-2.0

// Package marks has the names of what the driver leaves on Nodes, and how a Node is changed.
package marks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
)

// Size is the label with the zone's size in MiB: a number, so that affinities can ask for more than one.
func Size(driver string) string { return driver + "/zone-mib" }

// Topology is the label that tells nodes apart. kubelet puts it there when the driver registers.
func Topology(driver string) string { return "topology." + driver + "/node" }

// Module is the annotation that says what module the node has.
func Module(driver string) string { return driver + "/module" }

// NotReady is the taint that an operator may give to nodes, for the driver to take away when they can
// have volumes.
func NotReady(driver string) string { return driver + "/not-ready" }

// Clear takes all of these from a Node as it is in memory.
func Clear(node *corev1.Node, driver string) {
	delete(node.Labels, Size(driver))
	delete(node.Labels, Topology(driver))
	delete(node.Annotations, Module(driver))
	Ready(node, driver)
}

// Ready takes the taint from it.
func Ready(node *corev1.Node, driver string) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == NotReady(driver) })
}

// Change makes of the Node as it was what it is to be, and of nothing but what differs; it says whether
// anything did.
func Change(ctx context.Context, client kubernetes.Interface, was, is *corev1.Node) (bool, error) {
	before, err := json.Marshal(was)
	if err != nil {
		return false, err
	}
	after, err := json.Marshal(is)
	if err != nil || bytes.Equal(before, after) {
		return false, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil {
		return false, err
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, was.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return false, fmt.Errorf("node %s: %w", was.Name, err)
	}
	return true, nil
}
