// SPDX-License-Identifier: Apache-2.0

// Package domainhook answers KubeVirt when it defines a machine's domain (D11): up to 1.8 as a hook sidecar, in
// each version of that API, from 1.9 on as the domain hook of a Plugin. Package domainxml changes the
// domain; this package has the envelopes.
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

// Config is of one hook.
type Config struct {
	Driver string
	// Folder is where a claim is mounted; claims.Folder, unless it is a test.
	Folder func(claim string) string
	Host   domainxml.Host
}

// Hook is one machine's.
type Hook struct{ config Config }

// New makes it.
func New(config Config) *Hook { return &Hook{config} }

// Names that KubeVirt gives to services, calls and versions.
const (
	infoService   = "kubevirt.hooks.info.Info"
	pluginService = "kubevirt.hooks.plugins.v1alpha1.DomainHookService"
	onDefine      = "OnDefineDomain"
	hookName      = "stargate"

	boot = "Boot"

	// Folder is where KubeVirt collects sidecars' sockets; each sidecar sees its own part of it.
	Folder = "/var/run/kubevirt-hooks"
)

var versions = []string{"v1alpha1", "v1alpha2", "v1alpha3"}

// Socket is a path of one, or that of the driver's in a folder: of sockets with one name, also in different
// parts of Folder, KubeVirt sees one, and waits for the others in vain.
func Socket(said, driver string) string {
	if st, err := os.Stat(said); err == nil && st.IsDir() {
		return filepath.Join(said, driver+".sock")
	}
	return said
}

// Register serves all of them: KubeVirt takes the newest that it knows.
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

// info subscribes to the one point. Of several hooks those with a lower priority come later: with the
// lowest, nobody's change comes behind ours.
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
		return nil, status.Errorf(codes.FailedPrecondition, "the domain is of type %.40q, and volumes are for libvirt's", k)
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

// KubeVirt also asks for the VM's cloud-init disk; the hook leaves it as it is.
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

// Status is an error as gRPC has it.
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
		logger.Error(nil, "The VM does not get its volumes", "why", err.Error())
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	logger.Info("The VM has its volumes", "claims", names)
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
