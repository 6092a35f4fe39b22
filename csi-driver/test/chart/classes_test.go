// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

func TestStorageClasses(t *testing.T) {
	forEachZone(t, func(t *testing.T, r *rendering) {
		class := get[*storagev1.StorageClass](t, r, "stargate")
		equal(t, "volumeBindingMode", *class.VolumeBindingMode, storagev1.VolumeBindingWaitForFirstConsumer)
		equal(t, "provisioner", class.Provisioner, "stargate.csi.dev")
		check(t, class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion, "volumes cannot grow")
		equal(t, "default", class.Annotations["storageclass.kubernetes.io/is-default-class"], "")
	})
	t.Run("as the operator says", func(t *testing.T) {
		class := get[*storagev1.StorageClass](t, rendered(t, "more"), "fast")
		equal(t, "default", class.Annotations["storageclass.kubernetes.io/is-default-class"], "true")
		equal(t, "parameters", class.Parameters, map[string]string{"alignment": "1Gi"})
		equal(t, "provisioner", class.Provisioner, "other.example")
		owned := get[*storagev1.StorageClass](t, rendered(t, "owner"), "a")
		equal(t, "the owner of a volume", owned.Parameters, map[string]string{"rootOwner": "1000640000:1000640000"})
		equal(t, "mount options", get[*storagev1.StorageClass](t, rendered(t, "suid"), "a").MountOptions, []string{"suid"})
	})
	t.Run("none", func(t *testing.T) {
		check(t, !slices.Contains(kinds(rendered(t, "bare")), "StorageClass"), "there is one")
		lacks(t, rendered(t, "bare"), "kind: StorageClass")
	})
}

func TestSnapshotClass(t *testing.T) {
	type class struct {
		Metadata struct {
			Name        string
			Annotations map[string]string
		}
		Driver, DeletionPolicy string
		Parameters             map[string]string
	}
	r := rendered(t, "snapshots")
	held := other[class](t, r, "VolumeSnapshotClass")
	equal(t, "name", held.Metadata.Name, "held")
	equal(t, "driver", held.Driver, "stargate.csi.dev")
	equal(t, "deletionPolicy", held.DeletionPolicy, "Retain")
	equal(t, "parameters", held.Parameters, map[string]string{"snapshotTarget": "either"})
	equal(t, "default", held.Metadata.Annotations["snapshot.storage.kubernetes.io/is-default-class"], "true")
	// Each node creates and deletes its own snapshots.
	contains(t, "the snapshotter's flags", container(t, r, driverSet, "snapshotter").Args, "--node-deployment")
	contains(t, "the provisioner's flags", container(t, r, driverSet, "provisioner").Args, "--node-deployment")
	equal(t, "flags --node-deployment", strings.Count(r.text, "--node-deployment"), 2)
}

// TestRefusedValues checks that the schema or a template refuses each of these values.
func TestRefusedValues(t *testing.T) {
	class := func(pair string) []string {
		return []string{"storageClasses[0].name=a", "storageClasses[0]." + pair}
	}
	snapshots := func(pair string) []string {
		return []string{"snapshotClasses[0].name=a", "snapshotClasses[0]." + pair}
	}
	for _, c := range []struct {
		words  string
		values []string
	}{
		{"zones", []string{"zones.kind=dax"}},
		{"kind", []string{"zone.kind=disk"}},
		{"/module/prebuilt", []string{"module.prebuilt=maybe"}},
		{"goneZones", []string{"goneZones[0]=v@0123456789abcdef"}},
		{"allowSuidDev", class("mountOptions[0]=suid")},
		{"allowSuidDev", class(`mountOptions[0]=noatime\,dev`)},
		{"rootMode", []string{"inlineVolumes.parameters.rootMode=0777"}},
		{"rootOwner", []string{"inlineVolumes.parameters.rootOwner=12345678901:0"}},
		{"runbooks", []string{"metrics.rules.runbooks=docs/operate/kubernetes.md"}},
		{"podSecurity", []string{"inlineVolumes.podSecurity=none"}},
		{"propertyName 'app.kubernetes.io/name'", []string{`commonLabels.app\.kubernetes\.io/name=other`}},
		{"replicas", class("parameters.replicas=3")},
		{"alignment", class("parameters.alignment=4Ki")},
		{"deletionPolicy", snapshots("deletionPolicy=Never")},
		{"snapshotTarget", snapshots("parameters.snapshotTarget=disk")},
		{"snapshotDir", []string{"zone.snapshotDir=snapshots"}},
		{"snapshotter", []string{"sidecars.snapshotter.on=true"}},
		{"digest", []string{"image.digest=latest"}},
		{"kubeletDir", []string{"kubeletDir=kubelet"}},
		{"size", []string{"zone.size=much"}},
		{"manage", []string{"module.manage=always"}},
		{"refuseWithVolumes", []string{"uninstall.refuseWithVolumes=maybe"}},
		{"api", []string{"kubevirt.enabled=true", "kubevirt.api=both"}},
		{"issuer", []string{"kubevirt.enabled=true", "kubevirt.webhook.certManager.enabled=true"}},
		{"sidecars", []string{"kubevirt.sidecars=1"}},
		{"tolerations", []string{"kubevirt.webhook.tolerations=all"}},
		{"driverName", []string{"driverName=Not_A_Name"}},
		{"driverName", []string{"driverName=a--b.example"}}, // two dashes separate the driver's name from the rest of a volume's name
		{"driverName", []string{"driverName=stargate"}},     // a webhook's name must have three parts
		{"onceTolerations", []string{"onceTolerations=all"}},
		{"apiServerPorts", []string{"apiServerPorts={https}"}},
		{"apiServers", []string{"kubevirt.webhook.apiServers={192.0.2.1}"}},
		{"apiServers", []string{"kubevirt.webhook.apiServers={api.example/32}"}},
		{"apiServerPorts", []string{"apiServerPorts={}"}},
	} {
		t.Run(strings.Join(c.values, " "), func(t *testing.T) {
			_, err := template(set(c.values...))
			check(t, err != nil && strings.Contains(err.Error(), c.words), "refused without %q: %v", c.words, err)
		})
	}
}

func TestOldKubernetes(t *testing.T) {
	_, err := template(settings{kube: "1.30.9"})
	check(t, err != nil && strings.Contains(err.Error(), "incompatible with Kubernetes v1.30.9"), "taken: %v", err)
}
