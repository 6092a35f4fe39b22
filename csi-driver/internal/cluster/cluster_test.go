// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/zone"
)

// told is a zone of which a test says how it is.
type told struct {
	zone.Nothing
	kind    zone.Kind
	status  zone.Status
	err     error
	volumes []zone.Volume
}

func (z *told) Kind() zone.Kind                             { return z.kind }
func (z *told) Status(context.Context) (zone.Status, error) { return z.status, z.err }
func (z *told) List(context.Context) ([]zone.Volume, error) { return z.volumes, nil }

const driver = "stargate.csi.dev"

func claimed(name, driver, claim string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
			ClaimRef:               &corev1.ObjectReference{Namespace: "ns", Name: claim},
		},
	}
}

func TestLook(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset(
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"kept": "yes"}},
			Spec: corev1.NodeSpec{Taints: []corev1.Taint{
				{Key: driver + "/not-ready", Effect: corev1.TaintEffectNoSchedule}, {Key: "other", Effect: corev1.TaintEffectNoExecute},
			}},
		},
		claimed("pvc-1", driver, "data"), claimed("pvc-2", "another.driver", "other"),
	)
	recorder := record.NewFakeRecorder(20)
	recorder.IncludeObject = true
	n := New(client, recorder, driver, "n1")
	z := &told{kind: zone.DAX, err: fault.New(fault.NoZone, "no zone here")}
	look := func(label string, taints int, events ...string) {
		t.Helper()
		if err := n.Look(ctx, z); err != nil {
			t.Error(err)
		}
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if node.Labels[n.Label()] != label || node.Labels["kept"] != "yes" || len(node.Spec.Taints) != taints {
			t.Errorf("labels %v, taints %v; should be %q and %d", node.Labels, node.Spec.Taints, label, taints)
		}
		for _, words := range events {
			select {
			case e := <-recorder.Events:
				if !strings.Contains(e, words) {
					t.Errorf("event %q; should have %q", e, words)
				}
			default:
				t.Errorf("no event; should have %q", words)
			}
		}
		select {
		case e := <-recorder.Events:
			t.Errorf("event %q, which says nothing new", e)
		default:
		}
	}
	look("", 2, "Warning NoZone no zone here")
	look("", 2)
	z.err, z.status = nil, zone.Status{Size: 3 << 30, Damaged: true, Why: "device /dev/pmem1 is missing"}
	look("3072", 2, "Warning ZoneDamaged device /dev/pmem1")
	z.status = zone.Status{Size: 4 << 30}
	look("4096", 1, "Normal ZoneReady")
	z.volumes = []zone.Volume{
		{Name: "pvc-0", State: zone.Ready}, {Name: "pvc-1", State: zone.Moved, Why: "relocate it"}, {Name: "pvc-2", State: zone.Damaged, Why: "check it"},
	}
	look("4096", 1, "VolumeUnusable volume pvc-1 on node n1 cannot be used: relocate it involvedObject{kind=PersistentVolumeClaim", "check it involvedObject{kind=Node")
	look("4096", 1)
	z.volumes[1].Why = "check it"
	look("4096", 1, "VolumeUnusable volume pvc-1")
	z.volumes = []zone.Volume{{Name: "pvc-1", State: zone.InUse}}
	look("4096", 1, "Normal VolumeUsable volume pvc-1")
	z.volumes = []zone.Volume{{Name: "pvc-2", State: zone.Damaged, Why: "check it"}}
	look("4096", 1, "VolumeUnusable volume pvc-2")
	z.err = fault.New(fault.NoZone, "gone")
	look("", 1, "Warning NoZone gone")
	if err := New(client, recorder, driver, "n2").Look(ctx, z); err == nil {
		t.Error("a node that there is not")
	}
}

// A node that is to have no zone is ready without one.
func TestNone(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{driver + "/zone-mib": "12"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: driver + "/not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	})
	recorder := record.NewFakeRecorder(1)
	n := New(client, recorder, driver, "n1")
	if err := n.Look(context.Background(), zone.Nothing{}); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	if err != nil || len(node.Labels) != 0 || len(node.Spec.Taints) != 0 || len(recorder.Events) != 0 {
		t.Errorf("%v, %v, %v", node.Labels, node.Spec.Taints, err)
	}
}
