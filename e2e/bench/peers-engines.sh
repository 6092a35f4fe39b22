#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make bench, section engines: the loads of section fio with one thread, by two other engines of
# fio: mmap uses a mapping, and io_uring has eight reads or writes in progress. Prints
#
#   engine SYSTEM ENGINE LOAD BLOCK KIB-PER-SECOND      one line a round
#   not SYSTEM ENGINE REASON...                         the engine fails on this system
#
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/bench/peers-common.sh
source "$(dirname "$0")/peers-common.sh"

ms=${SG_MS:-$(scaled 100 200 1000)} rounds=${SG_ROUNDS:-$(scaled 1 3 7)} mib=${SG_MIB:-16}
order=(stargatefs 9p 9p-loose virtiofs virtiofs-auto nfs smb virtio-blk ext4-dax tmpfs)
engines=(mmap io_uring)
sizes=(4k 1m)
loads=(read write randread randwrite)

job_file() {
	local size one
	printf '[global]\nioengine=${ENGINE}\nthread=1\ndirect=${DIRECT}\nsize=%dM\niodepth=8\n' "$mib"
	printf 'time_based=1\nruntime=%dms\nfilename_format=f.$jobnum\noverwrite=1\n' "$ms"
	printf 'fallocate=none\nrandrepeat=1\nnorandommap=1\ninvalidate=0\n'
	for size in "${sizes[@]}"; do
		for one in "${loads[@]}"; do
			printf '[%s-%s]\nrw=%s\nbs=%s\nstonewall\nnew_group\n' "$one" "$size" "$one" "$size"
		done
	done
}

one() { # SYSTEM ENGINE DIRECTION: a system may refuse one of the directions
	local direct=1 jobs=''
	case $1-$2 in *-mmap | 9p-loose-* | virtiofs-auto-*) direct=0 ;; esac
	for size in "${sizes[@]}"; do jobs+=" --section=$3-$size --section=rand$3-$size"; done
	if on g1 "cd ${folder[$1]} && ENGINE=$2 DIRECT=$direct \
		fio --output-format=terse$jobs /root/engines.fio" </dev/null >"$work/said" 2>&1; then
		awk -v system_="$1" -v jobs=1 -f "$(dirname "$0")/peers-fio.awk" "$work/said" |
			awk -v engine="$2" '{ print "engine", $2, engine, $3, $4, $6 }' || fail "fio in $1"
	else
		echo "not $1 $2-$3 $(grep -m 1 -i error "$work/said" | sed 's/pid=[0-9]*, //' | cut -c -200)"
	fi
}

serve nfs smb
prepare g1 "${order[@]}"
job_file | on g1 'cat >/root/engines.fio'
for system in "${order[@]}"; do
	at g1 "cd ${folder[$system]} &&
		dd if=/dev/zero of=f.0 bs=1M count=$mib conv=notrunc status=none; sync -f ."
done
load
for ((round = 1; round <= rounds; round++)); do
	for engine in "${engines[@]}"; do
		step "round $round, $engine" >&2
		for system in "${order[@]}"; do
			for way in read write; do one "$system" "$engine" "$way"; done
		done
	done
done
load
leave
