// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/pool"
)

// A class can remove the options nosuid and nodev only if the node allows this.
func TestSuidDevAllowed(t *testing.T) {
	for _, c := range []struct {
		option string
		code   codes.Code
	}{
		{"suid", codes.FailedPrecondition}, {"dev", codes.FailedPrecondition}, {"noatime,suid", codes.FailedPrecondition},
		{"nosuid,nodev", codes.OK}, {"noatime", codes.OK},
	} {
		w := newWorld(t, pool.Gigabyte)
		capability := &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: []string{c.option}}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		}
		_, err := w.driver.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
			Name: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mib}, VolumeCapabilities: []*csi.VolumeCapability{capability},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.driver.NodeStageVolume(context.Background(), &csi.NodeStageVolumeRequest{
			VolumeId: "v", StagingTargetPath: w.path("staging"), VolumeCapability: capability,
		})
		if code := status.Code(grpcstatus.Of(err)); code != c.code {
			t.Errorf("%s: %s, %v", c.option, code, err)
		}
		if c.code != codes.OK && (err == nil || !strings.Contains(err.Error(), "--allow-suid-dev")) {
			t.Errorf("%s: %v does not name the option that allows this", c.option, err)
		}
	}
}
