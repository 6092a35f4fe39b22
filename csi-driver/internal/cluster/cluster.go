// SPDX-License-Identifier: Apache-2.0

// Package cluster reports the state of a node to Kubernetes. It sets a label with the size of the
// node's zone. It writes Events about problems on the Node and on claims. An operator may set a
// taint that keeps pods away until the node has a zone; this package then removes the taint. The
// driver works without this package.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/nodemeta"
	"stargate/csi-driver/internal/pool"
)

const (
	// Period is the interval between checks of the node.
	Period    = 30 * time.Second
	limit     = 20 * time.Second
	listLimit = limit / 2
	mebiShift = 20
	// This many failed checks in a row cause an Event. A single failure may come from a busy
	// node.
	patience = 4
)

// Zone has the methods of a zone whose results the driver reports to the cluster. pool.Zone
// documents the contract of each method.
type Zone interface {
	Kind() pool.Kind
	Status(ctx context.Context) (pool.Status, error)
	List(ctx context.Context) ([]pool.Volume, error)
	Snapshots(ctx context.Context) ([]pool.Snapshot, error)
}

// Node reports the state of this node, and answers queries about its PersistentVolumes.
type Node struct {
	client       kubernetes.Interface
	events       record.EventRecorder
	name, driver string
	contents     dynamic.ResourceInterface              // nil: the node claims no contents
	snapshots    dynamic.NamespaceableResourceInterface // nil if contents is nil
	datasets     dynamic.NamespaceableResourceInterface
	mounted      func() (kernelmodule.Mounts, error) // the mounts of this node
	shown        func([]pool.Volume) (map[string][]string, error)
	watchAgain   wait.Backoff  // delays of PlaceCopies after failed watches
	watchSilent  time.Duration // longest silence of a watch in PlaceCopies

	zone    string             // the last report about the zone
	vain    int                // failed checks of the zone, in a row
	volumes map[string]trouble // the last report about each volume that could not be used
	orphans orphans

	twice   map[string][]string // PersistentVolumes of each volume that has several
	listing chan struct{}       // full while Keeps lists PersistentVolumes; guards known
	known   known
	asks    time.Duration // askLimit, except in tests
	made    made
}

// New returns the Node with the given name.
func New(client kubernetes.Interface, events record.EventRecorder, driver, name string) *Node {
	n := &Node{client: client, events: events, driver: driver, name: name, volumes: map[string]trouble{}, watchAgain: watchAgain, watchSilent: watchSilent,
		listing: make(chan struct{}, 1), asks: askLimit}
	n.LookAtMounts(func() (kernelmodule.Mounts, error) { return kernelmodule.None, nil })
	n.LookAtPaths(everywhere)
	n.LookForOrphans(OrphanLimit)
	n.searchFor("claim", "volumes of claims", true, n.ofClaims)
	n.searchFor("pod", "volumes of pods", true, n.ofPods)
	return n
}

// everywhere reports each volume as mounted. It is the default for a caller that does not call
// LookAtPaths.
func everywhere(volumes []pool.Volume) (map[string][]string, error) {
	at := map[string][]string{}
	for _, v := range volumes {
		at[v.Name] = []string{"/"}
	}
	return at, nil
}

// LookAtMounts makes Run report mounts that are shut down. Call it before Run.
func (n *Node) LookAtMounts(all func() (kernelmodule.Mounts, error)) { n.mounted = all }

// LookAtPaths makes Run report inline volumes that are mounted at no path. shown is
// Shower.ShownAll. Call LookAtPaths before Run.
func (n *Node) LookAtPaths(shown func([]pool.Volume) (map[string][]string, error)) { n.shown = shown }

// Run checks the node periodically until ctx is done. The next check repeats a step that failed.
func (n *Node) Run(ctx context.Context, z Zone) {
	for {
		within, cancel := context.WithTimeout(ctx, limit)
		if err := n.Look(within, z); err != nil {
			klog.FromContext(ctx).Error(err, "The driver cannot update its Node and Events")
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(Period):
		}
	}
}

// Look checks the node once, and reports changes since the last check. If a step fails, the other
// steps still run.
func (n *Node) Look(ctx context.Context, z Zone) error {
	node, err := n.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	s, zerr := z.Status(ctx)
	if zerr != nil && !errkind.Is(zerr, errkind.NoZone) {
		n.tellUnknown(zerr)
		return zerr // label, taint and earlier reports remain
	}
	n.vain = 0
	n.tellZone(z.Kind(), s, zerr)
	err = n.mark(ctx, node, z.Kind(), s, zerr)
	if zerr != nil {
		return err
	}
	volumes, unread := n.list(ctx, z)
	failed := []error{err, unread}
	if unread == nil {
		failed = append(failed, n.tellVolumes(ctx, volumes))
	}
	failed = append(failed, n.findOrphans(ctx, z, volumes, unread), n.tellUnbound(ctx))
	if n.contents != nil {
		if err := n.claimContents(ctx, z); err != nil {
			failed = append(failed, fmt.Errorf("contents of snapshots: %w", err))
		}
	}
	return errors.Join(failed...)
}

// list lists the volumes. Its time limit leaves a part of the check's time to the steps that need
// no volumes.
func (n *Node) list(ctx context.Context, z Zone) ([]pool.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	volumes, err := z.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("volumes: %w", err)
	}
	return volumes, nil
}

// tellUnknown reports that the state of the zone is unknown, after several failed checks.
func (n *Node) tellUnknown(err error) {
	if n.vain++; n.vain == patience {
		n.zone = err.Error()
		n.events.Event(n.itself(), corev1.EventTypeWarning, "ZoneUnknown", err.Error())
	}
}

func (n *Node) tellZone(kind pool.Kind, s pool.Status, err error) {
	said, event, words := "well", corev1.EventTypeNormal, "the zone has "+strconv.FormatInt(s.Size, 10)+" bytes"
	reason := "ZoneReady"
	switch {
	case err != nil:
		said, event, reason, words = err.Error(), corev1.EventTypeWarning, "NoZone", err.Error()
	case s.Damaged:
		said, event, reason, words = s.Why, corev1.EventTypeWarning, "ZoneDamaged", s.Why
	case kind == pool.None:
		return
	}
	if said == n.zone {
		return
	}
	n.zone = said
	n.events.Event(n.itself(), event, reason, words)
}

// mark sets the label and the taint of the Node to match the state of the zone.
func (n *Node) mark(ctx context.Context, node *corev1.Node, kind pool.Kind, s pool.Status, zerr error) error {
	_, err := nodemeta.Change(ctx, n.client, node, func(node *corev1.Node) {
		delete(node.Labels, nodemeta.Size(n.driver))
		if zerr == nil && kind != pool.None {
			size := strconv.FormatInt(s.Size>>mebiShift, 10)
			metav1.SetMetaDataLabel(&node.ObjectMeta, nodemeta.Size(n.driver), size)
		}
		if zerr == nil && !s.Damaged {
			nodemeta.Ready(node, n.driver)
		}
	})
	return err
}

// tellVolumes reports changes of volumes. If the report about a volume fails, the next check
// repeats it. The other volumes are still reported.
func (n *Node) tellVolumes(ctx context.Context, volumes []pool.Volume) error {
	there, untold := map[string]bool{}, 0
	mounts, unread := n.mounted()
	var last error
	for _, v := range volumes {
		there[v.Name] = true
		if err := n.tellVolume(ctx, v, mounts(v.Path), unread); err != nil {
			untold, last = untold+1, err // returns one error, because hundreds may have the same cause
		}
	}
	for name := range n.volumes {
		if !there[name] {
			delete(n.volumes, name)
		}
	}
	if last != nil {
		return fmt.Errorf("%d volumes have no Event yet: %w", untold, last)
	}
	return nil
}

// trouble is the reason why a volume cannot be used. It is empty if no problem is known.
type trouble struct{ reason, words string }

const (
	unusable = "VolumeUnusable"
	shutDown = "MountShutDown"
)

func troubleOf(v pool.Volume, mount *kernelmodule.Mount, unread error) (trouble, error) {
	if !v.State.Whole() {
		return trouble{unusable, "cannot be used: " + v.Why}, nil
	}
	if unread != nil {
		return trouble{}, fmt.Errorf("volume %s: %w", v.Name, unread)
	}
	if mount != nil && mount.ShutDown() {
		return trouble{shutDown, "cannot be used by pods: " + kernelmodule.WhyShutDown}, nil
	}
	return trouble{}, nil
}

func (n *Node) tellVolume(ctx context.Context, v pool.Volume, mount *kernelmodule.Mount, unread error) error {
	before := n.volumes[v.Name]
	is, err := troubleOf(v, mount, unread)
	if err != nil || is == before {
		return err
	}
	owner, err := n.owner(ctx, v)
	if err != nil {
		return err
	}
	switch {
	case is != trouble{}:
		n.volumes[v.Name] = is
		n.events.Eventf(owner, corev1.EventTypeWarning, is.reason,
			"volume %s on node %s %s", v.Name, n.name, is.words)
		return nil
	case before.reason == shutDown: // the cause may be bad pages, which still exist
		n.events.Eventf(owner, corev1.EventTypeNormal, "MountGone",
			"volume %s on node %s: the mount that was shut down is gone", v.Name, n.name)
	default:
		n.events.Eventf(owner, corev1.EventTypeNormal, "VolumeUsable",
			"volume %s on node %s can be used again", v.Name, n.name)
	}
	delete(n.volumes, v.Name)
	return nil
}

// itself returns the node as the object of Events. Like in kubelet's own Events, its UID is the
// node's name, because kubectl describe searches for this value.
func (n *Node) itself() runtime.Object {
	return &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: n.name, UID: types.UID(n.name)}
}

// volume returns a volume's PersistentVolume. If a provisioner of an older chart created it, its
// name does not contain the node.
func (n *Node) volume(ctx context.Context, v pool.Volume) (*corev1.PersistentVolume, error) {
	all := n.client.CoreV1().PersistentVolumes()
	name := pool.WithNode(v.Name, n.driver, n.name)
	pv, err := all.Get(ctx, name, metav1.GetOptions{})
	if name != v.Name && apierrors.IsNotFound(err) {
		return all.Get(ctx, v.Name, metav1.GetOptions{})
	}
	return pv, err
}

// owner returns the claim of a volume, or the node if the volume has no claim. It fails if the
// cluster does not answer.
func (n *Node) owner(ctx context.Context, v pool.Volume) (runtime.Object, error) {
	pv, err := n.volume(ctx, v)
	switch {
	case apierrors.IsNotFound(err):
		return n.itself(), nil
	case err != nil:
		return nil, fmt.Errorf("PersistentVolume %s: %w", v.Name, err)
	}
	c, of := pv.Spec.ClaimRef, pv.Spec.CSI
	if of == nil || of.Driver != n.driver || of.VolumeHandle != v.Name && of.VolumeHandle != v.ID() || c == nil {
		return n.itself(), nil
	}
	return &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID,
	}, nil
}
