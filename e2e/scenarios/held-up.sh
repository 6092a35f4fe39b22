#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A live member of a volume holds locks and does not release them. Kernel code in which a process
# cannot be killed must not wait for such a lock. The scenario tests memory reclaim, the exit of a
# process, execve(), sync, the flush before a freeze, a freeze during a write fault, and a read of a
# process's data (ps). A wait in one volume must not delay another volume of the same node.
#
# rig: --guests 2 --size 64M --mem 512M --append 'memmap=64M$256M'
# maps: walk
# kernels: 6.12
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program hostile waiters bindtwice
put "$compiled/waiters" /root/waiters g2
files=256
held=

# g2_holds WHAT...: marks locks of the volume as held by g2, until a call of let_go.
g2_holds() {
	"$compiled/hostile" hold "$RIG_RANGE" 0 "$RIG_SIZE" g2 1000 "$@" >"$work/held" 2>&1 &
	held=$!
	until grep -q held "$work/held"; do
		kill -0 "$held" 2>/dev/null || fail "these locks cannot be taken for g2: $*: $(cat "$work/held")"
		sleep 0.05
	done
}
# let_go WHAT...: releases these locks.
let_go() {
	kill "$held"
	wait "$held" || true
	"$compiled/hostile" hold "$RIG_RANGE" 0 "$RIG_SIZE" g2 0.001 "$@" >/dev/null
}
number() { on g1 "stat -c %i $1" </dev/null; }
# in_time SECONDS WHAT COMMAND: checks that COMMAND succeeds in g1 within SECONDS.
in_time() { holds "$2 within $1 s" "timeout -s KILL $1 sh -c '$3'"; }

step "memory reclaim"
holds "a file that no process has open is made" 'echo x >/mnt/sg/known && cat /mnt/sg/known'
ino=$(number /mnt/sg/known)
g2_holds "$ino:unlinked"
in_time 20 "the system can reclaim the file's memory" 'echo 2 >/proc/sys/vm/drop_caches'
let_go "$ino:unlinked"

step "a process that exits"
holds "a process has a removed file open" 'echo x >/mnt/sg/open && exec 3</mnt/sg/open &&
	stat -c %i /mnt/sg/open >/tmp/ino &&
	{ sleep 1000 <&3 >/dev/null 2>&1 & echo $! >/tmp/pid; } &&
	rm /mnt/sg/open'
ino=$(on g1 'cat /tmp/ino' </dev/null)
g2_holds "$ino"
holds "after SIGKILL the process ends within 10 s" 'kill -KILL $(cat /tmp/pid)
	for try in $(seq 100); do [ -e /proc/$(cat /tmp/pid) ] || exit 0; sleep 0.1; done
	cat /proc/$(cat /tmp/pid)/stack; exit 1'
let_go "$ino"

step "sync"
holds "a process is ready to fill a hole" 'echo x >/mnt/sg/mapped
	/root/waiters fill /mnt/sg/mapped /tmp/go >/tmp/filled 2>&1 </dev/null &
	for try in $(seq 100); do grep -q stored /tmp/filled && exit 0; sleep 0.1; done; exit 1'
ino=$(number /mnt/sg/mapped)
g2_holds "$ino"
holds "the process waits for g2" 'touch /tmp/go; sleep 2; ! grep filled /tmp/filled'
in_time 10 "other processes can sync" sync
in_time 10 "other processes can read its command line and its mappings" \
	'cd /proc/$(pgrep -x waiters) && cat cmdline maps >/dev/null'
holds "the waiting process can map memory" 'grep mapped /tmp/filled'
in_time 10 "another process can store to an existing page" '/root/waiters store /mnt/sg/mapped'
in_time 20 "the mount freezes" 'fsfreeze -f /mnt/sg'
in_time 10 "other processes can sync while the mount is frozen" sync
holds "the process waits for the thaw" '! grep filled /tmp/filled && fsfreeze -u /mnt/sg'
holds "after the thaw the process waits for g2" 'sleep 1; ! grep filled /tmp/filled'
in_time 10 "other processes can read the command line of the process" 'cat /proc/$(pgrep -x waiters)/cmdline >/dev/null'
let_go "$ino"
holds "the process continues after g2 has released the lock" 'for try in $(seq 100); do grep -q filled /tmp/filled && exit 0; sleep 0.1; done; exit 1'

step "a truncation"
holds "a process maps the file" 'rm -f /tmp/go && echo x >/mnt/sg/cut
	/root/waiters fill /mnt/sg/cut /tmp/go >/tmp/cut 2>&1 </dev/null &
	for try in $(seq 100); do grep -q stored /tmp/cut && exit 0; sleep 0.1; done; exit 1'
ino=$(number /mnt/sg/cut)
g2_holds "$ino"
holds "another process truncates the file, and waits for g2" 'truncate -s 8192 /mnt/sg/cut >/dev/null 2>&1 </dev/null &
	sleep 2; kill -0 $!'
holds "the first process waits in a page fault" 'touch /tmp/go; sleep 2; ! grep filled /tmp/cut'
holds "the waiting process can map memory" 'grep mapped /tmp/cut'
in_time 10 "other processes can read its command line" 'cat /proc/$(pgrep -x waiters)/cmdline >/dev/null'
let_go "$ino"
holds "the process continues after g2 has released the lock" 'for try in $(seq 100); do grep -q filled /tmp/cut && exit 0; sleep 0.1; done; exit 1'

step "a page that is removed repeatedly"
holds "a process stores to the page" '/root/waiters again /mnt/sg/again >/tmp/again 2>&1 </dev/null &
	for try in $(seq 100); do grep -q again /tmp/again && exit 0; sleep 0.1; done; exit 1'
ino=$(number /mnt/sg/again)
for turn in {1..30}; do # g2 takes the lock at a random time of the removals
	g2_holds "$ino"
	on g1 'timeout -s KILL 10 cat /proc/$(pgrep -x waiters)/maps' </dev/null >"$work/maps" ||
		fail "turn $turn: the mappings of the process cannot be read within 10 s"
	let_go "$ino"
done
passed "other processes can read its mappings within 10 s"
holds "the process continues, and can be killed" '! grep -v again /tmp/again && pkill -KILL -x waiters
	for try in $(seq 100); do pgrep -x waiters >/dev/null || exit 0; sleep 0.1; done; exit 1'

step "the modification time after a store through a mapping"
holds "a file gets an old modification time" 'head -c 4096 /dev/zero >/mnt/sg/timed && touch -d @1000 /mnt/sg/timed'
ino=$(number /mnt/sg/timed)
g2_holds "$ino"
in_time 10 "a process stores to the file" '/root/waiters store /mnt/sg/timed'
holds "g1 shows the new modification time" '[ "$(stat -c %Y /mnt/sg/timed)" -gt 1000 ]'
in_time 10 "sync does not wait for g2" sync
in_time 20 "reclaim of the file's inode does not wait for g2" 'echo 2 >/proc/sys/vm/drop_caches'
let_go "$ino"
on g2 'for try in $(seq 100); do [ "$(stat -c %Y /mnt/sg/timed)" -le 1000 ] || exit 0; sleep 0.1; done; exit 1' \
	</dev/null || fail "g2 does not show the new modification time"
passed "g2 shows the new modification time after the lock was released"

step "the times of many files"
count=400
holds "$count files get an old modification time" "mkdir /mnt/sg/many && cd /mnt/sg/many && seq $count | xargs touch &&
	for i in \$(seq $count); do echo x >\$i; done && touch -d @1000 *"
mapfile -t inos < <(on g1 "stat -c %i /mnt/sg/many/*" </dev/null)
g2_holds "${inos[@]}"
holds "processes store to all files" "for i in \$(seq $count); do /root/waiters store /mnt/sg/many/\$i || exit; done"
in_time 5 "sync does not wait for each file separately, and ends" sync
in_time 5 "a freeze does not wait for each file separately, and ends" 'fsfreeze -f /mnt/sg && fsfreeze -u /mnt/sg'
let_go "${inos[@]}"
holds "the files' times are stored after the locks were released" 'for try in $(seq 100); do
	[ "$(stat -c %Y /mnt/sg/many/* | sort -n | head -n 1)" -gt 1000 ] && exit 0; sleep 0.1; done; exit 1'

step "a freeze"
holds "a file is made" 'head -c 1M /dev/zero >/mnt/sg/owed && sync'
on g1 'rm /mnt/sg/owed' </dev/null
g2_holds areas
sleep 2
in_time 20 "the mount freezes" 'fsfreeze -f /mnt/sg'
holds "the mount can be thawed" 'fsfreeze -u /mnt/sg'
let_go areas
in_time 20 "files of the mount can be written" 'echo y >/mnt/sg/after'

step "locked chunks"
holds "two files are made" 'head -c 4M /dev/urandom >/mnt/sg/shorter && : >/mnt/sg/longer && sync'
g2_holds chunks
in_time 30 "fallocate() gets ENOSPC" 'fallocate -l 1M /mnt/sg/longer 2>&1 | grep -i "no space"'
in_time 30 "a write gets ENOSPC" 'head -c 1M /dev/zero 2>&1 >>/mnt/sg/longer | grep -i "no space"'
in_time 30 "a file can be truncated" 'truncate -s 5000 /mnt/sg/shorter'
in_time 30 "a hole can be punched" 'fallocate -p -o 0 -l 4096 /mnt/sg/shorter'
let_go chunks
in_time 20 "free pages are available again" 'fallocate -l 1M /mnt/sg/longer && rm /mnt/sg/longer /mnt/sg/shorter'

step "a reader of a semaphore, in a mount that is frozen"
holds "a process holds a read-write lock for reading" 'stargate-sem create rw --type rwlock &&
	{ setsid stargate-sem lock --read rw -- sleep 600 >/dev/null 2>&1 </dev/null & } &&
	for try in $(seq 100); do pgrep -x sleep >/dev/null && exit 0; sleep 0.1; done; exit 1'
holds "the mount is frozen" 'fsfreeze -f /mnt/sg'
holds "after SIGKILL the process ends within 5 s" 'p=$(pgrep -x stargate-sem); kill -KILL $p
	for try in $(seq 50); do [ -e /proc/$p ] || exit 0; sleep 0.1; done
	cat /proc/$p/stack; exit 1'
on g2 'stargate-sem lock -t 5 rw -- true' </dev/null || fail "g2 waits for a reader that has ended"
passed "a writer in g2 gets the lock of the killed reader"
holds "after the thaw the semaphore can be removed" 'fsfreeze -u /mnt/sg
	for try in $(seq 100); do stargate-sem rm rw 2>/dev/null && exit 0; sleep 0.1; done; exit 1'

step "users of semaphores"
# sem_users NAME...: starts processes in g1 that hold these semaphores.
sem_users() {
	holds "processes hold these semaphores for reading: $*" "for name in $*; do stargate-sem create \$name --type rwlock || exit
		setsid stargate-sem lock --read \$name -- sleep 3601 >/dev/null 2>&1 </dev/null &
	done
	for try in \$(seq 100); do
		[ \$(pgrep -cfx 'sleep 3601') = $# ] && exit 0; sleep 0.1
	done; exit 1"
}
sem_users_end() {
	holds "after SIGKILL the processes end within 10 s" 'p=$(pgrep -x stargate-sem); kill -KILL $p
		for try in $(seq 100); do
			pgrep -x stargate-sem >/dev/null || exit 0; sleep 0.1
		done
		for i in $p; do cat /proc/$i/stack; done; exit 1'
	on g1 'pkill -fx "sleep 3601"' </dev/null || true
}
sem_users rw
g2_holds semaphores
sem_users_end
holds "two processes bind an object to one descriptor" '
	/root/bindtwice /mnt/sg/.stargate/semaphores >/tmp/bind 2>&1 </dev/null &
	for try in $(seq 100); do
		grep -q second /tmp/bind && sleep 1 && exit 0; sleep 0.1
	done; exit 1'
holds "the second process can be killed" 'p=$(sed -n "s/^second //p" /tmp/bind); kill -KILL $p
	for try in $(seq 100); do
		grep -q "^State:.*[ZX]" /proc/$p/status 2>/dev/null || [ ! -e /proc/$p ] && exit 0
		sleep 0.1
	done
	cat /proc/$p/stack; exit 1'
let_go semaphores
holds "the first process continues" 'for try in $(seq 100); do grep -q "first: bound" /tmp/bind && exit 0; sleep 0.1; done
	cat /tmp/bind; exit 1'
holds "the object can be removed after the release" 'for try in $(seq 100); do
	stargate-sem rm rw 2>/dev/null && exit 0; sleep 0.1; done; exit 1'
sem_users gone
holds "an open object can be removed" 'stargate-sem rm gone'
g2_holds areas
sem_users_end
in_time 10 "objects can be listed" "stargate-sem list"
let_go areas

step "locks of files in two volumes"
holds "a second volume is mounted" 'mkdir -p /mnt/bare /run/bare /mnt/sg/d &&
	mkfs.stargatefs -q --phys 256M --size 32M /run/bare/volume &&
	dd if=/run/bare/volume of=/dev/mem bs=1M seek=256 conv=notrunc status=none &&
	mount -t stargatefs -o phys=256M,size=32M none /mnt/bare && mkdir /mnt/bare/d'
holds "the shared work queue has room for one entry" \
	'echo 1 >/sys/devices/virtual/workqueue/stargatefs/max_active'
holds "a process makes and removes a file repeatedly" '{ while echo x >/mnt/sg/owed; do rm /mnt/sg/owed; done >/dev/null 2>&1 </dev/null & } &&
	echo $! >/tmp/pid; sleep 1'
g2_holds areas
holds "settling in the second volume does not wait for settling in the first one" 'sleep 3
	[ -e /sys/kernel/tracing/trace ] || mount -t tracefs none /sys/kernel/tracing
	cd /sys/kernel/tracing || exit
	echo 1 >events/workqueue/workqueue_execute_start/enable && sleep 5
	echo 0 >events/workqueue/workqueue_execute_start/enable
	[ "$(grep -c "function sgfs_settle" trace)" -ge 2 ]'
let_go areas
on g1 'kill $(cat /tmp/pid)' </dev/null
holds "processes have used all chains of locks in both volumes" "/root/waiters flock /mnt/sg/d $files each && /root/waiters flock /mnt/bare/d $files each"
holds "a process holds many locks in the first volume" 'mkdir /mnt/sg/e
	/root/waiters flock /mnt/sg/e 64 keep >/tmp/keep 2>&1 </dev/null & echo $! >/tmp/pid
	for try in $(seq 100); do grep -q locks /tmp/keep && exit 0; sleep 0.1; done; exit 1'
g2_holds chains
in_time 10 "a process without locks can close a locked file" 'cat /mnt/sg/e/0'
holds "after SIGKILL the process ends within 10 s" 'p=$(cat /tmp/pid); kill -KILL $p
	for try in $(seq 100); do [ -e /proc/$p ] || exit 0; sleep 0.1; done
	cat /proc/$p/stack; exit 1'
holds "many processes wait in the first volume" "/root/waiters flock /mnt/sg/d $files wait >/tmp/wait 2>&1 </dev/null &
	for try in \$(seq 100); do grep -q locks /tmp/wait && sleep 1 && exit 0; sleep 0.1; done; exit 1"
in_time 10 "all locks of the second volume can be taken" "/root/waiters flock /mnt/bare/d $files each"
holds "the process with locks in the second volume ends after SIGKILL" '/root/waiters flock /mnt/bare/d 64 keep >/tmp/keep 2>&1 </dev/null & p=$!
	for try in $(seq 100); do grep -q locks /tmp/keep && break; sleep 0.1; done
	grep locks /tmp/keep
	kill -KILL $p
	for try in $(seq 100); do [ -e /proc/$p ] || exit 0; sleep 0.1; done
	cat /proc/$p/stack; exit 1'
holds "a process that waits in the first volume can be killed" 'pkill -KILL -x waiters
	for try in $(seq 300); do pgrep -x waiters >/dev/null || exit 0; sleep 0.1; done; exit 1'
let_go chains
in_time 20 "the locks of the killed process can be taken" "/root/waiters flock /mnt/sg/d 8 each"
on g2 'for try in $(seq 100); do
	for i in $(seq 0 63); do flock -n /mnt/sg/e/$i true || break; done && [ $i = 63 ] &&
		flock -n /mnt/sg/e/63 true && exit 0; sleep 0.1; done; exit 1' </dev/null ||
	fail "g2 finds locks of a process that has ended"
passed "g2 finds the locks of the killed process free"

step "execve() of a process that has locks"
holds "a process has a locked file that execve() will close" 'rm -f /tmp/go
	/root/waiters exec /mnt/sg/exec /tmp/go >/tmp/exec 2>&1 </dev/null & echo $! >/tmp/pid
	for try in $(seq 100); do grep -q locked /tmp/exec && exit 0; sleep 0.1; done; exit 1'
g2_holds chains
in_time 10 "other processes can read the mappings of that process" \
	'touch /tmp/go; sleep 1; cat /proc/$(cat /tmp/pid)/maps'
in_time 10 "the process can be traced" '/root/waiters trace $(cat /tmp/pid)'
holds "the process continues as the new program" '[ "$(cat /proc/$(cat /tmp/pid)/comm)" = sleep ]'
let_go chains
on g2 'for try in $(seq 20); do /root/waiters posix /mnt/sg/exec && exit 0; sleep 0.1
	done; exit 1' </dev/null || fail "g2 finds a lock of the file that was closed"
passed "g2 finds the file unlocked"
holds "the process ends" 'kill $(cat /tmp/pid)'

step "a process that ends while its mount is frozen"
holds "a process holds locks" 'mkdir /mnt/sg/f
	/root/waiters flock /mnt/sg/f 16 keep >/tmp/keep 2>&1 </dev/null & echo $! >/tmp/pid
	for try in $(seq 100); do grep -q locks /tmp/keep && exit 0; sleep 0.1; done; exit 1'
holds "the mount is frozen" 'fsfreeze -f /mnt/sg'
g2_holds chains
holds "after SIGKILL the process ends within 10 s" 'p=$(cat /tmp/pid); kill -KILL $p
	for try in $(seq 100); do [ -e /proc/$p ] || exit 0; sleep 0.1; done
	cat /proc/$p/stack; exit 1'
let_go chains
on g2 'for try in $(seq 30); do
	for i in $(seq 0 15); do flock -n /mnt/sg/f/$i true || break; done && [ $i = 15 ] &&
		flock -n /mnt/sg/f/15 true && exit 0; sleep 0.1; done; exit 1' </dev/null ||
	fail "g2 waits for the thaw of g1"
passed "g2 finds the locks of the process free before the thaw"
holds "the mount is thawed" 'fsfreeze -u /mnt/sg'
holds "both volumes can be unmounted" 'umount /mnt/bare && umount /mnt/sg'
finish
