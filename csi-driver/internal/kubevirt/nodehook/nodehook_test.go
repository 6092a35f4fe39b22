// SPDX-License-Identifier: Apache-2.0

package nodehook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kubevirt/annotation"
	"stargate/csi-driver/internal/kubevirt/hookproto"
	"stargate/csi-driver/internal/pool"
)

// The hook answers a call with any text as the VM's object. On a node without a zone, the VM gets
// no volume.
func FuzzMachine(f *testing.F) {
	for _, m := range []string{
		`{"metadata":{"annotations":{"d/volumes":"data"}},"spec":{"domain":{"memory":{"guest":"1Gi"},"firmware":{"uuid":"x"}}},"status":{"activePods":{"..":"n"}}}`,
		`{"metadata":{"annotations":{"d/volumes":"../x"}}}`, `{"metadata":null,"spec":null,"status":null}`, `[]`, ``,
		`{"metadata":{"annotations":{"d/volumes":"a"}},"spec":{"domain":{"memory":{"guest":"1e999999"}}}}`,
	} {
		for _, point := range []string{preVMStart, postVMStop, ""} {
			f.Add(point, []byte(m))
		}
	}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, pool.Nothing{}, &node{})
	f.Fuzz(func(t *testing.T, point string, vmi []byte) {
		_, err := h.execute(context.Background(), hookproto.Message{}.Add(1, []byte(point)).Add(2, vmi))
		switch code := status.Code(grpcstatus.Of(err)); code {
		case codes.OK, codes.InvalidArgument, codes.FailedPrecondition:
		default:
			t.Errorf("%s, %s: %v: %v", point, vmi, code, err)
		}
		if m, err := read(vmi); err == nil {
			m.memory()
		}
	})
}

// A path outside kubelet's folder of pods belongs to no pod.
func TestPodOf(t *testing.T) {
	h := New(Config{Pods: "/var/lib/kubelet/pods"}, nil, nil)
	for path, want := range map[string]string{
		"/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/p/mount": "u",
		"/var/lib/kubelet/plugins/kubernetes.io/csi/p/globalmount":  "..",
		"/mnt": "..", "relative": "",
	} {
		if got := h.podOf(path); got != want {
			t.Errorf("%s: the pod is %q, and should be %q", path, got, want)
		}
	}
}

const board = "0B5E55ED-0000-4000-8000-00000000BEEF"

// node is a fake zone with given volumes and mount points. It records the volumes for which the
// hook reported that a VM has ended.
type node struct {
	pool.Nothing
	shown map[string][]string
	state pool.State // state of all volumes; empty: InUse
	fails bool
	looks func(volume string) // called while the hook handles a volume

	mu     sync.Mutex
	forgot []string
}

func (n *node) List(context.Context) ([]pool.Volume, error) {
	var all []pool.Volume
	for name := range n.shown {
		all = append(all, pool.Volume{Name: name, State: cmp.Or(n.state, pool.InUse), Base: 64 << 30})
	}
	slices.SortFunc(all, func(a, b pool.Volume) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (n *node) Get(ctx context.Context, name string) (pool.Volume, error) {
	if _, there := n.shown[name]; !there {
		return n.Nothing.Get(ctx, name)
	}
	return pool.Volume{Name: name, State: pool.InUse}, nil
}

func (n *node) Shown(v pool.Volume) ([]string, error) { return n.shown[v.Name], nil }

func (n *node) ShownAll([]pool.Volume) (map[string][]string, error) { return n.shown, nil }

func (n *node) Ended(_ context.Context, v pool.Volume, _ string) ([]string, error) {
	if n.fails {
		return nil, errkind.New(errkind.Busy, "not now")
	}
	if n.looks != nil {
		n.looks(v.Name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgot = append(n.forgot, v.Name)
	return nil, nil
}

// said makes one call about a VM, as KubeVirt does. All VMs in these tests have the same UUID. The
// result is the volumes for which the hook reported the VM's end to the zone.
func (n *node) said(t *testing.T, h *Hooks, point, namespace, uid, pod string) (forgot []string, err error) {
	t.Helper()
	vmi, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": "vm", "namespace": namespace, "uid": uid, "annotations": map[string]string{"d/volumes": "data"}},
		"spec":     map[string]any{"domain": map[string]any{"firmware": map[string]string{"uuid": board}}},
		"status":   map[string]any{"activePods": map[string]string{pod: "n"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.forgot = nil
	_, err = h.execute(context.Background(), hookproto.Message{}.Add(1, []byte(point)).Add(2, vmi))
	slices.Sort(n.forgot)
	return n.forgot, err
}

func (n *node) wants(t *testing.T, h *Hooks, point, namespace, uid, pod string, want ...string) {
	t.Helper()
	if forgot, err := n.said(t, h, point, namespace, uid, pod); err != nil || !slices.Equal(forgot, want) {
		t.Errorf("%s of %s/%s: %v, %v; not %v", point, namespace, uid, forgot, err, want)
	}
}

func pods(uid string) []string {
	return []string{"/pods/" + uid + "/volumes/kubernetes.io~csi/p/mount"}
}

// Two namespaces have VMs with the same name, and therefore the same UUID. The end of one VM does
// not affect the other VM.
func TestEndOfItsOwn(t *testing.T) {
	n := &node{shown: map[string][]string{"a": pods("pod-a"), "b": pods("pod-b")}}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, n, n)
	n.wants(t, h, preVMStart, "one", "1", "pod-a", "a")
	n.wants(t, h, preVMStart, "two", "2", "pod-b", "b")
	n.shown["b"] = nil // the pod no longer exists when KubeVirt reports the end
	n.wants(t, h, postVMStop, "two", "2", "pod-b", "b")
	n.wants(t, h, postVMStop, "two", "2", "pod-b", "b") // KubeVirt repeats the report
	// A driver that has restarted reads the volumes of pods from the mounts.
	h = New(Config{Driver: "d", Node: "n", Pods: "/pods"}, n, n)
	n.wants(t, h, postVMStop, "two", "2", "pod-b")
	n.wants(t, h, postVMStop, "one", "1", "pod-a", "a")
}

// A late report of an end does not affect the VM's next life, not even while the VM is paused.
func TestEndOfItsLastLife(t *testing.T) {
	n := &node{shown: map[string][]string{"a": pods("pod-1"), "b": pods("pod-1")}}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, n, n)
	n.wants(t, h, preVMStart, "ns", "1", "pod-1", "a", "b")
	n.fails = true
	if _, err := n.said(t, h, postVMStop, "ns", "1", "pod-1"); !errkind.Is(err, errkind.Busy) {
		t.Errorf("a hook that fails must report it: %v", err)
	}
	n.fails = false
	n.shown["a"] = append(n.shown["a"], pods("pod-2")...)
	n.wants(t, h, preVMStart, "ns", "2", "pod-2", "a")
	n.wants(t, h, postVMStop, "ns", "1", "pod-1", "b") // the new life does not have b
	n.wants(t, h, postVMStop, "ns", "2", "pod-2", "a")
	delete(n.shown, "a")
	n.wants(t, h, postVMStop, "ns", "2", "pod-2") // deleted meanwhile
}

// The heartbeat of a paused VM stops like that of a killed VM. The hook refuses the paused VM's
// volumes to another VM with the same UUID. The end of that other VM does not affect the paused VM.
func TestTwins(t *testing.T) {
	n := &node{shown: map[string][]string{"a": append(pods("pod-1"), pods("pod-2")...), "b": pods("pod-2")}}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, n, n)
	n.wants(t, h, preVMStart, "one", "1", "pod-1", "a")
	n.wants(t, h, preVMStart, "one", "1", "pod-1", "a") // KubeVirt repeats the call
	forgot, err := n.said(t, h, preVMStart, "two", "2", "pod-2")
	if !errkind.Is(err, errkind.InUse) || !strings.Contains(err.Error(), "VM one/vm has its firmware UUID") || slices.Contains(forgot, "a") {
		t.Errorf("the hook gives the VM its twin's volume: %v, %v", forgot, err)
	}
	n.wants(t, h, postVMStop, "two", "2", "pod-2", "b")
	// The first VM's pod no longer exists, but KubeVirt has not reported the VM's end.
	n.shown["a"] = pods("pod-2")
	n.wants(t, h, preVMStart, "two", "2", "pod-2", "a", "b")
	n.shown["a"] = append(pods("pod-1"), pods("pod-2")...)
	n.wants(t, h, postVMStop, "one", "1", "pod-1") // the second VM still runs
	n.wants(t, h, postVMStop, "two", "2", "pod-2", "a", "b")
	n.wants(t, h, preVMStart, "one", "3", "pod-1", "a")
}

// After a restart, the driver knows which life of which VM has which volumes. A file that cannot be
// read counts as empty.
func TestTwinsAfterTheDriver(t *testing.T) {
	n := &node{shown: map[string][]string{"a": append(pods("pod-1"), pods("pod-2")...), "b": pods("pod-2")}}
	config := Config{Driver: "d", Node: "n", Pods: "/pods", Notes: filepath.Join(t.TempDir(), "machines.json")}
	n.wants(t, New(config, n, n), preVMStart, "one", "1", "pod-1", "a")
	forgot, err := n.said(t, New(config, n, n), preVMStart, "two", "2", "pod-2")
	if !errkind.Is(err, errkind.InUse) || !strings.Contains(err.Error(), "VM one/vm has its firmware UUID") || slices.Contains(forgot, "a") {
		t.Errorf("the hook gives the VM its twin's volume: %v, %v", forgot, err)
	}
	n.wants(t, New(config, n, n), postVMStop, "one", "1", "pod-1", "a")
	n.wants(t, New(config, n, n), preVMStart, "two", "2", "pod-2", "a", "b")
	if err := os.WriteFile(config.Notes, []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	n.wants(t, New(config, n, n), preVMStart, "one", "3", "pod-1", "a")
	config.Notes = filepath.Join(t.TempDir(), "nowhere", "machines.json")
	n.wants(t, New(config, n, n), preVMStart, "one", "4", "pod-1", "a") // the VM still starts
}

// The hook handles all volumes at the same time. One after the other, they would take longer than
// KubeVirt waits.
func TestManyAtOnce(t *testing.T) {
	const volumes = 16
	n := &node{shown: map[string][]string{}}
	for i := range volumes {
		n.shown[fmt.Sprintf("v%02d", i)] = pods("pod-1")
	}
	var begun sync.WaitGroup
	begun.Add(volumes)
	together := make(chan struct{})
	go func() { begun.Wait(); close(together) }()
	n.looks = func(volume string) {
		begun.Done()
		select {
		case <-together:
		case <-time.After(10 * time.Second):
			t.Errorf("the hook does not handle %s at the same time as the other volumes", volume)
		}
	}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, n, n)
	if forgot, err := n.said(t, h, preVMStart, "ns", "1", "pod-1"); err != nil || len(forgot) != volumes {
		t.Errorf("%v, %v", forgot, err)
	}
}

// The driver removes the record of a VM's volume some time after the VM has ended.
func TestGiven(t *testing.T) {
	g := given{lives: map[holding]life{}}
	var runs, ended, next machine
	runs.Metadata.Name, ended.Metadata.Name, next.Metadata.Name = "runs", "ended", "next"
	now := time.Now()
	g.to(runs, "v", nil, nil, now)
	g.to(ended, "v", nil, nil, now)
	g.ended(ended, "v", now)
	g.to(next, "v", nil, nil, now.Add(known/2))
	if len(g.of(ended)) != 1 {
		t.Error("the record is removed while KubeVirt may still repeat its report")
	}
	g.to(next, "v", nil, nil, now.Add(2*known))
	if len(g.of(ended)) != 0 || len(g.of(runs)) != 1 || len(g.lives) != 2 {
		t.Errorf("%v", g.lives)
	}
	// A VM has not ended if it starts while the driver handles a report about its earlier life.
	again := runs
	again.Metadata.UID = "later"
	g.to(again, "v", nil, nil, now)
	g.ended(runs, "v", now)
	if l := g.lives[holding{again.String(), "v"}]; l.uid != "later" || !l.ended.IsZero() {
		t.Errorf("after a late report: %+v", l)
	}
}

// KubeVirt may never report the end of a life. The driver also ends a life when none of its pods
// has the volume mounted. A list of mounts that was read before the life was recorded does not
// count.
func TestGivenWithoutAnEnd(t *testing.T) {
	g := given{lives: map[holding]life{}}
	now := time.Now()
	named := func(name string) (m machine) {
		m.Metadata.Name = name
		return m
	}
	for i := range 1000 {
		g.to(named(fmt.Sprint("vm-", i)), fmt.Sprint("v", i), []string{fmt.Sprint("pod-", i)}, nil, now)
	}
	has := func(volume, pod string) bool { return volume == "v7" && pod == "pod-7" }
	g.looked(has, now, now)
	g.to(named("next"), "v", []string{"pod"}, nil, now.Add(2*known))
	if len(g.lives) != 1001 {
		t.Errorf("%d records are left: a list of mounts counted that was read before the lives were recorded", len(g.lives))
	}
	now = now.Add(2 * known)
	g.looked(has, now.Add(-time.Second), now)
	if len(g.of(named("vm-1"))) != 1 {
		t.Error("the record is removed while KubeVirt may still report the end")
	}
	g.to(named("next"), "v", []string{"pod"}, nil, now.Add(2*known))
	if len(g.of(named("vm-7"))) != 1 || len(g.lives) != 2 {
		t.Errorf("%d records remain, and should be 2", len(g.lives))
	}
}

// When a VM starts, the hook ends the records of lives whose pods no longer have their volumes.
func TestStartForgets(t *testing.T) {
	n := &node{shown: map[string][]string{"a": pods("pod-1"), "b": pods("pod-2")}}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, n, n)
	n.wants(t, h, preVMStart, "one", "1", "pod-1", "a")
	n.wants(t, h, preVMStart, "two", "2", "pod-2", "b")
	delete(n.shown, "a") // the user has deleted the claim
	n.wants(t, h, preVMStart, "two", "2", "pod-2", "b")
	for at, ended := range map[holding]bool{{"one/vm", "a"}: true, {"two/vm", "b"}: false} {
		if l, noted := h.given.lives[at]; !noted || l.ended.IsZero() == ended {
			t.Errorf("%v: %+v", at, l)
		}
	}
}

// A VM starts only if all volumes that it names can be used.
func TestStartsWithAllVolumes(t *testing.T) {
	n := &node{shown: map[string][]string{"a": pods("pod-2")}}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, n, n)
	refused := func(what string) {
		t.Helper()
		forgot, err := n.said(t, h, preVMStart, "one", "1", "pod-1")
		if !errkind.Is(err, errkind.InUse) || len(forgot) > 0 || len(h.given.lives) > 0 {
			t.Errorf("%s: %v, %v", what, forgot, err)
		}
	}
	refused("its pod has none")
	n.shown["a"], n.state = append(n.shown["a"], pods("pod-1")...), pool.Damaged
	refused("it is damaged")
	n.state = ""
	n.wants(t, h, preVMStart, "one", "1", "pod-1", "a")
}

// claimOf returns the claims' names in the VM's pod.
func TestClaimOf(t *testing.T) {
	one, two := []annotation.Claim{{Name: "data"}}, []annotation.Claim{{Name: "data"}, {Name: "more"}}
	for _, c := range []struct {
		label  string
		wanted []annotation.Claim
		want   string
	}{{"data", one, "data"}, {"more", two, "more"}, {"ours", one, "data"}, {"ours", two, "pvc-1"}, {"", two, "pvc-1"}} {
		if got := claimOf(pool.Volume{Name: "pvc-1", Label: c.label}, c.wanted); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
