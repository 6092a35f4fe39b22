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
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/pool"
)

// foreign is a zone in which another program has created an object with each name.
type foreign struct{ pool.Nothing }

func (foreign) Get(_ context.Context, name string) (pool.Volume, error) {
	return pool.Volume{Name: name, State: pool.Foreign}, nil
}

// Objects of other programs in the zone are no volumes of the driver.
func TestForeign(t *testing.T) {
	ctx := context.Background()
	d := New(request.Config{Name: "d", NodeID: "n"}, foreign{}, nil, kernelmodule.New(t.TempDir()), nil)
	capabilities := asked(nil, nil).GetVolumeCapabilities()
	for what, call := range map[string]func() error{
		"get": func() error {
			_, err := d.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: "v0"})
			return err
		},
		"validate": func() error {
			_, err := d.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{VolumeId: "v0", VolumeCapabilities: capabilities})
			return err
		},
		"health": func() error {
			_, err := d.NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: "v0"})
			return err
		},
	} {
		if err := call(); status.Code(grpcstatus.Of(err)) != codes.NotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
}
