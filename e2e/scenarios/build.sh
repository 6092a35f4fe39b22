#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A stock compiler builds this project's tools on the volume, in parallel. The tools must work, make
# must find them up to date, and each map mode must read the same bytes.
#
# rig: --size 256M --mem 1G --cpus 2 --pkgs "gcc libc6-dev make"
# maps: inside
# limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# A build takes minutes under emulation. Normally each kernel builds in one map mode. A long run
# builds in all of them and compares with a build on tmpfs.
case ${SG_TEST_SCALE:-normal}:${SG_KERNEL:-} in
long:*) ;;
*:6.1) SG_MAPS=shadow ;;
*:7.2) SG_MAPS=walk ;;
*) SG_MAPS=splice ;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
make='make -C /src -j2 core tools CFLAGS=-O0'

# compile DIR: builds with the sources mounted at /src. The path must be the same for each DIR,
# because debug information contains it.
compile() {
	on g1 "mkdir -p $1 /src && mount --bind $1 /src && cp -r /root/sources/* /src && $make" \
		</dev/null >"$log" 2>&1 || fail "the build in $1: $(tail -n 20 "$log")"
}

sums() { on g1 'cd /src/build && find . -type f | sort | xargs sha256sum' </dev/null; }

tar -C "$(dirname "$0")/../.." -c Makefile versions.env mk kernel/core kernel/lib kernel/tools |
	on g1 'mkdir /root/sources && tar -C /root/sources -x'
if [[ ${SG_TEST_SCALE:-normal} == long ]]; then
	step "a build on tmpfs, for comparison"
	compile /run/build
	expected=$(sums)
	holds "/src is unmounted" 'umount /src'
fi

compiled() {
	local map=$1 first other
	compile /mnt/sg/build
	passed "map=$map: make compiled $(grep -c ' CC ' "$log") files, two at a time"
	first=$(sums)
	[[ -z ${expected:-} ]] || same "map=$map: the build has the same bytes as the build on tmpfs" "$expected" "$first"
	for other in walk splice shadow; do
		holds "map=$map: the mount changes to map=$other" "mount -o remount,map=$other /mnt/sg"
		[[ $(sums) == "$first" ]] || fail "map=$map: after the change to map=$other the built files have other bytes"
	done
	passed "map=$map: the built files have the same bytes in every map mode"
	holds "map=$map: make finds nothing to do" "! $make | grep -E ' (CC|AR|LINK) '"
	holds "map=$map: the built programs work" 'cd /src/build/tools &&
		./mkfs.stargatefs --quiet --phys 16G --size 16M --sparse /mnt/sg/inner &&
		./fsck.stargatefs -n /mnt/sg/inner && ./stargatectl info /mnt/sg/inner'
	holds "map=$map: the build can be removed" 'umount /src && rm -r /mnt/sg/build /mnt/sg/inner'
}

each_map compiled
finish
