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

clean v
echo "$checks checks"
