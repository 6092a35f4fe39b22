// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestPrivileges checks that only the driver is privileged, and that no pod has the node's network
// or processes.
func TestPrivileges(t *testing.T) {
	for name := range renderings {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, name)
			var privileged []string
			for _, p := range pods(r) {
				check(t, !p.spec.HostNetwork && !p.spec.HostPID && !p.spec.HostIPC, "%s has a namespace of the node", p.owner)
				for _, c := range p.all() {
					if confined(t, p.owner+", "+c.Name, c.SecurityContext) {
						privileged = append(privileged, p.owner+", "+c.Name)
					}
				}
			}
			equal(t, "privileged", privileged, []string{driverSet + ", driver"})
			lacks(t, r, "hostNetwork: true", "hostPID")
			equal(t, "containers that are privileged", strings.Count(r.text, "privileged: true"), 1)
		})
	}
}

// confined checks a security context, and reports whether it is privileged.
func confined(t *testing.T, who string, s *corev1.SecurityContext) bool {
	t.Helper()
	check(t, s != nil, "%s has no security context", who)
	if s == nil {
		return false
	}
	check(t, s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem, "%s can write to its root file system", who)
	if s.Privileged != nil && *s.Privileged {
		return true
	}
	check(t, s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation, "%s may gain privileges", who)
	check(t, s.Capabilities != nil && slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}),
		"%s keeps capabilities", who)
	return false
}

// TestContainers checks that the chart has exactly these containers.
func TestContainers(t *testing.T) {
	usual := []string{driverSet + ", driver", driverSet + ", provisioner", "Deployment rel-resizer, csi",
		"Deployment rel-resizer, resizer", "Job rel-csi-machines, machines", "Job rel-csi-volumes, volumes",
		"Job rel-csi-nodes, nodes", "Pod rel-csi-test, test"}
	module := driverSet + ", module"
	for name, more := range map[string][]string{
		"dax": {module}, "file": {keeperSet + ", keeper"}, "memory": nil, "none": nil,
		"snapshots": {module, driverSet + ", snapshotter", "Job rel-csi-volumes, snapshots"},
	} {
		r := rendered(t, name)
		var containers []string
		for _, p := range pods(r) {
			for _, c := range p.all() {
				containers = append(containers, p.owner+", "+c.Name)
			}
		}
		equal(t, name+": containers", sorted(containers), sorted(slices.Concat(usual, more)))
		equal(t, name+": containers with a read-only root",
			strings.Count(r.text, "readOnlyRootFilesystem: true"), len(containers))
	}
}

// TestPlacement checks where pods may run. Only the driver tolerates every taint: a Job or
// Deployment must not run on a dead node. All pods need an amd64 processor.
func TestPlacement(t *testing.T) {
	platform := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	once := []corev1.Toleration{
		{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
		{Key: "stargate.csi.dev/not-ready", Operator: corev1.TolerationOpExists},
	}
	t.Run("by default", func(t *testing.T) {
		all := pods(rendered(t, "dax"))
		equal(t, "pods", len(all), 6)
		for _, p := range all {
			equal(t, "node selector of "+p.owner, p.spec.NodeSelector, platform)
			tolerates := once
			if p.owner == driverSet {
				tolerates = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}
			equal(t, "tolerations of "+p.owner, p.spec.Tolerations, tolerates)
		}
	})
	t.Run("as the operator says", func(t *testing.T) {
		all := pods(rendered(t, "placed"))
		equal(t, "pods", len(all), 6)
		chosen := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "pool": "fast"}
		for _, p := range all {
			on := platform // pods that serve the whole cluster ignore the operator's selector
			if p.owner == driverSet || strings.HasPrefix(p.owner, "Pod ") {
				on = chosen
			}
			equal(t, "node selector of "+p.owner, p.spec.NodeSelector, on)
			more := slices.ContainsFunc(p.spec.Tolerations, func(o corev1.Toleration) bool { return o.Key == "storage-only" })
			check(t, more == (p.owner != driverSet), "%s tolerates storage-only: %v", p.owner, more)
		}
	})
	t.Run("the webhook", func(t *testing.T) {
		webhook := podOf(t, rendered(t, "plugin"), "Deployment rel-webhook")
		equal(t, "node selector", webhook.spec.NodeSelector, platform)
		equal(t, "tolerations", webhook.spec.Tolerations, []corev1.Toleration{{Key: "machines-only"}})
		equal(t, "priority class", webhook.spec.PriorityClassName, "system-cluster-critical")
		lacks(t, rendered(t, "dax"), "system-cluster-critical")
	})
}

// TestCommonLabels checks that each object and each pod has the common labels.
func TestCommonLabels(t *testing.T) {
	r := rendered(t, "more")
	for _, o := range r.objects {
		equal(t, "label owner of "+o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName(), o.GetLabels()["owner"], "all")
	}
	for _, p := range pods(r) {
		equal(t, "label owner of the pods of "+p.owner, p.labels["owner"], "all")
	}
}

// TestNetwork checks that the policies allow pods to reach the ports of the API server, and DNS.
func TestNetwork(t *testing.T) {
	for name, want := range map[string]struct {
		policies int
		ports    []int32
	}{
		"dax":     {2, []int32{443, 6443, 8443, 16443, 53, 53, 5353, 5353}},
		"sidecar": {4, []int32{7443, 443, 53, 53, 5353, 5353}},
		// The driver fetches data sets from port 5000, too; the resizer does not.
		"datasets": {3, []int32{443, 6443, 8443, 16443, 53, 53, 5353, 5353, 5000}},
	} {
		r := rendered(t, name)
		var wanted []intstr.IntOrString
		for _, port := range want.ports {
			wanted = append(wanted, intstr.FromInt32(port))
		}
		policies := list[*networkingv1.NetworkPolicy](r)
		equal(t, name+": policies", len(policies), want.policies)
		for _, p := range policies {
			equal(t, name+": types of "+p.Name, p.Spec.PolicyTypes,
				[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress})
			if p.Name == "rel-keeper" {
				continue // the keeper may reach nothing (TestKeeper)
			}
			var ports []intstr.IntOrString // a number in quotes would be a name
			for _, e := range p.Spec.Egress {
				for _, port := range e.Ports {
					ports = append(ports, *port.Port)
				}
			}
			if name == "datasets" && p.Name != "rel-csi" {
				wanted := wanted[:len(wanted)-1]
				equal(t, name+": ports that pods of "+p.Name+" reach", ports, wanted)
				continue
			}
			equal(t, name+": ports that pods of "+p.Name+" reach", ports, wanted)
		}
	}
	lacks(t, rendered(t, "sidecar"), "port: 16443}")
}

// TestNothingElse checks that options that are off by default add no objects.
func TestNothingElse(t *testing.T) {
	forEachZone(t, func(t *testing.T, r *rendering) {
		for _, kind := range []string{"PodMonitor", "PrometheusRule", "ConfigMap"} {
			check(t, !slices.Contains(kinds(r), kind), "there is a %s", kind)
		}
		lacks(t, r, "kind: PodMonitor", "kind: PrometheusRule", "kind: ConfigMap", "snapshot",
			"WebhookConfiguration", "stargate-webhook", "name: rel-webhook")
	})
}
