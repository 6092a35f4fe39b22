#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Hostile guests: a process stores arbitrary data into a volume through .stargate/region, as a VM
# can, while the host uses the volume in all ways. A second attack stores from outside while the
# host mounts, unmounts and repairs the volume. The kernel must not oops or hang. Every waiting
# process can be killed, and the volumes before and behind it in the same memory keep every byte. On
# the debug kernel KASAN and lockdep watch (`make fuzz SUITE=hostile`); 6.12 has a short round in
# `make test`.
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

# part NR: prints the bytes of the volume in the middle (1), or of its neighbours (0, 2).
part() { dd if="$RIG_RANGE" bs=1M skip=$(($1 * 32)) count=32 status=none; }
neighbours() { { part 0; part 2; } | sha256sum; }

step "three volumes in a row, and a tree of everything in the one that is attacked"
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

# made_again: restores the new volume.
made_again() {
	dd if="$saved/made" of="$RIG_RANGE" bs=1M seek=32 conv=notrunc status=none
	# the device's cache is out of date
	on g1 'sync; echo 3 >/proc/sys/vm/drop_caches' </dev/null
}
# gone: checks that the volume is unmounted within the limit. Reads the kernel's list of mounts,
# because a damaged root does not look like a mount.
gone() {
	on g1 "cd /; there() { grep -q ' /mnt/sg ' /proc/mounts; }
		for i in 1 2 3; do
			there || exit 0
			timeout -s KILL $((2 * bound)) umount /mnt/sg
		done
		! there" </dev/null || fail "round $round: cannot be unmounted"
}
region=/mnt/sg/.stargate/region
tools=$SG_TOOLS
at=$((32 * mib))

step "attacked through .stargate/region, $rounds rounds"
for ((round = seed; round < seed + rounds; round++)); do
	echo "round $round"
	made_again
	errors=$([[ $((round % 2)) == 0 ]] && echo remount-ro || echo continue)
	map=$([[ $((round % 3)) == 0 ]] && echo shadow || echo walk)
	on g1 "mount -t stargatefs -o map=$map,errors=$errors /dev/mapper/part1 /mnt/sg" </dev/null ||
		fail "round $round: no mount"
	on g1 "/root/hostile attack $region 0 $size $round $seconds & a=\$!
		/root/hostile use /mnt/sg $round $seconds $bound || exit 1
		wait \$a" </dev/null >"$saved/said" 2>&1 ||
		fail "round $round: $(cat "$saved/said")"
	sed 's/^/   /' "$saved/said"
	gone
done
passed "$rounds rounds, unmounted each time"

step "attacked from outside while it comes and goes, $rounds rounds"
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
	wait "$attacker" || fail "the attacker: $(cat "$saved/said")"
	part 1 >"$saved/volume"
	status=0
	timeout "$((2 * bound))" "$tools/fsck.stargatefs" -y --force-live --force-foreign "$saved/volume" \
		>"$saved/fsck" 2>&1 || status=$?
	# If the attacker has overwritten both superblocks, fsck cannot check the volume.
	[[ $status -lt 8 ]] || grep -q "holds no superblock of a StargateFS\|superblock and backup are damaged" "$saved/fsck" ||
		fail "round $round: fsck ends with $status: $(tail -n 3 "$saved/fsck")"
done
passed "$rounds rounds; fsck says of the last: $(tail -n 1 "$saved/fsck")"

step "afterwards"
same "the volumes on both sides have not lost a byte" "$kept" "$(neighbours)"
made_again
holds "the volume as it was can be used" 'mount -t stargatefs /dev/mapper/part1 /mnt/sg &&
	[ -p /mnt/sg/fifo ] && echo more >>/mnt/sg/one && umount /mnt/sg'
holds "the module can be unloaded" 'rmmod stargatefs'
finish
