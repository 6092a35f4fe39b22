#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the rig's behaviour with nodes. If guests cannot run in a node, the rig prints the reason. A
# kernel error in the node, or in a guest of the node, makes the run fail. The scenario starts its
# own rigs.
#
# node: --guests 0 --size 32M
# limit: 900
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

rig=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../rig
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work

# rig_run STATUS TEXT ARGUMENT...: checks that a run of the rig ends with STATUS and prints TEXT.
rig_run() {
	local wanted=$1 text=$2 status=0
	shift 2
	"$rig" run --node --size 32M --timeout 10m "$@" >"$work/said" 2>&1 || status=$?
	[[ $status == "$wanted" ]] || fail "status $status, not $wanted: $* said: $(cat "$work/said")"
	grep -qF -- "$text" "$work/said" || fail "no '$text': $* said: $(cat "$work/said")"
	rm -rf "$work"/stargate-rig-*
	passed "the run ends with status $wanted and prints: $text"
}

step "a processor without SVM"
rig_run 125 "no nested virtualization: KVM does not load on" --guests 0 --append clearcpuid=svm -c true
step "a warning of the node's kernel"
rig_run 123 "host: kernel log" --guests 0 -c 'on host "echo \<4\>WARNING: made up >/dev/kmsg"'
step "a warning of a guest's kernel, and functions of a node's guests"
rig_run 123 "g1: kernel log" --guests 1 -c 'set -e
	on g1 "echo \<4\>WARNING: made up >/dev/kmsg"
	until console g1 | grep -q "made up"; do sleep 0.1; done
	pause_guest g1; resume_guest g1; on g1 true
	if kill_guest host; then exit 9; fi
	stop_guest g1
	if on g1 true; then exit 9; fi'
finish
