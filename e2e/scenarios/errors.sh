#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A structure that turns out to be damaged while the volume is mounted: whoever meets it gets
# EUCLEAN, it is reported once, with inode and offset, and errors= says what happens then. Nothing
# else suffers, and fsck sees to it afterwards.
#
# rig: --size 32M
# maps: walk
# limit: 300
# shellcheck disable=SC2016 # what is quoted is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

tools=$(dirname "$0")/../../build/tools
saved=$(mktemp -d)
trap 'rm -rf "$saved"' EXIT

restore() { dd if="$saved/volume" of="$RIG_RANGE" bs=1M conv=notrunc status=none; }
reports() { console g1 | grep -c 'stargatefs (pmem0): damaged: .*(inode [0-9]*, offset' || true; }

# word OFFSET: eight bytes of the volume, as a number.
word() { od -An -t u8 -N 8 -j "$1" "$RIG_RANGE" | tr -d ' '; }

# bucket INODE: where the page with the names of a small directory is, by its magic.
bucket() {
	local at
	while read -r at; do
		[[ $((at % 4096)) -eq 0 && $(word $((at + 8))) == "$1" ]] || continue
		echo "$at"
		return
	done < <(LC_ALL=C grep -aobF SBKT "$RIG_RANGE" | cut -d: -f1)
	fail "no page holds the names of directory $1"
}

holds "two directories" 'mkdir /mnt/sg/hurt /mnt/sg/well && touch /mnt/sg/hurt/{a,b,c} &&
	echo x >/mnt/sg/well/f'
ino=$(on g1 'stat -c %i /mnt/sg/hurt')
holds "unmount" 'umount /mnt/sg'
cat "$RIG_RANGE" >"$saved/volume"
place=$(bucket "$ino")

for errors in continue remount-ro; do
	step "errors=$errors"
	before=$(reports)
	holds "mount" "mount -t stargatefs -o errors=$errors /dev/pmem0 /mnt/sg &&
		grep -q errors=$errors /proc/mounts"
	printf 'XXXXXXXX' | dd of="$RIG_RANGE" bs=1 seek="$place" conv=notrunc status=none
	refused "listing" 'needs cleaning' 'ls /mnt/sg/hurt'
	refused "looking up" 'needs cleaning' 'stat /mnt/sg/hurt/a'
	refused "listing again" 'needs cleaning' 'ls /mnt/sg/hurt'
	same "reported once" "$((before + 1))" "$(reports)"
	holds "the rest can be read" '[ "$(cat /mnt/sg/well/f)" = x ]'
	if [[ $errors == continue ]]; then
		holds "and written" 'echo y >/mnt/sg/well/g && rm /mnt/sg/well/g'
		holds "it is counted" '[ "$(awk "/^count/ { print \$2 }" \
			/sys/fs/stargatefs/pmem0/errors)" -ge 1 ]'
	else
		refused "but not written" 'read-only' 'echo y >/mnt/sg/well/g'
		holds "which /proc/mounts says" 'grep -q "stargatefs ro," /proc/mounts'
	fi
	holds "unmount" 'umount /mnt/sg'
	if "$tools/fsck.stargatefs" -n "$RIG_RANGE" >"$saved/fsck" 2>&1; then
		fail "fsck finds nothing: $(<"$saved/fsck")"
	fi
	passed "fsck finds it: $(grep -m 1 -i 'director\|bucket' "$saved/fsck")"
	restore
done
holds "the volume as it was" 'mount -t stargatefs /dev/pmem0 /mnt/sg && ls /mnt/sg/hurt/c'
finish
