#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatefs-fuse: its server dies at each moment of a call that is special, and the next one must
# know what has been done.
# shellcheck source=kernel/tests/lib/fuse.sh
source "$(dirname "$0")/../lib/fuse.sh"
# shellcheck source=kernel/tests/lib/deaths.sh
source "$sources/tests/lib/deaths.sh"
if [[ -z $deaths ]]; then
	echo "1 checks"
	exit 0
fi

INIT=26
make_volume v 64M

# --- the first request of a mount ------------------------------------------------------------

for moment in read reply replied; do
	serve_to_die $moment:$INIT m v
	timeout -s KILL 20 ls m >out || fail "$moment: the mount hangs, or has ended"
	died
	leave m
done

# --- signals to the keeper -------------------------------------------------------------------

# One that comes just before the keeper waits takes the mount away all the same.
: >death
LD_PRELOAD="$dir/death.so" DEATH_AT=wait:0 DEATH_FILE="$dir/death" serve m v
ended m
died
is "the mount is gone" "" "$(mountpoint -q m && echo still there)"

# It takes away no other mount, which came later, when another server goes on for an open file.
serve m v
exec 9>m/open
kill -TERM "$(head -n 1 <<<"$(pids_of m)")"
soon "the mount is gone" 5 bash -c '! mountpoint -q m'
mount -t tmpfs tmpfs m
kill -KILL "$(server_of m)"
timeout -s KILL 20 sh -c 'echo more >&9' || fail "another server does not go on"
is "the later mount" tmpfs "$(stat -f -c %T m)"
umount m
exec 9>&-
ended m

clean v
echo "$checks checks"
