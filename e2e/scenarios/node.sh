#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A node is a host with KVM and two VMs in it. All three use one volume. Each system reads the
# writes of the others, and the same bytes at the same physical address. A VM is killed, and then
# the power of the complete node is cut.
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

# members: prints the names of the systems that have the volume mounted. The function reads the
# volume's memory outside of the node.
members() {
	"$SG_TOOLS/stargatectl" --json systems "$RIG_RANGE" 2>/dev/null |
		sed -nE 's/.*"name": "([^"]*)".*/\1/p' | sort | tr '\n' ' '
}

# address_of FILE: prints the physical address of the file's first page, from the file's table.
address_of() {
	"$SG_TOOLS/stargatectl" --json stat "$RIG_RANGE" "$1" 2>/dev/null |
		sed -nE 's/.*"phys": "(0x[0-9a-f]+)", "leaf".*/\1/p' | head -n 1
}

step "one volume in three systems"
same "all systems are members" "g1 g2 host " "$(members)"
for system in "${systems[@]}"; do
	on "$system" "uname -r >/mnt/sg/$system && head -c 1M /dev/urandom >/mnt/sg/$system.data"
done
in_each "each system sees the files of all systems" 'for s in host g1 g2; do [ -s /mnt/sg/$s ] || exit 1; done'
# sums SYSTEM: prints digests of the files of all systems, as read in this system.
sums() { on "$1" 'cd /mnt/sg && sha256sum host host.data g1 g1.data g2 g2.data' </dev/null; }
sums=$(sums host)
for system in g1 g2; do
	same "$system sees the bytes that host sees" "$sums" "$(sums "$system")"
done

step "the same physical address in each system (D3)"
on host 'head -c 64K /dev/zero >/mnt/sg/page && sync /mnt/sg/page'
phys=$(address_of /page)
[[ -n $phys ]] || fail "stargatectl stat does not print the address of the file"
echo "   host-physical $phys"
compile region
for system in "${systems[@]}"; do put "$compiled/region" /root/region "$system"; done
# there WHAT TEXT: checks that each system reads TEXT at that address through /dev/mem.
there() { in_each "$1" "[ \"\$(/root/region read /dev/mem $phys ${#2})\" = '$2' ]"; }
store() { on "$1" "printf '%s' '$2' | /root/region write /dev/mem $phys ${#2}" </dev/null; }
store host 'stored by the host'
there "each system reads the host's store at the same address" 'stored by the host'
store g2 'stored by g2 now!!'
there "each system reads a guest's store at the same address" 'stored by g2 now!!'
in_each "in each system, the file's first page has the stored bytes" '[ "$(head -c 18 /mnt/sg/page)" = "stored by g2 now!!" ]'
large=$(on host 'cat /sys/kernel/debug/kvm/pages_2m')
[[ $large -gt 0 ]] || fail "KVM maps no page of 2 MiB"
passed "KVM maps $large pages of 2 MiB"

step "a guest is killed"
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
holds_in g2 "g2 finds all $last complete files of the killed guest" \
	"for n in \$(seq $((last - 1))); do [ \"\$(cat /mnt/sg/orders/\$n)\" = \$n ] || exit 1; done; rm -r /mnt/sg/orders"
same "two members are left" "g2 host " "$(members)"
start_guest g1
same "the restarted guest joins the volume" "g1 g2 host " "$(members)"
same "the files have the same bytes in g1" "$sums" "$(sums g1)"

step "the node's power is cut"
on g1 'while :; do echo x >>/mnt/sg/g1.log; done' </dev/null 2>/dev/null &
writer=$!
holds_in host "g1 writes a file" 'until [ -s /mnt/sg/g1.log ]; do sleep 0.1; done'
kill_node
wait "$writer" || true
start_node
same "after the power cut the files have their bytes" "$sums" "$(sums host)"
same "no other system is a member" "host " "$(members)"
start_guest g2
same "a restarted guest reads the same bytes" "$sums" "$(sums g2)"
holds_in g2 "the restarted guest can write" 'echo more >/mnt/sg/page && rm /mnt/sg/g1.log'
finish
