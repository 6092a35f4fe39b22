// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/nodemeta"
)

// How Kubernetes says who makes a claim's volume, and for which node. The scheduler writes the second one when a pod
// wants the claim, and goes by it where it is there; the provisioner takes it away where the node has no room.
const (
	provisionerKey = "volume.kubernetes.io/storage-provisioner"
	selectedKey    = "volume.kubernetes.io/selected-node"
)

// A claim that comes back again and again, as the node has no room for it, waits longer each time.
const (
	copyFirst = 50 * time.Millisecond
	copyLast  = 5 * time.Minute
)

// watchAgain is how long a node waits until it watches claims again: longer each time, up to a minute, and not as long as
// other nodes. An API server that has just come up would else be asked by all nodes at once, again and again.
var watchAgain = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 16, Cap: 40 * time.Second}

// A watch that has lasted for so long was none that failed.
const watchLasts = time.Minute

var snapshotsKind = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}

// PlaceCopies takes claims that are to be copies of what this node has, until ctx is done. A copy is made where its
// source is, and the scheduler does not know where that is: it may choose another node each time, or the same wrong one
// for ever. So when a wrong one has refused, the node that has the source says that the claim is for it.
func (n *Node) PlaceCopies(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](copyFirst, copyLast))
	go func() {
		defer queue.ShutDown()
		since := "" // the version of all claims that has been seen
		again := n.watchAgain
		for ctx.Err() == nil {
			var err error
			began := time.Now()
			since, err = n.watchClaims(ctx, since, queue)
			if time.Since(began) > watchLasts {
				again = n.watchAgain
			}
			waits := again.Step()
			if err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Claims cannot be watched", "again", waits)
			}
			select {
			case <-ctx.Done():
			case <-time.After(waits):
			}
		}
	}()
	for {
		name, end := queue.Get()
		if end {
			return
		}
		within, cancel := context.WithTimeout(ctx, limit)
		err := n.place(within, name)
		switch {
		case err == nil || ctx.Err() != nil:
		case apierrors.IsConflict(err):
			// Usually the scheduler or the provisioner, which may have chosen a node.
			klog.FromContext(ctx).V(4).Info("A claim that is to be a copy has changed meanwhile: the driver looks at it again", "claim", name)
			queue.Add(name)
		default:
			klog.FromContext(ctx).Error(err, "A claim that is to be a copy is not placed yet", "claim", name)
			queue.AddRateLimited(name)
		}
		cancel()
		queue.Done(name)
	}
}

// watchClaims looks at what has changed of claims since a version of them, or at all of them, until the API server ends
// that. It returns the version to go on from; "": that is to be begun anew, as the API server has no changes since then.
func (n *Node) watchClaims(ctx context.Context, since string, queue workqueue.TypedRateLimitingInterface[types.NamespacedName]) (string, error) {
	claims := n.client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll)
	if since == "" {
		// What the API server has in memory will do.
		all, err := claims.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return "", err
		}
		for i := range all.Items {
			// A list that is made anew is no failure of the claims in it: none waits longer for that.
			n.seen(&all.Items[i], queue, func(name types.NamespacedName) { queue.AddAfter(name, copyFirst) })
		}
		since = all.ResourceVersion
	}
	w, err := claims.Watch(ctx, metav1.ListOptions{ResourceVersion: since, AllowWatchBookmarks: true})
	if err != nil {
		return goesOn(since, err), err
	}
	defer w.Stop()
	for {
		var e watch.Event
		var more bool
		select {
		case e, more = <-w.ResultChan():
		case <-ctx.Done():
		}
		if !more {
			return since, nil
		}
		c, ok := e.Object.(*corev1.PersistentVolumeClaim)
		if !ok {
			err := apierrors.FromObject(e.Object)
			return goesOn(since, err), err
		}
		since = c.ResourceVersion
		switch e.Type {
		case watch.Added, watch.Modified:
			n.seen(c, queue, queue.AddRateLimited)
		case watch.Deleted:
			queue.Forget(nameOf(c))
		}
	}
}

// goesOn is the version to watch from after an error: the same one, unless the API server has forgotten it, or has not
// reached it, as after etcd was restored.
func goesOn(since string, err error) string {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return ""
	}
	return since
}

func nameOf(c *corev1.PersistentVolumeClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

func (n *Node) seen(c *corev1.PersistentVolumeClaim, queue workqueue.TypedRateLimitingInterface[types.NamespacedName], add func(types.NamespacedName)) {
	switch {
	case n.unplaced(c):
		add(nameOf(c))
	case c.Spec.VolumeName != "":
		queue.Forget(nameOf(c))
	}
}

// unplaced tells of a claim that is to be a copy, that a pod has wanted, and that is for no node now: who makes its
// volume is written into it when the scheduler has chosen a node for the first time.
func (n *Node) unplaced(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.DataSource != nil && c.Spec.VolumeName == "" && c.DeletionTimestamp == nil &&
		c.Annotations[provisionerKey] == n.driver && c.Annotations[selectedKey] == ""
}

// place says that a claim is for this node, if it has what the claim is to be a copy of.
func (n *Node) place(ctx context.Context, name types.NamespacedName) error {
	claims := n.client.CoreV1().PersistentVolumeClaims(name.Namespace)
	c, err := claims.Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !n.unplaced(c) {
		return nil
	}
	if err != nil {
		return err
	}
	here, err := n.hasSource(ctx, c)
	if apierrors.IsNotFound(err) || err == nil && !here {
		return nil // the provisioner says what is not there
	}
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, selectedKey, n.name)
	if _, err := claims.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
		return err // the scheduler was quicker, it may be
	}
	n.events.Eventf(c, corev1.EventTypeNormal, "CopyPlaced", "%s %s is on node %s, and so is a copy of it", c.Spec.DataSource.Kind, c.Spec.DataSource.Name, n.name)
	return nil
}

func (n *Node) hasSource(ctx context.Context, c *corev1.PersistentVolumeClaim) (bool, error) {
	group := ""
	if of := c.Spec.DataSource.APIGroup; of != nil {
		group = *of
	}
	switch (schema.GroupKind{Group: group, Kind: c.Spec.DataSource.Kind}) {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return n.hasVolume(ctx, c.Namespace, c.Spec.DataSource.Name)
	case schema.GroupKind{Group: snapshotsKind.Group, Kind: "VolumeSnapshot"}:
		return n.hasSnapshot(ctx, c.Namespace, c.Spec.DataSource.Name)
	}
	return false, nil
}

// hasVolume goes by where a claim's volume can be used.
func (n *Node) hasVolume(ctx context.Context, namespace, claim string) (bool, error) {
	c, err := n.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil || c.Spec.VolumeName == "" {
		return false, err
	}
	v, err := n.client.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	if err != nil || v.Spec.CSI == nil || v.Spec.CSI.Driver != n.driver || v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return false, err
	}
	return slices.ContainsFunc(v.Spec.NodeAffinity.Required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == nodemeta.Topology(n.driver) && r.Operator == corev1.NodeSelectorOpIn && slices.Equal(r.Values, []string{n.name})
		})
	}), nil
}

// hasSnapshot goes by whose a snapshot's content is: those of a node are the snapshotter's of that node.
func (n *Node) hasSnapshot(ctx context.Context, namespace, name string) (bool, error) {
	if n.contents == nil {
		return false, nil
	}
	s, err := n.snapshots.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	content, _, err := unstructured.NestedString(s.Object, "status", "boundVolumeSnapshotContentName")
	if err != nil || content == "" {
		return false, err
	}
	c, err := n.contents.Get(ctx, content, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	of, _, err := unstructured.NestedString(c.Object, "spec", "driver")
	if err != nil {
		return false, fmt.Errorf("content %s: %w", content, err)
	}
	return of == n.driver && c.GetLabels()[managedBy] == n.name, nil
}
