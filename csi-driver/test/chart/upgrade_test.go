// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/cli/values"
)

// upgrade is an upgrade of the release in a cluster with the given objects.
type upgrade struct {
	what    string
	objects []string
	values  string // values for --set, separated by spaces
	refused string // words of the refusal; empty: Helm accepts the upgrade
}

func tryUpgrades(t *testing.T, apis []string, all []upgrade) {
	t.Helper()
	for _, u := range all {
		t.Run(u.what, func(t *testing.T) {
			_, err := template(settings{values: values.Options{Values: strings.Fields(u.values)},
				server: answering(t, u.objects), upgrade: true, apis: apis})
			if u.refused == "" {
				check(t, err == nil, "%s: refused: %v", u.values, err)
				return
			}
			check(t, err != nil && strings.Contains(err.Error(), u.refused), "%s: without %q: %v", u.values, u.refused, err)
		})
	}
}

// next is an ordinary upgrade.
const next = "image.tag=next"

// hooked is a webhook of the release.
const hooked = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: rel-webhook}}`

func machine(kind, name, metadata, spec string) string {
	return fmt.Sprintf("{apiVersion: kubevirt.io/v1, kind: %s, metadata: {name: %s, namespace: a%s}, spec: {%s}}",
		kind, name, metadata, spec)
}

var machines = []string{
	machine("VirtualMachine", "stopped", "", "template: {metadata: {annotations: {stargate.csi.dev/volumes: data}}}"),
	machine("VirtualMachineInstance", "alone", ", annotations: {stargate.csi.dev/volumes: data}", ""),
}

// plain has VMs without volumes.
var plain = []string{
	machine("VirtualMachine", "plain", "", "template: {metadata: {annotations: {other: x}}}"),
	machine("VirtualMachineInstance", "plain", "", ""),
}

// TestTurningMachinesOff checks that KubeVirt cannot be turned off while VMs name volumes. KubeVirt
// would start these VMs without their volumes.
func TestTurningMachinesOff(t *testing.T) {
	both := slices.Concat([]string{hooked}, machines, plain)
	tryUpgrades(t, []string{"kubevirt.io/v1"}, []upgrade{
		{"machines name volumes", both, next, "2 VMs or types of VMs name volumes (a/stopped, a/alone)"},
		{"KubeVirt stays on", both, "kubevirt.enabled=true", ""},
		{"the operator insists", both, "kubevirt.leaveMachines=true", ""},
		{"machines of another release", slices.Concat(machines, plain), next, ""},
		{"no machine has volumes", slices.Concat([]string{hooked}, plain), next, ""},
	})
	tryUpgrades(t, []string{"v1"}, []upgrade{{"KubeVirt has gone", []string{hooked}, next, ""}})
}

// TestKeeperStays checks that an upgrade does not remove the keeper, because the mounts of running
// pods would end.
func TestKeeperStays(t *testing.T) {
	of := func(name string) []string {
		return []string{"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: " + name + ", namespace: ns}}"}
	}
	const file = next + " zone.kind=file"
	tryUpgrades(t, []string{"v1"}, []upgrade{
		{"no pod would have a mount", of("rel-keeper"), file + " mount=none", "keeper.endMounts=true"},
		{"the zone would be another one", of("rel-keeper"), next + " zone.kind=dax", "DaemonSet rel-keeper"},
		{"the operator insists", of("rel-keeper"), file + " mount=none keeper.endMounts=true", ""},
		{"values of an older chart", of("rel-keeper"), file + " mount=none keeper=null", "keeper.endMounts=true"},
		{"the keeper stays", of("rel-keeper"), file, ""},
		{"there is no keeper", of("other-keeper"), file + " mount=none", ""},
	})
}

// TestZoneStays checks that an upgrade does not change the kind of zone while volumes exist. The
// driver would not find them.
func TestZoneStays(t *testing.T) {
	driver := func(kind string) string {
		return "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: rel-csi, namespace: ns}, spec: {template: {spec: {containers: [" +
			"{name: driver, args: [--node=n, --zone-kind=" + kind + "]}, {name: csi-provisioner}]}}}}"
	}
	volume := func(name, of string) string {
		return "{apiVersion: v1, kind: PersistentVolume, metadata: {name: " + name + "}, spec: {csi: {driver: " + of + "}}}"
	}
	local := "{apiVersion: v1, kind: PersistentVolume, metadata: {name: local}, spec: {hostPath: {path: /x}}}"
	ours := []string{volume("a", "stargate.csi.dev"), volume("b", "other.example"), local, volume("c", "stargate.csi.dev")}
	tryUpgrades(t, []string{"v1"}, []upgrade{
		{"the kind has another default", append(ours, driver("dax")), next, "changes zone.kind from dax to file, and the driver would no longer find 2 volumes (a, c). Set zone.kind=dax"},
		{"files become memory", append(ours, driver("file")), next + " zone.kind=dax", "Set zone.kind=file"},
		{"no zone", append(ours, driver("file")), next + " zone.kind=none", "Set zone.kind=file"},
		{"the same kind", append(ours, driver("dax")), next + " zone.kind=dax", ""},
		{"there was no zone", append(ours, driver("none")), next, ""},
		{"volumes of other drivers", []string{driver("dax"), local, volume("b", "other.example")}, next, ""},
		{"there is no driver", ours, next, ""},
	})
}

// TestTypesOfMachines checks types of VMs, whose annotations a VM gets when it starts. KubeVirt
// serves types in one or both of these versions.
func TestTypesOfMachines(t *testing.T) {
	for _, version := range []string{"instancetype.kubevirt.io/v1", "instancetype.kubevirt.io/v1beta1"} {
		apis := []string{"kubevirt.io/v1"}
		for _, kind := range []string{"VirtualMachineInstancetype", "VirtualMachineClusterInstancetype",
			"VirtualMachinePreference", "VirtualMachineClusterPreference"} {
			of := func(name, annotation string) string {
				return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: {annotations: {%s}}}",
					version, kind, name, annotation)
			}
			apis = append(apis, version+"/"+kind)
			without := slices.Concat([]string{hooked}, plain, []string{of("plain", "other: x")})
			with := append(slices.Clone(without), of("large", "stargate.csi.dev/volumes: data"))
			t.Run(version+" "+kind, func(t *testing.T) {
				tryUpgrades(t, apis, []upgrade{
					{"the type names no volumes", without, next, ""},
					{"the type names volumes", with, next, "1 VMs or types of VMs name volumes (" + kind + " large)"},
					{"the operator insists", with, "kubevirt.leaveMachines=true", ""},
				})
			})
		}
	}
}

// TestAnotherDriverName checks that the driver's name cannot change. Otherwise volumes would have
// no driver, and VMs no webhooks. Objects of other releases do not count.
func TestAnotherDriverName(t *testing.T) {
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		there := []string{fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: %s, metadata: {name: rel-webhook},
			webhooks: [{name: machines.our.example}, {name: launchers.our.example}]}`, kind)}
		t.Run(kind, func(t *testing.T) {
			tryUpgrades(t, []string{"v1"}, []upgrade{
				{"without machines", there, next, "driverName=our.example"},
				{"with machines", there, next + " kubevirt.enabled=true", "driverName=our.example"},
				{"the same name", there, next + " kubevirt.enabled=true driverName=our.example", ""},
			})
		})
	}
	of := func(release, namespace, driver string) string {
		return fmt.Sprintf(`{apiVersion: storage.k8s.io/v1, kind: CSIDriver, spec: {volumeLifecycleModes: [Persistent]}, metadata: {name: %s,
			labels: {app.kubernetes.io/name: stargate-csi, app.kubernetes.io/instance: %s}, annotations: {meta.helm.sh/release-namespace: %s}}}`,
			driver, release, namespace)
	}
	ours := []string{of("rel", "ns", "our.example")}
	tryUpgrades(t, []string{"v1"}, []upgrade{
		{"the driver is there", ours, next, "driverName=our.example"},
		{"the driver has the same name", ours, next + " driverName=our.example", ""},
		{"drivers of other releases", []string{of("other", "ns", "our.example"), of("rel", "elsewhere", "their.example"),
			of("rel", "ns", "stargate.csi.dev")}, next, ""},
	})
}

// TestInlineVolumesOfACSIDriver checks changes of inline volumes in an upgrade. Kubernetes does not
// allow a change of this field of a CSIDriver.
func TestInlineVolumesOfACSIDriver(t *testing.T) {
	there := func(modes string) []string {
		return []string{"{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: stargate.csi.dev}, spec: {volumeLifecycleModes: [" +
			modes + "]}}"}
	}
	tryUpgrades(t, []string{"v1"}, []upgrade{
		{"off, and they were on", there("Persistent, Ephemeral"), next, "kubectl delete csidriver stargate.csi.dev"},
		{"on, and they were on", there("Persistent, Ephemeral"), "inlineVolumes.enabled=true", ""},
		{"on, and they were off", there("Persistent"), "inlineVolumes.enabled=true", "has inline volumes off"},
		{"off, and they were off", there("Persistent"), next, ""},
		{"data sets, and they were off", there("Persistent"), "datasets.enabled=true", "kubectl delete csidriver stargate.csi.dev"},
		{"data sets, and they were on", there("Persistent, Ephemeral"), "datasets.enabled=true", ""},
	})
}

// TestExistingStorageClass checks changes of classes in an upgrade. Kubernetes does not allow
// changes of a class's parameters and reclaim policy.
func TestExistingStorageClass(t *testing.T) {
	there := func(more string) []string {
		return []string{"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: stargate.csi.dev, " + more + "}"}
	}
	fast := "storageClasses[0].name=fast"
	leased := there(`reclaimPolicy: Delete, parameters: {lease: "30", rootMode: "0770"}`)
	mode := fast + " storageClasses[0].parameters.rootMode=0770"
	kept := there("reclaimPolicy: Retain")
	tryUpgrades(t, []string{"v1"}, []upgrade{
		{"without a parameter", leased, mode, "has another parameters.lease. "},
		{"without two", leased, fast, "has another parameters.lease, parameters.rootMode. "},
		{"the refusal names the remedy", leased, mode + " storageClasses[0].parameters.label=x", "kubectl delete storageclass fast"},
		{"another class", leased, "storageClasses[0].name=slow", ""},
		{"another reclaim policy", kept, fast, "has another reclaimPolicy. "},
		{"the same reclaim policy", kept, fast + " storageClasses[0].reclaimPolicy=Retain", ""},
		{"the same parameters", there(`reclaimPolicy: Delete, parameters: {alignment: 1Gi, rootOwner: "0:107"}`), fast +
			" storageClasses[0].parameters.alignment=1Gi storageClasses[0].parameters.rootOwner=0:107", ""},
	})
}
