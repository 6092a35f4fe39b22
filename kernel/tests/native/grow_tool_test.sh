#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl grow, as a user calls it: on an unused file, and on a file that processes use as
# systems (machine.c). One of them has mapped less.
set -euo pipefail
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"
# shellcheck source=kernel/tests/lib/swaps.sh
source "$src/../tests/lib/swaps.sh"

stop() {
	echo "exit 0" >&"${to[$1]}"
	wait "${pid[$1]}" || true
}
size_of() { "$ctl" --json info "$1" 2>/dev/null | sed -nE 's/.*"size": ([0-9]+).*/\1/p'; }

# --- no system uses the volume ---
"$mkfs" -q --phys 16G --size 32M --max-size 128M v.img
expect 0 "$ctl" grow v.img
says '^v.img: has 32 MiB already$'
expect 0 "$ctl" grow --size 48M v.img
says '^v.img: has grown from 32 MiB to 48 MiB$'
[[ $(stat -c %s v.img) -eq $((48 << 20)) ]] || fail "the file's size differs from the volume's size"
expect 0 "$fsck" -n v.img
expect 0 "$ctl" -j grow --size 50331649 v.img
says '"size": 50331648'
says '"was": 50331648'
truncate -s 65M v.img
expect 0 "$ctl" grow v.img
says 'from 48 MiB to 64 MiB'
expect 0 "$fsck" -n v.img
expect 0 "$ctl" dump v.img hot
says '^size: 67108864'

refuses 1 'v.img: a volume cannot shrink: it has 64 MiB$' "$ctl" grow --size 32M v.img
refuses 1 'v.img: no more than 128 MiB: the volume.s metadata has no room' "$ctl" grow --size 130M v.img
[[ $(stat -c %s v.img) -eq $((65 << 20)) ]] || fail "a refused growth has changed the file's size"
for bad in 0 -1 x 65T ''; do
	refuses 2 "must be 1 to 64T" "$ctl" grow v.img --size="$bad"
done
refuses 2 'grow: takes VOLUME' "$ctl" grow v.img 64M
refuses 2 'info: takes no --size' "$ctl" info v.img --size 64M
refuses 1 'none: cannot be opened' "$ctl" grow none
refuses 1 'is not a directory of a mounted StargateFS' "$ctl" grow .
head -c 20M /dev/zero >zeroes
refuses 1 'no StargateFS here' "$ctl" grow zeroes

# --- systems use the volume ---
"$mkfs" -q --phys 16G --size 32M w.img
truncate -s 64M w.img
start 1
start 2
say 1 join w.img "$m1" 1
say 1 mkdir 0 before
expect 0 "$ctl" grow --size 40M w.img
says 'from 32 MiB to 40 MiB'
say 1 mkdir 0 after
say 2 join w.img "$m2" 1
expect 0 "$ctl" grow w.img
says 'from 40 MiB to 64 MiB'
refuses 6 'no more than 64 MiB while machine-11111111 \(slot [01]\) uses' "$ctl" grow --size 80M w.img
[[ $(stat -c %s w.img) -eq $((64 << 20)) ]] || fail "a refused growth has made the file longer"
say 1 mkdir 0 went-on
say 2 leave 0
say 1 still 0
truncate -s 66M w.img
refuses 7 'machine-11111111 \(slot 0\) does not answer' "$ctl" grow w.img --size 66M
expect 7 "$ctl" -j grow w.img --size 66M
json 'd == {"reason": "busy"}'
say 1 go 0
say 1 leave 0
expect 0 "$ctl" grow w.img
says 'from 64 MiB to 66 MiB'
stop 1
stop 2
expect 0 "$fsck" -n w.img
expect 0 "$ctl" ls w.img
says '^went-on$'
[[ $(size_of w.img) -eq $((66 << 20)) ]] || fail "info prints a wrong size"

# --- the owner of the folder replaces the file by a link to another file, at any moment ---
if [[ $swaps ]]; then
	start 3
	for skip in 0 1 2 3 4 5; do
		rm -f own.img gone other.img
		"$mkfs" -q --phys 16G --size 32M --max-size 128M own.img
		cp own.img other.img
		cp own.img was.img
		swap_skip=$skip swapped open own.img 'mv own.img gone; ln -s other.img own.img' '*' \
			"$ctl" grow --size 48M own.img
		same other.img was.img
		# a system that has mapped less prevents the growth: grow restores the file's length
		rm -f own.img gone
		cp was.img own.img
		truncate -s 80M other.img
		cp other.img was.img
		say 3 join own.img "$m1" "$skip"
		swap_skip=$skip swapped open own.img 'mv own.img gone; ln -s other.img own.img' '*' \
			"$ctl" grow --size 48M own.img
		same other.img was.img
	done
	stop 3
fi

# --- a user that may only read the file holds its lock ---
"$mkfs" -q --phys 16G --size 32M --max-size 128M locked.img
flock locked.img sleep 30 &
locker=$!
until ! flock -n locked.img true; do sleep 0.1; done
refuses 7 'locked.img: another process holds its lock' timeout 25 "$ctl" grow locked.img --size 48M
kill "$locker"

# --- a volume of the CSI driver, which has noted its length ---
expect 0 "$mkfs" -q --size 16M --phys 16G claim.stargate
ln -s 0x400000000+0x1000000 .at-claim
expect 1 "$ctl" grow --size 32M claim.stargate
says 'is a volume of the CSI driver' err
[[ $(stat -c %s claim.stargate) -eq $((16 << 20)) ]] ||
	fail "a refused growth has made the file longer"
ln -sfn 0x400000000+0x2000000 .at-claim
expect 0 "$ctl" grow --size 32M claim.stargate

echo "$checks checks"
