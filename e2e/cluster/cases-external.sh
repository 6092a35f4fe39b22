# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Kubernetes' own tests of storage drivers ("External Storage" of e2e.test, from k8s.io/kubernetes),
# on a cluster whose second node has reserved memory (e2e/cluster/up --dax). The file
# external/testdriver.yaml describes the driver to the tests. There is one case for each suite of
# these tests. e2e/cluster/case sources this file.
# shellcheck disable=SC2034,SC2154 # e2e/cluster/case sets the variables

external_cases=(
	install-external
	external-capacity external-topology external-volumes external-volumemode external-volumeio
	external-provisioning external-multivolume external-read-write-once-pod
	external-volume-expand external-ephemeral external-snapshottable external-subpath
	external-stress
)

# The list of cases lacks suites for features that the driver does not claim (fsgroupchangepolicy,
# selinux-mount, volumeLimits, volume-modify, volume-group-snapshottable). It also lacks suites that
# only measure times (volume-lifecycle-performance, pvc-deletion-performance). In all suites, the
# tests of the list external_skip are skipped.
external_skip=(
	'\[Disruptive\]'      # need ssh or systemd on the nodes, to stop kubelet
	'\[Feature:Windows\]' # need a node with Windows
	# These tests need an image (hello-populator) that is only available from its registry.
	'any volume data source'
)

no_zone=stargate-test/no-zone # a taint that keeps these tests off the node without a zone

# called NAME OTHER: gives the image NAME the further name OTHER on the node of the tests' pods.
called() {
	on_vm ctr --namespace k8s.io images tag --force \
		"$external_images/$1" "$external_images/$2" >/dev/null
}

case_install-external() {
	local as
	for as in busybox:1.37.0-1 jessie-dnsutils:1.7 nginx:1.14-4; do
		check "the image $as is a busybox" called busybox:1 "$as"
	done
	check "the image of agnhost exists" called agnhost:1 agnhost:2.59
	check "pods are not scheduled to a node without a zone" \
		k taint node "$node" --overwrite "$no_zone=:NoSchedule"
	check "the operator makes a zone" make_zone
	check "helm installs" helm install "$release" "$chart" "${install_args[@]}" \
		--values "$here/values-external.yaml"
	soon 60 "all containers are ready" driver_ready
	soon 90 "the node reports its free memory" has_capacity "$zone_mib"
}

# external FOCUS: runs the tests whose names match FOCUS, several at the same time, and prints each
# result.
external() {
	local out=$logs/$ns programs registry status=0 skip
	programs=$("$here/build-tests")
	mkdir -p "$out"
	skip=$(IFS='|'; echo "${external_skip[*]}")
	for registry in promoterE2eRegistry dockerLibraryRegistry gcRegistry; do
		echo "$registry: $external_images"
	done >"$out/images.yaml"
	# The working folder of ginkgo must not be /.
	inside env -C "$out" KUBE_TEST_REPO_LIST="$out/images.yaml" "$programs/ginkgo" \
		--procs="${EXTERNAL_PROCS:-3}" --no-color --timeout=3h \
		--output-dir="$out" --json-report=report.json \
		--focus="External.Storage.*($1)" --skip="$skip" "$programs/e2e.test" -- \
		--storage.testdriver="$here/external/testdriver.yaml" \
		--kubeconfig="$run/admin.conf" --provider=local \
		--kubectl-path="$run/bin/kubectl" --non-blocking-taints="$no_zone" \
		>"$out/said.log" 2>&1 || status=$?
	[[ -e $out/report.json ]] || { tail -n 60 "$out/said.log"; return 1; }
	"$here/external/results" "$out/report.json" | tee "$out/results"
	check "all tests of $1 pass" test "$status" -eq 0
	checks=$((checks + $(grep -c '^passed' "$out/results")))
}

case_external-capacity() { external '\] capacity '; }
case_external-topology() { external '\] topology '; }
case_external-volumes() { external '\] volumes '; }
case_external-volumemode() { external '\] volumeMode '; }
case_external-volumeio() { external '\] volumeIO '; }
case_external-provisioning() { external '\] provisioning '; }
case_external-multivolume() { external '\] multiVolume '; }
case_external-read-write-once-pod() { external '\] read-write-once-pod'; }
case_external-volume-expand() { external '\] volume-expand '; }
case_external-ephemeral() { external '\] ephemeral '; }
case_external-snapshottable() { external '\] snapshottable '; }
case_external-subpath() { external '\] subPath '; }
case_external-stress() { external '\] (volume-stress|snapshottable-stress)'; }
