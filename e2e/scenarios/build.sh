#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A real program compiled on the volume, in parallel, by a stock compiler: this project's own tools.
# What comes out must be the same bytes as from a build of the same sources on tmpfs, and work.
#
# rig: --size 256M --mem 1G --cpus 2 --pkgs "gcc libc6-dev make"
# maps: inside
# limit: 1800
# shellcheck disable=SC2016 # what is quoted is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# The path is part of debug information: both builds see their sources under the same one.
build='rm -rf /src && mkdir /src && mount --bind "$1" /src && cp -r /root/sources/* /src &&
	make -C /src -j2 core tools CFLAGS=-O0 && cp -r /src/build/tools /tmp/out &&
	umount /src && rmdir /src'

compile() {
	on g1 "rm -rf /tmp/out; mkdir -p $1; bash -c '$build' build $1" </dev/null >"$log" 2>&1 ||
		fail "the build in $1: $(tail -n 20 "$log")"
	on g1 'cd /tmp/out && sha256sum mkfs.stargatefs fsck.stargatefs stargatectl' </dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Minutes under emulation: each kernel builds with one map mode, and with all in a long run.
case ${SG_TEST_SCALE:-normal}:${SG_KERNEL:-} in
long:*) ;;
*:6.1) SG_MAPS=shadow ;;
*:7.2) SG_MAPS=walk ;;
*) SG_MAPS=splice ;;
esac

tar -C "$(dirname "$0")/../.." -c Makefile versions.env mk kernel/core kernel/tools |
	on g1 'mkdir /root/sources && tar -C /root/sources -x'
step "the same build on tmpfs"
expected=$(compile /run/build)

compiled() {
	same "map=$1: the programs are the same bytes" "$expected" "$(compile /mnt/sg/build)"
	holds "map=$1: they run from there" 'cd /mnt/sg/build/build/tools &&
		./mkfs.stargatefs --quiet --phys 16G --size 16M --sparse /mnt/sg/inner &&
		./fsck.stargatefs -n /mnt/sg/inner'
	holds "map=$1: all can be removed" 'rm -r /mnt/sg/build /mnt/sg/inner'
}

each_map compiled
finish
