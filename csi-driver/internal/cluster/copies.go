// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Annotations that name the provisioner of a claim's volume, and its node. The scheduler sets the
// node's annotation when a pod needs the claim, and later uses its value. The provisioner removes
// this annotation if the node has no room.
const (
	provisionerKey = "volume.kubernetes.io/storage-provisioner"
	selectedKey    = "volume.kubernetes.io/selected-node"
)

// If a node has no room for a claim, the claim returns to the queue repeatedly. The delay grows
// each time, between these limits.
const (
	copyFirst = 50 * time.Millisecond
	copyLast  = 5 * time.Minute
)

// watchAgain is the delay before a node watches claims again. It grows up to a minute, and differs
// between nodes. With one fixed delay, all nodes would repeat their requests at the same time, to
// an API server that has just started.
var watchAgain = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 16, Cap: 40 * time.Second}

const (
	// A watch that has lasted this long does not count as failed, because a load balancer may
	// end every watch.
	watchLasts = 10 * time.Second
	// An API server sends a bookmark about once a minute. If it sends nothing for this long,
	// its state may be older than the version that the node has seen, as after a restore of
	// etcd. A watch from that version stays silent until the API server reaches it.
	watchSilent = 5 * time.Minute
)

var snapshotsKind = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}

// PlaceCopies assigns claims to this node that request a copy of this node's volumes or snapshots.
// It runs until ctx is done. A copy must be on the node of its source, and the scheduler does not
// know that node. The scheduler may choose a different node each time, or always the same wrong
// node. So after a wrong node has refused the claim, the node with the source writes its name into
// the claim.
func (n *Node) PlaceCopies(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](copyFirst, copyLast))
	go func() {
		defer queue.ShutDown()
		n.watchForever(ctx, queue)
	}()
	for n.placeNext(ctx, queue) {
	}
}

type claimQueue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// progress records which state of the claims a node has processed.
type progress struct {
	since string    // the last processed version; "": a new list is needed
	heard time.Time // when the API server sent the last list, event or bookmark
}

// watchForever watches claims until ctx is done. The delay before the next watch grows with each
// failed watch.
func (n *Node) watchForever(ctx context.Context, queue claimQueue) {
	var seen progress
	again := n.watchAgain
	for ctx.Err() == nil {
		began := time.Now()
		events, err := n.watchClaims(ctx, &seen, queue)
		if events > 0 || time.Since(began) > watchLasts {
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
}

// placeNext processes the next claim of the queue. It returns false after the queue was shut down.
func (n *Node) placeNext(ctx context.Context, queue claimQueue) bool {
	name, end := queue.Get()
	if end {
		return false
	}
	defer queue.Done(name)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := n.place(within, name)
	switch {
	case err == nil || ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		queue.Forget(name) // these failures must not delay a later claim of that name
	case apierrors.IsConflict(err):
		// The claim was usually changed by the scheduler or the provisioner, which may have
		// chosen a node.
		klog.FromContext(ctx).V(4).Info("The claim of a copy has changed meanwhile: the driver processes it again", "claim", name)
		queue.Add(name)
	default:
		klog.FromContext(ctx).Error(err, "A claim that requests a copy is not assigned to a node yet", "claim", name)
		queue.AddRateLimited(name)
	}
	return true
}

// watchClaims processes changes of claims since the version in seen, or all claims if seen has no
// version. It returns the number of events when the API server ends the watch. A new list is needed
// if the API server no longer has the changes since that version, has an older version itself, or
// is silent for too long.
func (n *Node) watchClaims(ctx context.Context, seen *progress, queue claimQueue) (events int, err error) {
	claims := n.client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll)
	if seen.since == "" {
		// The driver reads the state in the API server's memory, which is recent enough.
		all, err := claims.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return 0, err
		}
		for i := range all.Items {
			// A new list is no failure of the claims in it, so it does not make them
			// wait longer.
			n.seen(&all.Items[i], queue, func(name types.NamespacedName) { queue.AddAfter(name, copyFirst) })
		}
		*seen = progress{all.ResourceVersion, time.Now()}
	}
	w, err := claims.Watch(ctx, metav1.ListOptions{ResourceVersion: seen.since, AllowWatchBookmarks: true})
	if err != nil {
		seen.after(err)
		return 0, err
	}
	defer w.Stop()
	silent := time.NewTimer(time.Until(seen.heard.Add(n.watchSilent)))
	defer silent.Stop()
	for ; ; events++ {
		var e watch.Event
		var more bool
		select {
		case e, more = <-w.ResultChan():
		case <-silent.C:
			seen.since = ""
		case <-ctx.Done():
		}
		if !more {
			return events, nil
		}
		c, ok := e.Object.(*corev1.PersistentVolumeClaim)
		if !ok {
			err := apierrors.FromObject(e.Object)
			seen.after(err)
			return events, err
		}
		if wentBack(seen.since, c.ResourceVersion) {
			seen.since = ""
			return events, nil
		}
		*seen = progress{c.ResourceVersion, time.Now()}
		silent.Reset(n.watchSilent)
		switch e.Type {
		case watch.Added, watch.Modified:
			n.seen(c, queue, queue.AddRateLimited)
		case watch.Deleted:
			queue.Forget(nameOf(c))
		}
	}
}

// wentBack reports whether the API server has an earlier state than before, as after a restore of
// etcd.
func wentBack(before, now string) bool {
	order, err := resourceversion.CompareResourceVersion(now, before)
	return err == nil && order < 0
}

// after handles an error of a watch. It keeps the version, unless the API server no longer has this
// version, or has only earlier versions.
func (p *progress) after(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		p.since = ""
	}
}

func nameOf(c *corev1.PersistentVolumeClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
}

func (n *Node) seen(c *corev1.PersistentVolumeClaim, queue claimQueue, add func(types.NamespacedName)) {
	switch {
	case n.unplaced(c):
		add(nameOf(c))
	case c.Spec.VolumeName != "":
		queue.Forget(nameOf(c))
	}
}

// unplaced reports whether a claim requests a copy, is needed by a pod, and has no node now. The
// claim names its provisioner after the scheduler has chosen a node for the first time.
func (n *Node) unplaced(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.DataSource != nil && c.Spec.VolumeName == "" && c.DeletionTimestamp == nil &&
		c.Annotations[provisionerKey] == n.driver && c.Annotations[selectedKey] == ""
}

// place assigns a claim to this node if the node has its source. It fails with NotFound if the
// claim has been deleted.
func (n *Node) place(ctx context.Context, name types.NamespacedName) error {
	claims := n.client.CoreV1().PersistentVolumeClaims(name.Namespace)
	c, err := claims.Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil || !n.unplaced(c) {
		return err
	}
	here, err := n.hasSource(ctx, c)
	if apierrors.IsNotFound(err) || err == nil && !here {
		return nil // the provisioner reports a missing source
	}
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, selectedKey, n.name)
	if _, err := claims.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
		return err // the scheduler may have chosen a node meanwhile
	}
	n.events.Eventf(c, corev1.EventTypeNormal, "CopyPlaced", "%s %s is on node %s; its copy is placed there, too", c.Spec.DataSource.Kind, c.Spec.DataSource.Name, n.name)
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

// hasVolume reports whether a claim's volume is on this node, by its topology.
func (n *Node) hasVolume(ctx context.Context, namespace, claim string) (bool, error) {
	c, err := n.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil || c.Spec.VolumeName == "" {
		return false, err
	}
	v, err := n.client.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	return err == nil && n.here(v), err
}

// hasSnapshot reports whether a snapshot is on this node. It reads the label of the snapshot's
// content, which names the node.
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
