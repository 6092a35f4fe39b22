#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# SIGSTOP stops QEMU of one guest in the middle of a change. A change counter is odd, and the guest
# holds locks. QEMU stays stopped for longer than a reader waits for a counter of a live system. The
# other guest must not treat this as damage. It waits for locks of the stopped guest, continues with
# all other operations, and stays read-write. Waiting calls can be killed. The mount can be frozen,
# even while a page fault waits. When QEMU continues, both guests continue.
#
# rig: --guests 2 --size 256M
# kernels: 6.12
# maps: walk
# limit: 1200
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

# If a counter stays odd for 20 s while its system's heartbeat moves, the module treats this as
# damage.
seconds=30

# slot_of SYSTEM: prints the number of the system's slot.
slot_of() {
	"$SG_TOOLS/stargatectl" --json systems "$RIG_RANGE" | python3 -c 'import json, sys
print(*[s["slot"] for s in json.load(sys.stdin)["systems"] if s["name"] == sys.argv[1]])' "$1"
}

# in_background NAME COMMAND: runs the command in g1, with its output and status in $RIG_DIR/NAME.
in_background() {
	{ on g1 "$2" </dev/null >"$RIG_DIR/$1" 2>&1; echo "status $?" >>"$RIG_DIR/$1"; } &
	job[$1]=$!
}
declare -A job

# stop_g2: stops g2's QEMU in the middle of a change, and sets $begin to the current time.
stop_g2() {
	local said
	said=$("$compiled/midapply" "$RIG_RANGE" "$(slot_of g2)" "$monitor") || fail "$said"
	begin=$EPOCHSECONDS
	passed "$said"
}

program_everywhere midapply
program waiters nowait
holds "two folders are made" 'mkdir /mnt/sg/busy /mnt/sg/own'
on g2 'exec /root/midapply load /mnt/sg/busy' </dev/null >"$RIG_DIR/load" 2>&1 &
load=$!
on g2 'until pgrep -x midapply >/dev/null; do sleep 0.1; done' </dev/null

step "g2 is stopped in the middle of a change"
monitor=$(pgrep -f "path=$RIG_DIR/g2\\.[0-9]+\\.console")
[[ $monitor =~ ^[0-9]+$ ]] || fail "g2's QEMU was not found: '$monitor'"
trap 'kill -CONT "$monitor" || true' EXIT
stop_g2
in_background reader 'ls /mnt/sg/busy && stat /mnt/sg/busy >/dev/null'
in_background writer 'touch /mnt/sg/busy/new'
while ((EPOCHSECONDS - begin < seconds)); do
	on g1 'echo "$EPOCHREALTIME" >>/mnt/sg/own/line && ls /mnt/sg/own >/dev/null' </dev/null ||
		fail "g1 cannot use another folder"
	sleep 1
done
passed "g1 can use another folder"
kill -0 "${job[writer]}" || fail "g1 did not wait for g2: $(<"$RIG_DIR/writer")"
passed "g1 waits for a lock of g2"
holds "g1 is read-write" 'grep -q " /mnt/sg stargatefs rw[, ]" /proc/mounts'
holds "g1 has found no damage" 'grep -qx "count 0" /sys/fs/stargatefs/pmem0/errors'

step "g2 is continued"
kill -CONT "$monitor"
trap - EXIT
for name in reader writer; do
	wait "${job[$name]}"
	same "the waiting $name succeeds" "status 0" "$(tail -n 1 "$RIG_DIR/$name")"
done
kill -0 "$load" || fail "the load on g2 has ended: $(<"$RIG_DIR/load")"
on g2 'touch /mnt/sg/busy/late && pkill -x midapply' </dev/null || fail "g2 does not continue"
wait "$load" || true
same "all files are there" "a b late new" \
	"$(on g1 'ls /mnt/sg/busy | sed "s/^[ab]$/a b/" | xargs' </dev/null)"
holds "g1 is read-write" 'grep -q " /mnt/sg stargatefs rw[, ]" /proc/mounts && touch /mnt/sg/busy/more'
holds "g1 has found no damage" 'grep -qx "count 0" /sys/fs/stargatefs/pmem0/errors'

step "a hole in a file that g2 was changing"
holds "a process maps the file" 'echo x >/mnt/sg/hole
	/root/waiters fill /mnt/sg/hole /tmp/go >/tmp/filled 2>&1 </dev/null &
	for try in $(seq 100); do grep -q stored /tmp/filled && exit 0; sleep 0.1; done; exit 1'
holds "another process has the file open to read" '/root/nowait submit /mnt/sg/hole /tmp/submit >/tmp/read 2>&1 </dev/null &
	for try in $(seq 100); do grep -q open /tmp/read && exit 0; sleep 0.1; done; exit 1'
# $gone is a command: it checks that process $p ends, or becomes a zombie, within 10 s.
gone='for try in $(seq 100); do
	grep -q "^State:.*[ZX]" /proc/$p/status 2>/dev/null || [ ! -e /proc/$p ] && exit 0; sleep 0.1; done
	cat /proc/$p/task/*/stack; exit 1'
# change_and_stop: makes g2 change the file continuously, and stops it.
change_and_stop() {
	on g2 'exec /root/midapply modes /mnt/sg/hole' </dev/null >"$RIG_DIR/load" 2>&1 &
	load=$!
	on g2 'until pgrep -x midapply >/dev/null; do sleep 0.1; done' </dev/null
	trap 'kill -CONT "$monitor" || true' EXIT
	stop_g2
}
go_on() {
	kill -CONT "$monitor"
	trap - EXIT
	on g2 'pkill -x midapply' </dev/null || fail "g2 does not continue"
	wait "$load" || true
}
change_and_stop
holds "a store to the hole waits for g2" 'touch /tmp/go; sleep 2; ! grep filled /tmp/filled'
holds "a truncation that waits can be killed" 'truncate -s 8192 /mnt/sg/hole >/dev/null 2>&1 </dev/null & p=$!
	sleep 2; kill -KILL $p; '"$gone"
holds "the mount freezes within 20 s, and thaws" 'timeout -s KILL 20 fsfreeze -f /mnt/sg && fsfreeze -u /mnt/sg'
holds "a read by io_uring is submitted without a wait" 'touch /tmp/submit
	for try in $(seq 100); do grep -qx done /tmp/read && exit 0; sleep 0.1; done
	cat /tmp/read; exit 1'
holds "the store still waits" 'sleep 1; ! grep filled /tmp/filled'
go_on
holds "the storing process continues after g2" 'for try in $(seq 300); do grep -q filled /tmp/filled && exit 0; sleep 0.1; done; exit 1'

step "a file into which two processes continuously store and punch holes"
for turn in 1 2 3; do # g2 is stopped at a random time
	holds "the processes begin to store and to punch, turn $turn" 'rm -f /tmp/again.*; for p in 1 2; do
		/root/waiters again /mnt/sg/hole >/tmp/again.$p 2>&1 </dev/null &
		echo $! >/tmp/pid.$p
	done
		for try in $(seq 100); do
			grep -qs again /tmp/again.1 && grep -qs again /tmp/again.2 && exit 0
			sleep 0.1
		done; exit 1'
	change_and_stop
	holds "one of the processes can be killed" 'sleep 1; p=$(cat /tmp/pid.1); kill -KILL $p; '"$gone"
	holds "the other process can be killed" 'p=$(cat /tmp/pid.2); kill -KILL $p; '"$gone"
	holds "after both are killed, the mount freezes within 20 s, and thaws" \
		'timeout -s KILL 20 fsfreeze -f /mnt/sg && fsfreeze -u /mnt/sg'
	go_on
done
holds "g1 has found no damage" 'grep -qx "count 0" /sys/fs/stargatefs/pmem0/errors'
finish
