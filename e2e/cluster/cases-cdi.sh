# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Cases with CDI, which fills disks of VMs. CDI's own operator runs on this machine's node
# (e2e/cluster/cdi-images). The list of cases is in cases-kubevirt.sh. e2e/cluster/case sources this
# file.
# shellcheck disable=SC2016,SC2154 # variables of `case`; text for other shells

with_cdi() { k get crd datavolumes.cdi.kubevirt.io >/dev/null 2>&1; }

# cdi_generator ARGUMENT...: runs CDI's generator with the names of the cluster's images. The
# cluster has no images for cloning, uploading and other clouds.
cdi_generator() {
	local name images=()
	for name in operator controller importer cloner apiserver uploadproxy uploadserver; do
		images+=("-$name-image=localhost/cdi/cdi-$name:$(cdi_release)")
	done
	"$(programs cdi)/manifest-generator" "${images[@]}" -ovirt-populator-image=localhost/cdi/none \
		-operator-version="$(cdi_release)" -deploy-cluster-resources=true -verbosity=3 \
		-pull-policy=IfNotPresent -cr-name=cdi -namespace=cdi "$@"
}
# cdi_objects NAME: prints the manifest NAME of the release, with the names of the cluster's images.
cdi_objects() {
	local source work
	source=$(cd "$here/cdi" && "$home/mk/tools/go" list -m -f '{{.Dir}}' kubevirt.io/containerized-data-importer)
	work=$(mktemp -d)
	cdi_generator -resource-type=operator >"$work/operator-everything.yaml.in"
	cdi_generator -template="$source/manifests/templates/release/$1.yaml.in" -generated-manifests-path="$work"
	rm -rf "$work"
}
cdi_deployed() { equals Deployed k get cdi cdi -o 'jsonpath={.status.phase}'; }
cdi_available() { equals True k get cdi cdi -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}'; }

case_cdi-operator() {
	cdi_objects cdi-operator | k apply --server-side -f - >/dev/null
	soon 60 "the kind CDI exists" k get crd cdis.cdi.kubevirt.io
	cdi_objects cdi-cr | k apply -f - >/dev/null
	soon 420 "CDI is deployed" cdi_deployed
	soon 120 "all parts of CDI are available" cdi_available
	soon 60 "the kind DataVolume exists" with_cdi
}

# root_disks FOLDER: makes a storage class for the node's own disk, and one volume of it in FOLDER.
# The class is the cluster's default.
root_disks() {
	k delete pv root-disk --ignore-not-found --wait >/dev/null
	on_zoned rm -rf "$1"
	on_zoned mkdir -p "$1"
	k apply -f - >/dev/null <<-EOF
		apiVersion: storage.k8s.io/v1
		kind: StorageClass
		metadata: {name: root-disks, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
		provisioner: kubernetes.io/no-provisioner
		volumeBindingMode: WaitForFirstConsumer
		---
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: root-disk}
		spec:
		  capacity: {storage: 10Gi}
		  accessModes: [ReadWriteOnce]
		  storageClassName: root-disks
		  local: {path: $1}
		  nodeAffinity:
		    required:
		      nodeSelectorTerms:
		      - matchExpressions:
		        - {key: kubernetes.io/hostname, operator: In, values: [$zoned]}
	EOF
}
imported() { equals Succeeded k -n "$ns" get datavolume "$1" -o 'jsonpath={.status.phase}'; }

# Tests the largest example. CDI fills a root disk from a container disk. The VM boots from this
# disk and has three volumes, one of them read-only. Data that the VM stores on the disk survives
# the VM's restart. The node has the image under the requested name, as in machine-examples.
case_machine-datavolume() {
	local folder=/var/lib/root-disk pod
	tagged localhost/kubevirt/guest:1 quay.io/containerdisks/debian:13
	root_disks "$folder"
	claim models-in-work 64Mi ReadWriteMany
	pod writer models-in-work
	soon 60 "a pod runs" running writer
	check "a pod stores a file" store writer /word hello
	k -n "$ns" create secret generic stargate-guest --from-literal=userdata='#cloud-config
bootcmd:
- |
  echo boot >>/var/boots
  echo "boot $(wc -l </var/boots) of a disk of $(lsblk -dbno SIZE /dev/vda) bytes" >/dev/console
runcmd:
- |
  cd /mnt/stargate
  until [ -e models/word ]; do sleep 1; done
  until mountpoint input && mountpoint output; do sleep 1; done
  cp models/word input/word
  tr a-z A-Z <input/word >output/word
  cp output/word models/answer 2>/dev/null && no="" || no=" not"
  echo "the word is $(cat output/word), and models are$no written to" >/dev/console' >/dev/null
	check "the example full starts" example_started full
	soon 600 "the VM's root disk is imported" imported worker-root
	check "the root disk is on the node's own disk" equals root-disk pv_of worker-root
	soon 2000 "the VM boots from its root disk" prints worker "boot 1 of a disk of $((8 << 30)) bytes"
	soon 1000 "the VM has all three volumes, one of them read-only" \
		prints worker "the word is HELLO, and models are not written to"
	pod=$(launcher worker)
	k -n "$ns" delete vmi worker --wait=false >/dev/null
	soon 400 "the restarted VM has another pod" other_pod "$pod" worker
	soon 2000 "the restarted VM has the disk with its stores" prints worker "boot 2 of a disk of $((8 << 30)) bytes"
	no_machines
	pod after output
	soon 60 "a pod with a volume of the VM runs" running after
	check "the pod reads what the VM has stored" stored after /word HELLO
	k -n "$ns" delete datavolume worker-root --wait >/dev/null
	soon 60 "the root disk is deleted with its DataVolume" gone pvc worker-root
	k delete storageclass root-disks >/dev/null
	k delete pv root-disk --wait >/dev/null
	on_zoned rm -r "$folder"
}
