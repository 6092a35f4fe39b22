#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests stargate-vsched with five small VMs that share one processor. The VM `mixed` computes and
# answers interrupts. The VM `chain` receives interrupts on one vCPU and answers them on another.
# The VM `liar` has more interrupts than it can handle. The VMs `hog1` and `hog2` only compute.
#
# The same load runs under the kernel's own scheduler and under stargate-vsched, and the scenario
# prints the figures of both. With stargate-vsched each VM has its share, regardless of its
# interrupts, and boosts occur. The scenario kills the daemon under load, starts it once more, and
# ends it. The VMs continue. On an unsuitable system the daemon prints one line with the reason.
#
# rig: --guests 1 --nested --no-module --pkgs "libbpf1 libelf1t64 zlib1g"
# kernels: 7.2
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

here=$(dirname "$0")/../..
"$here/mk/build/vsched" >/dev/null
program busyvm
put "$here/build/vsched/stargate-vsched" /root/stargate-vsched
window=$(scaled 8 20 120)

# daemon COMMAND OPTION...: starts the daemon, which stores its exit status in /run/vsched.status.
# The VMs are stopped during the start, which would otherwise be slow.
daemon() {
	on g1 "rm -f /run/vsched.status; pkill -STOP -x busyvm
		(status=0; /root/stargate-vsched $* >/run/vsched.log 2>&1 || status=\$?
		echo \$status >/run/vsched.status) </dev/null >/dev/null 2>&1 &
		for i in \$(seq 600); do
			/root/stargate-vsched status >/dev/null 2>&1 && exit 0
			[ ! -e /run/vsched.status ] || { cat /run/vsched.log; exit 1; }
			sleep 0.1
		done; exit 1" </dev/null || fail "stargate-vsched $* does not start"
	# In this time the daemon finds the VMs and their shares.
	on g1 'pkill -CONT -x busyvm; sleep 5' </dev/null
}

# ended: waits for the end of the daemon, and prints its exit status.
ended() {
	on g1 'until [ -e /run/vsched.status ]; do sleep 0.1; done
		cat /run/vsched.status' </dev/null
}

# vm NAME KIND: starts a VM in its own control group, as hosts do.
vm() {
	local socket=
	[[ $2 == hog || $2 == liar ]] || socket=/run/$1.sock
	on g1 "set -e; mkdir -p /sys/fs/cgroup/$1; echo 0 >/sys/fs/cgroup/$1/cgroup.procs
		setsid /root/busyvm -name $1 $2 $socket </dev/null >/run/$1.log 2>&1 &
		echo \$! >/run/$1.pid; sleep 0.5" </dev/null ||
		fail "$1 does not start"
}

# requests VM: sends requests to the VM. Sets $rate to the answers per second, and $half and $tail
# to the median and the 99th percentile of their times.
requests() {
	local said
	said=$(on g1 "/root/busyvm ask /run/$1.sock $window" </dev/null) ||
		fail "$1: $said $(on g1 "cat /run/$1.log" </dev/null)"
	read -r rate half tail <<<"$said"
}

# table: prints the daemon's status as JSON.
table() { on g1 '/root/stargate-vsched status --json' </dev/null; }

# figure VM FIELD JSON: prints the value of FIELD for the VM in an output of `table`.
figure() {
	python3 -c 'import json, sys
for vm in json.loads(sys.argv[3])["vms"]:
    if vm["name"] == sys.argv[1]:
        print(vm[sys.argv[2]])' "$@"
}

# late VM PERCENT BEFORE AFTER: prints the time in microseconds within which that percentage of the
# interrupts between BEFORE and AFTER reached their vCPU.
late() {
	python3 -c 'import json, sys
was, now = ({vm["name"]: vm["late"] for vm in json.loads(text)["vms"]} for text in sys.argv[3:5])
late = [n - o for n, o in zip(now[sys.argv[1]], was[sys.argv[1]])]
seen = 0
for bucket, n in enumerate(late):
    seen += n
    if sum(late) and seen * 100 >= sum(late) * int(sys.argv[2]):
        print(2 ** bucket)
        break' "$@"
}

# shares BEFORE AFTER: prints each VM's share of the processor time of all VMs, in per cent.
shares() {
	python3 -c 'import json, sys
was, now = ({vm["name"]: vm["ran_ns"] for vm in json.loads(text)["vms"]} for text in sys.argv[1:3])
ran = {name: now[name] - was[name] for name in sorted(now)}
print(*(f"{name}={100 * ns / sum(ran.values()):.1f}" for name, ns in ran.items()))' "$@"
}

# shared WHAT SHARES VM=PERCENT...: checks that each VM has that share, with a tolerance of 3 % of
# the total.
shared() {
	local what=$1 split=$2
	shift 2
	python3 -c 'import sys
has = dict(one.split("=") for one in sys.argv[1].split())
wants = dict(one.split("=") for one in sys.argv[2:])
sys.exit(len(has) != len(wants) or
    any(abs(float(has[vm]) - float(wants[vm])) > 3 for vm in wants))' \
		"$split" "$@" || fail "$what: $split, not $*"
	passed "$what: $split"
}

# policies NUMBER: checks that this number of threads has the policy of sched_ext.
policies() {
	same "threads with the policy of sched_ext" "$1" "$(on g1 \
		'cat /proc/[0-9]*/task/[0-9]*/sched 2>/dev/null | grep -cE "^policy *: *7$"' </dev/null ||
		true)"
}

# measure NAME: prints the figures of mixed and chain under load. Sets $split to the shares of all
# VMs.
measure() {
	local before after vm
	before=$(table)
	for vm in mixed chain; do
		after=$(table)
		requests "$vm"
		now=$(table)
		printf '   | %-6s %-6s %8s answers/s, median %6s us, 99 %% %6s us; ' "$1" "$vm" "$rate" "$half" "$tail"
		printf 'interrupts wait %s us (median), %s us (99 %%)\n' "$(late "$vm" 50 "$after" "$now")" \
			"$(late "$vm" 99 "$after" "$now")"
	done
	split=$(shares "$before" "$(table)")
	echo "   | $1: $split"
}

step "systems and arguments that the program refuses"
refuses "a status without a daemon is refused" 'no daemon answers on .*start one' g1 '/root/stargate-vsched status'
refuses "a node without KVM is refused" 'KVM is not loaded: modprobe' g1 '/root/stargate-vsched run'
on g1 'modprobe kvm-amd 2>/dev/null || modprobe kvm-intel' </dev/null
without='mount -t tmpfs none /sys/kernel/sched_ext && exec /root/stargate-vsched run'
refuses "a kernel without sched_ext is refused" 'no sched_ext.*boot a kernel' g1 "unshare -m sh -c '$without'"
same "the exit status is 3 without sched_ext" 3 "$(on g1 "unshare -m sh -c '$without' 2>/dev/null; echo \$?" </dev/null)"
refuses "an unknown command is refused" "unknown command 'walk'.*--help" g1 '/root/stargate-vsched walk'
refuses "an option out of its range is refused" '--boost 7: not 50 to 10000' g1 '/root/stargate-vsched --boost 7 run'
refuses "an option of another command is refused" 'watch does not take' g1 '/root/stargate-vsched --plain x watch'

step "a single VM"
on g1 'mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control' </dev/null
vm io io
requests io
printf '   | io     %8s answers/s, median %6s us, 99 %% %6s us\n' "$rate" "$half" "$tail"
on g1 'kill -KILL $(cat /run/io.pid)' </dev/null

step "five VMs under the kernel's own scheduler"
vm mixed mixed
vm chain chain
vm liar liar
vm hog1 hog
vm hog2 hog
daemon watch
measure stock
policies 0
on g1 'pkill -TERM -x stargate-vsched' </dev/null
same "the daemon ends on SIGTERM" 0 "$(ended)"

step "five VMs under stargate-vsched"
daemon run
policies 6
refuses "a second daemon is refused" 'another daemon runs here' g1 '/root/stargate-vsched run'
measure ours
on g1 '/root/stargate-vsched status' </dev/null | sed 's/^/   | /'
shared "each VM has a fifth of the processor time" "$split" mixed=20 chain=20 liar=20 hog1=20 hog2=20
now=$(table)
for vm in mixed chain liar; do
	[[ $(figure "$vm" boosts "$now") -gt 0 ]] || fail "$vm got no boost: $now"
	passed "$vm got $(figure "$vm" boosts "$now") boosts; $(figure "$vm" refused "$now") were refused"
done
[[ $(figure liar refused "$now") -gt 0 ]] || fail "no boost of the VM liar was refused"
[[ $(figure chain victims "$now") -gt 0 ]] || fail "no boost took the time of another vCPU"

step "a VM with the double weight"
on g1 'echo 200 >/sys/fs/cgroup/hog1/cpu.weight; sleep 3' </dev/null
before=$(table)
on g1 "sleep $window" </dev/null
shared "the VM with the double weight has the double time" "$(shares "$before" "$(table)")" mixed=16.7 chain=16.7 liar=16.7 \
	hog1=33.3 hog2=16.7

step "the daemon is killed under load"
on g1 'pkill -KILL -x stargate-vsched' </dev/null
same "the killed daemon has the exit status of SIGKILL" 137 "$(ended)"
on g1 'for i in $(seq 100); do [ "$(cat /sys/kernel/sched_ext/state)" != disabled ] || exit 0
	sleep 0.1; done; exit 1' </dev/null || fail "the scheduler of the killed daemon is still active after 10 s"
passed "the kernel's own scheduler is active"
window=2
requests mixed
requests chain
passed "the VMs continue to run"

step "a restarted daemon schedules all VMs, and gives no boosts to a VM with --plain"
daemon run --plain "'m[ix]*'"
policies 6
requests mixed
requests chain
now=$(table)
same "mixed has no boosts" "True 0" "$(figure mixed plain "$now") $(figure mixed boosts "$now")"
[[ $(figure chain boosts "$now") -gt 0 ]] || fail "chain got no boost"

step "a VM with a limit stays with the kernel's scheduler"
on g1 'kill -KILL $(cat /run/hog2.pid); mkdir /sys/fs/cgroup/small &&
	echo "30000 100000" >/sys/fs/cgroup/small/cpu.max' </dev/null
vm small hog
for _ in $(seq 60); do
	left=$(figure small left "$(table)")
	[[ -z $left ]] || break
	sleep 1
done
same "the daemon reports cpu.max as the reason" cpu.max "$left"
same "the table has no entry for the killed VM" "" "$(figure hog2 pid "$(table)")"
policies 5
on g1 'pkill -TERM -x stargate-vsched' </dev/null
same "the daemon ends on SIGTERM" 0 "$(ended)"
policies 0
requests mixed
finish
