// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/mounts/mountstest"
	"stargate/csi-driver/internal/pool"
)

// servers is a fake of Servers that records the names of volumes.
type servers struct {
	serving map[string]string // options of the running servers, by volume
	started int
	waited  []string // volumes for whose servers a call of Gone has waited
	err     error    // result of the next call of Serve
	silent  error    // result of each call of Serving
	wait    func()   // called by the next call of Gone
}

func (s *servers) Serve(_ context.Context, name, _ string, options []string, _ *os.File) error {
	err := s.err
	if s.err = nil; err == nil {
		s.serving[name] = strings.Join(options, ",")
		s.started++
	}
	return err
}

func (s *servers) Serving(_ context.Context, name string) (bool, error) {
	_, is := s.serving[name]
	return is, s.silent
}

func (s *servers) Gone(_ context.Context, name string) error {
	s.waited = append(s.waited, name)
	if wait := s.wait; wait != nil {
		s.wait = nil
		wait()
	}
	delete(s.serving, name)
	return nil
}

// servedWorld is a zone of files whose pods get mounts. The mounts are simulated in a table.
type servedWorld struct {
	t   *testing.T
	dir string
	*servers
	table *mountstest.Table
	*File
	v pool.Volume
}

func newServedWorld(t *testing.T) *servedWorld {
	t.Helper()
	w := &servedWorld{t: t, dir: t.TempDir(), servers: &servers{serving: map[string]string{}}, table: mountstest.New()}
	device := func() (*os.File, error) { return os.Open(os.DevNull) }
	w.File = NewServedFile(mounts.On(w.table), nil, 107, w.servers, device)
	w.v = pool.Volume{Name: "v", Path: filepath.Join(w.dir, "v.stargate"), Memory: 1 << 25}
	return w
}

func (w *servedWorld) path(name string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := mounts.MakeDir(path); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *servedWorld) stage(o Options) {
	w.t.Helper()
	if err := w.Stage(context.Background(), w.v, w.path("staging"), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *servedWorld) publish(pod string, o Options) error {
	w.t.Helper()
	return w.Publish(context.Background(), w.v, w.path("staging"), w.path(pod), o)
}

func (w *servedWorld) published(pod string, o Options) {
	w.t.Helper()
	if err := w.publish(pod, o); err != nil {
		w.t.Fatalf("pod %s: %v", pod, err)
	}
}

func (w *servedWorld) withdraw(pod string) {
	w.t.Helper()
	if err := w.Withdraw(context.Background(), w.path(pod)); err != nil {
		w.t.Fatalf("%s: %v", pod, err)
	}
}

// mounted returns the mount points with their types.
func (w *servedWorld) mounted() string {
	w.t.Helper()
	entries, err := w.table.Entries()
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, e := range entries[1:] {
		all = append(all, strings.TrimPrefix(e.MountPoint, w.dir+"/")+":"+e.FsType)
	}
	return strings.Join(all, " ")
}

func (w *servedWorld) want(when, mounted string, started int) {
	w.t.Helper()
	if got := w.mounted(); got != mounted {
		w.t.Errorf("%s: mounted is %s; should be %s", when, got, mounted)
	}
	if w.started != started {
		w.t.Errorf("%s: %d servers have started, and %d should have", when, w.started, started)
	}
}

// Of one volume, pods get mounts, and VMs' pods get the memory. The mounts exist from the first pod
// to the last pod.
func TestPodsAndMachines(t *testing.T) {
	w := newServedWorld(t)
	w.stage(Options{})
	w.want("staged", "staging:tmpfs", 0)
	machine := Options{Machine: true}
	w.published("vm", machine)
	const vm = "staging:tmpfs vm:tmpfs vm/.stargate/region:ext4"
	w.want("a VM", vm, 0)
	w.published("a", Options{Flags: []string{"noatime", "map=splice", "errors=continue"}})
	const files = " staging/.stargate/files:fuse.stargatefs a:fuse.stargatefs"
	w.want("and a pod", vm+files, 1)
	if got := w.serving["v"]; got != "noatime,errors=continue" {
		t.Errorf("the server has the options %q", got)
	}
	w.published("b", Options{ReadOnly: true})
	w.published("b", Options{ReadOnly: true})
	w.want("and another one", vm+files+" b:fuse.stargatefs", 1)
	if err := w.publish("b", Options{}); !errkind.Is(err, errkind.Exists) {
		t.Errorf("the same path with other options: %v", err)
	}
	shown, err := w.Shown(w.v)
	if err != nil || len(shown) != 4 {
		t.Errorf("shown is %v, %v", shown, err)
	}
	machines, err := w.Machines(w.v)
	if err != nil || !slices.Equal(machines, []string{w.path("vm")}) {
		t.Errorf("the VMs' mount points are %v, %v", machines, err)
	}
	w.withdraw("a")
	w.want("one pod has ended", vm+" staging/.stargate/files:fuse.stargatefs b:fuse.stargatefs", 1)
	w.withdraw("b")
	w.want("both have", vm, 1)
	if _, is := w.serving["v"]; is {
		t.Error("the server runs without a pod")
	}
	w.withdraw("b") // again
	w.published("a", Options{})
	w.withdraw("vm")
	w.withdraw("a")
	w.withdraw("staging")
	w.want("all have", "", 2)
}

// If a call is interrupted between the unmount of a pod's mount and of the stage, the next call
// completes it.
func TestCutOff(t *testing.T) {
	w := newServedWorld(t)
	w.stage(Options{})
	w.published("a", Options{})
	if err := w.table.Unmount(w.path("a")); err != nil {
		t.Fatal(err)
	}
	w.withdraw("a")
	w.want("again", "staging:tmpfs", 1)
	w.published("a", Options{})
	w.withdraw("a")
	w.published("a", Options{})
	for _, point := range []string{"a", "staging/.stargate/files"} {
		if err := w.table.Unmount(filepath.Join(w.dir, point)); err != nil {
			t.Fatal(err)
		}
	}
	w.withdraw("staging")
	w.want("unstaged", "", 3)
	// While a call publishes a volume, the end of another pod does not unmount the volume's
	// stage.
	w.stage(Options{})
	w.published("a", Options{})
	if err := w.table.Unmount(w.path("a")); err != nil {
		t.Fatal(err)
	}
	end, err := w.begin(context.Background(), w.v)
	if err != nil {
		t.Fatal(err)
	}
	w.withdraw("elsewhere")
	w.want("in progress", "staging:tmpfs staging/.stargate/files:fuse.stargatefs", 4)
	end()
	w.withdraw("elsewhere")
	w.want("ended", "staging:tmpfs", 4)
}

// A call that ends the server of another volume, which no pod uses, must not end the next server of
// that volume.
func TestEndsOnlyThatServer(t *testing.T) {
	w := newServedWorld(t)
	w.stage(Options{})
	w.published("a", Options{})
	if err := w.table.Unmount(w.path("a")); err != nil {
		t.Fatal(err)
	}
	staging, elsewhere, b := w.path("staging"), w.path("elsewhere"), w.path("b")
	waits, ends := make(chan struct{}), make(chan struct{})
	w.wait = func() { close(waits); <-ends }
	withdrawn, published := make(chan error, 1), make(chan error, 1)
	go func() { withdrawn <- w.Withdraw(context.Background(), elsewhere) }()
	<-waits
	hurried, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := w.Publish(hurried, w.v, staging, b, Options{}); !errkind.Is(err, errkind.Busy) {
		t.Errorf("a call with little time, while the server ends: %v", err)
	}
	go func() { published <- w.Publish(context.Background(), w.v, staging, b, Options{}) }()
	select {
	case err := <-published:
		t.Errorf("published before the last server has ended: %v", err)
		published <- err
	case <-time.After(50 * time.Millisecond):
	}
	close(ends)
	for what, done := range map[string]chan error{"withdraw": withdrawn, "publish": published} {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, is := w.serving["v"]; !is {
		t.Error("the new server was ended")
	}
	w.want("published", "staging:tmpfs staging/.stargate/files:fuse.stargatefs b:fuse.stargatefs", 2)
	// A path of a volume that is being published: that call waits for the server itself.
	if err := w.table.Unmount(filepath.Join(staging, hidden, stage)); err != nil {
		t.Fatal(err)
	}
	end, err := w.begin(context.Background(), w.v)
	if err != nil {
		t.Fatal(err)
	}
	w.waited = nil
	w.withdraw("b")
	if len(w.waited) > 0 {
		t.Errorf("the end of %v was waited for", w.waited)
	}
	end()
}

// For new pods, the driver replaces a mount whose server will not be restarted. It does not replace
// a mount while the keeper does not answer.
func TestServerLost(t *testing.T) {
	w := newServedWorld(t)
	w.stage(Options{})
	w.published("a", Options{})
	w.silent = errkind.New(errkind.NoAnswer, "silent")
	if err := w.publish("b", Options{}); !errkind.Is(err, errkind.NoAnswer) {
		t.Errorf("the keeper is silent: %v", err)
	}
	w.silent = nil
	delete(w.serving, "v")
	w.published("b", Options{})
	w.want("replaced", "staging:tmpfs a:fuse.stargatefs staging/.stargate/files:fuse.stargatefs b:fuse.stargatefs", 2)
}

// A failure leaves no mount, and the next call succeeds.
func TestServedFailures(t *testing.T) {
	for what, breaks := range map[string]func(w *servedWorld){
		"the server": func(w *servedWorld) { w.err = errkind.New(errkind.Internal, "damaged") },
		"the mount":  func(w *servedWorld) { w.table.Fail(mountstest.MountServed, unix.EPERM) },
		"the device": func(w *servedWorld) {
			open := w.by.device
			w.by.device = func() (*os.File, error) { w.by.device = open; return nil, errors.New("no device") }
		},
		"the bind": func(w *servedWorld) { w.table.Fail(mountstest.Bind, unix.EPERM) },
	} {
		w := newServedWorld(t)
		w.stage(Options{})
		breaks(w)
		if err := w.publish("a", Options{}); err == nil {
			t.Errorf("%s: published", what)
		}
		if got := w.mounted(); strings.Contains(got, "a:") {
			t.Errorf("%s: mounted is %s", what, got)
		}
		w.published("a", Options{})
		w.withdraw("a")
		w.withdraw("staging")
		if got := w.mounted(); got != "" || len(w.serving) > 0 {
			t.Errorf("%s: after the pods' end, mounted is %s, and servers run for %v", what, got, w.serving)
		}
		breaks(w)
		if err := w.Direct(context.Background(), w.v, w.path("inline"), Options{}); err == nil && what != "the bind" {
			t.Errorf("%s: an inline volume is shown", what)
		} else if err != nil && w.mounted() != "" {
			t.Errorf("%s: a failed Direct leaves the mounts %s", what, w.mounted())
		}
	}
}

// Either pods or VMs can have a read-only volume, but not both: VMs with read-only memory cannot
// mount a volume that has a server.
func TestReadOnlyForAll(t *testing.T) {
	w, rox := newServedWorld(t), Options{ReadOnly: true, Unwritten: true}
	w.stage(rox)
	w.published("a", rox)
	if got := w.serving["v"]; got != "ro" {
		t.Errorf("the server has the options %q", got)
	}
	machine := rox
	machine.Machine = true
	if err := w.publish("vm", machine); !errkind.Is(err, errkind.InUse) || !strings.Contains(err.Error(), w.path("a")) {
		t.Errorf("a VM beside a pod: %v", err)
	}
	w.withdraw("a")
	w.published("vm", machine)
	if err := w.publish("a", rox); !errkind.Is(err, errkind.InUse) || !strings.Contains(err.Error(), w.path("vm")) {
		t.Errorf("a pod beside a VM: %v", err)
	}
}

// A pod keeps the shell that it got from a driver without mounts.
func TestShellsStay(t *testing.T) {
	w := newServedWorld(t)
	w.stage(Options{})
	earlier := NewFile(mounts.On(w.table), nil)
	if err := earlier.Publish(context.Background(), w.v, w.path("staging"), w.path("old"), Options{}); err != nil {
		t.Fatal(err)
	}
	w.published("old", Options{})
	w.published("new", Options{})
	if got := w.mounted(); !strings.Contains(got, "old:tmpfs") || !strings.Contains(got, "new:fuse") {
		t.Errorf("mounted is %s", got)
	}
	if err := earlier.Publish(context.Background(), w.v, w.path("staging"), w.path("new"), Options{}); !errkind.Is(err, errkind.Exists) {
		t.Errorf("a driver without mounts, at a mount: %v", err)
	}
	if err := earlier.Withdraw(context.Background(), w.path("new")); err != nil {
		t.Errorf("a driver without mounts cannot unpublish the mount: %v", err)
	}
}
