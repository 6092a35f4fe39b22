// SPDX-License-Identifier: Apache-2.0

// Package nodemetatest adds versions of Nodes to client-go's fake client. The client then refuses a
// patch that names another version than the Node's.
package nodemetatest

import (
	"encoding/json"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var nodes = corev1.SchemeGroupVersion.WithResource("nodes")

// Strict makes the client refuse patches of old versions of a Node.
func Strict(t *testing.T, client *fake.Clientset) {
	client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		var of metav1.PartialObjectMetadata
		if err := json.Unmarshal(patch.GetPatch(), &of); err != nil {
			t.Errorf("%s: %v", patch.GetPatch(), err)
		}
		is := get(t, client, patch.GetName())
		if of.ResourceVersion == "" || of.ResourceVersion == is.ResourceVersion {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(nodes.GroupResource(), is.Name, nil)
	})
}

// Others changes a Node as another program would. The Node gets a new version. Reactors of the
// client may call this.
func Others(t *testing.T, client *fake.Clientset, name string, change func(*corev1.Node)) {
	t.Helper()
	node := get(t, client, name)
	version, _ := strconv.Atoi(node.ResourceVersion)
	node.ResourceVersion = strconv.Itoa(version + 1)
	change(node)
	if err := client.Tracker().Update(nodes, node, ""); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, client *fake.Clientset, name string) *corev1.Node {
	t.Helper()
	o, err := client.Tracker().Get(nodes, "", name)
	if err != nil {
		t.Fatal(err)
	}
	return o.(*corev1.Node)
}
