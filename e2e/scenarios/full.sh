#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A volume without a free page: what asks for space is refused with ENOSPC and nothing else happens,
# what needs none goes on, deleting works, and all space is back afterwards. Filled with large
# files, with small ones, with directories; more than once, because leaks show the second time.
#
# rig: --size 32M
# maps: inside
# limit: 600
# shellcheck disable=SC2016 # what is quoted is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

free_pages() { on g1 'stat -f -c %f /mnt/sg'; }

# fill COMMAND: repeat it in the VM with $n counting up until it fails, which must be by ENOSPC.
fill() {
	on g1 "cd /mnt/sg && mkdir -p full && cd full && n=0
		while n=\$((n + 1)); do
			said=\$( { $1; } 2>&1) && continue
			case \$said in
			*'No space left on device'*) echo \$n; exit 0 ;;
			*) echo \"\$said\" >&2; exit 1 ;;
			esac
		done" </dev/null || fail "filling the volume with: $1"
}

round() {
	local what=$1 command=$2 before=$3 count after
	count=$(fill "$command")
	passed "$what: ENOSPC at number $count, $(free_pages) pages free"
	holds "$what: names can be looked up" 'ls -R /mnt/sg/full >/dev/null'
	holds "$what: bytes in place can be written" \
		'head -c 8192 /dev/zero | dd of=/mnt/sg/keep bs=4096 conv=notrunc status=none'
	holds "$what: a rename is possible" \
		'mv /mnt/sg/keep /mnt/sg/kept && mv /mnt/sg/kept /mnt/sg/keep'
	holds "$what: everything can be deleted" 'rm -rf /mnt/sg/full'
	after=$(free_pages)
	same "$what: all space is back" "$before" "$after"
}

fill_and_empty() {
	local before n
	holds "a file from before" 'head -c 8192 /dev/urandom >/mnt/sg/keep && sync'
	# The pages that hold inodes stay with the volume: let it have those first.
	fill 'echo x >small$n' >/dev/null
	holds "the first filling can be deleted" 'rm -rf /mnt/sg/full'
	before=$(free_pages)
	for n in 1 2; do
		round "large files, $n" 'dd if=/dev/zero of=large$n bs=1M count=3' "$before"
		round "small files, $n" 'echo x >small$n' "$before"
	done
	round "directories" 'mkdir dir$n && >dir$n/inside' "$before"
	round "one growing file" 'head -c 100000 /dev/zero >>growing' "$before"
	round "allocations" 'fallocate -l 2500000 allocated$n' "$before"
	holds "a refused allocation leaves the file as it was" \
		'cd /mnt/sg && >f && ! fallocate -l 1G f 2>/dev/null && ! [ -s f ] && rm f'
}

each_map fill_and_empty
finish
