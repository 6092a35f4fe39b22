# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of the sections of e2e/bench/peers. The last guest serves NFS and Samba over an
# Ethernet that all guests share, from ext4 on a DAX device in its own memory. The host serves 9p
# and virtiofs from its memory. With nfs-loop and smb-loop, the last guest is also the client, over
# its loopback. Every section prints its own lines, and these lines:
#
#   load NUMBER                   the machine's load, before and after the section
#   not SYSTEM WHAT REASON...     the system does not support this measurement
#   with PACKAGE VERSION...       the versions of the other systems
#
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/scenario.sh"

read -ra guests <<<"$RIG_GUESTS"
server=${guests[-1]}
# shellcheck disable=SC2034 # of the sections
clients=("${guests[@]:0:${#guests[@]}-1}")
address=10.115.103.${#guests[@]}
# shellcheck disable=SC2034 # of the sections
root=$(dirname "${BASH_SOURCE[0]}")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2034 # of the sections
declare -A folder=([stargatefs]=/mnt/sg/bench [memcpy]=/mnt/sg/bench [words]=/mnt/sg/bench
	[9p]=/mnt/9p/bench [9p-loose]=/mnt/9p-loose/bench [virtiofs]=/mnt/virtiofs/bench
	[virtiofs-auto]=/mnt/virtiofs-auto/bench [nfs]=/mnt/nfs/bench-nfs [smb]=/mnt/smb/bench-smb
	[nfs-loop]=/mnt/nfs-loop/bench-nfs-loop [smb-loop]=/mnt/smb-loop/bench-smb-loop
	[virtio-blk]=/var/tmp/bench [ext4-dax]=/mnt/ext4/bench-local [tmpfs]=/mnt/tmpfs/bench)

at() { on "$1" "$2" </dev/null >&2 || fail "$1: ${3:-$2}"; }
load() { echo "load $(cut -d ' ' -f 1 /proc/loadavg)"; }

# --- servers and clients --------------------------------------------------------------------------

ext4_dax() { # GUEST
	at "$1" 'modprobe nd_e820
		for try in $(seq 500); do [ -b /dev/pmem1 ] && break; sleep 0.02; done
		mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/pmem1 &&
		mkdir -p /mnt/ext4 && mount -o dax=always /dev/pmem1 /mnt/ext4 &&
		chmod 777 /mnt/ext4 && grep -q " /mnt/ext4 .*dax=always" /proc/mounts' "ext4 with DAX"
}

# Each guest uses large network frames, because many small frames cost more than a few large ones.
wire() {
	local guest
	for guest in "${guests[@]}"; do at "$guest" "ip link set eth0 mtu ${SG_MTU:-9000}"; done
}

nfs_server() { # [GUEST]
	at "${1:-$server}" 'modprobe nfsd && mkdir -p /run/rpc_pipefs /var/lib/nfs/nfsdcltrack &&
	{ mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; } &&
	{ mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs; } &&
	rpcbind && nfsdcld && rpc.mountd &&
	for whom in 10.115.103.0/24 127.0.0.1; do
		exportfs -o rw,async,insecure,no_root_squash,no_subtree_check,fsid=1 $whom:/mnt/ext4
	done &&
	rpc.nfsd --grace-time 10 --lease-time 10 8' "NFS server"
}

nfs_client() { # GUEST ADDRESS PLACE
	at "$1" "mkdir -p $3 && mount -t nfs \
		-o vers=4.2,rsize=1048576,wsize=1048576,nconnect=4,noatime $2:/mnt/ext4 $3" NFS
}

smb_server() { # [GUEST]
	at "${1:-$server}" 'mkdir -p /run/samba /var/lib/samba/private /var/log/samba
	cat >/etc/samba/smb.conf <<END
[global]
	server role = standalone server
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
	printf "peer\npeer\n" | smbpasswd -s -a root && smbd -D && sleep 1' "Samba"
}

smb_client() { # GUEST ADDRESS PLACE
	at "$1" "modprobe cifs; mkdir -p $3 && mount -t cifs \
		-o user=root,pass=peer,vers=3.1.1,cache=${smb_cache:-none},nosharesock \
		-o rsize=4194304,wsize=4194304 //$2/peer $3" SMB
}

# prepare GUEST SYSTEM...: mounts the systems in the guest, and makes a folder in each.
prepare() {
	local guest=$1 system
	shift
	for system; do
		case $system in
		nfs | smb) "${system}_client" "$guest" "$address" "/mnt/$system" ;;
		nfs-loop | smb-loop)
			"${system%-loop}_server" "$guest"
			"${system%-loop}_client" "$guest" 127.0.0.1 "/mnt/$system"
			;;
		ext4-dax) ext4_dax "$guest" ;;
		tmpfs) at "$guest" 'mkdir -p /mnt/tmpfs && mount -t tmpfs tmpfs /mnt/tmpfs' ;;
		esac
		at "$guest" "mkdir -p ${folder[$system]}" "no folder of $system"
	done
}

# serve nfs|smb...
serve() {
	local one
	ext4_dax "$server"
	wire
	for one; do "${one}_server"; done
}

# flow_everywhere SYSTEM...: starts all servers; each client mounts them and gets the program flow.
flow_everywhere() {
	local guest
	serve nfs smb
	compile flow
	for guest in "${clients[@]}"; do
		prepare "$guest" "$@"
		put "$compiled/flow" /root/flow "$guest"
	done
}

versions() {
	local packages=(fio nfs-kernel-server samba cifs-utils e2fsprogs git sqlite3 rsync python3
		gcc)
	# shellcheck disable=SC2016 # dpkg-query's
	echo "with $(on g1 "dpkg-query -W -f '\${Package} \${Version}, ' ${packages[*]}" </dev/null)" \
		"$("$root/e2e/rig" doctor 2>/dev/null | grep -o 'virtiofsd [0-9.]*' | head -n 1)"
}

# Unmounts the other systems, so that the guests can shut down. The rig itself unmounts the volume.
leave() {
	local guest
	versions
	for guest in "${guests[@]}"; do
		on "$guest" 'cd /; umount /mnt/{nfs,smb}{,-loop} 2>/dev/null
			pkill smbd; [ ! -e /proc/fs/nfsd/threads ] || rpc.nfsd 0
			exportfs -ua; pkill rpc.mountd
			umount /mnt/ext4' </dev/null >/dev/null 2>&1 || true
	done
}

# --- processor time -------------------------------------------------------------------------------

# Prints the processor time, in ms, of QEMU, virtiofsd and all other processes that the rig has
# started, directly or indirectly. This script is not among them, because another process runs it
# (e2e/cmd/rig/keep.go).
host_ms() {
	local rig pid stat sum=0 todo=()
	rig=$(ps -o ppid= -p "$PPID") || fail "the rig's process was not found"
	mapfile -t todo < <(pgrep -P "${rig// /}")
	while ((${#todo[@]})); do
		pid=${todo[0]}
		todo=("${todo[@]:1}")
		if [[ $pid -eq $PPID ]] || ! stat=$(cat "/proc/$pid/stat" 2>/dev/null); then continue; fi
		mapfile -t -O "${#todo[@]}" todo < <(pgrep -P "$pid")
		# shellcheck disable=SC2086 # fields
		set -- ${stat##*) }
		sum=$((sum + ${12} + ${13}))
	done
	((sum)) || fail "the rig's processes have used no time"
	echo $((sum * 1000 / $(getconf CLK_TCK)))
}

# guest_ms GUEST: prints the busy time of the guest's processors, in ms.
guest_ms() {
	on "$1" 'awk "/^cpu / { print (\$2 + \$3 + \$4 + \$7 + \$8) * 10; exit }" /proc/stat' </dev/null
}

# --- several commands at the same moment ----------------------------------------------------------

# start GUEST COMMAND: starts a command, which prints "ready" and then waits for a line. go: sends
# this line to all commands at the same moment, and waits for their end. $work/said.N has the output
# of the command number N, in the order of their starts.
jobs_begun=()
declare -A ear
start() {
	local id=${#jobs_begun[@]} fd
	if [[ -z ${ear[$id]:-} ]]; then
		mkfifo "$work/start.$id"
		exec {fd}<>"$work/start.$id"
		ear[$id]=$fd
	fi
	: >"$work/said.$id"
	on "$1" "exec $2" <"$work/start.$id" >"$work/said.$id" 2>&1 &
	jobs_begun+=($!)
}

await_ready() { # NUMBER
	local tries
	for ((tries = 0; tries < 12000; tries++)); do
		! grep -q ready "$work/said.$1" || return 0
		kill -0 "${jobs_begun[$1]}" 2>/dev/null || break
		sleep 0.01
	done
	grep -q ready "$work/said.$1"
}

go() {
	local id bad=0
	for id in "${!jobs_begun[@]}"; do await_ready "$id" || bad=1; done
	for id in "${!jobs_begun[@]}"; do echo go >&"${ear[$id]}"; done
	for id in "${!jobs_begun[@]}"; do wait "${jobs_begun[id]}" || bad=1; done
	jobs_begun=()
	return "$bad"
}
