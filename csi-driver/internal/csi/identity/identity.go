// SPDX-License-Identifier: Apache-2.0

// Package identity implements CSI's Identity service.
package identity

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/pool"
)

// Zone returns the kind of the node's zone.
type Zone interface {
	Kind() pool.Kind
}

// Identity reports the driver's name, version and capabilities.
type Identity struct {
	csi.UnimplementedIdentityServer

	config request.Config
	zone   Zone
}

// New returns the Identity of a driver with the given zone.
func New(config request.Config, z Zone) *Identity { return &Identity{config: config, zone: z} }

// GetPluginInfo returns the driver's name and version.
func (d *Identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{
		Name: d.config.Name, VendorVersion: d.config.Version,
		Manifest: map[string]string{"zone": string(d.zone.Kind())},
	}, nil
}

// GetPluginCapabilities reports that each volume and snapshot is on one node, and that volumes in
// use can grow.
func (d *Identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := func(t csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		service(csi.PluginCapability_Service_SNAPSHOT_ACCESSIBILITY_CONSTRAINTS),
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		}}},
	}}, nil
}

// Probe reports only the driver's own state. The driver is ready even if the zone is missing or
// damaged. The capacity and health calls report such problems.
func (d *Identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
