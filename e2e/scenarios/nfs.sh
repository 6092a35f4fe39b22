#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The kernel's NFS server exports the volume, and a client on the same VM mounts it with versions
# 4.2 and 3. The scenario mainly tests file handles. A handle still identifies its file after all
# caches are dropped, and after restarts of the server and of the volume's mount. A handle never
# identifies another file that has got the same inode. An open by a stale handle disturbs no change
# that uses that inode.
#
# rig: --size 128M --mem 768M --pkgs "nfs-kernel-server nfs-common attr"
# kernels: 6.12
# maps: walk
# limit: 400
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

names=$(scaled 1000 3000 30000)

trap 'on g1 "umount -f /nfs; server down" >/dev/null 2>&1 </dev/null || true' EXIT

# Makes commands in the VM. `server up|down|restart` controls the NFS server. `drop` drops all
# caches.
on g1 'cat >/usr/local/bin/server && chmod 755 /usr/local/bin/server' <<'EOT'
#!/bin/sh
set -e
case $1 in
up)
	exportfs -o rw,async,insecure,no_root_squash,no_subtree_check 127.0.0.1:/mnt/sg
	rpc.nfsd --grace-time 10 --lease-time 10 4
	;;
down)
	rpc.nfsd 0
	exportfs -ua
	exportfs -f
	;;
restart) # the unmount drops all data that the kernel has cached for the volume
	$0 down
	umount /mnt/sg
	mount -t stargatefs /dev/pmem0 /mnt/sg
	$0 up
	;;
esac
EOT
on g1 'cat >/usr/local/bin/drop && chmod 755 /usr/local/bin/drop' <<'EOT'
#!/bin/sh
sync && echo 3 >/proc/sys/vm/drop_caches
EOT
on g1 'cat >/usr/local/bin/lock && chmod 755 /usr/local/bin/lock' <<'EOT'
#!/usr/bin/perl
# lock FILE [COMMAND]: runs COMMAND with a POSIX lock (fcntl) on FILE. Status 1: another process has
# the lock.
use Fcntl;
open(my $file, "+<", shift) or die $!;
my $whole = pack("s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0);
fcntl($file, F_SETLK, $whole) or exit 1;
exit(@ARGV ? system(@ARGV) >> 8 : 0);
EOT

on g1 'cat >/usr/local/bin/stale && chmod 755 /usr/local/bin/stale' <<'EOT'
#!/usr/bin/perl
# stale ROUNDS: each round removes files on the server while a client has their handles. Then it
# moves the pages of /mnt/sg/moved up and down 40 times. The engine uses the inodes of the removed
# files for the tables that it builds. At the same time the client accesses the removed files.
# Status 1: a move failed. Status 2: a handle was not stale.
use Errno;
my ($fallocate, $collapse, $insert, $page) = (285, 0x08, 0x20, 4096);
open(my $moved, "+<", "/mnt/sg/moved") or die $!;
for my $round (1 .. shift) {
	my @files;
	for (1 .. 16) {
		open(my $new, ">", "/mnt/sg/gone-$_") or die $!;
		close($new);
		open(my $old, "<", "/nfs/gone-$_") or die $!;
		push @files, $old;
	}
	unlink("/mnt/sg/gone-$_") or die $! for 1 .. 16;
	my $child = fork() // die $!;
	unless ($child) {
		for (1 .. 40) {
			for my $mode ($collapse, $insert) {
				next if !syscall($fallocate, fileno($moved), $mode, 0, $page);
				print STDERR "round $round: $!\n";
				exit 1;
			}
		}
		exit 0;
	}
	for (@files) {
		select(undef, undef, undef, 0.003);
		next if !stat($_) && $!{ESTALE};
		waitpid($child, 0);
		exit 2;
	}
	waitpid($child, 0);
	exit 1 if $?;
}
EOT

step "the NFS server"
holds "the NFS daemons start" 'modprobe nfsd && echo 10 >/proc/sys/fs/nfs/nlm_grace_period && mkdir -p /run/rpc_pipefs /nfs /var/lib/nfs/nfsdcltrack &&
	{ mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; } &&
	{ mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs; } &&
	rpcbind && nfsdcld && rpc.statd --no-notify && rpc.mountd && server up'

# through VERSION OPTIONS: runs the tests of one version through the mount at /nfs.
through() {
	local version=$1
	holds "the client mounts by NFS $version" "mount -t nfs -o $2 127.0.0.1:/mnt/sg /nfs && df /nfs"
	holds "a tree can be made and removed" 'mkdir /nfs/tree && cp -a /etc /nfs/tree/ &&
		diff -r --no-dereference /etc /mnt/sg/tree/etc && drop &&
		diff -r --no-dereference /etc /nfs/tree/etc && rm -r /nfs/tree'
	holds "changes over NFS to links, names, owners and sizes are on the volume" 'cd /nfs && mkdir d && echo a >f && ln f d/g &&
		ln -s d/g s && mkfifo p && mv f d/h && chmod 640 d/h && chown 7:8 d/h &&
		truncate -s 5G d/h && cd /mnt/sg && [ "$(cat d/g | head -c 2)" = a ] &&
		[ "$(stat -c %a:%u:%g:%h:%s d/h)" = 640:7:8:2:5368709120 ] && [ -p p ] &&
		[ "$(readlink s)" = d/g ] && cd /nfs && rm -r d s p'
	holds "a program runs from the mount" 'cp /bin/sleep /nfs/sleep && drop && /nfs/sleep 0 && rm /nfs/sleep'
	holds "a file that is removed while open can be used" 'cd /nfs && exec 3>open && echo x >&3 && rm open && echo y >&3 &&
		exec 3>&- && [ -z "$(ls -A /mnt/sg)" ]'
	holds "$names names are made" "mkdir /mnt/sg/many && cd /mnt/sg/many && seq -f 'name-%.0f' $names | xargs touch"
	holds "each name is listed once" "drop && ls -f /nfs/many | grep -v '^\.' | sort >/tmp/listed &&
		seq -f 'name-%.0f' $names | sort | cmp - /tmp/listed"
	holds "names can be removed during a listing" "drop && ls -f /nfs/many >/tmp/listed &
		cd /mnt/sg/many && seq -f 'name-%.0f' 2 2 $names | xargs rm && wait && drop &&
		grep -c '^name-.*[13579]$' /tmp/listed | grep -qx $((names / 2)) &&
		[ -z \"\$(sort /tmp/listed | uniq -d)\" ] &&
		ls -f /nfs/many | grep -c '^name-' | grep -qx $((names / 2)) && rm -r /nfs/many"
	holds "POSIX locks of the client and of the server exclude each other" '>/nfs/locked && lock /nfs/locked true &&
		! lock /nfs/locked lock /nfs/locked &&
		! lock /nfs/locked lock /mnt/sg/locked && ! lock /mnt/sg/locked lock /nfs/locked &&
		lock /mnt/sg/locked && rm /nfs/locked'
	holds "a lock of flock over NFS excludes a local POSIX lock" '>/nfs/locked && flock /nfs/locked true &&
		! flock /nfs/locked lock /mnt/sg/locked && rm /nfs/locked'
	handles "$version"
	holds "the client unmounts, and the volume is empty" 'cd / && umount /nfs && [ -z "$(ls -A /mnt/sg)" ]'
}

# handles VERSION: a process keeps files and folders open while all caches are dropped, so that only
# handles identify them.
handles() {
	holds "handles still work after all caches are dropped" 'mkdir -p /nfs/a/b/c && echo kept >/nfs/a/b/c/f &&
		cd /nfs/a/b/c && exec 3<f && drop && mv /mnt/sg/a /mnt/sg/z && drop &&
		cat <&3 >/tmp/got &&
		grep -qx kept /tmp/got && cat f && ls . && echo more >g && cmp g /mnt/sg/z/b/c/g'
	holds "handles still work after a restart of the server and a new mount" 'cd /nfs/z/b/c && exec 3<f && sync &&
		(cd / && server restart) && cat <&3 >/tmp/got &&
		grep -qx kept /tmp/got && ls . | grep -qx g && echo again >>g &&
		grep -qx again /mnt/sg/z/b/c/g'
	# With version 4 the server has its clients' files open. With version 3 clients do not
	# report their open files.
	if [ "$1" = 3 ]; then
		refused "the handle of a removed file is stale" 'stale' 'cd /nfs/z && echo x >gone &&
			exec 3<gone && rm /mnt/sg/z/gone &&
			touch /mnt/sg/z/{1..64} && drop && sleep 4 &&
			stat -L /proc/self/fd/3 && cat <&3'
	else
		holds "a file that is open stays when the server removes it" 'cd /nfs/z &&
			echo first >gone && exec 3<>gone && rm /mnt/sg/z/gone &&
			touch /mnt/sg/z/{1..64} && drop && sleep 4 && stat -L /proc/self/fd/3 &&
			[ "$(cat <&3)" = first ] && echo second >&3 && sync && drop &&
			perl -e "seek(STDIN, 0, 0); print <STDIN>" <&3 >/tmp/got &&
			printf "first\nsecond\n" | cmp - /tmp/got && [ ! -e /mnt/sg/z/gone ]'
	fi
	refused "the handle of a removed folder is stale" 'stale' 'mkdir /nfs/z/folder && cd /nfs/z/folder && rmdir /mnt/sg/z/folder &&
		mkdir /mnt/sg/z/d{1..64} && drop && sleep 4 && touch name'
	holds "all files can be removed" 'rm -r /nfs/z'
}

step "version 4.2"
through 4.2 vers=4.2,acregmax=3,acdirmax=3
step "version 3"
through 3 vers=3,acregmax=3,acdirmax=3

step "removed files and pages that move"
# The file has single pages with holes between them. It therefore has many tables, and a move takes
# long. Page 0 is a hole, which the test inserts and removes.
holds "a file of 4 KiB pages is made" 'perl -e "open(F, q(>), shift) or die; for (1 .. 6000) { seek(F, 8192 * \$_, 0); print F \$_ }" \
	/mnt/sg/moved && cp /mnt/sg/moved /tmp/moved'
holds "the client mounts by NFS 3" 'mount -t nfs -o vers=3,noac,lookupcache=none 127.0.0.1:/mnt/sg /nfs'
holds "a stale handle disturbs no move of a page" "taskset -c 0 stale $(scaled 5 20 100)"
holds "no byte has changed" 'cmp /tmp/moved /mnt/sg/moved && rm /mnt/sg/moved && umount /nfs'

step "features of 4.2 only"
holds "the client mounts by NFS 4.2" 'mount -t nfs -o vers=4.2 127.0.0.1:/mnt/sg /nfs'
holds "fallocate reserves and frees space" 'fallocate -l 1M /nfs/f && [ "$(stat -c %b /mnt/sg/f)" -ge 2048 ] &&
	fallocate -p -o 4096 -l 524288 /nfs/f && [ "$(stat -c %b /mnt/sg/f)" -lt 2048 ]'
holds "the server copies a file" 'head -c 3M /dev/urandom >/nfs/f && cp /nfs/f /nfs/g && cmp /mnt/sg/f /mnt/sg/g'
holds "user attributes can be set" 'setfattr -n user.colour -v red /nfs/f &&
	getfattr --only-values -n user.colour /mnt/sg/f | grep -q red && rm /nfs/f /nfs/g'
holds "the client, the server and the daemons end" 'umount /nfs && server down && umount /proc/fs/nfsd'
finish
