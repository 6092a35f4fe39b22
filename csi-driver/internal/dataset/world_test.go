// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
	"stargate/csi-driver/internal/publish"
)

const mib = int64(1) << 20

// catalog is a cluster with data sets, in memory.
type catalog struct {
	mu      sync.Mutex
	objects map[string]*v1alpha1.StargateDataset
	secrets map[string]map[string][]byte
	labels  map[string]string
	events  []string
	status  map[string]*v1alpha1.NodeStatus
	down    bool
	old     bool // lists have no objects yet
}

var errDown = errkind.New(errkind.NoAnswer, "the API server does not answer")

func (c *catalog) Dataset(_ context.Context, namespace, name string) (*v1alpha1.StargateDataset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return nil, errDown
	}
	d, ok := c.objects[namespace+"/"+name]
	if !ok {
		return nil, errkind.New(errkind.NotFound, "there is no data set %s/%s", namespace, name)
	}
	copied := *d
	return &copied, nil
}

func (c *catalog) Datasets(context.Context) ([]v1alpha1.StargateDataset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return nil, errDown
	}
	var all []v1alpha1.StargateDataset
	for _, d := range c.objects {
		if !c.old {
			all = append(all, *d)
		}
	}
	return all, nil
}

func (c *catalog) Secret(_ context.Context, namespace, name string) (map[string][]byte, error) {
	if s, ok := c.secrets[namespace+"/"+name]; ok {
		return s, nil
	}
	return nil, errkind.New(errkind.InUse, "the driver may not read Secret %s/%s", namespace, name)
}

func (c *catalog) NodeLabels(context.Context) (map[string]string, error) { return c.labels, nil }

func (c *catalog) NodeAddresses(context.Context) ([]netip.Addr, error) { return nil, nil }

func (c *catalog) Tell(_ context.Context, namespace, name string, s *v1alpha1.NodeStatus) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == nil {
		delete(c.status, namespace+"/"+name)
		return nil
	}
	copied := *s
	c.status[namespace+"/"+name] = &copied
	return nil
}

func (c *catalog) Event(d *v1alpha1.StargateDataset, warning bool, reason, words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, fmt.Sprintf("%s/%s %v %s: %s", d.Namespace, d.Name, warning, reason, words))
}

func (c *catalog) has(t *testing.T, words string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.events, func(e string) bool { return strings.Contains(e, words) }) {
		t.Errorf("no event has %q: %q", words, c.events)
	}
}

func (c *catalog) phase(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.status[name]; s != nil {
		return s.Phase
	}
	return ""
}

// shelf mounts volumes as folders: each volume has one, and its mounts are links.
type shelf struct {
	t   *testing.T
	dir string
	mu  sync.Mutex
	at  map[string]string // volumes by the paths of their mounts
	ro  map[string]bool   // read-only mounts
	bad int               // so many next calls of Stage fail
}

func (s *shelf) Stage(_ context.Context, v pool.Volume, path string, _ publish.Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad > 0 {
		s.bad--
		return errors.New("the device is busy")
	}
	s.at[path] = v.Name
	return os.MkdirAll(filepath.Join(s.dir, v.Name), 0o755)
}

func (s *shelf) Publish(_ context.Context, v pool.Volume, staging, target string, o publish.Options) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[staging] != v.Name {
		return errors.New("it is not staged")
	}
	if s.at[target] == v.Name {
		return nil
	}
	s.at[target], s.ro[target] = v.Name, o.ReadOnly
	if err := os.Remove(target); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(s.dir, v.Name), target)
}

func (s *shelf) Withdraw(_ context.Context, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, path)
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink != 0 {
		return os.Remove(path)
	}
	return nil
}

func (s *shelf) Shown(v pool.Volume) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for path, name := range s.at {
		if name == v.Name {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// server serves files, and counts the bytes that it sends.
type server struct {
	*httptest.Server
	sent  atomic.Int64
	mu    sync.Mutex
	files map[string][]byte
	slow  chan struct{} // if not nil, each range waits for it
	fails bool
	token string
}

type counter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counter) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.n.Add(int64(n))
	return n, err
}

func newServer(t *testing.T) *server {
	s := &server{files: map[string][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		b, ok := s.files[r.URL.Path]
		slow, fails := s.slow, s.fails
		s.mu.Unlock()
		switch {
		case fails:
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		case !ok:
			http.NotFound(w, r)
			return
		case s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token:
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		if slow != nil && r.Header.Get("Range") != "bytes=0-0" {
			select {
			case <-slow:
			case <-r.Context().Done():
				return
			}
		}
		http.ServeContent(counter{w, &s.sent}, r, "", time.Time{}, bytes.NewReader(b))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) put(name string, n int) (digest string) {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + len(name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files["/"+name] = b
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *server) set(how func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(s)
}

// world is a node with a zone, a cluster and a server, all in this process.
type world struct {
	t       *testing.T
	dir     string
	zone    *pooltest.Zone
	shelf   *shelf
	catalog *catalog
	server  *server
	config  Config
	*Manager
}

func newWorld(t *testing.T, size int64) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), server: newServer(t)}
	w.zone = pooltest.New(pooltest.Config{Base: 64 * pool.Gigabyte, Size: size})
	w.shelf = &shelf{t: t, dir: filepath.Join(w.dir, "volumes"), at: map[string]string{}, ro: map[string]bool{}}
	w.catalog = &catalog{
		objects: map[string]*v1alpha1.StargateDataset{}, secrets: map[string]map[string][]byte{}, status: map[string]*v1alpha1.NodeStatus{},
	}
	w.config = Config{
		Node: "n1", Dir: filepath.Join(w.dir, "kubelet", "datasets"), Hosts: []string{"127.0.0.1"}, Grace: time.Hour, Wait: time.Minute,
		First: 10 * time.Millisecond, Last: 20 * time.Millisecond,
	}
	w.start()
	t.Cleanup(func() { w.End() })
	return w
}

// start starts a driver, as after the end of an earlier one.
func (w *world) start() {
	if w.Manager != nil {
		w.End()
	}
	w.Manager = New(w.config, w.zone, w.shelf, w.catalog)
}

// add creates a data set with one file of a size.
func (w *world) add(namespace, name string, n int) *v1alpha1.StargateDataset {
	w.t.Helper()
	d := &v1alpha1.StargateDataset{}
	d.Namespace, d.Name, d.UID = namespace, name, types.UID("uid-"+namespace+"-"+name)
	d.Spec = v1alpha1.Spec{Size: "1Gi", Source: v1alpha1.Source{HTTP: &v1alpha1.HTTP{Files: []v1alpha1.HTTPFile{
		{URL: w.server.URL + "/" + name, Name: "m/" + name, SHA256: w.server.put(name, n)},
	}}}}
	w.catalog.mu.Lock()
	defer w.catalog.mu.Unlock()
	w.catalog.objects[namespace+"/"+name] = d
	return d
}

func (w *world) target(pod string) string { return filepath.Join(w.dir, "pod-"+pod) }

// pod publishes a data set for a pod.
func (w *world) pod(pod, namespace, name string) error {
	return w.Publish(context.Background(), namespace, name, w.target(pod))
}

// runs publishes a data set, and checks that the pod can read it.
func (w *world) runs(pod, namespace, name string) {
	w.t.Helper()
	if err := w.pod(pod, namespace, name); err != nil {
		w.t.Fatalf("pod %s: %v", pod, err)
	}
	w.server.mu.Lock()
	want := w.server.files["/"+name]
	w.server.mu.Unlock()
	if got, err := os.ReadFile(filepath.Join(w.target(pod), "m", name)); err != nil || !bytes.Equal(got, want) {
		w.t.Errorf("pod %s: %d bytes, %v; should be %d", pod, len(got), err, len(want))
	}
	w.shelf.mu.Lock()
	defer w.shelf.mu.Unlock()
	if !w.shelf.ro[w.target(pod)] {
		w.t.Errorf("pod %s can write", pod)
	}
}

// ends ends a pod.
func (w *world) ends(pod string) {
	w.t.Helper()
	if err := w.shelf.Withdraw(context.Background(), w.target(pod)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) look() {
	w.t.Helper()
	if err := w.Look(context.Background()); err != nil {
		w.t.Error(err)
	}
}

// copies returns the number of copies in the zone.
func (w *world) copies() int {
	w.t.Helper()
	all, err := w.zone.List(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return len(all)
}

// soon waits until a condition holds.
func (w *world) soon(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not in time: %s", what)
		}
	}
}

// wants checks the kind and the words of an error.
func wants(t *testing.T, what string, err error, kind errkind.Kind, words string) {
	t.Helper()
	if !errkind.Is(err, kind) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v (kind %d); should be of kind %d and say %q", what, err, errkind.KindOf(err), kind, words)
	}
}

// empty removes the files of a volume, as a zone does that is created again.
func (w *world) empty(name string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.shelf.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}
