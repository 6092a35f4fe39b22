// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"maps"
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
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/nodemeta/nodemetatest"
	"stargate/csi-driver/internal/pool"
)

// told is a fake zone whose state the test sets.
type told struct {
	pool.Nothing
	kind    pool.Kind
	status  pool.Status
	err     error
	volumes []pool.Volume
	unseen  error // error of List

	snapshots []pool.Snapshot
	unread    error // error of Snapshots, which still returns snapshots
	asked     int   // number of calls of Snapshots

	meanwhile func() // runs during the check
}

func (z *told) Kind() pool.Kind { return z.kind }
func (z *told) Status(context.Context) (pool.Status, error) {
	if z.meanwhile != nil {
		z.meanwhile()
	}
	return z.status, z.err
}
func (z *told) List(context.Context) ([]pool.Volume, error) { return z.volumes, z.unseen }
func (z *told) Snapshots(context.Context) ([]pool.Snapshot, error) {
	z.asked++
	return z.snapshots, z.unread
}

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

// said checks the Events since its last call: one Event for each of the given texts, and no further
// Event.
func said(t *testing.T, recorder *record.FakeRecorder, events ...string) {
	t.Helper()
	for _, words := range append(events, "") {
		event := ""
		select {
		case event = <-recorder.Events:
		default:
		}
		if words == "" && event != "" || !strings.Contains(event, words) {
			t.Errorf("event %q; should be %q", event, words)
		}
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
	z := &told{kind: pool.DAX, err: errkind.New(errkind.NoZone, "no zone here")}
	look := func(label string, taints int, events ...string) {
		t.Helper()
		if err := n.Look(ctx, z); err != nil {
			t.Error(err)
		}
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if node.Labels[driver+"/zone-mib"] != label || node.Labels["kept"] != "yes" || len(node.Spec.Taints) != taints {
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
			t.Errorf("event %q, which repeats an earlier report", e)
		default:
		}
	}
	look("", 2, "Warning NoZone no zone here")
	look("", 2)
	z.err, z.status = nil, pool.Status{Size: 3 << 30, Damaged: true, Why: "device /dev/pmem1 is missing"}
	look("3072", 2, "Warning ZoneDamaged device /dev/pmem1")
	z.status = pool.Status{Size: 4 << 30}
	look("4096", 1, "Normal ZoneReady")
	z.volumes = []pool.Volume{
		{Name: "pvc-0", State: pool.Ready}, {Name: "pvc-1", State: pool.Moved, Why: "relocate it"}, {Name: "pvc-2", State: pool.Damaged, Why: "check it"},
	}
	look("4096", 1, "VolumeUnusable volume pvc-1 on node n1 cannot be used: relocate it involvedObject{kind=PersistentVolumeClaim", "check it involvedObject{kind=Node")
	look("4096", 1)
	z.volumes[1].Why = "check it"
	look("4096", 1, "VolumeUnusable volume pvc-1")
	z.volumes = []pool.Volume{{Name: "pvc-1", State: pool.InUse}}
	look("4096", 1, "Normal VolumeUsable volume pvc-1")
	z.volumes = []pool.Volume{{Name: "pvc-2", State: pool.Damaged, Why: "check it"}}
	look("4096", 1, "VolumeUnusable volume pvc-2")
	z.err = errkind.New(errkind.NoZone, "gone")
	look("", 1, "Warning NoZone gone")
	if err := New(client, recorder, driver, "n2").Look(ctx, z); err == nil {
		t.Error("Look succeeds for a node that does not exist")
	}
}

// If a zone does not answer, the driver does not treat it as absent. It changes nothing, and
// reports the problem once if it lasts.
func TestNoAnswer(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: driver + "/not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	})
	recorder := record.NewFakeRecorder(20)
	n := New(client, recorder, driver, "n1")
	z := &told{kind: pool.DAX}
	look := func(label string, taints int, events ...string) {
		t.Helper()
		if err := n.Look(ctx, z); (err == nil) != (z.err == nil) {
			t.Errorf("%v", err)
		}
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil || node.Labels[driver+"/zone-mib"] != label || len(node.Spec.Taints) != taints {
			t.Errorf("labels %v, taints %v, %v; should be %q and %d", node.Labels, node.Spec.Taints, err, label, taints)
		}
		said(t, recorder, events...)
	}
	silent := errkind.New(errkind.NoAnswer, "deadline exceeded")
	z.err = silent
	look("", 1)
	z.err, z.status = nil, pool.Status{Size: 3 << 30}
	look("3072", 0, "Normal ZoneReady")
	z.err = silent
	for range patience - 1 {
		look("3072", 0)
	}
	look("3072", 0, "Warning ZoneUnknown deadline exceeded")
	look("3072", 0)
	z.err = nil
	look("3072", 0, "Normal ZoneReady")
	z.err = silent
	look("3072", 0)
	z.err = nil
	look("3072", 0)
}

// If other programs add or remove taints during the check, the driver does not change these taints.
func TestTaintsOfOthers(t *testing.T) {
	ctx := context.Background()
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "1"},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{
			{Key: driver + "/not-ready", Effect: corev1.TaintEffectNoSchedule},
			{Key: "other.example/not-ready", Effect: corev1.TaintEffectNoSchedule},
		}},
	})
	nodemetatest.Strict(t, client)
	z := &told{kind: pool.DAX, status: pool.Status{Size: 3 << 30}}
	unreachable := corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}
	z.meanwhile = func() {
		nodemetatest.Others(t, client, "n1", func(node *corev1.Node) { node.Spec.Taints = append(node.Spec.Taints[:1], unreachable) })
	}
	if err := New(client, record.NewFakeRecorder(9), driver, "n1").Look(ctx, z); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
	if err != nil || len(node.Spec.Taints) != 1 || node.Spec.Taints[0] != unreachable || node.Labels[driver+"/zone-mib"] != "3072" {
		t.Errorf("labels %v, taints %v, %v", node.Labels, node.Spec.Taints, err)
	}
}

// If the cluster does not answer, the driver does not know the owner of a volume. The next check
// then reports to the claim. Other volumes are still reported.
func TestOwnerUnknown(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		claimed("pvc-1", driver, "data"), claimed("pvc-2", driver, "more"))
	silent := "pvc-1"
	client.PrependReactor("get", "persistentvolumes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.GetAction).GetName() == silent, nil, errors.New("no answer")
	})
	recorder := record.NewFakeRecorder(9)
	recorder.IncludeObject = true
	n := New(client, recorder, driver, "n1")
	z := &told{kind: pool.None}
	look := func(fails bool, events ...string) {
		t.Helper()
		if err := n.Look(context.Background(), z); (err != nil) != fails || fails && !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%v", err)
		}
		said(t, recorder, events...)
	}
	at := " involvedObject{kind=PersistentVolumeClaim"
	for _, name := range []string{"pvc-1", "pvc-2"} {
		z.volumes = append(z.volumes, pool.Volume{Name: name, State: pool.Moved, Why: "relocate it"})
	}
	look(true, "volume pvc-2 on node n1 cannot be used: relocate it"+at)
	look(true)
	silent = ""
	look(false, "volume pvc-1 on node n1 cannot be used: relocate it"+at)
	silent = "pvc-1"
	look(false)
	z.volumes[0].State, z.volumes[1].State = pool.Ready, pool.Ready
	look(true, "volume pvc-2 on node n1 can be used again"+at)
	silent = ""
	look(false, "volume pvc-1 on node n1 can be used again"+at)
}

// The name of a volume's PersistentVolume contains the node, unless a provisioner of an older chart
// created it.
func TestOwnerByName(t *testing.T) {
	at := func(volume, handle, claim string) *corev1.PersistentVolume {
		v := claimed(volume, driver, claim)
		v.Spec.CSI.VolumeHandle = handle
		return v
	}
	const short, long = "pvc-" + driver + "-", "pvc-" + driver + "--n1-"
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		at(long+"u1", short+"u1@0123456789abcdef", "data"), at(short+"u2", short+"u2", "older"), at("pvc-"+driver+"--n2-u3", short+"u3", "elsewhere"))
	recorder := record.NewFakeRecorder(9)
	recorder.IncludeObject = true
	n := New(client, recorder, driver, "n1")
	for _, c := range []struct{ uid, kind string }{{"u1", "PersistentVolumeClaim"}, {"u2", "PersistentVolumeClaim"}, {"u3", "Node"}, {"u4", "Node"}} {
		z := &told{kind: pool.None, volumes: []pool.Volume{{Name: short + c.uid, Zone: "0123456789abcdef", State: pool.Moved, Why: "relocate it"}}}
		if err := n.Look(context.Background(), z); err != nil {
			t.Fatal(err)
		}
		said(t, recorder, "volume "+short+c.uid+" on node n1 cannot be used: relocate it involvedObject{kind="+c.kind)
	}
}

// The driver reports a mount that is shut down to the claim, even if the volume can be used.
func TestShutDown(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, claimed("pvc-1", driver, "data"))
	recorder := record.NewFakeRecorder(9)
	recorder.IncludeObject = true
	n := New(client, recorder, driver, "n1")
	var unread error
	mounts := map[string]*kernelmodule.Mount{"u1": {State: "writable"}}
	n.LookAtMounts(func() (kernelmodule.Mounts, error) {
		return func(path string) *kernelmodule.Mount { return mounts[path] }, unread
	})
	z := &told{kind: pool.None, volumes: []pool.Volume{
		{Name: "pvc-1", Path: "u1", State: pool.InUse}, {Name: "e-2", Path: "u2", State: pool.InUse},
	}}
	look := func(events ...string) {
		t.Helper()
		if err := n.Look(context.Background(), z); !errors.Is(err, unread) {
			t.Errorf("%v; should be %v", err, unread)
		}
		said(t, recorder, events...)
	}
	look()
	mounts["u1"], mounts["u2"] = &kernelmodule.Mount{State: "shut down"}, &kernelmodule.Mount{State: "shut down"}
	unread = errors.New("sysfs cannot be read")
	look()
	unread = nil
	claims, nodes := " involvedObject{kind=PersistentVolumeClaim", " involvedObject{kind=Node"
	look("Warning MountShutDown volume pvc-1 on node n1 cannot be used by pods: "+kernelmodule.WhyShutDown+claims,
		"Warning MountShutDown volume e-2 on node n1 cannot be used by pods: "+kernelmodule.WhyShutDown+nodes)
	look()
	// The Event does not say that the volume can be used again, because its memory may be bad.
	delete(mounts, "u2")
	look("Normal MountGone volume e-2 on node n1: the mount that was shut down is gone" + nodes)
	z.volumes[0].State, z.volumes[0].Why = pool.Damaged, "check it"
	look("Warning VolumeUnusable volume pvc-1 on node n1 cannot be used: check it" + claims)
	z.volumes[0].State = pool.InUse
	look("Warning MountShutDown volume pvc-1")
	delete(mounts, "u1")
	look("Normal MountGone volume pvc-1")
}

// A node that is configured to have no zone is ready without a zone.
func TestNone(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{driver + "/zone-mib": "12"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: driver + "/not-ready", Effect: corev1.TaintEffectNoSchedule}}},
	})
	recorder := record.NewFakeRecorder(1)
	n := New(client, recorder, driver, "n1")
	if err := n.Look(context.Background(), pool.Nothing{}); err != nil {
		t.Fatal(err)
	}
	node, err := client.CoreV1().Nodes().Get(context.Background(), "n1", metav1.GetOptions{})
	if err != nil || len(node.Labels) != 0 || len(node.Spec.Taints) != 0 || len(recorder.Events) != 0 {
		t.Errorf("%v, %v, %v", node.Labels, node.Spec.Taints, err)
	}
}

// The driver reports a volume without a PersistentVolume once, after a time. It does not report
// volumes that were not created for Kubernetes, or mounted inline volumes.
func TestOrphans(t *testing.T) {
	ctx := context.Background()
	restored := claimed("pvc-3", driver, "again")
	restored.Name = "restored" // a restored backup has another name: only the handle counts
	const in = "0123456789abcdef"
	restored.Spec.CSI.VolumeHandle += "@" + in
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
		claimed("pvc-1", driver, "data"), claimed("pvc-2", "another.driver", "other"), restored)
	recorder := record.NewFakeRecorder(9)
	n := New(client, recorder, driver, "n1")
	z := &told{kind: pool.DAX}
	for _, name := range []string{"pvc-1", "pvc-2", "pvc-3", "x-0123", "e-0123", "by-hand"} {
		z.volumes = append(z.volumes, pool.Volume{Name: name, Zone: in, State: pool.Ready})
	}
	orphansEvery := n.orphans.every
	if orphansEvery != 20 {
		t.Errorf("one of %d checks searches for orphans, and should be one of 20", orphansEvery)
	}
	looks := func(times int, found int64, known bool, events ...string) {
		t.Helper()
		for range times {
			if err := n.Look(ctx, z); err != nil {
				t.Fatal(err)
			}
		}
		if is, so := n.Orphans()["claim"]; so != known || known && is != found {
			t.Errorf("%d orphans, %v; should be %d, %v", is, so, found, known)
		}
		said(t, recorder, events...)
	}
	looks(orphansEvery, 0, false, "ZoneReady")
	looks(1, 2, true, "VolumeOrphaned volume pvc-2 has no", "VolumeOrphaned volume x-0123 has no")
	looks(orphansEvery, 2, true)
	remove := func(name string) {
		t.Helper()
		if err := client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove("pvc-1")
	looks(orphansEvery, 2, true)
	looks(orphansEvery, 3, true, "volume pvc-1 has no")
	// A user creates a PersistentVolume for one volume, and then deletes that of another
	// volume.
	if _, err := client.CoreV1().PersistentVolumes().Create(ctx, claimed("pvc-1", driver, "data"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	z.volumes = z.volumes[:3]
	looks(orphansEvery, 1, true)
	remove("pvc-1")
	looks(orphansEvery, 1, true)
	looks(orphansEvery, 2, true, "volume pvc-1 has no")
}

// The driver reports pods' volumes that are mounted nowhere, and snapshots that no content names.
// Without a snapshotter, there are no snapshots.
func TestOrphansOfPodsAndSnapshots(t *testing.T) {
	const in = "0123456789abcdef"
	names := map[string]string{}
	z := &told{kind: pool.DAX}
	for _, what := range []string{"shown", "left"} {
		names[what] = pool.EphemeralName(what)
		z.volumes = append(z.volumes, pool.Volume{Name: names[what], Zone: in, State: pool.Ready})
	}
	for _, what := range []string{"dynamic", "written", "older", "forgotten", "of another driver"} {
		names[what] = pool.SnapshotName(what)
		z.snapshots = append(z.snapshots, pool.Snapshot{Name: names[what], Zone: in})
	}
	z.snapshots = append(z.snapshots, pool.Snapshot{Name: "by-hand", Zone: in})
	content := func(what, driver, source, handle, status string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
			"metadata": map[string]any{"name": strings.ReplaceAll(what, " ", "-"), "labels": map[string]any{managedBy: "n1"}},
			"spec":     map[string]any{"driver": driver, "source": map[string]any{source: handle}},
			"status":   map[string]any{"snapshotHandle": status},
		}}
	}
	kinds := map[schema.GroupVersionResource]string{contentsKind: "VolumeSnapshotContentList"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
		content("dynamic", driver, "volumeHandle", "pvc-1@"+in, names["dynamic"]+"@"+in),
		content("written", driver, "snapshotHandle", names["written"]+"@"+in, ""),
		content("older", driver, "volumeHandle", "pvc-1", names["older"]),
		content("of another driver", "another.driver", "snapshotHandle", names["of another driver"]+"@"+in, ""))
	for _, snapshotter := range []bool{true, false} {
		recorder := record.NewFakeRecorder(9)
		n := New(fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}), recorder, driver, "n1")
		n.LookAtPaths(func(volumes []pool.Volume) (map[string][]string, error) {
			if len(volumes) != 2 {
				t.Errorf("asked for %d volumes", len(volumes))
			}
			return map[string][]string{names["shown"]: {"/var/lib/kubelet/pods/u/volumes/v"}, names["left"]: nil}, nil
		})
		n.LookForOrphans(Period)
		events := []string{"VolumeOrphaned volume " + names["left"] + " is mounted for no pod"}
		if snapshotter {
			n.Contents(client)
			events = append(events, "VolumeOrphaned snapshot "+names["forgotten"]+" has no VolumeSnapshotContent", "VolumeOrphaned snapshot "+names["of another driver"]+" has no")
		}
		events = append([]string{"ZoneReady"}, events...)
		for range 3 {
			if err := n.Look(context.Background(), z); err != nil {
				t.Fatal(err)
			}
		}
		want := map[string]int64{"claim": 0, "pod": 1}
		if snapshotter {
			want["snapshot"] = 2
		}
		if found := n.Orphans(); !maps.Equal(found, want) {
			t.Errorf("snapshotter %v: %v", snapshotter, found)
		}
		said(t, recorder, events...)
	}
}

// If one source cannot be read, the driver still reports the orphans of the other sources. An Event
// has the error.
func TestOrphansOfOneSourceUnread(t *testing.T) {
	unread := errors.New("it cannot be read")
	kinds := map[schema.GroupVersionResource]string{contentsKind: "VolumeSnapshotContentList"}
	for source, want := range map[string]map[string]int64{
		"PersistentVolumes": {"pod": 1, "snapshot": 1}, "mounts of volumes": {"claim": 1, "snapshot": 1},
		"contents of snapshots": {"claim": 1, "pod": 1}, "snapshots": {"claim": 1, "pod": 1},
		"folder of snapshots": {"claim": 1, "pod": 1, "snapshot": 1}, "": {"claim": 1, "pod": 1, "snapshot": 1},
		"list of volumes": {"snapshot": 1}, "Node": {"claim": 1, "pod": 1, "snapshot": 1},
	} {
		fails := func(name string) error {
			if name == source {
				return unread
			}
			return nil
		}
		client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		client.PrependReactor("list", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return source == "PersistentVolumes", nil, unread
		})
		client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return source == "Node", nil, unread // a policy may refuse the request
		})
		contents, toClaim := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds), 0
		contents.PrependReactor("list", "volumesnapshotcontents", func(a clienttesting.Action) (bool, runtime.Object, error) {
			all := a.(clienttesting.ListAction).GetListRestrictions().Labels.Empty() // the other list is of contents that the node may claim
			if !all {
				toClaim++
			}
			return all && source == "contents of snapshots", nil, unread
		})
		recorder := record.NewFakeRecorder(20)
		n := New(client, recorder, driver, "n1")
		n.LookAtPaths(func([]pool.Volume) (map[string][]string, error) { return nil, fails("mounts of volumes") })
		n.LookForOrphans(Period)
		n.Contents(contents)
		z := &told{kind: pool.DAX, volumes: []pool.Volume{{Name: "pvc-1", State: pool.Ready}, {Name: pool.EphemeralName("left"), State: pool.Ready}},
			unread: errors.Join(fails("snapshots"), fails("folder of snapshots")), unseen: fails("list of volumes")}
		if source != "snapshots" {
			z.snapshots = []pool.Snapshot{{Name: pool.SnapshotName("forgotten")}}
		}
		for range patience {
			if err := n.Look(context.Background(), z); errors.Is(err, unread) != (source != "") {
				t.Errorf("%s: %v", source, err)
			}
		}
		if found := n.Orphans(); !maps.Equal(found, want) {
			t.Errorf("%s cannot be read: %v", source, found)
		}
		events := map[string]int{}
		for len(recorder.Events) > 0 {
			events[strings.Fields(<-recorder.Events)[1]]++
		}
		blind, some := map[string]int{"": 0, "Node": 0, "list of volumes": 2}[source]
		if !some {
			blind = 1
		}
		if events["VolumeOrphaned"] != len(want) || events["OrphansUnknown"] != blind {
			t.Errorf("%s cannot be read: Events %v", source, events)
		}
		if toClaim != patience {
			t.Errorf("%s cannot be read: the contents that the node may claim are listed %d times", source, toClaim)
		}
	}
}

// While the folder of snapshots cannot be read, the driver still counts the orphans found before.
func TestOrphansOfAnUnreadFolder(t *testing.T) {
	n := New(fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}), record.NewFakeRecorder(20), driver, "n1")
	n.LookForOrphans(Period)
	n.Contents(dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{contentsKind: "VolumeSnapshotContentList"}))
	here, there := pool.Snapshot{Name: pool.SnapshotName("here")}, pool.Snapshot{Name: pool.SnapshotName("there")}
	z := &told{kind: pool.DAX, snapshots: []pool.Snapshot{here, there}}
	looks := func(what string, want int64) {
		t.Helper()
		for range 3 {
			_ = n.Look(context.Background(), z) // returns an error while the folder cannot be read
		}
		if is := n.Orphans()["snapshot"]; is != want {
			t.Errorf("%s: %d", what, is)
		}
	}
	looks("both are read", 2)
	z.snapshots, z.unread = []pool.Snapshot{here}, errors.New("it is not mounted")
	looks("the folder is unread", 2)
	z.snapshots, z.unread = []pool.Snapshot{here}, nil
	looks("it is empty", 1)
}

// The interval between searches for orphans follows the orphan limit. The shortest interval is one
// check.
func TestOrphanLimit(t *testing.T) {
	for limit, every := range map[time.Duration]int{time.Second: 1, Period: 1, Period + 1: 2, OrphanLimit: 20} {
		recorder := record.NewFakeRecorder(9)
		n := New(fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}), recorder, driver, "n1")
		n.LookForOrphans(limit)
		z := &told{kind: pool.None, volumes: []pool.Volume{{Name: "pvc-1", State: pool.Ready}}}
		for look := 0; look <= every; look++ {
			if known := n.Orphans(); len(known) > 0 {
				t.Errorf("limit %s: %v after %d looks", limit, known, look)
			}
			if err := n.Look(context.Background(), z); err != nil {
				t.Fatal(err)
			}
		}
		if found := n.Orphans(); found["claim"] != 1 {
			t.Errorf("limit %s: %v", limit, found)
		}
		said(t, recorder, "VolumeOrphaned volume pvc-1 has no")
	}
}

// If the API server does not answer, the next check repeats the search. All other steps still run.
func TestOrphansUnknown(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	asked, silent := 0, true
	client.PrependReactor("list", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return silent, nil, errors.New("no answer")
	})
	n := New(client, record.NewFakeRecorder(9), driver, "n1")
	z := &told{kind: pool.DAX, volumes: []pool.Volume{{Name: "pvc-1", State: pool.Ready}}}
	kinds := map[schema.GroupVersionResource]string{contentsKind: "VolumeSnapshotContentList"}
	n.Contents(dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds))
	for range 3 {
		if err := n.Look(context.Background(), z); err == nil || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%v", err)
		}
	}
	silent = false
	for range n.orphans.every {
		if err := n.Look(context.Background(), z); err != nil {
			t.Errorf("%v", err)
		}
	}
	if found, known := n.Orphans()["claim"]; asked != 4 || known {
		t.Errorf("asked %d times; %d orphans, %v", asked, found, known)
	}
}

// A user may write a snapshot's content manually. If no node has claimed this content yet, the node
// with the snapshot claims it.
func TestContents(t *testing.T) {
	ctx := context.Background()
	content := func(name, driver, source, handle string, labels map[string]any) *unstructured.Unstructured {
		c := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"driver": driver, "source": map[string]any{source: handle}},
		}}
		c.SetAPIVersion("snapshot.storage.k8s.io/v1")
		c.SetKind("VolumeSnapshotContent")
		c.SetName(name)
		_ = unstructured.SetNestedMap(c.Object, labels, "metadata", "labels")
		return c
	}
	kinds := map[schema.GroupVersionResource]string{contentsKind: "VolumeSnapshotContentList"}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
		content("by-hand", driver, "snapshotHandle", "snap-1", map[string]any{"kept": "yes"}),
		content("elsewhere", driver, "snapshotHandle", "snap-2", nil),
		content("to-be-taken", driver, "volumeHandle", "snap-1", nil),
		content("other-driver", "another.driver", "snapshotHandle", "snap-1", nil),
		content("other-node", driver, "snapshotHandle", "snap-1", map[string]any{"snapshot.storage.kubernetes.io/managed-by": "n2"}),
	)
	n := New(fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}), record.NewFakeRecorder(9), driver, "n1")
	z := &told{kind: pool.DAX, snapshots: []pool.Snapshot{{Name: "snap-0"}, {Name: "snap-1"}}}
	n.Contents(client)
	look := func(asked int) {
		t.Helper()
		if err := n.Look(ctx, z); err != nil || z.asked != asked {
			t.Errorf("%v; the driver has listed the zone's snapshots %d times", err, z.asked)
		}
	}
	look(2) // the search for orphans lists them, too
	of := map[string]string{}
	list, err := client.Resource(contentsKind).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list.Items {
		of[c.GetName()] = c.GetLabels()["snapshot.storage.kubernetes.io/managed-by"]
		if c.GetName() == "by-hand" && c.GetLabels()["kept"] != "yes" {
			t.Errorf("labels %v", c.GetLabels())
		}
	}
	should := map[string]string{"by-hand": "n1", "elsewhere": "", "to-be-taken": "", "other-driver": "", "other-node": "n2"}
	if !maps.Equal(of, should) {
		t.Errorf("%v; should be %v", of, should)
	}
	look(3)
	if err := client.Resource(contentsKind).Delete(ctx, "elsewhere", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	look(3)
}
