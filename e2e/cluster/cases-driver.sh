# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Cases of the driver itself: a driver that starts on a new node, a driver that ends in the middle
# of a call, volumes that no call deletes, and mounts by FUSE. e2e/cluster/case sources this file.
# shellcheck disable=SC2016,SC2154 # variables of `case`; text for other shells

# change_driver PATCH: changes the template of the driver's pods.
change_driver() { k -n "$release_ns" patch daemonset "$release-csi" --type json -p "$1" >/dev/null; }
no_driver() { equals "" k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi -o name; }
taints() { k get node "$zoned" -o 'jsonpath={.spec.taints[*].key}'; }

# placed_after POD: checks that the scheduler placed the pod after the driver's start.
placed_after() {
	local placed began
	placed=$(k -n "$ns" get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].lastTransitionTime}')
	began=$(k -n "$release_ns" get pod "$(driver_pod)" \
		-o 'jsonpath={.status.containerStatuses[?(@.name=="driver")].state.running.startedAt}')
	[[ -n $placed && -n $began && ! $placed < $began ]]
}

# The taint of a new node keeps pods away until the node's driver starts and removes the taint.
case_start-up() {
	local selector=/spec/template/spec/nodeSelector
	change_driver '[{"op": "add", "path": "'$selector'", "value": {"stargate-test/no-such": "node"}}]'
	soon 60 "the node has no driver" no_driver
	k label node "$zoned" "$driver/zone-mib-" >/dev/null
	check "an operator taints the node" k taint node "$zoned" "$driver/not-ready=:NoSchedule"
	claim data 64Mi
	pod first data
	soon 30 "an Event of a pod reports the taint" has_event first "untolerated taint"
	check "the pod waits" pending pod first
	check "the node has no label" node_label ""
	change_driver '[{"op": "remove", "path": "'$selector'"}]'
	soon 90 "the driver is ready" driver_ready
	soon 60 "the taint is gone" equals "" taints
	soon 30 "the node has the label with its zone's size" node_label 1024
	soon 60 "the pod runs" running first
	check "the pod was placed after the driver's start" placed_after first
	check "the pod's volume can be used" store first /greeting hello
}

# --- A call that does not end ---------------------------------------------------------------

hold=/var/lib/kubelet/plugins/$driver/hold # /csi/hold in the driver's container

# hold_mkfs: replaces mkfs in the driver's container by a script that waits until let_go is called.
# The image has no shell for the script, so the function adds one.
hold_mkfs() {
	on_zoned sh -euc '
		pid=$(pgrep -o "$2" "$3")
		mkdir -p "$1"
		cp "/proc/$pid/root/usr/local/sbin/mkfs.stargatefs" "$1/real"
		cp "$(command -v busybox)" "$1/busybox"
		printf "%s\n" "#!/csi/hold/busybox sh" "while [ -e /csi/hold/wait ]; do /csi/hold/busybox sleep 0.1; done" \
			"exec /csi/hold/real \"\$@\"" >"$1/mkfs"
		chmod 755 "$1/mkfs"
		: >"$1/wait"
		nsenter --target "$pid" --mount mount --bind /csi/hold/mkfs /usr/local/sbin/mkfs.stargatefs' \
		sh "$hold" "${driver_process[@]}"
}
let_go() { on_zoned rm "$hold/wait"; }
held() { on_zoned pgrep -f '^/csi/hold/busybox sh [^ ]*/mkfs\.stargatefs .*'"$1" >/dev/null; }
half_made() { inside ls -A "$zone_dir" | grep -E '^\.(making|deleting)-'; }

# end_driver: deletes the driver's pod, as a drain or an upgrade does. Stores the further log of its
# container in $logs/$ns.driver.
# ends_well: checks that the driver exits with status 0 before the kubelet kills it.
end_driver() {
	local pod
	pod=$(driver_pod)
	k -n "$release_ns" logs "$pod" -c driver --follow --tail 0 >"$logs/$ns.driver" &
	following=$!
	k -n "$release_ns" wait "pod/$pod" --timeout 55s \
		--for 'jsonpath={.status.containerStatuses[?(@.name=="driver")].state.terminated.exitCode}=0' >/dev/null &
	ending=$!
	sleep 1 # the two background commands begin to watch
	k -n "$release_ns" delete pod "$pod" --wait=false >/dev/null
}
ends_well() { wait "$ending" && wait "$following" && ! grep -F 'The driver has failed' "$logs/$ns.driver"; }
# has_logged WORDS METHOD [CODE]: checks that the driver has logged WORDS for a call of METHOD.
has_logged() { grep -F "\"$1\" method=\"$2\"" "$logs/$ns.driver" | grep -F "${3:+code=\"$3\"}" >/dev/null; }

# complaints SINCE: prints the warnings of this namespace at the time SINCE or later.
complaints() {
	k -n "$ns" get events --field-selector type=Warning \
		-o 'jsonpath={range .items[*]}{.lastTimestamp} {.reason} {.message}{"\n"}{end}' | awk -v since="$1" '$1 >= since'
}

# The driver's pod is deleted in the middle of a call. A call that is short enough is completed. A
# longer call is aborted, and the next driver gets it once more. A pod ends during this time.
case_driver-ends() {
	local volume since
	claim data 64Mi
	pod first data
	soon 60 "a pod runs" running first
	check "mkfs is made to wait" hold_mkfs
	claim one 64Mi
	volume=pvc-stargate.csi.dev-$(k -n "$ns" get pvc one -o 'jsonpath={.metadata.uid}')
	pod second one
	soon 60 "a volume is being made" held "$volume"
	check "the driver's pod is deleted" end_driver
	k -n "$ns" delete pod first --wait=false >/dev/null
	sleep 4
	check "the driver continues the call" on_zoned pgrep "${driver_process[@]}"
	check "the volume is not finished yet" refused volume_kept "$volume"
	check "mkfs continues" let_go
	check "the driver exits by itself" ends_well
	check "the call succeeded" has_logged "Call done" CreateVolume
	check "the volume exists" volume_kept "$volume"
	soon 90 "another driver is ready" driver_ready
	soon 60 "the driver is registered with the kubelet" registered
	soon 90 "the pod runs" running second
	check "the claim has that volume" equals "$volume" volume_of one
	soon 90 "the deleted pod is gone" gone pod first

	check "mkfs is made to wait" hold_mkfs
	claim two 64Mi
	volume=pvc-stargate.csi.dev-$(k -n "$ns" get pvc two -o 'jsonpath={.metadata.uid}')
	pod third two
	soon 60 "a volume is being made" held "$volume"
	check "the driver's pod is deleted" end_driver
	check "the driver exits by itself" ends_well
	check "no half-made volume is left" refused half_made
	check "the volume does not exist" refused volume_kept "$volume"
	check "no process continues to make the volume" refused held "$volume"
	check "the call was interrupted, and may be repeated" has_logged "Call failed" CreateVolume Canceled
	soon 90 "another driver is ready" driver_ready
	soon 60 "the driver is registered with the kubelet" registered
	soon 90 "the pod runs" running third
	check "the claim has that volume" equals "$volume" volume_of two
	check "the volume can be used" store third /greeting hello
	since=$(now)
	sleep 15 # kubelet checks each pod every ten seconds
	check "the namespace has no new warning" equals "" complaints "$since"
	on_zoned rm -r "$hold"
}

# --- Volumes that no call deletes -----------------------------------------------------------

# page: prints the section of docs/operate/kubernetes.md about such volumes.
page() { sed -n '/^### StargateVolumesOrphaned$/,/^### /p' "$home/docs/operate/kubernetes.md"; }
# handles: prints the volumes of all PersistentVolumes, by the command of that page.
handles() { eval "k $(page | sed -n 's/^kubectl \(get pv .*\)/\1/p')"; }
taken_back() { # NAME SIZE CLAIM: prints the objects of that page, which give volume NAME to CLAIM
	page | sed -n '/^```yaml$/,/^```$/{/^```/d;p}' |
		sed "s/NAMESPACE/$ns/g; s/NAME/$1/g; s/SIZE/$2/g; s/CLAIM/$3/g; s/NODE/$zoned/g"
}

in_zone() { inside ls "$zone_dir" | sed -n 's/\.stargate$//p' | sort; }
# without_pv: prints the volumes without a PersistentVolume, by the two commands of that page.
without_pv() { comm -13 <(handles | sort) <(in_zone); }
orphans() {
	k get --raw "/api/v1/namespaces/$release_ns/pods/$(driver_pod):9810/proxy/metrics" |
		awk '/^stargate_zone_orphans/ { n += $NF; known = 1 } END { if (known) print n }'
}
told_of() {
	contains "volume $1 has no PersistentVolume" k -n default get events -o 'jsonpath={.items[*].message}' \
		--field-selector "involvedObject.kind=Node,involvedObject.name=$zoned,reason=VolumeOrphaned"
}

# Two volumes lose their PersistentVolumes in two ways. A new claim adopts the first volume, and the
# case deletes the second one.
case_orphans() {
	local kept forced pvs=() both volume
	claim kept 64Mi
	claim forced 32Mi
	pod first kept
	pod second forced
	soon 60 "a pod runs" running first
	soon 60 "the second pod runs" running second
	check "the pod stores a file" store first /greeting hello
	kept=$(volume_of kept) forced=$(volume_of forced) pvs=("$(pv_of kept)" "$(pv_of forced)")
	both=$(printf '%s\n' "$kept" "$forced" | sort)
	check "each volume has a PersistentVolume" equals "" without_pv
	k patch pv "${pvs[0]}" -p '{"spec": {"persistentVolumeReclaimPolicy": "Retain"}}' >/dev/null
	k -n "$ns" delete pod first second --wait >/dev/null
	k -n "$ns" delete pvc kept --wait >/dev/null
	k delete pv "${pvs[0]}" --wait >/dev/null
	k delete pv "${pvs[1]}" --wait=false >/dev/null
	k patch pv "${pvs[1]}" --type merge -p '{"metadata": {"finalizers": null}}' >/dev/null
	k -n "$ns" delete pvc forced --wait >/dev/null
	soon 30 "neither volume has a PersistentVolume" no_volumes
	# The default of ten minutes is too long for a test.
	change_driver '[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--orphan-limit=30s"}]'
	soon 90 "the driver now checks more often" counts_orphans
	soon 60 "the driver counts both volumes" equals 2 orphans
	for volume in "$kept" "$forced"; do
		check "an Event of the node names the volume without a PersistentVolume" told_of "$volume"
		check "the volume without a PersistentVolume stays" volume_kept "$volume"
	done
	check "the documented commands list the volumes without a PersistentVolume" equals "$both" without_pv

	claim again 64Mi
	taken_back "$kept" 64Mi again | k apply -f - >/dev/null
	pod third again
	soon 60 "a pod runs with the adopted volume" running third
	check "the adopted volume has the stored file" stored third /greeting hello
	check "the adopted volume is the kept one" equals "$kept" volume_of again
	check "the other volume is deleted" inside rm "$zone_dir/$forced.stargate"
	soon 60 "the driver counts no volume without a PersistentVolume" equals 0 orphans
	check "the documented commands list no volume" equals "" without_pv
	check "the zone has only the kept volume" equals "$kept" in_zone
	k -n "$ns" delete pod third --wait >/dev/null
	k -n "$ns" delete pvc again --wait >/dev/null
	soon 60 "the adopted volume is deleted with its claim" no_volumes
	soon 60 "the volume's file is deleted" refused volume_kept "$kept"
	k -n "$release_ns" rollout undo "daemonset/$release-csi" >/dev/null
	soon 90 "the driver has its earlier options" driver_as_before
}
limited() { contains --orphan-limit k -n "$release_ns" get pod "$(driver_pod)" -o 'jsonpath={.spec.containers[0].args}'; }
counts_orphans() { driver_ready && limited && [[ -n $(orphans) ]]; }
driver_as_before() { driver_ready && ! limited; }

# --- Mounts without the module --------------------------------------------------------------

keeper_pod() {
	k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-keeper -o 'jsonpath={.items[0].metadata.name}'
}
keeper_ready() {
	equals True k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-keeper \
		-o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}'
}
# servers: prints the number of servers of pods' mounts on the node.
servers() { on_zoned pgrep -c -f '^/usr/local/sbin/stargatefs-fuse --kept ' || true; }
# counts POD: checks that the pod's loop has written another line.
counts() {
	local before
	before=$(in_pod "$1" sh -c 'wc -l </data/count')
	sleep 1
	(($(in_pod "$1" sh -c 'wc -l </data/count') > before))
}

# Two pods that are not root mount a volume of a zone of files. Their mounts continue to work when
# the driver's pod, and then the keeper's pod, is replaced.
case_fuse() {
	local user='securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000}'
	check "the driver mounts by FUSE from now on" helm upgrade "$release" "$chart" "${install_args[@]}" --set mount=fuse
	soon 60 "the driver is ready" driver_ready
	soon 60 "the keeper is ready" keeper_ready
	claim data 64Mi ReadWriteMany
	pod first data "" "$user"
	pod second data "" "$user"
	pod reader data readOnly "$user"
	soon 60 "the pods run" running first
	soon 60 "the second pod runs" running second
	soon 60 "the reader's pod runs" running reader
	check "the first pod stores a file" in_pod first sh -c 'echo hello >/data/greeting'
	check "the second pod reads the file" equals hello in_pod second cat /data/greeting
	check "the reader cannot store" refused in_pod reader sh -c ': >/data/file'
	check "the mount has no control files of the module" refused in_pod first test -e /data/.stargate
	check "one server serves all pods" equals 1 servers
	in_pod first sh -c 'while echo line >>/data/count; do sleep 0.1; done; touch /tmp/failed' &
	soon 30 "a pod writes" counts first
	k -n "$release_ns" delete pod "$(driver_pod)" --wait >/dev/null
	check "the mount works without the driver" counts first
	soon 60 "the new driver is ready" driver_ready
	check "the server was not restarted" equals 1 servers
	sleep 3 # until the driver has the descriptors of the mount
	k -n "$release_ns" delete pod "$(keeper_pod)" --wait >/dev/null
	soon 60 "the new keeper is ready" keeper_ready
	soon 30 "the pod continues to write" counts first
	check "no call of the pod has failed" refused in_pod first test -e /tmp/failed
	check "the stored file is still there" equals hello in_pod second cat /data/greeting
	k -n "$ns" patch pvc data -p '{"spec": {"resources": {"requests": {"storage": "128Mi"}}}}' >/dev/null
	soon 90 "the claim has grown" grown 128Mi
	check "the new part of the volume can be used" in_pod second dd if=/dev/zero of=/data/large bs=1M count=80
	k -n "$ns" delete pod first second reader --wait >/dev/null
	soon 60 "no server is left" equals 0 servers
	k -n "$ns" delete pvc data --wait >/dev/null
	check "helm refuses to end FUSE mounts that are in use" refused helm upgrade "$release" "$chart" "${install_args[@]}"
	check "helm ends the use of FUSE with keeper.endMounts=true" helm upgrade "$release" "$chart" "${install_args[@]}" \
		--set keeper.endMounts=true
	soon 60 "the driver is ready after the change" driver_ready
}
