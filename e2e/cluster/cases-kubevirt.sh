# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Cases of VMs with KubeVirt itself, in their order. The VMs run on this machine's node, emulated by
# QEMU, with a zone of files. Or they run on the second node under KVM (e2e/cluster/up --kvm), with
# reserved memory; pods on that node mount the same volumes. e2e/cluster/case sources this file.
# shellcheck disable=SC2016,SC2034,SC2154 # variables of `case`; text for other shells

kubevirt_cases=(
	install cdi-operator operator manifests
	machines machine-guest machine-examples machine-datavolume machine-virtiofs
	machine-reader machine-killed machine-paused machine-refused machine-restarted
	machine-drained machine-lost machine-helpers machine-grown
)
# All cases of one version run before those of the next version.
[[ $kubevirt != kubevirt-1.8 ]] || kubevirt_cases+=(kubevirt-upgraded)
kubevirt_cases+=(uninstall)
kubevirt_kvm_cases=(
	install-dax operator manifests
	machines machine-pod machine-reader machine-fenced
	machine-refused machine-restarted machine-power
	uninstall
)

# operator_objects: prints the operator's objects as KubeVirt releases them, with the names of the
# cluster's images. KubeVirt's templates need two passes.
operator_objects() {
	local source programs tag work
	programs=$(programs "$kubevirt")
	source=$(cd "$here/$kubevirt" && "$home/mk/tools/go" list -m -f '{{.Dir}}' kubevirt.io/kubevirt)
	tag=$(kubevirt_release)
	work=$(mktemp -d)
	echo x >"$work/logo"
	local common=(--kubevirt-logo-path="$work/logo" --namespace=kubevirt --container-prefix=localhost/kubevirt
		--container-tag="$tag" --generated-manifests-dir="$source/manifests/generated/")
	"$programs/manifest-templator" "${common[@]}" --process-files \
		--input-file="$source/manifests/release/kubevirt-operator.yaml.in" >"$work/half"
	"$programs/manifest-templator" "${common[@]}" --process-vars --input-file="$work/half" |
		sed 's/^  replicas: 2/  replicas: 1/'
	rm -rf "$work"
}

# of_version: sets how VMs get their volumes. KubeVirt 1.9 has plugins, also with hooks on the node.
# Two default features of 1.9 are switched off. Template needs a program of another project, and
# ImageVolume needs a newer containerd than Debian's.
of_version() {
	case $kubevirt in
	kubevirt-1.8) api=sidecar gates='Sidecar' disabled='' ;;
	*) api=plugin gates='Plugins' disabled='disabledFeatureGates: [Template, ImageVolume]' ;;
	esac
}
of_version

kubevirt_object() {
	local emulated=true
	! with_kvm || emulated=false
	cat <<-EOF
		apiVersion: kubevirt.io/v1
		kind: KubeVirt
		metadata: {name: kubevirt, namespace: kubevirt}
		spec:
		  imagePullPolicy: IfNotPresent
		  infra: {replicas: 1}
		  workloads: {nodePlacement: {nodeSelector: {kubernetes.io/hostname: $zoned}}}
		  # An upgrade should migrate running VMs. VMs with StargateFS volumes cannot
		  # migrate.
		  workloadUpdateStrategy: {workloadUpdateMethods: [LiveMigrate]}
		  configuration:
		    imagePullPolicy: IfNotPresent
		    developerConfiguration:
		      useEmulation: $emulated
		      featureGates: [$gates, EnableVirtioFsStorageVolumes, Snapshot]
		      $disabled
		    # By default KubeVirt limits virtiofsd to a tenth of a processor.
		    supportContainerResources:
		    - {type: virtiofs, resources: {limits: {cpu: "2", memory: 512M}}}
	EOF
}

# virtual NAME VOLUMES: makes a VM. The rest of the template's spec comes from standard input.
virtual() {
	local rest
	rest=$(cat)
	k apply -f - <<-EOF
		apiVersion: kubevirt.io/v1
		kind: VirtualMachine
		metadata: {name: $1, namespace: $ns}
		spec:
		  runStrategy: Always
		  template:
		    metadata:
		      annotations: {$driver/volumes: "$2"}
		    spec:
		      terminationGracePeriodSeconds: 0
		$rest
	EOF
}

# Makes the kernel of a VM reboot one second after a panic.
panics=panic=1
# machine NAME VOLUMES ROLE [MEMORY] [CLAIM]: makes a VM that boots e2e/cluster/images/machine-init.
# The VM mounts CLAIM, which is of another class, by virtiofs.
machine() {
	local names=${2//[^,]/} processor='' words other='' volume=''
	[[ -z ${5:-} ]] || {
		other='filesystems: [{name: other, virtiofs: {}}]'
		volume="volumes: [{name: other, persistentVolumeClaim: {claimName: $5}}]"
	}
	words="console=ttyS0 $panics sg.role=$3 sg.volumes=$((${#names} + 1))"
	! with_kvm || processor='cpu: {model: host-passthrough}'
	virtual "$1" "$2" <<-EOF
		      domain:
		        memory: {guest: ${4:-256Mi}}
		        $processor
		        # The node has no memory for the VM that KubeVirt must refuse.
		        resources: {requests: {memory: 256Mi}}
		        devices:
		          autoattachPodInterface: false
		          autoattachGraphicsDevice: false
		          autoattachMemBalloon: false
		          $other
		        firmware:
		          kernelBoot:
		            kernelArgs: $words
		            container:
		              image: "localhost/kubevirt/machine:$(kubevirt_release)"
		              imagePullPolicy: Never
		              kernelPath: /boot/vmlinuz
		              initrdPath: /boot/initrd
		      $volume
	EOF
}

deployed() { equals Deployed k -n kubevirt get kubevirt kubevirt -o 'jsonpath={.status.phase}'; }
launcher() {
	k -n "$ns" get pods -l "vm.kubevirt.io/name=$1" --sort-by .metadata.creationTimestamp \
		-o 'jsonpath={.items[-1:].metadata.name}'
}
console() { k -n "$ns" logs "$(launcher "$1")" -c guest-console-log; }
# prints NAME WORDS: checks that the VM's console has WORDS.
# says NAME WORDS: checks that a line of machine-init on the VM's console has WORDS.
prints() { console "$1" | tr -d '\r' | grep -F "$2" >/dev/null; } # without -q grep reads to the end, so that no SIGPIPE occurs
says() { prints "$1" "SG $2"; }
# said NAME WORDS: prints how often the VM has printed WORDS in its current pod.
said() { console "$1" | tr -d '\r' | grep -cF "SG $2" || true; }
well() { ! console "$1" | grep -E 'SG failed|cut here|Oops|BUG:|Kernel panic'; }
condition() { contains "$3" k -n "$ns" get vmi "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].message}"; }
# at_its_address NAME CLAIM: checks that the VM has the volume mounted at the same address as the
# node.
at_its_address() {
	local base=0x10 # the beginning of the address of the first volume in a zone of files
	! with_vm || base=$(on_vm stargatectl -j volume show "$zone_name/$(volume_of "$2")" | sed -n 's/.*"base": "\([^"]*\)".*/\1/p')
	[[ -n $base ]] && says "$1" "mounted $2 at $base"
}
# qemu NAME: prints a pattern for the VM's process on the node.
qemu() { echo "^[^ ]*qemu[^ ]* .*guest=${ns}_$1,"; }
by_kvm() { contains "-accel kvm" on_zoned pgrep -af "$(qemu "$1")"; }
webhook_ready() { k -n "$release_ns" wait deployment -l app.kubernetes.io/name=stargate-webhook --for condition=Available --timeout 1s; }

case_operator() {
	k label node "$node" node-role.kubernetes.io/control-plane= --overwrite >/dev/null
	operator_objects | k apply --server-side -f - >/dev/null
	soon 60 "the kind KubeVirt exists" k get crd kubevirts.kubevirt.io
	kubevirt_object | k apply -f - >/dev/null
	soon 420 "KubeVirt is deployed" deployed
	check "the chart installs its part for KubeVirt" chart_for "$api"
	soon 60 "the webhook is ready" webhook_ready
	soon 60 "the driver is ready" driver_ready
}
# chart_for API: upgrades the chart, so that VMs get their volumes by API, `sidecar` or `plugin`.
chart_for() {
	helm upgrade "$release" "$chart" "${install_args[@]}" \
		--set kubevirt.enabled=true --set "kubevirt.api=$1" --timeout 6m
}

# example FILE: sends an example to the API server as a dry run, with all admission checks. The
# cluster has no images for the examples, so no VM starts. Objects of CDI are left out if the
# cluster has no CDI.
example() {
	local unknown='/^apiVersion: cdi/,/^---/d'
	! with_cdi || unknown=''
	sed "$unknown" "$1" | k -n "$ns" apply --dry-run=server -f - 2>&1
}
case_manifests() {
	local file
	for file in "$home"/kubevirt-manifests/*.yaml; do
		check "${file##*/} is accepted" example "$file"
	done
	check "the webhook has checked the example" contains "there is no claim data" example "$home/kubevirt-manifests/minimal.yaml"
	check "an impossible VM is refused" refused example <(sed 's/volumes: data/volumes: "data,data"/' "$home/kubevirt-manifests/minimal.yaml")
}

# Two VMs mount one volume at its address. The case tests files, locks and semaphores.
case_machines() {
	claim data 128Mi ReadWriteMany
	check "the first VM is accepted" machine first data first
	check "the second VM is accepted" machine second data second
	soon 240 "the first VM has the volume at its address" at_its_address first data
	soon 120 "the second VM has the volume at its address" at_its_address second data
	! with_kvm || check "KVM runs the second VM" by_kvm second
	soon 60 "the first VM stores a file" says first "stored hello"
	soon 60 "the second VM reads the file" says second "read hello"
	soon 60 "the first VM reads the second VM's file" says first "read world"
	soon 60 "a lock of one VM excludes the other" says second "the lock is held"
	soon 60 "the process of the second VM waits for the lock, and gets it" says second "waited for the lock"
	soon 60 "a semaphore gives the first VM a turn" says first "given its turn"
	check "no process of the first VM failed" well first
	check "no process of the second VM failed" well second
	k -n "$ns" delete vm first second --wait >/dev/null
	pod after data
	soon 60 "a pod has the volume after the VMs" running after
	check "the stored file is still there" stored after /greeting hello
	check_sound data after
}
# check_sound CLAIM POD: checks the volume. POD is its last user, and is deleted if it would prevent
# the check.
check_sound() {
	if with_vm; then
		k -n "$ns" delete pod "$2" --wait >/dev/null
		soon 60 "no process uses the volume" no_node_mounts
		check "the volume passes its check" on_vm stargatectl volume check "$zone_name/$(volume_of "$1")"
	else
		check "the volume passes its check" in_pod "$2" sh -c "stargatectl info $region"
	fi
}

# On reserved memory, a pod on the node has the same files as a VM, through the node's own mount.
case_machine-pod() {
	local holder
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	check "the pod's volume is a mount of the module" on_stargatefs beside
	check "a VM with the volume is accepted" machine first data first
	soon 240 "the VM has the volume at its address" at_its_address first data
	soon 60 "the VM stores a file" says first "stored hello"
	check "the pod reads the VM's file" stored beside /greeting hello
	check "the pod waits for the VM's lock, then stores a file" in_pod beside sh -c '
		echo world >/data/answer
		until [ -e /data/held ]; do sleep 0.1; done
		! flock -n /data/lock true && flock /data/lock [ ! -e /data/held ]'
	check "the VM reads the pod's file" says first "read world"
	check "the pod gives a turn to the VM" in_pod beside sh -c '
		until [ -e /data/semaphore ]; do sleep 0.1; done
		stargate-sem -v /data post turn'
	soon 60 "the VM gets its turn" says first "given its turn"
	in_pod beside sh -c 'exec 9>/data/lock; flock 9; echo 1 >/data/count; exec sleep 1000' &
	holder=$!
	soon 30 "the pod holds a lock" in_pod beside test -e /data/count
	machine second data heir >/dev/null
	soon 240 "a second VM waits for the lock" says second "waits for the lock"
	check "the second VM does not get the lock" refused says second "has the lock"
	k -n "$ns" delete pod beside --force --grace-period 0 >/dev/null 2>&1
	soon 60 "the second VM gets the lock when the pod has ended" says second "has the lock, count 1"
	wait "$holder" || true
	check "no process of the first VM failed" well first
	check "no process of the second VM failed" well second
}

guest_password=of-a-test
# guest NAME CLAIM COMMAND: makes a VM with Debian (kubevirt-manifests/images), configured by
# cloud-init.
guest() {
	virtual "$1" "$2" <<-EOF
		      domain:
		        memory: {guest: 768Mi}
		        devices:
		          autoattachPodInterface: false
		          autoattachGraphicsDevice: false
		          disks:
		          - {name: root, disk: {bus: virtio}}
		          - {name: seed, disk: {bus: virtio}}
		        firmware:
		          kernelBoot:
		            kernelArgs: console=ttyS0 root=LABEL=root ro
		            container:
		              image: "localhost/kubevirt/guest:1"
		              imagePullPolicy: Never
		              kernelPath: /boot/vmlinuz
		              initrdPath: /boot/initrd.img
		      volumes:
		      - name: root
		        containerDisk: {image: "localhost/kubevirt/guest:1", imagePullPolicy: Never}
		      - name: seed
		        cloudInitNoCloud:
		          userData: |
		            #cloud-config
		            password: $guest_password
		            chpasswd: {expire: false}
		            runcmd:
		            - [sh, -c, '$3']
	EOF
}

# mounts NAME: prints how often a VM with Debian has mounted the volume of its first device.
mounts() { console "$1" | grep -c 'stargate-mount: /dev/pmem0 is mounted at /mnt/stargate/' || true; }

# at_console NAME COMMAND LINE: logs in on the console of a VM with Debian like a user, types
# COMMAND and expects LINE. virtctl needs a terminal, which script(1) provides. The virtctl is that
# of 1.8, because a module of 1.9's virtctl (for templates) is missing on Go's proxy.
# shellcheck disable=SC2317 # the function within calls functions that are defined here
at_console() {
	local seen=$logs/console-$1 said=0 virtctl to
	virtctl=$(programs kubevirt-1.8)/virtctl
	rm -f "$seen"
	exec {to}> >(inside script -qfc "'$virtctl' --kubeconfig '$run/admin.conf' -n $ns console $1" "$seen" >/dev/null)
	stands() { sed 's/\r//g; s/\x1b\[[?;0-9]*[a-zA-Z]//g' "$seen" | grep "$1" >/dev/null; }
	typed() { (printf '%b' "$1" >&"$to"); } # a SIGPIPE ends only the subshell
	prompted() { typed '\n' && stands "$1 login: "; }
	# Input that arrives before the login prompt is lost.
	{ within 60 stands "^Successfully connected to $1 console. Press Ctrl+] or Ctrl+5 to exit console.$" &&
		within 120 prompted "$1" && sleep 3 && typed 'debian\n' &&
		within 120 stands '^Password: ' && typed "$guest_password\n" &&
		within 240 stands "debian@$1:~\\$ " && typed "$2\n" &&
		within 120 stands "^$3$"; } || said=1
	typed '\035' || said=1 # Ctrl+]
	exec {to}>&-
	return "$said"
}

# A VM as users have it. systemd mounts the claim's volume by its name, and a command of cloud-init
# uses the volume. A VM with machine-init, and a user who logs in, find the stored data.
case_machine-guest() {
	claim data 128Mi ReadWriteMany
	check "a VM with a disk is accepted" guest debian data \
		"until [ -e /mnt/stargate/data/greeting ]; do sleep 1; done; \
		cp /mnt/stargate/data/greeting /mnt/stargate/data/answer"
	machine first data first >/dev/null
	soon 240 "another VM stores a file" says first "stored hello"
	soon 2000 "the VM with Debian reads the file, and stores one" says first "read hello"
	check "a user who logs in finds the volume mounted" at_console debian \
		"findmnt -no SOURCE,FSTYPE,TARGET /mnt/stargate/data" "/dev/pmem0 stargatefs /mnt/stargate/data"
	check "the VM with Debian gets an order to reboot" told debian softreboot
	soon 2000 "the rebooted VM has mounted the volume" equals 2 mounts debian
	check "no process of the VM failed" well first
	k -n "$ns" delete vm first debian --wait >/dev/null
}

# tagged IMAGE NAME: gives the image the further name NAME on the node.
tagged() { ctr images tag --force "$1" "$2" >/dev/null; }
# example_started NAME: starts an example of kubevirt-manifests as users do, with some changes. The
# sizes fit zone and node, the images are local, and QEMU can emulate the processor. The VM has no
# pod network, because KubeVirt makes links of a type (dummy) that this machine's kernel may lack. A
# DataVolume, which is of another class, keeps its size.
example_started() {
	sed -e '/^kind: DataVolume/,/^---/!s/storage: [0-9]*Gi/storage: 64Mi/' \
		-e '/ memory: /s/8Gi/1Gi/g' \
		-e 's#REGISTRY/stargate-guest:1#localhost/kubevirt/guest:1#' \
		-e 's/, model: host-passthrough//' -e '/^ *\(interfaces\|networks\): /d' \
		-e 's/^\( *\)devices:$/&\n\1  autoattachPodInterface: false/' \
		"$home/kubevirt-manifests/$1.yaml" | k -n "$ns" apply -f -
}
no_machines() { k -n "$ns" delete vm --all --wait >/dev/null; }

# Unlike the stock Debian of the examples, this image already has the packages that cloud-init would
# install, because pods cannot reach an archive. mk/test/guest tests that installation.
case_machine-examples() {
	tagged localhost/kubevirt/guest:1 quay.io/containerdisks/debian:13
	tagged localhost/pod:1 docker.io/library/debian:13
	check "the example minimal starts" example_started minimal
	soon 2000 "the VM of the example has the volume" equals 1 mounts one
	check "the example reader starts" example_started reader
	soon 2000 "the reader has the copy" equals 1 mounts reader
	no_machines

	k -n "$ns" create secret generic stargate-guest --from-literal=userdata='#cloud-config
runcmd:
- |
  cd /mnt/stargate/shared
  case $(hostname) in
  producer) echo hello >word ;;
  consumer) until [ -e word ]; do sleep 1; done; echo "the word is $(cat word)" >/dev/console ;;
  esac' >/dev/null
	check "the example two-and-a-pod starts" example_started two-and-a-pod
	soon 60 "the pod runs" running beside
	soon 2000 "one VM reads what the other VM has written" prints consumer "the word is hello"
	no_machines

	check "the example semaphores starts" example_started semaphores
	soon 2000 "one VM takes the items that the other VM makes" prints taker "the sum of 100 items is 5050"
	no_machines
}

# of SIDE LOAD: prints the figures of the load on one side (`stargate` or `virtiofs`), by round.
# cell SIDE LOAD: prints a table cell with these figures.
of() { console rival | tr -d '\r' | sed -n "s/.*SG figure $1 $2 \([0-9]*\)\$/\1/p"; }
cell() { of "$@" | median | sed 's/\(.*\) \(.*\) \(.*\)/\1 (\2 to \3)/'; }
virtiofs_table() {
	local load
	local -A words=(
		[write]="write 64 MiB, 1 MiB at a time" [read]="read them, first time"
		[again]="read them again" [blocks]="read 16 MiB, 4 KiB at a time" [make]="make 200 files"
		[list]="list them, with sizes" [remove]="remove them"
	)
	row "milliseconds, median of $(of stargate write | wc -l) (least to most)" "StargateFS | virtiofs, cache=auto"
	row "---" "--- | ---"
	for load in write read again blocks make list remove; do
		row "${words[$load]}" "$(cell stargate $load) | $(cell virtiofs $load)"
	done
}

# A VM mounts a folder of the node by virtiofs, as KubeVirt's users do today. The VM runs the same
# loads in this folder and on a claim, in turn.
case_machine-virtiofs() {
	claim data 128Mi
	on_zoned mkdir -p -m 777 /dev/shm/host-rival
	on_zoned chmod 777 /dev/shm/host-rival
	host_claim rival /dev/shm/host-rival
	check "a VM with virtiofs is accepted" machine rival data rival 512Mi rival
	soon 240 "the VM has mounted both file systems" says rival "mounted the other"
	soon 1200 "the VM has all figures of both file systems" says rival "figures are all there"
	check "no process of the VM failed" well rival
	virtiofs_table >"$logs/virtiofs.md"
	cat "$logs/virtiofs.md"
	check "the comparison has figures" grep -qE 'write.* [0-9]+ \([0-9]+ to [0-9]+\) \| [0-9]+ \(' "$logs/virtiofs.md"
	k -n "$ns" delete vm rival --wait >/dev/null
	k -n "$ns" delete pvc rival --wait >/dev/null
	k delete pv rival --wait >/dev/null
	on_zoned rm -r /dev/shm/host-rival
}

# A read-only volume is a copy of data that a pod has written. Two VMs and the node use the copy at
# the same time, and none of them can store. A VM that only reads does not start while a writer may
# use its volume.
case_machine-reader() {
	local reader
	claim data 128Mi ReadWriteMany
	pod writer data
	soon 60 "a pod runs" running writer
	check "the writer stores a file" store writer /greeting hello
	check "a template of a VM that reads a volume with a writer is accepted, with a warning" \
		contains "claim data can be written to" machine beside data:ro reader
	soon 90 "the VM of that template is refused" contains "claim data can be written to" k -n "$ns" get vm beside -o 'jsonpath={.status.conditions[*].message}'
	k -n "$ns" delete vm beside --wait >/dev/null
	claim frozen 128Mi ReadOnlyMany Filesystem PersistentVolumeClaim/data
	check "a VM that could write the read-only claim is refused" contains "write it as frozen:ro" machine wrong frozen reader
	k -n "$ns" delete vm wrong --ignore-not-found --wait >/dev/null
	pod copy frozen
	soon 60 "a pod with the copy runs" running copy
	for reader in one two; do check "a VM that only reads is accepted" machine $reader frozen:ro reader; done
	for reader in one two; do
		soon 240 "VM $reader has the volume, read-only" says $reader "mounted frozen read-only"
		soon 60 "the VM $reader reads the file" says $reader "read hello"
		soon 60 "the VM $reader cannot store" says $reader "cannot store"
		! with_vm || check "the memory of the reader is read-only" contains "marking pmem0 read-only" console $reader
		check "no process of the VM failed" well $reader
	done
	check "a pod also reads the copy" stored copy /greeting hello
	check "the pod cannot write to the copy" read_only copy
	check "the writer continues" store writer /more words
}

# A VM dies while it holds a lock. The next VM with its name counts as the same VM, and the lock is
# free.
case_machine-killed() {
	local pod
	claim data 128Mi ReadWriteMany
	machine holder data holder >/dev/null
	machine heir data heir >/dev/null
	soon 240 "one VM holds a lock" says holder "holds the lock"
	soon 120 "the other VM waits for the lock" says heir "waits for the lock"
	pod=$(launcher holder)
	check "the VM's process is killed" on_zoned pkill -KILL -f "$(qemu holder)"
	soon 240 "the other VM has the lock" says heir "has the lock"
	check "no process of the second VM failed" well heir
	soon 240 "the killed VM has another pod" other_pod "$pod" holder
	soon 240 "the restarted VM has the volume" says holder "mounted data"
	# On reserved memory the node detects the end of the VM's memory before any program can
	# report it.
	[[ $api == sidecar ]] || with_vm ||
		soon 60 "the driver has received the report of the VM's end" contains "Fenced a VM" k -n "$release_ns" logs "$(driver_pod)" -c driver
}

# count: prints the number that a counting VM has stored. A pod reads it.
count() {
	if with_vm; then in_pod beside cat /data/count; else in_pod beside stargatectl cat "$region" /count; fi
}
# counted: prints the same number, and retries if the file is empty. The file is empty for an
# instant when the VM writes the next number.
counted() {
	local n i
	for i in {1..9}; do
		n=$(count)
		[[ -z $n ]] || break
	done
	echo "$n"
}
counts_past() { [[ $(counted) -gt $1 ]]; }
goes_on() {
	local before
	before=$(counted)
	[[ -n $before ]] && within 20 counts_past "$before"
}
# told NAME VERB: gives the VM an order by the API call that virtctl makes.
told() {
	local api=/apis/subresources.kubevirt.io/v1/namespaces/$ns
	k replace --raw "$api/virtualmachineinstances/$1/$2" -f - <<<'{}' >/dev/null
}
restarted() { # NAME: restarts the VM by the API call that virtctl makes
	k replace --raw "/apis/subresources.kubevirt.io/v1/namespaces/$ns/virtualmachines/$1/restart" -f - <<<'{}' >/dev/null
}
is_paused() { equals True k -n "$ns" get vmi "$1" -o 'jsonpath={.status.conditions[?(@.type=="Paused")].status}'; }
machine_saved() { equals true k -n "$ns" get vmsnapshot "$1" -o 'jsonpath={.status.readyToUse}'; }

# A paused VM keeps its locks, and continues after it is resumed. A snapshot of the VM has only
# KubeVirt's data about the VM, and does not disturb the VM.
case_machine-paused() {
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	machine holder data holder >/dev/null
	machine heir data heir >/dev/null
	soon 240 "one VM holds a lock and counts" says holder "holds the lock"
	soon 120 "the other VM waits for the lock" says heir "waits for the lock"
	check "the VM is paused" told holder pause
	soon 60 "KubeVirt shows the VM as paused" is_paused holder
	check "the paused VM does not count" refused goes_on
	check "the other VM does not get the lock" refused says heir "has the lock"
	check "the VM is resumed" told holder unpause
	check "the resumed VM counts" goes_on
	check "the resumed VM still has its lock" refused says heir "has the lock"
	k -n "$ns" apply -f - >/dev/null <<-EOF
		apiVersion: snapshot.kubevirt.io/v1beta1
		kind: VirtualMachineSnapshot
		metadata: {name: holder}
		spec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: holder}}
	EOF
	soon 120 "a snapshot of the VM is made" machine_saved holder
	check "the VM counts" goes_on
	k -n "$ns" delete vm holder --wait >/dev/null
	# In a zone of files, only a plugin reports the end of a VM at once. Without a plugin, the
	# next mount detects the end.
	if with_vm || [[ $api == plugin ]]; then
		soon 120 "the other VM has the lock after the VM's deletion" says heir "has the lock"
	fi
	check "no process of the other VM failed" well heir
}

# had_within SECONDS TIME: checks that the waiting pod got the lock at most SECONDS after TIME, by
# the clock of the node.
had_within() {
	local at
	at=$(in_pod beside cat /data/had) || return
	echo "the lock was free after $((at - $2)) s"
	((at - $2 <= $1))
}
# free_after PATTERN: kills a process on the node of the VM, and checks that the VM's lock is free
# within seconds. The node detects the end of the process that has mapped the volume.
free_after() {
	local killed
	in_pod beside sh -c 'rm -f /data/had; : >/data/waiting; flock /data/lock sh -c "date +%s >/data/had"' &
	soon 30 "a pod waits for the lock" in_pod beside test -e /data/waiting
	check "the VM has the lock, not the pod" refused in_pod beside test -e /data/had
	killed=$(on_vm date +%s)
	check "a process is killed" on_vm pkill -KILL -f "$1"
	soon 60 "the pod has the lock" in_pod beside test -s /data/had
	check "the pod got the lock within 10 s" had_within 10 "$killed"
	wait $!
	in_pod beside rm /data/waiting
}

case_machine-fenced() {
	local pod
	claim data 128Mi ReadWriteMany
	pod beside data
	soon 60 "a pod runs" running beside
	machine first data busy >/dev/null
	soon 240 "a VM holds a lock and stores" says first "holds the lock"
	soon 60 "the VM makes and removes files" in_pod beside test -e /data/busy/20
	pod=$(launcher first)
	free_after "$(qemu first)"
	soon 240 "the fenced VM has another pod" other_pod "$pod"
	soon 240 "the restarted VM has the lock" says first "holds the lock"
	pod=$(launcher first)
	free_after "^[^ ]*virt-launcher .*--name first "
	soon 240 "the VM with the killed launcher has another pod" other_pod "$pod"
	soon 240 "the restarted VM has the lock" says first "holds the lock"
	check "no process of the VM failed" well first
	k -n "$ns" delete vm first --wait >/dev/null
	check_sound data beside
}

case_machine-refused() {
	claim data 128Mi
	check "a template with a missing claim is accepted, with a warning" contains "there is no claim none" machine lacking none first
	soon 90 "the VM of that template is refused" contains "there is no claim none" k -n "$ns" get vm lacking -o 'jsonpath={.status.conditions[*].message}'
	check "an impossible name of a claim is refused" contains "cannot be the name of a claim" machine wrong ../x first
	check "a claim that is named twice is refused" contains "is named twice" machine twice data,data first
	machine large data first 80Gi >/dev/null || true
	soon 120 "a VM whose memory would reach the volume is refused" condition large Synchronized "has memory there"
	k -n "$ns" delete vm large lacking --wait >/dev/null
	machine owner data holder >/dev/null
	soon 240 "a VM of a ReadWriteOnce claim runs" says owner "holds the lock"
	machine second data first >/dev/null || true
	soon 90 "a second VM of that claim is refused" contains "ReadWriteOnce" k -n "$ns" get vm second -o 'jsonpath={.status.conditions[*].message}'
	check "the first VM continues" well owner
}

# nothing_mounted UID: checks that the node has no mount of the claim's volume, neither of a file
# nor of a device of LVM.
nothing_mounted() { refused on_zoned grep -qF -e "$1" -e "${1//-/--}" /proc/mounts; }
# A VM with volumes does not migrate. A drain of the VM's node ends the VM, which then waits for the
# node.
case_machine-drained() {
	local pod uid
	claim data 128Mi ReadWriteMany
	machine first data holder >/dev/null
	soon 240 "a VM has the volume" says first "holds the lock"
	pod=$(launcher first) uid=$(k -n "$ns" get pvc data -o 'jsonpath={.metadata.uid}')
	check "the VMs of the node are drained" k drain "$zoned" --pod-selector=vm.kubevirt.io/name --ignore-daemonsets \
		--delete-emptydir-data --force --timeout 200s
	soon 120 "the volume of the VM is unmounted on the node" nothing_mounted "$uid"
	soon 120 "a new pod waits" other_pod "$pod"
	check "the new pod waits, because the node accepts no pods" contains Pending k -n "$ns" get pod "$(launcher first)" -o 'jsonpath={.status.phase}'
	check "the operator allows pods on the node" k uncordon "$zoned"
	soon 240 "the VM runs, and has the volume and its lock" says first "holds the lock"
	check "no process of the VM failed" well first
}

# When a user deletes a pod by force, KubeVirt keeps a record of the pod on the node. On a slow node
# it then refuses the next pod of the VM, because the record belongs to the deleted pod. So this
# case needs a fast node.
case_machine-restarted() {
	claim data 128Mi ReadWriteMany
	machine first data holder >/dev/null
	soon 240 "a VM has the volume" says first "holds the lock"
	local pod
	pod=$(launcher first)
	k -n "$ns" delete vmi first --wait=false >/dev/null
	soon 240 "the restarted VM has another pod" other_pod "$pod"
	soon 240 "the restarted VM has the volume and its lock" says first "holds the lock"
	check "no process of the VM failed" well first
	! with_vm || return 0
	pod=$(launcher first)
	k -n "$ns" delete pod "$pod" --force --grace-period 0 >/dev/null 2>&1
	soon 240 "the VM has another pod after its pod was deleted by force" other_pod "$pod"
	soon 240 "the restarted VM has the volume and its lock" says first "holds the lock"
	check "no process of the VM failed" well first
}
