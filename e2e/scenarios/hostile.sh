#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Hostile guests. A process stores arbitrary data into a volume through .stargate/region, as a VM
# can, while the host uses the volume in all ways. A second attack stores from outside while the
# host mounts, unmounts and repairs the volume. The kernel must not oops or hang. Every waiting
# process can be killed. The volumes before and behind the attacked one in the same memory keep
# every byte. `make fuzz SUITE=hostile` runs many rounds on the debug kernel, with KASAN and
# lockdep. `make test` runs one short round on 6.12.
#
# rig: --size 96M --cpus 2 --pages --no-mount --pkgs "dmsetup attr"
# maps: walk
# kernels: 6.12
# limit: 300
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

seed=${HOSTILE_SEED:-$(seed)}
rounds=${HOSTILE_ROUNDS:-$(scaled 1 1 20)}
seconds=${HOSTILE_SECONDS:-4}
bound=${HOSTILE_BOUND:-60} # seconds for an operation that may wait for a lock without a live holder
mib=$((1 << 20)) size=$((32 << 20))
saved=$(mktemp -d)
trap 'rm -rf "$saved"' EXIT
program hostile # also sets $compiled
# shellcheck disable=SC2154
hostile=$compiled/hostile

# part NR: prints the bytes of the attacked volume (1), or of the volume before (0) or behind it
# (2).
part() { dd if="$RIG_RANGE" bs=1M skip=$(($1 * 32)) count=32 status=none; }
neighbours() { { part 0; part 2; } | sha256sum; }

step "three adjacent volumes, and files of all kinds in the middle one"
holds "the memory is divided into three devices" "modprobe dm-mod; n=$((size / 512)); for k in 0 1 2; do
	dmsetup --noudevsync create part\$k --table \"0 \$n linear /dev/pmem0 \$((k * n))\"
	done; dmsetup mknodes
	for k in 0 1 2; do mkfs.stargatefs -q -f /dev/mapper/part\$k || exit 1; done"
holds "a tree of files is made" 'mkdir -p /mnt/sg && mount -t stargatefs /dev/mapper/part1 /mnt/sg && cd /mnt/sg &&
	mkdir -p dir/sub many && head -c 3000 /dev/urandom >one &&
	head -c 50000 /dev/urandom >table && head -c 5M /dev/urandom >large &&
	truncate -s 1T sparse && echo x >>sparse && ln -s target short &&
	mkfifo fifo && setfattr -n user.k -v v one && ln one dir/link &&
	for i in $(seq 150); do echo $i >many/x-$i; done; cd / && umount /mnt/sg'
part 1 >"$saved/made"
kept=$(neighbours)

# made_again: restores the bytes that the middle volume had before the first attack.
made_again() {
	dd if="$saved/made" of="$RIG_RANGE" bs=1M seek=32 conv=notrunc status=none
	# The cache of the device still has the old bytes.
	on g1 'sync; echo 3 >/proc/sys/vm/drop_caches' </dev/null
}
# gone: checks that the volume can be unmounted within the limit. The function reads the kernel's
# list of mounts, because mountpoint(1) fails on a damaged root.
gone() {
	on g1 "cd /; there() { grep -q ' /mnt/sg ' /proc/mounts; }
		for i in 1 2 3; do
			there || exit 0
			timeout -s KILL $((2 * bound)) umount /mnt/sg
		done
		! there" </dev/null || fail "round $round: the volume cannot be unmounted"
}
region=/mnt/sg/.stargate/region
tools=$SG_TOOLS
at=$((32 * mib))

step "attacks through .stargate/region, $rounds rounds"
for ((round = seed; round < seed + rounds; round++)); do
	echo "round $round"
	made_again
	errors=$([[ $((round % 2)) == 0 ]] && echo remount-ro || echo continue)
	map=$([[ $((round % 3)) == 0 ]] && echo shadow || echo walk)
	on g1 "mount -t stargatefs -o map=$map,errors=$errors /dev/mapper/part1 /mnt/sg" </dev/null ||
		fail "round $round: the volume cannot be mounted"
	on g1 "/root/hostile attack $region 0 $size $round $seconds & a=\$!
		/root/hostile use /mnt/sg $round $seconds $bound || exit 1
		wait \$a" </dev/null >"$saved/said" 2>&1 ||
		fail "round $round: $(cat "$saved/said")"
	sed 's/^/   /' "$saved/said"
	gone
done
passed "the volume was unmounted after each of $rounds attacks through region"

step "attacks from outside during mounts and unmounts, $rounds rounds"
for ((round = seed; round < seed + rounds; round++)); do
	made_again
	"$hostile" attack "$RIG_RANGE" "$at" "$size" $((round + 1000000)) $((seconds + 2)) >"$saved/said" &
	attacker=$!
	on g1 "t() { timeout -s KILL $((2 * bound)) \"\$@\"; }
		for i in 1 2 3; do
			t mount -t stargatefs /dev/mapper/part1 /mnt/sg || continue
			t ls -lR /mnt/sg; t cp -r /etc/apt /mnt/sg; t df /mnt/sg
			t stargatectl systems $region
			t umount /mnt/sg
			t fsck.stargatefs -y /dev/mapper/part1
		done >/dev/null 2>&1; true" </dev/null
	gone
	wait "$attacker" || fail "round $round: the attacker failed: $(cat "$saved/said")"
	part 1 >"$saved/volume"
	status=0
	timeout "$((2 * bound))" "$tools/fsck.stargatefs" -y --force-live --force-foreign "$saved/volume" \
		>"$saved/fsck" 2>&1 || status=$?
	# If the attacker has overwritten both superblocks, fsck cannot check the volume.
	[[ $status -lt 8 ]] || grep -q "holds no superblock of a StargateFS\|superblock and backup are damaged" "$saved/fsck" ||
		fail "round $round: fsck ends with $status: $(tail -n 3 "$saved/fsck")"
done
passed "fsck ends after each of $rounds attacks, the last time with: $(tail -n 1 "$saved/fsck")"

step "the volumes after the attacks"
same "the volumes on both sides have their bytes" "$kept" "$(neighbours)"
made_again
holds "the restored volume can be used" 'mount -t stargatefs /dev/mapper/part1 /mnt/sg &&
	[ -p /mnt/sg/fifo ] && echo more >>/mnt/sg/one && umount /mnt/sg'
holds "the module can be unloaded" 'rmmod stargatefs'
finish
