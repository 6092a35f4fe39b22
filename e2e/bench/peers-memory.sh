#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section memory: the memory that all guests use in addition after they have read the
# same file, by read() or by a mapping. The file itself exists once, at its server. Prints
#
#   memory SYSTEM HOW GUESTS FILE-KIB CACHED-KIB USED-KIB
#
# HOW is read, map or refused. CACHED-KIB is the increase of the page caches of all guests,
# including the server. USED-KIB is the increase of MemTotal - MemFree, which other programs also
# change. The file is as large as the guests' caches allow. StargateFS uses no cache, so its file
# has 1 GiB.
#
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

cached_mib=${SG_MIB:-$(scaled 32 64 256)} large_mib=$(scaled 128 1024 1024)
order=(stargatefs 9p 9p-loose virtiofs virtiofs-auto nfs smb)
smb_cache=strict # the usual mount option of Samba's client
export smb_cache

# memory_now: prints "CACHED USED", the sums over all guests in KiB.
memory_now() {
	local guest
	for guest in "${guests[@]}"; do
		on "$guest" 'cat /proc/meminfo' </dev/null
	done | awk '
		$1 == "Cached:" || $1 == "Buffers:" { cached += $2 }
		$1 == "MemTotal:" { used += $2 }
		$1 == "MemFree:" { used -= $2 }
		END { print cached, used }'
}

forget() {
	local guest
	for guest in "${guests[@]}"; do at "$guest" 'sync; echo 3 >/proc/sys/vm/drop_caches; sleep 0.5'; done
}

# Runs each program on other data first, so that the programs are already in memory.
measured() { # SYSTEM HOW
	local before after guest dir=${folder[$1]}
	local -A command=([read]="dd if=$dir/shared of=/dev/null bs=1M status=none"
		[map]="/root/flow map $dir/shared")
	forget
	for guest in "${clients[@]}"; do
		at "$guest" 'dd if=/proc/version of=/dev/null status=none; cat /proc/meminfo >/dev/null
			/root/flow 2>/dev/null || true'
	done
	memory_now >/dev/null
	before=$(memory_now)
	for guest in "${clients[@]}"; do
		on "$guest" "${command[$2]} >/dev/null" </dev/null >&2 || {
			echo "not $1 $2 $guest refuses"
			return 0
		}
	done
	after=$(memory_now)
	awk -v before="$before" -v after="$after" -v what="memory $1 $2 ${#clients[@]} $((mib * 1024))" 'BEGIN {
		split(before, b)
		split(after, a)
		printf "%s %d %d\n", what, a[1] - b[1], a[2] - b[2]
	}'
}

flow_everywhere "${order[@]}"
load
for system in "${order[@]}"; do
	step "$system" >&2
	mib=$cached_mib
	case $system in
	nfs | smb) at "$server" "head -c ${mib}M /dev/urandom >/mnt/ext4/bench-$system/shared; sync" ;;
	stargatefs)
		mib=$large_mib
		at g1 "head -c 1M /dev/urandom >/root/piece &&
			for i in \$(seq $mib); do cat /root/piece; done >${folder[$system]}/shared && rm /root/piece"
		;;
	*) head -c "${mib}M" /dev/urandom >"$RIG_SHARES/$system/bench/shared" ;;
	esac
	for how in read map; do measured "$system" "$how"; done
	case $system in
	nfs | smb) at "$server" "rm /mnt/ext4/bench-$system/shared" ;;
	*) at g1 "rm ${folder[$system]}/shared" ;;
	esac
done
load
leave
