#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The host fences systems. In this scenario the systems are processes instead of VMs. Each process
# maps .stargate/region under the name of a VM, and joins the volume by calls of the engine. Only
# the module guards the processes. A killed process is fenced immediately, and its locks become
# free. A stopped process is not fenced. If a process has read access only, or is not the last one
# of its VM, its end causes no fence. A process that is fenced while it runs can no longer read a
# byte.
#
# rig: --size 64M --pages
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

region=/mnt/sg/.stargate/region
a=aaaaaaaa-0000-4000-8000-000000000001
b=bbbbbbbb-0000-4000-8000-000000000002
project=$(dirname "$0")/../..
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$project" build/tests/machine >&2 ||
	fail "the program machine does not compile"
program region
put "$project/build/tests/machine" /root/machine

# start NAME: starts a process in place of a VM. The process reads orders from /run/NAME.in.
start() {
	on g1 "rm -f /run/$1.in && mkfifo /run/$1.in && : >/run/$1.out
		(exec 9<>/run/$1.in; exec /root/machine <&9 >/run/$1.out 2>&1) &
		echo \$! >/run/$1.pid" </dev/null
}

# tell NAME ORDER [ANSWER]: gives the order to the process, and checks its answer (`ok`).
tell() {
	local said
	said=$(on g1 "n=\$(wc -l </run/$1.out); echo '$2' >/run/$1.in
		for i in \$(seq 1000); do
			[ \$(wc -l </run/$1.out) -eq \$n ] || break
			sleep 0.01
		done; tail -n +\$((n + 1)) /run/$1.out" </dev/null)
	[[ $said == "${3:-ok}" ]] || fail "$1: $2: says '$said', not '${3:-ok}'"
	passed "$1: $2: $said"
}

# signal SIGNAL NAME: sends the signal to the process.
signal() { on g1 "kill -$1 \$(cat /run/$2.pid)" </dev/null; }

# gone NAME: waits until the process has ended.
gone() {
	on g1 "for i in \$(seq 500); do
		grep -qs '^State:.[^ZX]' /proc/\$(cat /run/$1.pid)/status || exit 0
		sleep 0.02; done; exit 1" </dev/null || fail "the process of $1 has not ended within 10 s"
}

# who: prints the names and states of all systems from the volume.
who() {
	on g1 "stargatectl --json systems $region" </dev/null | python3 -c 'import json, sys
print(" ".join(sorted(s["name"][-8:] + ":" + s["state"] for s in json.load(sys.stdin)["systems"]
	if s["name"].startswith("machine-"))))'
}

# of KEY NAME: prints the value of KEY for the system NAME.
of() {
	on g1 "stargatectl --json systems $region" </dev/null | python3 -c 'import json, sys
print([s.get(sys.argv[1]) for s in json.load(sys.stdin)["systems"] if s["name"] == sys.argv[2]][0])' "$1" "$2"
}

# host_wants: makes the host wait for the rename lock. host_has WHAT: checks that the host got the
# lock within 2 s of the time in /run/killed, which is just before the command that freed the lock.
# A busy host may take longer, by ten times the time of two renames without a wait.
on g1 'mkdir -p /mnt/sg/one/x /mnt/sg/two'
host_wants() {
	on g1 'cd /mnt/sg
		if [ -d one/x ]; then mv one/x two/; else mv two/x one/; fi
		echo "${EPOCHREALTIME/[.,]/}" >/run/got' </dev/null &
	wanting=$!
	sleep 1
	kill -0 "$wanting" || fail "the host got a lock that another system holds"
}
host_has() {
	local took renames i
	for ((i = 0; i < 100; i++)); do
		kill -0 "$wanting" 2>/dev/null || break
		sleep 0.2
	done
	[[ $i -lt 100 ]] || fail "$1: the host still waits for the lock after 20 s"
	wait "$wanting" || fail "$1: the host's rename failed"
	took=$(on g1 'echo $((($(cat /run/got) - $(cat /run/killed)) / 1000))' </dev/null)
	renames=$(on g1 'cd /mnt/sg; from=one to=two; [ -d one/x ] || from=two to=one
		start=${EPOCHREALTIME/[.,]/}; mv $from/x $to/ && mv $to/x $from/ &&
			echo $(((${EPOCHREALTIME/[.,]/} - start) / 1000))' </dev/null) || fail "$1: two renames without a wait failed"
	[[ $took -ge 0 && $took -lt $((2000 + 10 * renames)) ]] ||
		fail "$1: too long: $took ms, while two renames take $renames ms"
	passed "$1: $took ms; two renames take $renames ms"
}
# killed NAME: stores the time in /run/killed, and kills the process.
now='echo "${EPOCHREALTIME/[.,]/}" >/run/killed'
killed() { on g1 "$now; kill -KILL \$(cat /run/$1.pid)" </dev/null; }

step "a system that is killed during a commit while it holds a lock"
start a
tell a "join $region@$a $a 1"
start b
tell b "join $region@$b $b 1"
same "both systems are alive" "aaaaaaaa:alive bbbbbbbb:alive" "$(who)"
same "the host guards both systems" True "$(of guarded machine-aaaaaaaa)"
same "the host has the process of the system" "$(on g1 'cat /run/a.pid')" "$(of held_by machine-aaaaaaaa)"
word=0x13f8 # hot.reserved2: no other code stores there
tell a "mkdir 0 before"
tell a "take 0"
tell a "record 0 $word 77"
host_wants
killed a
host_has "the host gets the lock after a SIGKILL of its holder"
tell b "word 0 $word" 'ok 77' # the host replayed the record before the lock became free
tell b "mkdir 0 after"
same "one system is left" "bbbbbbbb:alive" "$(who)"
holds "the log reports that the system was fenced" 'dmesg | grep "machine-aaaaaaaa (slot [0-9]*): its VM has ended: fenced"'

step "a system that joins at once after its end"
for life in 2 3 4; do
	start a
	tell a "join $region@$a $a $life"
	on g1 'kill -KILL $(cat /run/a.pid)' </dev/null
done
start a
tell a "join $region@$a $a 5"
tell a "mkdir 0 again"
same "the next instance of the system is alive" "aaaaaaaa:alive bbbbbbbb:alive" "$(who)"

step "a system that is stopped for longer than the lease"
holds "the lease is set to 2 s" "stargatectl tune $region --lease 2"
tell a "take 0"
signal STOP a
host_wants
sleep 5
kill -0 "$wanting" || fail "the host fenced a stopped system"
same "the stopped system is suspected and guarded" "suspected True" "$(of state machine-aaaaaaaa) $(of guarded machine-aaaaaaaa)"
signal CONT a
tell a "mkdir 0 stopped"
on g1 "$now" </dev/null
tell a "give 0"
host_has "the host gets the lock after its holder was continued"
holds "the lease is switched off" "stargatectl tune $region --lease never"

step "processes that are not the last one with write access"
# hold VERB NAME: starts a process that maps region for VM a until /run/enough.NAME exists. VERB is
# an order of programs/region.c.
hold() {
	on g1 "/root/region $1 $region@$a /run/enough.$2 >/run/held 2>&1 </dev/null &
		until [ -s /run/held ]; do sleep 0.05; done; rm /run/held" </dev/null
}
holders() { on g1 "grep -c $a /sys/fs/stargatefs/pmem0/holders" </dev/null || true; }
until_holders() {
	for ((i = 0; i < 100; i++)); do
		[[ $(holders) -ne $1 ]] || return 0
		sleep 0.1
	done
	fail "$(holders) processes have mapped region for VM a, not $1"
}
hold look reader
hold hold second
hold child third
same "four processes have mapped region for one VM" 4 "$(holders)"
on g1 'touch /run/enough.second' </dev/null
until_holders 3
on g1 'touch /run/enough.third' </dev/null
until_holders 2
tell a "mkdir 0 still"
on g1 'rm /run/enough.*' </dev/null
hold hold second
hold hold fourth
tell a "take 0"
host_wants
signal KILL a
sleep 1
kill -0 "$wanting" || fail "the system was fenced while other processes of its VM may store"
passed "a system is not fenced while a process of its VM may store"
on g1 "$now; touch /run/enough.second /run/enough.fourth" </dev/null
host_has "the host gets the lock after the end of the VM's last writer, while a reader remains"
until_holders 1
on g1 'touch /run/enough.reader' </dev/null
until_holders 0

step "the end of a process with read access only"
start a
tell a "join $region@$a $a 6"
on g1 'rm -f /run/enough.*' </dev/null
hold look reader
on g1 'touch /run/enough.reader' </dev/null
until_holders 1
tell a "mkdir 0 read"
same "the system is still live" "aaaaaaaa:alive bbbbbbbb:alive" "$(who)"

step "a running system that is fenced"
refused "the host cannot fence itself" 'is this system itself' "stargatectl systems $region fence 0"
refused "a system that does not exist cannot be fenced" "no live system 'nobody'" "stargatectl systems $region fence nobody"
tell a "take 0"
host_wants
refused "a system with a moving heartbeat is not fenced without --force" 'its heartbeat moves.*--force' "stargatectl systems $region fence machine-aaaaaaaa"
tell a "mkdir 0 refused"
on g1 "rm -f /run/enough.again; /root/region again $region@$a /run/enough.again >/run/again 2>&1 </dev/null &
	until grep -q mapped /run/again; do sleep 0.05; done" </dev/null
said=$(on g1 "$now; stargatectl systems $region fence $a --force" </dev/null) || fail "not fenced: $said"
grep -q 'machine-aaaaaaaa (slot [0-9]*): fenced' <<<"$said" || fail "fence says: $said"
host_has "the host gets the lock after a forced fence of its holder"
gone a
passed "the fenced process can access no byte of the volume, and ends"
# The process may still run a guest that has not detected the fence. If the process opens region
# again, it gets no access.
holds "a process whose access was revoked cannot map region once more" 'touch /run/enough.again
	for try in $(seq 100); do pgrep -x region >/dev/null || break; sleep 0.1; done
	cat /run/again
	grep -q "Operation not permitted" /run/again && ! grep -q "mapped again" /run/again'
same "a process without a mapping is not listed" 0 "$(holders)"
same "the other system continues" "bbbbbbbb:alive" "$(who)"
tell b "mkdir 0 goeson"
start a
tell a "join $region@$a $a 7"
tell a "mkdir 0 back"

step "more VMs than a volume has slots"
said=$(on g1 "/root/region many $region 20 2>/dev/null" </dev/null)
echo "   $said" | xargs
[[ $said =~ ([0-9]+)" of one"[[:space:]]+([0-9]+)" in all" ]] || fail "many: $said"
same "one process can map region for 16 VMs" 16 "${BASH_REMATCH[1]}"
((BASH_REMATCH[2] > 200 && BASH_REMATCH[2] <= 256)) || fail "all processes together have mapped region for ${BASH_REMATCH[2]} VMs"
passed "all processes together can map region for ${BASH_REMATCH[2]} VMs"
holds "the list of holders has no entry of an ended process" '! grep -q dddddddd /sys/fs/stargatefs/pmem0/holders'

same "a process with 300 children leaves room in the list for other processes" mapped "$(on g1 "/root/region forks $region 300" </dev/null)"
holds "the list of holders has no entry of an ended child" '! grep -q dddddddd /sys/fs/stargatefs/pmem0/holders'

step "a process that maps region under no VM's name"
start c
tell c "join $region $a 8"
signal KILL c
gone c
same "the death of an unnamed process fences no system" 2 "$(who | tr ' ' '\n' | grep -c aaaaaaaa)"
signal KILL a
gone a
same "the end of a VM's process fences all systems of that VM" "bbbbbbbb:alive" "$(who)"
start c
tell c "join $region cccccccc-0000-4000-8000-000000000003 1"
tell c "take 0"
host_wants
tell c "still 0"
refused "a system whose process is unknown is not fenced without --force" 'no process here is known to hold.*--force' \
	"stargatectl systems $region fence machine-cccccccc"
kill -0 "$wanting" || fail "the refused command has fenced the system"
tell c "go 0"
# lapsed: prints the slots that may still store after their fence (sg_hot.lapsed).
lapsed() { od -An -t u8 -N 8 -j $((4096 + 168)) "$RIG_RANGE" | tr -d ' '; }
same "no system that was fenced so far may still store" 0 "$(lapsed)"
slot=$(of slot machine-cccccccc)
holds "the system is fenced with --force" "$now; stargatectl systems $region fence machine-cccccccc --force"
same "the system may still store, so its lapse begins" $((1 << slot)) "$(lapsed)"
host_has "the host gets the lock after the fence with --force"
tell c "mkdir 0 late" 'error mkdir: Input/output error'
for one in b c; do signal KILL "$one"; gone "$one"; done
finish
