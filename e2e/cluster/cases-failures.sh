# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Cases of failures and changes while VMs have volumes. They test the rows of the table in
# docs/kubevirt.md. Some of them are in the lists of cases-kubevirt.sh. Others, and some cases of
# cases-kubevirt.sh, run in a separate cluster with reserved memory. e2e/cluster/case sources this
# file.
# shellcheck disable=SC2016,SC2034,SC2154 # variables of `case`; text for other shells

kubevirt_failure_cases=(
	install-dax operator
	machine-virtiofs machine-killed machine-paused machine-drained
	machine-failures machine-module machine-bad
	machine-moved # leaves the zone at another address
	uninstall
)

# webhook N: sets the number of the webhook's pods.
webhook() { k -n "$release_ns" scale deployment -l app.kubernetes.io/name=stargate-webhook --replicas "$1" >/dev/null; }
webhook_gone() { ! k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-webhook -o name | grep -q .; }
# driver_on VALUE: runs the driver only on nodes whose label stargate-test/nowhere has VALUE, or on
# all nodes if VALUE is null.
driver_on() {
	local set
	set=$(k -n "$release_ns" get daemonset -l app.kubernetes.io/name=stargate-csi -o name)
	k -n "$release_ns" patch "$set" --type merge \
		-p "{\"spec\": {\"template\": {\"spec\": {\"nodeSelector\": {\"stargate-test/nowhere\": $1}}}}}"
}
driver_there() {
	k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi -o name | grep -q .
}
going_away() { [[ -n $(k -n "$ns" get pvc "$1" -o 'jsonpath={.metadata.deletionTimestamp}') ]]; }

# Tests the rows of the matrix in docs/kubevirt.md that have no separate case.
case_machine-failures() {
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside

	machine doomed data doomed >/dev/null
	soon 240 "a VM holds a lock" says doomed "holds the lock"
	check "the pod lets the VM's kernel panic" in_pod beside touch /data/panic-now
	soon 120 "the VM boots after the panic, and gets the free lock" says doomed "came back"
	check "the VM booted in the same pod" equals 2 said doomed "holds the lock"
	k -n "$ns" delete vm doomed --wait >/dev/null

	check "the pod stores a file" store beside /greeting hello
	machine filler data filler >/dev/null
	soon 240 "the volume is full" says filler "it is full"
	check "the pod gets ENOSPC, too" contains "No space left" in_pod beside sh -c 'cat /dev/zero >/data/one-more'
	check "the pod frees some space" in_pod beside sh -c 'rm /data/filler /data/one-more && touch /data/less'
	soon 60 "the VM can store files" says filler "goes on"
	check "no process of the VM failed" well filler
	k -n "$ns" delete vm filler --wait >/dev/null

	machine first data holder >/dev/null
	soon 240 "a VM stores" says first "holds the lock"
	check "the hook's process is killed" on_zoned pkill -KILL -f stargate-hook
	check "the VM continues" goes_on
	webhook 0
	soon 60 "the webhook is down" webhook_gone
	check "a VM with volumes is refused without the webhook" refused machine second data second
	check "a claim is accepted without the webhook" claim other 16Mi
	pod unrelated data
	soon 60 "a pod runs" running unrelated
	webhook 1
	soon 60 "the webhook is ready" webhook_ready
	check "the driver is removed from the node" driver_on '"true"'
	soon 60 "the driver is gone" refused driver_there
	machine second data heir >/dev/null
	sleep 20
	check "a new VM waits for the driver" refused says second "waits for the lock"
	check "the first VM continues" goes_on
	check "the driver is allowed on the node" driver_on null
	soon 120 "the driver is ready" driver_ready
	soon 240 "the second VM has the volume" says second "waits for the lock"

	k -n "$ns" delete pvc data --wait=false >/dev/null
	check "the claim is being deleted" going_away data
	check "the claim stays while the VM uses it" goes_on
	k -n "$ns" delete vm first second --wait >/dev/null
	k -n "$ns" delete pod beside unrelated --wait >/dev/null
	soon 120 "the claim is deleted after the VM's end" gone pvc data
}

# After a power cut, the node, the VM and the pod start with the stored data.
case_machine-power() {
	local before container pod
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	machine first data holder >/dev/null
	soon 240 "a VM holds a lock and stores" says first "holds the lock"
	check "the pod made a file durable" in_pod beside sh -c 'echo hello >/data/greeting; sync'
	pod=$(launcher first) before=$(boot_of "$vm") container=$(container_of beside)
	check "the power is cut" power_cut
	check "the node boots" power_back
	soon 120 "the node has booted" another_boot "$before"
	soon 200 "all containers of the driver are ready" driver_ready
	soon 200 "the pod runs in a new container" runs_anew beside "$container"
	check "the durable file survives the power cut" stored beside /greeting hello
	soon 240 "the VM has another pod" other_pod "$pod"
	soon 240 "the restarted VM has the volume and its lock" says first "holds the lock"
	check "the VM stores, and the pod sees it" goes_on
	check "no process of the VM failed" well first
}
# other_pod POD [NAME]: checks that the VM has another pod than POD.
other_pod() { local now; now=$(launcher "${2:-first}"); [[ -n $now && $now != "$1" ]]; }

# other_module: prints another release of the module, which has the same code and another version.
other_module() {
	(cd "$home" && SG_KERNEL=$vm_kernel bash -c 'source e2e/lib/scenario.sh
		source e2e/lib/release.sh
		other_release >&2 && cat "$next"')
}
# takes_other: loads that module on the node, where the module is unused.
takes_other() {
	other_module | in_rig bash -c 'on g1 "cat >/run/other.ko && rmmod stargatefs && insmod /run/other.ko"'
}
module_is() { equals "$1" on_vm cat /sys/module/stargatefs/version; }
# driver_anew: replaces the driver's pod on the node. The new pod checks the module.
driver_anew() {
	k -n "$release_ns" delete pod "$(driver_pod)" --wait >/dev/null
	soon 120 "another pod of the driver is ready" driver_ready
}

# A node has another release of the module than the image, and must get the image's module. While a
# VM and a pod use a volume, the old module remains loaded, and both continue. After both have
# ended, the image's module is loaded. When both have started once more, all data is there.
case_machine-module() {
	local began count image
	image=$(on_vm cat /sys/module/stargatefs/version)
	check "the node has a module of another release" takes_other
	check "the loaded module is not the image's" refused module_is "$image"
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	machine first data holder >/dev/null
	soon 240 "a VM holds a lock and stores" says first "holds the lock"
	began=$(now)
	driver_anew
	check "an Event of the node reports the other module" node_says "$vm" OtherModule "$began"
	check "the driver asks to drain the node" module_of "$vm" "the image has $image: drain the node"
	check "the other module stays loaded" refused module_is "$image"
	check "the VM continues" goes_on
	check "the pod can still store files" store beside /greeting hello
	check "no process of the VM failed" well first
	count=$(counted)
	k -n "$ns" delete vm first --wait >/dev/null
	k -n "$ns" delete pod beside --wait >/dev/null
	soon 60 "no process uses the volume" no_node_mounts
	driver_anew
	check "the image's module is loaded" module_is "$image"
	check "the driver no longer asks to drain the node" refused module_of "$vm" "drain the node"
	pod beside data
	soon 60 "a pod runs" running beside
	check "the pod reads what it stored with the other release" stored beside /greeting hello
	check "the VM's stored counter is not smaller than before" test "$(counted)" -ge "${count:-0}"
	machine first data holder >/dev/null
	soon 240 "a VM has the volume and its lock" says first "holds the lock"
	check "the VM counts" goes_on
	check "no process of the VM failed" well first
}

# page_of DEVICE FILE: prints the address of the file's first page.
page_of() {
	on_vm stargatectl -j stat "$1" "$2" |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["table"]["runs"][0]["phys"])'
}
# A volume has a known bad page. QEMU cannot allocate the complete volume in advance, as libvirt
# requests. The VM still starts, and node and VM work without that page.
case_machine-bad() {
	local at device
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	check "the pod stores a file" store beside /greeting hello
	check "the pod stores a file of many pages" in_pod beside sh -c 'head -c 65536 /dev/urandom >/data/hurt && sync'
	device=/dev/$zone_name/$(volume_of data) at=$(page_of "$device" /hurt)
	check "a page of the file is marked as bad" on_vm stargatectl bad "$device" add "$at"
	check "volume.json reports bad memory" contains '"bad": true' in_pod beside cat /data/.stargate/volume.json
	machine first data holder >/dev/null
	soon 240 "a VM starts, and has the volume" says first "holds the lock"
	check "the VM stores, and the pod sees it" goes_on
	check "the content of that page is lost" refused in_pod beside cat /data/hurt
	check "the rest of the file can be read" in_pod beside dd if=/data/hurt of=/dev/null bs=4096 skip=1
	check "other files can be read" stored beside /greeting hello
	check "the file is removed" in_pod beside rm /data/hurt
	check "a new file takes the place of the removed file" in_pod beside sh -c 'head -c 65536 /dev/urandom >/data/hurt'
	check "the new file can be read completely" in_pod beside sh -c 'cat /data/hurt >/dev/null'
	check "no process of the VM failed" well first
}

# told_to_relocate claim|pod: checks that an Event of the claim, or of the VM's current pod,
# requests the relocation.
told_to_relocate() {
	local name=data
	[[ $1 == claim ]] || name=$(launcher first)
	has_event "$name" "another address than the one for which it was created: run stargatectl volume relocate"
}
# After a boot with another memmap=, the zone is at another address. The VM waits until its volume
# is relocated. The node's memory stays there, so later cases use volumes at the new address.
case_machine-moved() {
	local before pod volume
	claim data 128Mi ReadWriteMany
	machine first data holder >/dev/null
	soon 240 "a VM has the volume" says first "holds the lock"
	soon 60 "the VM has the volume at its address" at_its_address first data
	pod=$(launcher first) before=$(boot_of "$vm") volume=$zone_name/$(volume_of data)
	check "the power is cut" power_cut
	check "the node boots with its memory at another address" power_back --at 0x500000000
	soon 120 "the node has booted" another_boot "$before"
	soon 200 "all containers of the driver are ready" driver_ready
	soon 240 "the VM has another pod" other_pod "$pod"
	soon 120 "an Event of the pod names the remedy" told_to_relocate pod
	soon 60 "an Event of the claim names the remedy" told_to_relocate claim
	check "the VM has not started" refused says first "holds the lock"
	check "the volume is relocated to the new address" on_vm stargatectl volume relocate "$volume"
	soon 240 "the VM has the volume and its lock" says first "holds the lock"
	check "the VM has the volume at the new address" at_its_address first data
	check "the volume's address has changed" contains '"base": "0x5' on_vm stargatectl -j volume show "$volume"
	pod beside data
	soon 60 "a pod runs" running beside
	check "the VM stores, and the pod sees it" goes_on
	check "no process of the VM failed" well first
}

# is_now NAME PHASE READY: checks the phase and the readiness of a VM in `kubectl get vmi`.
is_now() { equals "$2 $3" k -n "$ns" get vmi "$1" -o 'jsonpath={.status.phase} {.status.conditions[?(@.type=="Ready")].status}'; }
# launcher_killed NAME: kills the program whose child is the VM's QEMU.
launcher_killed() { on_zoned pkill -KILL -f "^[^ ]*virt-launcher .*--name $1 "; }
# sound_file CLAIM: runs fsck on a volume in a zone of files. No system may use the volume.
sound_file() { k -n "$release_ns" exec "$(driver_pod)" -c driver -- fsck.stargatefs -n "$zone_dir/$(volume_of "$1").stargate"; }

# A VM's kernel panics, and is not set to reboot. QEMU continues, so the VM keeps its lock until
# KubeVirt restarts the VM. Then the case kills the VM's launcher. Another VM stores continuously,
# and gets the lock each time the first VM has ended.
case_machine-lost() {
	local pod panics=
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	machine first data doomed >/dev/null
	machine other data witness >/dev/null
	soon 240 "a VM holds a lock" says first "holds the lock"
	soon 120 "the other VM waits for the lock" says other "waits for the lock, 1"
	soon 60 "the kernel of the first VM panics" prints first "Kernel panic"
	pod=$(launcher first)
	sleep 20
	check "KubeVirt still shows the VM as running" is_now first Running True
	check "the hung VM has taken the lock only once" equals 1 said first "holds the lock"
	check "the other VM continues" goes_on
	check "the other VM waits for the lock" refused says other "had the lock"
	check "KubeVirt restarts the hung VM" restarted first
	soon 240 "the VM has another pod" other_pod "$pod"
	soon 240 "the restarted VM has the volume" says first "came back"
	soon 60 "the other VM had the lock" says other "had the lock, 1"

	soon 60 "the other VM waits for the lock a second time" says other "waits for the lock, 2"
	pod=$(launcher first)
	check "the launcher is killed" launcher_killed first
	soon 240 "KubeVirt starts the VM in another pod" other_pod "$pod"
	soon 240 "the restarted VM has the volume" says first "came back"
	soon 60 "the other VM had the lock a second time" says other "had the lock, 2"
	check "the VM counts" goes_on
	check "no process of the other VM failed" well other
	check "no process of the first VM failed" well first
	no_machines
	k -n "$ns" delete pod beside --wait >/dev/null
	check "the volume passes fsck" sound_file data
}

# handler SIGNAL: sends the signal to virt-handler, KubeVirt's program on the node that makes
# launchers start VMs.
handler() { on_zoned pkill "-$1" -f '^[^ ]*virt-handler '; }

# Two helpers of a VM end. The driver ends after it has mounted the volume, before the VM starts.
# The hook ends while the VM runs.
case_machine-helpers() {
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	check "KubeVirt's handler is stopped" handler STOP
	machine first data holder >/dev/null
	soon 90 "the VM's pod runs, and has its claim" is_now first Scheduled False
	check "the driver is removed from the node" driver_on '"true"'
	soon 60 "the driver is gone" refused driver_there
	check "the VM is not scheduled yet" is_now first Scheduled False
	check "KubeVirt's handler continues" handler CONT
	if [[ $api == sidecar ]]; then
		soon 240 "the VM starts without the driver" says first "holds the lock"
		check "the driver is allowed on the node" driver_on null
	else
		soon 120 "KubeVirt reports why the VM waits" condition first Synchronized "failed to dial"
		check "the VM is not scheduled yet" is_now first Scheduled False
		check "the driver is allowed on the node" driver_on null
		soon 120 "the driver is ready" driver_ready
		# KubeVirt 1.9.0 does not mount the kernel of a container a second time ("file
		# exists").
		check "the VM is restarted" restarted first
		soon 240 "the restarted VM has the lock" says first "holds the lock"
	fi
	soon 120 "the driver is ready" driver_ready
	soon 60 "the VM runs" is_now first Running True

	check "the hook's process is killed" on_zoned pkill -KILL -f stargate-hook
	soon 60 "KubeVirt reports that the VM is not ready" is_now first Running False
	check "the VM continues" goes_on
	check "the VM can be restarted" restarted first
	soon 240 "the restarted VM is ready" is_now first Running True
	soon 60 "the restarted VM has its lock" says first "holds the lock"
	check "no process of the VM failed" well first
}

# growing_class: makes a class whose claims have 64 MiB of reserved memory behind them.
growing_class() {
	k apply -f - >/dev/null <<-EOF
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: growing}
		provisioner: $driver
		volumeBindingMode: WaitForFirstConsumer
		allowVolumeExpansion: true
		parameters: {reserve: 64Mi}
	EOF
}
# told_by_claim NAME CONDITION WORDS: checks that the message of the claim's condition has WORDS.
told_by_claim() {
	contains "$3" k -n "$ns" get pvc "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].message}"
}
# to_grow CLAIM SIZE: requests SIZE for the claim.
to_grow() { k -n "$ns" patch pvc "$1" -p "{\"spec\": {\"resources\": {\"requests\": {\"storage\": \"$2\"}}}}" >/dev/null; }

# The VM's memory has included the reserve since its start. So the volume can grow only into the
# reserve while the VM runs.
case_machine-grown() {
	growing_class
	claim data 64Mi ReadWriteMany Filesystem '' growing
	pod beside data
	soon 60 "a pod runs" running beside
	machine first data witness >/dev/null
	soon 240 "a VM counts" says first "has 64 MiB"
	check "the claim requests 128 MiB" to_grow data 128Mi
	soon 120 "the claim has grown to 128 MiB" grown 128Mi
	soon 30 "the VM sees the growth" says first "has 128 MiB"
	soon 60 "the VM stores more than the smaller volume could hold" says first "stored 64 MiB"
	check "the claim requests 256 MiB" to_grow data 256Mi
	soon 60 "the growth is refused while the VM has the volume" \
		told_by_claim data NodeResizeError "no more than 128 MiB while"
	check "the VM continues" goes_on
	check "the VM still has its earlier size" refused says first "has 256 MiB"
	no_machines
	# Kubelet retries the growth only after it has forgotten the claim, which happens when no
	# pod uses the claim.
	k -n "$ns" delete pod beside --wait >/dev/null
	soon 60 "no process uses the volume" no_node_mounts
	pod after data
	soon 90 "the volume grows when the next pod uses it" grown 256Mi
	soon 60 "the next pod runs" running after
	check "the stored file is still there" in_pod after stargatectl cat "$region" /count
	k delete storageclass growing >/dev/null
}

# upgraded: checks that all programs of KubeVirt have the target version.
upgraded() {
	deployed && equals "$(kubevirt_release)" k -n kubevirt get kubevirt kubevirt -o 'jsonpath={.status.observedKubeVirtVersion}'
}
import_next() {
	local archive
	for archive in "$next_images"/*.tar; do ctr images import --digests "$archive"; done
	tag_kubevirt
}
# by_sidecar NAME: checks that the VM has its volume from a hook sidecar.
by_sidecar() {
	contains hook-sidecar k -n "$ns" get pod "$(launcher "$1")" -o 'jsonpath={.spec.containers[*].name}'
}

# An upgrade of KubeVirt does not affect a running VM. New VMs start with hook sidecars as before.
# After an upgrade of the chart, new VMs get their volumes from a Plugin.
case_kubevirt-upgraded() {
	local pod
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	machine first data holder >/dev/null
	soon 240 "a VM holds a lock and counts" says first "holds the lock"
	pod=$(launcher first)

	kubevirt=kubevirt-$next_kubevirt
	of_version
	check "the images of KubeVirt $kubevirt are imported" import_next
	gates=Sidecar
	operator_objects | k apply --server-side --force-conflicts -f - >/dev/null
	check "the operator has release $kubevirt" k -n kubevirt rollout status deployment virt-operator --timeout 200s
	kubevirt_object | k apply -f - >/dev/null
	soon 600 "KubeVirt is upgraded" upgraded
	soon 180 "KubeVirt requests a migration, which is refused" has_event first "VM first cannot migrate"
	check "the VM still runs in its pod" equals "$pod" launcher first
	check "the VM counts" goes_on
	machine second data heir >/dev/null
	soon 240 "the second VM starts" says second "waits for the lock"
	check "the second VM has a hook sidecar" by_sidecar second
	k -n "$ns" delete vm second --wait >/dev/null

	of_version
	kubevirt_object | k apply -f - >/dev/null
	soon 300 "KubeVirt is upgraded, with plugins" upgraded
	check "the chart is upgraded for the new KubeVirt" chart_for "$api"
	soon 90 "the webhook is ready" webhook_ready
	soon 90 "the driver is ready" driver_ready
	check "the VM continues to count" goes_on
	k -n "$ns" delete vmi first --wait=false >/dev/null
	soon 240 "the restarted VM has another pod" other_pod "$pod"
	soon 240 "the restarted VM has the volume and its lock" says first "holds the lock"
	check "the first VM has no hook sidecar after its restart" refused by_sidecar first
	check "the VM counts" goes_on
	machine second data heir >/dev/null
	soon 240 "another VM waits for the lock" says second "waits for the lock"
	check "the VM's process is killed" on_zoned pkill -KILL -f "$(qemu first)"
	soon 240 "the second VM has the lock" says second "has the lock"
	soon 60 "the Plugin has reported the VM's end to the driver" contains "Fenced a VM" k -n "$release_ns" logs "$(driver_pod)" -c driver
	check "no process of the first VM failed" well first
	check "no process of the second VM failed" well second
}
