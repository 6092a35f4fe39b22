// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// kept is a zone with a further volume, new, which was created with some parameters.
type kept struct {
	strict
	memory int64
	origin string
	info   stargatectl.Info
}

func (k kept) Get(ctx context.Context, name string) (pool.Volume, error) {
	if name != "new" {
		return k.strict.Get(ctx, name)
	}
	return pool.Volume{Name: name, State: pool.Ready, Size: pool.Gigabyte, Memory: k.memory, Alignment: pool.Extent, Origin: k.origin}, nil
}

func (k kept) Info(context.Context, pool.Volume) (stargatectl.Info, error) { return k.info, nil }

func asked(parameters map[string]string, source *csi.VolumeContentSource) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: "new", Parameters: parameters, VolumeContentSource: source,
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	}
}

func copyOfV() *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "v"}}}
}

// CreateVolume refuses an existing volume of the requested name if it was created with other
// parameters.
func TestSameNameOtherParameters(t *testing.T) {
	type words = map[string]string
	for _, c := range []struct {
		what    string
		asked   words
		info    stargatectl.Info
		memory  int64
		source  *csi.VolumeContentSource
		another bool
	}{
		{what: "the same", asked: words{"label": "l", "lease": "30", "reserve": "64Mi"}, info: stargatectl.Info{Label: "l", LeaseMS: 30000}, memory: pool.Gigabyte + 64<<20},
		{what: "nothing is asked"},
		{what: "its label is its name", info: stargatectl.Info{Label: "new"}},
		{what: "a claim's name", asked: words{"csi.storage.k8s.io/pvc/name": "data"}, info: stargatectl.Info{Label: "data"}},
		{what: "another claim's", asked: words{"csi.storage.k8s.io/pvc/name": "data"}, info: stargatectl.Info{Label: "other"}, another: true},
		{what: "another label", asked: words{"label": "l"}, info: stargatectl.Info{Label: "m"}, another: true},
		{what: "a label that the request does not have", info: stargatectl.Info{Label: "m"}, another: true},
		{what: "no lease", asked: words{"lease": "30"}, another: true},
		{what: "a lease", asked: words{"lease": "never"}, info: stargatectl.Info{LeaseMS: 30000}, another: true},
		{what: "a lease that the request does not have", info: stargatectl.Info{LeaseMS: 30000}, another: true},
		{what: "a copy, with its source's lease", asked: words{"lease": "30"}, source: copyOfV()},
		{what: "no reserve", asked: words{"reserve": "64Mi"}, memory: pool.Gigabyte, another: true},
		{what: "less reserve", asked: words{"reserve": "64Mi"}, memory: pool.Gigabyte + 32<<20, another: true},
		{what: "less to grow to", asked: words{"maxSize": "32Gi"}, another: true},
	} {
		c.info.MaxSize = 16 * pool.Gigabyte
		z := kept{strict: strict{t: t}, memory: max(c.memory, pool.Gigabyte), info: c.info}
		if c.source != nil {
			z.origin = "v"
		}
		d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte}, z, nil, nil, nil)
		r := asked(c.asked, c.source)
		r.CapacityRange = &csi.CapacityRange{RequiredBytes: pool.Gigabyte}
		_, err := d.CreateVolume(context.Background(), r)
		if want := map[bool]codes.Code{false: codes.OK, true: codes.AlreadyExists}[c.another]; status.Code(grpcstatus.Of(err)) != want {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// A copy without a given size has its source's size, not the default size of a new volume.
func TestCopiesWithoutASize(t *testing.T) {
	d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: 8 * pool.Gigabyte}, strict{t: t}, nil, nil, nil)
	for most, want := range map[string]codes.Code{"2Gi": codes.OK, "512Mi": codes.InvalidArgument} {
		res, err := d.CreateVolume(context.Background(), asked(map[string]string{"maxSize": most}, copyOfV()))
		if status.Code(grpcstatus.Of(err)) != want || err == nil && res.GetVolume().GetCapacityBytes() != pool.Gigabyte {
			t.Errorf("maxSize %s: %v, %v", most, res, err)
		}
	}
}

// A node creates a volume if one of the requested topologies is this node's topology. A topology
// with an unknown key matches no node of this driver.
func TestTopologies(t *testing.T) {
	config := request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte}
	key := config.TopologyKey()
	d := New(config, strict{t: t}, nil, nil, nil)
	of := func(words ...string) *csi.Topology {
		segments := map[string]string{}
		for i := 0; i < len(words); i += 2 {
			segments[words[i]] = words[i+1]
		}
		return &csi.Topology{Segments: segments}
	}
	for what, c := range map[string]struct {
		at   *csi.Topology
		here bool
	}{
		"this node": {of(key, "n"), true}, "anywhere": {of(), true}, "another node": {of(key, "m"), false},
		"another key": {of("topology.other/node", "n"), false}, "another key besides": {of(key, "n", "zone", "a"), false},
	} {
		r := asked(nil, nil)
		r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{c.at}}
		_, err := d.CreateVolume(context.Background(), r)
		if want := map[bool]codes.Code{true: codes.OK, false: codes.ResourceExhausted}[c.here]; status.Code(grpcstatus.Of(err)) != want {
			t.Errorf("%s: %v", what, err)
		}
		if config.Ours(c.at) != c.here {
			t.Errorf("%s: the capacity is not that of the requested topology", what)
		}
	}
}
