// SPDX-License-Identifier: Apache-2.0

// Package driver combines the CSI services of one node.
package driver

import (
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"stargate/csi-driver/internal/csi/controller"
	"stargate/csi-driver/internal/csi/ephemeral"
	"stargate/csi-driver/internal/csi/health"
	"stargate/csi-driver/internal/csi/identity"
	"stargate/csi-driver/internal/csi/node"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/csi/volume"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// Driver implements the services Identity, Controller and Node. Health implements the health calls
// of Controller and Node.
type Driver struct {
	*identity.Identity
	*controller.Controller
	*node.Node
	*health.Health
}

// New returns a Driver. All its services use the same zone and the same record of calls in
// progress.
func New(config request.Config, z pool.Zone, show publish.Presenter, k *kernelmodule.Module, folder *mounts.Folder) *Driver {
	volumes := volume.New(z, show)
	h := health.New(z, volumes, k)
	inline := ephemeral.New(config, z, show, volumes)
	return &Driver{
		Identity:   identity.New(config, z),
		Controller: controller.New(config, z, show, volumes, h),
		Node:       node.New(config, show, folder, node.Shared{Volumes: volumes, Health: h, Inline: inline}),
		Health:     h,
	}
}

// Register registers all services with a gRPC server.
func (d *Driver) Register(s grpc.ServiceRegistrar) {
	csi.RegisterIdentityServer(s, d)
	csi.RegisterControllerServer(s, d)
	csi.RegisterNodeServer(s, d)
}
