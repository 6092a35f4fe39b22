#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The demo's transcript, run by e2e/demo inside of the rig: `on g1 '...'` is the VM, everything else
# is this machine. RIG_RANGE is the file whose bytes are the range.
set -euo pipefail

# The tool warns that the volume is in use. It is: that is what the demo is about.
ctl() { "$SG_TOOLS/stargatectl" "$@" 2> >(grep -v 'in use or not left cleanly' >&2); }
title() { printf '\n%s\n%s\n' "$1" "${1//?/-}"; }
tell() { fold -s -w 92 <<<"$*" | sed 's/ *$//'; }
fail() {
	printf '\nDEMO FAILED: %s\n' "$*" >&2
	exit 1
}

# vm COMMAND, host COMMAND...: show a command, then what it says.
vm() {
	printf '  g1#   %s\n' "$1"
	on g1 "$1" </dev/null | sed 's/^/        /' || fail "in the VM: $1"
}
host() {
	local shown="$*"
	shown=${shown/#ctl /stargatectl }
	shown=${shown//$SG_TOOLS\//}
	printf '  host# %s\n' "${shown//$RIG_RANGE/RANGE}"
	"$@" | sed 's/^/        /' || fail "outside: $shown"
}

times=()
# timed WHAT START: a line for the table at the end.
timed() {
	times+=("$(awk -v what="$1" -v a="$2" -v b="$EPOCHREALTIME" \
		'BEGIN { printf "%-46s %7.2f s", what, b - a }')")
}

# The physical address of a file's first page, as the file's own table says.
address_of() {
	ctl --json stat "$RIG_RANGE" "$1" | sed -nE 's/.*"phys": "(0x[0-9a-f]+)", "leaf".*/\1/p' |
		head -n 1
}

bytes_at() { dd if="$RIG_RANGE" bs=1 skip="$1" count="$2" status=none; }

# --- 1 ---
title "1. A VM with a range of memory that it shares with this machine"
tell "g1 runs a stock Debian kernel under QEMU (accelerator: $RIG_ACCEL). It was given" \
	"$((RIG_SIZE >> 20)) MiB of this machine's memory, and sees them at physical address" \
	"$RIG_BASE."
vm "uname -sr; grep -i persistent /proc/iomem; grep stargatefs /proc/mounts"

# --- 2 ---
title "2. The VM writes files"
start=$EPOCHREALTIME
vm "echo 'Hello from inside of the VM.' >/mnt/sg/hello; mkdir /mnt/sg/data"
vm "dd if=/dev/urandom of=/mnt/sg/data/big bs=1M count=48 status=none; ls -lR /mnt/sg"
timed "VM writes 48 MiB of random bytes" "$start"
vm "df -h /mnt/sg"

# --- 3 ---
title "3. Where the bytes are"
tell "A file's index is a page table: its entries hold physical addresses, valid in each system" \
	"that has the range there. This is the file's own entry, read from outside:"
host ctl stat "$RIG_RANGE" /hello | grep -E 'host#|size|table:|root|runs:|phys'
phys=$(address_of /hello)
[[ -n $phys ]] || fail "stargatectl stat shows no address of /hello"
offset=$((phys - RIG_BASE))
tell "So the text must lie at $phys, which is byte $offset of the range, without any file system:"
host dd if="$RIG_RANGE" bs=1 skip="$offset" count=29 status=none
[[ $(bytes_at "$offset" 28) == "Hello from inside of the VM." ]] ||
	fail "the bytes at $phys are not the file's"
tell "There is one copy only. When the VM overwrites it, the same bytes change:"
vm "printf 'HELLO' | dd of=/mnt/sg/hello conv=notrunc status=none"
[[ $(bytes_at "$offset" 5) == HELLO ]] ||
	fail "the overwritten bytes are not seen at $phys"
host dd if="$RIG_RANGE" bs=1 skip="$offset" count=29 status=none

# --- 4 ---
title "4. The same files, read outside while the VM has them mounted"
host ctl cat "$RIG_RANGE" /hello
start=$EPOCHREALTIME
inside=$(on g1 'sha256sum </mnt/sg/data/big')
timed "VM reads 48 MiB and computes SHA-256" "$start"
start=$EPOCHREALTIME
outside=$(ctl cat "$RIG_RANGE" /data/big | sha256sum)
timed "this machine does the same" "$start"
printf '  SHA-256 of /data/big in the VM:  %s\n' "${inside%% *}"
printf '  SHA-256 of /data/big outside:    %s\n' "${outside%% *}"
[[ $inside == "$outside" ]] || fail "inside and outside do not see the same bytes"

# --- 5 ---
title "5. The VM's power is cut in the middle of writing"
tell "It writes orders: each into a new file, which is renamed when it is complete. Every" \
	"completed one is noted here. Then QEMU gets SIGKILL."
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT
# shellcheck disable=SC2016 # for the VM's shell
on g1 'mkdir /mnt/sg/orders; cd /mnt/sg/orders; n=0
	while n=$((n + 1)); do
		head -c $((1 + RANDOM)) /dev/urandom >new
		sum=$(sha256sum <new)
		mv new order-$n
		echo "${sum%% *}  order-$n"
	done' </dev/null >"$notes" 2>/dev/null &
writer=$!
for ((tries = 0; tries < 600; tries++)); do
	[[ $(wc -l <"$notes") -lt 60 ]] || break
	sleep 0.1
done
[[ $(wc -l <"$notes") -ge 60 ]] || fail "the VM writes no orders"
kill_guest g1
wait "$writer" || true
# A line that was cut in two was not noted.
sed -i -nE '/^[0-9a-f]{64}  order-[0-9]+$/p' "$notes"
completed=$(wc -l <"$notes")
last=$(tail -n 1 "$notes")
echo "  noted until then: $completed completed orders, the last one ${last##* }"
echo "  and the volume still says that g1 has it:"
host ctl slots "$RIG_RANGE" | grep -E 'host#|slot:|state|name|heartbeat'

# --- 6 ---
title "6. It starts again"
start=$EPOCHREALTIME
start_guest g1
timed "VM boots, finds itself dead, recovers, mounts" "$start"
on g1 'cd /mnt/sg/orders && sha256sum --quiet -c -' <"$notes" ||
	fail "a completed order is missing or not what was written"
echo "  all $completed completed orders are there, bit for bit"
there=$(on g1 "cd /mnt/sg/orders && ls | grep -c '^order-'")
[[ $there -ge $completed ]] || fail "$there orders are there, $completed were completed"
again=$(on g1 'sha256sum </mnt/sg/data/big')
[[ $again == "$inside" ]] || fail "/data/big has changed"
echo "  and /data/big is what it was"
vm "echo 'and on it goes' >>/mnt/sg/hello; cat /mnt/sg/hello"

# --- 7 ---
title "7. It unmounts; the volume is checked from outside"
start=$EPOCHREALTIME
stop_guest g1
timed "VM unmounts and ends" "$start"
start=$EPOCHREALTIME
host "$SG_TOOLS/fsck.stargatefs" -n "$RIG_RANGE"
timed "fsck.stargatefs -n" "$start"

title "What took how long (a VM under $RIG_ACCEL)"
printf '  %s\n' "${times[@]}"
echo
tell "Seen: one copy of the bytes, at one physical address, in a VM and outside of it;" \
	"$completed of $completed completed files intact after a power cut; a clean check." \
	"Next: make test, make bench-quick, docs/README.md."
