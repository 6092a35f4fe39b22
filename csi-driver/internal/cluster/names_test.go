// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"stargate/csi-driver/internal/pool"
)

const inZone = "0123456789abcdef"

// named returns a PersistentVolume of a node.
func named(name, driver, node, handle string) *corev1.PersistentVolume {
	v := placedAt(name, driver, node)
	v.Spec.CSI.VolumeHandle = handle
	return v
}

// A volume that has a PersistentVolume of an older chart can get a second PersistentVolume of this
// chart.
func TestNames(t *testing.T) {
	const far = "stargate.csi.example.com" // with a UID at its end, the name is too long for LVM
	for _, driver := range []string{driver, far} {
		short, long := "pvc-"+driver+"-", "pvc-"+driver+"--n1-"
		handle := func(name string) string { return pool.NameFor(short+name) + "@" + inZone }
		uid := func(name string) string { return name + strings.Repeat("0", 36-len(name)) }
		both, old, latest, other := uid("both"), uid("old"), uid("new"), uid("other")
		client := fake.NewClientset(
			named(short+both, driver, "n1", handle(both)), named(long+both, driver, "n1", handle(both)),
			named(short+old, driver, "n1", pool.NameFor(short+old)), named(long+latest, driver, "n1", handle(latest)),
			named(short+uid("far"), driver, "n2", pool.NameFor(short+uid("far"))), named(short+uid("theirs"), "another.driver", "n1", handle(uid("theirs"))),
			named(short+other, driver, "n1", "by-hand"), named("by-hand", driver, "n1", "by-hand"),
		)
		n := New(client, record.NewFakeRecorder(1), driver, "n1")
		for name, want := range map[string][]string{
			short + both: {long + both, short + both}, short + old: {short + old}, short + latest: {long + latest},
			short + uid("far"): nil, short + uid("theirs"): nil, short + other: nil, short + uid("none"): nil, "by-hand": {"by-hand"},
		} {
			if got, err := n.Names(context.Background(), pool.ID{Name: pool.NameFor(name)}, name); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
		if names, err := n.Names(context.Background(), pool.ID{Name: pool.NameFor(short + both)}, short+both); err == nil {
			t.Errorf("without an answer of the API server: %q", names)
		}
	}
}

// The driver may delete a volume if Kubernetes deletes all of its PersistentVolumes, whatever their
// names.
func TestKeeps(t *testing.T) {
	ctx := context.Background()
	const id = "pvc-1@" + inZone
	static := named("static", driver, "", id) // a user has set another label in the node affinity
	static.Spec.NodeAffinity = nil
	is := func(v *corev1.PersistentVolume, phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
		v = v.DeepCopy()
		v.Status.Phase, v.Spec.PersistentVolumeReclaimPolicy = phase, policy
		return v
	}
	const bound, released, failed = corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeFailed
	const deletes, retains = corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain
	own := named("pvc-1", driver, "n1", id)
	for what, c := range map[string]struct {
		all  []runtime.Object
		want []string
	}{
		"none":                       {nil, nil},
		"one to delete":              {[]runtime.Object{is(own, released, deletes)}, nil},
		"one with a failed deletion": {[]runtime.Object{is(own, failed, deletes)}, nil},
		"one that is bound":          {[]runtime.Object{is(own, bound, deletes)}, []string{"pvc-1 (Bound, Delete)"}},
		"one that stays":             {[]runtime.Object{is(own, released, retains)}, []string{"pvc-1 (Released, Retain)"}},
		"one that is new":            {[]runtime.Object{is(own, corev1.VolumeAvailable, deletes)}, []string{"pvc-1 (Available, Delete)"}},
		"two to delete":              {[]runtime.Object{is(own, released, deletes), is(named("copy", driver, "n1", id), released, deletes)}, nil},
		"a copy that is bound": {[]runtime.Object{is(own, released, deletes), is(named("copy", driver, "n1", "pvc-1"), bound, deletes)},
			[]string{"copy (Bound, Delete)"}},
		"a static one":      {[]runtime.Object{is(own, released, deletes), is(static, bound, retains)}, []string{"static (Bound, Retain)"}},
		"another zone's":    {[]runtime.Object{is(named("a", driver, "n1", "pvc-1@fedcba9876543210"), bound, deletes)}, nil},
		"another node's":    {[]runtime.Object{is(named("a", driver, "n2", "pvc-1"), bound, deletes)}, nil},
		"another driver's":  {[]runtime.Object{is(named("a", "another.driver", "n1", id), bound, deletes)}, nil},
		"of another volume": {[]runtime.Object{is(named("a", driver, "n1", "pvc-2@"+inZone), bound, deletes)}, nil},
		"of no CSI driver":  {[]runtime.Object{&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, nil},
	} {
		n := New(fake.NewClientset(c.all...), record.NewFakeRecorder(1), driver, "n1")
		if got, err := n.Keeps(ctx, pool.ID{Name: "pvc-1", Zone: inZone}); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	// The list may be older than the current state.
	client := fake.NewClientset(is(own, bound, deletes))
	n := New(client, record.NewFakeRecorder(1), driver, "n1")
	client.PrependReactor("list", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{*is(own, released, deletes)}}, nil
	})
	if got, err := n.Keeps(ctx, pool.ID{Name: "pvc-1", Zone: inZone}); err != nil || len(got) != 1 {
		t.Errorf("after an old list: %q, %v", got, err)
	}
	for _, verb := range []string{"get", "list"} {
		client.PrependReactor(verb, "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
		if got, err := n.Keeps(ctx, pool.ID{Name: "pvc-1", Zone: inZone}); err == nil {
			t.Errorf("without an answer to %s: %q", verb, got)
		}
	}
	n.listing <- struct{}{}
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := n.Keeps(ended, pool.ID{Name: "pvc-1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("while others list: %v", err)
	}
}

// A list has all PersistentVolumes of the cluster, and many volumes may be deleted at the same
// time, with their namespace. A few lists serve all these calls. No list serves a call that begins
// after the list.
func TestManyDeletionsListOnce(t *testing.T) {
	var all []runtime.Object
	for i := range 50 {
		v := named(fmt.Sprint("static-", i), driver, "n1", fmt.Sprintf("pvc-%d@%s", i, inZone))
		v.Status.Phase = corev1.VolumeBound
		all = append(all, v)
	}
	client, lists := fake.NewClientset(all...), 0
	client.PrependReactor("list", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists++
		time.Sleep(100 * time.Millisecond)
		return false, nil, nil
	})
	n := New(client, record.NewFakeRecorder(1), driver, "n1")
	keeps := func(i int) {
		if got, err := n.Keeps(context.Background(), pool.ID{Name: fmt.Sprint("pvc-", i), Zone: inZone}); err != nil || len(got) != 1 {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	var calls sync.WaitGroup
	for i := range all {
		calls.Go(func() { keeps(i) })
	}
	calls.Wait()
	if lists > len(all)/4 {
		t.Errorf("the deletions sent %d list requests", lists)
	}
	before := lists
	keeps(0)
	keeps(1)
	if lists != before+2 {
		t.Errorf("two calls, one after the other, had %d lists", lists-before)
	}
}

// If the API server does not answer, calls of kubelet or of a sidecar end soon. Otherwise the next
// call for the same volume would have to wait.
func TestAskedInTime(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	defer server.Close()
	defer close(done)
	client, err := kubernetes.NewForConfig(limited(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	n := New(client, record.NewFakeRecorder(1), driver, "n1")
	n.asks = 50 * time.Millisecond
	for what, ask := range map[string]func(context.Context) error{
		"names": func(ctx context.Context) error {
			_, err := n.Names(ctx, pool.ID{Name: "pvc-1"}, "pvc-1")
			return err
		},
		"keeps": func(ctx context.Context) error { _, err := n.Keeps(ctx, pool.ID{Name: "pvc-1"}); return err },
		"machines": func(ctx context.Context) error {
			_, err := within(n.asks, Machines(client, driver))(ctx, "ns", "virt-launcher-x", "u", "pv-1")
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("%s: %v, %v", what, err, ctx.Err())
		}
		cancel()
	}
}

// The search for orphans finds volumes that have several PersistentVolumes, whatever their names.
// The driver writes an Event on each of these PersistentVolumes.
func TestNamedTwice(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		named("first", driver, "n1", "pvc-1@"+inZone), named("second", driver, "n1", "pvc-1"), named("third", driver, "n1", "pvc-1@fedcba9876543210"),
		named("fourth", driver, "n2", "pvc-1"), named("alone", driver, "n1", "pvc-2"))
	recorder := record.NewFakeRecorder(9)
	recorder.IncludeObject = true
	n := New(client, recorder, driver, "n1")
	n.LookForOrphans(Period)
	z := &told{kind: pool.None, volumes: []pool.Volume{{Name: "pvc-1", Zone: inZone, State: pool.Ready}, {Name: "pvc-2", Zone: inZone, State: pool.Ready}}}
	look := func(events ...string) {
		t.Helper()
		if err := n.Look(ctx, z); err != nil {
			t.Fatal(err)
		}
		said(t, recorder, events...)
	}
	const words = "VolumeNamedTwice PersistentVolumes first and second name the same volume, pvc-1 on node n1"
	look(words, words)
	look()
	if err := client.CoreV1().PersistentVolumes().Delete(ctx, "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	look()
	if _, err := client.CoreV1().PersistentVolumes().Create(ctx, named("second", driver, "n1", "pvc-1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	look(words, words)
}
