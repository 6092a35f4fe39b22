// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
)

func datasetObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stargate.csi.dev/v1alpha1", "kind": "StargateDataset",
		"metadata": map[string]any{"namespace": "a", "name": name, "uid": "u-" + name},
		"spec": map[string]any{"size": "1Gi", "refreshEvery": "24h", "sealed": false, "source": map[string]any{
			"oci": map[string]any{"reference": "r.example/m:v1"}}},
		"status": map[string]any{"nodes": map[string]any{"other": map[string]any{"phase": "Ready", "percent": int64(100)}}},
	}}
}

func datasetsOf(secrets ...runtime.Object) (*Datasets, *dynamicfake.FakeDynamicClient, *fake.Clientset, *record.FakeRecorder) {
	kinds := map[schema.GroupVersionResource]string{v1alpha1.GroupVersionResource: "StargateDatasetList"}
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, datasetObject("one"), datasetObject("two"))
	client, events := fake.NewClientset(secrets...), record.NewFakeRecorder(10)
	n := New(client, events, "stargate.csi.dev", "n1")
	n.ReadDatasets(objects)
	return n.Datasets(), objects, client, events
}

// The driver reads objects, and writes only its own node's entry of their status.
func TestDatasets(t *testing.T) {
	all, objects, _, events := datasetsOf()
	ctx := context.Background()
	d, err := all.Dataset(ctx, "a", "one")
	if err != nil || d.UID != "u-one" || d.Spec.Source.OCI.Reference != "r.example/m:v1" || d.Seals() || d.Every().Hours() != 24 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := all.Dataset(ctx, "a", "none"); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("%v", err)
	}
	if list, err := all.Datasets(ctx); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	if err := all.Tell(ctx, "a", "one", &v1alpha1.NodeStatus{Phase: v1alpha1.Filling, Percent: 7}); err != nil {
		t.Fatal(err)
	}
	nodes := func() map[string]v1alpha1.NodeStatus {
		d, err := all.Dataset(ctx, "a", "one")
		if err != nil {
			t.Fatal(err)
		}
		return d.Status.Nodes
	}
	if n := nodes(); len(n) != 2 || n["n1"].Percent != 7 || n["other"].Percent != 100 {
		t.Errorf("%+v", n)
	}
	if err := all.Tell(ctx, "a", "one", nil); err != nil {
		t.Fatal(err)
	}
	if n := nodes(); len(n) != 1 || n["other"].Percent != 100 {
		t.Errorf("%+v", n)
	}
	all.Event(d, true, "FillFailed", "words")
	if e := <-events.Events; e != "Warning FillFailed words" {
		t.Error(e)
	}
	objects.PrependReactor("get", "stargatedatasets", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	if _, err := all.Dataset(ctx, "a", "one"); !errkind.Is(err, errkind.NoAnswer) {
		t.Errorf("%v", err)
	}
}

// The driver reads a Secret that the operator has listed, and says what is to be done otherwise.
func TestSecretsOfDatasets(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "hub"}, Data: map[string][]byte{"token": []byte("t")}}
	all, _, client, _ := datasetsOf(secret)
	ctx := context.Background()
	if s, err := all.Secret(ctx, "a", "hub"); err != nil || string(s["token"]) != "t" {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := all.Secret(ctx, "a", "none"); !errkind.Is(err, errkind.NotFound) {
		t.Errorf("%v", err)
	}
	client.PrependReactor("get", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "hub", errors.New("no"))
	})
	if _, err := all.Secret(ctx, "a", "hub"); err == nil || !strings.Contains(err.Error(), "datasets.secrets") {
		t.Errorf("%v", err)
	}
}
