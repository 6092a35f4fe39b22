// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"stargate/csi-driver/internal/kubevirt/annotation"
)

// Names that KubeVirt or this driver's image defines.
const (
	sidecarsKey   = "hooks.kubevirt.io/hookSidecars"
	ephemeralKey  = "kubevirt.io/ephemeral-provisioning"
	compute       = "compute"
	pluginSockets = "kubevirt-plugin-sockets"
	pluginFolder  = "/var/run/kubevirt-plugin/"
	hookProgram   = "/usr/local/bin/stargate-hook"
	qemu          = int64(107)

	// If a mapping uses pages of 4 KiB, the kernel's page tables take this share of its size.
	tableShare = 512
)

// escape returns a key as a part of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func (r *Reviewer) arguments() []string { return []string{"--driver-name=" + r.cluster.Driver} }

// machinePatch completes a VM: it adds the hook, keeps the VM on its node, and forbids hotplug of
// memory and processors. For a hotplug, KubeVirt would move the VM to another pod.
func (r *Reviewer) machinePatch(ctx context.Context, m *instance) ([]operation, error) {
	var patch []operation
	unset, err := r.unset(ctx, m.Spec.EvictionStrategy)
	if err != nil {
		return nil, err
	}
	if unset {
		patch = append(patch, add("/spec/evictionStrategy", "None"))
	}
	if mem := m.Spec.Domain.Memory; mem != nil && mem.Guest != nil && (mem.MaxGuest == nil || mem.MaxGuest.Cmp(*mem.Guest) != 0) {
		patch = append(patch, add("/spec/domain/memory/maxGuest", mem.Guest.String()))
	}
	if cpu := m.Spec.Domain.CPU; cpu != nil && cpu.MaxSockets > max(cpu.Sockets, 1) {
		patch = append(patch, add("/spec/domain/cpu/maxSockets", max(cpu.Sockets, 1)))
	}
	if r.config.API == Plugin {
		return patch, nil
	}
	value, err := r.withHook(m.Annotations[sidecarsKey])
	if err != nil || value == m.Annotations[sidecarsKey] {
		return patch, err
	}
	return append(patch, add("/metadata/annotations/"+escape(sidecarsKey), value)), nil
}

// unset reports whether no user has set this evictionStrategy. KubeVirt writes the cluster's
// strategy into a VM that has none, before or after the webhook reviews the VM.
func (r *Reviewer) unset(ctx context.Context, strategy *string) (bool, error) {
	if strategy == nil || !migrates(*strategy) {
		return strategy == nil, nil
	}
	k, err := r.cluster.kubeVirt(ctx)
	return k != nil && k.Spec.Configuration.EvictionStrategy == *strategy, err
}

// isHook reports whether a container is this driver's hook. It compares the command line, because
// the image may change between the creation of a VM and of its pod.
func (r *Reviewer) isHook(command, args []string) bool {
	return slices.Equal(command, []string{hookProgram}) && slices.Equal(args, r.arguments())
}

// withHook returns the annotation that lists the VM's sidecars. The list has this driver's hook
// exactly once.
func (r *Reviewer) withHook(had string) (string, error) {
	sidecars := []json.RawMessage{}
	if had != "" {
		if err := json.Unmarshal([]byte(had), &sidecars); err != nil {
			return "", fmt.Errorf("annotation %s: %w", sidecarsKey, err)
		}
	}
	for _, s := range sidecars {
		var c struct{ Command, Args []string }
		if json.Unmarshal(s, &c) == nil && r.isHook(c.Command, c.Args) {
			return had, nil
		}
	}
	ours, err := json.Marshal(map[string]any{
		"image": r.config.Image, "imagePullPolicy": r.config.PullPolicy, "command": []string{hookProgram}, "args": r.arguments(),
	})
	if err != nil {
		return "", err
	}
	value, err := json.Marshal(append(sidecars, ours))
	return string(value), err
}

// podPatch adds the claims to a launcher's pod, and mounts them in the containers of QEMU and of
// the hook. It only adds fields: if it rewrote objects, it would lose the fields of later versions
// of Kubernetes.
func (r *Reviewer) podPatch(ctx context.Context, namespace string, pod *corev1.Pod, wanted []annotation.Claim) ([]operation, error) {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == compute })
	if at < 0 {
		return nil, fmt.Errorf("the pod of a VM has no container %s", compute)
	}
	if asked(pod, wanted) {
		return nil, nil
	}
	if err := r.mayStart(ctx, namespace, pod, wanted); err != nil {
		return nil, err
	}
	var volumes []corev1.Volume
	for i, c := range wanted {
		volumes = append(volumes, corev1.Volume{Name: volumeName(i), VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.Name, ReadOnly: c.ReadOnly},
		}})
	}
	patch := extend("/spec/volumes", pod.Spec.Volumes, volumes)
	// KubeVirt creates such a pod only for the scheduler. The pod runs no VM.
	if pod.Annotations[ephemeralKey] == "true" {
		return patch, nil
	}
	mounts := mountsOf(wanted)
	hook, err := r.giveHook(pod, mounts)
	if err != nil {
		return nil, err
	}
	more, err := r.charged(ctx, namespace, wanted)
	if err != nil {
		return nil, err
	}
	return slices.Concat(patch, hook, give(pod, at, mounts), allow(container(at)+"/resources", pod.Spec.Containers[at].Resources, more)), nil
}

// container returns the JSON path of a container in the pod.
func container(at int) string { return fmt.Sprintf("/spec/containers/%d", at) }

// give adds the claims' mounts to a container.
func give(pod *corev1.Pod, at int, mounts []corev1.VolumeMount) []operation {
	return extend(container(at)+"/volumeMounts", pod.Spec.Containers[at].VolumeMounts, mounts)
}

// volumeName returns the name of a claim's volume in the pod. The VM's own volumes are in the same
// list, under names that users choose.
func volumeName(i int) string { return fmt.Sprintf("stargate-claim-%d", i) }

// asked reports whether an earlier review has completed the pod. Such a pod has all claims, and
// QEMU's container mounts them at the driver's paths. A volume's name proves nothing, because users
// name the VM's own volumes. If a user has chosen the driver's name for a volume, the API server
// refuses the pod, because two volumes have one name.
func asked(pod *corev1.Pod, wanted []annotation.Claim) bool {
	for i, c := range wanted {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			p := v.PersistentVolumeClaim
			return v.Name == volumeName(i) && p != nil && p.ClaimName == c.Name
		}) {
			return false
		}
	}
	return pod.Annotations[ephemeralKey] == "true" || slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == compute && mounted(c, wanted)
	})
}

// mounted reports whether a container mounts all claims at the driver's paths. KubeVirt mounts the
// VM's own disks at other paths.
func mounted(c corev1.Container, wanted []annotation.Claim) bool {
	for _, m := range mountsOf(wanted) {
		if !slices.ContainsFunc(c.VolumeMounts, func(had corev1.VolumeMount) bool { return had.Name == m.Name && had.MountPath == m.MountPath }) {
			return false
		}
	}
	return true
}

func mountsOf(wanted []annotation.Claim) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for i, c := range wanted {
		mounts = append(mounts, corev1.VolumeMount{Name: volumeName(i), MountPath: annotation.Folder(c.Name), ReadOnly: c.ReadOnly})
	}
	return mounts
}

// giveHook mounts the claims in the hook's container. With sidecars, KubeVirt has created this
// container from the annotation. With the Plugin, giveHook adds the container. If the operator
// changed from sidecars to the Plugin after a VM was created, the VM has both hooks. KubeVirt then
// waits for both hooks and calls the Plugin's hook last. That hook replaces the devices that the
// sidecar has added.
func (r *Reviewer) giveHook(pod *corev1.Pod, mounts []corev1.VolumeMount) ([]operation, error) {
	var patch []operation
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return r.isHook(c.Command, c.Args) })
	if at >= 0 {
		patch = give(pod, at, mounts)
	}
	if r.config.API != Plugin {
		if at < 0 {
			return nil, fmt.Errorf("the pod of a VM with volumes has no hook: KubeVirt's feature gate Sidecar is not on, or the VM was made " +
				"while the webhook was not there, or for kubevirt.api=plugin: restart the VM")
		}
		return patch, nil
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == pluginSockets }) {
		return nil, fmt.Errorf("the pod of a VM with volumes has no place for sockets of plugins: KubeVirt's feature gate Plugins is not on")
	}
	return append(patch, extend("/spec/containers", pod.Spec.Containers, []corev1.Container{r.pluginSidecar(mounts)})...), nil
}

func (r *Reviewer) pluginSidecar(mounts []corev1.VolumeMount) corev1.Container {
	no, yes, user := false, true, qemu
	folder := pluginFolder + r.config.PluginName
	few := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
	return corev1.Container{
		Name: "stargate-hook", Image: r.config.Image, ImagePullPolicy: corev1.PullPolicy(r.config.PullPolicy),
		Command: []string{hookProgram}, Args: append(r.arguments(), "--socket="+folder+"/hook.sock"),
		Resources: corev1.ResourceRequirements{Requests: few, Limits: few},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		VolumeMounts: append([]corev1.VolumeMount{{Name: pluginSockets, MountPath: folder, SubPath: r.config.PluginName}}, mounts...),
	}
}

// charged returns the size of memory that the kernel may charge to the pod and that KubeVirt does
// not count. This memory is page tables and, in a zone of files, the volumes' pages. The kernel
// charges a page to the pod that touches it first. It charges reserved memory to no pod.
func (r *Reviewer) charged(ctx context.Context, namespace string, wanted []annotation.Claim) (int64, error) {
	total := int64(0)
	for _, c := range wanted {
		p, err := r.cluster.claim(ctx, namespace, c.Name)
		if err != nil {
			return 0, err
		}
		if p == nil {
			continue
		}
		memory, err := r.cluster.memory(ctx, p)
		if err != nil {
			return 0, err
		}
		total += memory / tableShare
		if r.config.ZoneOfFiles {
			total += memory
		}
	}
	return total, nil
}

// allow raises a memory limit. It does not change the memory request, because otherwise the request
// of each pod would count the shared memory again. The exception is a request that equals the
// limit: allow raises both.
func allow(at string, r corev1.ResourceRequirements, more int64) []operation {
	limit, limited := r.Limits[corev1.ResourceMemory]
	if !limited || more == 0 {
		return nil
	}
	request, asked := r.Requests[corev1.ResourceMemory]
	same := asked && request.Cmp(limit) == 0
	limit.Add(*resource.NewQuantity(more, resource.BinarySI))
	patch := []operation{add(at+"/limits/memory", limit.String())}
	if same {
		patch = append(patch, add(at+"/requests/memory", limit.String()))
	}
	return patch
}
