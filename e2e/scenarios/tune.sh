#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests stargate-tune in a node and in a guest of its KVM. On the node, the program measures the
# guest's exits by reason, by function and by port. In the guest, the program applies its advice,
# which also takes effect at the next boot. With the advice there are fewer exits. Then the program
# undoes the advice. All files are as before, even if the program was killed at any time.
#
# node: --guests 1 --size 64M --pkgs udev
# node-kernels: 6.1 6.12 7.2
# limit: 900
# shellcheck disable=SC2016 # quoted text is for the systems' shells
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

project=$(dirname "$0")/../..
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$project" tune >&2 ||
	fail "stargate-tune does not compile"
for system in host g1; do put "$project/build/tune/stargate-tune" /root/stargate-tune "$system"; done

# json EXPRESSION: prints the value of a Python expression. In it, d is the JSON of $said, and vm is
# the measured VM.
json() {
	python3 -c 'import json, sys
d = json.load(sys.stdin)
vm = next((v for v in d.get("vms", []) if v["vcpus"]), None) if isinstance(d, dict) else None
print(eval(sys.argv[1]))' "$1" <<<"$said" || fail "no JSON: $said"
}
# true_of WHAT EXPRESSION: checks that the expression is true.
true_of() {
	local is
	is=$(json "$2")
	[[ $is == True ]] || fail "$1: the value of $2 is $is: $said"
	passed "$1"
}
# in_guest WHAT COMMAND: checks that the command succeeds. Stores its output in $said.
in_guest() {
	said=$(on g1 "$2" 2>&1 </dev/null) || fail "$1: status $?: $said"
	passed "$1"
}
# seen_by_host SECONDS [OPTION]...: measures on the node. Stores the result in $said.
seen_by_host() {
	said=$(on host "/root/stargate-tune measure --json --seconds $*" </dev/null) ||
		fail "the node does not measure: $said"
}
busy() { # COMMAND: repeats COMMAND in g1 until the function quiet is called
	on g1 "touch /run/busy; (while [ -e /run/busy ]; do $1; done) >/dev/null 2>&1 &" </dev/null
}
quiet() { on g1 'rm -f /run/busy' </dev/null; }
# $files is a command that prints all files that a change may touch, and the values that it may set.
files='cd / && find etc var/lib run/udev/rules.d -xdev \( -type f -o -type l -o -type d \) \
	-printf "%p %m %u %g %l\n" 2>/dev/null | sort && find etc var/lib -xdev -type f -print0 |
	sort -z | xargs -0 sha256sum && cat /sys/block/*/queue/scheduler \
	/sys/devices/system/clocksource/clocksource0/current_clocksource \
	/proc/sys/kernel/nmi_watchdog'

step "exits of the guest, as the node measures them"
on host 'mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
	mountpoint -q /sys/kernel/tracing ||
		mount -t tracefs tracefs /sys/kernel/tracing' </dev/null
on g1 'cat /proc/kallsyms' </dev/null | on host 'cat >/root/symbols'
busy 'echo x >/dev/ttyS0; sleep 0.05'
seen_by_host 5 --symbols /root/symbols --svg /root/exits.svg
quiet
true_of "no part of the measurement is missing" 'd["missing"] == []'
true_of "the measurement has the VM with its vCPU" 'vm is not None and vm["vcpus"] == 1'
true_of "the VM's exits have several reasons" 'vm["exits"] > 0 and len(vm["reasons"]) > 1'
true_of "the exits of all reasons add up to KVM's own count, within 5 %" \
	'abs(sum(r["per_second"] for r in vm["reasons"]) - vm["exits"]) < 0.05 * vm["exits"]'
true_of "reasons have names" 'not any(r["name"].startswith("reason ") for r in vm["reasons"])'
true_of "the ports include the serial port that the guest writes" \
	'any(p["device"] == "serial port 1" and p["direction"] == "out" and p["per_second"] > 1 for p in vm["ports"])'
true_of "functions of the guest have names" 'any(a.get("symbol") for a in vm["addresses"])'
true_of "interrupts are injected" 'vm["injected_interrupts"] > 0'
echo "   exits: $(json '[(r["name"], round(r["per_second"])) for r in vm["reasons"][:5]]')"
echo "   functions: $(json '[(a.get("symbol") or a["address"], round(a["per_second"])) for a in vm["addresses"][:5]]')"
echo "   the measurement took $(json 'round(d["own_processor_percent"], 2)') % of the node's processor"
same "the picture is an SVG file" 1 "$(on host 'grep -c "</svg>" /root/exits.svg' </dev/null)"
same "no tracing remains active" 0 "$(on host 'ls /sys/kernel/tracing/instances | wc -l' </dev/null)"
on host '/root/stargate-tune measure --seconds 30 >/dev/null & sleep 2; kill -KILL $!; wait $! || :
	/root/stargate-tune measure --seconds 0.2 >/dev/null' </dev/null
same "the next run ends the tracing of a killed run" 0 \
	"$(on host 'ls /sys/kernel/tracing/instances | wc -l' </dev/null)"

step "the guest's own view"
in_guest "the guest measures itself" '/root/stargate-tune measure --guest --seconds 1 --json'
true_of "the guest's hypervisor is KVM, and offers a clock" \
	'd["hypervisor"] == "KVMKVMKVM" and "kvm-clock" in d["offered"]'
true_of "the guest's disks have drivers" \
	'all(k["driver"] for k in d["disks"])'
clock=$(json 'd["clock"]["current"]')
slow=$(json 'next((c for c in ("acpi_pm", "hpet") if c in d["clock"]["available"]), "")')
[[ $slow ]] || fail "the guest has no clock source that exits"

step "advice that is applied and undone"
on g1 "echo $slow >/sys/devices/system/clocksource/clocksource0/current_clocksource
	/usr/lib/systemd/systemd-udevd --daemon; udevadm settle" </dev/null
on g1 "$files" </dev/null >"$RIG_DIR/before"
busy 'for i in 1 2 3 4 5 6 7 8 9 10; do read -r x </proc/uptime; : "$EPOCHREALTIME"; done; sleep 0.01'
seen_by_host 5
exits=$(json 'vm["exits"]')
timer=$(json '(sum(p["per_second"] for p in vm["ports"] if p["device"] == "ACPI timer") +
	sum(m["per_second"] for m in vm["mmio"] if m["name"].startswith("0xfed00")))')
in_guest "the program gives advice" '/root/stargate-tune advise --seconds 1'
grep -q '^clock: ' <<<"$said" || fail "no advice about the clock: $said"
in_guest "a dry run succeeds" '/root/stargate-tune apply --dry-run --seconds 1'
same "a dry run changes nothing" "$(cat "$RIG_DIR/before")" "$(on g1 "$files" </dev/null)"
in_guest "the advice is applied" '/root/stargate-tune apply --seconds 1'
echo "$said"
better=$(on g1 'cat /sys/devices/system/clocksource/clocksource0/current_clocksource' </dev/null)
[[ $better == kvm-clock || $better == tsc ]] || fail "the clock source is $better"
passed "the clock source is $better"
in_guest "a second run succeeds" '/root/stargate-tune apply --seconds 1'
same "a second run finds nothing to change" "nothing to change" "$(tail -n 1 <<<"$said")"
seen_by_host 5
quiet
after=$(json 'vm["exits"]')
timer_after=$(json '(sum(p["per_second"] for p in vm["ports"] if p["device"] == "ACPI timer") +
	sum(m["per_second"] for m in vm["mmio"] if m["name"].startswith("0xfed00")))')
echo "   exits a second: $exits before, $after after; by the timer: $timer before, $timer_after after"
awk -v a="$timer" -v b="$timer_after" 'BEGIN { exit !(a > 10 && b < a / 10) }' ||
	fail "the timer took $timer exits a second, and takes $timer_after"
passed "exits by the timer fall to less than a tenth"

# A boot resets the values. Then udev and sysctl read the files of stargate-tune.
on g1 "echo $slow >/sys/devices/system/clocksource/clocksource0/current_clocksource
	udevadm trigger --type=all --action=add; udevadm settle; sleep 1" </dev/null
same "at the next boot, udev sets the clock source" "$better" \
	"$(on g1 'cat /sys/devices/system/clocksource/clocksource0/current_clocksource' </dev/null)"
in_guest "the program prints its status" '/root/stargate-tune status --json'
true_of "the status lists all settings as applied" 'd["phase"] == "applied" and all(s["state"] == "applied" for s in d["settings"])'
in_guest "the advice is undone" '/root/stargate-tune undo'
same "all files have the same bytes as before" "$(cat "$RIG_DIR/before")" "$(on g1 "$files" </dev/null)"

step "a program that is killed at random times"
for ((i = 0; i < $(scaled 5 15 60); i++)); do
	on g1 "/root/stargate-tune apply --seconds 0.1 >/dev/null 2>&1 &
		sleep 0.$((RANDOM % 300 + 100)); kill -KILL \$!; wait \$!
		/root/stargate-tune undo >/dev/null" 2>/dev/null </dev/null ||
		fail "round $i: the advice of a killed run cannot be undone"
	[[ $(on g1 "$files" </dev/null) == "$(cat "$RIG_DIR/before")" ]] || {
		on g1 "$files" </dev/null | diff "$RIG_DIR/before" - >&2
		fail "round $i: after the undo, files differ from before"
	}
done
passed "each undo restores all files"

step "systems that are refused"
refuses "an unknown system is refused" 'unknown system "other 1": nothing was changed' g1 \
	'mkdir -p /tmp/other/etc; printf "ID=other\nVERSION_ID=1\n" >/tmp/other/etc/os-release
	/root/stargate-tune apply --root /tmp/other'
refuses "the node is refused, because it is no guest of KVM" 'not a guest of KVM: nothing was changed' host \
	'/root/stargate-tune apply'
on g1 "echo $clock >/sys/devices/system/clocksource/clocksource0/current_clocksource" </dev/null
finish
