#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs on a node whose KVM has kvm-patches. A volume grows while a VM has it as identity memory. The
# memory of that VM does not change. A VM for which the volume is opened later gets the complete
# volume.
#
# node: --guests 0 --no-mount --size 128M --pkgs lvm2
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the node's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/zone.sh
source "$(dirname "$0")/../lib/zone.sh"
# shellcheck source=e2e/lib/kvm.sh
source "$(dirname "$0")/../lib/kvm.sh"

region=/mnt/a/.stargate/region
mib=$((1 << 20))

# stored: prints the number that the guest of the first VM stores repeatedly.
stored() { on host "od -An -tu8 -j $((word - base)) -N 8 $region" </dev/null | xargs; }

# page_of FILE: prints the physical address of the file's last page.
page_of() {
	on host "stargatectl --json stat /dev/sm/a $1 2>/dev/null" </dev/null | python3 -c 'import json, sys
run = json.load(sys.stdin)["table"]["runs"][-1]
print(hex(int(run["phys"], 16) + (run["pages"] - 1) * 4096))'
}

step "a volume, and a VM that has it as identity memory"
in_one host "a volume of a zone is made and mounted" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0 &&
	stargatectl volume create a --size 32M -- --max-size 128M && mkdir -p /mnt/a &&
	mount -t stargatefs /dev/sm/a /mnt/a && head -c 64K /dev/zero >/mnt/a/old'
base=$(of a base)
page=$(page_of /old)
kvm 'tdp_mmu=1/'
word=$((page + 8)) # the sum of the other VM does not include this word
spin identity $region $word drop slot write64 "$page" 1
first=$background
in_one host "the output of the first monitor moves to another file" 'mv /run/vmm /run/first'

step "the volume grows"
in_one host "the volume grows to 64 MiB" 'stargatectl volume resize a --size 64M'
same "region has 64 MiB" $((64 * mib)) "$(on host "stat -c %s $region" </dev/null)"
before=$(stored)
sleep 1
[[ $(stored) -gt $before ]] || fail "the guest of the first VM has stopped storing"
passed "the guest of the first VM continues to store"
in_one host "a file in the new part is made" 'head -c 40M /dev/urandom >/mnt/a/new'
[[ $(page_of /new) -ge $((base + 32 * mib)) ]] || fail "the file is not in the new part"
vmm run identity $region sum write64 "$(page_of /new)" 1
says "another machine reads all of it" '^sum [0-9]+ same'
says "the second VM writes into the new part" '^write64 [0-9]+ done'
vmm run readonly $region sum
says "a VM with read access only reads the complete volume" '^sum [0-9]+ same'

step "the volume grows a second time"
in_one host "the volume grows to 96 MiB" 'stargatectl volume resize a --size 96M'
spin identity $region "$page"
in_time "a revocation takes the volume from the old VM and from the new one" \
	"VOLUME_BASE=$base /root/vmm revoke $region 0 | grep ' 2 machines'"
await_end
says "the new monitor gets an error" '^spin .* memory fault, revoked,'
wait "$first" || fail "the old monitor failed: $(on host 'cat /run/first' </dev/null)"
said=$(on host 'cat /run/first' </dev/null)
show
says "the old monitor gets an error" '^spin .* memory fault, revoked,'
says "the old monitor can open region once more for a new slot" '^write64 [0-9]+ done'
vmm run identity $region sum
says "a new VM reads the complete volume" '^sum [0-9]+ same'
in_one host "the volume passes fsck" 'umount /mnt/a && stargatectl volume check a && rmmod stargatefs'
finish
