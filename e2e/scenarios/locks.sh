#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Locks of flock() and fcntl(), and open-file-description locks. They work within one system as on
# any file system, and between systems. Unlock, close, exit and a power cut release them. All
# systems use sqlite at the same time, with a rollback journal and with WAL.
#
# rig: --guests 2 --size 256M --mem 384M --pkgs "sqlite3"
# test: walk
# test-rig: --guests 2 --size 128M --mem 384M --pkgs "acl attr sqlite3"
# mixed: 6.1,7.2
# node: --guests 2 --kernel 6.1,7.2 --size 256M --pkgs "sqlite3"
# kernels: 6.12
# maps: walk
# limit: 900
# node-limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

program_everywhere locks
file=/mnt/sg/file

# says SYSTEM EXPECTED ARGUMENT...: checks that `locks` prints EXPECTED in the system.
says() {
	local system=$1 want=$2 said
	shift 2
	said=$(on "$system" "/root/locks $*" </dev/null 2>&1) || true
	[[ $said == "$want" ]] || fail "$system: locks $*: expected '$want', got '$said'"
	checks=$((checks + 1))
}

# holder SYSTEM ARGUMENT...: starts `locks hold` in the system, and returns when the process has the
# lock. The function let_go kills the process. The function let_go kills the process.
holder() {
	local system=$1
	shift
	on "$system" "rm -f /tmp/held; setsid /root/locks hold $* >/tmp/held 2>&1 </dev/null &
		for i in \$(seq 600); do grep -q held /tmp/held && exit 0; sleep 0.05; done
		cat /tmp/held; exit 1" </dev/null || fail "$system: no lock from: locks hold $*"
}
let_go() { on "$1" 'pkill -KILL -x locks; while pgrep -x locks; do sleep 0.05; done' </dev/null >/dev/null; }

step "locks within one system"
for system in "${systems[@]}"; do
	said=$(on "$system" "/root/locks alone /mnt/sg/alone-$system" </dev/null 2>&1) ||
		fail "$system: locks alone: $said"
	passed "$system: $said"
done

# excludes ONE TWO: checks that TWO cannot get a lock that ONE holds.
excludes() {
	local one=$1 two=$2 kind pid
	on "$one" "echo 0 >$file" </dev/null
	for kind in posix ofd flock; do
		holder "$one" "$kind ex 0 0 $file"
		says "$two" EAGAIN try "$kind" sh 0 0 "$file"
		says "$one" EAGAIN try "$kind" sh 0 0 "$file"
		let_go "$one"
		says "$two" got try "$kind" ex 0 0 "$file"
		holder "$one" "$kind sh 0 0 $file"
		says "$two" got try "$kind" sh 0 0 "$file"
		says "$two" EAGAIN try "$kind" ex 0 0 "$file"
		let_go "$one"
		passed "locks of $kind exclude each other between $one and $two"
	done
	holder "$one" "flock ex 0 0 $file"
	says "$two" got try posix ex 0 0 "$file"
	let_go "$one"
	holder "$one" "posix ex 100 50 $file"
	says "$two" got try posix ex 0 100 "$file"
	says "$two" got try ofd ex 150 0 "$file"
	says "$two" EAGAIN try ofd sh 149 1 "$file"
	pid=$(on "$one" 'pgrep -x locks' </dev/null)
	says "$one" "ex 100 50 $pid" get sh 0 0 "$file"
	says "$two" "ex 100 50 -$pid" get sh 0 0 "$file"
	says "$two" free get ex 150 0 "$file"
	let_go "$one"
	says "$two" free get ex 0 0 "$file"
	passed "locks of ranges work between $one and $two, and F_GETLK names the holder"
}

step "mutual exclusion between systems"
while read -r one two <&3; do excludes "$one" "$two"; done 3< <(ring)

one=${systems[0]} two=${systems[-1]}
step "processes that wait for a lock"
for kind in posix ofd flock; do
	holder "$one" "$kind ex 0 0 $file"
	on "$two" "/root/locks wait $kind ex 0 0 $file" </dev/null >"$RIG_DIR/waited" &
	waiter=$!
	sleep 1
	kill -0 "$waiter" || fail "$kind: $two did not wait"
	let_go "$one"
	wait "$waiter"
	same "$kind: the waiter gets the lock when its holder exits" got "$(<"$RIG_DIR/waited")"
done
on "$two" "/root/locks read posix 20000 $file & /root/locks read posix 20000 $file &
	/root/locks read posix 20000 $file & wait" </dev/null &
readers=$!
sleep 2
start=$EPOCHSECONDS
says "$one" got wait posix ex 0 0 "$file"
[[ $((EPOCHSECONDS - start)) -lt 15 ]] || fail "a writer waited 15 s or longer beside readers"
passed "a writer gets the lock beside readers after $((EPOCHSECONDS - start)) s"
on "$two" 'pkill -x locks' </dev/null || true
wait "$readers" || true

step "a deadlock between two systems"
on "$one" "/root/locks cross $file 1 2 3000" </dev/null >"$RIG_DIR/cross1" &
crossing=$!
sleep 1
on "$two" "/root/locks cross $file 2 1 4000" </dev/null >"$RIG_DIR/cross2" || true
wait "$crossing"
same "one of the two processes gets EDEADLK" $'first\nEDEADLK\nfirst\ngot' "$(cat "$RIG_DIR/cross2" "$RIG_DIR/cross1")"

step "a counter that all systems increase"
n=$(scaled 50 200 3000)
for kind in posix ofd flock; do
	on "$one" "echo 0 >$file" </dev/null
	for system in "${systems[@]}"; do
		on "$system" "/root/locks count $kind $n $file & /root/locks count $kind $n $file & wait" \
			</dev/null &
	done
	wait
	same "$kind: the counter has every increase" $((2 * ${#systems[@]} * n)) "$(on "$two" "cat $file" </dev/null)"
done

step "a lock whose holder's system loses power"
holder "$two" "posix ex 0 0 $file"
says "$one" EAGAIN try posix sh 0 0 "$file"
kill_guest "$two"
says "$one" got wait posix ex 0 0 "$file"
start_guest "$two"
put "$compiled/locks" /root/locks "$two"
says "$two" got wait posix ex 0 0 "$file"
says "$one" got wait flock ex 0 0 "$file"
passed "the lock of the dead system can be taken"

# All systems insert rows, each in its own transactions. WAL also shares an index by mmap.
rows=$(scaled 8 60 1000)
for mode in delete wal; do
	step "sqlite, journal_mode=$mode"
	db=/mnt/sg/$mode.sqlite
	on "$one" "sqlite3 $db 'pragma journal_mode=$mode; create table t(who text, n int);
		create index i on t(n)'" </dev/null >/dev/null
	for system in "${systems[@]}"; do
		on "$system" "for i in \$(seq $rows); do
			sqlite3 -cmd '.timeout 60000' $db \"begin immediate; insert into t values('$system', \$i);
				update t set n = n + 0 where who = '$system'; commit\" || exit 1
		done" </dev/null &
	done
	wait
	same "the table has all rows" $((${#systems[@]} * rows)) "$(on "$one" "sqlite3 $db 'select count(*) from t'" </dev/null)"
	same "the database is sound" ok "$(on "$two" "sqlite3 $db 'pragma integrity_check'" </dev/null)"
done

finish
