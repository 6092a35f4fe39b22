#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, sections fio and fio-6.1: P1 5.1 and 5.2. One guest mounts all systems, and the other
# guest serves NFS and Samba. The block sizes are every second size of P1: 1 KiB to 2 MiB with one
# thread, and 128 KiB to 2 MiB with two and four threads. More threads and larger blocks are not in
# P1. Prints one line a round:
#
#   fio SYSTEM LOAD BLOCK JOBS KIB-PER-SECOND P50 P99 P99.9     percentiles of a call, in us
#
# The systems words and memcpy are no file systems: fio's reads and writes only copy in its own
# memory (e2e/programs/onlycopy.c). words copies by words, as kernels do, and memcpy as the C
# library does. Both make no system call, although every real file system needs one. 9p-loose and
# virtiofs-auto use their page cache. With all other systems, fio bypasses page caches (O_DIRECT),
# because StargateFS has none.
#
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

ms=${SG_MS:-$(scaled 100 150 1000)} rounds=${SG_ROUNDS:-$(scaled 1 3 7)} mib=${SG_MIB:-16}
budget=${SG_BUDGET:-1500} # in seconds: a round begins only if it can end within this time
read -ra jobs <<<"${SG_JOBS:-$(scaled '1 4' '1 2 4 8' '1 2 4 8')}"
sizes_of_one=(1k 4k 16k 64k 256k 1m 8m)
sizes_of_several=(128k 512k 2m)
loads=(read write randread randwrite)
read -ra order <<<"${SG_SYSTEMS:-stargatefs words memcpy 9p 9p-loose virtiofs virtiofs-auto nfs smb \
	virtio-blk ext4-dax tmpfs nfs-loop smb-loop}"

# job_file SIZE...: prints a job file with all loads of these sizes.
job_file() {
	local size one
	printf '[global]\nioengine=psync\nthread=1\ndirect=${DIRECT}\nsize=%dM\n' "$mib"
	printf 'time_based=1\nruntime=%dms\nfilename_format=f.$jobnum\noverwrite=1\n' "$ms"
	printf 'fallocate=none\nrandrepeat=1\ngroup_reporting=1\nnorandommap=1\ninvalidate=0\n'
	for size; do
		for one in "${loads[@]}"; do
			printf '[%s-%s]\nrw=%s\nbs=%s\nstonewall\nnew_group\n' "$one" "$size" "$one" "$size"
		done
	done
}

# one SYSTEM JOBS: runs all loads once.
one() {
	local direct=1 before='' file=several
	case $1 in
	words | memcpy)
		direct=0 before="ONLYCOPY=$1 ONLYCOPY_MIB=$mib LD_PRELOAD=/root/onlycopy.so"
		;;
	9p-loose | virtiofs-auto) direct=0 ;;
	esac
	[[ $2 -gt 1 ]] || file=one
	on g1 "cd ${folder[$1]} && DIRECT=$direct $before \
		fio --output-format=terse --numjobs=$2 /root/$file.fio" </dev/null >"$work/said" 2>&1 ||
		fail "fio in $1: $(tail -n 5 "$work/said")"
	awk -v system_="$1" -v jobs="$2" -f "$(dirname "$0")/peers-fio.awk" "$work/said" ||
		fail "fio in $1 said: $(tail -n 5 "$work/said")"
}

[[ " ${order[*]} " != *" nfs "* ]] || serve nfs smb
prepare g1 "${order[@]}"
job_file "${sizes_of_one[@]}" | on g1 'cat >/root/one.fio'
job_file "${sizes_of_several[@]}" | on g1 'cat >/root/several.fio'
gcc -shared -fPIC -O2 -Wall -Wextra -Werror -o "$work/onlycopy.so" \
	"$root/e2e/programs/onlycopy.c" || fail "onlycopy.c does not compile"
put "$work/onlycopy.so" /root/onlycopy.so

step "files" >&2
for system in "${order[@]}"; do
	at g1 "cd ${folder[$system]} && for j in \$(seq 0 $((jobs[-1] - 1))); do
		dd if=/dev/zero of=f.\$j bs=1M count=$mib conv=notrunc status=none; done; sync -f ."
done
load
begun=$EPOCHSECONDS
for ((round = 1; round <= rounds; round++)); do
	round_begun=$EPOCHSECONDS
	for n in "${jobs[@]}"; do
		step "round $round, $n at once" >&2
		for system in "${order[@]}"; do one "$system" "$n"; done
	done
	left=$((budget - (EPOCHSECONDS - begun)))
	[[ $left -ge $((EPOCHSECONDS - round_begun)) ]] || break # no time for another round
done
load
leave
