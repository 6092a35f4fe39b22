# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Functions for scenarios that run the CSI driver's tests of a zone of reserved memory
# (csi-driver/test/dax_test.go). `make build PART=csi-tests` compiles them. A scenario sources this
# file after scenario.sh.
# shellcheck disable=SC2154 # scenario.sh sets the other variables

# These guests have no udev, so LVM must not wait for it.
environment="export SG_CSI_ZONE=sm SG_CSI_BINARY=/root/in/csi/stargate-csi DM_DISABLE_UDEV=1"
environment+=" SG_TEST_SCALE=${SG_TEST_SCALE:-normal} SG_VOLUMES=${SG_VOLUMES:-}"

# tests NAMES: runs the tests of csi-test that match the pattern NAMES, and prints their output.
tests() {
	local status=0 said
	said=$RIG_DIR/csi-$checks.log
	on g1 "$environment; cd /root && /root/in/csi/csi-test -test.count=1 -test.timeout=12h -test.v -test.run '^($1)\$'" \
		>"$said" 2>&1 </dev/null || status=$?
	grep -E '^ *--- |_test\.go:|^left by|[0-9]+ Passed|^dies at' "$said" || true
	[[ $status -eq 0 ]] || {
		tail -n 80 "$said"
		fail "$1: status $status"
	}
	grep -q '^--- PASS' "$said" || fail "$1: no test has run"
	checks=$((checks + $(grep -c -- '--- PASS' "$said")))
}

# dax_tests NAME...: runs these tests one after the other, each as a separate step.
dax_tests() {
	local name
	for name; do
		only "$name" || continue
		step "$name"
		tests "TestDAX$name"
	done
}

# only NAME: succeeds if the pattern SG_ONLY, which may select some tests, matches NAME.
only() {
	# shellcheck disable=SC2254 # it is a pattern
	case $1 in ${SG_ONLY:-*}) ;; *) return 1 ;; esac
}
