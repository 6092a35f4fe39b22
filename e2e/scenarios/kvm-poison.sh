#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs on a node whose KVM has kvm-patches. VMs have a volume with a bad page as identity memory.
# When KVM itself reads or writes that page for a guest, the guest gets an error, as with other
# slots. The host's kernel no longer maps the page. Even during a long access of KVM for one VM, the
# host can immediately take the volume from other VMs.
#
# node: --guests 0 --size 64M
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the node's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
base=$RIG_BASE
# shellcheck source=e2e/lib/kvm.sh
source "$(dirname "$0")/../lib/kvm.sh"

region=/mnt/sg/.stargate/region
hold=/sys/module/kvm_identity_owner/parameters/hold

# in_one WHAT COMMAND: checks that COMMAND succeeds in the node.
in_one() {
	said=$(on host "$2" 2>&1 </dev/null) || fail "$1: $2: $said"
	passed "$1"
}

# own ACTION PATTERN WHAT: makes KVM itself access page 3 of the file for a new VM. Checks that the
# VM reports PATTERN.
own() {
	vmm run identity $region "$1" "$bad"
	says "$3" "^$1 [0-9]+ $2"
}

step "a file in the volume"
in_one "a file is made" 'yes 0123456 | head -c 64K >/mnt/sg/f && sync /mnt/sg/f'
page=$("$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" /f 2>/dev/null | tr -d ' \n' |
	sed -nE 's/.*"runs":\[\{"page":0,[^}]*"phys":"(0x[0-9a-f]+)".*/\1/p')
[[ -n $page ]] || fail "stargatectl stat does not say where the file is"
bad=$(printf '0x%x' $((page + 3 * 4096)))
kvm 'tdp_mmu=1/'

step "KVM's own accesses"
# Without a clock of the expected kind the hypercall writes nothing.
vmm run identity $region pairing "$bad"
says "KVM writes for a hypercall" '^pairing [0-9]+ done, (0|-95)$'
pairing=${said##* }
for action in out in exchange tables; do own $action 'done$' "KVM does '$action'"; done

step "the host's processor finds $bad bad"
on host 'echo 1 >/sys/devices/system/machinecheck/machinecheck0/check_interval' </dev/null
machine_check host 4 0x9400100000080000 0 "$(printf '0x%x' $((bad + 128)))" 0
in_one "the volume lists the bad page" 'for i in $(seq 200); do
	stargatectl bad '$region' | grep -q none || exit 0; sleep 0.1; done; exit 1'
[[ $pairing == -95 ]] || pairing=-14
own pairing "done, $pairing$" "a hypercall with the address of the bad page gets an error"
own out "read as of a device at $bad" "KVM does not read the bad page for an output instruction"
own in "write as of a device at $bad" "KVM does not write the bad page for an input instruction"
own exchange 'emulation failed' "KVM does not emulate an exchange with the bad page"
own tables 'triple fault' "KVM uses no page table in the bad page"
vmm run identity $region write64 "$page" 3
says "the guest can write a neighbouring page" '^write64 [0-9]+ done'
spin identity $region "$page"
in_time "a revocation takes the volume from a VM" "VOLUME_BASE=$base /root/vmm revoke $region 0 | grep ' 1 machines'"
await_end
says "the monitor of that VM gets an error" '^spin .* memory fault, revoked,'

# The test module owns an address range without memory, and can block an access.
step "an access that does not end"
in_one "the owner of the identity memory is loaded" "insmod /root/kvm_identity_owner.ko start=$((base + (64 << 30))) size=2097152 &&
	echo Y >$hold"
on host "VOLUME_BASE=$base /root/vmm run identity $region out $page >/run/held 2>&1 & echo \$! >/run/held.pid
	for i in \$(seq 600); do ! grep -q held_load /proc/\$!/stack || exit 0; sleep 0.1; done; exit 1" </dev/null ||
	fail "the access is not blocked: $(on host 'cat /run/held' </dev/null)"
on host "(VOLUME_BASE=$base /root/vmm revoke $region \$(cat /run/held.pid); touch /run/revoked) >/run/its 2>&1 &
	sleep 1; [ ! -e /run/revoked ]" </dev/null || fail "the revocation ended before the blocked access"
passed "the blocked access delays the revocation for its own VM"
spin identity $region "$page"
in_time "the blocked access does not delay the revocation for another VM" \
	"VOLUME_BASE=$base /root/vmm revoke $region \$(sed -n 's/^spinning //p' /run/vmm) | grep ' 1 machines'"
await_end
says "the monitor of that VM gets an error" '^spin .* memory fault, revoked,'
spin identity $region "$page"
in_time "a further VM can open the volume, and its end removes it from the list of holders" "pid=\$(sed -n 's/^spinning //p' /run/vmm)
	grep \"^\$pid rw\" /sys/fs/stargatefs/*/holders && kill -KILL \$pid
	while grep \"^\$pid rw\" /sys/fs/stargatefs/*/holders; do sleep 0.5; done"
! wait "$background" || fail "the monitor was not killed"
in_time "the delayed revocation ends when the access ends" "echo N >$hold && until [ -e /run/revoked ]; do sleep 0.1; done
	grep ' 1 machines' /run/its"
in_one "the VM has ended, and the owner of the identity memory is unloaded" 'until [ ! -e /proc/$(cat /run/held.pid) ]; do sleep 0.1; done; rmmod kvm_identity_owner'
finish
