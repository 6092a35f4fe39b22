#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/sem runs this inside the rig. Measures processes of several systems. sem-common.sh
# describes the output. "posix" is fcntl(2) over NFS. g1 runs the NFS server, and the lock server
# (TCP).
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/bench/sem-common.sh
source "$(dirname "$0")/sem-common.sh"

bench_programs
at g1 'modprobe nfsd && mkdir -p /srv/nfs /run/rpc_pipefs /var/lib/nfs/nfsdcltrack &&
	mount -t tmpfs tmpfs /srv/nfs &&
	{ mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; } &&
	{ mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs; } &&
	rpcbind && { nfsdcld || true; } && rpc.mountd &&
	exportfs -o rw,async,insecure,no_root_squash,no_subtree_check,fsid=0 "10.115.103.0/24:/srv/nfs" &&
	rpc.nfsd --grace-time 10 --lease-time 10 4' >&2
on g1 'exec /root/sembench serve 7001' </dev/null >&2 &
for guest in $RIG_GUESTS; do
	at "$guest" 'mkdir -p /nfs && mount -t nfs -o vers=4.2 10.115.103.1:/ /nfs' >&2
done
at g2 'timeout 60 sh -c "until /root/sembench cost posix /nfs/grace 1 2>/dev/null; do sleep 1; done"' >&2
load
for kind in "${among[@]}"; do
	rate several "$kind" 2 g1 g2
	rate several "$kind" 4 g1 g2 g3 g4
	rate several "$kind" 8 g1 g2 g3 g4
	pair several "$kind" g2 g3
done
load
at g1 'pkill sembench || true' >&2
for guest in $RIG_GUESTS; do at "$guest" 'umount /nfs' >&2; done
at g1 'rpc.nfsd 0; exportfs -ua; umount /srv/nfs; pkill rpc.mountd; true' >&2
