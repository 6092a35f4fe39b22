#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The network through a volume with doorbells (docs/network.md): a system that has nothing to do
# looks rarely, a peer's doorbell wakes it, and without doorbells the timer works again.
#
# rig: --guests 2 --size 128M --mem 512M --bells --pkgs "ethtool iputils-ping"
# kernels: 6.12
# maps: walk
# limit: 400
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
"$root/mk/build/module" "$SG_KERNEL" >"$work/built" 2>&1 || fail "the module: $(tail -n 5 "$work/built")"
program_everywhere netload
for guest in g1 g2; do
	put "$root/build/module/$SG_KERNEL/stargate_net.ko" /root/stargate_net.ko "$guest"
	at "$guest" "insmod /root/stargate_net.ko && stargate-net allow && stargate-net up sg0 &&
		ip address add 10.77.0.${guest#g}/24 dev sg0
		(setsid /root/netload serve 5000 >/dev/null 2>&1 </dev/null &)"
done
count() { at "$1" "ethtool -S sg0" | awk -v n="_$2:" '$1 ~ n"$" { sum += $2 } END { print sum + 0 }'; }
told() { at "$1" "awk '\$1 == \"$2\" { print \$2 }' /sys/fs/stargatefs/*/bells"; }
# looks: how often g2 looks for packets in four idle seconds.
looks() {
	local before
	before=$(count g2 rx_looks)
	sleep 4
	echo $(($(count g2 rx_looks) - before))
}
# slow_pings: the median round trip, in us, of pings between which both sleep.
slow_pings() {
	at g1 'ping -c 9 -i 0.3 -W 2 10.77.0.2' | sed -n 's/.*time=\([0-9.]*\) ms/\1/p' | sort -n |
		awk '{ v[NR] = $1 } END { printf "%d", 1000 * v[int((NR + 1) / 2)] }'
}

step "with doorbells"
at g1 'for i in $(seq 100); do
		ping -c 1 -W 1 10.77.0.2 >/dev/null 2>&1 && exit 0
		sleep 0.1
	done
	exit 1'
sleep 3
idle=$(looks)
[[ $idle -le 400 ]] || fail "an idle queue looked $idle times in four seconds"
passed "an idle queue looks $idle times in four seconds"
sent=$(told g1 rings_sent)
with=$(slow_pings)
[[ $(told g1 rings_sent) -gt $((sent + 5)) ]] || fail "g1 rang only $(($(told g1 rings_sent) - sent)) times"
passed "pings ring the other guest; $with us each"
passed "requests over TCP: $(at g1 '/root/netload rr 10.77.0.2 5000 2 64')"
passed "a stream: $(at g1 '/root/netload send 10.77.0.2 5000 50000000 2')"

step "without"
drivers=/sys/bus/pci/drivers/stargatefs-bells
for guest in g1 g2; do
	at "$guest" "cd $drivers && for d in 0000:*; do echo \$d >unbind; done"
done
sleep 3
busy=$(looks)
[[ $busy -gt $idle ]] || fail "without doorbells the queue looked only $busy times"
without=$(slow_pings)
passed "the timer looks $busy times in four seconds; pings take $without us, not $with"
passed "requests over TCP: $(at g1 '/root/netload rr 10.77.0.2 5000 2 64')"
for guest in g1 g2; do at "$guest" 'stargate-net down sg0 && rmmod stargate_net'; done
finish
