// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"stargate/csi-driver/internal/pool"
)

// A policy may refuse the PersistentVolume of a volume, or the binding of its claim. The driver
// then writes one Event on the claim for each reason.
func TestUnbound(t *testing.T) {
	ctx := context.Background()
	of := func(name string, uid types.UID, volume string) *corev1.PersistentVolumeClaim {
		c := boundTo(name, volume)
		c.UID, c.Annotations = uid, map[string]string{provisionerKey: driver, selectedKey: "n1"}
		return c
	}
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		of("refused", "u1", ""), of("bound", "u2", "pv-u2"), of("again", "u4", ""), of("elsewhere", "u5", "other"))
	recorder := record.NewFakeRecorder(9)
	recorder.IncludeObject = true
	n := New(client, recorder, driver, "n1")
	z := &told{kind: pool.None}
	looks := func(times int, unbound int64, events ...string) {
		t.Helper()
		for range times {
			if err := n.Look(ctx, z); err != nil {
				t.Fatal(err)
			}
		}
		if is := n.Unbound(); is != unbound {
			t.Errorf("%d claims are reported as unbound", is)
		}
		said(t, recorder, events...)
	}
	for name, pv := range map[string]string{"refused": "pv-u1", "bound": "pv-u2", "gone": "pv-u3", "again": "pv-u0", "elsewhere": "pv-u5"} {
		n.Made("v", pv, types.NamespacedName{Namespace: "ns", Name: name})
	}
	looks(1, 0)
	looks(1, 1, "Warning VolumeNotSaved volume v was created on node n1, but its PersistentVolume pv-u1 is missing")
	n.Made("v", "pv-u1", types.NamespacedName{Namespace: "ns", Name: "refused"}) // the provisioner repeats its call
	looks(3, 1)
	if len(n.made.all) != 1 {
		t.Errorf("the driver follows %d claims", len(n.made.all))
	}
	if _, err := client.CoreV1().PersistentVolumes().Create(ctx, claimed("pv-u1", driver, "refused"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	looks(2, 1, "Warning VolumeNotBound PersistentVolume pv-u1 on node n1 was created for this claim, but Kubernetes does not bind the claim to it: the log of")
	change := func(f func(c *corev1.PersistentVolumeClaim)) {
		t.Helper()
		c := of("refused", "u1", "")
		f(c)
		if _, err := client.CoreV1().PersistentVolumeClaims("ns").Update(ctx, c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for annotation, words := range map[string]string{selectedKey: "node other is chosen", provisionerKey: "for the driver other now"} {
		change(func(c *corev1.PersistentVolumeClaim) { c.Annotations[annotation] = "other" })
		n.made.all["pv-u1"].told = ""
		looks(1, 1, words)
	}
	silent := true
	client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) { return silent, nil, errors.New("no answer") })
	if err := n.Look(ctx, z); err == nil || n.Unbound() != 1 {
		t.Errorf("without an answer of the API server: %v", err)
	}
	silent = false
	change(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-u1" })
	looks(1, 0)
	if len(n.made.all) != 0 {
		t.Errorf("the driver follows %d claims", len(n.made.all))
	}
}

// A volume without a PersistentVolume is no orphan while its claim waits: the provisioner may still
// save the PersistentVolume.
func TestWaitingIsNoOrphan(t *testing.T) {
	ctx := context.Background()
	c := boundTo("refused", "")
	c.UID = "u1"
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, c)
	n := New(client, record.NewFakeRecorder(9), driver, "n1")
	n.LookForOrphans(Period)
	z := &told{kind: pool.None, volumes: []pool.Volume{{Name: "pvc-u1", State: pool.Ready}}}
	looks := func(what string, orphans int64) {
		t.Helper()
		for range 3 {
			if err := n.Look(ctx, z); err != nil {
				t.Fatal(err)
			}
		}
		if is := n.Orphans()["claim"]; is != orphans {
			t.Errorf("%s: %d orphans", what, is)
		}
	}
	n.Made("pvc-u1", "pvc-u1", types.NamespacedName{Namespace: "ns", Name: "refused"})
	looks("while the claim waits", 0)
	if err := client.CoreV1().PersistentVolumeClaims("ns").Delete(ctx, "refused", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	looks("the claim is gone", 1)
}

// A restarted driver follows the claims that are not bound to their PersistentVolumes.
func TestUnboundAfterAStart(t *testing.T) {
	ctx := context.Background()
	c := boundTo("refused", "")
	c.UID, c.Annotations = "u1", map[string]string{provisionerKey: driver, selectedKey: "n1"}
	of := func(name, node string, uid types.UID, phase corev1.PersistentVolumePhase) *corev1.PersistentVolume {
		v := named(name, driver, node, "pvc-u1")
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "refused", UID: uid}
		v.Status.Phase = phase
		return v
	}
	static := of("static", "n1", "u1", corev1.VolumeAvailable)
	for what, v := range map[string]*corev1.PersistentVolume{"VolumeNotBound": of("pvc-u1", "n1", "u1", corev1.VolumePending), "": static,
		"another node's": of("pvc-u1", "n2", "u1", corev1.VolumePending), "bound": of("pvc-u1", "n1", "u1", corev1.VolumeBound), "no UID": of("pvc-u1", "n1", "", corev1.VolumePending)} {
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, c, v)
		recorder := record.NewFakeRecorder(9)
		n := New(client, recorder, driver, "n1")
		for range 3 {
			if err := n.Look(ctx, &told{kind: pool.None}); err != nil {
				t.Fatal(err)
			}
		}
		if what == notBound {
			said(t, recorder, notBound)
		} else {
			said(t, recorder)
		}
		if is := n.Unbound(); (is == 1) != (what == notBound) {
			t.Errorf("%s: %d claims", what, is)
		}
	}
}

// The driver follows only a limited number of claims.
func TestManyUnbound(t *testing.T) {
	n := New(fake.NewClientset(), record.NewFakeRecorder(1), driver, "n1")
	for i := range 2 * mostUnbound {
		n.Made("v", pool.NameFor(string(rune(i))), types.NamespacedName{Namespace: "ns", Name: "c"})
	}
	if len(n.made.all) != mostUnbound {
		t.Errorf("the driver follows %d claims", len(n.made.all))
	}
}
