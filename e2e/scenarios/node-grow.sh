#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A command tries to grow a node's volume while a VM has it mounted, and the VM's memory ends at the
# old end of the volume. The error names the VM, and nothing changes in the zone, on the host or in
# the VM. After the VM has unmounted the volume, the volume can grow. A VM that restarts with the
# complete volume reads the new size. No system ever reads the former content of the memory behind
# the volume.
#
# node: --guests 1 --no-mount --size 128M --pkgs lvm2
# limit: 900
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/zone.sh
source "$(dirname "$0")/../lib/zone.sh"

mib=$((1 << 20))

# sized SYSTEM DIR MIB: checks the size that the module and df report. df does not count metadata.
sized() {
	same "$1 has $3 MiB" "$3" "$(on "$1" 'echo $(($(cat /sys/fs/stargatefs/*/size) >> 20))' </dev/null)"
	in_one "$1" "df in $1 reports about $3 MiB" "mb=\$(df -BM --output=size $2 | tail -n 1 | tr -dc 0-9) &&
		[ \$mb -le $3 ] && [ \$mb -gt $(($3 * 9 / 10)) ] || { df $2; exit 1; }"
}

# zone: prints LVM's record of the zone.
# shown: prints everything that the host's mount reports about its size.
zone() { on host 'lvs --noheadings -o lv_name,lv_size,lv_tags,seg_pe_ranges sm' </dev/null; }
shown() { on host 'cd /mnt/a/.stargate && stat -c %s region && cat volume.json' </dev/null; }
# told FROM END: prints the number of lines with the secret in that range of memory.
told() { memory "$1" "$2" | grep -ac 'a secret of others' || true; }
behind() { bytes $end $((end + 32 * mib)); }

step "a volume that a VM uses, in front of memory with old content"
in_one host "a zone is made" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0'
in_one host "a volume is made and mounted" 'stargatectl volume create a --size 32M -- --max-size 128M && mkdir -p /mnt/a &&
	mount -t stargatefs /dev/sm/a /mnt/a && head -c 8M /dev/urandom >/mnt/a/old'
base=$(of a base)
end=$((base + 32 * mib))
in_one host "the memory behind the volume has old content" 'export DM_DISABLE_UDEV=1
	lvcreate -y -q -W n -Z n --addtag others -L 32M -n others sm && vgmknodes &&
	yes "a secret of others" | dd of=/dev/sm/others bs=2M count=16 iflag=fullblock oflag=direct status=none &&
	lvremove -y -q sm/others'
[[ $(told $end $((end + 32 * mib))) -gt $mib ]] || fail "the memory behind the volume does not have the old content"
start g1 a
in_one g1 "a VM mounts the volume" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg && [ -s /mnt/sg/old ]'
zone=$(zone) shown=$(shown) behind=$(behind)
on g1 'n=0; until [ -e /run/enough ]; do
	n=$((n + 1)); echo $n >/mnt/sg/n && [ $(cat /mnt/sg/n) = $n ] || exit 1; done; echo $n' </dev/null >"$RIG_DIR/rounds" &
worker=$!

step "a VM that has no memory for the growth"
for _ in 1 2; do
	denied host "the error names the VM" 'no more than 32 MiB while g1 .*uses the volume.*unmount it there' \
		'stargatectl volume resize a --size 64M'
done
same "programs get the reason as JSON" '"in-use" 6' "$(on host 'set -o pipefail; stargatectl -j volume resize a \
	--size 64M 2>/dev/null | grep -o "\"in-use\""; echo $?' </dev/null | xargs -d '\n')"
denied g1 "the VM cannot grow the volume" 'no more than 32 MiB: this system has no memory' 'stargatectl grow --size 64M /mnt/sg'
denied host "the host cannot grow the volume by its mount" 'no more than 32 MiB' 'stargatectl grow --size 64M /mnt/a'
same "LVM's record of the zone is unchanged" "$zone" "$(zone)"
same "the host's mount reports the old size" "$shown" "$(shown)"
same "the bytes behind the volume are unchanged" "$behind" "$(behind)"
sized host /mnt/a 32
sized g1 /mnt/sg 32
pause_guest g1
denied host "the error names a paused VM" 'no more than 32 MiB while g1 ' 'stargatectl volume resize a --size 64M'
resume_guest g1
same "the refused growth has changed nothing" "$zone $shown $behind" "$(zone) $(shown) $(behind)"
on g1 'touch /run/enough' </dev/null
wait "$worker" || fail "g1 could not write during the refused growth"
passed "g1 could write during the refused growth: $(<"$RIG_DIR/rounds") rounds"

step "growth after the VM has unmounted the volume"
in_one g1 "the VM unmounts the volume" 'umount /mnt/sg'
same "the host's largest possible size is the memory that it has" $((32 * mib)) "$(on host 'cat /sys/fs/stargatefs/*/max_size' </dev/null)"
in_one host "the volume grows" 'stargatectl volume resize a --size 64M'
sized host /mnt/a 64
same "no byte of the secret remains" 0 "$(told "$base" $((base + 64 * mib)))"
in_one host "a file in the new part is made" \
	'head -c 40M /dev/urandom >/mnt/a/new && sha256sum </mnt/a/new >/mnt/a/sum'
denied g1 "the VM cannot mount the grown volume with its old memory" 'has 64 MiB, and only 32 are here' \
	'mount -t stargatefs /dev/pmem0 /mnt/sg; dmesg | grep "are here"; exit 1'

step "a VM that restarts after the growth"
stop_guest g1
start g1 a
in_one g1 "the guest mounts the grown volume" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg'
sized g1 /mnt/sg 64
in_one g1 "the guest reads the file in the new part" 'sha256sum </mnt/sg/new | cmp - /mnt/sg/sum'
in_one g1 "the guest writes to the new part" 'rm /mnt/sg/new && head -c 42M /dev/urandom >/mnt/sg/newer && sha256sum </mnt/sg/newer >/mnt/sg/sum'
in_one host "the host reads the guest's file" 'sha256sum </mnt/a/newer | cmp - /mnt/a/sum'
stop_guest g1
in_one host "the volume passes fsck" 'umount /mnt/a && stargatectl volume check a'
finish
