// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
)

// shelf has the data sets of a cluster.
type shelf struct {
	mu      sync.Mutex
	objects map[string]v1alpha1.StargateDataset
	status  map[string]*v1alpha1.NodeStatus
}

func (s *shelf) Dataset(_ context.Context, namespace, name string) (*v1alpha1.StargateDataset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.objects[namespace+"/"+name]
	if !ok {
		return nil, errkind.New(errkind.NotFound, "there is no data set %s/%s", namespace, name)
	}
	return &d, nil
}

func (s *shelf) Datasets(context.Context) (all []v1alpha1.StargateDataset, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.objects {
		all = append(all, d)
	}
	return all, nil
}

func (s *shelf) Secret(context.Context, string, string) (map[string][]byte, error) {
	return nil, errkind.New(errkind.NotFound, "no Secret")
}

func (s *shelf) NodeLabels(context.Context) (map[string]string, error) { return nil, nil }

func (s *shelf) NodeAddresses(context.Context) ([]netip.Addr, error) { return nil, nil }

func (s *shelf) Tell(_ context.Context, namespace, name string, status *v1alpha1.NodeStatus) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status[namespace+"/"+name] = status
	return nil
}

func (s *shelf) Event(*v1alpha1.StargateDataset, bool, string, string) {}

func (s *shelf) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// example returns the data set of docs/datasets.md, and the attributes with which its pod names it.
// The files come from the given server.
func example(t testing.TB, server string) (v1alpha1.StargateDataset, map[string]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/datasets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	set, rest, _ := strings.Cut(text, "---\n")
	var d v1alpha1.StargateDataset
	var pod corev1.Pod
	if err := errors.Join(yaml.UnmarshalStrict([]byte(set), &d), yaml.UnmarshalStrict([]byte(rest), &pod)); err != nil {
		t.Fatal(err)
	}
	const host = "https://models.example"
	if !strings.HasPrefix(d.Spec.Source.HTTP.List, host+"/") || pod.Namespace != d.Namespace {
		t.Fatalf("the example has changed: %+v", d.Spec)
	}
	d.UID, d.Spec.Source.HTTP.List = "0b5e55ed-0000-4000-8000-00000000beef", strings.Replace(d.Spec.Source.HTTP.List, host, server, 1)
	return d, pod.Spec.Volumes[0].CSI.VolumeAttributes
}

// datasetRequest is kubelet's call for a pod whose inline volume names a data set.
func (n *node) datasetRequest(pod, name string) *csi.NodePublishVolumeRequest {
	sum := sha256.Sum256([]byte(pod))
	return &csi.NodePublishVolumeRequest{
		VolumeId: "csi-" + hex.EncodeToString(sum[:]), TargetPath: n.target(pod), VolumeCapability: rwo,
		VolumeContext: map[string]string{
			"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace": "models", "csi.storage.k8s.io/pod.name": pod, "dataset": name,
		},
	}
}

// simple returns a data set like that of the page, for machines without the page.
func simple(_ testing.TB, server string) (v1alpha1.StargateDataset, map[string]string) {
	d := v1alpha1.StargateDataset{}
	d.Namespace, d.Name, d.UID = "models", "llama", "0b5e55ed-0000-4000-8000-00000000beef"
	d.Spec = v1alpha1.Spec{Size: "1Gi", Source: v1alpha1.Source{HTTP: &v1alpha1.HTTP{List: server + "/m/SHA256SUMS"}}}
	return d, map[string]string{"dataset": "llama"}
}

// withDatasets lets the node have a data set, whose file a server in this process has. It returns
// the number of ranges that the server has sent, and a function that adds the data set with a file.
func (n *node) withDatasets(
	of func(t testing.TB, server string) (v1alpha1.StargateDataset, map[string]string),
) (*shelf, *atomic.Int64, func(b []byte) string) {
	n.t.Helper()
	all := &shelf{objects: map[string]v1alpha1.StargateDataset{}, status: map[string]*v1alpha1.NodeStatus{}}
	files, sent := map[string][]byte{}, &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if span := r.Header.Get("Range"); span != "" && span != "bytes=0-0" {
			sent.Add(1)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}))
	n.t.Cleanup(server.Close)
	n.config.Catalog, n.config.Driver.NoInline = all, true
	n.config.Datasets.Enabled, n.config.Datasets.Hosts = true, []string{"127.0.0.1"}
	n.config.Datasets.Grace, n.config.Datasets.Wait, n.config.Datasets.Period = time.Hour, time.Minute, 200*time.Millisecond
	return all, sent, func(b []byte) string {
		d, attributes := of(n.t, server.URL)
		list := strings.TrimPrefix(d.Spec.Source.HTTP.List, server.URL)
		sum := sha256.Sum256(b)
		files[path.Join(path.Dir(list), "weights/-model.bin")] = b
		files[list] = []byte(hex.EncodeToString(sum[:]) + "  weights/-model.bin\n")
		all.mu.Lock()
		defer all.mu.Unlock()
		all.objects[d.Namespace+"/"+d.Name] = d
		return attributes["dataset"]
	}
}

// Pods that name a data set share one copy, which is sealed and read-only, and which the next
// driver and another server of the mount continue to offer. It goes with its data set.
func TestFUSEDataset(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.keep()
	all, sent, add := n.withDatasets(example)
	stop := n.start()
	content := model()
	name := add(content)
	pods := []string{"a", "b", "c"}
	var calls sync.WaitGroup
	for _, pod := range pods {
		calls.Go(func() {
			if _, err := n.NodePublishVolume(background, n.datasetRequest(pod, name)); err != nil {
				t.Errorf("pod %s: %v", pod, err)
			}
		})
	}
	calls.Wait()
	if t.Failed() {
		return
	}
	n.sameInPods(content, pods...)
	if got := sent.Load(); got != 3 { // ranges of 16 MiB
		t.Errorf("the server has sent %d ranges; a copy has 3", got)
	}
	if left := n.left(); len(left) != 2 { // the volume, and the link with its place
		t.Logf("the zone has %q", left)
	}
	if err := os.WriteFile(n.inPod("a", "x"), nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("a pod writes: %v", err)
	}
	n.sealedInVolume()

	stats, err := n.NodeGetVolumeStats(background, &csi.NodeGetVolumeStatsRequest{VolumeId: n.datasetRequest("a", "").VolumeId, VolumePath: n.target("a")})
	if err != nil || stats.GetUsage()[0].GetUsed() < int64(len(content)) {
		t.Errorf("usage: %v, %v", stats, err)
	}
	_, err = n.NodePublishVolume(background, n.datasetRequest("d", "other"))
	wants(t, "an unknown data set", err, codes.NotFound, "models/other")
	plain := n.datasetRequest("e", "")
	delete(plain.VolumeContext, "dataset")
	_, err = n.NodePublishVolume(background, plain)
	wants(t, "another inline volume", err, codes.FailedPrecondition, "inlineVolumes.enabled")

	stop()
	stop = n.start()
	if _, err := n.NodePublishVolume(background, n.datasetRequest("d", name)); err != nil {
		t.Fatal(err)
	}
	n.sameInPods(content, "a", "d")
	if got := sent.Load(); got != 3 {
		t.Errorf("the next driver fills the copy again: %d ranges", got)
	}
	n.soon("the status", func() bool {
		all.mu.Lock()
		defer all.mu.Unlock()
		s := all.status["models/"+name]
		return s != nil && s.Phase == v1alpha1.Ready && s.Pods == 4
	})
	if err := unix.Kill(n.server(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	n.sameInPods(content, "b")

	all.forget("models/" + name)
	for _, pod := range append(pods, "d") {
		n.unpublish(n.datasetRequest(pod, "").VolumeId, pod)
	}
	n.soon("the copy goes with its data set", func() bool { return len(n.left()) == 0 })
	if rest := n.rest(); len(rest) > 0 {
		t.Errorf("left: %q", rest)
	}
	stop()
}

// model returns the content of a file of three ranges.
func model() []byte {
	content := make([]byte, 40*mib+123)
	for i := range content {
		content[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	return content
}

// sameInPods checks the file of the data set in pods.
func (n *node) sameInPods(content []byte, pods ...string) {
	n.t.Helper()
	for _, pod := range pods {
		got, err := os.ReadFile(n.inPod(pod, "weights/-model.bin"))
		if err != nil || !bytes.Equal(got, content) {
			n.t.Errorf("pod %s: %d bytes, %v; should be %d", pod, len(got), err, len(content))
		}
	}
}

// sealedInVolume checks that the driver itself, which has a writable mount, cannot change the file.
func (n *node) sealedInVolume() {
	n.t.Helper()
	found, err := filepath.Glob(filepath.Join(n.kubelet, "plugins", n.config.Driver.Name, "datasets", "ds-*.files", "weights", "-model.bin"))
	if err != nil || len(found) != 1 {
		n.t.Errorf("the driver's mount: %q, %v", found, err)
		return
	}
	if f, err := os.OpenFile(found[0], os.O_WRONLY, 0); !errors.Is(err, unix.EPERM) {
		n.t.Errorf("a sealed file is opened for writing: %v, %v", f, err)
	}
}
