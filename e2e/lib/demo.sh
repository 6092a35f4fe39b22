#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/demo runs this script inside the rig if no node can start. `on g1 '...'` runs a command in a
# VM. All other commands run on this machine. The bytes of the file RIG_RANGE are the range.
# shellcheck disable=SC2016 # quoted text is for the VMs' shells
# shellcheck source=e2e/lib/demo-words.sh
source "$(dirname "$0")/demo-words.sh"

# Drops the tool's warning that the volume is in use, because the demo uses it on purpose.
ctl() { "$SG_TOOLS/stargatectl" "$@" 2> >(grep -v 'in use or not cleanly unmounted' >&2); }

# host COMMAND...: does the same as vm, but runs the command on this machine.
host() {
	local shown="$*"
	shown=${shown/#ctl /stargatectl }
	shown=${shown//$SG_TOOLS\//}
	printf '  host# %s\n' "${shown//$RIG_RANGE/RANGE}"
	"$@" | sed 's/^/        /' || fail "outside: $shown"
}

# address_of FILE: prints the physical address of a file's first page, from the file's table.
address_of() {
	ctl --json stat "$RIG_RANGE" "$1" | sed -nE 's/.*"phys": "(0x[0-9a-f]+)", "leaf".*/\1/p' |
		head -n 1
}

bytes_at() { dd if="$RIG_RANGE" bs=1 skip="$1" count="$2" status=none; }

# --- 1 ---
title "1. Two VMs with one range of memory"
tell "g1 and g2 run a stock Debian kernel under QEMU (accelerator: $RIG_ACCEL). Both have the same" \
	"$((RIG_SIZE >> 20)) MiB of this machine's memory, at the same physical address, $RIG_BASE. A" \
	"volume is in this memory, and both have mounted it."
vm g1 "uname -sr; grep -i persistent /proc/iomem; grep stargatefs /proc/mounts"
vm g2 "grep -i persistent /proc/iomem; grep stargatefs /proc/mounts"
host ctl systems "$RIG_RANGE"

# --- 2 ---
title "2. One VM writes, and the other reads the bytes immediately"
vm g2 "cat /mnt/sg/hello 2>&1 || true"
vm g1 "echo 'Hello from inside of g1.' >/mnt/sg/hello"
vm g2 "cat /mnt/sg/hello; echo 'And from g2.' >>/mnt/sg/hello"
vm g1 "cat /mnt/sg/hello; mkdir /mnt/sg/data"
start=$EPOCHREALTIME
vm g1 "dd if=/dev/urandom of=/mnt/sg/data/big bs=1M count=48 status=none; ls -lR /mnt/sg"
timed "g1 writes 48 MiB of random bytes" "$start"
first=$(on g1 'sha256sum </mnt/sg/data/big')
start=$EPOCHREALTIME
second=$(on g2 'sha256sum </mnt/sg/data/big')
timed "g2 reads them and computes SHA-256" "$start"
[[ $first == "$second" ]] || fail "g1 and g2 read different bytes"
printf '  SHA-256 of /data/big, in g1 and in g2:  %s\n' "${first%% *}"
tell "After a call has returned in one VM, each call in the other VM sees its effect: names, absent" \
	"names, attributes and locks. To show how soon, g1 writes rising numbers into a file, and g2" \
	"reads the file as fast as possible:"
on g1 'for i in $(seq 2000); do echo $i >/mnt/sg/count; done' </dev/null &
counting=$!
vm g2 'for i in $(seq 2000); do read -r n </mnt/sg/count; case $n in "$last" | "") ;; *) seen=$((seen + 1)) last=$n ;; esac
	done 2>/dev/null; echo "g2 read $seen different numbers, the last one $last"'
wait "$counting" || fail "g1 cannot write its numbers"

# --- 3 ---
title "3. Where the bytes are"
tell "A file's index is a page table. Its entries are physical addresses, which are valid in each" \
	"system that has the memory at the same address. The host reads the entry of /hello:"
host ctl stat "$RIG_RANGE" /hello | grep -E 'host#|size|table:|root|runs:|phys'
phys=$(address_of /hello)
[[ -n $phys ]] || fail "stargatectl stat shows no address of /hello"
offset=$((phys - RIG_BASE))
tell "So the text must be at $phys, which is byte $offset of the range. The host reads it there" \
	"without any file system:"
host dd if="$RIG_RANGE" bs=1 skip="$offset" count=38 status=none
[[ $(bytes_at "$offset" 24) == "Hello from inside of g1." ]] ||
	fail "the bytes at $phys are not the file's"
tell "There is only one copy. When a VM overwrites it, these bytes change:"
vm g2 "printf 'HELLO' | dd of=/mnt/sg/hello conv=notrunc status=none"
[[ $(bytes_at "$offset" 5) == HELLO ]] ||
	fail "the new bytes are not at $phys"
host dd if="$RIG_RANGE" bs=1 skip="$offset" count=38 status=none
host ctl cat "$RIG_RANGE" /hello
outside=$(ctl cat "$RIG_RANGE" /data/big | sha256sum)
[[ $outside == "$first" ]] || fail "the file has different bytes inside and outside of the VMs"
printf '  SHA-256 of /data/big outside:           %s\n' "${outside%% *}"

# --- 4 ---
title "4. A VM is killed while it writes"
tell "g1 writes orders. It writes each order into a new file, and renames the file when the order is" \
	"complete. The demo records every complete order. g2 does its own work in the same directory." \
	"Then g1's QEMU gets SIGKILL. g1's guard detects this, and fences g1, so that g2 can take the" \
	"locks that g1 held."
notes=$(mktemp) log=$(mktemp)
trap 'rm -f "$notes" "$log"' EXIT
on g1 "$orders" </dev/null >"$notes" 2>/dev/null &
writer=$!
while [[ $(wc -l <"$notes") -lt 1 ]] && kill -0 "$writer"; do sleep 0.05; done
on g2 'cd /mnt/sg/orders; while ! [ -e /run/enough ]; do
		echo $((++n)) >of-g2 && mv of-g2 count-of-g2 && echo $n || exit
	done' </dev/null >"$log" 2>&1 &
other=$!
for ((tries = 0; tries < 600; tries++)); do
	[[ $(wc -l <"$notes") -lt 40 || $(wc -l <"$log") -lt 40 ]] || break
	sleep 0.1
done
[[ $(wc -l <"$notes") -ge 40 ]] || fail "g1 writes no orders"
[[ $(wc -l <"$log") -ge 40 ]] || fail "g2 cannot work at the same time as g1: $(tail -n 1 "$log")"
start=$EPOCHREALTIME
kill_guest g1
before=$(wc -l <"$log")
while [[ $(wc -l <"$log") -le $((before + 1)) ]] && kill -0 "$other"; do sleep 0.005; done
timed "from SIGKILL of g1 to the next step of g2" "$start"
wait "$writer" || true
completed=$(noted "$notes")
last=$(tail -n 1 "$notes")
echo "  recorded until SIGKILL: $completed completed orders, the last of them ${last##* }"
on g2 'touch /run/enough' </dev/null
wait "$other" || fail "an operation of g2 failed: $(tail -n 1 "$log")"
echo "  g2 continued: it had made $before steps at SIGKILL, and $(tail -n 1 "$log") at the end"
on g2 'cd /mnt/sg/orders && sha256sum --quiet -c -' <"$notes" ||
	fail "a completed order is missing or has other bytes"
echo "  g2 reads all $completed completed orders, bit for bit"
vm g2 "rm /mnt/sg/orders/count-of-g2; ls /mnt/sg; df -h /mnt/sg"
host ctl systems "$RIG_RANGE"

# --- 5 ---
title "5. The killed VM starts again"
start=$EPOCHREALTIME
start_guest g1
timed "g1 boots and mounts, as a new system" "$start"
on g1 'cd /mnt/sg/orders && sha256sum --quiet -c -' <"$notes" || fail "g1 cannot read its orders"
there=$(on g1 "cd /mnt/sg/orders && ls | grep -c '^order-'")
[[ $there -ge $completed ]] || fail "the volume has only $there of $completed completed orders"
again=$(on g1 'sha256sum </mnt/sg/data/big')
[[ $again == "$first" ]] || fail "/data/big has changed"
echo "  the orders of g1 and /data/big are unchanged"
vm g1 "echo 'and on it goes' >>/mnt/sg/hello"
vm g2 "cat /mnt/sg/hello"

# --- 6 ---
title "6. Both VMs unmount the volume, and this machine checks it"
start=$EPOCHREALTIME
stop_guest g1
stop_guest g2
timed "both unmount and end" "$start"
start=$EPOCHREALTIME
host "$SG_TOOLS/fsck.stargatefs" -n "$RIG_RANGE"
timed "fsck.stargatefs -n" "$start"

took "VMs under $RIG_ACCEL"
tell "The demo has shown: two VMs and this machine use one copy of the bytes, at one physical" \
	"address. Each VM reads the writes of the other. After a power cut of one VM, the other VM" \
	"continues, and $completed of $completed completed files are intact. The check of the volume" \
	"finds no error. Next: make test, make bench SUITE=quick, docs/README.md."
