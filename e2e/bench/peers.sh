#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Run by e2e/bench/peers inside of the rig. Prints
#
#   fio SYSTEM LOAD JOBS KIB-PER-SECOND P50 P99.9     one line a round; latencies of a call in us
#   cpu SYSTEM JOBS KIB GUEST-MS HOST-MS              processor time of a round's loads; host: QEMU
#                                                     (guests among it) and virtiofsd
#   hand SYSTEM BLOCK BYTES NANOSECONDS               g1 writes, g2 reads, block after block
#   load NUMBER                                       of the machine, before and after
#
# NFS and Samba serve over the loopback of the guest that uses them: no network card, no second
# kernel. That is in their favour. virtio-blk: ext4 on the guest's disk. All with O_DIRECT, so that
# no page cache answers.
#
# shellcheck disable=SC2016 # what is quoted is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

ms=${SG_MS:-300} rounds=${SG_ROUNDS:-3} mib=${SG_MIB:-16} turns=${SG_TURNS:-1000}
read -ra jobs <<<"${SG_JOBS:-1 4}"
loads=(read write randread randwrite)
sizes=(4k 64k 1m)
here=$(dirname "$0")
root=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

declare -A folder=([stargatefs]=/mnt/sg/bench [9p]=/mnt/9p/bench [virtiofs]=/mnt/virtiofs/bench
	[virtiofs-auto]=/mnt/virtiofs-auto/bench [nfs]=/mnt/nfs/bench [smb]=/mnt/smb/bench
	[virtio-blk]=/var/tmp/bench [ext4-dax]=/mnt/ext4/bench-local [tmpfs]=/mnt/tmpfs/bench)
order=(stargatefs 9p virtiofs virtiofs-auto nfs smb virtio-blk ext4-dax tmpfs)

in_guest() { on g1 "$1" </dev/null >&2 || fail "$2"; }
load() { echo "load $(cut -d ' ' -f 1 /proc/loadavg)"; }

# --- servers --------------------------------------------------------------------------------------

in_guest 'modprobe nd_e820; for try in $(seq 500); do [ -b /dev/pmem1 ] && break; sleep 0.02; done
	mkfs.ext4 -q -b 4096 /dev/pmem1 && mkdir -p /mnt/ext4 /mnt/tmpfs /mnt/nfs /mnt/smb &&
	mount -o dax=always /dev/pmem1 /mnt/ext4 && mount -t tmpfs tmpfs /mnt/tmpfs &&
	chmod 777 /mnt/ext4' \
	"ext4 with DAX"
in_guest 'modprobe nfsd && mkdir -p /run/rpc_pipefs /var/lib/nfs/nfsdcltrack &&
	{ mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; } &&
	{ mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs; } &&
	rpcbind && nfsdcld && rpc.mountd &&
	exportfs -o rw,async,insecure,no_root_squash,no_subtree_check,fsid=1 127.0.0.1:/mnt/ext4 &&
	rpc.nfsd --grace-time 10 --lease-time 10 8 &&
	mount -t nfs -o vers=4.2,rsize=1048576,wsize=1048576,nconnect=4,noatime \
		127.0.0.1:/mnt/ext4 /mnt/nfs' \
	"NFS"
in_guest 'modprobe cifs; mkdir -p /run/samba /var/lib/samba/private /var/log/samba
	cat >/etc/samba/smb.conf <<END
[global]
	server role = standalone server
	interfaces = lo
	bind interfaces only = yes
	use sendfile = yes
	aio read size = 1
	aio write size = 1
	strict locking = no
	smb encrypt = off
	server signing = disabled
	disable netbios = yes
	load printers = no
[peer]
	path = /mnt/ext4
	writable = yes
END
	printf "peer\npeer\n" | smbpasswd -s -a root && smbd -D && sleep 1 &&
	mount -t cifs -o user=root,pass=peer,vers=3.1.1,cache=none,rsize=4194304 \
		-o wsize=4194304,nosharesock \
		//127.0.0.1/peer /mnt/smb' "Samba"
for system in "${order[@]}"; do in_guest "mkdir -p ${folder[$system]}" "no folder of $system"; done

# --- fio ------------------------------------------------------------------------------------------

{
	printf '[global]\nioengine=psync\nthread=1\ndirect=1\nsize=%dM\ntime_based=1\nruntime=%dms\n' "$mib" "$ms"
	printf 'filename_format=f.$jobnum\noverwrite=1\nfallocate=none\nrandrepeat=1\n'
	printf 'group_reporting=1\nnorandommap=1\ninvalidate=0\n'
	for size in "${sizes[@]}"; do
		for one in "${loads[@]}"; do
			printf '[%s-%s]\nrw=%s\nbs=%s\nstonewall\nnew_group\n' "$one" "$size" "$one" "$size"
		done
	done
} >"$work/loads.fio"
on g1 'cat >/root/loads.fio' <"$work/loads.fio"

# Processor time, in ms, that QEMU, virtiofsd and their like have used: what the rig has started,
# besides this script.
host_ms() {
	local pid sum=0 stat
	for pid in $(pgrep -P "$PPID"); do
		[[ $pid -ne $$ && -r /proc/$pid/stat ]] || continue
		stat=$(<"/proc/$pid/stat") || continue
		# shellcheck disable=SC2086 # fields
		set -- ${stat##*) }
		sum=$((sum + ${12} + ${13}))
	done
	echo $((sum * 1000 / $(getconf CLK_TCK)))
}

# Of g1, and then fio's lines.
guest_ms='awk "/^cpu / { print (\$2 + \$3 + \$4 + \$7 + \$8) * 10; exit }" /proc/stat'

# one SYSTEM JOBS: all loads, once.
one() {
	local before after
	before=$(host_ms)
	on g1 "cd ${folder[$1]} && $guest_ms && fio --output-format=terse --numjobs=$2 /root/loads.fio && $guest_ms" \
		</dev/null >"$work/said" 2>&1 || fail "fio in $1: $(tail -n 5 "$work/said")"
	after=$(host_ms)
	awk -v system_="$1" -v jobs="$2" -v host="$((after - before))" -f "$here/peers-fio.awk" "$work/said" ||
		fail "fio in $1 said: $(tail -n 5 "$work/said")"
}

load
for system in "${order[@]}"; do # files are laid out before anything is measured
	step "$system" >&2
	one "$system" "${jobs[-1]}" >/dev/null
done
for ((round = 1; round <= rounds; round++)); do
	for n in "${jobs[@]}"; do
		step "round $round, $n at once" >&2
		for system in "${order[@]}"; do one "$system" "$n"; done
	done
done

# --- from one system to another -------------------------------------------------------------------

gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/handover" "$root/e2e/programs/handover.c" "$root"/kernel/lib/*.c || fail "handover.c"
for guest in g1 g2; do put "$work/handover" /root/handover "$guest"; done

# hand SYSTEM FOLDER BLOCK COUNT
hand() {
	on g1 "for s in full:0 empty:1; do
			stargate-sem rm handover-\${s%:*} 2>/dev/null || true
			stargate-sem create handover-\${s%:*} --value \${s#*:}
		done; rm -f $2/hand; : >$2/hand" </dev/null >&2 || fail "semaphores"
	on g2 "timeout 200 /root/handover read $2/hand $3 $4" </dev/null >"$work/read" 2>&1 &
	local reader=$!
	on g1 "timeout 200 /root/handover write $2/hand $3 $4" </dev/null >"$work/write" 2>&1 ||
		fail "$1: $(<"$work/write")"
	wait "$reader" || fail "$1: $(<"$work/read")"
	echo "hand $1 $3 $(<"$work/read")"
}

for ((round = 1; round <= rounds; round++)); do
	step "hand-over, round $round" >&2
	for system in stargatefs 9p virtiofs; do
		hand "$system" "${folder[$system]}" 1024 "$turns"
		hand "$system" "${folder[$system]}" 4096 "$turns"
		hand "$system" "${folder[$system]}" 1048576 $((turns / 20))
	done
done
load
in_guest 'umount /mnt/nfs /mnt/smb; rpc.nfsd 0; exportfs -ua; pkill smbd; umount /mnt/ext4 || true' "end"
