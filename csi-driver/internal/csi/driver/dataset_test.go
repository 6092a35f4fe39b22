// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
)

// oneSet offers one data set.
type oneSet struct{ calls []string }

func (s *oneSet) Publish(_ context.Context, namespace, name, target string) error {
	s.calls = append(s.calls, namespace+"/"+name+" at "+filepath.Base(target))
	if name == "slow" {
		return errkind.New(errkind.NotReady, "data set %s is being filled: 42 %%", name)
	}
	return nil
}

func (*oneSet) At(string) (pool.Volume, bool) { return pool.Volume{}, false }

// A pod's inline volume names a data set of the pod's namespace. This is allowed where other inline
// volumes are not, and a pod cannot name another namespace or set other attributes.
func TestDatasetOfAPod(t *testing.T) {
	kubelet := t.TempDir()
	folder, err := mounts.OpenFolder(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what       string
		none       bool // the node has no data sets
		attributes map[string]string
		code       codes.Code
		words      string
	}{
		{"a data set", false, map[string]string{"dataset": "llama"}, codes.OK, "models/llama at pod"},
		{"one that is being filled", false, map[string]string{"dataset": "slow"}, codes.Unavailable, "42 %"},
		{"no name", false, map[string]string{"dataset": ""}, codes.InvalidArgument, "must name a data set"},
		{"another attribute", false, map[string]string{"dataset": "llama", "size": "1Gi"}, codes.InvalidArgument, "no attribute \"size\""},
		{"no pod", false, map[string]string{"dataset": "llama", "csi.storage.k8s.io/pod.namespace": ""}, codes.InvalidArgument, "must name a data set"},
		{"a node without data sets", true, map[string]string{"dataset": "llama"}, codes.FailedPrecondition, "datasets.enabled"},
		{"another inline volume", false, map[string]string{"size": "32Mi"}, codes.FailedPrecondition, "inlineVolumes.enabled"},
	} {
		d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte, NoInline: true}, &inlineZone{there: map[string]bool{}}, shower{t, kubelet}, kernelmodule.New(kubelet), folder)
		set := &oneSet{}
		if !c.none {
			d.ServeDatasets(set)
		}
		attributes := map[string]string{request.ContextInline: "true", "csi.storage.k8s.io/pod.namespace": "models"}
		for key, value := range c.attributes {
			attributes[key] = value
		}
		_, err := d.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
			VolumeId: "csi-" + strings.Repeat("0123456789abcdef", 4), TargetPath: filepath.Join(kubelet, "pod"), VolumeContext: attributes,
			VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			},
		})
		said := strings.Join(set.calls, ", ")
		if err != nil {
			said = err.Error()
		}
		if got := status.Code(grpcstatus.Of(err)); got != c.code || !strings.Contains(said, c.words) {
			t.Errorf("%s: %s, %q; should be %s with %q", c.what, got, said, c.code, c.words)
		}
	}
}
