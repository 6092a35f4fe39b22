// SPDX-License-Identifier: Apache-2.0

package helmhooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func volume(name, driver, claim string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: claim}
	}
	return pv
}

func TestNoVolumes(t *testing.T) {
	ctx := context.Background()
	client := fake.NewSimpleClientset(volume("other", "other.example", "x"), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "nfs"}})
	if err := NoVolumes(ctx, client, "this.example"); err != nil {
		t.Errorf("volumes of others: %v", err)
	}
	for i := range 7 {
		if _, err := client.CoreV1().PersistentVolumes().Create(ctx, volume(fmt.Sprint("v", i), "this.example", fmt.Sprint("c", 6-i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	err := NoVolumes(ctx, client, "this.example")
	if err == nil || !strings.Contains(err.Error(), "7 volumes of this.example are left (ns/c0, ns/c1, ns/c2, ns/c3, ns/c4, ...)") || !strings.Contains(err.Error(), "--no-hooks") {
		t.Errorf("%v", err)
	}
	err = NoVolumes(ctx, fake.NewSimpleClientset(volume("alone", "this.example", "")), "this.example")
	if err == nil || !strings.Contains(err.Error(), "(alone)") {
		t.Errorf("without a claim: %v", err)
	}
}

func snapshot(name, driver string) runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1",
		"kind":       "VolumeSnapshotContent",
		"metadata":   map[string]any{"name": "snapcontent-" + name},
		"spec": map[string]any{
			"driver":            driver,
			"volumeSnapshotRef": map[string]any{"namespace": "ns", "name": name},
		},
	}}
}

func TestNoSnapshots(t *testing.T) {
	ctx := context.Background()
	kinds := map[schema.GroupVersionResource]string{snapshots: "VolumeSnapshotContentList"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, snapshot("b", "other.example"))
	if err := NoSnapshots(ctx, client, "this.example"); err != nil {
		t.Errorf("snapshots of others: %v", err)
	}
	client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
		snapshot("b", "this.example"), snapshot("a", "this.example"), snapshot("c", "other.example"))
	err := NoSnapshots(ctx, client, "this.example")
	if err == nil || !strings.Contains(err.Error(), "2 snapshots of this.example are left (ns/a, ns/b)") {
		t.Errorf("%v", err)
	}
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.NewNotFound(snapshots.GroupResource(), "")
	})
	if err := NoSnapshots(ctx, client, "this.example"); err != nil {
		t.Errorf("a cluster without snapshots: %v", err)
	}
}

// named returns an object of KubeVirt with the annotation at a given place.
func named(kind, name, key string, at ...string) runtime.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": kind}}
	u.SetNamespace("ns")
	u.SetName(name)
	if err := unstructured.SetNestedField(u.Object, "data", append(at, key)...); err != nil {
		panic(err)
	}
	return u
}

// NoMachines refuses an upgrade or a rollback to a revision without KubeVirt's webhooks while a VM
// names volumes.
func TestNoMachines(t *testing.T) {
	const driver = "this.example"
	ctx := context.Background()
	template, own := []string{"spec", "template", "metadata", "annotations"}, []string{"metadata", "annotations"}
	there := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "rel-webhook"}}
	kinds := map[schema.GroupVersionResource]string{}
	for i, list := range []string{"VirtualMachineList", "VirtualMachineInstanceList", "VirtualMachineInstancetypeList", "VirtualMachineClusterInstancetypeList",
		"VirtualMachinePreferenceList", "VirtualMachineClusterPreferenceList"} {
		for _, version := range naming[i].versions {
			kinds[naming[i].kind.WithVersion(version)] = list
		}
	}
	version := "" // the kinds that this KubeVirt has
	look := func(webhooks string, objects ...runtime.Object) error {
		of := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
		of.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			asked := a.GetResource()
			return asked.Group == "instancetype.kubevirt.io" && asked.Version != version, nil, errors.NewNotFound(asked.GroupResource(), "")
		})
		return NoMachines(ctx, fake.NewClientset(there), of, driver, webhooks)
	}
	stopped, running := named("VirtualMachine", "stopped", driver+"/volumes", template...), named("VirtualMachineInstance", "alone", driver+"/volumes", own...)
	ofType := func(kind, namespace, name string) runtime.Object {
		u := named(kind, name, driver+"/volumes", "spec", "annotations").(*unstructured.Unstructured)
		u.SetAPIVersion("instancetype.kubevirt.io/" + version)
		u.SetNamespace(namespace)
		return u
	}
	for _, version = range []string{"v1", "v1beta1"} {
		for what, c := range map[string]struct {
			webhooks string
			objects  []runtime.Object
			words    string
		}{
			"no machines": {"rel-webhook", nil, ""},
			"others": {"rel-webhook", []runtime.Object{named("VirtualMachine", "a", "other.example/volumes", template...), named("VirtualMachineInstance", "b", "x", own...),
				named("VirtualMachine", "c", driver+"/volumes", own...)}, ""},
			"stopped and running": {"rel-webhook", []runtime.Object{stopped, running, named("VirtualMachine", "alone", driver+"/volumes", template...)}, "2 VMs or types of VMs name volumes (ns/alone, ns/stopped)"},
			"of a type and a preference": {"rel-webhook", []runtime.Object{ofType("VirtualMachineClusterInstancetype", "", "large"), ofType("VirtualMachineInstancetype", "ns", "own"),
				ofType("VirtualMachinePreference", "ns", "p"), ofType("VirtualMachineClusterPreference", "", "q")},
				"4 VMs or types of VMs name volumes (VirtualMachineClusterInstancetype large, VirtualMachineClusterPreference q, VirtualMachineInstancetype ns/own, VirtualMachinePreference ns/p)"},
			"another release's": {"other-webhook", []runtime.Object{stopped, running}, ""},
		} {
			if err := look(c.webhooks, c.objects...); (err != nil) != (c.words != "") || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("types %s, %s: %v", version, what, err)
			}
		}
	}
	gone := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	var answer error
	gone.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
	answer = errors.NewNotFound(naming[0].kind, "")
	if err := NoMachines(ctx, fake.NewClientset(there), gone, driver, "rel-webhook"); err != nil {
		t.Errorf("a cluster without KubeVirt: %v", err)
	}
	answer = errors.NewForbidden(naming[0].kind, "", nil)
	if err := NoMachines(ctx, fake.NewClientset(there), gone, driver, "rel-webhook"); err == nil {
		t.Error("NoMachines succeeds although the VMs could not be listed")
	}
}

func TestTry(t *testing.T) {
	dir := t.TempDir()
	want := func(words string, failed bool) {
		t.Helper()
		said, err := Try(dir)
		if failed != (err != nil) || !strings.Contains(fmt.Sprint(said, err), words) {
			t.Errorf("%q, %v; should say %q", said, err, words)
		}
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want("no volume of StargateFS", true)
	put(region, "")
	want("written and read", false)
	left, err := filepath.Glob(filepath.Join(dir, "helm-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("Try leaves the files %v, %v", left, err)
	}
	put(description, "{")
	want("unexpected end", true)
	// This is the module's description of a mount. A pod may not open the region in a mount.
	put(description, `{"version": 1, "size": 1048577, "mode": "rw", "joined": true}`)
	if err := os.Remove(filepath.Join(dir, region)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, region), 0o755); err != nil {
		t.Fatal(err)
	}
	want("written and read", false)
	if err := os.Remove(filepath.Join(dir, region)); err != nil {
		t.Fatal(err)
	}
	put(region, "")
	put(description, `{"kind": "file", "volume": "pvc-1", "size": 1048577}`)
	want("has 0 bytes, not the 1048577", true)
	put(region, strings.Repeat("\x00", tried+1))
	want("not formatted", true)
	put(region, strings.Repeat("\x00", tried)+"x")
	want("not formatted", true)
	put(region, "STARGATE"+strings.Repeat("\x00", tried-7))
	want("volume pvc-1, 1048577 bytes of memory", false)
}
