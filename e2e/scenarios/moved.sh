#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A process stores to a page through a mapping. Then this or another system collapses or inserts a
# range before that page, which moves the page in the file. fsync() must write the page back at its
# new offset. A probe in the kernel records the pages that fsync() writes back.
#
# rig: --guests 2 --size 64M
# maps: walk
# kernels: 6.12
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program flushes
pages=64 at=40 # pages of the file, and the page to which the process stores
holds "the kernel traces each write-back" 'mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing
	cd /sys/kernel/tracing && echo "p:flushed stargatefs:sg_flush first=%dx:u64 pages=%cx:u64" >kprobe_events &&
	echo 1 >events/kprobes/flushed/enable'

# flushed: prints a line `FIRST PAGES` for each range that was written back since the last call.
flushed() {
	on g1 'cd /sys/kernel/tracing && sed -n "s/.*first=\([0-9]*\) pages=\([0-9]*\).*/\1 \2/p" trace
		echo >trace' </dev/null
}
# covers PAGE: succeeds if one of the ranges on standard input contains the page.
covers() { awk -v page="$1" '$1 <= page && page - $1 < $2 { found = 1 } END { exit !found }'; }

# moves WHERE PAGE COMMAND: runs COMMAND in the system WHERE, which moves the stored page to PAGE.
# Checks that fsync() writes PAGE back.
moves() {
	local where=$1 page=$2 command=$3
	on g1 "rm -f /tmp/go /tmp/flushes; head -c $((pages * 4096)) /dev/urandom >/mnt/sg/file
		/root/flushes store /mnt/sg/file $at /tmp/go >/tmp/flushes 2>&1 </dev/null &
		for try in \$(seq 100); do grep -q stored /tmp/flushes && exit 0; sleep 0.1; done; exit 1" </dev/null ||
		fail "nothing was stored"
	on "$where" "$command" </dev/null || fail "$where: $command"
	flushed >/dev/null
	on g1 'touch /tmp/go
		for try in $(seq 100); do grep -q again /tmp/flushes && exit 0; sleep 0.1; done
		cat /tmp/flushes; exit 1' </dev/null || fail "fsync failed"
	flushed >"$RIG_DIR/flushed"
	covers "$page" <"$RIG_DIR/flushed" ||
		fail "$where: $command: page $page was not written back: $(xargs <"$RIG_DIR/flushed")"
	passed "$where: $command: page $page is written back"
	# The second fsync() writes back only pages with stores since the first one, and not the
	# complete file.
	[[ $page = "$at" ]] ||
		same "the second fsync() writes back only the page with a new store" "0 1" "$(tail -n 1 "$RIG_DIR/flushed")"
	on g1 'rm /mnt/sg/file' </dev/null
}

step "pages that this system moves"
moves g1 "$at" 'true # no page moves'
moves g1 $((at - 16)) '/root/flushes collapse /mnt/sg/file 65536'
moves g1 $((at + 16)) '/root/flushes insert /mnt/sg/file 65536'

step "pages that another system moves"
moves g2 $((at - 16)) 'fallocate -c -o 0 -l 65536 /mnt/sg/file'
moves g2 $((at + 16)) 'fallocate -i -o 0 -l 65536 /mnt/sg/file'

step "sync writes back a moved page"
on g1 "rm -f /tmp/go /tmp/flushes; head -c $((pages * 4096)) /dev/urandom >/mnt/sg/file
	/root/flushes store /mnt/sg/file $at /tmp/go >/tmp/flushes 2>&1 </dev/null &
	for try in \$(seq 100); do grep -q stored /tmp/flushes && exit 0; sleep 0.1; done; exit 1" </dev/null ||
	fail "nothing was stored"
on g2 'fallocate -c -o 0 -l 65536 /mnt/sg/file' </dev/null
flushed >/dev/null
holds "sync succeeds" sync
flushed | covers $((at - 16)) || fail "page $((at - 16)) was not written back"
passed "sync writes back the moved page $((at - 16))"
finish
