// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
)

// fails makes the next calls of Stage fail.
func (s *shelf) fails(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = n
}

// change replaces an object.
func (c *catalog) change(name string, how func(d *v1alpha1.StargateDataset)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := *c.objects[name]
	how(&d)
	c.objects[name] = &d
}

// A copy that the next driver cannot read at first is not filled again. Its pods keep their files.
func TestUnreadCopy(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	const n = 3 << 20
	w.add("a", "model", n)
	w.runs("1", "a", "model")
	sent := w.server.sent.Load()
	w.start()
	w.shelf.fails(2) // at the start, and at the first try of the fill
	wants(t, "the first call", w.pod("2", "a", "model"), errkind.NotReady, "an earlier copy cannot be read: the device is busy")
	w.soon("the copy", func() bool { return w.pod("2", "a", "model") == nil })
	w.runs("2", "a", "model")
	if _, err := os.Stat(filepath.Join(w.target("1"), "m", "model")); err != nil {
		t.Errorf("the first pod: %v", err)
	}
	if more := w.server.sent.Load() - sent; more > 100 {
		t.Errorf("the server has sent %d more bytes", more)
	}
}

// A look tries such a copy again without a pod. Until then, the copy counts for the node's quota.
func TestUnreadCopyWithoutPod(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.add("b", "other", 1000)
	w.runs("1", "a", "model")
	w.config.NodeQuota = 20 * mib
	w.start()
	w.shelf.fails(1)
	wants(t, "the quota", w.pod("2", "b", "other"), errkind.NoSpace, "the quota is 20971520")
	w.look()
	if s := w.catalog.status["a/model"]; s == nil || s.Phase != v1alpha1.Ready || s.Pods != 1 {
		t.Errorf("status: %+v", s)
	}
}

// A driver that was killed before it wrote the record of a copy leaves a volume that is filled.
func TestCopyWithoutRecord(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	w.ends("1")
	all, err := w.zone.List(context.Background())
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if err := os.Remove(filepath.Join(w.shelf.dir, all[0].Name, fill.RecordFile)); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.runs("2", "a", "model")
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies", got)
	}
}

// Kubelet repeats the call for a pod that runs. The pod keeps its copy, also when the data set has
// changed or was deleted.
func TestRepeatedCall(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	had := w.shelf.at[w.target("1")]
	w.catalog.change("a/model", func(d *v1alpha1.StargateDataset) {
		d.Spec.Source.HTTP = &v1alpha1.HTTP{Files: []v1alpha1.HTTPFile{{URL: w.server.URL + "/model", Name: "other", SHA256: w.server.put("model", 1000)}}}
	})
	if err := w.pod("2", "a", "model"); err != nil {
		t.Fatal(err)
	}
	for _, restarts := range []bool{false, true} {
		if restarts {
			w.start()
		}
		if err := w.pod("1", "a", "model"); err != nil || w.shelf.at[w.target("1")] != had {
			t.Errorf("a changed data set: %v, volume %s instead of %s", err, w.shelf.at[w.target("1")], had)
		}
	}
	w.catalog.mu.Lock()
	delete(w.catalog.objects, "a/model")
	w.catalog.mu.Unlock()
	if err := w.pod("1", "a", "model"); err != nil || w.shelf.at[w.target("1")] != had {
		t.Errorf("a deleted data set: %v", err)
	}
}

// A data set that was deleted and made again has one state, while a pod has the former copy.
func TestStatesOfAName(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	w.catalog.change("a/model", func(d *v1alpha1.StargateDataset) { d.UID = "uid-again" })
	w.runs("2", "a", "model")
	if got := w.copies(); got != 2 {
		t.Errorf("%d copies", got)
	}
	if states := w.States(); len(states) != 1 || states[0].Phase != v1alpha1.Ready {
		t.Errorf("states: %+v", states)
	}
}

// A look does not fill a copy ahead of pods, remove it for others, and fill it again.
func TestAheadUnderPressure(t *testing.T) {
	w := newWorld(t, 200*mib)
	w.add("a", "model", int(170*mib))
	w.catalog.change("a/model", func(d *v1alpha1.StargateDataset) { d.Spec.Fill = v1alpha1.Ahead })
	w.look()
	w.soon("it is filled", func() bool { return w.catalog.phase("a/model") == v1alpha1.Ready })
	w.mu.Lock()
	for _, h := range w.holds {
		h.promised = time.Time{}
	}
	w.mu.Unlock()
	for range 3 {
		w.look()
		if got := w.copies(); got != 1 {
			t.Fatalf("%d copies", got)
		}
	}
	if s := w.States(); len(s) != 1 || s[0].Fills != 1 {
		t.Errorf("states: %+v", s)
	}
}

// A copy that a pod has asked for waits until the pod asks again.
func TestPromise(t *testing.T) {
	w := newWorld(t, 40*mib) // two copies
	w.config.Wait = 20 * time.Millisecond
	w.start()
	w.add("a", "one", 1000)
	w.add("b", "two", 1000)
	w.add("c", "three", 1000)
	slow := make(chan struct{})
	w.server.set(func(s *server) { s.slow = slow })
	wants(t, "one", w.pod("1", "a", "one"), errkind.NotReady, "is being filled")
	wants(t, "two", w.pod("2", "b", "two"), errkind.NotReady, "is being filled")
	close(slow)
	w.soon("both are complete", func() bool {
		return w.catalog.phase("a/one") == v1alpha1.Ready && w.catalog.phase("b/two") == v1alpha1.Ready
	})
	w.look()
	w.soon("three has no room", func() bool { return errkind.Is(w.pod("3", "c", "three"), errkind.NoSpace) })
	w.server.set(func(s *server) { s.fails = true })
	w.runs("1", "a", "one")
	w.runs("2", "b", "two")
}

// A copy that can never have room removes no other copy.
func TestNeverRoom(t *testing.T) {
	for what, set := range map[string]func(c *Config){
		"the zone":              func(*Config) {},
		"the quota of the node": func(c *Config) { c.NodeQuota = 100 * mib },
	} {
		w := newWorld(t, 150*mib)
		set(&w.config)
		w.start()
		for _, name := range []string{"one", "two"} {
			w.add(name, name, 1000)
			w.runs(name, name, name)
			w.ends(name)
		}
		w.look()
		w.add("c", "large", int(200*mib))
		wants(t, what, w.pod("large", "c", "large"), errkind.NoSpace, "cannot be filled on node n1")
		if got := w.copies(); got != 2 {
			t.Errorf("%s: %d copies; the idle ones should stay", what, got)
		}
	}
}

// Two fills at the same time do not exceed the quota of the node together.
func TestQuotaOfTwoFills(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.config.NodeQuota = 20 * mib
	w.start()
	w.add("a", "one", 1000)
	w.add("b", "two", 1000)
	reached, release := w.zone.Hold(pooltest.Create)
	first := make(chan error, 1)
	go func() { first <- w.pod("1", "a", "one") }()
	<-reached
	second := make(chan error, 1)
	go func() { second <- w.pod("2", "b", "two") }()
	select {
	case err := <-second:
		wants(t, "the second one", err, errkind.NoSpace, "the quota is 20971520")
	case <-time.After(5 * time.Second):
		t.Error("the second one does not see the first one")
	}
	release()
	if err := <-first; err != nil {
		t.Error(err)
	}
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies", got)
	}
}

// A look ends while a large copy is being removed, and a next one begins no second removal.
func TestLookDuringRemoval(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "gone", 1000)
	w.add("a", "model", 1000)
	w.runs("1", "a", "gone")
	w.ends("1")
	w.catalog.mu.Lock()
	delete(w.catalog.objects, "a/gone")
	w.catalog.mu.Unlock()
	reached, release := w.zone.Hold(pooltest.Delete)
	defer release()
	done := make(chan error, 1)
	go func() { done <- w.Look(context.Background()) }()
	<-reached
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the look waits for the removal")
	}
	w.runs("2", "a", "model")
	w.look()
	release()
	w.soon("the removal", func() bool { return w.copies() == 1 })
}

// The size of a volume does not overflow, whatever a source claims.
func TestSizes(t *testing.T) {
	for _, n := range []int64{0, pool.MaxVolume, math.MaxInt64 / 2, math.MaxInt64} {
		if got := sizeFor(fill.Plan{Bytes: n}); got < pool.MinVolume || got < min(n, pool.MaxVolume) {
			t.Errorf("%d bytes: the volume has %d", n, got)
		}
	}
	for size, ok := range map[string]bool{"64Ti": true, "65Ti": false, "9200000000000000000": false, "9223372036854775807Ki": false} {
		d := v1alpha1.StargateDataset{Spec: v1alpha1.Spec{Size: size}}
		if _, err := d.Bytes(); (err == nil) != ok {
			t.Errorf("size %s: %v", size, err)
		}
	}
}
