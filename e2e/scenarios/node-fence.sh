#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node's host fences its VMs without a guard process, because its module knows which VMM holds the
# volume for which VM. The host fences a VM immediately when the VMM is killed, and does not fence a
# stopped VM. A fenced VM can store nothing more, even while it runs. A guest's kernel cannot write
# to read-only memory.
#
# node: --guests 2 --size 128M --no-guard
# node-kernels: 6.12 7.2
# limit: 900
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

region=/mnt/sg/.stargate/region

# here WHAT COMMAND: checks that COMMAND succeeds on the host.
# never WHAT PATTERN COMMAND: checks that COMMAND fails on the host with PATTERN in its output.
here() { on host "$2" >"$RIG_DIR/said" 2>&1 </dev/null || fail "$1: $(cat "$RIG_DIR/said")"; passed "$1"; }
never() {
	! on host "$3" >"$RIG_DIR/said" 2>&1 </dev/null || fail "$1: the command succeeded: $(cat "$RIG_DIR/said")"
	grep -qE -- "$2" "$RIG_DIR/said" || fail "$1: the output does not match '$2': $(cat "$RIG_DIR/said")"
	passed "$1"
}
pid_of() { on host "cat /run/rig/$1.pid" </dev/null; }

# of KEY NAME: prints the value of KEY for a system, from the host's tool.
of() {
	on host "stargatectl --json systems $region" </dev/null | python3 -c 'import json, sys
print(*[s.get(sys.argv[1]) for s in json.load(sys.stdin)["systems"] if s["name"] == sys.argv[2]])' "$1" "$2"
}

# mark NAME: stores the host's time under NAME, in us.
# since FIRST SECOND: prints the difference of two stored times, in ms.
mark() { on host "echo \"\${EPOCHREALTIME/[.,]/}\" >/run/$1" </dev/null; }
since() { on host "echo \$(((\$(cat /run/$2) - \$(cat /run/$1)) / 1000))" </dev/null; }

# guarded_at GUEST: waits until `systems` shows the guest as guarded. The guest is guarded while the
# host checks the VM twice within a second. A busy or emulated host may check less often.
guarded_at() {
	local try
	for ((try = 0; try < 10; try++)); do
		[[ $(of guarded "$1") != True ]] || { passed "$1: the host guards the VM"; return; }
	done
	fail "$1: the host does not guard the VM"
}

step "holders of the volume"
for guest in g1 g2; do
	same "$guest: stargatectl names the process of the VMM" "$(pid_of $guest)" "$(of held_by $guest)"
	guarded_at "$guest"
done
never "the module cannot be unloaded while a VMM maps the volume" 'in use' 'rmmod stargatefs'
never "the volume cannot be unmounted while a VMM maps it" 'busy' 'umount /mnt/sg'
never "umount -f is refused while a VMM maps the volume" 'busy' 'umount -f /mnt/sg'
here "the log names the process that prevents the unmount" "dmesg | grep 'stays mounted: process $(pid_of g1) '"

step "read-only memory"
compile tinyvm
put "$compiled/tinyvm" /root/tinyvm host
on host 'head -c 64K /dev/zero | tr "\0" A >/mnt/sg/page && sync /mnt/sg/page'
phys=$("$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" /page 2>/dev/null |
	sed -nE 's/.*"phys": "(0x[0-9a-f]+)", "leaf".*/\1/p' | head -n 1)
[[ -n $phys ]] || fail "stargatectl stat does not print the address of the file"
at=$((phys - RIG_BASE))
# vm HOW: prints the accesses of a VM that has this page, and then the page's first byte.
vm() { on host "/root/tinyvm $1 $region $at 2>&1; head -c 1 /mnt/sg/page" </dev/null | paste -sd' '; }
same "a kernel that stores to read-only memory exits from its VM" \
	"read A mmio A" "$(vm ro)"
said=$(vm lie)
[[ $said == "read A fault A" || $said == "read A mmio A" ]] || fail "a VMM that maps read-only memory as writable gets another result: $said"
passed "a VMM that claims a writable mapping gets no page ($said)"
same "a VM with a writable file may store" "read A stored X" "$(vm rw)"

step "a VMM that is killed"
on g1 'exec 9>/mnt/sg/lock; flock 9; echo $$ >/mnt/sg/has; while :; do
	mkdir /mnt/sg/d.$((n += 1)); done' </dev/null >/dev/null 2>&1 &
holder=$!
here "g1 holds a lock and makes directories" 'until [ -d /mnt/sg/d.9 ]; do sleep 0.1; done'
on host 'exec 9>>/mnt/sg/lock; flock -w 60 9 && echo "${EPOCHREALTIME/[.,]/}" >/run/host.has' </dev/null &
host_waits=$!
on g2 'exec 9>>/mnt/sg/lock; flock -w 60 9' </dev/null &
g2_waits=$!
sleep 2
for waits in "$host_waits" "$g2_waits"; do
	kill -0 "$waits" || fail "another system got the lock that g1 holds"
done
mark killed
kill_guest g1
wait "$host_waits" || fail "the host does not get g1's lock"
wait "$g2_waits" || fail "g2 does not get g1's lock"
wait "$holder" || true
took=$(since killed host.has)
[[ $took -lt 2000 ]] || fail "the host got the lock $took ms after SIGKILL, not within 2 s"
passed "after SIGKILL, another system had the VM's lock in $took ms"
same "the slot of the system is free" "" "$(of state g1)"
here "the log reports the fence of the killed VM" 'dmesg | grep "g1 (slot [0-9]*): its VM has ended: fenced"'
here "the files of the killed VM can be removed" 'rm -r /mnt/sg/d.* /mnt/sg/has'
start_guest g1
same "the restarted VM joins the volume" alive "$(of state g1)"

step "a VMM that is stopped for longer than the lease"
# A busy or emulated host checks the VM more often than every 5 s.
here "the lease is set to 5 s" "stargatectl tune $region --lease 5"
on host "kill -STOP $(pid_of g1)" </dev/null
sleep 12
same "the stopped system is suspected" suspected "$(of state g1)"
guarded_at g1
on host "kill -CONT $(pid_of g1)" </dev/null
on g1 'echo more >/mnt/sg/stopped' </dev/null || fail "g1 has been fenced"
passed "the stopped system was not fenced, and continues"
here "the lease is switched off" "stargatectl tune $region --lease never"

step "a running guest that is fenced"
compile paced
put "$compiled/paced" /root/paced g2
vmm=$(pid_of g2)
on g2 'while :; do echo x >>/mnt/sg/log; sleep 0.05; done' </dev/null >/dev/null 2>&1 &
writer=$!
on g2 '/root/paced /mnt/sg/count 300' </dev/null >/dev/null 2>&1 &
mapper=$!
# written: prints how much g2 has written by calls and in its mapping, as read on the host.
written() { on host 'stat -c %s /mnt/sg/log; od -An -tu4 /mnt/sg/count' </dev/null | xargs; }
# writes_on BEFORE: succeeds if both writers have written more than BEFORE, an output of `written`.
writes_on() {
	local log count more_log more_count
	read -r log count <<<"$1"
	read -r more_log more_count <<<"$(written)"
	[[ $more_log -gt $log && $more_count -gt $count ]]
}
here "g2 writes" 'until [ -s /mnt/sg/log ] && [ -s /mnt/sg/count ]; do sleep 0.1; done'
before=$(written)
for ((i = 0; i < 100; i++)); do
	! writes_on "$before" || break
	sleep 0.2
done
writes_on "$before" || fail "g2 has stopped writing: $before, $(written)"
passed "g2 writes by calls and through a mapping: $before, $(written)"
on g2 'exec 9>/mnt/sg/lock; flock 9; sleep 1000' </dev/null >/dev/null 2>&1 &
holder=$!
here "g2 holds a lock" 'while flock -n /mnt/sg/lock true; do sleep 0.1; done'
never "the host cannot fence itself" 'is this system itself' "stargatectl systems $region fence host"
never "g2 is not fenced without --force while its heartbeat moves" 'its heartbeat moves' "stargatectl systems $region fence g2"
mark word
here "g2 is fenced with --force" "stargatectl systems $region fence g2 --force"
grep -q "^process $vmm (.*), revoked$" "$RIG_DIR/said" || fail "fence says: $(cat "$RIG_DIR/said")"
on host 'flock -w 60 /mnt/sg/lock true; echo "${EPOCHREALTIME/[.,]/}" >/run/host.has' </dev/null
took=$(since word host.has)
[[ $took -lt 2000 ]] || fail "the host got the lock $took ms after the fence command, not within 2 s"
passed "after the fence command, another system had the VM's lock in $took ms"
before=$(written)
sleep 2
same "the system can store nothing more" "$before" "$(written)"
same "g1 continues" yes "$(on g1 'echo yes >/mnt/sg/after && cat /mnt/sg/after' </dev/null)"
kill_guest g2
wait "$writer" "$mapper" "$holder" || true
start_guest g2
same "the restarted guest joins the volume" "alive" "$(of state g2)"
finish
