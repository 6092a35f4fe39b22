// SPDX-License-Identifier: Apache-2.0

// Package nodehook answers KubeVirt's calls on a VM's node, from KubeVirt 1.9 on (D11). Before the
// VM starts, the driver can refuse it with a reason. When the VM has ended, the driver frees its
// locks immediately.
package nodehook

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kubevirt/annotation"
	"stargate/csi-driver/internal/kubevirt/domainxml"
	"stargate/csi-driver/internal/kubevirt/hookproto"
	"stargate/csi-driver/internal/kubevirt/volumeinfo"
	"stargate/csi-driver/internal/pool"
)

// KubeVirt's names of the service, its call, and the points at which KubeVirt calls it.
const (
	service    = "kubevirt.hooks.plugins.v1alpha1.NodeHookService"
	call       = "ExecuteNodeHook"
	preVMStart = "PreVMStart"
	postVMStop = "PostVMStop"
)

// Zone manages the node's volumes. pool.Zone documents the contract of each method.
type Zone interface {
	List(ctx context.Context) ([]pool.Volume, error)
	Get(ctx context.Context, name string) (pool.Volume, error)
	Ended(ctx context.Context, v pool.Volume, machine string) ([]string, error)
}

// Shower returns the paths at which volumes are mounted.
type Shower interface {
	Shown(v pool.Volume) ([]string, error)
	ShownAll(volumes []pool.Volume) (map[string][]string, error)
}

// Config configures the hooks of one node.
type Config struct {
	Driver string
	Node   string
	Pods   string // kubelet's folder of pods
	Notes  string // file that records which VMs have which volumes; empty: only in memory
}

// Hooks has the state of one node's hooks.
type Hooks struct {
	config Config
	zone   Zone
	show   Shower
	given  given
}

// New returns the hooks of a node.
func New(config Config, z Zone, show Shower) *Hooks {
	h := &Hooks{config: config, zone: z, show: show, given: given{file: config.Notes}}
	if err := h.given.recall(); err != nil {
		klog.Background().Error(err, "The file that records which VMs have which volumes cannot be read: the driver assumes that no VM has a volume")
	}
	return h
}

// Register serves the hooks.
func (h *Hooks) Register(s grpc.ServiceRegistrar) {
	hookproto.Register(s, service, map[string]hookproto.Call{call: h.execute})
}

// execute handles one call. KubeVirt may call it many times at each point. It never calls at a
// point that the chart's Plugin does not name.
func (h *Hooks) execute(ctx context.Context, request hookproto.Message) (hookproto.Message, error) {
	const point, vmi = 1, 2
	m, err := read(request.Get(vmi))
	if err != nil {
		return nil, err
	}
	wanted, err := annotation.Of(m.Metadata.Annotations, h.config.Driver)
	if err != nil {
		return nil, errkind.Wrap(errkind.Invalid, err, "VM %s", m)
	}
	if len(wanted) == 0 {
		return hookproto.Message{}, nil
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("vm", m.String(), "point", string(request.Get(point))))
	switch string(request.Get(point)) {
	case preVMStart:
		err = h.start(ctx, m, wanted)
	case postVMStop:
		err = h.ended(ctx, m)
	}
	return hookproto.Message{}, err
}

// start prepares the VM's volumes. It returns an error while the VM cannot have them.
func (h *Hooks) start(ctx context.Context, m machine, wanted []annotation.Claim) error {
	began := time.Now()
	volumes, shown, err := h.volumesOf(ctx, m)
	if err != nil {
		return err
	}
	h.given.looked(func(volume, pod string) bool { return h.inPod(shown[volume], pod) }, began, time.Now())
	if len(volumes) < len(wanted) {
		return errkind.New(errkind.InUse, "VM %s names %d claims, and its pod has %d volumes of %s on this node: "+
			"if they do not appear, delete the VM, and check the webhook of %s", m, len(wanted), len(volumes), h.config.Driver, h.config.Driver)
	}
	memory, err := m.memory()
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if !v.State.Whole() {
			return errkind.New(errkind.InUse, "VM %s: volume %s cannot be used: %s", m, v.Name, v.Why)
		}
		if err := domainxml.Fits(volumeinfo.Volume{Claim: claimOf(v, wanted), Base: uint64(v.Base)}, memory); err != nil {
			return errkind.Wrap(errkind.InUse, err, "VM %s", m)
		}
	}
	return h.give(ctx, m, volumes)
}

// give prepares all volumes at the same time. KubeVirt waits for 25 s, and a volume on which an
// earlier life of the VM has left a slot takes seconds. The records of the prepared volumes remain
// even if another volume fails.
func (h *Hooks) give(ctx context.Context, m machine, volumes []pool.Volume) error {
	failed := make([]error, len(volumes))
	var all sync.WaitGroup
	for i, v := range volumes {
		all.Go(func() {
			failed[i] = h.giveOne(ctx, m, v)
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

func (h *Hooks) giveOne(ctx context.Context, m machine, v pool.Volume) error {
	has, err := h.podsWith(v)
	if err != nil {
		return err
	}
	twin, err := h.given.to(m, v.Name, m.pods(h.config.Node), has, time.Now())
	if err != nil {
		klog.FromContext(ctx).Error(err, "The file that records which VMs have which volumes cannot be written: after a restart the driver does not know that this VM has the volume", "volume", v.Name)
	}
	if twin != "" {
		return errkind.New(errkind.InUse, "VM %s: VM %s has its firmware UUID (%s), and volume %s, too: "+
			"the volume cannot tell the two VMs apart; give one another UUID, or stop that VM", m, twin, m.uuid(), v.Name)
	}
	// This VM has not started yet. So if the volume has a slot with its UUID, the slot belongs
	// to an earlier life.
	return h.forget(ctx, m, v)
}

// podsWith returns a function that reports whether the pod with a given UID has the volume mounted.
func (h *Hooks) podsWith(v pool.Volume) (has func(pod string) bool, err error) {
	shown, err := h.show.Shown(v)
	return func(pod string) bool { return h.inPod(shown, pod) }, err
}

// inPod reports whether one of the paths belongs to the pod.
func (h *Hooks) inPod(paths []string, pod string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return h.podOf(path) == pod })
}

// claimOf returns the name of the claim in the VM's pod for a volume. The volume's label is the
// claim's name, unless the class sets another label.
func claimOf(v pool.Volume, wanted []annotation.Claim) string {
	switch {
	case slices.ContainsFunc(wanted, func(c annotation.Claim) bool { return c.Name == v.Label }):
		return v.Label
	case len(wanted) == 1:
		return wanted[0].Name
	}
	return v.Name
}

// volumesOf returns the volumes that the VM's pod has on this node, and the paths of all volumes.
func (h *Hooks) volumesOf(ctx context.Context, m machine) (here []pool.Volume, shown map[string][]string, err error) {
	all, err := h.zone.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	shown, err = h.show.ShownAll(all)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range all {
		if slices.ContainsFunc(shown[v.Name], func(path string) bool { return m.hasPod(h.config.Node, h.podOf(path)) }) {
			here = append(here, v)
		}
	}
	return here, shown, nil
}

// podOf returns the UID of the pod to which a mount point belongs. For other paths it returns a
// text that is no UID.
func (h *Hooks) podOf(path string) string {
	below, err := filepath.Rel(h.config.Pods, path)
	if err != nil {
		return ""
	}
	pod, _, _ := strings.Cut(below, "/")
	return pod
}

// ended fences the VM on the volumes that were recorded for it. The VM's pod and its mounts may no
// longer exist. A system with the VM's UUID on other volumes may be another VM: users may set a
// UUID, and KubeVirt derives it from the VM's name, which VMs of several namespaces may have.
func (h *Hooks) ended(ctx context.Context, m machine) error {
	names, err := h.had(ctx, m)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		v, err := h.zone.Get(ctx, name)
		if err == nil && (v.State == pool.Ready || v.State == pool.InUse) {
			err = h.left(ctx, m, v)
		}
		if err != nil && !errkind.Is(err, errkind.NotFound) { // the volume may have been deleted
			failed = append(failed, err)
			continue
		}
		if err := h.given.ended(m, name, time.Now()); err != nil {
			klog.FromContext(ctx).Error(err, "The file that records which VMs have which volumes cannot be written: after a restart the driver does not know that this VM has ended", "volume", name)
		}
	}
	return errors.Join(failed...)
}

// had returns the volumes that were recorded when the VM started, and the volumes that its pod
// still has. A driver that could not read its file has no records.
func (h *Hooks) had(ctx context.Context, m machine) ([]string, error) {
	names := h.given.of(m)
	here, _, err := h.volumesOf(ctx, m)
	if err != nil {
		return nil, err
	}
	for _, v := range here {
		if !slices.Contains(names, v.Name) && !h.given.toAnother(m, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names, nil
}

// left fences a VM that has ended, unless another VM with its UUID still has the volume. The other
// VM may be paused, and must not be fenced.
func (h *Hooks) left(ctx context.Context, m machine, v pool.Volume) error {
	has, err := h.podsWith(v)
	if err != nil || h.given.twin(m, v.Name, has) != "" {
		return err
	}
	return h.forget(ctx, m, v)
}

// forget fences the VM's system on the volume, if there is one. The fence frees the locks and pages
// that the system holds.
func (h *Hooks) forget(ctx context.Context, m machine, v pool.Volume) error {
	id := m.uuid()
	if id == "" {
		return nil // without a UUID, the driver cannot find the VM's slot in the mount table
	}
	names, err := h.zone.Ended(ctx, v, id)
	if len(names) > 0 {
		klog.FromContext(ctx).Info("Fenced a VM that ended without unmounting a volume", "volume", v.Name, "systems", names)
	}
	if err != nil {
		return fmt.Errorf("VM %s: %w", m, err)
	}
	return nil
}
