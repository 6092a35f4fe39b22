#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A hostile VM on a node: root of a guest under the host's KVM stores arbitrary data through the
# guest's physical memory, while the host and another guest use the volume. First it takes all
# transaction areas: a process that waits for them can be killed, and when the VM has ended, all
# systems continue. Then it stores random data at random places, while the other systems read,
# write, list and map, and are killed and recovered. Every operation ends within its limit, the log
# names the damage that a system has found, and no byte outside of the volume changes. There are
# several rounds, each on a new volume. When the VMs have ended, the host unmounts and checks within
# its limit, and can format the volume again.
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
	in_one "$1" "$1 has it mounted" \
		'mkdir -p /mnt/sg && mount -t stargatefs /dev/pmem0 /mnt/sg && [ -s /mnt/sg/one ]'
}
# around: prints a digest of the zone outside of the volume.
around() { { memory "$RIG_BASE" "$base"; memory "$end" $((RIG_BASE + RIG_SIZE)); } | sha256sum; }

# in_time WHAT COMMAND: checks that COMMAND on the host ends within the limit, with any status, or
# can then be killed.
in_time() {
	local start=$EPOCHSECONDS
	on host "gone() { for try in \$(seq $((10 * bound))); do
			kill -0 \$p 2>/dev/null || return 0; sleep 0.1; done; return 1; }
		$2 & p=\$!
		gone && exit; kill -KILL \$p; gone && exit
		cat /proc/\$p/stack; exit 1" >"$work/said" 2>&1 </dev/null ||
		fail "$1 hangs: $(tail -n 20 "$work/said")"
	passed "$1: $((EPOCHSECONDS - start)) s"
}

step "a volume with everything in it, and others on both sides (seed $seed)"
in_one host "a zone" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
	stargatectl zone create sm /dev/pmem0 && stargatectl volume create left --size 16M &&
	stargatectl volume create v --size 32M && stargatectl volume create right --size 16M'
base=$(of v base)
size=$(of v size)
end=$((base + size))
[[ $(of left base) -lt $base && $(of right base) -ge $end ]] || fail "they lie elsewhere"
tree='mkdir -p /mnt/v && mount -t stargatefs -o errors=continue /dev/sm/v /mnt/v && cd /mnt/v &&
	mkdir -p dir/sub many && head -c 3000 /dev/urandom >one &&
	head -c 50000 /dev/urandom >table && head -c 5M /dev/urandom >large &&
	truncate -s 1T sparse && echo x >>sparse && ln -s target short &&
	mkfifo fifo && ln one dir/link &&
	for i in $(seq 150); do echo $i >many/x-$i; done && sync -f .'
in_one host "a tree" "$tree"
put "$compiled/hostile" /root/hostile host
kept=$(around)
machine g1
machine g2
for guest in g1 g2; do mounts "$guest"; done

step "it seizes what all need"
on g1 "/root/hostile seize /dev/mem $base $size g1 1000" </dev/null >/dev/null 2>&1 &
attacker=$!
on host 'for try in $(seq 100); do
		touch /mnt/v/waits$try & p=$!
		for turn in $(seq 30); do sleep 0.1; kill -0 $p 2>/dev/null || continue 2; done
		kill -KILL $p
		for turn in $(seq 100); do kill -0 $p 2>/dev/null || exit 0; sleep 0.1; done
		cat /proc/$p/stack; exit 1
	done; echo nobody has to wait; exit 1' >"$work/said" 2>&1 </dev/null ||
	fail "a waiting process cannot be killed: $(cat "$work/said")"
passed "the host waits for it, and a waiting process can be killed"
kill_guest g1
wait "$attacker" || true
in_one host "the host continues after the guest's end" 'timeout 20 touch /mnt/v/goes-on'
in_one g2 "so does g2" 'timeout 20 touch /mnt/sg/goes-on && [ -e /mnt/sg/goes-on ]'
same "the log names the system that has ended" 1 "$(on host 'dmesg | grep -c "g1 (slot [0-9]*): its VM has ended: fenced"' </dev/null)"

# attacked ROUND: lets g1 attack and the other systems work for some time.
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
			timeout -s KILL $bound \$c; done; done >/dev/null 2>&1; true" </dev/null || fail "looking at it"
	for system in host g2; do
		wait "${users[$system]}" || fail "round $1, $system: $(cat "$work/$system")"
		passed "round $1, $system: $(tail -n 1 "$work/$system")"
	done
	kill -0 "$attacker" || fail "round $1: nobody has attacked"
	same "the zone around it has not lost a byte" "$kept" "$(around)"
}
# attacker_ends: kills the attacker's VM.
attacker_ends() {
	kill_guest g1
	wait "$attacker" || true
}
# made_anew: makes the volume again for the next round; no VM may have the old one.
made_anew() {
	attacker_ends
	kill_guest g2
	in_time "the host unmounts" 'umount /mnt/v || umount /mnt/v'
	in_one host "the volume is made anew" "mkfs.stargatefs -q -f /dev/sm/v && $tree"
	machine g2
	mounts g2
}

step "it stores anything anywhere, while host and g2 work, $rounds times for $seconds s"
for ((round = 1; round <= rounds; round++)); do
	((round == 1)) || made_anew
	attacked "$round"
done
# If the attacker fenced the host before the host met any damage, the log says that instead.
in_one host "the log says what was met, where" \
	'dmesg | grep "stargatefs.*damaged: .*(inode [0-9]*, offset 0x\|stargatefs.*: fenced by another system"'

step "g2 dies meanwhile"
on host "/root/hostile use /mnt/v $((seed + 2)) 6 $bound" </dev/null >"$work/host" 2>&1 &
user=$!
sleep 1
kill_guest g2
wait "$user" || fail "the host: $(cat "$work/host")"
passed "the host: $(tail -n 1 "$work/host")"

step "the host is rid of them"
attacker_ends
in_time "unmounting" 'umount /mnt/v || umount /mnt/v'
in_one host "the volume is unmounted" '! grep -q " /mnt/v " /proc/mounts'
in_time "checking" 'fsck.stargatefs -y --force-live --force-foreign /dev/sm/v'
same "the zone around it has not lost a byte" "$kept" "$(around)"
in_one host "the volume can be made anew" 'mkfs.stargatefs -q -f /dev/sm/v && mount -t stargatefs /dev/sm/v /mnt/v &&
	echo new >/mnt/v/new && umount /mnt/v &&
	for v in v left right; do stargatectl volume check $v || exit 1; done; rmmod stargatefs'
finish
