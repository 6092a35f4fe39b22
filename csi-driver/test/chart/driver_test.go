// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func TestDriverPod(t *testing.T) {
	forEachZone(t, func(t *testing.T, r *rendering) {
		driver := container(t, r, driverSet, "driver")
		contains(t, "the driver's flags", driver.Args, "--zone-kind="+r.name)
		// The policies recognize the driver's volumes by this prefix.
		contains(t, "the provisioner's flags", container(t, r, driverSet, "provisioner").Args,
			"--node-deployment", "--strict-topology", "--volume-name-prefix=pvc-stargate.csi.dev--$(NODE_NAME)")
		kubelet := mounted(driver, "/var/lib/kubelet")
		check(t, kubelet != nil && kubelet.MountPropagation != nil &&
			*kubelet.MountPropagation == corev1.MountPropagationBidirectional,
			"the node does not see the driver's mounts: %v", kubelet)
		// A driver on a node without a zone also counts as ready. So no probe uses /readyz.
		for what, probe := range map[string]*corev1.Probe{"alive": driver.LivenessProbe, "ready": driver.ReadinessProbe} {
			check(t, probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Path == "/healthz",
				"whether the driver is %s: %v", what, probe)
		}
		lacks(t, r, "path: /readyz")
	})
}

// TestDriverOptions checks which flags of the driver the chart sets for its values.
func TestDriverOptions(t *testing.T) {
	for _, c := range []struct {
		name, what string
		has        []string
		lacks      []string
	}{
		{"dax", "a zone of reserved memory", []string{"--zone=stargate", "--cluster"},
			[]string{"--zone-dir", "--inline-parameters", "--claim-contents", "--snapshot-dir",
				"- --machines"}}, // no pod has a volume's memory
		{"file", "a zone of files", []string{"--zone-dir=/dev/shm/stargate"}, nil},
		{"group", "a large group in a values file", []string{"--zone-group=1000680000"}, nil},
		// Without allowSuidDev the driver mounts each volume with nosuid and nodev.
		{"more", "splice allowed", []string{"--allow-host-splice"}, []string{"--allow-suid-dev", "--gone-zone"}},
		{"more", "another name of the driver", []string{"--driver-name=other.example",
			"--kubelet-endpoint=/var/lib/kubelet/plugins/other.example/csi.sock"}, nil},
		{"gone", "zones that are lost", []string{"--gone-zone=0123456789abcdef", "--gone-zone=1111222233334444"}, nil},
		{"datasets", "data sets", []string{"--datasets", "--no-inline-volumes", "--dataset-host=*.models.example", "--dataset-host=registry.example",
			"--dataset-quota=64Gi", "--dataset-namespace-quota=16Gi", "--dataset-grace=1h"}, nil},
		{"dax", "no data sets", []string{"--no-inline-volumes"}, []string{"--dataset"}},
		{"inline", "all inline volumes", nil, []string{"--no-inline-volumes", "--dataset"}},
		{"suid", "setuid programs allowed", []string{"--allow-suid-dev"}, nil},
		{"snapshots", "a folder of snapshots", []string{"--snapshot-dir=/var/lib/snapshots", "--claim-contents"}, nil},
		{"inline", "parameters of inline volumes", []string{"--inline-parameters=lease=never,rootOwner=1000:107"}, nil},
		{"owner", "a large owner", []string{"--inline-parameters=rootOwner=1000640000:4294967294"}, nil},
		{"bare", "no metrics, and no access to the cluster", nil, []string{"livenessProbe", "readinessProbe", "--cluster"}},
		{"sidecar", "machines by sidecars", []string{"--machines"}, []string{"--node-hooks"}},
		{"plugin", "machines by a Plugin", []string{"--machines", "--node-hooks=unix:///hooks/other.example.sock"}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := rendered(t, c.name)
			contains(t, "the driver's flags", container(t, r, driverSet, "driver").Args, c.has...)
			lacks(t, r, c.lacks...)
		})
	}
}

// TestDriverTakesItsFlags checks that the real program parses the flags, and that its check of the
// configuration accepts them.
func TestDriverTakesItsFlags(t *testing.T) {
	for _, name := range []string{"dax", "file", "none", "group", "more", "gone", "suid", "snapshots", "inline", "datasets", "owner",
		"bare", "sidecar", "plugin", "memory", "fuse"} {
		t.Run(name, func(t *testing.T) {
			args := container(t, rendered(t, name), driverSet, "driver").Args
			takes(t, "build/csi/stargate-csi", args, 6)
			var flags []string
			for _, a := range args {
				if !strings.HasPrefix(a, "-v=") { // a flag of the logger
					flags = append(flags, strings.ReplaceAll(a, "$(NODE)", "node-a"))
				}
			}
			err := driverTakes(flags)
			check(t, err == nil, "%q: %v", flags, err)
		})
	}
	t.Run("beside the resizer", func(t *testing.T) {
		takes(t, "build/csi/stargate-csi", container(t, rendered(t, "dax"), "Deployment rel-resizer", "csi").Args, 6)
	})
}

// takes runs a program with the given flags. The program prints its version if it accepts the
// flags.
func takes(t *testing.T, program string, args []string, least int) {
	t.Helper()
	check(t, len(args) >= least, "%s has few flags: %q", program, args)
	said, err := run(program, append(slices.Clone(args), "--version")...)
	check(t, err == nil, "%s %q: %v: %s", program, args, err, said)
}

func TestModule(t *testing.T) {
	for _, c := range []struct {
		name, what string
		has, lacks []string
	}{
		{"dax", "built if the node lacks it", []string{"/usr/local/bin/stargate-module", "--build=true"}, nil},
		{"load", "loaded, and never built", []string{"--build=false"}, []string{"--prebuilt"}},
		{"nodes", "only modules of the nodes", []string{"--prebuilt=", "--build=true"}, nil},
		{"file", "no module for a zone of files", nil, []string{"stargate-module"}},
		{"none", "no module without a zone", nil, []string{"stargate-module"}},
		{"own", "the operator loads it", nil, []string{"stargate-module"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := rendered(t, c.name)
			if c.has != nil {
				contains(t, "the command", container(t, r, driverSet, "module").Command, c.has...)
			}
			lacks(t, r, c.lacks...)
			_, whole := podOf(t, r, driverSet).hostPaths()["/"]
			check(t, whole == (c.has != nil), "the pod mounts the root directory of the node: %v", whole)
		})
	}
}

// TestFoldersOfTheNode checks that the driver mounts only those folders of the node that its kind
// of zone needs.
func TestFoldersOfTheNode(t *testing.T) {
	t.Run("a zone of files", func(t *testing.T) {
		r := rendered(t, "file")
		driver := container(t, r, driverSet, "driver")
		zone := mounted(driver, "/dev/shm/stargate")
		check(t, zone != nil && zone.Name == "zone" && zone.MountPropagation != nil &&
			*zone.MountPropagation == corev1.MountPropagationHostToContainer, "the zone: %v", zone)
		check(t, mounted(driver, "/dev") == nil, "the driver has all devices")
		lacks(t, r, "mountPath: /dev}")
	})
	t.Run("snapshots", func(t *testing.T) {
		equal(t, "the folder's type", podOf(t, rendered(t, "snapshots"), driverSet).hostPaths()["/var/lib/snapshots"],
			"DirectoryOrCreate")
	})
	t.Run("plugins of KubeVirt", func(t *testing.T) {
		equal(t, "the folder's type",
			podOf(t, rendered(t, "plugin"), driverSet).hostPaths()["/var/run/kubevirt/plugins"], "DirectoryOrCreate")
		lacks(t, rendered(t, "dax"), "/var/run/kubevirt")
	})
	t.Run("another name of the driver", func(t *testing.T) {
		equal(t, "the folder's type",
			podOf(t, rendered(t, "more"), driverSet).hostPaths()["/var/lib/kubelet/plugins/other.example"],
			"DirectoryOrCreate")
	})
}

// TestMemoryLimit checks the driver's memory limit. In a zone of files there is no limit, because
// the kernel charges the files to the driver.
func TestMemoryLimit(t *testing.T) {
	limits := container(t, rendered(t, "dax"), driverSet, "driver").Resources.Limits
	equal(t, "the limit with reserved memory", limits.Memory().String(), "256Mi")
	_, limited := container(t, rendered(t, "file"), driverSet, "driver").Resources.Limits[corev1.ResourceMemory]
	check(t, !limited, "a zone of files is limited")
	lacks(t, rendered(t, "file"), "memory: 256Mi")
}

func TestImage(t *testing.T) {
	r := rendered(t, "more")
	digest := "localhost/stargate-csi@sha256:" + strings.Repeat("0", 64)
	for _, p := range pods(r) {
		for _, c := range p.all() {
			if c.Name != "provisioner" {
				equal(t, "the image of "+p.owner+", "+c.Name, c.Image, digest)
			}
		}
	}
	snapshotter := container(t, rendered(t, "snapshots"), driverSet, "snapshotter")
	check(t, strings.Contains(snapshotter.Image, "/csi-snapshotter:v"), "the snapshotter is %s", snapshotter.Image)
	lacks(t, r, "csi-resizer") // the option is off by default
}

// TestPullSecrets checks that each pod has the secrets, directly or by its service account.
func TestPullSecrets(t *testing.T) {
	r := rendered(t, "more")
	secrets := []corev1.LocalObjectReference{{Name: "secret"}}
	for _, p := range pods(r) {
		has := p.spec.ImagePullSecrets
		if p.spec.ServiceAccountName != "" {
			has = append(has, get[*corev1.ServiceAccount](t, r, p.spec.ServiceAccountName).ImagePullSecrets...)
		}
		equal(t, "the secrets of "+p.owner, has, secrets)
	}
	// These are four service accounts (of the driver and three Jobs), and the pod of helm test,
	// which has no account.
	equal(t, "places that name the secret", strings.Count(r.text, "- name: secret\n"), 5)
}

func TestCSIDriver(t *testing.T) {
	forEachZone(t, func(t *testing.T, r *rendering) {
		equal(t, "fsGroupPolicy", *get[*storagev1.CSIDriver](t, r, "stargate.csi.dev").Spec.FSGroupPolicy,
			storagev1.NoneFSGroupPolicy)
	})
	for name, want := range map[string][]storagev1.VolumeLifecycleMode{
		"dax":    {storagev1.VolumeLifecyclePersistent},
		"inline": {storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
		// A pod names a data set by an inline volume.
		"datasets": {storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
	} {
		is := get[*storagev1.CSIDriver](t, rendered(t, name), "stargate.csi.dev")
		equal(t, name+": modes", is.Spec.VolumeLifecycleModes, want)
		profile := map[string]string{"inline": "privileged", "datasets": "restricted"}[name]
		equal(t, name+": profile", is.Labels["security.openshift.io/csi-ephemeral-volume-profile"], profile)
	}
	lacks(t, rendered(t, "dax"), "csi-ephemeral-volume-profile")
}
