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
	k8stesting "k8s.io/client-go/testing"
)

// The pod of a machine has the memory of the claims that it names, and no other pod has any.
func TestMachines(t *testing.T) {
	pod := func(name, uid, volumes string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("u-" + uid)}}
		if volumes != "" {
			p.Annotations = map[string]string{"stargate.csi.dev/volumes": volumes}
		}
		return p
	}
	claim := func(namespace, name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume},
		}
	}
	client := fake.NewClientset(pod("launcher", "1", "data,models:ro,none"), pod("other", "2", ""), pod("wrong", "3", "Data"),
		claim("ns", "data", "pv-data"), claim("ns", "models", "pv-models"), claim("ns", "disk", "pv-disk"), claim("there", "data", "pv-there"))
	is := Machines(client, driver)
	for _, c := range []struct {
		namespace, name, uid, pv string
		is                       bool
	}{
		{"ns", "launcher", "u-1", "pv-data", true},
		{"ns", "launcher", "u-1", "pv-models", true},
		{"ns", "launcher", "u-1", "pv-disk", false},
		{"ns", "launcher", "u-1", "pv-there", false},
		{"ns", "launcher", "u-9", "pv-data", false},
		{"there", "launcher", "u-1", "pv-there", false},
		{"ns", "other", "u-2", "pv-data", false},
		{"ns", "wrong", "u-3", "pv-data", false},
		{"ns", "launcher", "u-1", "", false},
	} {
		got, err := is(context.Background(), c.namespace, c.name, c.uid, c.pv)
		if got != c.is || err != nil {
			t.Errorf("%s/%s %s, %s: %v, %v", c.namespace, c.name, c.uid, c.pv, got, err)
		}
	}
	for _, kind := range []string{"pods", "persistentvolumeclaims"} {
		silent := fake.NewClientset(pod("launcher", "1", "data"), claim("ns", "data", "pv-data"))
		silent.PrependReactor("get", kind, func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
		if got, err := Machines(silent, driver)(context.Background(), "ns", "launcher", "u-1", "pv-data"); got || err == nil {
			t.Errorf("no answer about %s: %v, %v", kind, got, err)
		}
	}
}
