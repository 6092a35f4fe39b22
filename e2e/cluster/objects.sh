# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the cases make, wait for and look at. Sourced; $ns is the case's namespace.
# shellcheck disable=SC2034,SC2154 # e2e/cluster/case has the rest

release=stargate
release_ns=stargate-system
driver=stargate.csi.dev
zone_dir=/dev/shm/stargate
region=/data/.stargate/region

# check WORDS COMMAND...: it succeeds, or the case has failed.
check() {
	local words=$1
	shift
	"$@" || { echo "failed: $words: $*" >&2; exit 1; }
	checks=$((checks + 1))
}
# soon SECONDS WORDS COMMAND...: within that time.
soon() { check "$2 within $1 s" within "$1" "${@:3}"; }
refused() { ! "$@" >/dev/null 2>&1; }
contains() { [[ $("${@:2}" 2>&1) == *"$1"* ]]; }
equals() { [[ $("${@:2}") == "$1" ]]; }

# claim NAME SIZE [ACCESS MODE] [VOLUME MODE] [KIND/NAME], of which it is to be a copy.
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
		  storageClassName: stargate
		  accessModes: [${3:-ReadWriteOnce}]
		  volumeMode: ${4:-Filesystem}
		  resources: {requests: {storage: $2}}
		  $source
	EOF
}

# pod NAME CLAIM [readOnly]: it sleeps, and has the claim's volume at /data.
pod() {
	local how='{name: data, mountPath: /data}' kind=volumeMounts more=
	# Of the volume: a container's own readOnly reaches no mount below, and the region is one.
	[[ ${3:-} != readOnly ]] || more=', readOnly: true'
	[[ ${3:-} != block ]] || { how='{name: data, devicePath: /dev/data}'; kind=volumeDevices; }
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, namespace: $ns, labels: {test: $ns}}
		spec:
		  terminationGracePeriodSeconds: 1
		  automountServiceAccountToken: false
		  containers:
		  - {name: main, image: "localhost/pod:1", imagePullPolicy: Never, $kind: [$how]}
		  volumes:
		  - {name: data, persistentVolumeClaim: {claimName: $2$more}}
	EOF
}

running() { equals True k -n "$ns" get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'; }
bound() { equals Bound k -n "$ns" get pvc "$1" -o 'jsonpath={.status.phase}'; }
pending() { equals Pending k -n "$ns" get "$1" "$2" -o 'jsonpath={.status.phase}'; }
volume_of() { k -n "$ns" get pvc "$1" -o 'jsonpath={.spec.volumeName}'; }
has_event() { contains "$2" k -n "$ns" get events --field-selector "involvedObject.name=$1" -o 'jsonpath={.items[*].message}'; }
in_pod() { k -n "$ns" exec "$1" -- "${@:2}"; }
gone() { refused k -n "$ns" get "$1" "$2"; }

# store POD FILE TEXT, stored POD FILE TEXT: in the volume that the pod has, as a machine would.
store() { in_pod "$1" sh -c "echo '$3' | stargatectl put $region - '$2'"; }
stored() { equals "$3" in_pod "$1" stargatectl cat "$region" "$2"; }
# read_only POD: it cannot open the volume's memory for writing.
read_only() { refused in_pod "$1" sh -c ": 3<>$region"; }

driver_pod() { k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi -o 'jsonpath={.items[0].metadata.name}'; }
driver_ready() {
	local all
	all=$(k -n "$release_ns" get pods -l app.kubernetes.io/name=stargate-csi \
		-o 'jsonpath={range .items[*]}{.metadata.deletionTimestamp}{range .status.conditions[?(@.type=="Ready")]}{.status}{end} {end}')
	[[ $all == "True " ]]
}
# The driver's processes, as the node sees them.
driver_pids() { inside pgrep -f '^/usr/local/bin/stargate-csi '; }
volumes_of_driver() {
	k get pv -o "jsonpath={range .items[?(@.spec.csi.driver==\"$driver\")]}{.metadata.name}{\"\\n\"}{end}"
}
no_volumes() { [[ -z $(volumes_of_driver) ]]; }
volume_file() { inside test -e "$zone_dir/$1.stargate"; }
# The largest volume that the node says it has room for.
largest() { k -n "$release_ns" get csistoragecapacities -o 'jsonpath={.items[0].maximumVolumeSize}'; }

# What the node has of volumes: none of these is left when no pod has one.
node_mounts() { inside cat /proc/mounts | grep -c '^stargate/' || true; }
no_node_mounts() { equals 0 node_mounts; }
zone_empty() { ! inside ls -A "$zone_dir" | grep -qvx '\.stargate-zone'; }

# finish: whatever the case has made goes, and takes with it what was made for it.
finish() {
	k delete namespace "$ns" --wait=false >/dev/null
	soon 90 "the namespace is gone" refused k get namespace "$ns"
	soon 60 "no volume is left" no_volumes
	soon 60 "nothing of a volume is mounted" no_node_mounts
	! inside test -d "$zone_dir" || soon 60 "the zone is empty" zone_empty
}

# post_mortem: what whoever looks for the reason would look at.
post_mortem() {
	set +e
	echo "--- what there is"
	k -n "$ns" get pods,pvc -o wide
	k get pv
	k -n "$release_ns" get pods,csistoragecapacities
	k -n "$ns" get events --sort-by .lastTimestamp | tail -n 15
	k -n "$release_ns" get events --sort-by .lastTimestamp | tail -n 10
	for container in driver provisioner resizer snapshotter; do
		echo "--- $container"
		k -n "$release_ns" logs "$(driver_pod)" -c "$container" --tail 30
	done
	for pod in $(k -n "$ns" get pods -l kubevirt.io=virt-launcher -o name); do
		echo "--- $pod, and its machine"
		k -n "$ns" get "$pod" -o jsonpath='{.status}'
		k -n "$ns" get vmi "$(k -n "$ns" get "$pod" -o 'jsonpath={.metadata.labels.vm\.kubevirt\.io/name}')" -o jsonpath='{.status}'
		k -n "$ns" logs "$pod" -c compute --tail 30
		echo "--- the console of $pod"
		k -n "$ns" logs "$pod" -c guest-console-log --tail 12
	done
	for pod in $(k -n kubevirt get pods -l kubevirt.io=virt-handler -o name); do
		echo "--- $pod"
		k -n kubevirt logs "$pod" -c virt-handler --tail 40
	done
	k delete namespace "$ns" --wait=false
} >&2
