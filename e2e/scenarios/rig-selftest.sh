#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kernels: 6.12
# maps: walk
# limit: 1200
# rig: --no-module
#
# Tests the behaviour of the rig that e2e/README.md describes. The scenario starts its own rigs, and
# needs neither module nor tools. To run it directly: e2e/scenarios/rig-selftest.sh [KERNEL]
set -euo pipefail

kernel=${1:-${SG_KERNEL:-6.12}}
rig=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../rig
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work # so that the test finds files that a run leaves behind

passed=0 failed=0
ok() {
	passed=$((passed + 1))
	echo "ok    $1"
}
not_ok() {
	failed=$((failed + 1))
	echo "FAIL  $1: $2"
	sed 's/^/      /' "$work/err" | tail -n 40
}
# rig_run ARGUMENT...: runs the rig. Stores its output in $out, its messages in $work/err, and its
# status in $status.
rig_run() {
	status=0
	rm -rf "$work"/stargate-rig-* # logs of an earlier run that failed on purpose
	out=$("$rig" run --kernel "$kernel" --no-module --timeout 5m "$@" 2>"$work/err") || status=$?
}
is() { # is NAME GOT WANTED: checks that GOT equals WANTED
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "got '$2', wanted '$3'"; fi
}
says() { # says NAME TEXT: checks that the rig's messages contain the text
	if grep -qF -- "$2" "$work/err"; then ok "$1"; else not_ok "$1" "no '$2' among the messages"; fi
}
# leaves_nothing NAME: checks that no process, shared memory or mount remains after the run.
leaves_nothing() {
	local left=
	left+=$(pgrep -f "$work/stargate-rig" || true)
	left+=$(find /dev/shm -name 'stargate-rig-*')
	left+=$(grep -F "$work" /proc/mounts || true)
	is "$1: no process, shared memory or mount remains" "$left" ""
}

cat >"$work/streams" <<'S'
set -u
printf 'a line\n' | on g1 cat
on g1 'echo to-stderr >&2' 2>"$TMPDIR/stderr"; cat "$TMPDIR/stderr"
on g1 'exit 7'; echo "status $?"
on g1 'kill -9 $$'; echo "status $?"
head -c 3000000 /dev/urandom >"$TMPDIR/blob"
on g1 'cat' <"$TMPDIR/blob" | cmp - "$TMPDIR/blob" && echo 'the same bytes'
yes | on g1 'head -n 1'
on g1 'sleep 300 &'; echo 'a child left behind holds nobody'
on g9 true 2>/dev/null; echo "status $?"
echo "$RIG_GUESTS $1"
exit 5
S
rig_run "$work/streams" argument
is "streams and exit statuses pass through" "$out" "a line
to-stderr
status 7
status 137
the same bytes
y
a child left behind holds nobody
status 255
g1 argument"
is "the script's status is the rig's" "$status" 5
says "on a failure the rig prints the path of the logs" "the logs are in $work/stargate-rig-"
says "the rig prints the accelerator" "accelerator "

cat >"$work/many" <<'S'
start=$SECONDS
for i in 1 2 3 4 5 6 7 8; do on g1 "sleep 3; echo $i" & done | sort | tr -d '\n'
echo; [ $((SECONDS - start)) -lt 15 ] && echo 'at once'
S
rig_run "$work/many"
is "many commands run at the same time in one guest" "$out" "12345678
at once"
is "a run without errors has status 0" "$status" 0
is "a run without errors keeps no logs" "$(find "$work" -name 'stargate-rig-*')" ""

cat >"$work/lives" <<'S'
set -eu
on g1 'printf shared | dd of=/dev/pmem0 conv=notrunc,fsync status=none'
on g2 'head -c 6 /dev/pmem0; echo'
head -c 6 "$RIG_RANGE"; echo
on g1 "grep -c '^400000000-' /proc/iomem"
on g2 'sleep 300' 2>/dev/null & waiting=$!
sleep 1; kill_guest g2; s=0; wait $waiting || s=$?; echo "cut off: $s"
s=0; on g2 true 2>/dev/null || s=$?; echo "dead: $s"
s=0; kill_guest g2 2>/dev/null || s=$?; echo "cannot die twice: $s"
start_guest g2 2>/dev/null
on g2 'head -c 6 /dev/pmem0; echo; hostname'
on g1 'echo the first lives on'
pause_guest g1
on g1 'echo resumed' & waiting=$!
sleep 2; kill -0 $waiting && echo 'it waits'
resume_guest g1; wait $waiting
on g1 'echo a-kernel-message >/dev/kmsg'; sleep 1
console g1 | grep -c a-kernel-message
cat "$RIG_DIR"/nothing 2>/dev/null || true
on g1 'cat /root/in/copied/file; cat /root/in/single'
pause_guest g2
S
mkdir "$work/copied"
echo "in a folder" >"$work/copied/file"
echo "alone" >"$work/single"
rig_run --guests 2 --copy-in "$work/copied" --copy-in "$work/single" "$work/lives"
is "guests can be killed and started, share memory, and have the copied files" "$out" "shared
shared
1
cut off: 255
dead: 255
cannot die twice: 1
shared
g2
the first lives on
it waits
resumed
1
in a folder
alone"
is "a run with killed and paused guests passes" "$status" 0
leaves_nothing "lives"

cat >"$work/shares" <<'S'
set -eu
for kind in 9p virtiofs virtiofs-auto; do
	echo "by the script" >"$RIG_SHARES/$kind/file"
	on g1 "cat /mnt/$kind/file; echo by g1 >/mnt/$kind/file"
	on g2 "cat /mnt/$kind/file"
	cat "$RIG_SHARES/$kind/file"
done
kill_guest g2
start_guest g2 2>/dev/null
on g2 'cat /mnt/virtiofs/file'
S
rig_run --guests 2 --share 9p,virtiofs --share virtiofs-auto "$work/shares"
is "the script and both guests read and write the shares" "$out" "$(for _ in 9p virtiofs virtiofs-auto; do
	printf '%s\n' "by the script" "by g1" "by g1"
done)
by g1"
is "a run with shares passes" "$status" 0
leaves_nothing "shares"
is "a run with shares and without errors keeps no logs" "$(find "$work" -name 'stargate-rig-*')" ""

rig_run -c 'on g1 "echo \"WARNING: CPU: 0 PID: 1 at the self-test\" >/dev/kmsg"; echo last'
is "a kernel warning fails the run" "$status" 123
is "the rig runs the script to its last line" "$out" last
says "the rig prints the warning" "WARNING: CPU: 0 PID: 1 at the self-test"

rig_run -c 'on g1 "echo c >/proc/sysrq-trigger"; true'
is "a panic fails the run" "$status" 123
says "the rig prints the panic" "sysrq triggered crash"

rig_run --timeout 75s -c 'on g1 "sleep 1000"'
is "the rig ends a guest that hangs" "$status" 124
says "the rig prints the command that does not end" 'on g1 "bash -c sleep 1000"'
leaves_nothing "hang"

rig_run - <<<'on g1 "echo from standard input" </dev/null; kill -9 $$'
is "the rig runs a script from standard input" "$out" "from standard input"
is "the status after a killed script shows the signal" "$status" 137

# SIGTERM and SIGKILL end the rig itself.
for signal in TERM KILL; do
	# shellcheck disable=SC2016 # the script's own variable
	"$rig" run --kernel "$kernel" --no-module -c 'echo up; (exec -a "$TMPDIR/stargate-rig-child" sleep 1000); true' \
		>"$work/up" 2>"$work/err" &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		if grep -q up "$work/up"; then break; fi
		sleep 0.1
	done
	kill -"$signal" "$pid"
	status=0
	{ wait "$pid"; } 2>/dev/null || status=$?
	[ "$signal" = TERM ] && is "the status of a rig that SIG$signal ends shows the signal" "$status" 143
	sleep 2
	leaves_nothing "after SIG$signal to the rig"
done

"$rig" run --kernel "$kernel" --no-module --icount -c 'on g1 "grep -o nokaslr /proc/cmdline"' >"$work/out" 2>"$work/err" || true
is "a guest boots with --icount" "$(cat "$work/out")" nokaslr

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
