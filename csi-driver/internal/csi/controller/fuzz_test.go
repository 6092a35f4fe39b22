// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/pool"
)

// For any bytes as a request, the code either refuses the request with a proper status, or derives
// a volume that stargatectl can create.
func FuzzCreate(f *testing.F) {
	seed, err := proto.Marshal(&csi.CreateVolumeRequest{
		Name: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30, LimitBytes: 2 << 30}, Parameters: map[string]string{"alignment": "1Gi"},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: []string{"noatime"}}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
		AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{"topology.d/node": "n"}}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: 1 << 30}, nil, nil, nil, nil)
	f.Fuzz(func(t *testing.T, wire []byte) {
		var r csi.CreateVolumeRequest
		if proto.Unmarshal(wire, &r) != nil {
			return
		}
		s, n, err := d.checkCreate(&r)
		if err != nil {
			switch c := status.Code(grpcstatus.Of(err)); c {
			case codes.InvalidArgument, codes.OutOfRange, codes.ResourceExhausted:
			default:
				t.Errorf("%s: %v", c, err)
			}
			return
		}
		spec := s.Spec(pool.NameFor(d.config.NameOf(&r)), n)
		if !request.Within(n, r.GetCapacityRange()) || n%pool.Extent != 0 || n < pool.MinVolume || n > pool.MaxVolume || !pool.ValidName(spec.Name) {
			t.Errorf("%v: %+v", &r, spec)
		}
	})
}
