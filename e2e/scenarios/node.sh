#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The node: a host with KVM and two VMs in it, on one volume. Each system reads the writes of the
# others, and the same bytes at the same physical address. A VM dies, and then the complete node.
#
# rig: --node --guests 2 --size 128M --append iomem=relaxed
# node: --guests 2 --size 128M --append iomem=relaxed
# kernels: 6.12
# node-kernels: 6.12 7.2
# maps: walk
# limit: 900
# shellcheck disable=SC2016 # quoted text is for a system's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

read -ra systems <<<"$RIG_SYSTEMS"
same "the test has three systems" "host g1 g2" "$RIG_SYSTEMS"

# in_each WHAT COMMAND: checks that COMMAND succeeds in all systems.
in_each() {
	local system said
	for system in "${systems[@]}"; do
		said=$(on "$system" "$2" 2>&1 </dev/null) || fail "$1: $system: $2: $said"
	done
	passed "$1"
}

# Prints the names of the systems that have the volume mounted, read from its memory outside of the
# node.
members() {
	"$SG_TOOLS/stargatectl" --json systems "$RIG_RANGE" 2>/dev/null |
		sed -nE 's/.*"name": "([^"]*)".*/\1/p' | sort | tr '\n' ' '
}

# Prints the physical address of a file's first page, from the file's table.
address_of() {
	"$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" "$1" 2>/dev/null |
		sed -nE 's/.*"phys": "(0x[0-9a-f]+)", "leaf".*/\1/p' | head -n 1
}

step "one volume"
same "all systems are members" "g1 g2 host " "$(members)"
for system in "${systems[@]}"; do
	on "$system" "uname -r >/mnt/sg/$system && head -c 1M /dev/urandom >/mnt/sg/$system.data"
done
in_each "a file written by one is read by the others" 'for s in host g1 g2; do [ -s /mnt/sg/$s ] || exit 1; done'
# sums SYSTEM: prints digests of the files of all systems, as read in this system.
sums() { on "$1" 'cd /mnt/sg && sha256sum host host.data g1 g1.data g2 g2.data' </dev/null; }
sums=$(sums host)
for system in g1 g2; do
	same "$system sees the bytes that host sees" "$sums" "$(sums "$system")"
done

step "one physical address (D3)"
on host 'head -c 64K /dev/zero >/mnt/sg/page && sync /mnt/sg/page'
phys=$(address_of /page)
[[ -n $phys ]] || fail "stargatectl stat does not say where the file is"
echo "   host-physical $phys"
compile region
for system in "${systems[@]}"; do put "$compiled/region" /root/region "$system"; done
# there TEXT: checks that each system reads the text at that address through /dev/mem.
there() { in_each "$1" "[ \"\$(/root/region read /dev/mem $phys ${#2})\" = '$2' ]"; }
store() { on "$1" "printf '%s' '$2' | /root/region write /dev/mem $phys ${#2}" </dev/null; }
store host 'stored by the host'
there "each system reads the host's store at the same address" 'stored by the host'
store g2 'stored by g2 now!!'
there "and what a guest stores" 'stored by g2 now!!'
in_each "which is the file's first page in each" '[ "$(head -c 18 /mnt/sg/page)" = "stored by g2 now!!" ]'
large=$(on host 'cat /sys/kernel/debug/kvm/pages_2m')
[[ $large -gt 0 ]] || fail "KVM maps nothing by 2 MiB"
passed "KVM maps by 2 MiB: $large of them"

step "a guest dies"
on g1 'mkdir /mnt/sg/orders; n=0; while n=$((n + 1)); do
	echo $n >/mnt/sg/orders/new && mv /mnt/sg/orders/new /mnt/sg/orders/$n && echo $n; done' \
	>"$RIG_DIR/noted" 2>/dev/null </dev/null &
writer=$!
for ((i = 0; i < 600; i++)); do
	[[ $(wc -l <"$RIG_DIR/noted") -lt 20 ]] || break
	sleep 0.1
done
kill_guest g1
wait "$writer" || true
last=$(grep -cE '^[0-9]+$' "$RIG_DIR/noted") || fail "g1 wrote nothing"
holds_in() { on "$1" "timeout 100 bash -c $(printf %q "$3")" >/dev/null </dev/null || fail "$2"; passed "$2"; }
holds_in g2 "g2 goes on: all of $last orders are there" \
	"for n in \$(seq $((last - 1))); do [ \"\$(cat /mnt/sg/orders/\$n)\" = \$n ] || exit 1; done; rm -r /mnt/sg/orders"
same "two members are left" "g2 host " "$(members)"
start_guest g1
same "the system joins again" "g1 g2 host " "$(members)"
same "the files have the same bytes in g1" "$sums" "$(sums g1)"

step "the node's power is cut"
on g1 'while :; do echo x >>/mnt/sg/g1.log; done' </dev/null 2>/dev/null &
writer=$!
holds_in host "(g1 writes)" 'until [ -s /mnt/sg/g1.log ]; do sleep 0.1; done'
kill_node
wait "$writer" || true
start_node
same "the file has the bytes" "$sums" "$(sums host)"
same "no other system is a member" "host " "$(members)"
start_guest g2
same "a guest sees them again" "$sums" "$(sums g2)"
holds_in g2 "and goes on" 'echo more >/mnt/sg/page && rm /mnt/sg/g1.log'
finish
