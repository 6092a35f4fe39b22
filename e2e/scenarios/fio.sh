#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The program fio writes by plain calls, direct I/O, vectors, io_uring and mappings. It verifies a
# checksum of every written block during each job, and a second time at the job's end. Several jobs
# run at the same time.
#
# rig: --size 256M --mem 768M --cpus 2 --pkgs "fio"
# maps: inside
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

size=$(scaled 2M 6M 24M)
rounds=$(scaled 1 1 3)
on g1 'cat >/root/verify.fio' <<EOT
[global]
directory=/mnt/sg/fio
size=$size
loops=$rounds
verify=crc32c
verify_fatal=1
verify_backlog=64
do_verify=1
randrepeat=1
randseed=$(seed)
group_reporting
fallocate=none

[calls]
ioengine=psync
rw=randrw
bsrange=1k-64k
bs_unaligned
numjobs=2
norandommap
verify_backlog=0

[direct]
ioengine=psync
rw=randwrite
bs=4k
direct=1

[vectors]
ioengine=pvsync2
rw=write
bs=128k

[ring]
ioengine=io_uring
rw=randrw
bs=16k
iodepth=8

[mapping]
ioengine=mmap
rw=randrw
bs=4k

[synced]
ioengine=sync
rw=randwrite
bs=8k
fsync=16
EOT

verified() {
	local map=$1 said
	said=$(on g1 'mkdir /mnt/sg/fio && fio --output-format=terse /root/verify.fio 2>&1' \
		</dev/null) || fail "map=$map: fio failed: $said"
	! grep -iE 'verify:|error|bad magic' <<<"$said" || fail "map=$map: fio reports: $said"
	passed "map=$map: in seven jobs, fio read every block as it was written"
	holds "map=$map: fio's files can be removed" 'rm -r /mnt/sg/fio'
}

each_map verified
finish
