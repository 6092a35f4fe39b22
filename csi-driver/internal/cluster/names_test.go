// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"stargate/csi-driver/internal/pool"
)

const inZone = "0123456789abcdef"

// named is a PersistentVolume of a node.
func named(name, driver, node, handle string) *corev1.PersistentVolume {
	v := placedAt(name, driver, node)
	v.Spec.CSI.VolumeHandle = handle
	return v
}

// A volume that has a PersistentVolume of an older chart can get another one of this chart.
func TestNames(t *testing.T) {
	const short, long = "pvc-" + driver + "-", "pvc-" + driver + "--n1-"
	client := fake.NewClientset(
		named(short+"both", driver, "n1", short+"both@"+inZone), named(long+"both", driver, "n1", short+"both@"+inZone),
		named(short+"old", driver, "n1", short+"old"), named(long+"new", driver, "n1", short+"new@"+inZone),
		named(short+"far", driver, "n2", short+"far"), named(short+"theirs", "another.driver", "n1", short+"theirs"),
		named(short+"before", driver, "n1", short+"before@fedcba9876543210"), named(short+"other", driver, "n1", "by-hand"),
		named("by-hand", driver, "n1", "by-hand"),
	)
	n := New(client, record.NewFakeRecorder(1), driver, "n1")
	for name, want := range map[string][]string{
		short + "both": {long + "both", short + "both"}, short + "old": {short + "old"}, short + "new": {long + "new"},
		short + "far": nil, short + "theirs": nil, short + "before": nil, short + "other": nil, short + "none": nil, "by-hand": {"by-hand"},
	} {
		if got, err := n.Names(context.Background(), pool.ID{Name: name, Zone: inZone}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
	if names, err := n.Names(context.Background(), pool.ID{Name: short + "both"}); err == nil {
		t.Errorf("without an answer: %q", names)
	}
}

// The search for orphans finds volumes that several PersistentVolumes name, under any names. Each of
// these has an Event, and Names has them until one is left.
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
	names := func(want ...string) {
		t.Helper()
		if err := n.Look(ctx, z); err != nil {
			t.Fatal(err)
		}
		if got, err := n.Names(ctx, pool.ID{Name: "pvc-1", Zone: inZone}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v", got, err)
		}
	}
	names("first", "second")
	const words = "VolumeNamedTwice PersistentVolumes first and second name the same volume, pvc-1 on node n1"
	said(t, recorder, words, words)
	names("first", "second")
	said(t, recorder)
	if err := client.CoreV1().PersistentVolumes().Delete(ctx, "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := n.Names(ctx, pool.ID{Name: "pvc-1", Zone: inZone}); err != nil || !slices.Equal(got, []string{"first"}) {
		t.Errorf("before the next search: %q, %v", got, err)
	}
}
