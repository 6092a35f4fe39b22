// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

const keeperSet = "DaemonSet rel-keeper"

// TestKeeper checks the DaemonSet that serves pods' mounts in a zone of files. Its pods run on the
// driver's nodes and can access only the volumes. No upgrade replaces them.
func TestKeeper(t *testing.T) {
	for _, name := range []string{"file", "fuse"} {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, name)
			set := get[*appsv1.DaemonSet](t, r, "rel-keeper")
			equal(t, "the strategy", set.Spec.UpdateStrategy.Type, appsv1.OnDeleteDaemonSetStrategyType)
			pod, driver := podOf(t, r, keeperSet), podOf(t, r, driverSet)
			equal(t, "the node selector", pod.spec.NodeSelector, driver.spec.NodeSelector)
			equal(t, "the tolerations", pod.spec.Tolerations, driver.spec.Tolerations)
			equal(t, "the priority class", pod.spec.PriorityClassName, driver.spec.PriorityClassName)
			account := get[*corev1.ServiceAccount](t, r, pod.spec.ServiceAccountName)
			equal(t, "the pull secrets", len(account.ImagePullSecrets), map[string]int{"file": 0, "fuse": 1}[name])
			check(t, pod.spec.AutomountServiceAccountToken != nil && !*pod.spec.AutomountServiceAccountToken, "it has a token")
			c := container(t, r, keeperSet, "keeper")
			_, limited := c.Resources.Limits[corev1.ResourceMemory]
			check(t, !limited, "the content of volumes is limited")
			check(t, len(c.SecurityContext.Capabilities.Add) == 0, "it has capabilities")
			zone := mounted(c, "/dev/shm/stargate")
			check(t, zone != nil && zone.MountPropagation != nil &&
				*zone.MountPropagation == corev1.MountPropagationHostToContainer, "the zone: %v", zone)
			equal(t, "its mounts", len(c.VolumeMounts), 2)
			// The driver and the keeper mount the same folder for the keeper's socket.
			// The driver's own socket is not in this folder.
			driverName := map[string]string{"file": "stargate.csi.dev", "fuse": "other.example"}[name]
			socket := "/var/lib/kubelet/plugins/" + driverName + "/keeper"
			for what, p := range map[string]map[string]string{"keeper": asText(pod.hostPaths()), "driver": asText(driver.hostPaths())} {
				equal(t, "the folder of the socket in the pod of the "+what, p[socket], "DirectoryOrCreate")
			}
			contains(t, "the driver's flags", container(t, r, driverSet, "driver").Args, "--keeper=unix:///keeper/keeper.sock")
			contains(t, "the keeper's flags", c.Args, "--endpoint=unix:///keeper/keeper.sock", "--zone-dir=/dev/shm/stargate")
			takes(t, "build/csi/stargate-keeper", c.Args, 6)
			policy := get[*networkingv1.NetworkPolicy](t, r, "rel-keeper")
			check(t, len(policy.Spec.Ingress) == 0 && len(policy.Spec.Egress) == 0, "it may use the network: %+v", policy.Spec)
		})
	}
	contains(t, "the keeper's flags", container(t, rendered(t, "fuse"), keeperSet, "keeper").Args, "--workers=8", "--server-memory=1Gi")
	for _, name := range []string{"dax", "none", "memory"} {
		lacks(t, rendered(t, name), "rel-keeper", "--keeper")
	}
	// This is an upgrade with the values of an older chart (--reuse-values).
	older, err := template(set("zone.kind=file", "mount=null", "keeper=null"))
	check(t, err == nil && strings.Contains(older, "--mount=auto") && strings.Contains(older, "--workers=32"), "without the values: %v", err)
	contains(t, "the driver's flags", container(t, rendered(t, "memory"), driverSet, "driver").Args, "--mount=none")
}

func asText[T ~string](all map[string]T) map[string]string {
	texts := map[string]string{}
	for k, v := range all {
		texts[k] = string(v)
	}
	return texts
}

// TestMountRefused checks that the chart refuses a way to mount that does not work with the kind of
// zone, with one line.
func TestMountRefused(t *testing.T) {
	for _, c := range []struct{ kind, mount, words string }{
		{"file", "module", "Set mount to fuse or auto"},
		{"dax", "fuse", "page cache"},
		{"dax", "none", "Set mount to module or auto"},
		{"file", "nfs", "mount"},
	} {
		_, err := template(set("zone.kind="+c.kind, "mount="+c.mount))
		check(t, err != nil && strings.Contains(err.Error(), c.words), "%s, %s: %v", c.kind, c.mount, err)
	}
	for _, wrong := range []string{"keeper.workers=1", "keeper.workers=65", "keeper.serverMemory=64Mi", "keeper.serverMemory=x", "keeper.other=1"} {
		_, err := template(set("zone.kind=file", wrong))
		check(t, err != nil, "%s is accepted", wrong)
	}
}

// TestNotesOfFiles checks that Helm's notes say who can use a zone of files.
func TestNotesOfFiles(t *testing.T) {
	const machinesAlone = "for virtual machines. Pods see no files in them."
	for mount, words := range map[string]string{"auto": "for pods and virtual machines.", "none": machinesAlone} {
		r, err := install(set("zone.kind=file", "mount="+mount))
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(strings.Fields(r.Info.Notes), " ")
		check(t, strings.Contains(notes, words), "mount %s: without %q: %s", mount, words, notes)
		check(t, words == machinesAlone || !strings.Contains(notes, "no files"), "mount %s: %s", mount, notes)
	}
}
