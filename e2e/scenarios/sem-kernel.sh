#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Shared semaphores for other modules. The module sem_user is built against the exports of
# stargatefs.ko (kernel/tests/sem_user). It acquires and releases semaphores at the same time as
# processes and kernel threads of two guests. When the module waits, another guest wakes it. When an
# owner of a semaphore dies, also a kernel thread, the module gets an error. No count is lost.
#
# rig: --guests 2 --size 128M --mem 384M
# maps: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
module=$("$root/kernel/tests/sem_user/build" "$SG_KERNEL")
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/sem" "$root/e2e/programs/sem.c" "$root"/kernel/lib/*.c || fail "sem.c does not compile"
for guest in g1 g2; do
	put "$work/sem" /root/sem "$guest"
	on "$guest" 'cat >/root/sem_user.ko && insmod /root/sem_user.ko' <"$module" || fail "$guest: insmod"
done

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
# by_module GUEST LINE...: gives the lines to the module from one process, until one fails. The
# shell runs a line "!COMMAND". In such a command, `try LINE` gives a line whose error is ignored.
by_module() {
	local guest=$1 line script='try() { echo "$1" 2>/dev/null >&3 || true; }; exec 3>/proc/sem_user'
	shift
	for line in "$@"; do
		case $line in
		'!'*) script+=" && ${line#!}" ;;
		*) script+=" && echo '$line' >&3" ;;
		esac
	done
	on "$guest" "$script" </dev/null
}
# does WHAT GUEST LINE...: checks that all lines succeed.
does() {
	local what=$1 said
	shift
	said=$(by_module "$@" 2>&1) || fail "$what: $said"
	passed "$what"
}
# gives WHAT ERROR GUEST LINE...: checks that the last line fails with that error.
gives() {
	local what=$1 error=$2 said
	shift 2
	said=$(by_module "$@" 2>&1) && fail "$what: no error"
	[[ $said == *"write error: $error"* ]] || fail "$what: '$said', not '$error'"
	passed "$what: $error"
}

step "calls of the module"
refused "stargatefs.ko cannot be unloaded while sem_user uses it" 'in use by: sem_user' 'rmmod stargatefs'
does "the module can make, lock and unlock a mutex" g1 'make mutex m 0' 'lock 0' 'unlock'
same "other systems see the change" 'mutex      600 free                   m' "$(at g2 'stargate-sem list')"
gives "a missing object is reported" 'No such file or directory' g2 'open mutex nobody'
gives "an object of another kind is refused" 'Protocol wrong type for socket' g2 'open semaphore m'
gives "an unlock without a lock is refused" 'Operation not permitted' g2 'open mutex m' 'unlock'
gives "a lock without an object is refused" 'Transport endpoint is not connected' g2 'lock 0'
gives "a post of a mutex is refused" 'Invalid argument' g2 'open mutex m' 'post'
gives "a second lock by the same owner is refused" 'Resource deadlock avoided' g2 'make mutex twice 0' 'lock 0' 'lock 0'
gives "a repair without a dead owner is refused" 'Invalid argument' g2 'make mutex nobody-died 0' 'lock 0' 'consistent'

step "owners that die"
gives "the next owner in the same guest gets the error" 'Owner died' g1 'open mutex twice' 'lock 5000'
gives "a further owner gets the error, because the mutex was not repaired" 'Owner died' g2 'open mutex twice' 'lock 5000'
said=$(at g1 'stargate-sem lock -t 5 twice -- true 2>&1')
[[ $said == *'inconsistent'* ]] || fail "a process does not get the error: $said"
passed "a process that locks the mutex gets the error"
does "stargate-sem shows a kernel thread as the owner" g1 'open mutex m' 'hold 0' \
	'!stargate-sem show m | grep -q "owner_command.*sem_user-hold"' 'free' 'lock 1000' 'unlock'
gives "a locked mutex is refused" 'Resource temporarily unavailable' g1 'make mutex held 0' 'hold 0' 'lock 0'
gives "the next owner gets the error after the thread's end" 'Owner died' g2 'make mutex left 0' 'hold 0' 'abandon' 'lock 5000'
gives "the next owner gets the error after the second owner's end" 'Owner died' g1 'open mutex left' 'lock 5000'
does "the mutex is consistent after its repair" g2 'open mutex left' '!try "lock 5000"' 'consistent' 'unlock' 'lock 0' 'unlock'
gives "a mutex that was not repaired is unusable" 'State not recoverable' g2 'open mutex left' 'hold 0' 'abandon' '!try "lock 5000"' \
	'unlock' 'lock 0'
gives "the next writer of a reader-writer lock gets the error" 'Owner died' g1 'make rwlock rw 0' 'hold-write 0' 'abandon' \
	'write 5000'

step "waits of the module"
start=$EPOCHREALTIME
gives "a wait ends after its limit" 'Connection timed out' g1 'make semaphore s 0' 'wait 300'
took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", (b - a) * 1000 }')
[[ $took -ge 300 ]] || fail "the wait ended after $took ms, before its limit of 300 ms"
# woken WHAT NAME OPEN LINE COMMAND...: checks that g1's module waits in LINE until COMMAND has run.
woken() {
	local what=$1 name=$2 waiter
	by_module g1 "$3" "$4" >"$work/said" 2>&1 & waiter=$!
	shift 4
	at g2 "for i in \$(seq 200); do
		stargate-sem stat $name | grep -q '\"systems_waiting\": 1' && exit 0; sleep 0.05; done; exit 1"
	"$@" || fail "$what: $*"
	wait "$waiter" || fail "$what: $(cat "$work/said")"
	passed "$what"
}
woken "a process of the other guest wakes the module" s 'open semaphore s' 'wait 30000' at g2 'stargate-sem post s'
woken "the other guest's module wakes the module" s 'open semaphore s' 'wait 30000' by_module g2 'open semaphore s' 'post'
at g1 'stargate-sem create e --type event'
woken "an event counter wakes the module" e 'open event e' 'await 3 30000' by_module g2 'open event e' 'advance 3'
at g1 'stargate-sem create b --type barrier --value 2'
woken "the last arrival at a barrier wakes the module" b 'open barrier b' 'meet 30000' by_module g2 'open barrier b' 'meet 30000'
on g1 'exec 3>/proc/sem_user; echo "open semaphore s" >&3; echo $$ >/tmp/pid; exec sh -c "echo wait 60000 >&3"' \
	>/dev/null 2>&1 </dev/null & waiter=$!
at g1 'for i in $(seq 100); do [ -s /tmp/pid ] && break; sleep 0.1; done
	sleep 1; kill -KILL $(cat /tmp/pid)'
! wait "$waiter" || fail "a process that waits in the module cannot be killed"
passed "a waiting process can be killed"

step "a counter that processes and kernel threads of both guests increase"
n=$(scaled 300 2000 20000)
at g1 '/root/sem count m user /mnt/sg/n 1' # makes the file of the counter
on g1 "exec 3>/proc/sem_user; echo 'open mutex m' >&3 && echo 'count 3 $n /mnt/sg/n' >&3" >"$work/1" 2>&1 </dev/null & one=$!
on g2 "exec 3>/proc/sem_user; echo 'open mutex m' >&3 && echo 'count 2 $n /mnt/sg/n' >&3" >"$work/2" 2>&1 </dev/null & two=$!
on g1 "/root/sem count m user /mnt/sg/n $n" >"$work/3" 2>&1 </dev/null & three=$!
on g2 "/root/sem count m kernel /mnt/sg/n $n" >"$work/4" 2>&1 </dev/null & four=$!
for who in "$one" "$two" "$three" "$four"; do
	wait "$who" || fail "a counting process failed: $(cat "$work"/[1234])"
done
same "the counter has every increase" "$((7 * n + 1)) $((7 * n + 1))" "$(at g2 '/root/sem words /mnt/sg/n')"

step "a guest that dies while it holds the mutex"
at g1 'setsid sh -c "exec 3>/proc/sem_user; echo open mutex m >&3; echo hold 0 >&3; echo held >/tmp/held; sleep 600" >/dev/null 2>&1 </dev/null &
	for i in $(seq 100); do grep -qs held /tmp/held && exit 0; sleep 0.05; done; exit 1'
gives "a locked mutex is refused" 'Resource temporarily unavailable' g2 'open mutex m' 'lock 0'
kill_guest g1
start=$EPOCHREALTIME
gives "the next owner gets the error after the guest's death" 'Owner died' g2 'open mutex m' 'lock 20000'
took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", (b - a) * 1000 }')
[[ $took -le 4000 ]] || fail "the next owner got the mutex after $took ms, not within 4 s"
passed "the next owner gets the lock after $took ms"

at g2 'rmmod sem_user'
finish
