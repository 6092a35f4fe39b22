// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
)

// Many pods that start at the same time share one copy, which is filled once.
func TestOneCopy(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	const n = 3 << 20
	w.add("a", "model", n)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { w.runs(fmt.Sprint(i), "a", "model") })
	}
	all.Wait()
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies", got)
	}
	if got := w.server.sent.Load(); got > n+10 {
		t.Errorf("the server has sent %d bytes for %d", got, n)
	}
	w.look()
	if s := w.catalog.status["a/model"]; s == nil || s.Phase != v1alpha1.Ready || s.Pods != 10 || s.Percent != 100 || s.Bytes != n {
		t.Errorf("status: %+v", s)
	}
	w.catalog.has(t, "Filled")
	if states := w.States(); len(states) != 1 || states[0].Fills != 1 || states[0].Pods != 10 || states[0].Phase != v1alpha1.Ready {
		t.Errorf("states: %+v", states)
	}
}

// The files are sealed in the volume, before a pod sees them.
func TestSeal(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	var sealed []string
	w.config.Seal = func(_ context.Context, dir string, names []string) error {
		for _, name := range names {
			sealed = append(sealed, filepath.Join(filepath.Base(dir), name))
		}
		return nil
	}
	w.start()
	d, plain := w.add("a", "model", 100), w.add("a", "plain", 100)
	no := false
	plain.Spec.Sealed = &no
	w.runs("1", "a", "model")
	w.runs("2", "a", "plain")
	if len(sealed) != 1 || !strings.HasSuffix(sealed[0], ".files/m/model") {
		t.Errorf("%s: sealed %q", d.Name, sealed)
	}
	w.config.Seal = func(context.Context, string, []string) error { return errors.New("another system has the file open") }
	w.start()
	w.add("a", "open", 100)
	wants(t, "a seal that is refused", w.pod("3", "a", "open"), errkind.NotReady, "another system has the file open")
}

// A pod that waits gets the progress, and later the data set.
func TestWait(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.config.Wait = 50 * time.Millisecond
	w.start()
	w.add("a", "model", 1000)
	slow := make(chan struct{})
	w.server.set(func(s *server) { s.slow = slow })
	wants(t, "a slow server", w.pod("1", "a", "model"), errkind.NotReady, "data set a/model is being filled on node n1: 0 % of 1000 bytes")
	w.soon("the status", func() bool { return w.catalog.phase("a/model") == v1alpha1.Filling })
	close(slow)
	w.soon("it is filled", func() bool { return w.pod("1", "a", "model") == nil })
	w.runs("2", "a", "model")
}

// A source that fails is tried again, and each pod gets the reason in one sentence.
func TestFailure(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	d := w.add("a", "model", 1000)
	good := d.Spec.Source.HTTP.Files[0].SHA256
	w.catalog.mu.Lock()
	d.Spec.Source.HTTP.Files[0].SHA256 = strings.Repeat("0", 64)
	w.catalog.mu.Unlock()
	err := w.pod("1", "a", "model")
	wants(t, "a wrong digest", err, errkind.NotReady, "should have sha256:0000")
	wants(t, "a wrong digest", err, errkind.NotReady, "the driver tries again in")
	w.soon("the status", func() bool { return w.catalog.phase("a/model") == v1alpha1.Failed })
	w.catalog.has(t, "true FillFailed: node n1: file m/model has the digest")
	if _, err := w.shelf.Shown(pool.Volume{Name: "none"}); err != nil || w.shelf.at[w.target("1")] != "" {
		t.Error("the pod has a mount")
	}
	w.server.set(func(s *server) { s.fails = true })
	w.catalog.mu.Lock()
	d.Spec.Source.HTTP.Files[0].SHA256 = good
	w.catalog.mu.Unlock()
	w.soon("it fails otherwise", func() bool {
		err := w.pod("1", "a", "model")
		return err != nil && strings.Contains(err.Error(), "503 Service Unavailable")
	})
	w.server.set(func(s *server) { s.fails = false })
	w.soon("it is tried again", func() bool { return w.pod("1", "a", "model") == nil })
	w.runs("2", "a", "model")
}

// The next driver finds a complete copy, and asks no server.
func TestRestart(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	w.server.set(func(s *server) { s.fails = true })
	w.start()
	w.runs("2", "a", "model")
	w.look()
	if s := w.catalog.status["a/model"]; s == nil || s.Pods != 2 {
		t.Errorf("status: %+v", s)
	}
}

// The next driver continues a copy that was interrupted.
func TestInterrupted(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.config.Wait = 50 * time.Millisecond
	w.start()
	const n = 40 << 20 // three ranges
	w.add("a", "model", n)
	slow := make(chan struct{}, 1)
	slow <- struct{}{} // one range
	w.server.set(func(s *server) { s.slow = slow })
	wants(t, "a slow server", w.pod("1", "a", "model"), errkind.NotReady, "is being filled")
	w.soon("one range", func() bool {
		return w.server.sent.Load() >= 8<<20 && w.States()[0].Bytes >= 8<<20 && w.States()[0].Bytes == w.server.sent.Load()-1
	})
	w.start()
	w.server.set(func(s *server) { s.slow = nil })
	w.config.Wait = time.Minute
	w.start()
	w.runs("1", "a", "model")
	if got := w.server.sent.Load(); got > n+100 {
		t.Errorf("the server has sent %d bytes for %d", got, n)
	}
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies", got)
	}
}

// After a power cut that has emptied the zone, the copy is filled again for the next pod.
func TestPowerCut(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	w.ends("1")
	for _, restarts := range []bool{false, true} {
		all, _ := w.zone.List(context.Background())
		for _, v := range all {
			if err := w.zone.Delete(context.Background(), v.Name); err != nil {
				t.Fatal(err)
			}
			w.empty(v.Name)
		}
		if restarts {
			w.start()
		} else {
			wants(t, "a lost copy", w.pod("2", "a", "model"), errkind.NotReady, "the memory of its copy on node n1 was lost")
		}
		w.soon("it is filled again", func() bool { return w.pod("2", "a", "model") == nil })
		w.runs("3", "a", "model")
		w.ends("2")
		w.ends("3")
	}
}

// Copies without pods go: after the grace, or when the data set is deleted. Others stay.
func TestRemoval(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.config.Grace = 0
	w.start()
	w.add("a", "used", 1000)
	w.add("a", "idle", 1000)
	w.runs("1", "a", "used")
	w.runs("2", "a", "idle")
	w.ends("2")
	w.look()
	w.look()
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies; the idle one should be removed", got)
	}
	if w.catalog.phase("a/idle") != "" || w.catalog.phase("a/used") != v1alpha1.Ready {
		t.Errorf("status: %q, %q", w.catalog.phase("a/idle"), w.catalog.phase("a/used"))
	}
	w.catalog.mu.Lock()
	delete(w.catalog.objects, "a/used")
	w.catalog.mu.Unlock()
	w.look()
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies; a pod has the copy of a deleted data set", got)
	}
	wants(t, "a deleted one", w.pod("3", "a", "used"), errkind.NotFound, "no data set a/used")
	w.ends("1")
	w.catalog.mu.Lock()
	w.catalog.down = true
	w.catalog.mu.Unlock()
	if err := w.Look(context.Background()); err == nil || w.copies() != 1 {
		t.Errorf("without a cluster: %v, %d copies", err, w.copies())
	}
	w.catalog.mu.Lock()
	w.catalog.down = false
	w.catalog.mu.Unlock()
	w.look()
	if got := w.copies(); got != 0 {
		t.Errorf("%d copies are left", got)
	}
}

// Under pressure, the copy that was not used for the longest time goes, and never one with pods.
func TestPressure(t *testing.T) {
	w := newWorld(t, 70*mib) // four copies of 16 MiB
	for i, name := range []string{"one", "two", "three", "four"} {
		w.add("a", name, 1000+i)
		w.runs(name, "a", name)
		if name != "one" {
			w.ends(name)
		}
		w.look()
	}
	if got := w.copies(); got != 3 { // the last one left too little room for other volumes
		t.Errorf("%d copies", got)
	}
	w.runs("two again", "a", "two")
	w.ends("two again")
	w.add("a", "five", 1000)
	w.runs("five", "a", "five")
	w.mu.Lock()
	for _, h := range w.holds {
		if h.Name == "three" {
			t.Error("three is older than the others, and still there")
		}
	}
	w.mu.Unlock()
	w.runs("one again", "a", "one")
	w.add("a", "large", int(60*mib))
	wants(t, "no room", w.pod("large", "a", "large"), errkind.NoSpace, "data set a/large cannot be filled on node n1")
	if w.shelf.at[w.target("one")] == "" || w.shelf.at[w.target("five")] == "" {
		t.Error("a copy with pods was removed")
	}
}

// Quotas limit the copies of a namespace, and of all namespaces, on a node. A copy without pods
// makes room for another one of the same namespace.
func TestQuotas(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.config.NamespaceQuota, w.config.NodeQuota = 20*mib, 36*mib
	w.start()
	w.add("a", "one", 1000)
	w.add("a", "two", 1000)
	w.add("b", "three", 1000)
	w.add("c", "four", 1000)
	w.runs("1", "a", "one")
	wants(t, "a second one", w.pod("2", "a", "two"), errkind.NoSpace, "its quota is 20971520")
	w.runs("3", "b", "three")
	wants(t, "a third one", w.pod("4", "c", "four"), errkind.NoSpace, "the quota is 37748736")
	w.catalog.mu.Lock()
	delete(w.catalog.objects, "c/four") // it would take the room of the first one, too
	w.catalog.mu.Unlock()
	w.soon("nobody wants the third one", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.fills["uid-c-four"] == nil
	})
	w.ends("1")
	w.soon("room", func() bool { return w.pod("2", "a", "two") == nil })
	if got := w.copies(); got != 2 {
		t.Errorf("%d copies", got)
	}
}

// After a change of a data set, new pods get the new contents, and other pods keep theirs.
func TestChange(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	d := w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	digest := w.server.put("model", 2000)
	w.catalog.mu.Lock()
	changed := *d
	changed.Spec.Source.HTTP = &v1alpha1.HTTP{Files: []v1alpha1.HTTPFile{{URL: w.server.URL + "/model", Name: "m/model", SHA256: digest}}}
	w.catalog.objects["a/model"] = &changed
	w.catalog.mu.Unlock()
	w.runs("2", "a", "model")
	w.look()
	if got := w.copies(); got != 2 {
		t.Errorf("%d copies; the first pod has the old one", got)
	}
	w.ends("1")
	w.look()
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies", got)
	}
}

// A node looks for another version of a list after some time. Pods get the old version until the
// new one is complete.
func TestRefresh(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	d := w.add("a", "model", 1000)
	list := func(n int) {
		digest := w.server.put("m/model", n)
		w.server.set(func(s *server) {
			s.files["/model"] = s.files["/m/model"]
			s.files["/SHA256SUMS"] = []byte(digest + "  m/model\n")
		})
	}
	list(1000)
	w.catalog.mu.Lock()
	d.Spec.Source.HTTP, d.Spec.RefreshEvery = &v1alpha1.HTTP{List: w.server.URL + "/SHA256SUMS"}, "1h"
	w.catalog.mu.Unlock()
	w.runs("1", "a", "model")
	list(2000)
	w.look()
	if len(w.fills) != 0 || w.copies() != 1 {
		t.Error("it looks too early")
	}
	w.mu.Lock()
	for _, h := range w.holds {
		h.checked = time.Now().Add(-2 * time.Hour)
	}
	w.mu.Unlock()
	w.look()
	w.soon("the new version", func() bool { return w.copies() == 2 && len(w.States()) == 1 && w.States()[0].Bytes == 2000 })
	w.runs("2", "a", "model")
	w.ends("1")
	w.look()
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies", got)
	}
}

// A data set is only for nodes of its selector. With Ahead, these nodes fill it without a pod.
func TestNodes(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	d := w.add("a", "model", 1000)
	w.catalog.mu.Lock()
	d.Spec.NodeSelector, d.Spec.Fill = map[string]string{"pool": "gpu"}, v1alpha1.Ahead
	w.catalog.mu.Unlock()
	wants(t, "another node", w.pod("1", "a", "model"), errkind.InUse, "has no label pool=gpu")
	w.look()
	if w.copies() != 0 {
		t.Error("another node fills it")
	}
	w.catalog.labels = map[string]string{"pool": "gpu"}
	w.look()
	w.soon("it is filled ahead", func() bool { return w.catalog.phase("a/model") == v1alpha1.Ready })
	w.server.set(func(s *server) { s.fails = true })
	w.runs("1", "a", "model")
	wants(t, "an unknown one", w.pod("2", "a", "other"), errkind.NotFound, "no data set a/other")
}

// Credentials come from the Secret, and are in no event, status or error.
func TestSecret(t *testing.T) {
	const token = "s3cret-t0ken"
	w := newWorld(t, pool.Gigabyte)
	w.server.token = token
	d := w.add("a", "model", 1000)
	w.catalog.mu.Lock()
	d.Spec.Credentials = &v1alpha1.Credentials{SecretName: "hub"}
	w.catalog.mu.Unlock()
	wants(t, "no Secret", w.pod("1", "a", "model"), errkind.NotReady, "may not read Secret a/hub")
	w.catalog.secrets["a/hub"] = map[string][]byte{"token": []byte(token)}
	err := w.pod("1", "a", "model")
	w.soon("it is refused", func() bool {
		err = w.pod("1", "a", "model")
		return err != nil && strings.Contains(err.Error(), "use https://")
	})
	w.catalog.mu.Lock()
	defer w.catalog.mu.Unlock()
	if said := fmt.Sprint(err, w.catalog.events, w.catalog.status["a/model"]); strings.Contains(said, token) {
		t.Errorf("it says %s", said)
	}
}

// A namespace whose source is slow does not delay the data sets of another one.
func TestTurns(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.config.Wait = 50 * time.Millisecond
	w.start()
	slow := make(chan struct{})
	w.server.set(func(s *server) { s.slow = slow })
	for i := range fillsAtOnce {
		name := fmt.Sprint("slow", i)
		w.add("a", name, 1000)
		wants(t, name, w.pod(name, "a", name), errkind.NotReady, "is being filled")
	}
	w.soon("the first one waits for the server", func() bool {
		err := w.pod("0", "a", "slow0")
		return err != nil && strings.Contains(err.Error(), "0 % of 1000 bytes")
	})
	w.server.set(func(s *server) { s.slow = nil })
	w.add("b", "quick", 1000)
	w.soon("another namespace's", func() bool { return w.pod("quick", "b", "quick") == nil })
	wants(t, "the last one", w.pod("last", "a", "slow3"), errkind.NotReady, "it waits for its turn")
	close(slow)
	w.soon("the last one", func() bool { return w.pod("last", "a", "slow3") == nil })
}

// Slow sources of several namespaces do not keep all turns: others go first after a while.
func TestTurnsOfSlowSources(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.config.Wait, w.config.Turn = 50*time.Millisecond, 100*time.Millisecond
	w.start()
	slow := make(chan struct{}) // nobody closes it
	w.server.set(func(s *server) { s.slow = slow })
	for i := range fillsAtOnce {
		in := fmt.Sprint("slow", i)
		w.add(in, "model", 1000)
		w.soon(in, func() bool {
			err := w.pod(in, in, "model")
			return err != nil && strings.Contains(err.Error(), "0 % of 1000 bytes")
		})
	}
	w.server.set(func(s *server) { s.slow = nil })
	w.add("b", "quick", 1000)
	w.soon("another namespace's", func() bool { return w.pod("quick", "b", "quick") == nil })
	w.soon("the one that has given up its turn", func() bool { return len(w.copiesDone()) >= 2 })
	for _, s := range w.States() {
		if s.Failures != 0 {
			t.Errorf("state: %+v", s)
		}
	}
}

// copiesDone returns the states of the copies that are complete.
func (w *world) copiesDone() (done []State) {
	for _, s := range w.States() {
		if s.Phase == v1alpha1.Ready {
			done = append(done, s)
		}
	}
	return done
}

// A list of the API server may be older than a data set. The node then keeps the copy.
func TestOldList(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	w.ends("1")
	w.catalog.old = true
	w.look()
	if got := w.copies(); got != 1 {
		t.Errorf("%d copies", got)
	}
	w.catalog.mu.Lock()
	delete(w.catalog.objects, "a/model")
	w.catalog.mu.Unlock()
	w.look()
	if got := w.copies(); got != 0 {
		t.Errorf("%d copies are left", got)
	}
}

// A removal that takes longer than a look at all copies is not interrupted by its end.
func TestLongRemoval(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	w.add("a", "model", 1000)
	w.runs("1", "a", "model")
	w.ends("1")
	w.catalog.mu.Lock()
	delete(w.catalog.objects, "a/model")
	w.catalog.mu.Unlock()
	reached, release := w.zone.Hold(pooltest.Delete)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Look(ctx) }()
	<-reached
	cancel()
	time.Sleep(50 * time.Millisecond)
	release()
	<-done
	w.soon("the removal", func() bool { return w.copies() == 0 })
}
