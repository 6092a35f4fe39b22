#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/targets runs this inside the rig, with a range and without a volume. The compared
# systems use the same memory, one after the other. Prints "SYSTEM OPERATION INSTRUCTIONS SPREAD".
# For first touches, INSTRUCTIONS is the count of a whole file. For look-ups, it is that of one
# name.
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

repeats=${SG_REPEATS:-7}
mib=${SG_MIB:-1024} names=${SG_NAMES:-1000000}
operations=(read-4k read-64k read-1m read-4m write-4k write-16k write-64k write-1m write-4m
	append-4k append-1m append-4k-fsync open-close stat lookup create create-fsync unlink
	mkdir rename list-100 map-read map-write)
threads=(read-4k-by-1 read-4k-by-4 write-4k-by-1 write-4k-by-4)
work=$(mktemp -d /dev/shm/targets.XXXXXX)
trap 'rm -rf "$work"' EXIT

in_guest() { on g1 "$1" </dev/null || fail "$2"; }

# count SYSTEM FOLDER OPERATION...
count() {
	local said
	said=$(on g1 "/root/cost $2 $repeats ${*:3}" </dev/null 2>&1) || fail "cost in $1: $said"
	printf '%s\n' "$1 ${said//$'\n'/$'\n'$1 }"
}

# touches SYSTEM FOLDER: counts the first accesses to all pages of a mapped file.
touches() {
	local how said
	in_guest "/root/touch make $2/large $mib" "a file of $mib MiB in $1" >&2
	for how in read read-4k write write-4k; do
		said=$(on g1 "echo 3 >/proc/sys/vm/drop_caches; /root/touch $how $2/large $mib" </dev/null) ||
			fail "touch $how in $1: $said"
		echo "$1 touch-$how ${said#* } 0"
	done
	in_guest "rm $2/large && truncate -s ${mib}M $2/hole" "a hole in $1"
	said=$(on g1 "/root/touch read $2/hole $mib" </dev/null) || fail "touch of a hole in $1: $said"
	echo "$1 touch-hole ${said#* } 0"
	in_guest "rm $2/hole" rm
}

device='for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done; test -b /dev/pmem0'
project=$(cd "$(dirname "$0")/../.." && pwd)
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$project" build/tests/machine >&2 ||
	fail "tests/machine does not build"
program cost touch
in_guest "$device" "no device"

step "memcpy, tmpfs" >&2
in_guest 'mkdir -p /mnt/tmpfs /mnt/peer /mnt/sg && mount -t tmpfs tmpfs /mnt/tmpfs' "tmpfs"
count memcpy /mnt/tmpfs {memcpy,libc}-{4k,1m,4m}
count tmpfs /mnt/tmpfs "${operations[@]}" "${threads[@]}"

declare -A mkfs=([ext4-dax]='mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0'
	[xfs-dax]='mkfs.xfs -q -f -m reflink=0')
for peer in ext4-dax xfs-dax; do
	step "$peer" >&2
	in_guest "${mkfs[$peer]} /dev/pmem0 >&2 && mount -t ${peer%-dax} -o dax=always /dev/pmem0 /mnt/peer &&
		grep -q ' /mnt/peer .*dax=always' /proc/mounts" "no $peer"
	count "$peer" /mnt/peer "${operations[@]}" "${threads[@]}"
	touches "$peer" /mnt/peer
	in_guest 'umount /mnt/peer' umount
done

# --- StargateFS ----------------------------------------------------------------------------------

step "StargateFS" >&2
head -c 4M /dev/zero | dd of="$RIG_RANGE" bs=1M conv=notrunc status=none # clears old signatures
"$SG_TOOLS/mkfs.stargatefs" --quiet -f --phys "$RIG_BASE" "$RIG_RANGE" || fail mkfs
compile resuper
"$compiled/resuper" "$RIG_RANGE" hash_seed 0x5eed5eed5eed5eed || fail resuper

# A program on the host fills the directories by the same engine. In the guest it would take longer.
for n in 1000 "$names"; do
	mkdir "$work/$n"
	(cd "$work/$n" && seq -f 'name-%09.0f' 0 $((n - 1)) | xargs touch)
	"$SG_TOOLS/stargatectl" put -r "$RIG_RANGE" "$work/$n" / >&2 || fail "put of $n names"
	rm -rf "${work:?}/$n"
done

# lookups N: counts look-ups of 200 names that the kernel has not cached. The names are spread over
# a directory with N names.
lookups() {
	local said
	said=$(on g1 "cd /mnt/sg/$1 && /root/names $1" </dev/null) || fail "names: $said"
	printf '%s\n' "stargatefs ${said//$'\n'/$'\n'stargatefs }"
}

program names
for map in walk splice shadow; do
	in_guest "mount -t stargatefs -o map=$map /dev/pmem0 /mnt/sg && grep -q 'map=$map' /proc/mounts" \
		"map=$map"
	count "$map" /mnt/sg "${operations[@]}"
	[[ $map != walk ]] || count "$map" /mnt/sg "${threads[@]}"
	[[ $map != walk ]] || touches "$map" /mnt/sg
	if [[ $map == walk ]]; then
		lookups 1000
		lookups "$names"
	fi
	in_guest 'umount /mnt/sg' umount
done

step "StargateFS, with a second system on the volume" >&2
in_guest 'mount -t stargatefs -o map=walk /dev/pmem0 /mnt/sg' mount
coproc second { "$SG_TOOLS/../tests/machine"; }
say() {
	local answer
	echo "$*" >&"${second[1]}"
	read -r -t 60 -u "${second[0]}" answer || fail "the second system does not answer"
	[[ $answer == ok ]] || fail "the second system: $*: $answer"
}
say join "$RIG_RANGE" 11111111-2222-3333-4444-555555555501 1
"$SG_TOOLS/stargatectl" systems "$RIG_RANGE" >&2
count two /mnt/sg stat open-close read-4k
say leave 0
in_guest 'umount /mnt/sg' umount
