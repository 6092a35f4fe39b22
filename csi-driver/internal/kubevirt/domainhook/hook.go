// SPDX-License-Identifier: Apache-2.0

// Package domainhook answers the call that KubeVirt makes when it defines a VM's domain (D11). Up
// to KubeVirt 1.8 the hook is a sidecar, and serves each version of the sidecar API. From KubeVirt
// 1.9 on, the hook can be the domain hook of a Plugin. This package decodes the calls; package
// domainxml changes the domain.
package domainhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/kubevirt/annotation"
	"stargate/csi-driver/internal/kubevirt/domainxml"
	"stargate/csi-driver/internal/kubevirt/hookproto"
	"stargate/csi-driver/internal/kubevirt/volumeinfo"
)

// Config configures one hook.
type Config struct {
	Driver string
	// Folder returns the mount point of a claim. It is annotation.Folder, except in tests.
	Folder func(claim string) string
	Host   domainxml.Host
}

// Hook answers KubeVirt's calls for one VM.
type Hook struct{ config Config }

// New returns a hook.
func New(config Config) *Hook { return &Hook{config} }

// KubeVirt's names of services, calls and versions.
const (
	infoService   = "kubevirt.hooks.info.Info"
	pluginService = "kubevirt.hooks.plugins.v1alpha1.DomainHookService"
	onDefine      = "OnDefineDomain"
	hookName      = "stargate"

	boot = "Boot"

	// Folder is KubeVirt's folder for the sockets of sidecars. KubeVirt mounts a separate part
	// of it in each sidecar.
	Folder = "/var/run/kubevirt-hooks"
)

var versions = []string{"v1alpha1", "v1alpha2", "v1alpha3"}

// Socket returns said. If said is a folder, it returns the path of the driver's socket in that
// folder. The socket has the driver's name, because all sockets need different names, even in
// different parts of Folder. Of several sockets with one name, KubeVirt detects only one, and waits
// for the rest until its timeout.
func Socket(said, driver string) string {
	if st, err := os.Stat(said); err == nil && st.IsDir() {
		return filepath.Join(said, driver+".sock")
	}
	return said
}

// Register serves all versions of the API. KubeVirt uses the newest one that it knows.
func (h *Hook) Register(s grpc.ServiceRegistrar) {
	hookproto.Register(s, infoService, map[string]hookproto.Call{"Info": h.info})
	for _, v := range versions {
		calls := map[string]hookproto.Call{onDefine: h.defineDomain}
		if v != "v1alpha1" {
			calls["PreCloudInitIso"] = unchangedISO
		}
		if v == "v1alpha3" {
			calls["Shutdown"] = nothing
		}
		hookproto.Register(s, "kubevirt.hooks."+v+".Callbacks", calls)
	}
	hookproto.Register(s, pluginService, map[string]hookproto.Call{"MutateDomain": h.mutateDomain})
}

// info subscribes the hook to OnDefineDomain. KubeVirt calls hooks of a lower priority later. This
// hook has the lowest priority, so no other hook changes the domain after it.
func (h *Hook) info(context.Context, hookproto.Message) (hookproto.Message, error) {
	const name, hookPoints, version = 1, 3, 4
	m := hookproto.Message{}.Add(name, []byte(hookName))
	m.Add(hookPoints, hookproto.Message{}.Add(name, []byte(onDefine)).Encode())
	for _, v := range versions {
		m.Add(version, []byte(v))
	}
	return m, nil
}

func (h *Hook) defineDomain(ctx context.Context, request hookproto.Message) (hookproto.Message, error) {
	const xml, vmi = 1, 2
	out, err := h.attach(ctx, request.Get(xml), request.Get(vmi))
	if err != nil {
		return nil, err
	}
	return hookproto.Message{}.Add(xml, out), nil
}

func (h *Hook) mutateDomain(ctx context.Context, request hookproto.Message) (hookproto.Message, error) {
	const kind, xml, vmi, about, invocation, result = 1, 2, 3, 4, 1, 1
	if k := string(request.Get(kind)); k != "libvirt" {
		return nil, status.Errorf(codes.FailedPrecondition, "the domain is of type %.40q, but volumes need libvirt's type", k)
	}
	sidecar, err := hookproto.Decode(request.Get(about))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if why := string(sidecar.Get(invocation)); why != "" && why != boot {
		return nil, status.Errorf(codes.FailedPrecondition, "the VM cannot migrate (%.40q): its volumes are memory of this node", why)
	}
	out, err := h.attach(ctx, request.Get(xml), request.Get(vmi))
	if err != nil {
		return nil, err
	}
	return hookproto.Message{}.Add(result, out), nil
}

// unchangedISO returns the cloud-init data unchanged. The API has this call in v1alpha2 and
// v1alpha3.
func unchangedISO(_ context.Context, request hookproto.Message) (hookproto.Message, error) {
	const noCloud, data = 1, 3
	m := hookproto.Message{}
	for _, n := range []hookproto.Number{noCloud, data} {
		if v := request.Get(n); v != nil {
			m.Add(n, v)
		}
	}
	return m, nil
}

// Status converts an error to a gRPC status.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}

func nothing(context.Context, hookproto.Message) (hookproto.Message, error) {
	return hookproto.Message{}, nil
}

type machine struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

func (h *Hook) attach(ctx context.Context, xml, vmi []byte) ([]byte, error) {
	logger := klog.FromContext(ctx)
	out, names, err := h.define(xml, vmi)
	if err != nil {
		logger.Error(nil, "The hook has not added the volumes to the VM", "why", err.Error())
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	logger.Info("The hook has added the volumes to the VM", "claims", names)
	return out, nil
}

func (h *Hook) define(xml, vmi []byte) ([]byte, []string, error) {
	var m machine
	if err := json.Unmarshal(vmi, &m); err != nil {
		return nil, nil, fmt.Errorf("the VM's object cannot be read: %w", err)
	}
	wanted, err := annotation.Of(m.Metadata.Annotations, h.config.Driver)
	if err != nil {
		return nil, nil, err
	}
	if len(wanted) == 0 {
		return nil, nil, errors.New("the VM names no claims: annotation " + annotation.Annotation(h.config.Driver) + " is missing")
	}
	volumes, names := make([]volumeinfo.Volume, 0, len(wanted)), make([]string, 0, len(wanted))
	for _, c := range wanted {
		v, err := volumeinfo.Read(c.Name, h.config.Folder(c.Name), c.ReadOnly)
		if err != nil {
			return nil, nil, err
		}
		volumes, names = append(volumes, v), append(names, c.Name)
	}
	out, err := domainxml.Attach(xml, volumes, h.config.Host)
	return out, names, err
}
