# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Paths and clients of the cluster, for scripts that source this file.
# shellcheck disable=SC2016,SC2034 # used by other scripts; text for other shells

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=$(cd "$here/../.." && pwd)
# shellcheck source=versions.env
source "$home/versions.env"

work=$home/build/cluster
run=$work/run       # files of this run, which are removed with the cluster
logs=$work/logs     # the output of each program in the last run
images=${CLUSTER_IMAGES:-$work/images} # archives of images
node=n1
# Each checkout has its own control group, because kubelet ends all pods in it that it does not
# know.
cgroup=stargate-cluster-$(cksum <<<"$home" | cut -d' ' -f1)
address=10.244.0.1   # the address of the node and of the API server
service=10.96.0.1    # the address of the API's service for pods
zone_bytes=$((${ZONE_MIB:-1024} << 20))

# The second node, if requested: a VM of the rig with reserved memory and a kernel that accepts our
# module. There the zone is reserved memory.
vm=n2
vm_address=10.244.0.2
vm_kernel=$KERNEL_DEFAULT
with_vm() { [[ -e $run/$vm ]]; }
# with_kvm: checks that the second node has KVM. Then it runs KubeVirt's VMs, and has the memory and
# images for them.
with_kvm() { [[ -e $run/$vm/kvm ]]; }
vm_memory() { if with_kvm; then echo 6G; else echo 3G; fi; }

# Names of images.
driver_image=localhost/stargate-csi
external_images=localhost/e2e-test-images # the prefix of the images for Kubernetes' own tests
version=$(sed -n 's/^appVersion: //p' "$home/charts/stargate/Chart.yaml")

# KubeVirt has a folder for each tested minor version; KUBEVIRT=1.9 selects one.
kubevirt=kubevirt-${KUBEVIRT:-1.8}
# The version to which 1.8 is upgraded after its own tests; its images are in another folder.
next_kubevirt=1.9
next_images=$work/images-next
# KubeVirt's programs that virt-operator starts, except those that run on each node.
kubevirt_controllers() { sed -nE 's/^\tkubevirt\.io\/kubevirt\/cmd\/(virt-(api|controller|exportproxy))$/\1/p' "$here/$kubevirt/go.mod"; }
kubevirt_release() { sed -nE 's/.*kubevirt\.io\/kubevirt (v[0-9.]+).*/\1/p' "$here/$kubevirt/go.mod"; }
# CDI, which fills disks of VMs, has one version for all versions of KubeVirt.
cdi_release() { sed -nE 's/^\tkubevirt\.io\/containerized-data-importer (v[0-9.]+).*/\1/p' "$here/cdi/go.mod"; }
# tag_kubevirt: gives the images the names that KubeVirt uses. One image has all controllers, and
# another one has both programs of the node.
tag_kubevirt() {
	local name release
	release=$(kubevirt_release)
	for name in $(kubevirt_controllers); do
		ctr images tag "localhost/kubevirt/virt-operator:$release" "localhost/kubevirt/$name:$release"
	done
	ctr images tag "localhost/kubevirt/virt-launcher:$release" "localhost/kubevirt/virt-handler:$release"
}

# programs MODULE: prints the folder of the programs that e2e/cluster/build has compiled.
programs() { "$here/build" "$1"; }

# inside COMMAND...: runs the command in the cluster's namespaces.
inside() {
	[[ -e $run/pid ]] || { echo "there is no cluster: run e2e/cluster/up" >&2; return 1; }
	nsenter --target "$(<"$run/pid")" --mount --net --pid --uts --ipc --wd=/ -- "$@"
}

# in_rig COMMAND...: runs the command with the rig's functions for scripts (on, kill_guest and so
# on).
in_rig() {
	local settings
	[[ -e $run/$vm/rig ]] || { echo "there is no node $vm: run e2e/cluster/up --dax" >&2; return 1; }
	mapfile -t settings <"$run/$vm/rig"
	inside env "${settings[@]}" "$@"
}
# on_vm COMMAND...: runs the command on the second node, without input.
on_vm() { in_rig bash -c 'on g1 "$1"' on_vm "$(printf '%q ' "$@")" </dev/null; }
# on_zoned COMMAND...: runs the command on the node that has the zone.
on_zoned() { if with_vm; then on_vm "$@"; else inside "$@"; fi; }

k() { inside "$run/bin/kubectl" --kubeconfig "$run/admin.conf" "$@"; }
ctr() { inside ctr --address /run/containerd/containerd.sock --namespace k8s.io "$@"; }
helm() { inside env HOME="$run" "$run/bin/helm" --kubeconfig "$run/admin.conf" "$@"; }

# within SECONDS COMMAND...: repeats the command until it succeeds. If it does not succeed in time,
# prints its last output.
within() {
	local end=$((SECONDS + $1)) said
	shift
	while ! said=$("$@" 2>&1); do
		if ((SECONDS >= end)); then
			echo "this command did not succeed in time: $*${said:+: $said}" >&2
			return 1
		fi
		sleep 1
	done
}
