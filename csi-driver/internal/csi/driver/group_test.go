// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/pool"
)

// The driver declares that it applies a pod's fsGroup, and accepts only a number as its value.
func TestMountGroup(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	all, err := w.driver.NodeGetCapabilities(context.Background(), &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, c := range all.GetCapabilities() {
		told = told || c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP
	}
	if !told {
		t.Error("the driver does not list the capability for mount groups")
	}
	for group, want := range map[string]codes.Code{
		"": codes.NotFound, "2000": codes.NotFound, "users": codes.InvalidArgument, "-1": codes.InvalidArgument, "12345678901": codes.InvalidArgument,
		"0": codes.NotFound, "1000640000": codes.NotFound, "2147483647": codes.NotFound, "2147483648": codes.InvalidArgument,
		"18446744073709551616": codes.InvalidArgument, "+5": codes.InvalidArgument, "1_0": codes.InvalidArgument, " 5": codes.InvalidArgument,
	} {
		_, err := w.driver.NodeStageVolume(context.Background(), &csi.NodeStageVolumeRequest{
			VolumeId: "none", StagingTargetPath: w.path("staging"), VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{VolumeMountGroup: group}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
			},
		})
		if code := status.Code(grpcstatus.Of(err)); code != want {
			t.Errorf("group %q: %s, %v", group, code, err)
		}
	}
}
