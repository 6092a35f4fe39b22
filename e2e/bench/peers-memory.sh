#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section memory: the memory in use after several guests have read the same file, by
# read() or by a mapping. The file itself exists once, at its server. Prints
#
#   memory SYSTEM HOW GUESTS FILE-KIB CACHED-KIB USED-KIB
#
# the increase in all guests, including the server: in page caches, and in total (MemTotal -
# MemFree, which other programs also change). HOW: read, map, refused. The file is as large as the
# guests' caches can hold. StargateFS uses no cache, and its file has 1 GiB.
#
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

cached_mib=${SG_MIB:-$(scaled 32 64 256)} large_mib=$(scaled 128 1024 1024)
order=(stargatefs 9p 9p-loose virtiofs virtiofs-auto nfs smb)
smb_cache=strict # the usual mount option of that system
export smb_cache

# now: prints "CACHED USED" in KiB, summed over all guests.
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

# Reads the programs of the measurement into memory before it begins.
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
