// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/pool"
)

const (
	// The number of checks of a volume before its claim is reported. Kubernetes usually binds a
	// claim in seconds.
	unboundLooks = 2
	// The largest number of claims that the driver follows. A check of each claim takes two
	// requests, and the check of all claims has 20 seconds. A node seldom creates so many
	// volumes at the same time.
	mostUnbound = 200
)

// made has the volumes that were created for claims, until the claims are bound to them. An
// admission policy, a quota or a webhook may refuse the PersistentVolume of such a volume, or the
// binding. The provisioner and Kubernetes then retry without end, and report this only in their
// logs.
type made struct {
	mu  sync.Mutex
	all map[string]*unbound // volumes by the names of their PersistentVolumes
}

type unbound struct {
	volume string
	claim  types.NamespacedName
	looks  int
	told   string // the reason that was reported
}

// Made records that a volume was created for a claim. pv is the name of the PersistentVolume that
// it should get.
func (n *Node) Made(volume, pv string, claim types.NamespacedName) {
	n.made.mu.Lock()
	defer n.made.mu.Unlock()
	if _, there := n.made.all[pv]; there || len(n.made.all) >= mostUnbound {
		return
	}
	if n.made.all == nil {
		n.made.all = map[string]*unbound{}
	}
	n.made.all[pv] = &unbound{volume: volume, claim: claim}
}

// followAgain records a PersistentVolume of this node to which no claim is bound yet. The driver
// may have restarted since it created the volume, and the provisioner does not repeat the call.
func (n *Node) followAgain(v *corev1.PersistentVolume) {
	c, phase := v.Spec.ClaimRef, v.Status.Phase
	if c != nil && c.UID != "" && strings.HasSuffix(v.Name, string(c.UID)) && n.here(v) && (phase == corev1.VolumePending || phase == corev1.VolumeAvailable) {
		n.Made(pool.NameOf(v.Spec.CSI.VolumeHandle), v.Name, types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	}
}

// waiting returns the volumes that were created for claims and are not bound to them yet.
func (n *Node) waiting() map[string]bool {
	n.made.mu.Lock()
	defer n.made.mu.Unlock()
	all := map[string]bool{}
	for _, u := range n.made.all {
		all[u.volume] = true
	}
	return all
}

// Unbound returns the number of claims that were reported and still have no volume.
func (n *Node) Unbound() int64 {
	n.made.mu.Lock()
	defer n.made.mu.Unlock()
	told := int64(0)
	for _, u := range n.made.all {
		if u.told != "" {
			told++
		}
	}
	return told
}

// tellUnbound reports claims that are not bound to the volume that was created for them.
func (n *Node) tellUnbound(ctx context.Context) error {
	n.made.mu.Lock()
	all := maps.Clone(n.made.all)
	n.made.mu.Unlock()
	failed, last := 0, error(nil)
	for pv, u := range all {
		claim, reason, words, err := n.whyUnbound(ctx, pv, u)
		if err != nil {
			failed, last = failed+1, err // returns one error, because all may have the same cause
			continue
		}
		n.made.mu.Lock()
		u.looks++
		tell := reason != "" && reason != u.told && u.looks >= unboundLooks
		switch {
		case reason == "":
			delete(n.made.all, pv)
		case tell:
			u.told = reason
		}
		n.made.mu.Unlock()
		if tell {
			klog.FromContext(ctx).Info("A claim does not get its volume: "+words, "claim", u.claim, "volume", u.volume, "PersistentVolume", pv)
			n.events.Event(claim, corev1.EventTypeWarning, reason, words)
		}
	}
	if last != nil {
		return fmt.Errorf("%d claims that wait for their volumes: %w", failed, last)
	}
	return nil
}

const (
	notSaved = "VolumeNotSaved"
	notBound = "VolumeNotBound"
)

// whyUnbound returns the reason why a claim is not bound to its volume. It returns an empty text if
// the claim is bound to this or another volume, or no longer exists.
func (n *Node) whyUnbound(ctx context.Context, pv string, u *unbound) (c *corev1.PersistentVolumeClaim, reason, words string, err error) {
	c, err = n.client.CoreV1().PersistentVolumeClaims(u.claim.Namespace).Get(ctx, u.claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", "", nil
	case err != nil:
		return nil, "", "", fmt.Errorf("claim %s: %w", u.claim, err)
	case c.DeletionTimestamp != nil || c.Spec.VolumeName != "" || !strings.HasSuffix(pv, string(c.UID)):
		return nil, "", "", nil
	}
	_, err = n.client.CoreV1().PersistentVolumes().Get(ctx, pv, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return c, notSaved, fmt.Sprintf("volume %s was created on node %s, but its PersistentVolume %s is missing: "+
			"the log of the container provisioner in the driver's pod on that node has the reason", u.volume, n.name, pv), nil
	case err != nil:
		return nil, "", "", fmt.Errorf("PersistentVolume %s: %w", pv, err)
	}
	return c, notBound, fmt.Sprintf("PersistentVolume %s on node %s was created for this claim, but Kubernetes does not bind the claim to it: %s", pv, n.name, n.whyNot(c)), nil
}

// whyNot returns the reason why the chart's policy refuses to bind a claim.
func (n *Node) whyNot(c *corev1.PersistentVolumeClaim) string {
	at, by := c.Annotations[selectedKey], c.Annotations[provisionerKey]
	switch {
	case at != "" && at != n.name:
		return fmt.Sprintf("node %s is chosen for the claim now", at)
	case by != "" && by != n.driver:
		return fmt.Sprintf("the claim is for the driver %s now", by)
	}
	return "the log of kube-controller-manager has the reason"
}
