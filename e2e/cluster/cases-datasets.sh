# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The case about data sets (docs/datasets.md), on a node whose zone is files. Sourced by
# e2e/cluster/case.
# shellcheck disable=SC2016,SC2154 # case has the rest; some is quoted for other shells

# dataset NAME LIST: makes a data set of the files in a list, which has this URL.
dataset() {
	k apply -f - >/dev/null <<-EOF
		apiVersion: stargate.csi.dev/v1alpha1
		kind: StargateDataset
		metadata: {name: $1, namespace: $ns}
		spec: {size: 100Mi, source: {http: {list: "$2"}}}
	EOF
}

# dataset_pod NAME SET: makes a pod that has a data set at /data. server_pod NAME: makes a pod with
# memory at /tmp.
dataset_pod() {
	pod_with "$1" /data "csi: {driver: $driver, volumeAttributes: {dataset: $2}}"
}
server_pod() { pod_with "$1" /tmp "emptyDir: {medium: Memory}"; }
pod_with() {
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, namespace: $ns, labels: {test: $ns}}
		spec:
		  terminationGracePeriodSeconds: 1
		  automountServiceAccountToken: false
		  containers:
		  - {name: main, image: "localhost/pod:1", imagePullPolicy: Never, volumeMounts: [{name: data, mountPath: $2}]}
		  volumes:
		  - {name: data, $3}
	EOF
}
copies() { inside ls "$zone_dir" | grep -c '^ds-.*[.]stargate$' || true; }
dataset_phase() { k -n "$ns" get stargatedataset "$1" -o "jsonpath={.status.nodes.$zoned.phase}"; }

# Two pods that name a data set share one copy, which the node has fetched from a server in the
# cluster. The copy outlives the driver's pod, and goes with its data set.
case_dataset() {
	local address
	check "the chart has data sets" helm upgrade "$release" "$chart" "${install_args[@]}" --set mount=fuse,datasets.enabled=true \
		--set 'datasets.ports={8080}'
	soon 60 "the driver is ready" driver_ready
	soon 60 "the keeper is ready" keeper_ready
	server_pod store
	soon 60 "the pod of the server runs" running store
	check "the server has files" in_pod store sh -c 'mkdir -p /tmp/www/deep && cd /tmp/www &&
		dd if=/dev/urandom of=deep/model.bin bs=1M count=40 2>/dev/null &&
		echo words >vocab.txt &&
		sha256sum deep/model.bin vocab.txt >SHA256SUMS'
	in_pod store sh -c 'httpd -f -p 8080 -h /tmp/www' &
	address=$(k -n "$ns" get pod store -o 'jsonpath={.status.podIP}')
	dataset llama "http://$address:8080/SHA256SUMS"
	dataset_pod first llama
	dataset_pod second llama
	soon 120 "a pod with the data set runs" running first
	soon 60 "a second pod runs" running second
	check "both pods have the same bytes" equals "$(in_pod first sha256sum /data/deep/model.bin)" in_pod second sha256sum /data/deep/model.bin
	check "they are those of the server" equals "$(in_pod store sha256sum /tmp/www/vocab.txt | cut -d' ' -f1)" \
		in_pod first sh -c "sha256sum /data/vocab.txt | cut -d' ' -f1"
	check "a pod cannot store" refused in_pod first sh -c 'echo x >/data/x'
	check "there is one copy" equals 1 copies
	check "one server serves both pods" equals 1 servers
	soon 60 "the status has the node" equals Ready dataset_phase llama
	dataset broken "http://$address:8080/none"
	dataset_pod waits broken
	soon 90 "an Event of the pod reports the reason" has_event waits "404 Not Found"
	k -n "$ns" delete pod waits --wait >/dev/null
	k -n "$release_ns" delete pod "$(driver_pod)" --wait >/dev/null
	soon 60 "the driver is ready again" driver_ready
	k -n "$ns" delete pod store --wait >/dev/null
	dataset_pod third llama
	soon 60 "a later pod runs without the source" running third
	check "there is still one copy" equals 1 copies
	k -n "$ns" delete stargatedataset llama broken >/dev/null
	k -n "$ns" delete pod first second third --wait >/dev/null
	soon 90 "the copy goes with its data set" equals 0 copies
	check "the chart has no data sets again" helm upgrade "$release" "$chart" "${install_args[@]}" --set keeper.endMounts=true
	soon 60 "the driver is ready in the end" driver_ready
	k delete crd stargatedatasets.stargate.csi.dev >/dev/null
}
