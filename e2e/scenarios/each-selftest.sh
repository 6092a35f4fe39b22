#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kernels: 6.12
# maps: walk
# limit: 900
# rig: --no-module
#
# Tests scripts that share guests (e2e/rig run --each). Each script gets guests and a volume in
# their first state, even if the previous script has changed them. Each script has its own result.
# The scenario starts its own rig. To run it directly: e2e/scenarios/each-selftest.sh [KERNEL]
set -euo pipefail

kernel=${1:-${SG_KERNEL:-6.12}}
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work EACH_LIBRARY=$here/../lib/scenario.sh

# script NAME: writes the script from standard input, with the common beginning and end.
script() {
	# shellcheck disable=SC2016 # the script expands it
	{
		printf '#!/usr/bin/env bash\nset -euo pipefail\nsource "$EACH_LIBRARY"\n'
		echo 'for g in g1 g2; do on $g "$(cat "$EACH_FRESH")" || fail "$g is not in its first state"; passed "$g is in its first state"; done'
		cat
	} >"$work/$1.sh"
}
# The state that each script expects of each guest.
export EACH_FRESH=$work/fresh
cat >"$EACH_FRESH" <<'S'
[ -z "$(ls /mnt/sg)" ] && grep -q " /mnt/sg stargatefs " /proc/mounts && [ ! -e /tmp/left ] && [ ! -e /root/left ] &&
[ "$(cat /root/in/given)" = given ] && [ ! -e /mnt/t ] && [ "$(cat /proc/sys/vm/swappiness)" = 60 ] &&
[ ! -e /sys/fs/cgroup/left ] && ! pgrep -x sleep && [ -z "$(losetup -a)" ] &&
! dmesg | grep "of the last script"
S
echo given >"$work/given"

script a-leaves-much <<'S'
passed "the script can report a check before it changes the guests"
for g in g1 g2; do
	on $g 'echo x >/mnt/sg/$(hostname); echo x >/tmp/left; echo x >/root/left
		mkdir -p /mnt/t && mount -t tmpfs none /mnt/t
		mkdir -p /mnt/t/u && mount --bind /tmp /mnt/t/u
		echo 10 >/proc/sys/vm/swappiness; mkdir /sys/fs/cgroup/left
		head -c 1M /dev/zero >/root/disk; losetup -f /root/disk
		echo "of the last script" >/dev/kmsg; sleep 1000 & sleep 0.2'
done
pause_guest g2
finish
S
script b-kills <<'S'
console g1 | grep "of the last script" && fail "the console still has the message of the last script"
unguard_guest g1
kill_guest g2
finish
S
script c-changes-what-was-there <<'S'
on g1 'echo y >/root/in/given'
finish
S
script d-fails <<'S'
fail "on purpose"
S
script e-is-well <<'S'
finish
S
printf '%s\n' '# limit: 5' "on g1 'sleep 1000'" >"$work/f-is-late.sh"
script g-is-unsound <<'S'
on g1 'echo "WARNING: CPU: 0 PID: 1 at the self-test" >/dev/kmsg
	mkdir -p /mnt/t && mount -t stargatefs /dev/pmem0 /mnt/t'
finish
S

status=0
"$here/../rig" run --kernel "$kernel" --guests 2 --size 32M --mem 320M --copy-in "$work/given" \
	--each "$work/out" "$work"/?-*.sh >"$work/lines" 2>"$work/err" || status=$?

failures=0 checks=0
wants() { # wants WHAT COMMAND...
	if "${@:2}"; then
		checks=$((checks + 1))
		echo "   ok $1"
	else
		failures=$((failures + 1))
		echo "FAILED: $1"
	fi
}
line() { sed -n "$1p" "$work/lines" | grep -qE -- "^$2, [0-9.]+ s\)\$"; }
wants "the rig's status is 1" [ "$status" -eq 1 ]
wants "the rig prints a line for each script" [ "$(wc -l <"$work/lines")" -eq 7 ]
wants "a script that leaves files, mounts and a paused guest behind passes" line 1 'ok a-leaves-much \(3 checks'
wants "a script that kills a guest passes" line 2 'ok b-kills \(2 checks'
wants "the script after a kill gets the guest" line 3 'ok c-changes-what-was-there \(2 checks'
wants "the rig boots a guest again after a change that it cannot undo" grep -q 'g1 reboots, because its state has changed: file /root/in/given' "$work/err"
wants "the rig reports a script that fails" line 4 'FAIL d-fails \(status 1'
wants "the script after a failed one passes" line 5 'ok e-is-well \(2 checks'
wants "the rig reports a script that exceeds its limit" line 6 'FAIL f-is-late \(no end after 5s'
wants "the log names the command that did not end" grep -q 'on g1 .*sleep 1000' "$work/out/f-is-late.log"
wants "the rig reports a volume that cannot be unmounted" line 7 'FAIL g-is-unsound \(g1: unmounting and unloading: .*'
wants "the log has the kernel's warning" grep -q 'WARNING: CPU: 0 PID: 1 at the self-test' "$work/out/g-is-unsound.log"
wants "each script's output is in its log" grep -q 'FAILED: on purpose' "$work/out/d-fails.log"
wants "no range remains in /dev/shm" [ -z "$(find /dev/shm -name 'stargate-rig-*')" ]
if [[ $failures -gt 0 ]]; then
	cat "$work/lines"
	tail -n 40 "$work/err"
	exit 1
fi
echo "$checks checks"
