# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The cases of a cluster whose two nodes both have a zone: of files in memory, on each. Sourced by e2e/cluster/case.
# shellcheck disable=SC2154 # which has the rest

both=("$node" "$vm")
both_args=(--namespace "$release_ns" --create-namespace --values "$here/values.yaml" --wait --timeout 3m)

# The second node has no init system, which would have mounted this.
case_install-both() {
	local on
	check "the second node has memory for files" on_vm sh -c \
		'mountpoint -q /dev/shm || { mkdir -p /dev/shm && mount -t tmpfs -o size=1088M shm /dev/shm; }'
	check "helm installs" helm install "$release" "$chart" "${both_args[@]}"
	soon 60 "all containers are ready" driver_ready
	for on in "${both[@]}"; do soon 60 "$on says what it has room for" equals 1024 largest "$on"; done
}

# Pods would rather be on the other node, which has as much room. A copy is where its source is all the same, and its
# pod with it: the other node's driver refuses, and the one that has the source says that the claim is for its node.
case_copies() {
	local on other what where
	for on in "${both[@]}"; do
		claim "data-$on" 64Mi
		pod "first-$on" "data-$on" "" "nodeSelector: {kubernetes.io/hostname: $on}"
	done
	for on in "${both[@]}"; do
		soon 60 "a pod runs on $on" running "first-$on"
		check "stored there" in_pod "first-$on" sh -c "echo 'hello $on' | stargatectl put $region - /greeting"
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
			check "it is on $on" placed "$what-$on" "$on"
			check "the other node has refused" has_event "$what-$on" "has another zone than what is to be copied is in"
			check "$on has said so" has_event "$what-$on" "is on node $on, and so is a copy of it"
			check "it has what there was" equals "hello $on" in_pod "$what-$on" stargatectl cat "$region" /greeting
			check "what is stored in it" in_pod "$what-$on" sh -c "echo own | stargatectl put $region - /own"
		done
		check "the source does not have" refused in_pod "first-$on" stargatectl cat "$region" /own
	done
	k -n "$ns" delete volumesnapshot --all --wait >/dev/null
	soon 60 "the snapshots are gone" no_snapshots
}

case_uninstall-both() { case_uninstall; }
