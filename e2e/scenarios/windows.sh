#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Windows (D5) without a volume, on file tables that the test builds. It tests which bytes windows
# map, and which tables they refuse. After a flush no stale translation may remain (D7). An entry
# that a peer has removed must not cause an oops. One run makes no flushes, and must fail.
#
# rig: --no-module --cpus 2
# maps: walk
# limit: 600
set -euo pipefail
cd "$(dirname "$0")/../.."

module=$(kernel/tests/window_test/build "$(cut -d. -f1,2 <<<"$RIG_KERNEL")")
on g1 'cat >/root/window_test.ko' <"$module"

# Huge windows need large entries from ioremap().
words=$(on g1 'cat /proc/cmdline')
need=1
[[ $words != *nohugeiomap* ]] || need=0

# load PARAMETERS: loads the module. Its load succeeds only if every case passed. Prints the
# module's messages, and stores them in $said.
load() {
	local status=0
	on g1 "dmesg -C; insmod /root/window_test.ko phys=$RIG_BASE size=$RIG_SIZE $*" || status=$?
	said=$(on g1 "dmesg | grep -o 'window_test: .*'")
	echo "$said"
	return "$status"
}

load need_512g=$need
checks=$(sed -nE 's/^window_test: ([0-9]+) checks, 0 failed$/\1/p' <<<"$said")
on g1 'rmmod window_test'

echo "the next runs make no flushes, and must fail"
if load no_flush=1 only=removal || load no_flush=1 only=cycles; then
	echo "the test without flushes found no stale translation" >&2
	exit 1
fi
echo "windows: the test passed, and failed without flushes"
echo "$checks checks"
