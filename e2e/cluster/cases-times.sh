# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Measures how long users wait for volumes, and which resources the driver uses for them. The table
# is copied unchanged into docs/performance/kubernetes.md. e2e/cluster/case sources this file.
# shellcheck disable=SC2016,SC2034,SC2154 # e2e/cluster/case sets the variables

# host_claim NAME [FOLDER]: makes a claim for a folder of the node, which needs no driver.
host_claim() {
	k apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: $1}
		spec:
		  capacity: {storage: 64Mi}
		  accessModes: [ReadWriteOnce]
		  storageClassName: host
		  claimRef: {namespace: $ns, name: $1}
		  hostPath: {path: ${2:-/run/host-$1}, type: DirectoryOrCreate}
		  nodeAffinity:
		    required:
		      nodeSelectorTerms:
		      - matchExpressions:
		        - {key: kubernetes.io/hostname, operator: In, values: [$zoned]}
		---
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: $ns}
		spec:
		  storageClassName: host
		  volumeName: $1
		  accessModes: [ReadWriteOnce]
		  resources: {requests: {storage: 64Mi}}
	EOF
}

# waited FUNCTION NAME [ARGUMENT]...: makes a claim by FUNCTION and a pod that uses it. Prints the
# time until the pod is ready, in ms.
waited() {
	local began
	began=$(date +%s%3N)
	"$1" "$2" "${@:3}" || return 1
	pod "$2" "$2" || return 1
	k -n "$ns" wait pod "$2" --for condition=Ready --timeout 5m >/dev/null || return 1
	echo $(($(date +%s%3N) - began))
}

# spent: prints three figures of the node's driver pod: processor time (ms) and memory (KiB) of all
# its containers, and memory of the container `driver`.
spent() {
	k get --raw "/api/v1/nodes/$zoned/proxy/stats/summary" | python3 -c '
import json, sys
for pod in json.load(sys.stdin)["pods"]:
    if pod["podRef"]["name"] == sys.argv[1]:
        all = pod["containers"]
        own = [c for c in all if c["name"] == "driver"][0]
        print(sum(c["cpu"]["usageCoreNanoSeconds"] for c in all) // 10**6,
              sum(c["memory"]["rssBytes"] for c in all) >> 10, own["memory"]["rssBytes"] >> 10)' "$(driver_pod)"
}
# driver_called METHOD: prints the number of calls of METHOD, and their total time in ms.
driver_called() {
	k get --raw "/api/v1/namespaces/$release_ns/pods/$(driver_pod):9810/proxy/metrics" |
		awk -v m="method_name=\"$1\"" 'index($0, m) && /_count/ { n += $NF } index($0, m) && /_sum/ { s += $NF }
			END { printf "%d %d\n", n, s * 1000 }'
}

median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)], a[1], a[NR] }'; }
row() { printf '| %s | %s |\n' "$@"; }

# side NAME FILE: prints a row of the table. FILE has the outputs of `waited`.
side() {
	local of least most
	read -r of least most < <(median <"$2")
	row "$1" "$of ms ($least to $most)"
}

# The claim and the folder are measured in turn, so that other load of this machine affects both.
case_times() {
	# before, rest and load are outputs of `spent`.
	local rounds=${ROUNDS:-3} i own host size before rest load
	own=$logs/$ns.own host=$logs/$ns.host
	rm -f "$own" "$host"
	for ((i = 1; i <= rounds; i++)); do
		check "the pod $i runs with a claim" waited claim "own-$i" 64Mi >>"$own"
		check "the pod $i runs with a folder of the host, without a driver" waited host_claim "host-$i" >>"$host"
		k -n "$ns" delete pod "own-$i" "host-$i" --wait >/dev/null
		k -n "$ns" delete pvc "own-$i" "host-$i" --wait >/dev/null
		k delete pv "host-$i" --wait >/dev/null
	done
	soon 60 "no volume is left" no_volumes
	soon 90 "the zone is empty, and the node reports its free memory" largest_is_back
	sleep 15 # kubelet counts every ten seconds
	read -r -a before < <(spent)
	sleep 30
	read -r -a rest < <(spent)
	check "five volumes are made and deleted" come_and_go 5
	sleep 15
	read -r -a load < <(spent)
	size=$(largest)
	check "a volume of the largest size can be used" large_one "$size"
	{
		row "figure" "value"
		row "---" "---"
		side "claim and pod until the pod is ready, class stargate, 64 MiB" "$own"
		side "the same with a folder of the node (hostPath), without a driver" "$host"
		row "CreateVolume of $size MiB" "$(<"$logs/$ns.large") ms"
		row "processor time of the driver's pod in 30 s without calls" "$((rest[0] - before[0])) ms"
		row "processor time while 5 claims with pods are created and deleted together" "$((load[0] - rest[0])) ms"
		row "memory of the driver before these claims; of its pod with sidecars" "$((rest[2] >> 10)) MiB, $((rest[1] >> 10)) MiB"
		row "memory of the driver after these claims; of its pod with sidecars" "$((load[2] >> 10)) MiB, $((load[1] >> 10)) MiB"
	} | tee "$logs/times.md"
}

largest_is_back() { zone_empty && largest >/dev/null; }

come_and_go() {
	local i
	for ((i = 1; i <= $1; i++)); do
		claim "load-$i" 32Mi
		pod "load-$i" "load-$i"
	done
	k -n "$ns" wait pod --all --for condition=Ready --timeout 10m >/dev/null || return 1
	k -n "$ns" delete pod,pvc --all --wait >/dev/null
	within 300 no_volumes && within 300 zone_empty
}

# large_one MIB: makes a volume of that size, and stores the time of the call CreateVolume, which
# the driver measures.
large_one() {
	local n was count sum
	read -r n was < <(driver_called /csi.v1.Controller/CreateVolume)
	claim large "$1Mi"
	pod large large
	k -n "$ns" wait pod large --for condition=Ready --timeout 10m >/dev/null || return 1
	read -r count sum < <(driver_called /csi.v1.Controller/CreateVolume)
	((count > n)) && echo $((sum - was)) >"$logs/$ns.large"
}
