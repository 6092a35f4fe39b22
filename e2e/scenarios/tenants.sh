#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two tenants on one zone (D10). Each tenant has a VM with its own volume, and the VM's kernel is
# hostile. The kernel tries to read every page of the zone and to store to it. It also forges an
# entry of a file table with the address of the other tenant's memory, for the host to follow. These
# attacks may neither read nor change a byte outside of the tenant's volume. Then a VM has a
# read-only volume, and its stores have no effect.
#
# node: --guests 2 --no-mount --size 64M --pkgs lvm2 --append iomem=relaxed
# limit: 1200
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/zone.sh
source "$(dirname "$0")/../lib/zone.sh"

# sees GUEST FROM END: prints what the guest's kernel reads from the pages of the range, as counts
# of pages with zeroes, ones, or other content.
sees() { on "$1" "/root/pages count /dev/mem $2 $2 $(($3 - $2)) 0" </dev/null; }

# nothing GUEST WHAT FROM END: checks that the guest's kernel reads no content of the range.
nothing() {
	local said
	said=$(sees "$1" "$3" "$4")
	[[ $said =~ ^same\ 0\ ones\ [0-9]+\ zero\ [0-9]+\ other\ 0$ ]] || fail "$1 can read $2: $said"
	passed "$1 reads no content of $2 in $((($4 - $3) / 4096)) pages: $said"
}

# attack GUEST WHAT FROM END: makes the guest's kernel store to each page of the range.
attack() {
	in_one "$1" "$1 stores to each page of $2" \
		"/root/pages spoil /dev/mem $3 $3 $(($4 - $3)) 0x6666666600000000"
}

compile pages region
for program in pages region; do put "$compiled/$program" "/root/$program" host; done

step "a zone with two volumes, and known words behind them"
in_one host "a zone is made" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0'
for v in a b; do
	in_one host "volume $v is made and mounted" "stargatectl volume create $v --size 16M && mkdir -p /mnt/$v &&
		mount -t stargatefs /dev/sm/$v /mnt/$v &&
		yes 'a secret of $v' | head -c 6M >/mnt/$v/secret && sync -f /mnt/$v"
done
base_a=$(of a base) base_b=$(of b base)
end_a=$((base_a + $(of a size))) end_b=$((base_b + $(of b size))) zone_end=$((RIG_BASE + RIG_SIZE))
[[ $RIG_BASE -lt $base_a && $end_a -le $base_b && $end_b -lt $zone_end ]] || fail "the volumes are not in the expected order"
in_one host "the pages behind the volumes get known words" "/root/pages spoil /dev/mem $end_b $end_b $((zone_end - end_b)) 0xca9a710000000000"
secret=$(on host 'sha256sum </mnt/a/secret' </dev/null)
secret_b=$(on host 'sha256sum </mnt/b/secret' </dev/null)
canary=$(bytes $end_b $zone_end) lvm=$(bytes "$RIG_BASE" "$base_a")

step "a VM for each tenant"
start g1 a &
starting=$!
start g2 b
wait "$starting" || fail "g1 does not start"
for guest in g1 g2; do
	for program in pages region; do put "$compiled/$program" "/root/$program" "$guest"; done
	in_one "$guest" "$guest mounts its volume" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg && [ -s /mnt/sg/secret ]'
done
same "each VMM has mapped only the volume of its tenant" "1 0 0 1" "$(on host 'for guest in g1 g2; do
	for v in a b; do grep -q " /mnt/$v/.stargate/region" /proc/$(cat /run/rig/$guest.pid)/maps && echo 1 || echo 0; done; done' </dev/null | xargs)"
[[ $(sees g1 "$base_a" $end_a) =~ \ other\ [1-9] ]] || fail "g1 cannot read its own volume by this method, so the test shows nothing"
passed "a VM's kernel reads its own volume: $(sees g1 "$base_a" $end_a)"

step "the kernels read the complete zone, and store to it"
nothing g2 "volume a" "$base_a" $end_a
nothing g2 "the zone before volume a" "$RIG_BASE" "$base_a"
nothing g2 "the rest of the zone" $end_b $zone_end
nothing g1 "volume b" "$base_b" $end_b
nothing g1 "the rest of the zone" $end_b $zone_end
attack g2 "volume a" "$base_a" $end_a
attack g2 "LVM's own part of the zone" "$RIG_BASE" "$base_a"
attack g2 "the rest of the zone" $end_b $zone_end
attack g1 "volume b" "$base_b" $end_b
nothing g2 "volume a after the stores" "$base_a" $end_a
same "the secret of a is unchanged on the host" "$secret" "$(on host 'sha256sum </mnt/a/secret' </dev/null)"
same "the secret of a is unchanged in its VM" "$secret" "$(on g1 'sha256sum </mnt/sg/secret' </dev/null)"
same "the secret of b is unchanged" "$secret_b" "$(on g2 'sha256sum </mnt/sg/secret' </dev/null)"
same "the known words behind the volumes are unchanged" "$canary" "$(bytes $end_b $zone_end)"
same "the data of LVM is unchanged" "$lvm" "$(bytes "$RIG_BASE" "$base_a")"
in_one host "both volumes work" 'for v in a b; do echo new >/mnt/$v/new && [ "$(cat /mnt/$v/new)" = new ] || exit 1; done'

step "a forged entry of a file table"
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
# stat FROM END PATH PYTHON: prints the value of the expression PYTHON. In this expression, t is the
# file's table as `stargatectl stat` prints it for a copy of that memory.
stat() {
	memory "$1" "$2" >"$copy"
	"$SG_TOOLS/stargatectl" -j stat "$copy" "$3" 2>/dev/null | python3 -c "import json, sys
t = json.load(sys.stdin)['table']
print(hex($4))"
}
in_one g2 "a file with one table is made" 'head -c 64K /dev/zero >/mnt/sg/forged && sync /mnt/sg/forged'
entry=$(stat "$base_b" $end_b /forged 'int(t["root"], 16) & 0xffffffffff000')
ours=$(stat "$base_b" $end_b /forged 'int(t["runs"][0]["phys"], 16)')
theirs=$(stat "$base_a" $end_a /secret 'int(t["runs"][0]["phys"], 16)')
in_one host "the host reads zeroes from the file" '[ "$(head -c 4096 /mnt/b/forged | tr -d "\0" | wc -c)" = 0 ]'
on g2 "/root/region read /dev/mem $entry 8" </dev/null | python3 -c 'import sys
entry = int.from_bytes(sys.stdin.buffer.read(), "little")
ours, theirs = [int(word, 16) for word in sys.argv[1:]]
assert entry & 0xffffffffff000 == ours
sys.stdout.buffer.write((entry - ours + theirs).to_bytes(8, "little"))' "$ours" "$theirs" |
	on g2 "/root/region write /dev/mem $entry 8" || fail "g2 cannot change the entry of its table"
same "the forged entry has the address of the other tenant's memory" "$theirs" "$(on host "/root/region read /dev/mem $entry 8" </dev/null |
	python3 -c 'import sys
print(hex(int.from_bytes(sys.stdin.buffer.read(), "little") & 0xffffffffff000))')"
denied host "the host refuses to read the forged file" "Input/output error|Structure needs cleaning" \
	'echo 3 >/proc/sys/vm/drop_caches; cat /mnt/b/forged >/run/got'
same "the host has read no byte of the secret" 0 "$(on host 'grep -c secret /run/got' </dev/null || true)"
in_one host "the log reports the damage" 'dmesg | grep "damaged: .*(inode "'
same "the other tenant can read its secret" "$secret" "$(on g1 'sha256sum </mnt/sg/secret' </dev/null)"

step "a VM with a read-only volume that the host uses"
stop_guest g1
start g1 a --read-only
put "$compiled/pages" /root/pages g1
same "the device of the reader is read-only" 1 "$(on g1 'cat /sys/block/pmem0/ro' </dev/null)"
denied g1 "a volume in use cannot be mounted from a read-only device" "in use.*read-only" 'mkdir -p /mnt/sg; mount -t stargatefs -o ro /dev/pmem0 /mnt/sg'
before=$(sees g1 "$base_a" $end_a)
[[ $before =~ \ other\ [1-9] ]] || fail "g1 cannot read the volume: $before"
attack g1 "the read-only volume" "$base_a" $end_a
same "the stores have no effect in the VM" 0 \
	"$(on g1 "/root/pages count /dev/mem $base_a $base_a $((end_a - base_a)) 0x6666666600000000" </dev/null | cut -d' ' -f2)"
same "the file is unchanged on the host" "$secret" "$(on host 'sha256sum </mnt/a/secret' </dev/null)"
in_one host "the host can write the volume" 'echo newer >/mnt/a/new && [ "$(cat /mnt/a/new)" = newer ]'
stop_guest g1

step "a VM with a read-only volume that no system changes"
in_one host "the volume is mounted from a read-only device" \
	'umount /mnt/a && blockdev --setro /dev/sm/a && mount -t stargatefs -o ro /dev/sm/a /mnt/a'
in_one host "the volume is mounted without joining" 'umount /mnt/a && blockdev --setrw /dev/sm/a &&
	mount -t stargatefs -o ro,nojoin /dev/sm/a /mnt/a'
in_one host "volume.json shows that the host has not joined" 'grep "\"joined\": false" /mnt/a/.stargate/volume.json'
whole=$(bytes "$base_a" $end_a)
denied host "a process cannot open region for writing" "denied|Read-only" 'exec 9<>/mnt/a/.stargate/region'
start g1 a --read-only
put "$compiled/pages" /root/pages g1
in_one g1 "a VM mounts the volume" 'mkdir -p /mnt/sg && mount -t stargatefs -o ro /dev/pmem0 /mnt/sg'
same "the reader can read the file" "$secret" "$(on g1 'sha256sum </mnt/sg/secret' </dev/null)"
denied g1 "the VM cannot create a file" "Read-only" 'echo x >/mnt/sg/new'
attack g1 "the read-only volume" "$base_a" $end_a
same "no byte of the volume has changed" "$whole" "$(bytes "$base_a" $end_a)"
same "the reader still reads the same bytes" "$secret" "$(on g1 'echo 3 >/proc/sys/vm/drop_caches; sha256sum </mnt/sg/secret' </dev/null)"
stop_guest g1
kill_guest g2

step "a check of both volumes"
in_one host "volume a passes fsck" 'umount /mnt/a && stargatectl volume check a'
in_one host "fsck of volume b finds at most the damage by its tenant" 'umount /mnt/b && { stargatectl volume check b; [ $? -le 4 ]; }'
same "the known words behind the volumes are unchanged" "$canary" "$(bytes $end_b $zone_end)"
finish
