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

// OrphanLimit is the time that a volume may be without a PersistentVolume, because a new volume has
// none at first. The same limit applies to missing mounts and contents. It is also the interval of
// the search for orphans. Shorter intervals would cause load, because a search lists all volumes of
// the cluster.
const OrphanLimit = 10 * time.Minute

// orphans has the searches for volumes and snapshots that no call will delete: claims' volumes
// without a PersistentVolume, pods' volumes that are mounted nowhere, and snapshots without a
// VolumeSnapshotContent. Each search has its own source. So if one source cannot be read, the other
// searches still find their orphans.
type orphans struct {
	every    int // number of checks of the node from one search to the next
	searches []*search
}

// find searches for orphans. With an error, it may return some of the orphans; nil means that it
// could not search.
type find func(ctx context.Context, z Zone, volumes []pool.Volume) ([]orphan, error)

// search finds orphans of one kind.
type search struct {
	kind  string // name of the kind in the metric
	of    string // name of the kind in messages
	find  find
	looks bool            // whether it needs the list of volumes
	wait  int             // checks until the next search
	vain  int             // failed searches in a row
	blind bool            // an Event has reported the failure
	told  map[string]bool // orphans of the last search; true: reported
	found atomic.Int64    // number of orphans; -1: unknown. Read concurrently.
}

// searchFor adds a search. looks is set if the search needs the list of volumes.
func (n *Node) searchFor(kind, of string, looks bool, by find) {
	s := &search{kind: kind, of: of, looks: looks, find: by}
	s.found.Store(-1)
	n.orphans.searches = append(n.orphans.searches, s)
}

// LookForOrphans sets a limit other than OrphanLimit. Call it before Run.
func (n *Node) LookForOrphans(limit time.Duration) {
	n.orphans.every = max(1, int((limit+Period-1)/Period))
}

// Orphans returns the number of orphans of each kind: claim, pod or snapshot. A kind is missing
// until its search has run twice.
func (n *Node) Orphans() map[string]int64 {
	all := map[string]int64{}
	for _, s := range n.orphans.searches {
		if found := s.found.Load(); found >= 0 {
			all[s.kind] = found
		}
	}
	return all
}

// findOrphans runs each search that is due. The next check repeats a search that failed completely.
// A search that returned some orphans waits for the usual interval, because orphans are reported
// when they have been found twice. unread is the error of the list of volumes.
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
			if err != unread { // the check already reports this error
				failed = append(failed, err)
			}
			if s.vain++; !s.blind && (all != nil || s.vain == patience) {
				s.blind = true
				n.events.Eventf(n.itself(), corev1.EventTypeWarning, "OrphansUnknown",
					"the driver cannot check whether Kubernetes will delete all %s: %v", s.of, err)
			}
		}
		if err == nil || all != nil {
			s.wait = n.orphans.every - 1
			n.tellOrphans(ctx, s, all, err == nil)
		}
	}
	return errors.Join(failed...)
}

// tellOrphans reports the orphans that an earlier search also found. If only a part could be
// searched, the earlier result for the other part remains.
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

// recent makes a list read the state in the API server's memory, which is recent enough.
func recent() metav1.ListOptions { return metav1.ListOptions{ResourceVersion: "0"} }

// ofClaims returns the volumes that were created for claims and that no PersistentVolume names. It
// leaves out volumes of claims that still wait, because the provisioner may still save their
// PersistentVolumes.
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

// ofPods returns the volumes that were created for pods and that are mounted nowhere.
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

// ofSnapshots returns the snapshots that no content names. If the folder cannot be read, it returns
// the orphans in the zone with the error, and the reverse.
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
