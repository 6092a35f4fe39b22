#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The CSI driver on a zone of reserved memory. LVM, the module and mounts are real, and stargate-csi
# is the shipped program. All tests of csi-sanity run. Further cases: several pods, growth while
# mounted, one pod at a time, manual changes by an administrator, capacity. The driver is killed at
# each step and at random times. The node's power is cut while several calls run. The last case is
# a kernel without the module.
#
# suite: csi-vm
# rig: --guests 1 --cpus 2 --mem 1G --pages --no-mount --size 1152M --pkgs lvm2 --copy-in build/csi
# kernels: 6.12
# maps: walk
# limit: 3600
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/csi.sh
source "$(dirname "$0")/../lib/csi.sh"

holds "a zone is made" "stargatectl zone create sm /dev/pmem0"
dax_tests Pods Dataset Region Readers Fenced OnePod
dax_tests ManualChanges Capacity Swept Reserve Outside Many

# cut_power SECONDS: cuts the power SECONDS after three calls have begun.
cut_power() {
	local before try
	step "power cut after $1 s"
	: >"$RIG_DIR/before.log" # so that the test does not read output of the previous cut
	on g1 "$environment; /root/in/csi/csi-test -test.v -test.run TestDAXPowerCutBefore" \
		>"$RIG_DIR/before.log" 2>&1 </dev/null &
	before=$!
	for ((try = 0; try < 1200; try++)); do
		! grep -q '^begun' "$RIG_DIR/before.log" || break
		kill -0 "$before" 2>/dev/null || fail "before the cut: $(cat "$RIG_DIR/before.log")"
		sleep 0.2
	done
	sleep "$1"
	kill_guest g1
	wait "$before" || true
	start_guest g1 --no-mount
	tests TestDAXPowerCutAfter
}

if only PowerCut; then
	for ((n = 0; n < $(scaled 1 3 20); n++)); do
		cut_power "$((RANDOM % 3)).$((RANDOM % 10))"
	done
fi
dax_tests KillAtAnyTime KillAtEachStep Sanity
holds "the module is unloaded" "rmmod stargatefs"
dax_tests WithoutModule
holds "no volume remains, so the zone can be destroyed" "stargatectl zone destroy sm"
finish
