#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/demo runs this script inside the rig. It is the demo with a node: a host with KVM, and two VMs
# in it. All three use one volume. `on host '...'` runs a command in the node.
# shellcheck disable=SC2016 # quoted text is for the systems' shells
# shellcheck source=e2e/lib/demo-words.sh
source "$(dirname "$0")/demo-words.sh"
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/scenario.sh"
fail() {
	printf '\nDEMO FAILED: %s\n' "$*" >&2
	exit 1
}
region=/mnt/sg/.stargate/region

# --- 1 ---
title "1. A host, and two VMs in it, with one range of memory"
tell "host runs a stock Debian kernel with KVM (the machine under it: $RIG_ACCEL). It has reserved" \
	"$((RIG_SIZE >> 20)) MiB of its memory, at the physical address $RIG_BASE. A volume is in this" \
	"memory, and the host has mounted it. g1 and g2 are VMs under the host's KVM. Their QEMU maps" \
	"the volume's own file $region, at the same physical address. Both VMs have also mounted the" \
	"volume."
for system in "${systems[@]}"; do
	vm "$system" 'echo "$(uname -sr): $(grep -i persistent /proc/iomem); $(grep -m 1 stargatefs /proc/mounts)"'
done
vm host "stargatectl systems $region"

# --- 2 ---
title "2. Each system reads the files that others write"
vm host "echo 'Hello from the host.' >/mnt/sg/hello"
vm g1 "cat /mnt/sg/hello; echo 'And from inside of g1.' >>/mnt/sg/hello"
vm g2 'cat /mnt/sg/hello; dd if=/dev/urandom of=/mnt/sg/big bs=1M count=16 status=none'
first=$(on g2 'sha256sum </mnt/sg/big' </dev/null)
for system in "${systems[@]}"; do
	start=$EPOCHREALTIME
	sum=$(on "$system" 'sha256sum </mnt/sg/big' </dev/null)
	timed "$system reads 16 MiB that g2 wrote: SHA-256" "$start"
	[[ $sum == "$first" ]] || fail "$system does not read the bytes that g2 has written"
	printf '  %-5s SHA-256 of /mnt/sg/big: %s\n' "$system" "${sum%% *}"
done

# --- 3 ---
title "3. One copy, at one physical address"
tell "A file's index is a page table, whose entries are physical addresses. These addresses are" \
	"valid in each system:"
address='stargatectl --json stat /dev/pmem0 /hello 2>/dev/null |
	sed -nE "s/.*\"phys\": \"(0x[0-9a-f]+)\", \"leaf\".*/\1/p" | head -n 1'
declare -A phys
for system in "${systems[@]}"; do
	phys[$system]=$(on "$system" "$address" </dev/null) || fail "$system does not find the file's address"
	printf '  %-5s /mnt/sg/hello is at the physical address %s\n' "$system" "${phys[$system]}"
done
[[ -n ${phys[host]} && ${phys[host]} == "${phys[g1]}" && ${phys[host]} == "${phys[g2]}" ]] ||
	fail "the systems report different addresses for the file"
tell "So each system must find the text at this address in /dev/mem, without any file system:"
compile region
for system in "${systems[@]}"; do
	put "$compiled/region" /usr/local/bin/region "$system"
	vm "$system" "region read /dev/mem ${phys[host]} 44"
done
tell "A store to this address changes the file in all systems:"
vm g1 "printf 'HELLO' | region write /dev/mem ${phys[host]} 5"
vm host "head -n 1 /mnt/sg/hello"
vm g2 "head -n 1 /mnt/sg/hello"
[[ $(on g2 'head -c 5 /mnt/sg/hello' </dev/null) == HELLO ]] || fail "g2 does not see the store"
vm host 'echo "KVM maps $(cat /sys/kernel/debug/kvm/pages_2m) pages of 2 MiB"'

# --- 4 ---
title "4. A VM is killed while it writes"
tell "g1 writes orders. It writes each order into a new file, and renames the file when the order is" \
	"complete. The demo records every complete order. g1 also holds a lock for which the host waits." \
	"Then g1's QEMU gets SIGKILL. No guard runs: the host's module itself detects that no process" \
	"maps the volume's memory for g1 any more."
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT
on g1 'exec 9>/mnt/sg/lock; flock 9; touch /mnt/sg/locked; sleep 1000' </dev/null >/dev/null 2>&1 &
holder=$!
on host 'until [ -e /mnt/sg/locked ]; do sleep 0.05; done' </dev/null
on host 'exec 9>>/mnt/sg/lock; flock 9; echo "${EPOCHREALTIME/[.,]/}" >/run/had' </dev/null &
waiter=$!
on g1 "$orders" </dev/null >"$notes" 2>/dev/null &
writer=$!
for ((tries = 0; tries < 1200; tries++)); do
	[[ $(wc -l <"$notes") -lt 40 ]] || break
	sleep 0.1
done
[[ $(wc -l <"$notes") -ge 40 ]] || fail "g1 writes no orders"
kill -0 "$waiter" || fail "the host got the lock while g1 had it"
on host 'echo "${EPOCHREALTIME/[.,]/}" >/run/killed' </dev/null
kill_guest g1
wait "$waiter" || fail "the host does not get g1's lock"
wait "$writer" "$holder" || true
times+=("$(printf '%-46s %7.2f s' "from SIGKILL of g1 to the host's lock" "$(on host \
	'echo "$(($(cat /run/had) - $(cat /run/killed)))e-6"' </dev/null)")")
completed=$(noted "$notes")
vm host 'dmesg | grep -o "g1 (slot.*"; cat /mnt/sg/orders/order-1 | sha256sum | cut -c 1-16'
vm host "stargatectl systems $region"
for system in host g2; do
	on "$system" 'cd /mnt/sg/orders && sha256sum --quiet -c -' <"$notes" ||
		fail "$system: a completed order is missing or has other bytes"
	echo "  $system reads all $completed completed orders, bit for bit"
done
vm g2 "rm -r /mnt/sg/orders; echo 'on it goes' >>/mnt/sg/hello"
vm host 'cat /mnt/sg/hello; ls /mnt/sg'

took "the node under $RIG_ACCEL, VMs under its KVM"
tell "The demo has shown: a host and two VMs use one copy of the bytes, at one physical address. Each" \
	"system reads the writes of the others. After the death of a VM, which the host detected without" \
	"help, $completed of $completed completed files are intact. Now all systems unmount the volume," \
	"fsck.stargatefs -n checks it, and the rig searches the kernels' logs. Next: make test, make test" \
	"SUITE=node, make bench SUITE=quick, docs/README.md."
