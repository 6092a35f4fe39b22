# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Functions that make the objects of the cases, wait for them and examine them. e2e/cluster/case
# sources this file. $ns is the case's namespace.
# shellcheck disable=SC2034,SC2154 # e2e/cluster/case sets the variables

release=stargate
release_ns=stargate-system
driver=stargate.csi.dev
zone_dir=/dev/shm/stargate # the zone of files
snapshot_dir=/var/lib/stargate-snapshots
zone_name=stargate         # the zone of reserved memory
zone_device=/dev/pmem0
region=/data/.stargate/region
zoned=$node # the node that has the zone
! with_vm || zoned=$vm

# check WORDS COMMAND...: fails the case unless COMMAND succeeds. Prints the time, which shows slow
# steps.
check() {
	local words=$1
	shift
	"$@" || { echo "failed: $words: $*" >&2; exit 1; }
	checks=$((checks + 1))
	echo "$SECONDS s: $words" >&2
}
# soon SECONDS WORDS COMMAND...: checks that COMMAND succeeds within SECONDS, or within three times
# as long with the second node, which may be emulated.
soon() {
	local limit=$1
	! with_vm || limit=$((3 * limit))
	check "$2 within $limit s" within "$limit" "${@:3}"
}
refused() { ! "$@" >/dev/null 2>&1; }
contains() { [[ $("${@:2}" 2>&1) == *"$1"* ]]; }
equals() { [[ $("${@:2}") == "$1" ]]; }

# claim NAME SIZE [ACCESS_MODE] [VOLUME_MODE] [KIND/SOURCE] [CLASS]: makes a claim. With
# KIND/SOURCE, its volume is a copy of that object.
claim() {
	local source=
	case ${5:-} in
	VolumeSnapshot/*) source="dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: ${5#*/}}" ;;
	?*) source="dataSource: {kind: ${5%/*}, name: ${5#*/}}" ;;
	esac
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: $ns}
		spec:
		  storageClassName: ${6:-stargate}
		  accessModes: [${3:-ReadWriteOnce}]
		  volumeMode: ${4:-Filesystem}
		  resources: {requests: {storage: $2}}
		  $source
	EOF
}

# pod NAME CLAIM [readOnly|block] [WHERE]: makes a pod that sleeps, with the claim's volume at
# /data. WHERE is a part of the pod's spec that selects the node.
pod() {
	local how='{name: data, mountPath: /data}' kind=volumeMounts more=
	# readOnly is set for the volume and not for the container, because a container's readOnly
	# does not cover mounts below the volume's mount, and the region is such a mount.
	[[ ${3:-} != readOnly ]] || more=', readOnly: true'
	[[ ${3:-} != block ]] || { how='{name: data, devicePath: /dev/data}'; kind=volumeDevices; }
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, namespace: $ns, labels: {test: $ns}}
		spec:
		  terminationGracePeriodSeconds: 1
		  automountServiceAccountToken: false
		  ${4:-}
		  containers:
		  - {name: main, image: "localhost/pod:1", imagePullPolicy: Never, $kind: [$how]}
		  volumes:
		  - {name: data, persistentVolumeClaim: {claimName: $2$more}}
	EOF
}

running() { equals True k -n "$ns" get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'; }
bound() { equals Bound k -n "$ns" get pvc "$1" -o 'jsonpath={.status.phase}'; }
pending() { equals Pending k -n "$ns" get "$1" "$2" -o 'jsonpath={.status.phase}'; }
# volume_of CLAIM: prints the name of the claim's volume in the zone.
# pv_of CLAIM: prints the name of the claim's PersistentVolume.
volume_of() { k get pv "$(pv_of "$1")" -o 'jsonpath={.spec.csi.volumeHandle}' | cut -d@ -f1; }
pv_of() { k -n "$ns" get pvc "$1" -o 'jsonpath={.spec.volumeName}'; }
has_event() { contains "$2" k -n "$ns" get events --field-selector "involvedObject.name=$1" -o 'jsonpath={.items[*].message}'; }
in_pod() { k -n "$ns" exec "$1" -- "${@:2}"; }
gone() { refused k -n "$ns" get "$1" "$2"; }

# store POD FILE TEXT: writes the text to a file in the pod's volume.
# stored POD FILE TEXT: checks that the file has the text.
# In a zone of files, stargatectl in the pod writes and reads the file.
store() {
	if with_vm; then
		in_pod "$1" sh -c "echo '$3' >'/data$2'"
	else
		in_pod "$1" sh -c "echo '$3' | stargatectl put $region - '$2'"
	fi
}
stored() {
	if with_vm; then
		equals "$3" in_pod "$1" cat "/data$2"
	else
		equals "$3" in_pod "$1" stargatectl cat "$region" "$2"
	fi
}
# read_only POD: checks that the pod cannot open the volume's memory for writing, and cannot make a
# file.
read_only() {
	refused in_pod "$1" sh -c ": 3<>$region" && refused in_pod "$1" sh -c ': >/data/file'
}

driver_pod() {
	k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi --field-selector "spec.nodeName=$zoned" \
		-o 'jsonpath={.items[0].metadata.name}'
}
# driver_ready: checks that the driver has one pod on each node, and that these pods are ready.
driver_ready() {
	local all
	all=$(k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi \
		-o 'jsonpath={range .items[*]}{.metadata.deletionTimestamp}{range .status.conditions[?(@.type=="Ready")]}{.status}{end} {end}')
	if with_vm; then [[ $all == "True True " ]]; else [[ $all == "True " ]]; fi
}
# Options of pgrep that find the driver's process on the node. The resizer's pod also runs the
# driver's program, but for no node.
driver_process=(-f '^/usr/local/bin/stargate-csi .*--registration-dir=')
# ours: removes the namespace from lines "NAMESPACE WORD...". Beside parallel cases (BESIDE), it
# prints only the lines of this case.
ours() { awk -v only="${BESIDE:+$ns}" 'only == "" || $1 == only { sub(/^[^ ]* ?/, ""); print }'; }
volumes_of_driver() {
	k get pv -o "jsonpath={range .items[?(@.spec.csi.driver==\"$driver\")]}{.spec.claimRef.namespace} {.metadata.name}{\"\\n\"}{end}" | ours
}
no_volumes() { local left; left=$(volumes_of_driver) && [[ -z $left ]]; }
volume_kept() {
	if with_vm; then
		on_vm stargatectl volume show "$zone_name/$1" >/dev/null
	else
		inside test -e "$zone_dir/$1.stargate"
	fi
}
# largest [NODE]: prints the size of the largest possible volume that the node reports, in MiB.
largest() {
	local size
	size=$(k -n "$release_ns" get csistoragecapacities -o \
		'jsonpath={range .items[*]}{.nodeTopology.matchLabels} {.maximumVolumeSize}{"\n"}{end}' |
		sed -n "s/.*:\"${1:-$zoned}\"} //p")
	[[ -n $size ]] || return 1
	echo $(($(numfmt --from=auto "$size") >> 20))
}

# no_node_mounts: checks that the node has no mount of a volume. Beside parallel cases it checks
# only the volumes that this case had at its end, which are in the list had.
had=()
no_node_mounts() {
	local name mounts volumes of=()
	mounts=$(on_zoned cat /proc/mounts) && volumes=$(volumes_of_driver) || return 1
	mounts=$(grep -E '^stargate/| stargatefs ' <<<"$mounts" || true)
	[[ -n ${BESIDE:-} ]] || { [[ -z $mounts ]]; return; }
	for name in "${had[@]}" $volumes; do of+=(-e "$name" -e "${name//-/--}"); done
	((${#of[@]} == 0)) || ! grep -qF "${of[@]}" <<<"$mounts"
}
zone_empty() {
	if with_vm; then
		equals "" on_vm lvs --noheadings -o lv_name "$zone_name"
	else
		! inside ls -A "$zone_dir" | grep -qvx '\.stargate-zone'
	fi
}
zone_there() { if with_vm; then on_vm vgs "$zone_name" >/dev/null 2>&1; else inside test -d "$zone_dir"; fi; }
# sound: checks that the kernel of the second node has reported no error in any of its boots.
sound() { ! with_vm || "$home/e2e/rig" judge "$logs"/stargate-rig-*/g1.*.console; }

# finish: deletes the objects of the case, and waits until their volumes and mounts have
# disappeared.
finish() {
	local machines volumes
	machines=$(k -n "$ns" get virtualmachineinstances -o name 2>/dev/null || true)
	volumes=$(volumes_of_driver)
	read -ra had <<<"${volumes//$'\n'/ }"
	k delete namespace "$ns" --wait=false >/dev/null
	# The objects of the namespace are deleted immediately. The namespace itself remains for ten
	# seconds, during which other cases may continue.
	[[ -z $machines ]] || soon 90 "the namespace is gone" refused k get namespace "$ns"
	soon 60 "no volume is left" no_volumes
	soon 60 "no volume is mounted on the node" no_node_mounts
	[[ -n ${BESIDE:-} ]] || ! zone_there || soon 60 "the zone is empty" zone_empty
	check "the kernel logs have no error" sound
}

# post_mortem: prints the cluster's state, which helps to find the cause of a failure.
post_mortem() {
	set +e
	echo "--- objects"
	k -n "$ns" get pods,pvc -o wide
	k get pv
	k -n "$release_ns" get pods,csistoragecapacities
	k -n "$ns" get events --sort-by .lastTimestamp | tail -n 15
	k -n "$release_ns" get events --sort-by .lastTimestamp | tail -n 10
	if with_vm; then
		echo "--- $vm"
		on_vm stargatectl volume list
		on_vm grep stargate /proc/mounts
		on_vm tail -n 25 /node/log/kubelet.log
		on_vm sh -c 'dmesg | tail -n 15'
	fi
	for container in driver provisioner snapshotter; do
		echo "--- $container"
		k -n "$release_ns" logs "$(driver_pod)" -c "$container" --tail 30
	done
	echo "--- resizer"
	k -n "$release_ns" logs "deployment/$release-resizer" -c resizer --tail 30
	for pod in $(k -n "$ns" get pods -l kubevirt.io=virt-launcher -o name); do
		echo "--- $pod, and its VM"
		k -n "$ns" get "$pod" -o jsonpath='{.status}'
		k -n "$ns" get vmi "$(k -n "$ns" get "$pod" -o 'jsonpath={.metadata.labels.vm\.kubevirt\.io/name}')" -o jsonpath='{.status}'
		k -n "$ns" logs "$pod" -c compute --tail 30
		echo "--- the console of $pod"
		k -n "$ns" logs "$pod" -c guest-console-log --tail 12
	done
	for pod in $(k -n "$ns" get pods -l cdi.kubevirt.io=importer -o name); do
		echo "--- $pod, which fills a disk"
		k -n "$ns" logs "$pod" --all-containers --tail 20
	done
	for pod in $(k -n kubevirt get pods -l kubevirt.io=virt-handler -o name); do
		echo "--- $pod"
		k -n kubevirt logs "$pod" -c virt-handler --tail 40
	done
	k delete namespace "$ns" --wait=false
} >&2
