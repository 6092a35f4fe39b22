// SPDX-License-Identifier: Apache-2.0

package nodemeta

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"stargate/csi-driver/internal/nodemeta/nodemetatest"
)

const driver = "this.example"

var other = corev1.Taint{Key: "other.example/not-ready", Effect: corev1.TaintEffectNoSchedule}

func ready(node *corev1.Node) { Ready(node, driver) }

// world creates a Node with the driver's taint and another taint. It returns the Node in its
// present state.
func world(t *testing.T) (*fake.Clientset, *corev1.Node) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "1"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: NotReady(driver), Effect: corev1.TaintEffectNoSchedule}, other}},
	}
	client := fake.NewClientset(node)
	nodemetatest.Strict(t, client)
	return client, node
}

func TestChange(t *testing.T) {
	ctx := context.Background()
	client, was := world(t)
	for _, differs := range []bool{true, false} {
		if changed, err := Change(ctx, client, was, ready); err != nil || changed != differs {
			t.Errorf("%v, %v", changed, err)
		}
		is, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil || !slices.Equal(is.Spec.Taints, []corev1.Taint{other}) {
			t.Errorf("taints %v, %v", is.Spec.Taints, err)
		}
		was = is
	}
}

// A change that starts from an old copy does not restore taints that other programs have removed.
func TestChangeOfAnOldCopy(t *testing.T) {
	ctx := context.Background()
	for what, c := range map[string]struct {
		others  func(*corev1.Node)
		differs bool
		left    int
	}{
		"another program has removed its taint":   {func(node *corev1.Node) { node.Spec.Taints = node.Spec.Taints[:1] }, true, 0},
		"another program has removed both taints": {func(node *corev1.Node) { node.Spec.Taints = nil }, false, 0},
		"a label has come":                        {func(node *corev1.Node) { node.Labels = map[string]string{"new": "yes"} }, true, 1},
	} {
		client, was := world(t)
		nodemetatest.Others(t, client, "n1", c.others)
		if changed, err := Change(ctx, client, was, ready); err != nil || changed != c.differs {
			t.Errorf("%s: %v, %v", what, changed, err)
		}
		is, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil || len(is.Spec.Taints) != c.left {
			t.Errorf("%s: taints %v, %v", what, is.Spec.Taints, err)
		}
	}
}

// If another program changes the Node before each try, Change fails and overwrites nothing.
func TestChangeIsOvertaken(t *testing.T) {
	client, was := world(t)
	changed, err := Change(context.Background(), client, was, func(node *corev1.Node) {
		nodemetatest.Others(t, client, "n1", func(*corev1.Node) {})
		ready(node)
	})
	if changed || !apierrors.IsConflict(err) {
		t.Errorf("%v, %v", changed, err)
	}
}
