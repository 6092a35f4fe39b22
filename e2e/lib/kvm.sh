# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of scenarios in which the node has KVM with kvm-patches, and VMs have a volume as
# identity memory (e2e/programs/vmm.c). A scenario sources this file after scenario.sh, and sets
# $base to the volume's physical address.
# shellcheck disable=SC2016,SC2154 # quoted text is for the node's shell; $base is the scenario's

series=6.12
kvm_modules=$(dirname "$0")/../../build/kvm/$series
"$(dirname "$0")/../../kvm-patches/build" "$series" >/dev/null
compile vmm
put "$compiled/vmm" /root/vmm host
for file in kvm.ko kvm-amd.ko kvm-intel.ko kvm_identity_owner.ko identity_memory_test; do
	put "$kvm_modules/$file" "/root/$file" host
done

# kvm PARAMETERS: loads the patched KVM on the node, with these parameters of kvm.ko and, after a
# slash, of kvm-intel.ko or kvm-amd.ko.
kvm() {
	on host "part=\$(lsmod | sed -nE 's/^(kvm_(amd|intel)) .*/\1/p')
		rmmod \"\$part\" kvm && insmod /root/kvm.ko force_emulation_prefix=1 ${1%/*} && insmod /root/\${part/_/-}.ko ${1#*/}" ||
		fail "KVM does not load with $1"
	step "KVM with the patches, ${1/\// }"
}

show() { printf '   | %s\n' "${said//$'\n'/$'\n   | '}"; }

# vmm WORD...: runs the program vmm in the node. Stores its output in $said, and prints the output.
vmm() {
	said=$(on host "VOLUME_BASE=$base /root/vmm $*" 2>&1 </dev/null) || fail "vmm $*: $said"
	show
}

# says WHAT PATTERN: checks that the output of the last vmm matches PATTERN.
says() {
	grep -qE -- "$2" <<<"$said" || fail "$1: the output does not match '$2'"
	passed "$1"
}

# spin KIND REGION PAGE ACTION...: starts a VM in the background. vmm runs the action spin with
# PAGE, and then the other ACTIONs. Its output goes to /run/vmm in the node.
spin() {
	local kind=$1 opened=$2 page=$3
	shift 3
	on host "rm -f /run/vmm /run/go
		VOLUME_BASE=$base /root/vmm run $kind $opened spin $page $* >/run/vmm 2>&1" </dev/null &
	background=$!
	on host 'until pid=$(sed -n "s/^spinning //p" /run/vmm 2>/dev/null) && [ "$pid" ]; do sleep 0.05; done' ||
		fail "the VM does not start to spin"
}

# await_end: waits for the end of the VM that spin has started. Stores vmm's output in $said.
await_end() {
	on host 'touch /run/go'
	wait "$background" || fail "vmm failed: $(on host 'cat /run/vmm' </dev/null)"
	said=$(on host 'cat /run/vmm' </dev/null)
	show
}

# in_time WHAT COMMAND: checks that COMMAND succeeds in the node within a minute. If the minute is
# over, COMMAND continues to run, because it may wait in the kernel, where SIGKILL has no effect.
in_time() {
	said=$(on host "rm -f /run/timed; (set +e; $2) >/run/timed.said 2>&1 && touch /run/timed &
		for i in \$(seq 600); do [ ! -e /run/timed ] || break; sleep 0.1; done
		cat /run/timed.said; [ -e /run/timed ]" 2>&1 </dev/null) || fail "$1: the command has not succeeded within a minute: $said"
	passed "$1"
}
