// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
)

// The label by which a node's snapshotter selects its contents. The snapshot-controller sets the
// label on contents that it creates. A content that a user wrote manually has no such label, and no
// node would process it.
const managedBy = "snapshot.storage.kubernetes.io/managed-by"

var contentsKind = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"}

// Contents makes the node claim manually written contents of snapshots that are in its zone. It
// also makes the node search for snapshots without a content. Call Contents once, before Run.
func (n *Node) Contents(client dynamic.Interface) {
	n.contents, n.snapshots = client.Resource(contentsKind), client.Resource(snapshotsKind)
	n.searchFor("snapshot", "snapshots", false, n.ofSnapshots)
}

// claimContents sets the label with the node's name on unclaimed contents of snapshots in its zone.
func (n *Node) claimContents(ctx context.Context, z Zone) error {
	list, err := n.contents.List(ctx, metav1.ListOptions{LabelSelector: "!" + managedBy})
	if err != nil {
		return err
	}
	handles := map[string]string{} // snapshot handles by the names of their contents
	for _, c := range list.Items {
		of, _, _ := unstructured.NestedString(c.Object, "spec", "driver")
		handle, _, _ := unstructured.NestedString(c.Object, "spec", "source", "snapshotHandle")
		if of == n.driver && handle != "" {
			handles[c.GetName()] = handle
		}
	}
	if len(handles) == 0 {
		return nil
	}
	snapshots, err := z.Snapshots(ctx) // with an error, it still returns some snapshots
	here := map[string]bool{}
	for _, s := range snapshots {
		here[s.Name], here[s.ID()] = true, true
	}
	for name, handle := range handles {
		if !here[handle] {
			continue
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, managedBy, n.name)
		if _, perr := n.contents.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); perr != nil {
			return errors.Join(err, perr)
		}
		klog.FromContext(ctx).Info("This node has claimed a VolumeSnapshotContent that a user has written", "content", name, "snapshot", handle)
	}
	return err
}
