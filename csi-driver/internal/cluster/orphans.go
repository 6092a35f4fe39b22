// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/pool"
)

// OrphanLimit is how long a volume may be without a PersistentVolume, because a new volume has none
// at first. The same holds for mounts and contents. It is also the interval of the search for
// orphans, because a search lists the volumes of the whole cluster.
const OrphanLimit = 10 * time.Minute

// orphans are volumes and snapshots that no call will delete: volumes of claims without a
// PersistentVolume, volumes of pods that are mounted nowhere, and snapshots without a
// VolumeSnapshotContent. Each of these searches has its own source, so that one that cannot be read
// hides no orphan of another.
type orphans struct {
	every    int // one look of this many includes a search
	searches []*search
}

// find searches. With an error it may return a part of the orphans; nil means none of them.
type find func(ctx context.Context, z Zone, volumes []pool.Volume) ([]orphan, error)

// search is for orphans of one kind.
type search struct {
	kind  string // for the metric
	of    string // for a message
	find  find
	looks bool            // whether it needs the list of volumes
	wait  int             // looks until the next search
	vain  int             // failed searches in a row
	blind bool            // and an Event has said so
	told  map[string]bool // the ones of the last search, and whether they were reported
	found atomic.Int64    // number of orphans; -1: unknown. Read concurrently.
}

// searchFor adds a search. looks says whether it needs the list of volumes.
func (n *Node) searchFor(kind, of string, looks bool, by find) {
	s := &search{kind: kind, of: of, looks: looks, find: by}
	s.found.Store(-1)
	n.orphans.searches = append(n.orphans.searches, s)
}

// LookForOrphans sets another limit than OrphanLimit; call it before Run.
func (n *Node) LookForOrphans(limit time.Duration) {
	n.orphans.every = max(1, int((limit+Period-1)/Period))
}

// Orphans are the numbers of orphans by their kind: claim, pod or snapshot. A kind is missing until
// a search for it has covered enough time.
func (n *Node) Orphans() map[string]int64 {
	all := map[string]int64{}
	for _, s := range n.orphans.searches {
		if found := s.found.Load(); found >= 0 {
			all[s.kind] = found
		}
	}
	return all
}

// findOrphans runs each search that is due. A search that finds nothing out is repeated with the
// next look. One that finds out a part waits as usual, because orphans are reported when they have
// been found twice. unread is the reason why there is no list of volumes.
func (n *Node) findOrphans(ctx context.Context, z Zone, volumes []pool.Volume, unread error) error {
	var failed []error
	for _, s := range n.orphans.searches {
		if s.wait > 0 {
			s.wait--
			continue
		}
		var all []orphan
		err := unread
		if !s.looks || err == nil {
			all, err = s.find(ctx, z, volumes)
		}
		if err == nil {
			s.vain, s.blind = 0, false
		} else {
			if err != unread { // the look has reported that one
				failed = append(failed, err)
			}
			if s.vain++; !s.blind && (all != nil || s.vain == patience) {
				s.blind = true
				n.events.Eventf(n.itself(), corev1.EventTypeWarning, "OrphansUnknown",
					"whether Kubernetes will delete all %s cannot be found out: %v", s.of, err)
			}
		}
		if err == nil || all != nil {
			s.wait = n.orphans.every - 1
			n.tellOrphans(ctx, s, all, err == nil)
		}
	}
	return errors.Join(failed...)
}

// tellOrphans reports the orphans that an earlier search has found, too. If only a part could be
// searched, the result for the other part stays as it was.
func (n *Node) tellOrphans(ctx context.Context, s *search, all []orphan, whole bool) {
	before := s.told
	s.told = map[string]bool{}
	if !whole {
		maps.Copy(s.told, before)
	}
	for _, o := range all {
		told, again := before[o.name]
		s.told[o.name] = again
		if again && !told {
			klog.FromContext(ctx).Info("Kubernetes will not delete a volume or snapshot: it "+o.why, "name", o.name, "size", o.size)
			n.events.Eventf(n.itself(), corev1.EventTypeWarning, "VolumeOrphaned", "%s %s %s", o.kind, o.name, o.why)
		}
	}
	if before == nil {
		return
	}
	found := int64(0)
	for _, again := range s.told {
		if again {
			found++
		}
	}
	s.found.Store(found)
}

// orphan is a volume or snapshot, and the reason why Kubernetes will not delete it.
type orphan struct {
	kind, name string
	size       int64
	why        string
}

const (
	ofNoVolume  = "has no PersistentVolume, so Kubernetes will not delete it: run stargatectl volume delete, or give it a PersistentVolume"
	ofNoPod     = "is mounted for no pod, so Kubernetes will not delete it: if its pod is gone, run stargatectl volume delete"
	ofNoContent = "has no VolumeSnapshotContent, so Kubernetes will not delete it: run stargatectl volume delete, or give it a VolumeSnapshotContent"
)

// recent lists the state in the API server's memory, which is recent enough.
func recent() metav1.ListOptions { return metav1.ListOptions{ResourceVersion: "0"} }

// ofClaims are the volumes that were made for claims, and that no PersistentVolume names. The
// provisioner may still save the PersistentVolume of a claim that waits.
func (n *Node) ofClaims(ctx context.Context, _ Zone, volumes []pool.Volume) ([]orphan, error) {
	list, err := n.client.CoreV1().PersistentVolumes().List(ctx, recent())
	if err != nil {
		return nil, fmt.Errorf("PersistentVolumes: %w", err)
	}
	n.tellTwice(ctx, list.Items, volumes)
	known := map[string]bool{}
	for i := range list.Items {
		v := &list.Items[i]
		if of := v.Spec.CSI; of != nil && of.Driver == n.driver {
			known[of.VolumeHandle] = true
			n.followAgain(v)
		}
	}
	waits := n.waiting()
	var all []orphan
	for _, v := range volumes {
		if pool.OfClaim(v.Name) && !known[v.Name] && !known[v.ID()] && !waits[v.Name] {
			all = append(all, orphan{"volume", v.Name, v.Size, ofNoVolume})
		}
	}
	return all, nil
}

// ofPods are the volumes that were made for pods, and that are mounted nowhere.
func (n *Node) ofPods(_ context.Context, _ Zone, volumes []pool.Volume) ([]orphan, error) {
	shown, err := n.shown(volumes)
	if err != nil {
		return nil, fmt.Errorf("mounts of volumes: %w", err)
	}
	var all []orphan
	for _, v := range volumes {
		if pool.IsEphemeral(v.Name) && len(shown[v.Name]) == 0 {
			all = append(all, orphan{"volume", v.Name, v.Size, ofNoPod})
		}
	}
	return all, nil
}

// ofSnapshots are the snapshots that no content names. If the folder or the zone cannot be read,
// the orphans of the other are returned with the error.
func (n *Node) ofSnapshots(ctx context.Context, z Zone, _ []pool.Volume) ([]orphan, error) {
	contents, err := n.contents.List(ctx, recent())
	if err != nil {
		return nil, fmt.Errorf("contents of snapshots: %w", err)
	}
	known := map[string]bool{}
	for _, c := range contents.Items {
		if of, _, _ := unstructured.NestedString(c.Object, "spec", "driver"); of != n.driver {
			continue
		}
		for _, at := range [][]string{{"spec", "source", "snapshotHandle"}, {"status", "snapshotHandle"}} {
			handle, _, _ := unstructured.NestedString(c.Object, at...)
			known[handle] = true
		}
	}
	snapshots, err := z.Snapshots(ctx)
	if err != nil {
		err = fmt.Errorf("snapshots: %w", err)
	}
	var all []orphan
	if snapshots != nil {
		all = []orphan{}
	}
	for _, s := range snapshots {
		if pool.IsSnapshot(s.Name) && !known[s.Name] && !known[s.ID()] {
			all = append(all, orphan{"snapshot", s.Name, s.Size, ofNoContent})
		}
	}
	return all, err
}
