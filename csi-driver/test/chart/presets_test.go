// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/cli/values"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestPresets checks that the chart renders with each preset, and that the values of a preset reach
// the driver's pods.
func TestPresets(t *testing.T) {
	files, err := filepath.Glob(folder + "/presets/*.yaml")
	check(t, err == nil && len(files) == len(presetPaths), "%v, %v", err, files)
	install, err := os.ReadFile(home + "/docs/operate/install.md")
	check(t, err == nil, "%v", err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			renderings["preset-"+name] = settings{values: values.Options{ValueFiles: []string{file}}}
			r := rendered(t, "preset-"+name)
			want := presetPaths[name]
			check(t, folderOf(podOf(t, r, driverSet), "kubelet") == want[0], "kubelet's folder is not %s", want[0])
			for _, set := range []string{driverSet, keeperSet} {
				check(t, folderOf(podOf(t, r, set), "zone") == want[1], "%s: the zone's folder is not %s", set, want[1])
			}
			check(t, strings.Contains(string(install), "presets/"+name+".yaml"), "docs/operate/install.md does not name the preset %s", name)
		})
	}
}

// presetPaths has, for each preset, the folders of kubelet and of the zone.
var presetPaths = map[string][2]string{
	"k0s":       {"/var/lib/k0s/kubelet", "/dev/shm/stargate"},
	"k3s":       {"/var/lib/kubelet", "/dev/shm/stargate"},
	"kind":      {"/var/lib/kubelet", "/run/stargate"},
	"kubeadm":   {"/var/lib/kubelet", "/dev/shm/stargate"},
	"microk8s":  {"/var/snap/microk8s/common/var/lib/kubelet", "/dev/shm/stargate"},
	"minikube":  {"/var/lib/kubelet", "/run/stargate"},
	"openshift": {"/var/lib/kubelet", "/dev/shm/stargate"},
}

// folderOf returns the path on the node of a volume of the pod.
func folderOf(p pod, volume string) string {
	for _, v := range p.spec.Volumes {
		if v.Name == volume && v.HostPath != nil {
			return v.HostPath.Path
		}
	}
	return ""
}

// TestOpenShift checks that the pods of the nodes may use the constraint `privileged`, and that the
// other pods let OpenShift choose their user IDs. In other clusters there is no such binding.
func TestOpenShift(t *testing.T) {
	r := rendered(t, "openshift")
	b := get[*rbacv1.RoleBinding](t, r, "rel-csi-privileged")
	equal(t, "the role", b.RoleRef, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:openshift:scc:privileged"})
	allowed := map[string]bool{}
	for _, s := range b.Subjects {
		equal(t, "the namespace of "+s.Name, s.Namespace, "ns")
		allowed[s.Name] = true
	}
	for _, p := range pods(r) {
		nodes := false
		for _, v := range p.spec.Volumes {
			nodes = nodes || v.HostPath != nil
		}
		equal(t, p.owner+" may use the constraint", allowed[p.spec.ServiceAccountName], nodes)
		if c := p.spec.SecurityContext; !nodes && c != nil && p.owner != "Pod rel-csi-test" {
			check(t, c.RunAsUser == nil && c.RunAsGroup == nil, "%s has a fixed user", p.owner)
			check(t, *c.RunAsNonRoot && c.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "%s may run as root", p.owner)
		}
	}
	lacks(t, rendered(t, "file"), "openshift")
}
