// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"stargate/csi-driver/internal/nodemeta"
)

const (
	testDriver = "stargate.csi.dev"
	system     = "stargate-system"
)

// world is a cluster in which nothing is wrong: node n1 has a zone of files with the volume of
// claim data, which pod web uses. Tests change the world.
type world struct {
	driver   *storagev1.CSIDriver
	node     *corev1.Node
	csiNode  *storagev1.CSINode
	capacity *storagev1.CSIStorageCapacity
	class    *storagev1.StorageClass
	volume   *corev1.PersistentVolume
	claim    *corev1.PersistentVolumeClaim
	pod      *corev1.Pod
	serves   *corev1.Pod
	keeper   *corev1.Pod
	more     []runtime.Object
}

func ready(name, namespace, node string, labels map[string]string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "driver", Args: args}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

var privileged = &corev1.SecurityContext{Privileged: ptr.To(true)}

func newWorld() *world {
	w := &world{
		driver: &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: testDriver}},
		node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{nodemeta.Size(testDriver): "4096"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		},
		csiNode: &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: testDriver}}}},
		capacity: &storagev1.CSIStorageCapacity{
			ObjectMeta:   metav1.ObjectMeta{Name: "c1", Namespace: system},
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{nodemeta.Topology(testDriver): "n1"}},
			Capacity:     ptr.To(resource.MustParse("3Gi")), MaximumVolumeSize: ptr.To(resource.MustParse("2Gi")),
		},
		class: &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: "stargate"}, Provisioner: testDriver,
			VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		},
		volume: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv1"},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: testDriver, VolumeHandle: "pvc-1@0123456789abcdef"}},
				ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "u1"},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: nodemeta.Topology(testDriver), Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		},
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default", UID: "u1"},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("stargate"), VolumeName: "pv1", Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		pod: ready("web", "default", "n1", nil),
		serves: ready("stargate-csi-x", system, "n1", map[string]string{"app.kubernetes.io/name": "stargate-csi"},
			"--driver-name="+testDriver, "--zone-kind=file", "--zone-dir=/dev/shm/stargate", "--kubelet-dir=/var/lib/kubelet", "--keeper=unix:///keeper/keeper.sock"),
		keeper: ready("stargate-keeper-x", system, "n1", map[string]string{"app.kubernetes.io/name": "stargate-keeper"}),
	}
	w.serves.Spec.Containers[0].SecurityContext = privileged
	w.pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return w
}

// unbound makes the claim wait for its volume.
func (w *world) unbound() *world {
	w.volume = nil
	w.claim.Spec.VolumeName = ""
	w.claim.Status.Phase = corev1.ClaimPending
	return w
}

// waits makes the pod wait on its node, or for one.
func (w *world) waits(node string) *world {
	w.pod.Spec.NodeName = node
	w.pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return w
}

func (w *world) event(kind, namespace, name, reason, message string) *world {
	w.more = append(w.more, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: strings.ToLower(reason) + "." + name, Namespace: max(namespace, "default")},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(time.Unix(int64(1000+len(w.more)), 0)),
	})
	return w
}

func (w *world) facts(t *testing.T) *Facts {
	t.Helper()
	var objects []runtime.Object
	add := func(there bool, o runtime.Object) {
		if there {
			objects = append(objects, o)
		}
	}
	add(w.driver != nil, w.driver)
	add(w.node != nil, w.node)
	add(w.csiNode != nil, w.csiNode)
	add(w.capacity != nil, w.capacity)
	add(w.class != nil, w.class)
	add(w.volume != nil, w.volume)
	add(w.claim != nil, w.claim)
	add(w.pod != nil, w.pod)
	add(w.serves != nil, w.serves)
	add(w.keeper != nil, w.keeper)
	f, err := Gather(context.Background(), fake.NewClientset(append(objects, w.more...)...), testDriver, metav1.NamespaceAll)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Each case breaks one thing, and doctor names the problem and a command. The last field of a case
// tells whether doctor finds the problem without a subject.
func TestDoctor(t *testing.T) {
	claim, pod, node := "pvc/data", "pod/web", "node/n1"
	for _, c := range []struct {
		name, subject string
		change        func(*world)
		problem       string // part of it; "" if nothing is wrong
		command       string
		always        bool
	}{
		{"nothing is wrong", claim, func(*world) {}, "", "", true},
		{"nothing is wrong with the pod", pod, func(*world) {}, "", "", true},
		{"nothing is wrong with the node", node, func(*world) {}, "", "", true},
		{"no driver", claim, func(w *world) { w.driver = nil }, "not installed", "helm install", true},
		{"the driver's pod crashes", node, func(w *world) {
			w.serves.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "driver", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}
		}, "container driver: CrashLoopBackOff", "logs stargate-csi-x --container driver", true},
		{"the driver has gone from a node with volumes", node, func(w *world) { w.serves = nil }, "does not run the driver", "describe node n1", true},
		{"kubelet does not know the driver", node, func(w *world) { w.csiNode = nil }, "Kubelet has not registered", "delete pod stargate-csi-x", true},
		{"no module", node, func(w *world) {
			delete(w.node.Labels, nodemeta.Size(testDriver))
			w.event("Node", "", "n1", "NoModule", "no module for kernel 6.9")
		}, "NoModule): no module for kernel 6.9", "--container module", true},
		{"no zone, and no reason", node, func(w *world) { delete(w.node.Labels, nodemeta.Size(testDriver)) }, "no zone", "--container driver", true},
		{"a node without a zone on purpose", node, func(w *world) {
			delete(w.node.Labels, nodemeta.Size(testDriver))
			w.serves.Spec.Containers[0].Args[1] = "--zone-kind=none"
		}, "", "", true},
		{"a problem of the zone that has been mended", node, func(w *world) { w.event("Node", "", "n1", "ZoneDamaged", "old") }, "", "", true},
		{"a damaged zone", node, func(w *world) { w.capacity = nil; w.event("Node", "", "n1", "ZoneDamaged", "a device is missing") },
			"damaged: a device is missing", "logs", true},
		{"the keeper is missing", node, func(w *world) { w.keeper = nil }, "no keeper", "stargate-keeper", true},
		{"the keeper is not ready", node, func(w *world) { w.keeper.Status = corev1.PodStatus{} }, "keeper of mounts by FUSE is not ready", "logs stargate-keeper-x", true},
		{"the taint stays", node, func(w *world) {
			w.node.Spec.Taints = []corev1.Taint{{Key: nodemeta.NotReady(testDriver), Effect: corev1.TaintEffectNoSchedule}}
		}, "not-ready", "logs", true},
		{"an orphan", node, func(w *world) { w.event("Node", "", "n1", "VolumeOrphaned", "pvc-9") }, "belongs to no claim: pvc-9", "describe node", true},
		{"a lost claim", claim, func(w *world) { w.claim.Status.Phase = corev1.ClaimLost }, "pv1 is gone", "describe pvc data", true},
		{"no class of that name", claim, func(w *world) { w.unbound().class = nil }, "StorageClass stargate does not exist", "get storageclasses", false},
		{"no class", claim, func(w *world) { w.unbound().claim.Spec.StorageClassName = nil }, "names no StorageClass", "get storageclasses", false},
		{"another driver's claim", claim, func(w *world) { w.unbound().class.Provisioner = "other" }, "another driver (other)", "", false},
		{"a block volume", claim, func(w *world) { w.unbound().claim.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, "volumeMode", "describe pvc", true},
		{"a policy refuses the volume", claim, func(w *world) {
			w.unbound().event("PersistentVolumeClaim", "default", "data", "VolumeNotSaved", "a policy\nrefuses it.")
		}, "VolumeNotSaved: a policy refuses it.", "describe pvc", true},
		{"no pod uses it", claim, func(w *world) { w.unbound().pod = nil }, "No pod uses the claim", "apply -f", false},
		{"it is too large", claim, func(w *world) {
			w.unbound().claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("5Gi")
		}, "requests 5Gi, and the largest volume that a node can make is 2Gi (node n1)", "zones", true},
		{"no node offers volumes", claim, func(w *world) { w.unbound().capacity = nil }, "No node offers volumes", "zones", true},
		{"its node is gone", claim, func(w *world) { w.node = nil }, "node n1, which is gone", "delete pvc", true},
		{"its node is not ready", claim, func(w *world) { w.node.Status.Conditions = nil }, "n1, which is not ready", "describe node n1", true},
		{"the node was fenced", claim, func(w *world) { w.event("PersistentVolumeClaim", "default", "data", "MountShutDown", "fenced") },
			"MountShutDown: fenced", "describe pvc", true},
		{"it does not grow", claim, func(w *world) {
			w.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
				Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
			w.event("Pod", "default", "web", "FileSystemResizeFailed", "no room behind it")
		}, "does not grow: no room behind it", "zones", true},
		{"no such claim", pod, func(w *world) {
			w.waits("").claim = nil
			inline := corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: testDriver}}
			w.pod.Spec.Volumes = append(w.pod.Spec.Volumes, corev1.Volume{VolumeSource: inline})
		}, "claim data does not exist", "get pvc", true},
		{"a cordoned node", pod, func(w *world) { w.waits("").node.Spec.Unschedulable = true }, "no pod may be scheduled", "uncordon n1", true},
		{"not scheduled", pod, func(w *world) { w.waits("").event("Pod", "default", "web", "FailedScheduling", "0/1 nodes") }, "not scheduled: 0/1 nodes", "describe pod", true},
		{"the node has no driver", pod, func(w *world) { w.waits("n1").serves = nil }, "does not run the driver, so the pod", "get pods", true},
		{"no mount", pod, func(w *world) { w.waits("n1").event("Pod", "default", "web", "FailedMount", "rpc error") }, "not get its volume: rpc error", "describe pod web", true},
		{"a pod of others", pod, func(w *world) {
			w.waits("n1").event("Pod", "default", "web", "FailedMount", "x")
			w.pod.Spec.Volumes = nil
		}, "", "", true},
		{"a VM is refused", "vm/m", func(w *world) {
			w.event("VirtualMachine", "default", "m", "FailedCreate", "admission webhook machines.stargate.csi.dev denied it")
		}, "FailedCreate: admission webhook", "describe vm m", true},
		{"an Event of another namespace's pod", pod, func(w *world) {
			w.waits("n1").event("Pod", "other", "web", "FailedMount", "not this one")
		}, "", "", true},
		{"a pod that has ended does not use the claim", claim, func(w *world) {
			w.unbound().pod.Status.Phase = corev1.PodSucceeded
		}, "No pod uses the claim", "apply -f", false},
		{"the latest of two reasons", pod, func(w *world) {
			w.waits("n1").event("Pod", "default", "web", "FailedMount", "first").event("Pod", "default", "web", "FailedMapVolume", "second")
		}, "second", "describe pod", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.change(w)
			subject, err := ParseSubject("default", c.subject)
			if err != nil {
				t.Fatal(err)
			}
			f := w.facts(t)
			check := func(found []Finding, what string) {
				t.Helper()
				if c.problem == "" {
					if len(found) > 0 {
						t.Errorf("%s: %v, though nothing is wrong", what, found)
					}
					return
				}
				for _, one := range found {
					if strings.Contains(one.Problem, c.problem) && strings.Contains(one.Command, c.command) && strings.HasSuffix(one.Problem, ".") {
						return
					}
				}
				t.Errorf("%s: %v, want a problem with %q and a command with %q", what, found, c.problem, c.command)
			}
			check(f.Doctor(subject), "with "+c.subject)
			if c.always {
				check(f.Doctor(Subject{}), "without a subject")
			} else if found := f.Doctor(Subject{}); len(found) > 0 {
				t.Errorf("without a subject: %v, though only the person who asks about the claim wants to know", found)
			}
		})
	}
}

func TestParseSubject(t *testing.T) {
	for text, want := range map[string]Subject{
		"pvc/a": {kindClaim, "ns", "a"}, "pods/a": {kindPod, "ns", "a"}, "vms/a": {kindMachine, "ns", "a"}, "Node/a": {kindNode, "ns", "a"},
		"a": {}, "pvc/": {}, "secret/a": {}, "": {},
	} {
		got, err := ParseSubject("ns", text)
		if got != want || (err == nil) != (want.Kind != "") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestExists(t *testing.T) {
	f := newWorld().facts(t)
	for text, want := range map[string]bool{
		"pvc/data": true, "pvc/other": false, "pod/web": true, "pod/other": false, "node/n1": true, "node/n2": false, "vm/any": true,
	} {
		if s, _ := ParseSubject("default", text); f.Exists(s) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// A pod of another driver with the chart's labels is not ours.
func TestGatherSelectsTheDriver(t *testing.T) {
	w := newWorld()
	other := ready("other", "other", "n2", map[string]string{"app.kubernetes.io/name": "stargate-csi"}, "--driver-name=other")
	other.Spec.Containers[0].SecurityContext = privileged
	w.more = append(w.more, other)
	if f := w.facts(t); len(f.Drivers) != 1 || f.Drivers[0].Name != "stargate-csi-x" {
		t.Errorf("Gather returns %d pods of drivers", len(f.Drivers))
	}
}

// A user makes pods with the labels and arguments of driver and keeper. The plugin must not run
// programs there, nor print what they say.
func TestGatherDistrustsLabels(t *testing.T) {
	w := newWorld()
	args := []string{"--driver-name=" + testDriver, "--zone-kind=dax", "--zone=x; reboot #"}
	w.more = append(w.more, ready("a-trap", "default", "n1", map[string]string{"app.kubernetes.io/name": "stargate-csi"}, args...),
		ready("a-keeper", "default", "n1", map[string]string{"app.kubernetes.io/name": "stargate-keeper"}))
	f := w.facts(t)
	if len(f.Drivers) != 1 || f.Drivers[0].Name != "stargate-csi-x" || len(f.Keepers) != 1 || f.Keepers[0].Name != "stargate-keeper-x" {
		t.Errorf("%d drivers, %d keepers", len(f.Drivers), len(f.Keepers))
	}
	trap := ready("a-trap", "default", "n1", nil, args...)
	for _, reason := range []string{"NoZone", "ZoneDamaged"} {
		if command := f.mend(reason, w.node, trap); strings.Contains(command, "reboot") {
			t.Errorf("%s: the command is %q", reason, command)
		}
	}
}

// A user writes an Event about a VM whose name is a command.
func TestDoctorDistrustsEvents(t *testing.T) {
	w := newWorld()
	for _, name := range []string{"vm1", "vm1; reboot"} {
		w.more = append(w.more, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "e" + fmt.Sprint(len(w.more)), Namespace: "default"}, Type: corev1.EventTypeWarning, Reason: "Failed",
			Message: testDriver + ": refused", InvolvedObject: corev1.ObjectReference{Kind: kindMachine, Namespace: "default", Name: name},
		})
	}
	found := w.facts(t).Doctor(Subject{})
	if len(found) != 1 || found[0].Command != "kubectl --namespace default describe vm vm1" {
		t.Errorf("%+v", found)
	}
}

func TestUIDOfClaim(t *testing.T) {
	w := newWorld()
	w.claim.UID = types.UID("later") // a claim of the same name that was made later
	if f := w.facts(t); f.volume(f.claim("default", "data")) != nil {
		t.Error("a later claim of that name has the volume of the earlier one")
	}
}
