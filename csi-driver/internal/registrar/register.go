// SPDX-License-Identifier: Apache-2.0

// Package registrar registers the driver with kubelet, so that no sidecar is needed.
package registrar

import (
	"context"

	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Registrar answers kubelet's calls. kubelet watches the folder that contains its socket.
type Registrar struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
	failed         func(reason string)
}

// NewRegistrar returns a Registrar for the driver with a name. endpoint is the path of the driver's
// socket for kubelet. The Registrar calls failed if kubelet refuses the driver. kubelet repeats its
// call only when the socket is recreated.
func NewRegistrar(name, endpoint string, failed func(reason string)) *Registrar {
	return &Registrar{name: name, endpoint: endpoint, failed: failed}
}

// GetInfo returns the driver's name and its socket.
func (r *Registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus receives kubelet's decision.
func (r *Registrar) NotifyRegistrationStatus(ctx context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if s.GetPluginRegistered() {
		klog.FromContext(ctx).Info("The driver is registered with kubelet")
	} else {
		klog.FromContext(ctx).Error(nil, "kubelet refuses the driver", "reason", s.GetError())
		r.failed(s.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}
