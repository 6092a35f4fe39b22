// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
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

// A claim that is to be a copy, and that the node which the scheduler chose has refused, is for the node that has what
// it is to be a copy of. Other claims stay as they are.
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
			t.Errorf("it is told: %s", said)
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
	// Refused by the node that was chosen, and then, for want of room, by this one, again and again.
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
