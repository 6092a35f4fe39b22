#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume without a free page. An operation that needs space fails with ENOSPC and changes nothing.
# Other operations work. All files can be deleted, and then all space is free. Large files, small
# files and directories fill the volume. Each of them fills it at least twice, because a leak shows
# only the second time.
#
# rig: --size 32M
# maps: inside
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program fill

free_pages() { on g1 'stat -f -c %f /mnt/sg' </dev/null; }

fill() {
	on g1 "mkdir /mnt/sg/full && /root/fill $1 /mnt/sg/full" </dev/null ||
		fail "the volume cannot be filled: $1"
}

round() {
	local what=$1 before=$2 count after
	count=$(fill "$what")
	passed "$what: ENOSPC after $count; $(free_pages) pages are free"
	holds "$what: names can be looked up" 'ls -R /mnt/sg/full >/dev/null'
	holds "$what: existing bytes can be overwritten" \
		'head -c 8192 /dev/zero | dd of=/mnt/sg/keep bs=4096 conv=notrunc status=none'
	holds "$what: a rename is possible" \
		'mv /mnt/sg/keep /mnt/sg/kept && mv /mnt/sg/kept /mnt/sg/keep'
	holds "$what: everything can be deleted" 'rm -rf /mnt/sg/full'
	after=$(free_pages)
	same "$what: after the deletion all space is free" "$before" "$after"
}

fill_and_empty() {
	local before kind
	holds "a file is made before the volume is full" 'head -c 8192 /dev/urandom >/mnt/sg/keep && sync'
	# Pages with inodes are never freed: allocate them before the measurement.
	for kind in small directories; do
		fill "$kind" >/dev/null
		holds "a volume full of $kind can be emptied" 'rm -rf /mnt/sg/full'
	done
	before=$(free_pages)
	for kind in large small directories append large allocate small; do
		round "$kind" "$before"
	done
	holds "a refused allocation does not change the file" \
		'cd /mnt/sg && >f && ! fallocate -l 1G f 2>/dev/null && ! [ -s f ] && rm f'
}

each_map fill_and_empty
finish
