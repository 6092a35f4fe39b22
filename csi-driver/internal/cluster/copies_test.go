// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

func copyOf(name, kind, source string, annotations map[string]string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: annotations, Labels: map[string]string{"kept": "yes"}}}
	if kind != "" {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: source}
	}
	if kind == "VolumeSnapshot" {
		group := "snapshot.storage.k8s.io"
		c.Spec.DataSource.APIGroup = &group
	}
	return c
}

func boundTo(name, volume string) *corev1.PersistentVolumeClaim {
	c := copyOf(name, "", "", nil)
	c.Spec.VolumeName = volume
	return c
}

func placedAt(name, driver, node string) *corev1.PersistentVolume {
	v := claimed(name, driver, "")
	v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology." + driver + "/node", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
	return v
}

func snapshotObject(kind, namespace, name string, labels map[string]any, rest map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: rest}
	o.SetAPIVersion("snapshot.storage.k8s.io/v1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	_ = unstructured.SetNestedMap(o.Object, labels, "metadata", "labels")
	return o
}

// If a claim requests a copy and the scheduler's node has refused it, PlaceCopies assigns it to the
// node with its source. Other claims do not change.
func TestPlaceCopies(t *testing.T) {
	const snapshot, claim, other = "VolumeSnapshot", "PersistentVolumeClaim", "another.driver"
	ours := map[string]string{provisionerKey: driver}
	leaving := copyOf("leaving", claim, "data", ours)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x"}
	client := fake.NewClientset(
		boundTo("data", "pv-data"), placedAt("pv-data", driver, "n1"), boundTo("far", "pv-far"), placedAt("pv-far", driver, "n2"),
		boundTo("foreign", "pv-foreign"), placedAt("pv-foreign", other, "n1"), boundTo("anywhere", "pv-anywhere"), claimed("pv-anywhere", driver, "anywhere"),
		copyOf("unbound", "", "", nil),
		copyOf("clone", claim, "data", ours), copyOf("restored", snapshot, "kept", ours),
		copyOf("no-copy", "", "", ours), copyOf("no-pod-yet", claim, "data", nil), copyOf("another-driver", claim, "data", map[string]string{provisionerKey: other}),
		copyOf("chosen", claim, "data", map[string]string{provisionerKey: driver, selectedKey: "n2"}),
		copyOf("of-far", claim, "far", ours), copyOf("of-foreign", claim, "foreign", ours), copyOf("of-anywhere", claim, "anywhere", ours),
		copyOf("of-unbound", claim, "unbound", ours), copyOf("of-nothing", claim, "nothing", ours), leaving,
		copyOf("of-far-snapshot", snapshot, "far", ours), copyOf("of-foreign-snapshot", snapshot, "foreign", ours),
		copyOf("of-new-snapshot", snapshot, "new", ours), copyOf("of-no-snapshot", snapshot, "nothing", ours), copyOf("of-a-kind", "Kind", "data", ours),
	)
	content := func(name, driver, node string) *unstructured.Unstructured {
		return snapshotObject("VolumeSnapshotContent", "", name, map[string]any{managedBy: node}, map[string]any{"spec": map[string]any{"driver": driver}})
	}
	of := func(name, content string) *unstructured.Unstructured {
		return snapshotObject(snapshot, "ns", name, nil, map[string]any{"status": map[string]any{"boundVolumeSnapshotContentName": content}})
	}
	kinds := map[schema.GroupVersionResource]string{contentsKind: "VolumeSnapshotContentList", snapshotsKind: "VolumeSnapshotList"}
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
		content("content-kept", driver, "n1"), content("content-far", driver, "n2"), content("content-foreign", other, "n1"),
		of("kept", "content-kept"), of("far", "content-far"), of("foreign", "content-foreign"), snapshotObject(snapshot, "ns", "new", nil, map[string]any{}),
	)
	recorder := record.NewFakeRecorder(20)
	n := New(client, recorder, driver, "n1")
	n.Contents(dynamic)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.PlaceCopies(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })

	claims := client.CoreV1().PersistentVolumeClaims("ns")
	chosen := func(name string) string {
		t.Helper()
		c, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Labels["kept"] != "yes" {
			t.Errorf("%s has labels %v", name, c.Labels)
		}
		return c.Annotations[selectedKey]
	}
	soon := func(name, node string) time.Duration {
		t.Helper()
		began := time.Now()
		for chosen(name) != node {
			if time.Since(began) > 10*time.Second {
				t.Fatalf("%s is for node %q", name, chosen(name))
			}
			time.Sleep(time.Millisecond)
		}
		return time.Since(began)
	}
	soon("clone", "n1")
	soon("restored", "n1")
	for range 2 {
		if said := <-recorder.Events; !strings.Contains(said, "CopyPlaced") || !strings.Contains(said, "node n1") {
			t.Errorf("the Event of a placed copy is %q", said)
		}
	}
	watched := func() bool {
		for _, a := range client.Actions() {
			if a.GetVerb() == "watch" {
				return true
			}
		}
		return false
	}
	for !watched() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	for name, node := range map[string]string{
		"no-copy": "", "no-pod-yet": "", "another-driver": "", "chosen": "n2", "of-far": "", "of-foreign": "", "of-anywhere": "", "of-unbound": "",
		"of-nothing": "", "leaving": "", "of-far-snapshot": "", "of-foreign-snapshot": "", "of-new-snapshot": "", "of-no-snapshot": "", "of-a-kind": "",
	} {
		if is := chosen(name); is != node {
			t.Errorf("%s is for node %q, and should be for %q", name, is, node)
		}
	}
	// The chosen node refuses the claim. This node then refuses it repeatedly, because it has
	// no room.
	refuse := func(name string) {
		t.Helper()
		c, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		delete(c.Annotations, selectedKey)
		if _, err := claims.Update(ctx, c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var took time.Duration
	for range 5 {
		refuse("chosen")
		took = soon("chosen", "n1")
	}
	if took < 8*copyFirst {
		t.Errorf("the fifth time after %s", took)
	}
}

// watched is an API server with one claim that requests a copy. Its watches end one after another,
// by the errors that the test sets. An error may also arrive as an event of the watch.
type watched struct {
	mu     sync.Mutex
	ends   []error
	inside bool
	events []string // the versions of the events before each end
	lists  int
	since  []string // the versions at which watches began
	began  []time.Time
}

func (w *watched) serve() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("list", "persistentvolumeclaims", func(k8stesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lists++
		claim := copyOf("copy", "PersistentVolumeClaim", "far", map[string]string{provisionerKey: driver})
		return true, &corev1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.PersistentVolumeClaim{*claim}}, nil
	})
	client.PrependWatchReactor("persistentvolumeclaims", func(a k8stesting.Action) (bool, watch.Interface, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.since = append(w.since, a.(k8stesting.WatchAction).GetWatchRestrictions().ResourceVersion)
		w.began = append(w.began, time.Now())
		if len(w.ends) == 0 {
			return true, watch.NewFake(), nil // this watch does not end
		}
		if len(w.events) > 0 {
			w.ends = w.ends[1:]
			of := watch.NewFakeWithChanSize(len(w.events), false)
			for _, version := range w.events {
				of.Action(watch.Bookmark, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}})
			}
			of.Stop() // the channel still holds the events
			return true, of, nil
		}
		err := w.ends[0]
		w.ends = w.ends[1:]
		var status apierrors.APIStatus
		if !w.inside || !errors.As(err, &status) {
			return true, nil, err
		}
		of, is := watch.NewFakeWithChanSize(1, false), status.Status()
		of.Error(&is)
		return true, of, nil
	})
	return client
}

// over reports whether this number of watches has begun.
func (w *watched) over(watches int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.began) >= watches
}

// While claims cannot be watched, a node retries at growing intervals. It lists the claims again
// only if the API server no longer has the changes since the version that the node has seen.
func TestClaimsAreWatchedAgain(t *testing.T) {
	down := apierrors.NewServiceUnavailable("it is coming up")
	expired, gone := apierrors.NewResourceExpired("too old"), apierrors.NewGone("too old")
	early := apierrors.NewTimeoutError("Too large resource version", 1)
	early.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for what, c := range map[string]struct {
		ends  []error
		lists int
	}{
		"down":          {[]error{down, down, errors.New("connection refused"), down, down}, 1},
		"expired":       {[]error{down, expired, down, down, down}, 2},
		"gone":          {[]error{gone, down, down, down, gone}, 3},
		"restored etcd": {[]error{down, down, early, down, down}, 2},
	} {
		for _, inside := range []bool{false, true} {
			w := &watched{ends: slices.Clone(c.ends), inside: inside}
			n := New(w.serve(), record.NewFakeRecorder(9), driver, "n1")
			n.watchAgain = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 9, Cap: 100 * time.Millisecond}
			w.places(t, n, len(c.ends)+1)
			if w.lists != c.lists || len(w.began) != len(c.ends)+1 {
				t.Errorf("%s, %v: %d lists and %d watches, should be %d and %d", what, inside, w.lists, len(w.began), c.lists, len(c.ends)+1)
				continue
			}
			if slices.ContainsFunc(w.since, func(v string) bool { return v != "7" }) {
				t.Errorf("%s, %v: watched from %q", what, inside, w.since)
			}
			for i, least := range []time.Duration{20, 40, 80, 100, 100} {
				if gap := w.began[i+1].Sub(w.began[i]); gap < least*time.Millisecond {
					t.Errorf("%s, %v: watch %d began after %s, and should begin after %d ms", what, inside, i+1, gap, least)
				}
			}
		}
	}
	nodes := []wait.Backoff{watchAgain, watchAgain}
	alike := true
	for i := range 20 {
		a, b := nodes[0].Step(), nodes[1].Step()
		alike = alike && a == b
		if a > time.Minute || i > 10 && a < 30*time.Second {
			t.Errorf("wait %d is %s", i, a)
		}
	}
	if alike {
		t.Error("all nodes send their requests at the same moment")
	}
}

// places runs PlaceCopies until the given number of watches has begun.
func (w *watched) places(t *testing.T, n *Node, watches int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.PlaceCopies(ctx); close(done) }()
	for began := time.Now(); !w.over(watches) && time.Since(began) < 20*time.Second; {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if len(w.began) < watches {
		t.Fatalf("%d watches in 20 s, should be %d", len(w.began), watches)
	}
}

// A load balancer ends each watch. While each watch delivers an event, the delay before the next
// watch does not grow.
func TestWatchesWithEventsAreNoFailures(t *testing.T) {
	const watches = 9 // if they counted as failures, the delays of 20 ms, 40 ms, ... would add up to 5 s
	w := &watched{ends: make([]error, watches), events: []string{"7"}}
	n := New(w.serve(), record.NewFakeRecorder(9), driver, "n1")
	n.watchAgain = wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 9}
	began := time.Now()
	w.places(t, n, watches+1)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("%d watches took %s", watches, took)
	}
	if w.lists != 1 {
		t.Errorf("%d lists, should be one", w.lists)
	}
}

// After a restore of etcd, the API server has earlier versions than the node has seen. The node
// then lists all claims again, both if the API server sends such a version and if it sends nothing.
func TestVersionsGoBack(t *testing.T) {
	for what, w := range map[string]*watched{
		"an earlier version": {ends: make([]error, 1), events: []string{"9", "10", "8"}},
		"silence":            {},
	} {
		n := New(w.serve(), record.NewFakeRecorder(9), driver, "n1")
		n.watchAgain = wait.Backoff{Duration: time.Millisecond}
		n.watchSilent = 50 * time.Millisecond
		if len(w.events) > 0 {
			n.watchSilent = time.Hour
		}
		w.places(t, n, 2)
		if w.lists < 2 || w.since[1] != "7" {
			t.Errorf("%s: %d lists, watched from %q", what, w.lists, w.since)
		}
	}
}

// The failures of a claim that has been deleted do not delay a later claim of its name.
func TestDeletedClaimsAreForgotten(t *testing.T) {
	n := New(fake.NewClientset(), record.NewFakeRecorder(9), driver, "n1")
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Nanosecond,
			time.Nanosecond))
	defer queue.ShutDown()
	name := types.NamespacedName{Namespace: "ns", Name: "clone"}
	for range 3 {
		queue.AddRateLimited(name)
	}
	if !n.placeNext(context.Background(), queue) || queue.NumRequeues(name) != 0 {
		t.Errorf("the deleted claim still counts %d failures", queue.NumRequeues(name))
	}
}

// A new list of all claims does not make any claim wait longer.
func TestListsAreNoFailures(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	w := &watched{ends: []error{expired, expired, expired, expired, expired}}
	n := New(w.serve(), record.NewFakeRecorder(9), driver, "n1")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](copyFirst, copyLast))
	defer queue.ShutDown()
	for range 5 {
		var seen progress
		if _, err := n.watchClaims(context.Background(), &seen, queue); seen.since != "" || !apierrors.IsResourceExpired(err) {
			t.Fatalf("%q, %v", seen.since, err)
		}
	}
	name, _ := queue.Get()
	if name.Name != "copy" || queue.NumRequeues(name) != 0 {
		t.Errorf("after a new list, %s counts %d failures", name, queue.NumRequeues(name))
	}
}

// If another client changes a claim at the same moment, the node processes the claim again
// immediately. This does not count as a failure.
func TestConflictsAreNoFailures(t *testing.T) {
	const conflicts = 9 // if they counted as failures, the delays of 50 ms, 100 ms, ... would add up to 25 s
	client := fake.NewClientset(boundTo("data", "pv-data"), placedAt("pv-data", driver, "n1"),
		copyOf("clone", "PersistentVolumeClaim", "data", map[string]string{provisionerKey: driver}))
	var mu sync.Mutex
	tried := 0
	client.PrependReactor("update", "persistentvolumeclaims", func(k8stesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		tried++
		return tried <= conflicts, nil, apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, "clone", nil)
	})
	n := New(client, record.NewFakeRecorder(9), driver, "n1")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.PlaceCopies(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := client.CoreV1().PersistentVolumeClaims("ns").Get(ctx, "clone", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Annotations[selectedKey] == "n1" {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("the claim has no node after %d attempts", tried)
		}
	}
}
