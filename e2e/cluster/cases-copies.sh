# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Cases that check that copies are made on the node of their source. The cluster has two nodes, and
# both have a zone of files in memory. One more case has a single node, and a Node object without a
# machine. e2e/cluster/case sources this file.
# shellcheck disable=SC2154 # e2e/cluster/case sets the variables

both=("$node" "$vm")
both_args=(--namespace "$release_ns" --create-namespace --values "$here/values.yaml" --wait --timeout 3m)

# The second node has no init system, so the case mounts /dev/shm there.
case_install-both() {
	local on
	check "the second node has memory for files" on_vm sh -c \
		'mountpoint -q /dev/shm || { mkdir -p /dev/shm &&
			mount -t tmpfs -o size=1088M shm /dev/shm; }'
	check "helm installs" helm install "$release" "$chart" "${both_args[@]}"
	soon 60 "all containers are ready" driver_ready
	for on in "${both[@]}"; do soon 60 "node $on reports its free memory" equals 1024 largest "$on"; done
}

# Pods prefer the node without the source, which has the same capacity. A copy is still made on the
# node of its source, and its pod runs there. The preferred node's driver refuses the claim. The
# driver of the source's node reports that the claim is for its node.
case_copies() {
	local on other what where
	for on in "${both[@]}"; do
		claim "data-$on" 64Mi
		pod "first-$on" "data-$on" "" "nodeSelector: {kubernetes.io/hostname: $on}"
	done
	for on in "${both[@]}"; do
		soon 60 "a pod runs on $on" running "first-$on"
		check "a pod on $on stores a file" in_pod "first-$on" sh -c "echo 'hello $on' | stargatectl put $region - /greeting"
		snapshot "kept-$on" "data-$on"
	done
	for on in "${both[@]}"; do
		soon 90 "a snapshot on $on is ready" ready_to_use "kept-$on"
		other=$vm
		[[ $on == "$node" ]] || other=$node
		where="[{weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$other]}]}}]"
		where="affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: $where}}"
		claim "clone-$on" 64Mi ReadWriteOnce Filesystem "PersistentVolumeClaim/data-$on"
		claim "restored-$on" 64Mi ReadWriteOnce Filesystem "VolumeSnapshot/kept-$on"
		for what in clone restored; do pod "$what-$on" "$what-$on" "" "$where"; done
	done
	for on in "${both[@]}"; do
		for what in clone restored; do
			soon 120 "the pod of $what-$on runs" running "$what-$on"
			check "the pod $what-$on is on $on" placed "$what-$on" "$on"
			check "an Event reports why the other node refused" has_event "$what-$on" "has another zone than the source of the copy"
			check "an Event reports the placement on $on" has_event "$what-$on" "is on node $on; its copy is placed there, too"
			check "the copy has the source's file" equals "hello $on" in_pod "$what-$on" stargatectl cat "$region" /greeting
			check "a pod stores a file in the copy" in_pod "$what-$on" sh -c "echo own | stargatectl put $region - /own"
		done
		check "the source does not have the copy's file" refused in_pod "first-$on" stargatectl cat "$region" /own
	done
	k -n "$ns" delete volumesnapshot --all --wait >/dev/null
	soon 60 "the snapshots are gone" no_snapshots
}

case_uninstall-both() { case_uninstall; }

# prefers NODE: prints a part of a pod's spec that prefers that node and tolerates all taints.
prefers() {
	local other="[{weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$1]}]}}]"
	echo "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: $other}}"
	echo "  tolerations: [{operator: Exists}]"
}

# no_one NAME: makes a Node object that looks like a node with the driver and a zone. No machine
# belongs to it.
no_one() {
	local uid room
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: Node
		metadata:
		  name: $1
		  labels:
		    kubernetes.io/hostname: $1
		    kubernetes.io/os: linux
		    kubernetes.io/arch: amd64
		    topology.$driver/node: $1
		---
		apiVersion: storage.k8s.io/v1
		kind: CSIStorageCapacity
		metadata: {name: $1-room, namespace: $release_ns}
		storageClassName: stargate
		nodeTopology: {matchLabels: {topology.$driver/node: $1}}
		capacity: 1Gi
		maximumVolumeSize: 1Gi
	EOF
	uid=$(k get node "$1" -o 'jsonpath={.metadata.uid}')
	k apply -f - >/dev/null <<-EOF
		apiVersion: storage.k8s.io/v1
		kind: CSINode
		metadata:
		  name: $1
		  ownerReferences: [{apiVersion: v1, kind: Node, name: $1, uid: $uid}]
		spec:
		  drivers: [{name: $driver, nodeID: $1, topologyKeys: [topology.$driver/node]}]
	EOF
	room='{"cpu": "8", "memory": "32Gi", "pods": "100", "ephemeral-storage": "100Gi"}'
	k patch node "$1" --subresource status --type merge -p "{\"status\": {\"capacity\": $room, \"allocatable\": $room}}" >/dev/null
}

selected() { k -n "$ns" get pvc "$1" -o 'jsonpath={.metadata.annotations.volume\.kubernetes\.io/selected-node}'; }
provisioned_by() { k -n "$ns" get pvc "$1" -o 'jsonpath={.metadata.annotations.volume\.kubernetes\.io/storage-provisioner}'; }

# The scheduler chooses the node without a machine each time. The test acts as that node's
# provisioner after its driver has refused, and removes the choice.
case_placed() {
	local what other=nobody
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	snapshot kept data
	soon 90 "the snapshot is ready" ready_to_use kept
	check "another node without a driver exists" no_one $other
	claim clone 64Mi ReadWriteOnce Filesystem PersistentVolumeClaim/data
	claim restored 64Mi ReadWriteOnce Filesystem VolumeSnapshot/kept
	for what in clone restored; do pod $what $what "" "$(prefers $other)"; done
	for what in clone restored; do
		soon 60 "the scheduler chooses the other node" equals $other selected $what
		soon 60 "Kubernetes names the driver as the claim's provisioner" equals "$driver" provisioned_by $what
		check "the other node refuses the copy" k -n "$ns" annotate pvc $what volume.kubernetes.io/selected-node-
		soon 90 "the pod of $what runs" running $what
		check "the copy is on the node of its source" placed $what "$node"
		check "an Event reports the placement of the copy" has_event $what "is on node $node; its copy is placed there, too"
		check "the copy has the source's file" stored $what /greeting hello
	done
	k -n "$ns" delete volumesnapshot kept --wait >/dev/null
	soon 60 "the snapshot is gone" no_snapshots
	k -n "$release_ns" delete csistoragecapacity $other-room >/dev/null
	check "the other node is deleted" k delete node $other
	soon 120 "the driver's pod of the other node is deleted" driver_ready
}
