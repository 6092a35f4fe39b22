#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hostile VM on a node. Root of a guest under the host's KVM stores arbitrary data through the
# guest's physical memory, while the host and another guest use the volume. First the attacker takes
# all transaction areas. A process that waits for them can be killed, and when the attacker's VM has
# ended, all systems continue.
#
# Then the attacker stores random data at random places, while the other systems read, write, list
# and map, and are killed and recovered. Every operation ends within its limit. The log names the
# damage that a system has found. No byte outside of the volume changes. There are several rounds,
# each on a new volume. When the VMs have ended, the host can unmount and check the volume within
# its limit, and can format it once more.
#
# node: --guests 2 --no-mount --size 96M --pkgs lvm2 --append iomem=relaxed
# limit: 1200
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/zone.sh
source "$(dirname "$0")/../lib/zone.sh"

seed=${HOSTILE_SEED:-$(seed)}
seconds=${HOSTILE_SECONDS:-$(scaled 8 20 20)}
rounds=${HOSTILE_ROUNDS:-$(scaled 1 1 6)}
bound=${HOSTILE_BOUND:-60} # seconds for an operation that may wait for a lock without a live holder
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compile hostile

# machine GUEST: starts a VM that has the volume.
machine() {
	start "$1" v
	put "$compiled/hostile" /root/hostile "$1"
}
mounts() {
	in_one "$1" "$1 mounts the volume" \
		'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg && [ -s /mnt/sg/one ]'
}
# around: prints a digest of the zone outside of the volume.
around() { { memory "$RIG_BASE" "$base"; memory "$end" $((RIG_BASE + RIG_SIZE)); } | sha256sum; }

# in_time WHAT COMMAND: checks that COMMAND on the host ends within the limit, with any status, or
# can be killed after the limit.
in_time() {
	local start=$EPOCHSECONDS
	on host "gone() { for try in \$(seq $((10 * bound))); do
			kill -0 \$p 2>/dev/null || return 0; sleep 0.1; done; return 1; }
		$2 & p=\$!
		gone && exit; kill -KILL \$p; gone && exit
		cat /proc/\$p/stack; exit 1" >"$work/said" 2>&1 </dev/null ||
		fail "$1 hangs: $(tail -n 20 "$work/said")"
	passed "$1 took $((EPOCHSECONDS - start)) s"
}

step "a volume with files of all kinds, between two others (seed $seed)"
in_one host "a zone with three volumes is made" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0 && stargatectl volume create left --size 16M &&
	stargatectl volume create v --size 32M && stargatectl volume create right --size 16M'
base=$(of v base)
size=$(of v size)
end=$((base + size))
[[ $(of left base) -lt $base && $(of right base) -ge $end ]] || fail "the attacked volume is not between the two others"
tree='mkdir -p /mnt/v && mount -t stargatefs -o errors=continue /dev/sm/v /mnt/v && cd /mnt/v &&
	mkdir -p dir/sub many && head -c 3000 /dev/urandom >one &&
	head -c 50000 /dev/urandom >table && head -c 5M /dev/urandom >large &&
	truncate -s 1T sparse && echo x >>sparse && ln -s target short &&
	mkfifo fifo && ln one dir/link &&
	for i in $(seq 150); do echo $i >many/x-$i; done && sync -f .'
in_one host "a tree of files is made" "$tree"
put "$compiled/hostile" /root/hostile host
kept=$(around)
machine g1
machine g2
for guest in g1 g2; do mounts "$guest"; done

step "an attacker that takes all transaction areas"
on g1 "/root/hostile seize /dev/mem $base $size g1 1000" </dev/null >/dev/null 2>&1 &
attacker=$!
on host 'for try in $(seq 100); do
		touch /mnt/v/waits$try & p=$!
		for turn in $(seq 30); do sleep 0.1; kill -0 $p 2>/dev/null || continue 2; done
		kill -KILL $p
		for turn in $(seq 100); do kill -0 $p 2>/dev/null || exit 0; sleep 0.1; done
		cat /proc/$p/stack; exit 1
	done; echo no process had to wait; exit 1' >"$work/said" 2>&1 </dev/null ||
	fail "a waiting process cannot be killed: $(cat "$work/said")"
passed "a process on the host waits for an area, and can be killed"
kill_guest g1
wait "$attacker" || true
in_one host "the host continues after the guest's end" 'timeout 20 touch /mnt/v/goes-on'
in_one g2 "g2 continues after the guest's end" 'timeout 20 touch /mnt/sg/goes-on && [ -e /mnt/sg/goes-on ]'
same "the log names the system that has ended" 1 "$(on host 'dmesg | grep -c "g1 (slot [0-9]*): its VM has ended: fenced"' </dev/null)"

# attacked ROUND: lets g1 attack while the other systems work, for $seconds.
attacked() {
	local who system
	local -A users
	machine g1
	on g1 "/root/hostile attack /dev/mem $base $size $((seed + $1)) 1000" </dev/null >/dev/null 2>&1 &
	attacker=$!
	for who in "host /mnt/v" "g2 /mnt/sg"; do
		system=${who% *}
		on "$system" "/root/hostile use ${who#* } $((seed + $1 + 1)) $seconds $bound" \
			</dev/null >"$work/$system" 2>&1 &
		users[$system]=$!
	done
	on host "end=\$((SECONDS + $seconds)); while [ \$SECONDS -lt \$end ]; do
		for c in 'ls -lR /mnt/v' 'df /mnt/v' 'stargatectl systems /mnt/v/.stargate/region' \
			'fsck.stargatefs -n /dev/sm/v'; do
			timeout -s KILL $bound \$c; done; done >/dev/null 2>&1; true" </dev/null || fail "round $1: the host could not run the reading commands"
	for system in host g2; do
		wait "${users[$system]}" || fail "round $1, $system: $(cat "$work/$system")"
		passed "round $1: $system found no error in its work: $(tail -n 1 "$work/$system")"
	done
	kill -0 "$attacker" || fail "round $1: the attacker has ended early"
	same "the zone outside of the volume has all its bytes" "$kept" "$(around)"
}
# attacker_ends: kills the attacker's VM.
attacker_ends() {
	kill_guest g1
	wait "$attacker" || true
}
# made_anew: formats the volume for the next round, after both VMs have ended.
made_anew() {
	attacker_ends
	kill_guest g2
	in_time "unmounting on the host" 'umount /mnt/v || umount /mnt/v'
	in_one host "the volume is formatted for the next round" "mkfs.stargatefs -q -f /dev/sm/v && $tree"
	machine g2
	mounts g2
}

step "random stores while host and g2 work, $rounds times for $seconds s"
for ((round = 1; round <= rounds; round++)); do
	((round == 1)) || made_anew
	attacked "$round"
done
# If the attacker fenced the host before the host found any damage, the log reports the fence.
in_one host "the log reports damage with its place, or a fence" \
	'dmesg | grep "stargatefs.*damaged: .*(inode [0-9]*, offset 0x\|stargatefs.*: fenced by another system"'

step "g2 is killed during the attack"
on host "/root/hostile use /mnt/v $((seed + 2)) 6 $bound" </dev/null >"$work/host" 2>&1 &
user=$!
sleep 1
kill_guest g2
wait "$user" || fail "the host, after the end of g2: $(cat "$work/host")"
passed "the host found no error in its work: $(tail -n 1 "$work/host")"

step "the host after the end of both VMs"
attacker_ends
in_time "unmounting" 'umount /mnt/v || umount /mnt/v'
in_one host "the volume is unmounted" '! grep -q " /mnt/v " /proc/mounts'
in_time "a repair by fsck" 'fsck.stargatefs -y --force-live --force-foreign /dev/sm/v'
same "the zone outside of the volume has all its bytes" "$kept" "$(around)"
in_one host "the volume can be formatted and used" 'mkfs.stargatefs -q -f /dev/sm/v && mount -t stargatefs /dev/sm/v /mnt/v &&
	echo new >/mnt/v/new && umount /mnt/v &&
	for v in v left right; do stargatectl volume check $v || exit 1; done; rmmod stargatefs'
finish
