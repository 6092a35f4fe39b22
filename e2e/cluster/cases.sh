# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The cases of a node that has a zone of files, in their order. Most cases also run on reserved
# memory (cases-dax.sh). e2e/cluster/case sources this file.
# shellcheck disable=SC2016,SC2034,SC2154 # variables of `case`; text for other shells

# Cases joined by a + run in parallel, and check only their own objects.
cases=(
	install helm-test share+readonly pod-once+block+expand
	snapshot+clone snapshot-outside+snapshot-by-hand nothing-left placed full quota kubectl
	inline
	plugin-killed kubelet-restarted forced driver-deleted driver-ends start-up orphans
	fuse dataset many times
	upgrade rollback uninstall-refused uninstall-data uninstall
)

chart=$home/charts/stargate
install_args=(--namespace "$release_ns" --create-namespace --values "$here/values.yaml" --wait --timeout 3m)

registered() { contains "$driver" k get csinode "$zoned" -o 'jsonpath={.spec.drivers[*].name}'; }
has_capacity() { equals "$1" largest; }
node_label() { equals "$1" k get node "$zoned" -o "jsonpath={.metadata.labels.${driver//./\\.}/zone-mib}"; }

restarts() { k -n "$release_ns" get pod "$(driver_pod)" -o 'jsonpath={.status.containerStatuses[*].restartCount}' | tr -d ' 0'; }

case_install() {
	check "helm installs from the archive's image" helm install "$release" "$chart" "${install_args[@]}"
	soon 60 "all containers are ready" driver_ready
	soon 30 "the driver is registered with the kubelet" registered
	soon 60 "the node reports its free memory" has_capacity 1024
	soon 60 "the node has the label with its zone's size" node_label 1024
	check "the storage class stargate exists" k get storageclass stargate
	check "no container of the driver was restarted" equals "" restarts
}

case_helm-test() {
	check "the tests of the chart pass" helm test "$release" --namespace "$release_ns" --timeout 2m
	soon 30 "the test leaves no claim" refused k -n "$release_ns" get pvc "$release-csi-test"
}

# A claim waits for a pod. Two pods have the same files.
case_share() {
	claim data 64Mi ReadWriteMany
	sleep 3
	check "a claim without a pod waits" pending pvc data
	pod first data
	soon 60 "the pod runs" running first
	check "the claim is bound" bound data
	pod second data
	soon 60 "a second pod runs" running second
	check "the first pod stores a file" store first /greeting hello
	check "the second pod reads the file" stored second /greeting hello
	check "the second pod stores a file" store second /answer world
	check "the first pod reads the second pod's file" stored first /answer world
	check "a pod can read the volume's address" contains '"base"' in_pod first cat /data/.stargate/volume.json
	check "a pod cannot store files next to the region" refused in_pod first sh -c 'echo x >/data/file'
	check "the volume is healthy" in_pod first sh -c "stargatectl info $region"
	k -n "$ns" delete pod first second --wait >/dev/null
	soon 30 "no mount remains without pods" no_node_mounts
	pod third data
	soon 60 "a later pod runs" running third
	check "a later pod reads the stored file" stored third /greeting hello
}

case_readonly() {
	claim data 64Mi ReadWriteMany
	pod writer data
	pod reader data readOnly
	soon 60 "the writer runs" running writer
	soon 60 "the reader runs" running reader
	check "the writer stores a file" store writer /greeting hello
	check "the reader reads the file" stored reader /greeting hello
	check "the reader cannot store" read_only reader
	check "the writer can still store files" store writer /more words
	claim only 64Mi ReadOnlyMany
	pod looker only
	soon 60 "a pod of a ReadOnlyMany claim runs" running looker
	check "the pod of the ReadOnlyMany claim cannot store" read_only looker
}

case_pod-once() {
	claim data 64Mi ReadWriteOncePod
	pod first data
	soon 60 "the first pod runs" running first
	pod second data
	soon 60 "an Event of the second pod reports why the pod waits" has_event second "ReadWriteOncePod"
	check "the second pod waits" pending pod second
	k -n "$ns" delete pod first --wait >/dev/null
	soon 90 "the second pod runs after the first has ended" running second
}

case_block() {
	claim data 64Mi ReadWriteOnce Block
	pod first data block
	soon 60 "an Event of the claim reports the reason" has_event data "volumeMode Block is not supported"
	check "the claim waits" pending pvc data
}

grown() { equals "$1" k -n "$ns" get pvc data -o 'jsonpath={.status.capacity.storage}'; }
size_in_pod() { equals "$2" in_pod "$1" stat -c %s "$region"; }

case_expand() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	check "the pod sees the volume's size" size_in_pod first $((64 << 20))
	k -n "$ns" patch pvc data -p '{"spec": {"resources": {"requests": {"storage": "128Mi"}}}}' >/dev/null
	soon 90 "the claim has grown" grown 128Mi
	check "the pod's memory has grown" size_in_pod first $((128 << 20))
	with_vm || check "the volume reports its new size" contains '134217728' in_pod first cat /data/.stargate/volume.json
	check "the stored file is still there" stored first /greeting hello
	check "the new part can be used" store first /more words
	k -n "$ns" patch pvc data -p '{"spec": {"resources": {"requests": {"storage": "900Gi"}}}}' >/dev/null
	soon 90 "a growth that is too large is refused, with the largest size" has_event first "largest"
	check "the pod continues to use the volume" stored first /more words
}

case_full() {
	claim large 700Mi
	pod holder large
	soon 60 "a pod with a volume that fits runs" running holder
	claim next 600Mi
	pod waiting next
	soon 90 "an Event of the next pod reports why the pod waits" has_event waiting "did not have enough free storage"
	check "the claim that does not fit waits" pending pvc next
	check "the pod of that claim waits" pending pod waiting
	claim small 64Mi
	pod other small
	soon 60 "a pod with a smaller volume runs meanwhile" running other
	k -n "$ns" delete pod holder --wait >/dev/null
	k -n "$ns" delete pvc large --wait >/dev/null
	soon 180 "the waiting pod runs when there is space" running waiting
}

# No pod is scheduled for a claim that is larger than any possible volume.
case_quota() {
	claim huge 2Ti
	pod first huge
	soon 60 "an Event of the pod reports the reason" has_event first "did not have enough free storage"
	check "the claim that is too large waits" pending pvc huge
}

# plugin ARGUMENT...: runs `kubectl stargate`. kubectl finds the plugin in its PATH, as on a user's
# machine.
plugin() { inside env PATH="$run/bin:$PATH" KUBECONFIG="$run/admin.conf" kubectl stargate "$@"; }
# explains TEXT SUBJECT: checks that `kubectl stargate doctor` exits with 1 and prints TEXT.
explains() {
	local said status=0
	said=$(plugin doctor --namespace "$ns" "${@:2}" 2>&1) || status=$?
	[[ $status -eq 1 && $said == *"$1"* ]] || { echo "status $status: $said"; return 1; }
}

case_kubectl() {
	claim data 64Mi
	check "doctor explains a claim without a pod" explains "No pod uses the claim" pvc/data
	pod first data
	soon 60 "the pod runs" running first
	check "doctor finds no problem" contains "No problem found" plugin doctor --namespace "$ns"
	check "the command zones shows the node" contains "$zoned" plugin zones
	check "the command zones shows a zone that is ready" contains "Ready" plugin zones
	check "the command volumes shows the claim's pod" contains first plugin volumes --namespace "$ns"
	check "the JSON of the command volumes has the volume's name" contains "\"$(volume_of data)\"" plugin volumes -n "$ns" -o json
	check "the command systems reads the mount table in the driver's pod" plugin systems data --namespace "$ns"
	check "the command systems prints JSON" contains '"systems"' plugin systems data --namespace "$ns" --output json
	check "the command fence refuses a system that does not exist" refused plugin fence data nobody --namespace "$ns"
	check "the command top shows the claim" contains data plugin top --namespace "$ns" --count 1 --interval 1s
	check "a claim that does not exist is an error" contains "there is no claim" plugin systems nothing -n "$ns"
	claim huge 2Ti
	pod waiting huge
	soon 60 "doctor names the largest possible volume" explains "the largest volume that a node can make is" pvc/huge
	soon 60 "doctor explains why the pod waits" explains "The pod is not scheduled" pod/waiting
}

# inline_pod NAME WHERE: makes a pod with an inline volume. WHERE is a part of the pod's spec that
# selects the node.
inline_pod() {
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, namespace: $ns}
		spec:
		  terminationGracePeriodSeconds: 1
		  $2
		  containers:
		  - {name: main, image: "localhost/pod:1", imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: /data}]}
		  volumes:
		  - {name: data, csi: {driver: $driver, volumeAttributes: {size: 32Mi}}}
	EOF
}

# The scheduler does not check the capacity for an inline volume, so the pod itself selects a node
# with a zone.
case_inline() {
	local terms="[{matchExpressions: [{key: $driver/zone-mib, operator: Exists}]}]"
	local must=requiredDuringSchedulingIgnoredDuringExecution
	inline_pod first "affinity: {nodeAffinity: {$must: {nodeSelectorTerms: $terms}}}"
	soon 60 "a pod with an inline volume runs" running first
	check "the inline volume has the requested size" size_in_pod first $((32 << 20))
	check "the pod stores a file" store first /greeting hello
	k -n "$ns" delete pod first --wait >/dev/null
	soon 30 "the inline volume is deleted with its pod" zone_empty
}

# A restored volume has the content from the time of the snapshot, and may be larger. The source may
# already be deleted.
case_snapshot() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	snapshot kept data
	soon 90 "the snapshot is ready" ready_to_use kept
	check "the snapshot reports the size that a restored volume needs" equals 64Mi k -n "$ns" get volumesnapshot kept -o 'jsonpath={.status.restoreSize}'
	check "the pod changes the file after the snapshot" store first /greeting changed
	claim same 64Mi ReadWriteOnce Filesystem VolumeSnapshot/kept
	pod second same
	soon 90 "a pod with the restored volume runs" running second
	check "the restored volume has the file of the snapshot" stored second /greeting hello
	check "the first volume keeps its changed file" stored first /greeting changed
	check "a pod stores a file in the restored volume" store second /own words
	check "the first volume does not show that file" refused stored first /own words
	claim larger 128Mi ReadWriteOnce Filesystem VolumeSnapshot/kept
	k -n "$ns" delete pod first --wait >/dev/null
	k -n "$ns" delete pvc data --wait >/dev/null
	pod third larger
	soon 90 "a larger volume is restored after the first is deleted" running third
	check "the larger restored volume has the file of the snapshot" stored third /greeting hello
	check "the larger restored volume has its size" size_in_pod third $((128 << 20))
	claim smaller 32Mi ReadWriteOnce Filesystem VolumeSnapshot/kept
	pod fourth smaller
	soon 60 "an Event of the smaller claim reports the reason" has_event smaller "32"
	check "a claim smaller than the snapshot waits" pending pvc smaller
	k -n "$ns" delete pod fourth --wait >/dev/null
	k -n "$ns" delete pvc smaller --wait >/dev/null
	k -n "$ns" delete volumesnapshot kept --wait >/dev/null
	soon 60 "the snapshot is gone" no_snapshots
	check "the restored file stays after the snapshot is deleted" stored second /greeting hello
	check "the larger restored volume can be used" store third /more words
}

# outside: prints the names of snapshots in the node's folder that occupy less than 64 MiB.
outside() {
	on_zoned sh -c 'for f in "$1"/*.snapshot; do [ ! -e "$f" ] || stat -c "%b %n" "$f"; done' sh \
		"$snapshot_dir" | awk '$1 < 131072'
}

# A snapshot is stored in a folder of the node, and restored into the zone as a volume.
case_snapshot-outside() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	snapshot kept data outside
	soon 90 "the snapshot is ready" ready_to_use kept
	check "the snapshot is a file that uses only the space of its content" contains "@$(volume_of data).snapshot" outside
	check "the pod changes the file after the snapshot" store first /greeting changed
	claim same 64Mi ReadWriteOnce Filesystem VolumeSnapshot/kept
	pod second same
	soon 90 "a pod with the restored volume runs" running second
	check "the restored volume has the file of the snapshot" stored second /greeting hello
	k -n "$ns" delete volumesnapshot kept --wait >/dev/null
	soon 60 "the snapshot is gone" no_snapshots
	check "the file of the snapshot is deleted" refused contains "@$(volume_of data).snapshot" outside
	check "the restored file stays after the snapshot is deleted" stored second /greeting hello
}

# content_of SNAPSHOT: prints the name of the snapshot's content object.
content_of() { k -n "$ns" get volumesnapshot "$1" -o 'jsonpath={.status.boundVolumeSnapshotContentName}'; }

# A manually written content object makes a new VolumeSnapshot from a snapshot without an object.
case_snapshot-by-hand() {
	local content handle
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	snapshot kept data
	soon 90 "the snapshot is ready" ready_to_use kept
	content=$(content_of kept)
	handle=$(k get volumesnapshotcontent "$content" -o 'jsonpath={.status.snapshotHandle}')
	k patch volumesnapshotcontent "$content" --type merge -p '{"spec": {"deletionPolicy": "Retain"}}' >/dev/null
	k -n "$ns" delete volumesnapshot kept --wait >/dev/null
	k delete volumesnapshotcontent "$content" --wait >/dev/null
	k apply -f - >/dev/null <<-EOF
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshotContent
		metadata: {name: $ns-by-hand}
		spec:
		  driver: $driver
		  deletionPolicy: Delete
		  source: {snapshotHandle: $handle}
		  volumeSnapshotRef: {name: again, namespace: $ns}
		---
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshot
		metadata: {name: again, namespace: $ns}
		spec: {source: {volumeSnapshotContentName: $ns-by-hand}}
	EOF
	soon 60 "the node accepts the new VolumeSnapshot, which is ready" ready_to_use again
	claim same 64Mi ReadWriteOnce Filesystem VolumeSnapshot/again
	pod second same
	soon 90 "a pod with the restored volume runs" running second
	check "the restored volume has the file of the snapshot" stored second /greeting hello
	k -n "$ns" delete volumesnapshot again --wait >/dev/null
	soon 60 "the snapshot is gone" no_snapshots
}

case_clone() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	claim copy 64Mi ReadWriteOnce Filesystem PersistentVolumeClaim/data
	pod second copy
	soon 90 "a pod with the clone runs" running second
	check "the clone has the stored file" stored second /greeting hello
	check "the source's pod changes the file" store first /greeting changed
	check "the clone does not show the change" stored second /greeting hello
}

# snapshot NAME CLAIM [CLASS]: makes a VolumeSnapshot of the claim.
snapshot() {
	k apply -f - >/dev/null <<-EOF
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshot
		metadata: {name: $1, namespace: $ns}
		spec:
		  volumeSnapshotClassName: ${3:-stargate}
		  source: {persistentVolumeClaimName: $2}
	EOF
}
snapshots() {
	k get volumesnapshotcontents \
		-o 'jsonpath={range .items[*]}{.spec.volumeSnapshotRef.namespace} {.metadata.name}{"\n"}{end}' | ours
}
no_snapshots() { local left; left=$(snapshots) && [[ -z $left ]]; }
ready_to_use() { equals true k -n "$ns" get volumesnapshot "$1" -o 'jsonpath={.status.readyToUse}'; }

kill_driver() { on_zoned pkill -KILL "${driver_process[@]}"; }

# no_namespaces_going: checks that no namespace is being deleted. After cases that ran in parallel,
# their namespaces disappear with all objects in them.
no_namespaces_going() {
	local left
	left=$(k get namespaces -o 'jsonpath={.items[?(@.status.phase=="Terminating")].metadata.name}') && [[ -z $left ]]
}
case_nothing-left() {
	soon 90 "no namespace is being deleted" no_namespaces_going
	soon 60 "no snapshot is left" no_snapshots
}

# The driver is killed repeatedly by SIGKILL while six volumes are made, mounted and deleted.
case_plugin-killed() {
	local i kills=0 end
	for i in {1..6}; do
		claim "c$i" 32Mi
		pod "p$i" "c$i"
	done
	for i in {1..5}; do
		sleep "1.$i"
		kill_driver && kills=$((kills + 1))
	done
	check "the driver was killed at least once" test "$kills" -gt 0
	for i in {1..6}; do soon 400 "pod $i runs" running "p$i"; done
	for i in {1..6}; do check "volume $i can be used" store "p$i" /name "$i"; done
	soon 120 "the driver is killed once more" kill_driver
	for i in {1..6}; do check "the stored file of pod $i is there" stored "p$i" /name "$i"; done
	end=$((SECONDS + 15))
	k -n "$ns" delete pod,pvc --all --wait=false >/dev/null
	while ((SECONDS < end)); do
		kill_driver || true
		sleep 4
	done
	soon 240 "all volumes are gone" no_volumes
	soon 60 "the zone is empty" zone_empty
	soon 400 "the driver is ready" driver_ready
}

kubelet_process=(-f '^/[^ ]*/bin/kubelet ')
kubelet_pids() { on_zoned pgrep "${kubelet_process[@]}"; }

case_kubelet-restarted() {
	local before
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	before=$(kubelet_pids)
	check "the kubelet is killed" on_zoned pkill -KILL "${kubelet_process[@]}"
	soon 60 "another process of the kubelet runs" another_kubelet "$before"
	soon 60 "the driver is registered with the new kubelet" registered
	soon 60 "the pod still has its file" stored first /greeting hello
	check "the pod was not restarted" equals 0 k -n "$ns" get pod first -o 'jsonpath={.status.containerStatuses[0].restartCount}'
	pod second data
	soon 60 "another pod gets the volume" running second
	check "the next pod reads the stored file" stored second /greeting hello
}
another_kubelet() { local now; now=$(kubelet_pids) && [[ -n $now && $now != "$1" ]]; }

case_forced() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	k -n "$ns" delete pod first --force --grace-period=0 >/dev/null 2>&1
	soon 10 "the pod is gone" gone pod first
	pod second data
	soon 60 "the next pod runs" running second
	check "the next pod reads the stored file" stored second /greeting hello
	k -n "$ns" delete pod second --force --grace-period=0 >/dev/null 2>&1
	k -n "$ns" delete pvc data --wait=false >/dev/null
	soon 60 "the volume is gone" no_volumes
}

# Deletes the driver's pod, as an operator may do as a last resort.
case_driver-deleted() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	k -n "$release_ns" delete pod "$(driver_pod)" --wait >/dev/null
	check "the pod can still use its volume" store first /greeting hello
	soon 90 "another pod of the driver is ready" driver_ready
	soon 60 "the driver is registered with the kubelet" registered
	pod second data
	soon 60 "another pod gets the volume" running second
	check "the next pod reads the stored file" stored second /greeting hello
}

# Twenty claims and pods are made at the same time, twice.
case_many() {
	local round i
	for round in 1 2; do
		for i in {1..20}; do
			claim "c$i" 32Mi
			pod "p$i" "c$i"
		done
		for i in {1..20}; do soon 240 "round $round: pod $i runs" running "p$i"; done
		k -n "$ns" delete pod,pvc --all --wait=false >/dev/null
		soon 240 "round $round: all volumes are gone" no_volumes
		soon 60 "round $round: the zone is empty" zone_empty
	done
}

driver_images() {
	k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi \
		-o 'jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sort -u
}
uses_image() { equals "$1" driver_images; }

# Upgrades the release while a volume is in use. The next image is the same one under another name.
case_upgrade() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	for on in inside $(! with_vm || echo on_vm); do
		"$on" ctr --namespace k8s.io images tag --force "$driver_image:$version" "$driver_image:next" >/dev/null
	done
	check "helm upgrades to the next image" helm upgrade "$release" "$chart" "${install_args[@]}" --set image.tag=next --set logLevel=5
	soon 90 "the next driver is ready" driver_ready
	check "the driver has the next image" uses_image "$driver_image:next"
	check "the pod has its volume" stored first /greeting hello
	pod second data
	soon 60 "another pod gets the volume" running second
	k -n "$ns" patch pvc data -p '{"spec": {"resources": {"requests": {"storage": "96Mi"}}}}' >/dev/null
	soon 90 "the volume grows" grown 96Mi
}

case_rollback() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	check "helm rolls back" helm rollback "$release" --namespace "$release_ns" --wait --timeout 3m
	soon 90 "the previous driver is ready" driver_ready
	check "the driver has the previous image" uses_image "$driver_image:$version"
	check "the pod has its volume" stored first /greeting hello
	pod second data
	soon 60 "another pod gets the volume" running second
}

case_uninstall-refused() {
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "helm refuses to uninstall, and reports the reason" not_uninstalled "1 volumes of $driver are left ($ns/data)"
	check "the check's log has the reason" contains "1 volumes of $driver are left ($ns/data)" \
		k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi-volumes -o 'jsonpath={.items[*].status.containerStatuses[*].state.terminated.message}'
	check "the role of the check is gone" refused k get clusterrole "$release-csi-volumes"
	check "the driver continues to work" driver_ready
	pod second data
	soon 60 "another pod gets the volume" running second
	snapshot kept data
	soon 90 "a snapshot is ready" ready_to_use kept
	k -n "$ns" delete pod,pvc --all --wait >/dev/null
	soon 60 "no volume is left" no_volumes
	check "helm refuses to uninstall while a snapshot exists" refused helm uninstall "$release" --namespace "$release_ns" --timeout 2m
	check "the check's log names the snapshot" contains "1 snapshots of $driver are left ($ns/kept)" \
		k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi-volumes -o 'jsonpath={.items[*].status.containerStatuses[*].state.terminated.message}'
	k -n "$ns" delete volumesnapshot kept --wait >/dev/null
	soon 60 "the snapshot is gone" no_snapshots
	# For helm, the release has been uninstalled since then.
	check "helm refuses to upgrade after the refused uninstall" refused helm upgrade "$release" "$chart" "${install_args[@]}"
	check "a rollback to the current revision ends the uninstall" helm rollback "$release" "$(revision)" --namespace "$release_ns" --wait --timeout 3m
	check "helm can upgrade after the rollback" helm upgrade "$release" "$chart" "${install_args[@]}"
	check "the driver continues to work" driver_ready
}

# not_uninstalled WORDS: checks that helm fails to uninstall, and that its output has WORDS.
not_uninstalled() {
	local said
	! said=$(helm uninstall "$release" --namespace "$release_ns" --timeout 2m 2>&1) && [[ $said == *"$1"* ]]
}

# revision: prints helm's number of the installed revision.
revision() { helm history "$release" --namespace "$release_ns" --max 1 -o json | sed -n 's/.*"revision":\([0-9]*\).*/\1/p'; }

# An uninstall in spite of volumes keeps their data. After the next installation the data is there.
case_uninstall-data() {
	local name
	claim data 64Mi
	pod first data
	soon 60 "the pod runs" running first
	check "the pod stores a file" store first /greeting hello
	name=$(volume_of data)
	check "helm uninstalls" helm uninstall "$release" --namespace "$release_ns" --no-hooks --wait --timeout 3m
	check "the volume still exists" volume_kept "$name"
	check "the pod still has its file" stored first /greeting hello
	check "nodes keep the driver's annotations" on_nodes "$driver/zone-mib"
	check "helm installs a second time" helm install "$release" "$chart" "${install_args[@]}"
	soon 60 "the driver is registered with the kubelet" registered
	pod second data
	soon 60 "another pod gets the volume" running second
	check "the next pod reads the stored file" stored second /greeting hello
}

# on_nodes WORDS: checks that a Node object has WORDS.
on_nodes() { k get nodes -o json | grep -F "$1" >/dev/null; }

case_uninstall() {
	soon 90 "no namespace is being deleted" no_namespaces_going
	check "nodes have the driver's labels" on_nodes "topology.$driver/node"
	check "helm uninstalls" helm uninstall "$release" --namespace "$release_ns" --wait --timeout 3m
	soon 60 "no pod of the driver is left" equals "" k -n "$release_ns" get pods -o 'jsonpath={.items[*].metadata.name}'
	soon 60 "the driver is no longer registered with the kubelet" refused registered
	for kind in storageclass/stargate "csidriver/$driver" "clusterrole/$release-csi" "clusterrolebinding/$release-csi" \
		"clusterrole/$release-csi-volumes" "clusterrole/$release-csi-nodes" \
		"clusterrolebinding/$release-csi-volumes" "clusterrolebinding/$release-csi-nodes"; do
		check "$kind is gone" refused k get "$kind"
	done
	check "nodes have no labels of the driver" refused on_nodes "$driver/"
	check "no socket is left" refused on_zoned sh -c 'ls /var/lib/kubelet/plugins_registry/*.sock'
	soon 60 "no free memory of the nodes is reported" equals "" k -n "$release_ns" get csistoragecapacities -o 'jsonpath={.items[*].metadata.name}'
}
