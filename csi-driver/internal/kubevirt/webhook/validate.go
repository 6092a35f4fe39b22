// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"stargate/csi-driver/internal/kubevirt/annotation"
	"stargate/csi-driver/internal/machineid"
	"stargate/csi-driver/internal/nodemeta"
)

// The oldest version of KubeVirt with which the hooks are tested.
const oldestMajor, oldestMinor = 1, 8

// shape checks the object alone, without queries to the cluster.
func (r *Reviewer) shape(m *instance, wanted []annotation.Claim, template bool) error {
	s := m.Spec
	switch {
	case s.Architecture != "" && s.Architecture != "amd64":
		return fmt.Errorf("spec.architecture is %s: volumes are for amd64 only", s.Architecture)
	case s.Domain.Machine != nil && s.Domain.Machine.Type != "" && !strings.Contains(s.Domain.Machine.Type, "q35"):
		return fmt.Errorf("spec.domain.machine.type is %s: set it to q35", s.Domain.Machine.Type)
	case len(s.Domain.LaunchSecurity) > 0 && string(s.Domain.LaunchSecurity) != "null":
		return fmt.Errorf("spec.domain.launchSecurity encrypts the VM's memory, which then cannot be shared: remove it, or the volumes")
	case s.EvictionStrategy != nil && migrates(*s.EvictionStrategy):
		return fmt.Errorf("spec.evictionStrategy is %s: a VM with volumes cannot migrate, because they are memory of its node; set None", *s.EvictionStrategy)
	}
	if id := m.uuid(); id != "" {
		if _, ok := machineid.Canonical(id); !ok {
			return fmt.Errorf("spec.domain.firmware.uuid %.63q is no UUID that can identify a VM: remove it, or use a UUID like 2b5c1a44-8d4e-4f0e-9f43-0d2c7e1a6b90", id)
		}
	}
	// KubeVirt sets maxGuest in the VM that it creates from a template. The webhook resets
	// maxGuest in such a VM.
	if mem := s.Domain.Memory; template && mem != nil && mem.MaxGuest != nil && (mem.Guest == nil || mem.Guest.Cmp(*mem.MaxGuest) != 0) {
		return fmt.Errorf("spec.domain.memory.maxGuest is %s: a VM with a volume allows no memory hotplug; remove maxGuest, or set it to the value of guest", mem.MaxGuest)
	}
	if name := disk(s, wanted); name != "" {
		return fmt.Errorf("claim %s is also under spec.volumes: KubeVirt would create a disk image in the volume, as large as the claim; remove the claim from spec.volumes", name)
	}
	if what := locked(s); what != "" {
		return fmt.Errorf("%s locks all memory of the VM, and memory of volumes cannot be locked: remove it, or the volumes", what)
	}
	return nil
}

// disk returns the first wanted claim that KubeVirt would also use for a disk of the VM, or an
// empty string. It ignores claims that KubeVirt shares as file systems (virtiofs), because they do
// no harm.
func disk(s machineSpec, wanted []annotation.Claim) string {
	for _, v := range s.Volumes {
		files := slices.ContainsFunc(s.Domain.Devices.Filesystems, func(f filesystem) bool { return f.Name == v.Name })
		if !files && slices.ContainsFunc(wanted, func(c annotation.Claim) bool { return c.Name == v.claim() }) {
			return v.claim()
		}
	}
	return ""
}

// locked returns the field that requires all memory of the VM to be pinned (VFIO, mlock), or an
// empty string. The kernel cannot pin memory without struct pages. Also, KubeVirt allows QEMU to
// lock only as much memory as the VM's own.
func locked(s machineSpec) string {
	d := s.Domain
	switch {
	case len(d.Devices.Host) > 0:
		return "spec.domain.devices.hostDevices"
	case len(d.Devices.GPUs) > 0:
		return "spec.domain.devices.gpus"
	case d.CPU != nil && d.CPU.Realtime != nil:
		return "spec.domain.cpu.realtime"
	case d.Memory != nil && d.Memory.Reserved != nil && d.Memory.Reserved.MemLock == "Required":
		return "spec.domain.memory.reservedOverhead.memLock"
	}
	for _, i := range d.Devices.Interfaces {
		if i.SRIOV != nil {
			return fmt.Sprintf("spec.domain.devices.interfaces: %.63s (sriov)", i.Name)
		}
	}
	return ""
}

func migrates(evictionStrategy string) bool {
	return strings.HasPrefix(evictionStrategy, "LiveMigrate")
}

// ready checks KubeVirt, the driver, and other drivers that the VM names.
func (r *Reviewer) ready(ctx context.Context, m *instance) error {
	drivers, err := r.cluster.drivers(ctx)
	if err != nil {
		return err
	}
	if _, there := drivers[r.cluster.Driver]; !there {
		return fmt.Errorf("there is no CSI driver %s in this cluster: install the chart stargate", r.cluster.Driver)
	}
	// The webhooks and hooks of two drivers would use the same names for volumes and containers
	// of the pod, and for devices of the domain.
	for other, ours := range drivers {
		if _, named := m.Annotations[annotation.Annotation(other)]; named && ours && other != r.cluster.Driver {
			return fmt.Errorf("annotations %s and %s: a VM can have volumes of only one driver", annotation.Annotation(r.cluster.Driver), annotation.Annotation(other))
		}
	}
	k, err := r.cluster.kubeVirt(ctx)
	if err != nil {
		return err
	}
	if k == nil {
		return fmt.Errorf("there is no KubeVirt in this cluster")
	}
	minor := oldestMinor
	gate := "Sidecar"
	if r.config.API == Plugin {
		minor, gate = 9, "Plugins"
	}
	if !atLeast(k.Status.Version, oldestMajor, minor) {
		return fmt.Errorf("KubeVirt is %s, and v%d.%d is needed for volumes (kubevirt.api=%s)", k.Status.Version, oldestMajor, minor, r.config.API)
	}
	developer := k.Spec.Configuration.Developer
	if slices.Contains(developer.Disabled, gate) {
		return fmt.Errorf("KubeVirt's feature gate %s is turned off: remove it from spec.configuration.developerConfiguration.disabledFeatureGates of the KubeVirt object, and add it to featureGates there", gate)
	}
	if !slices.Contains(developer.FeatureGates, gate) {
		return fmt.Errorf("KubeVirt's feature gate %s is not on: add it to spec.configuration.developerConfiguration.featureGates of the KubeVirt object", gate)
	}
	return nil
}

// atLeast accepts a text that is no version, because a custom build may have any text.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 2 {
		return true
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 != nil || err2 != nil || a > major || a == major && b >= minor
}

// claimsOf checks the claims of a VM that should start. It returns a warning if the VM has to wait.
func (r *Reviewer) claimsOf(ctx context.Context, namespace string, m *instance, wanted []annotation.Claim) (warnings []string, err error) {
	where, first := "", ""
	for _, c := range wanted {
		node, err := r.claim(ctx, namespace, m, c, wanted)
		if err != nil {
			return nil, err
		}
		if node == "" {
			continue
		}
		if where != "" && node != where {
			return nil, fmt.Errorf("claim %s is on node %s, and claim %s on node %s: a VM has memory of one node", first, where, c.Name, node)
		}
		where, first = node, c.Name
	}
	if where != "" {
		waits, err := r.placed(ctx, m, first, where)
		if err != nil {
			return nil, err
		}
		if waits != "" {
			warnings = append(warnings, "stargate: "+waits)
		}
	}
	return warnings, r.twinless(ctx, namespace, m, wanted, anybody)
}

// placed checks the node of the VM's claims. During an upgrade of the driver, kubelet removes the
// driver from the CSINode for a while, but keeps the label of the Node. The VM's pod then waits for
// the new driver.
func (r *Reviewer) placed(ctx context.Context, m *instance, claim, node string) (waits string, err error) {
	served, err := r.cluster.served(ctx, node)
	if err != nil {
		return "", err
	}
	n, err := r.cluster.host(ctx, node)
	if err != nil {
		return "", err
	}
	var labels map[string]string
	if n != nil {
		labels = n.Labels
	}
	if _, had := labels[nodemeta.Topology(r.cluster.Driver)]; !served && !had {
		return "", fmt.Errorf("claim %s is on node %s, where the CSI driver %s does not run", claim, node, r.cluster.Driver)
	}
	host := labels[corev1.LabelHostname]
	if asked := m.Spec.NodeSelector[corev1.LabelHostname]; asked != "" && host != "" && asked != host {
		return "", fmt.Errorf("claim %s is on node %s, and spec.nodeSelector asks for %s", claim, node, asked)
	}
	if !served {
		return fmt.Sprintf("claim %s is on node %s, where the CSI driver %s is not ready now: the VM's pod waits for it", claim, node, r.cluster.Driver), nil
	}
	return "", nil
}

func (r *Reviewer) claim(ctx context.Context, namespace string, m *instance, c annotation.Claim, wanted []annotation.Claim) (node string, err error) {
	p, err := r.cluster.claim(ctx, namespace, c.Name)
	if err != nil {
		return "", err
	}
	if p == nil {
		return "", fmt.Errorf("there is no claim %s in namespace %s", c.Name, namespace)
	}
	o, err := r.cluster.origin(ctx, p)
	if err != nil {
		return "", err
	}
	if err := usable(p, c, o, r.cluster.Driver); err != nil {
		return "", err
	}
	return o.node, r.alone(ctx, namespace, m, p, o, wanted, anybody)
}

// usable checks one claim. A VM with read-only memory cannot take a slot. So writers do not know
// that the VM reads, and the VM could read pages that they have freed. Its volume must therefore
// have no writer, now or later.
func usable(p *corev1.PersistentVolumeClaim, c annotation.Claim, o origin, ours string) error {
	switch {
	case o.driver != ours:
		return fmt.Errorf("claim %s is of %s, and not of the CSI driver %s: use a claim with a class of that driver", c.Name, cmpOr(o.driver, "no existing class"), ours)
	case p.DeletionTimestamp != nil:
		return fmt.Errorf("claim %s is being deleted", c.Name)
	case p.Spec.VolumeMode != nil && *p.Spec.VolumeMode == corev1.PersistentVolumeBlock:
		return fmt.Errorf("claim %s has volumeMode Block: use a claim with volumeMode Filesystem", c.Name)
	case o.readersOnly() && !c.ReadOnly:
		return fmt.Errorf("claim %s is ReadOnlyMany: write it as %s:ro", c.Name, c.Name)
	case !o.readersOnly() && c.ReadOnly:
		return fmt.Errorf("claim %s can be written to, and a VM with read-only memory cannot share a volume with a writer: use a claim that is ReadOnlyMany, "+
			"such as a clone of this claim (dataSource); or remove :ro, and mount the volume in the VM with -o ro", c.Name)
	}
	return nil
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// counts reports whether an existing VM prevents another one from having the same volume.
type counts func(m *instance, other *sharer) bool

// alone refuses an exclusive volume to a second VM if the first VM counts. The driver refuses the
// second VM's pod by the same rule. Further access modes of the claim make no difference.
func (r *Reviewer) alone(ctx context.Context, namespace string, m *instance, p *corev1.PersistentVolumeClaim, o origin,
	wanted []annotation.Claim, counts counts) error {
	if o.readersOnly() || o.is(corev1.ReadWriteMany) {
		return nil
	}
	all, err := r.cluster.sharers(ctx, namespace, wanted)
	if err != nil {
		return err
	}
	for i := range all {
		other := &all[i]
		if other.name == m.Name || !counts(m, other) {
			continue
		}
		if slices.ContainsFunc(other.claims, func(c annotation.Claim) bool { return c.Name == p.Name }) {
			return fmt.Errorf("claim %s is ReadWriteOnce, and VM %s has it: create a claim that is ReadWriteMany, or stop that VM", p.Name, other.name)
		}
	}
	return nil
}

// twinless refuses a VM if another VM that counts has the same UUID and can write the same volume.
// The UUID identifies systems on a volume. When one VM ends, the driver would fence the other VM,
// which may only be paused.
func (r *Reviewer) twinless(ctx context.Context, namespace string, m *instance, wanted []annotation.Claim, counts counts) error {
	writes := func(all []annotation.Claim, name string) bool {
		return slices.ContainsFunc(all, func(c annotation.Claim) bool { return c.Name == name && !c.ReadOnly })
	}
	if m.uuid() == "" || !slices.ContainsFunc(wanted, func(c annotation.Claim) bool { return !c.ReadOnly }) {
		return nil
	}
	all, err := r.cluster.sharers(ctx, namespace, wanted)
	if err != nil {
		return err
	}
	for i := range all {
		other := &all[i]
		if other.name == m.Name || !machineid.Same(other.uuid, m.uuid()) || !counts(m, other) {
			continue
		}
		for _, c := range wanted {
			if !c.ReadOnly && writes(other.claims, c.Name) {
				return fmt.Errorf("VM %s has the same spec.domain.firmware.uuid, and claim %s, too: the volume cannot tell the two VMs apart; "+
					"give this VM another UUID or another claim (a clone), or stop that VM", other.name, c.Name)
			}
		}
	}
	return nil
}

// anybody is the rule for a new VM: every existing VM counts.
func anybody(*instance, *sharer) bool { return true }

// earlier reports whether the other VM was created before m.
func earlier(m *instance, other *sharer) bool {
	if other.created.Equal(&m.CreationTimestamp) {
		return other.uid < m.UID
	}
	return other.created.Before(&m.CreationTimestamp)
}

// mayStart repeats the checks before a VM gets a pod. If two VMs were created at the same time, the
// review of each VM may have missed the other VM.
func (r *Reviewer) mayStart(ctx context.Context, namespace string, pod *corev1.Pod, wanted []annotation.Claim) error {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != instanceKind {
		return nil
	}
	m, err := r.cluster.machine(ctx, namespace, owner.Name)
	if err != nil || m == nil {
		return err
	}
	all, err := r.cluster.sharers(ctx, namespace, wanted)
	if err != nil || !slices.ContainsFunc(all, func(s sharer) bool { return s.name != m.Name }) {
		return err
	}
	launched, err := r.cluster.launched(ctx, namespace, all)
	if err != nil {
		return err
	}
	// The API server sets an object's time stamp before the review, and stores the object after
	// it. So a VM with an earlier time stamp may appear after the later VM has its pod.
	before := func(m *instance, other *sharer) bool { return launched[other.name] || earlier(m, other) }
	for _, c := range wanted {
		p, err := r.cluster.claim(ctx, namespace, c.Name)
		if err != nil {
			return err
		}
		if p == nil {
			continue // the pod waits for the claim
		}
		o, err := r.cluster.origin(ctx, p)
		if err == nil {
			err = r.alone(ctx, namespace, m, p, o, wanted, before)
		}
		if err != nil {
			return err
		}
	}
	return r.twinless(ctx, namespace, m, wanted, before)
}
