#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Shared semaphores between two guests. Counters stay exact over both interfaces while holders are
# killed. When a thread, a process or a guest dies with a lock, the next holder gets an error. Each
# invalid call has its own message. Forged values do no harm. A waiter uses almost no processor
# time.
#
# rig: --guests 2 --size 256M --mem 384M
# test: walk
# test-rig: --guests 2 --size 128M --mem 384M --pkgs "acl attr sqlite3"
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/sem" "$root/e2e/programs/sem.c" "$root"/kernel/lib/*.c || fail "sem.c does not compile"
for guest in g1 g2; do put "$work/sem" /root/sem "$guest"; done

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
# make NAME OPTION...: makes an object.
make() { at g1 "stargate-sem create $* && echo made" >/dev/null; }
# both WHAT COMMAND1 COMMAND2: runs the commands in g1 and g2 at the same time.
both() {
	local first
	on g1 "$2" >"$work/1" 2>&1 </dev/null & first=$!
	on g2 "$3" >"$work/2" 2>&1 </dev/null || fail "$1: g2: $(cat "$work/2")"
	wait "$first" || fail "$1: g1: $(cat "$work/1")"
	passed "$1"
}
# held GUEST ARGUMENT...: runs `sem ARGUMENT` in the guest, and returns when it has its lock.
held() {
	local guest=$1
	shift
	at "$guest" "rm -f /tmp/held; setsid /root/sem $* >/tmp/held 2>&1 </dev/null &
		for i in \$(seq 600); do grep -q held /tmp/held && exit 0; sleep 0.05; done
		cat /tmp/held; exit 1"
}

step "objects and their names"
make sem-a --value 3
same "the other guest sees the change" 'semaphore  600 3                      sem-a' "$(at g2 'stargate-sem list')"
refuses "--exclusive refuses an existing object" 'already' g2 'stargate-sem create sem-a --exclusive'
refuses "a missing object is reported" 'no object of that name' g2 'stargate-sem show nobody'
refuses "an invalid name is refused" 'name is invalid .1 to 255 bytes, no slash' g2 'stargate-sem create a/b'
refuses "a name that is too long is refused" 'at most 255' g2 "stargate-sem create $(printf 'x%.0s' {1..256})"
refuses "an object of another kind is refused" 'of another kind' g2 'stargate-sem lock sem-a -- true'
refuses "a path on another file system is refused" 'not on a mounted StargateFS' g2 'stargate-sem --volume /tmp list'
refuses "an absent path is refused" 'not on a mounted StargateFS' g2 'stargate-sem --volume /nowhere list'
refuses "a user without permission cannot use an object" 'do not permit' g2 'setpriv --reuid 1000 --clear-groups stargate-sem post sem-a'
refuses "a user without permission cannot create an object" 'do not permit' g2 'setpriv --reuid 1000 --clear-groups stargate-sem create b'
refuses "a user without permission cannot remove an object" 'do not permit' g2 'setpriv --reuid 1000 --clear-groups stargate-sem rm sem-a'
refuses "a read-only mount refuses a new object" 'read-only' g2 'mount -o remount,ro /mnt/sg && stargate-sem create b'
at g2 'mount -o remount,rw /mnt/sg'
for i in 1 2 3; do at g2 'stargate-sem wait sem-a'; done
refuses "a semaphore with value 0 cannot be acquired" 'at this moment' g1 'stargate-sem wait -t 0 sem-a'
[[ $(on g1 'stargate-sem wait -t 0.2 sem-a 2>/dev/null; echo $?' </dev/null) == 124 ]] ||
	fail "a wait that reaches its limit does not have the status 124"
both "a guest can acquire a semaphore that the other guest releases" 'sleep 0.5; stargate-sem post sem-a' 'stargate-sem wait -t 30 sem-a'
at g1 'stargate-sem rm sem-a && stargate-sem create gone --last-user'
same "objects that are removed, or lose their last user, are not listed" '' "$(at g2 'stargate-sem list')"

step "a counter that is increased by both interfaces"
make m --type mutex
n=$(scaled 1000 5000 100000)
for faces in "user user" "kernel user" "kernel kernel"; do
	read -r one two <<<"$faces"
	at g1 'rm -f /mnt/sg/n'
	both "processes in both guests count to $n each, by the interfaces $one and $two" \
		"for i in 1 2; do /root/sem count m $one /mnt/sg/n $n & done; wait -n && wait -n" \
		"for i in 1 2; do /root/sem count m $two /mnt/sg/n $n & done; wait -n && wait -n"
	same "the counter has every increase ($one, $two)" "$((4 * n)) $((4 * n))" "$(at g1 '/root/sem words /mnt/sg/n')"
done
at g1 'for f in user kernel; do
	/root/sem errors m && /root/sem thread m $f && /root/sem fork m $f || exit 1; done'
passed "errors, threads and children pass their checks"
at g2 '/root/sem handle m'
passed "the locks of a descriptor pass their checks"

step "holders that are killed"
at g1 'rm -f /mnt/sg/n'
kills=$(scaled 5 10 200)
on g1 "for i in \$(seq $kills); do /root/sem forever m \$([ \$((i % 2)) = 0 ] && echo user || echo kernel) \
	/mnt/sg/n & sleep 0.1; kill -9 \$!; wait \$!; done 2>/dev/null; true" >"$work/1" 2>&1 </dev/null & killer=$!
on g2 "/root/sem count m user /mnt/sg/n $n" </dev/null || fail "counting failed in g2 while holders in g1 were killed"
wait "$killer" || fail "$(cat "$work/1")"
same "the killed processes report no error" "" "$(cat "$work/1")"
at g2 '/root/sem count m kernel /mnt/sg/n 1 && set -- $(/root/sem words /mnt/sg/n) && [ $1 = $2 ]'
passed "the counters agree after $kills kills"
for face in user kernel; do
	held g1 exec m $face
	at g2 '/root/sem count m kernel /mnt/sg/n 1'
	passed "exec releases locks ($face)"
	at g1 'pkill -KILL sleep || true'
done

step "locks in shell scripts"
same "stargate-sem exits with the status of its command" 7 "$(on g1 'stargate-sem lock m -- sh -c "exit 7"; echo $?' </dev/null)"
same "the exit status of stargate-sem shows the signal that killed its command" 143 "$(on g1 'stargate-sem lock m -- sh -c "kill -TERM \$\$"; echo $?' </dev/null)"
at g1 'setsid stargate-sem lock m -- sleep 600 >/dev/null 2>&1 </dev/null & sleep 1'
refuses "a mutex that is locked is refused" 'at this moment' g2 'stargate-sem lock -t 0 m -- true'
at g2 'stargate-sem show m' >"$work/show"
grep -qE "owner_system.*$(at g1 hostname)" "$work/show" || fail "stargate-sem show does not name the owner: $(cat "$work/show")"
said=$(at g2 'stargatectl top /mnt/sg | tail -n +2')
[[ $said == *" locked "*"stargate-sem@$(at g1 hostname)  m" ]] || fail "stargatectl top: $said"
passed "stargatectl top shows the owner: $said"
at g1 'pkill -KILL stargate-sem; sleep 0.5; ! pgrep -x sleep'
passed "the command ends with its parent"
said=$(on g2 'stargate-sem lock -t 10 m -- sh -c "echo \$STARGATE_OWNER_DIED"' 2>&1 </dev/null) || fail "$said"
[[ $said == *'may be inconsistent'*1 ]] || fail "the next owner does not get the error: $said"
passed "the next owner gets the error"

step "processes that wait"
make s
for face in user kernel; do
	at g1 "/root/sem late s $face && /root/sem signal s $face"
	passed "waits end by their limit and by signals ($face)"
done
make b --type barrier --value 2
both "processes of both guests meet at a barrier" "/root/sem meet b user /mnt/sg/b 0 $((n / 50))" "/root/sem meet b kernel /mnt/sg/b 1 $((n / 50))"
make rw --type rwlock
both "readers and writers of both guests exclude each other" \
	"/root/sem write rw user /mnt/sg/rw $((n / 5)) & /root/sem read rw kernel /mnt/sg/rw $((n / 5)) && wait -n" \
	"/root/sem read rw user /mnt/sg/rw $((n / 5)) & /root/sem write rw kernel /mnt/sg/rw $((n / 5)) && wait -n"
both "a producer passes bytes through a ring to a consumer" "/root/sem produce ring user /mnt/sg/ring $((n * 200))" \
	"/root/sem consume ring user /mnt/sg/ring $((n * 200))"
same "the consumer gets all bytes of the producer" "$(cat "$work/1")" "$(cat "$work/2")"
on g1 'stargate-sem wait s' >/dev/null 2>&1 </dev/null & waiter=$!
used='cat /proc/$(pgrep stargate-sem)/stat /proc/$(pgrep -f stargatefs-sem | head -1)/stat | cut -d" " -f14,15 | tr " \n" "++"; echo 0'
at g1 'for i in $(seq 100); do pgrep stargate-sem >/dev/null && exit 0; sleep 0.1; done; exit 1'
sleep 1
before=$(($(at g1 "$used")))
sleep 4
after=$(($(at g1 "$used")))
[[ $((after - before)) -le 60 ]] || fail "a waiting process used $((after - before)) of 400 ticks"
passed "a waiting process uses only $((after - before)) of 400 ticks"
at g2 'stargate-sem post s'
wait "$waiter" || fail "the waiting process is not woken"

step "forged words, and a guarded object"
make f --type mutex
make frw --type rwlock
at g2 '/root/sem forge f && /root/sem forge frw'
passed "forged words do no harm"
make k --type mutex --guarded
at g2 '/root/sem deny k && /root/sem count k user /mnt/sg/n 10'
passed "a guarded object cannot be mapped"

step "a guest that dies while it holds locks"
held g1 hold m user
held g1 hold-write rw kernel
kill_guest g1
start=$EPOCHREALTIME
said=$(on g2 'stargate-sem lock -t 20 m -- true && stargate-sem lock -t 20 rw -- true' 2>&1 </dev/null) || fail "$said"
took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", (b - a) * 1000 }')
[[ $(grep -c 'inconsistent' <<<"$said") -eq 2 ]] || fail "the next owner of both locks does not get the error: $said"
[[ $took -le 4000 ]] || fail "the next owner got both locks after $took ms, not within 4 s"
passed "the next owner of both locks gets the error after $took ms"
at g2 '/root/sem count m user /mnt/sg/n 100 && stargate-sem rm m'
start_guest g1
at g1 'stargate-sem lock -t 0 rw -- true'
passed "the restarted guest can lock the object of the dead guest"

finish
