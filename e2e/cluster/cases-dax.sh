# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The cases of a cluster whose second node has reserved memory (e2e/cluster/up --dax), in their
# order. The first node has no reserved memory. In the last cases both nodes have a zone of files
# (cases-copies.sh). A volume that grows needs the memory behind it, so its case runs alone. Cases
# that are not in this file are in cases.sh. e2e/cluster/case sources this file.
# shellcheck disable=SC2016,SC2034,SC2154 # variables of `case`; text for other shells

dax_cases=(
	install-dax helm-test files+readonly+pod-once+block+quota grow expand
	clone+snapshot+snapshot-outside+snapshot-by-hand nothing-left full kubectl
	plugin-killed kubelet-restarted forced+inline-nowhere driver-deleted inline
	times power-nvm power-dram node-replaced
	upgrade rollback uninstall-refused uninstall-data uninstall
	install-both copies uninstall-both
)

# The cases of a node that has DKMS and its tools, but not the module (NODE_BUILDS=1
# e2e/cluster/up --dax).
module_cases=(module-built module-prebuilt uninstall)

! with_vm || install_args+=(--values "$here/values-dax.yaml")

# node_says NODE REASON SINCE: checks that the node has an Event with REASON at the time SINCE or
# later.
node_says() {
	local last
	last=$(k -n default get events --field-selector "involvedObject.kind=Node,involvedObject.name=$1,reason=$2" \
		-o 'jsonpath={range .items[*]}{.lastTimestamp}{"\n"}{end}' | sort | tail -n 1)
	[[ -n $last && ! $last < $3 ]]
}
now() { date -u +%FT%TZ; }
module_of() { contains "$2" k get node "$1" -o "jsonpath={.metadata.annotations.${driver//./\\.}/module}"; }
offers_nothing() { [[ $(largest "$1" || echo 0) == 0 ]]; }
placed() { equals "$2" k -n "$ns" get pod "$1" -o 'jsonpath={.spec.nodeName}'; }
# LVM uses 2 MiB of each device for itself.
zone_mib=$(((zone_bytes >> 20) - 2))

# make_zone: runs an operator's command on a node with reserved memory.
make_zone() { on_vm stargatectl zone create "$zone_name" "$zone_device"; }

# Nodes without a zone run the driver, and report the missing zone. Pods wait until a node has a
# zone.
case_install-dax() {
	local on began
	began=$(now)
	check "no module is loaded" on_vm modprobe -r stargatefs
	check "helm installs from the archive's image" helm install "$release" "$chart" "${install_args[@]}"
	soon 60 "all containers are ready" driver_ready
	soon 60 "the driver is registered with the kubelet" registered
	check "the installed module of the node is loaded" module_of "$vm" "installed on the node, kernel"
	check "a node whose kernel loads no module reports why" module_of "$node" "none, kernel"
	for on in "$node" "$vm"; do
		soon 60 "$on reports that it has no zone" node_says "$on" NoZone "$began"
		check "node $on offers no memory" offers_nothing "$on"
	done
	check "no node has the label for the size of a zone" equals "" k get nodes -o "jsonpath={.items[*].metadata.labels.${driver//./\\.}/zone-mib}"
	claim data 64Mi
	pod first data
	soon 60 "an Event of the pod reports why the pod waits" has_event first "did not have enough free storage"
	check "the pod waits" pending pod first
	check "the operator makes a zone" make_zone
	soon 90 "the node reports its free memory" has_capacity "$zone_mib"
	soon 90 "the node has the label with its zone's size" node_label "$zone_mib"
	soon 120 "the pod runs" running first # the scheduler retries after at most five minutes
	check "the pod is on the node with the zone" placed first "$vm"
	check "the node reports that its zone is ready" node_says "$vm" ZoneReady "$began"
	check "no container of the driver was restarted" equals "" restarts
	check "the other node offers no memory" offers_nothing "$node"
}

# The node's DKMS builds the module in the driver's pod, with the permissions of its container.
case_module-built() {
	check "the node has no module" refused on_vm modinfo stargatefs
	check "helm installs" helm install "$release" "$chart" "${install_args[@]}" --set module.prebuilt=false
	soon 1500 "all containers are ready" driver_ready # QEMU translates the compiler
	check "the node's DKMS has built the module" module_of "$vm" "built by the node's DKMS, kernel"
	check "DKMS lists the module as installed" contains ": installed" on_vm dkms status stargatefs
	check "no container of the driver was restarted" equals "" restarts
	check "the operator makes a zone" make_zone
	soon 90 "the node reports its free memory" has_capacity "$zone_mib"
	claim data 64Mi
	pod first data
	soon 120 "a pod runs" running first
	check "the pod's volume is a mount of the module" on_stargatefs first
	check "the pod stores a file" store first /greeting hello
	k -n "$ns" delete pod first --wait >/dev/null
	k -n "$release_ns" delete pod "$(driver_pod)" --wait >/dev/null
	soon 120 "another pod of the driver is ready" driver_ready
	check "the new driver pod uses the loaded module" module_of "$vm" "loaded before, kernel"
}

# image_has_module RELEASE: checks that the image has the module for the kernel RELEASE.
image_has_module() { grep -qF "\"/usr/lib/stargate/modules/$1/stargatefs.ko\"" "$images/stargate-csi.spdx.json"; }

# The case removes the module that DKMS has built, and the driver loads the image's module. The zone
# remains. The image has a module for Debian's current kernel. If the rig's cache has another
# kernel, the case fails; run e2e/rig clean.
case_module-prebuilt() {
	local package
	package=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$home/kernel/module/dkms.conf")
	check "the image has a module for the node's kernel" image_has_module "$(on_vm uname -r)"
	check "the built module can be unloaded" on_vm rmmod stargatefs
	check "DKMS removes the built module" on_vm dkms remove "stargatefs/$package" --all
	check "the node has no module" refused on_vm modinfo stargatefs
	check "helm upgrades" helm upgrade "$release" "$chart" "${install_args[@]}"
	soon 300 "all containers are ready" driver_ready
	soon 60 "the image's module is loaded" module_of "$vm" "prebuilt, kernel"
	check "the node has no module of its own" refused on_vm modinfo stargatefs
	soon 90 "the node reports its free memory" has_capacity "$zone_mib"
	claim data 64Mi
	pod first data
	soon 120 "a pod runs" running first
	check "the pod's volume is a mount of the module" on_stargatefs first
	check "the pod stores a file" store first /greeting hello
}

# digests POD: prints digests of all files in the pod's volume.
digests() {
	in_pod "$1" sh -c 'cd /data && find . -path ./.stargate -prune -o -type f -print | sort |
		xargs sha256sum'
}
# same_files POD OTHER: checks that both pods read the same files.
same_files() { [[ -n $(digests "$1") ]] && equals "$(digests "$1")" digests "$2"; }
on_stargatefs() { contains "stargatefs" in_pod "$1" sh -c 'grep " /data " /proc/mounts'; }

# closed POD [PATH]: checks that the pod cannot open the volume's memory for reading or for writing,
# neither as region nor as region@UUID.
closed() {
	local name
	for name in region region@00000000-1111-2222-3333-444444444444; do
		contains "ermission denied" in_pod "$1" sh -c ": <'${2:-/data}/.stargate/$name'" || return
		contains "ermission denied" in_pod "$1" sh -c ": <>'${2:-/data}/.stargate/$name'" || return
	done
}

# Two pods have the same volume, which the module mounts.
case_files() {
	claim data 64Mi ReadWriteMany
	sleep 3
	check "a claim without a pod waits" pending pvc data
	pod first data
	pod second data
	soon 60 "the first pod runs" running first
	soon 60 "the second pod runs" running second
	check "the second pod is on the node with the zone" placed second "$vm"
	check "the pod's volume is a mount of the module" on_stargatefs first
	check "the first pod stores a file" store first /greeting hello
	check "the second pod reads the file" stored second /greeting hello
	check "the second pod stores a file" store second /answer world
	check "the first pod reads the second pod's file" stored first /answer world
	check "the first pod makes a tree of random bytes" in_pod first sh -c 'mkdir -p /data/a/b && for i in 1 2 3 4 5; do
		dd if=/dev/urandom of=/data/a/b/$i bs=64k count=$((i * 5)) 2>&1 || exit; done'
	check "both pods read the same files" same_files first second
	check "the second pod moves a part of the tree" in_pod second mv /data/a/b /data/c
	check "both pods read the same files after the move" same_files first second
	check "the first pod appends a line" in_pod first sh -c 'echo 1 >>/data/log'
	check "the second pod appends a line" in_pod second sh -c 'echo 2 >>/data/log'
	check "the file has the lines of both pods" equals $'1\n2' in_pod first cat /data/log
	check "the first pod removes the files" in_pod first rm -r /data/c /data/log
	check "the files are gone for the second pod" refused in_pod second ls /data/c
	check "region in the pod has the volume's size" size_in_pod first $((64 << 20))
	check "root in a pod cannot open the volume's memory" closed first
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: Pod
		metadata:
		  name: virt-launcher-mine
		  namespace: $ns
		  labels: {kubevirt.io: virt-launcher}
		  annotations: {$driver/volumes: data}
		spec:
		  terminationGracePeriodSeconds: 1
		  securityContext: {runAsUser: 1000, runAsGroup: 1000, supplementalGroups: [107]}
		  containers:
		  - name: main
		    image: "localhost/pod:1"
		    imagePullPolicy: Never
		    volumeMounts:
		    - {name: data, mountPath: /data}
		    - {name: data, mountPath: /again, subPath: .}
		  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
	EOF
	soon 60 "a pod with QEMU's group and the name of a launcher runs" running virt-launcher-mine
	check "that pod belongs to the group 107" contains " 107" in_pod virt-launcher-mine id -G
	check "a pod with QEMU's group cannot open the volume's memory" closed virt-launcher-mine
	check "that pod cannot open the memory by another mount of the claim" closed virt-launcher-mine /again
	k -n "$ns" delete pod virt-launcher-mine --wait >/dev/null
	check "the volume is healthy" on_vm stargatectl volume show "$zone_name/$(volume_of data)"
	k -n "$ns" delete pod first second --wait >/dev/null
	soon 60 "no mount remains without pods" no_node_mounts
	pod third data
	soon 60 "a later pod runs" running third
	check "a later pod reads the stored files" stored third /greeting hello
}

# size_kib POD: prints the size of the volume in the pod.
size_kib() { in_pod "$1" df -Pk /data | awk 'END { print $2 }'; }
df_grown() { [[ $(size_kib "$1") -gt $2 ]]; }

# While a pod writes, the volume grows, and df in its pods shows it.
case_grow() {
	local before
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	before=$(size_kib first)
	check "df shows the size of the volume" test "$before" -gt $((50 << 10)) -a "$before" -le $((64 << 10))
	check "the volume cannot hold a larger file" refused in_pod first dd if=/dev/zero of=/data/large bs=1M count=100
	k -n "$ns" exec first -- sh -c 'while :; do echo x >>/data/log; sleep 0.1; done' >/dev/null 2>&1 &
	k -n "$ns" patch pvc data -p '{"spec": {"resources": {"requests": {"storage": "160Mi"}}}}' >/dev/null
	soon 60 "the claim has grown" grown 160Mi
	check "df shows the new size" df_grown first $((140 << 10))
	check "a process wrote during the growth" in_pod first test -s /data/log
	check "the grown volume holds the larger file" in_pod first dd if=/dev/zero of=/data/large bs=1M count=100
	check "the node's driver reports the new size" contains "\"size\": $((160 << 20))" \
		on_vm stargatectl -j volume show "$zone_name/$(volume_of data)"
}

# On a node without a zone, a pod with an inline volume cannot start. An Event gives the reason, and
# the pod can be deleted.
case_inline-nowhere() {
	inline_pod first "nodeName: $node"
	soon 60 "an Event of the pod reports why the pod does not start" has_event first "zone $zone_name"
	check "the pod waits" pending pod first
	k -n "$ns" delete pod first --wait=false >/dev/null
	soon 60 "the pod is deleted" gone pod first
}

# boot_of NODE: prints the ID of the node's boot, as the kubelet reports it.
boot_of() { k get node "$1" -o 'jsonpath={.status.nodeInfo.bootID}'; }
node_is_ready() { equals True k get node "$vm" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'; }
another_boot() { [[ $(boot_of "$vm") != "$1" ]] && node_is_ready; }
power_cut() { in_rig bash -c 'kill_guest g1'; }
# power_back [--at ADDRESS]: boots the node after a power cut, with its memory at ADDRESS.
power_back() { in_rig bash -c 'start_guest g1 --no-mount "$@"' power_back "$@" && in_rig "$here/vm" boot; }
# container_of POD: prints the pod's container. runs_anew POD CONTAINER: checks that the pod runs in
# another container than CONTAINER. After a power cut the pod's old status remains until the kubelet
# has checked the pod, even if the node is ready.
container_of() { k -n "$ns" get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}'; }
runs_anew() { running "$1" && [[ $(container_of "$1") != "$2" ]]; }
# lose_memory: erases the content of the node's memory, as a power cut erases DRAM.
lose_memory() { in_rig bash -c 'truncate -s 0 "$RIG_RANGE" && truncate -s "$RIG_SIZE" "$RIG_RANGE"'; }

# A power cut of a node whose memory keeps its bytes. Durable data is still there, and the pods
# start once more.
case_power-nvm() {
	local before container
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	check "the pod makes the file durable" in_pod first sync
	claim other 32Mi
	snapshot kept data
	soon 60 "a snapshot is ready" ready_to_use kept
	before=$(boot_of "$vm") container=$(container_of first)
	pod second other # the power cut interrupts its start
	sleep 2
	check "the power is cut" power_cut
	check "the node boots" power_back
	soon 120 "the node has booted" another_boot "$before"
	soon 200 "all containers of the driver are ready" driver_ready
	soon 200 "the pod runs in a new container" runs_anew first "$container"
	check "the file survives the power cut" stored first /greeting hello
	check "the volume can still be used" store first /more words
	soon 200 "a pod that was starting before the power cut runs" running second
	check "the second volume can be used" store second /greeting words
	claim same 64Mi ReadWriteOnce Filesystem VolumeSnapshot/kept
	pod third same
	soon 90 "a pod with the content of the snapshot runs" running third
	check "the volume of the snapshot has the file" stored third /greeting hello
}

# A power cut of a node whose memory loses its bytes, and so its zone. The operator makes a new
# zone. The user deletes the claim of the lost volume, and creates a new claim.
refuses_deletion() { contains "start the driver with --gone-zone" k describe pv "$1"; }
case_power-dram() {
	local before began volume zone
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	volume=$(pv_of data) zone=$(k get pv "$volume" -o 'jsonpath={.spec.csi.volumeHandle}')
	before=$(boot_of "$vm") began=$(now)
	check "the power is cut" power_cut
	check "the bytes of the memory are lost" lose_memory
	check "the node boots" power_back
	soon 120 "the node has booted" another_boot "$before"
	soon 200 "all containers of the driver are ready" driver_ready
	soon 60 "the node reports that it has no zone" node_says "$vm" NoZone "$began"
	soon 60 "the node reports no free memory" offers_nothing "$vm"
	check "the operator makes a zone" make_zone
	soon 120 "an Event of the pod reports the missing volume" has_event first "there is no volume"
	check "the pod does not run" refused running first
	k -n "$ns" delete pod first --wait >/dev/null
	k -n "$ns" delete pvc data --wait >/dev/null
	soon 60 "the driver does not delete a volume of another zone" refuses_deletion "$volume"
	check "the operator names the zone whose memory is lost" helm upgrade "$release" "$chart" \
		"${install_args[@]}" --set "goneZones={${zone#*@}}"
	soon 200 "the driver is ready" driver_ready
	soon 120 "the lost volume is deleted" no_volumes
	soon 90 "the node reports the zone's complete memory as free" has_capacity "$zone_mib"
	claim data 64Mi
	pod first data
	soon 60 "the pod runs with a new volume" running first
	check "the new volume is empty" refused in_pod first ls /data/greeting
	check "the new volume can be used" store first /greeting hello
}

# another_machine: gives the node empty memory, and a disk with only its programs.
another_machine() { lose_memory && cp --sparse=always "$run/$vm/disk.new" "$run/$vm/disk"; }
none_elsewhere() { has_event "$1" "didn't match PersistentVolume's node affinity"; }

# A node is lost permanently, with all its data, and another machine gets its name.
case_node-replaced() {
	local volume began
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	volume=$(pv_of data) began=$(now)
	check "the node's power is cut permanently" power_cut
	check "the operator takes the node out of the cluster" k delete node "$vm" --wait
	soon 120 "the pods of the node are deleted" gone pod first
	pod second data
	soon 60 "an Event of the next pod names the node of its volume" none_elsewhere second
	check "the pod waits" pending pod second
	k -n "$ns" delete pod second --wait >/dev/null
	k -n "$ns" delete pvc data --wait >/dev/null
	k delete pv "$volume" --wait=false >/dev/null
	sleep 10
	check "the volume stays, because nothing can delete it" k get pv "$volume"
	check "the operator removes the volume's finalizer" k patch pv "$volume" --type merge -p '{"metadata": {"finalizers": null}}'
	soon 30 "the lost volume is deleted" no_volumes
	check "another machine replaces the node" another_machine
	check "the new machine boots" power_back
	soon 200 "the node is ready" node_is_ready
	soon 200 "all containers of the driver are ready" driver_ready
	soon 60 "the node reports that it has no zone" node_says "$vm" NoZone "$began"
	check "the operator makes a zone" make_zone
	soon 90 "the node has free memory" has_capacity "$zone_mib"
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod has a new, empty volume" refused in_pod first ls /data/greeting
	check "the new volume can be used" store first /greeting hello
}
