// SPDX-License-Identifier: Apache-2.0

package helmhooks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"stargate/csi-driver/internal/nodemeta/nodemetatest"
)

// marked returns a node with all labels, annotations and taints of a driver, and with some of other
// programs.
func marked(name, driver string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "1",
			Labels: map[string]string{
				driver + "/zone-mib": "1024", "topology." + driver + "/node": name, driver + "/by-hand": "kept", "kubernetes.io/hostname": name,
			},
			Annotations: map[string]string{driver + "/module": "loaded before", "other.example/module": "kept"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoSchedule},
			{Key: driver + "/not-ready", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute},
			{Key: driver + "/not-ready", Effect: corev1.TaintEffectNoExecute},
		}},
	}
}

func TestForgetNodes(t *testing.T) {
	ctx := context.Background()
	other := marked("n3", "other.example")
	client := fake.NewClientset(marked("n1", "this.example"), marked("n2", "this.example"), other)
	said, err := ForgetNodes(ctx, client, "this.example")
	if err != nil || said != "2 of 3 nodes had something of this.example" {
		t.Errorf("%q, %v", said, err)
	}
	for _, name := range []string{"n1", "n2"} {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(node.Labels, map[string]string{"this.example/by-hand": "kept", "kubernetes.io/hostname": name}) {
			t.Errorf("%s: labels %v", name, node.Labels)
		}
		if !maps.Equal(node.Annotations, map[string]string{"other.example/module": "kept"}) {
			t.Errorf("%s: annotations %v", name, node.Annotations)
		}
		want := []corev1.Taint{
			{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute},
		}
		if !slices.Equal(node.Spec.Taints, want) {
			t.Errorf("%s: taints %v", name, node.Spec.Taints)
		}
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "n3", metav1.GetOptions{})
	if err != nil || !maps.Equal(node.Labels, other.Labels) || len(node.Spec.Taints) != len(other.Spec.Taints) {
		t.Errorf("another driver's: %v, %v, %v", node.Labels, node.Spec.Taints, err)
	}

	client.ClearActions()
	if said, err := ForgetNodes(ctx, client, "this.example"); err != nil || said != "0 of 3 nodes had something of this.example" {
		t.Errorf("the second call: %q, %v", said, err)
	}
	for _, a := range client.Actions() {
		if a.GetVerb() != "list" {
			t.Errorf("the second call does %s of %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
}

// ForgetNodes keeps changes that other programs make between its list and its change of the node.
func TestForgetNodesMeanwhile(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset(marked("n1", "this.example"), marked("n2", "this.example"))
	nodemetatest.Strict(t, client)
	drained := corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}
	client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.(clienttesting.PatchAction).GetName() == "n1" {
			nodemetatest.Others(t, client, "n2", func(node *corev1.Node) { node.Spec.Taints = append(node.Spec.Taints[1:2], drained) })
		}
		return false, nil, nil
	})
	if said, err := ForgetNodes(ctx, client, "this.example"); err != nil || said != "2 of 2 nodes had something of this.example" {
		t.Errorf("%q, %v", said, err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "n2", metav1.GetOptions{})
	if err != nil || !slices.Equal(node.Spec.Taints, []corev1.Taint{drained}) || node.Labels["this.example/zone-mib"] != "" {
		t.Errorf("labels %v, taints %v, %v", node.Labels, node.Spec.Taints, err)
	}
}

// If one node cannot be changed, or was deleted meanwhile, the hook still changes the other nodes.
func TestForgetNodesFails(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset(marked("n1", "this.example"), marked("n2", "this.example"), marked("n3", "this.example"))
	refuse := func(name string, err error) {
		client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return a.(clienttesting.PatchAction).GetName() == name, nil, err
		})
	}
	refuse("n2", apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, "n2"))
	if said, err := ForgetNodes(ctx, client, "this.example"); err != nil || said != "2 of 3 nodes had something of this.example" {
		t.Errorf("one node was deleted meanwhile: %q, %v", said, err)
	}
	client = fake.NewClientset(marked("n1", "this.example"), marked("n2", "this.example"), marked("n3", "this.example"))
	refuse("n1", errors.New("not allowed"))
	_, err := ForgetNodes(ctx, client, "this.example")
	if err == nil || !strings.Contains(err.Error(), "node n1: not allowed") || strings.Contains(err.Error(), "n3") {
		t.Errorf("%v", err)
	}
	for name, left := range map[string]bool{"n1": true, "n2": false, "n3": false} {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if _, there := node.Labels["this.example/zone-mib"]; err != nil || there != left {
			t.Errorf("%s: labels %v, %v", name, node.Labels, err)
		}
	}
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no answer")
	})
	if _, err := ForgetNodes(ctx, client, "this.example"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("%v", err)
	}
}
