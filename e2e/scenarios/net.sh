#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The network between two guests through memory of the volume (docs/network.md). The permission of
# the volume; routes to the other guest's address; streams whose content is checked, over two
# queues, with other MTUs and without segmentation offload; packets with a false source; forged
# words of a ring. A connection lives on over the ordinary network when the device is removed, when
# the permission ends, when the volume is unmounted, and when the module is unloaded. A guest dies
# under load, and comes back.
#
# rig: --guests 2 --size 256M --mem 512M --net --cpus 2 --pkgs "ethtool iputils-ping"
# kernels: 6.12
# maps: walk
# test: walk
# limit: 600
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
compile netload
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -I"$root/kernel/core" -o "$work/netforge" \
	"$root/e2e/programs/netforge.c" || fail "netforge.c does not compile"
"$root/mk/build/module" "$SG_KERNEL" >"$work/built" 2>&1 || fail "the module: $(tail -n 5 "$work/built")"
module=$root/build/module/$SG_KERNEL/stargate_net.ko

# ready GUEST: gives the guest the module and the program, and starts the server.
ready() {
	put "$compiled/netload" /root/netload "$1"
	put "$module" /root/stargate_net.ko "$1"
	at "$1" 'insmod /root/stargate_net.ko && (setsid /root/netload serve 5000 >/dev/null 2>&1 </dev/null &)'
}
address() { echo "10.115.103.${1#g}"; }
up() { at "$1" "stargate-net up sg0 --volume /mnt/sg --queues 2 --publish all ${2:-}"; }
# awaits GUEST WHAT PATTERN: waits until the guest's routes match the pattern.
awaits() {
	at "$1" "for i in \$(seq 200); do ip route | grep -q '$3' && exit 0; sleep 0.1; done; ip route >&2; exit 1"
	passed "$2"
}
awaits_no() {
	at "$1" "for i in \$(seq 200); do ip route | grep -q '$3' || exit 0; sleep 0.1; done; ip route >&2; exit 1"
	passed "$2"
}
both_routed() {
	awaits g1 "$1: g1 has a route to g2" "^10.115.103.2 dev sg0 proto 115"
	awaits g2 "$1: g2 has a route to g1" "^10.115.103.1 dev sg0 proto 115"
}
# count GUEST NAME: the sum of a counter over all queues.
count() { at "$1" "ethtool -S sg0" | awk -v n="_$2:" '$1 ~ n"$" { sum += $2 } END { print sum + 0 }'; }
bytes=$(scaled 10000000 60000000 1000000000)
long=$(scaled 3 4 4) # seconds of a connection
# streams WHAT [FLOWS]: both ways, with checked content.
streams() {
	passed "$1: g1 to g2, $(at g1 "/root/netload send 10.115.103.2 5000 $bytes ${2:-2}")"
	passed "$1: g2 to g1, $(at g1 "/root/netload fetch 10.115.103.2 5000 $bytes ${2:-2}")"
}

ready g1
ready g2

step "permission"
refuses "a path in no volume is refused" 'no volume of StargateFS is mounted there' g1 'stargate-net up sg0 -v /tmp'
refuses "ip cannot name the volume" 'name the mount point of the volume' g1 'ip link add sg0 type stargate 2>&1 | grep -v "^RTNETLINK"; exit 1'
refuses "a mount that is read-only there is refused" 'mounted read-only' g1 'mkdir -p /mnt/ro && mount --bind /mnt/sg /mnt/ro && mount -o remount,bind,ro /mnt/ro && stargate-net up sg0 -v /mnt/ro'
at g1 'umount /mnt/ro'
refuses "a container's right to change networks does not suffice" 'only root of the system' g1 'setpriv --bounding-set -sys_admin stargate-net up sg0 -v /mnt/sg'
refuses "a name with a blank is refused" 'argument' g1 'stargate-net up "s g0" -v /mnt/sg'
up g1
at g2 'stargate-net up sg0 --volume /mnt/sg --queues 2'
at g1 'sleep 1; grep -q "not permitted" /sys/class/net/sg0/stargate/peers'
same "without permission there is no peer" "" "$(at g2 'ip route | grep sg0 || true')"
refuses "a second network on the volume is refused" 'already has a network' g1 'stargate-net up sg1 -v /mnt/sg'
refuses "a second device of that name is refused" 'there is an interface of that name' g1 'stargate-net up sg0 -v /mnt/sg'
refuses "another user cannot permit" 'permit|forbid' g1 'setpriv --reuid 1000 --clear-groups stargate-net allow -v /mnt/sg'
at g1 'stargate-net allow -v /mnt/sg && stargate-net allow'
at g2 'for i in $(seq 200); do grep -q "queues 2" /sys/class/net/sg0/stargate/peers && exit 0; sleep 0.1; done; exit 1'
sleep 1
same "a system that publishes its own addresses accepts none in other networks" "" "$(at g2 'ip route | grep sg0 || true')"
at g2 'stargate-net down sg0'
up g2
both_routed "after the permission"
at g1 'stargate-net show sg0' | grep -qE '^g2 slot [0-9]+ queues 2: 10.115.103.2$' || fail "show: $(at g1 'stargate-net show sg0')"
passed "show names the peer with its address"

step "traffic"
at g1 'ping -c 3 -i 0.2 -W 2 10.115.103.2 >/dev/null'
[[ $(count g2 rx_packets) -ge 3 ]] || fail "pings did not use the device: $(at g2 'ethtool -S sg0')"
passed "pings go through the volume"
streams "two flows"
streams "eight flows" 8
for queue in 0 1; do
	[[ $(at g2 'ethtool -S sg0' | awk "/q${queue}_rx_packets/ { print \$2 }") -gt 100 ]] ||
		fail "queue $queue had no traffic: $(at g2 'ethtool -S sg0')"
done
passed "both queues received packets"
passed "requests over TCP: $(at g1 '/root/netload rr 10.115.103.2 5000 2 64')"
passed "requests over UDP: $(at g1 '/root/netload udprr 10.115.103.2 5000 2 1000')"
passed "datagrams of 30,000 bytes: $(at g1 '/root/netload udprr 10.115.103.2 5000 2 30000')"
passed "connections: $(at g1 '/root/netload crr 10.115.103.2 5000 2 64')"

step "packets of other sizes"
for guest in g1 g2; do at "$guest" 'ip link set sg0 mtu 1500'; done
packets=$(count g2 rx_packets) octets=$(count g2 rx_bytes)
passed "MTU 1500: $(at g1 "/root/netload send 10.115.103.2 5000 $bytes 1")"
mean=$((($(count g2 rx_bytes) - octets) / ($(count g2 rx_packets) - packets)))
[[ $mean -gt 3000 ]] || fail "packets of $mean bytes: TCP did not leave them whole"
passed "packets are whole on the way: $mean bytes"
for guest in g1 g2; do at "$guest" 'ethtool -K sg0 tso off gso off gro off'; done
packets=$(count g2 rx_packets) octets=$(count g2 rx_bytes)
streams "without offloads"
mean=$((($(count g2 rx_bytes) - octets) / ($(count g2 rx_packets) - packets)))
[[ $mean -lt 1501 ]] || fail "packets of $mean bytes"
for guest in g1 g2; do at "$guest" 'ethtool -K sg0 tx off sg off'; done
streams "without offloads of the checksum"
for guest in g1 g2; do at "$guest" 'ethtool -K sg0 tx on sg on tso on gso on gro on; ip link set sg0 mtu 65520'; done
streams "with all of them again"
refused "an MTU larger than that is refused" 'mtu|argument' 'ip link set sg0 mtu 65521'

step "IPv6"
for guest in g1 g2; do at "$guest" "ip -6 address add fd77::${guest#g}/64 dev eth0 nodad"; done
for guest in g1 g2; do
	at "$guest" 'for i in $(seq 200); do ip -6 route | grep -q "^fd77::[12] dev sg0 proto 115" && exit 0; sleep 0.1; done; exit 1'
done
octets=$(count g2 rx_bytes)
at g1 'ping -6 -c 3 -i 0.2 -W 2 -s 60000 fd77::2 >/dev/null'
[[ $(($(count g2 rx_bytes) - octets)) -gt 180000 ]] || fail "packets took another way"
passed "packets of 60,000 bytes arrive, with the addresses of the other interface"
for guest in g1 g2; do at "$guest" "ip -6 address del fd77::${guest#g}/64 dev eth0"; done
at g1 'for i in $(seq 200); do ip -6 route | grep -q "fd77::2 dev sg0" || exit 0; sleep 0.1; done; exit 1'
passed "the route ends with the address"

step "a false source"
at g1 'ip address add 10.9.9.9/32 dev lo'
spoofed=$(count g2 rx_spoofed)
on g1 'ping -c 3 -i 0.2 -W 1 -I 10.9.9.9 10.115.103.2 >/dev/null' </dev/null && fail "the answer came"
same "packets with a source that is not the peer's are dropped and counted" 3 "$(($(count g2 rx_spoofed) - spoofed))"
at g1 'ip address del 10.9.9.9/32 dev lo'
same "no packet was malformed" "0 0" "$(count g1 rx_malformed) $(count g2 rx_malformed)"

# lives WHAT COMMAND-IN-G1 AFTER: a connection lives on while the command runs, and until after it.
lives() {
	local holder pause
	on g1 "/root/netload hold 10.115.103.2 5000 $3" >"$work/hold" 2>&1 </dev/null & holder=$!
	sleep 1
	at g1 "$2"
	wait "$holder" || fail "$1: the connection ended: $(cat "$work/hold")"
	pause=$(tail -n 1 "$work/hold")
	[[ $pause -le 2000 ]] || fail "$1: a pause of $pause ms"
	passed "$1: the connection lives on; longest pause $pause ms"
}

step "the ordinary network takes over"
lives "the device is removed" 'stargate-net down sg0' "$long"
awaits_no g2 "g2's route is gone" 'dev sg0 proto 115'
lives "the device is made again" 'stargate-net up sg0 --volume /mnt/sg --queues 1 --publish all' "$long"
both_routed "again, with another number of queues"
streams "one queue to two" 4
lives "the device is set down" 'ip link set sg0 down' "$long"
awaits_no g2 "a device that is down has no route to it" 'dev sg0 proto 115'
at g1 'ip link set sg0 up'
both_routed "set up again"
lives "the permission ends" 'stargate-net deny' "$long"
awaits_no g1 "without permission no route stays" 'dev sg0 proto 115'
at g2 'stargate-net allow'
both_routed "permitted again"
lives "all rings are reset" 'stargate-ring list --names | grep "^sgnet[.]" | xargs -n 1 stargate-ring reset' "$long"

step "rings and routes that somebody removes"
at g1 'ip route flush dev sg0 proto 115'
both_routed "after a program has removed g1's routes"
# rings: the number of rings of the network.
rings() { at g1 'stargate-ring list --names | grep -c "^sgnet[.]" || true'; }
# The names behind the rings of each side then belong to objects of another type.
before=$(rings)
at g1 'rings=$(stargate-ring list --names | grep "^sgnet[.]") && printf "%s\n" $rings | xargs -n 1 stargate-ring rm
	for ring in $(printf "%s\n" $rings | grep "[.]0$"); do
		stargate-sem create ${ring%0}1 && stargate-sem create ${ring%0}2 || exit 1
	done'
for ((i = 0; i < 100; i++)); do
	[[ $(rings) -lt $before ]] || break
	sleep 0.2
done
same "each receiver makes its rings again" "$before" "$(rings)"
both_routed "with rings that were made again"
octets=$(count g2 rx_bytes)
streams "with objects behind the rings"
[[ $(($(count g2 rx_bytes) - octets)) -gt $bytes ]] || fail "the streams took another way"
refuses "root without the rights of the system makes no object of the network" 'permit' g1 'setpriv --bounding-set -sys_admin stargate-sem create sgnet.9.9.9'
refuses "it does not remove the permission" 'permit' g1 'setpriv --bounding-set -sys_admin stargate-net deny'

step "forged rings"
put "$work/netforge" /root/netforge g1
# forge KIND: changes all rings for two seconds, while both guests send.
forge() {
	local load
	on g1 "/root/netload send 10.115.103.2 5000 100000000000 4" >"$work/load" 2>&1 </dev/null & load=$!
	passed "$1: $(at g1 "for ring in \$(stargate-ring list --names | grep '^sgnet[.]'); do
			/root/netforge /mnt/sg \$ring 2000 $1 & done; wait" | xargs)"
	at g1 'pkill netload'
	wait "$load" || true
}
# impossible GUEST: how often the guest found impossible positions, or heads of records.
impossible() { at "$1" 'dmesg | grep -c "impossible positions" || true'; }
malformed() { echo $(($(count g1 rx_malformed) + $(count g2 rx_malformed))); }
before=$(malformed)
forge frames
[[ $(malformed) -gt $before ]] || fail "no guest counts a forged frame: $(at g1 'ethtool -S sg0')"
passed "forged frames and headers are counted: $(($(malformed) - before))"
both_routed "after forged frames"
before=$(($(impossible g1) + $(impossible g2)))
forge heads
[[ $(($(impossible g1) + $(impossible g2))) -gt $before ]] ||
	fail "both guests kept a peer with forged records: $(at g1 'dmesg | tail')"
passed "a peer with forged heads of records is ended"
both_routed "after forged heads"
before=$(impossible g1)
forge words
[[ $(impossible g1) -gt $before ]] || fail "g1 kept a peer with a forged ring: $(at g1 'dmesg | tail')"
passed "a peer with forged positions is ended"
at g1 'ping -c 3 -i 0.2 -W 2 10.115.103.2 >/dev/null'
passed "packets take the ordinary way, or the new rings"
both_routed "after forged positions"
streams "with new rings"

step "the ordinary network takes over, continued"
lives "the mount becomes read-only" 'mount -o remount,ro /mnt/sg' "$long"
awaits_no g2 "g2 has no route to a system that stores nothing" 'dev sg0 proto 115'
at g1 'mount -o remount,rw /mnt/sg'
both_routed "writable again"
lives "the volume is unmounted" 'umount /mnt/sg' "$long"
refuses "the device has ended with the mount" 'does not exist' g1 'ip link show sg0'
at g1 'mount -t stargatefs /dev/pmem0 /mnt/sg'
up g1
both_routed "mounted again"
lives "the module is unloaded" 'rmmod stargate_net' "$long"
at g1 'insmod /root/stargate_net.ko'
up g1
both_routed "loaded again"

step "a death under load"
on g1 '/root/netload send 10.115.103.2 5000 100000000000 4' >"$work/load" 2>&1 </dev/null & load=$!
sleep 1
kill_guest g2
start=$EPOCHREALTIME
awaits_no g1 "g1 has removed the route to the dead guest" 'dev sg0 proto 115'
took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", (b - a) * 1000 }')
[[ $took -le 2000 ]] || fail "only $took ms after its death"
passed "after $took ms"
at g1 'pkill netload'
wait "$load" || true
start_guest g2
ready g2
up g2
at g1 '(setsid /root/netload serve 5000 >/dev/null 2>&1 </dev/null &)'
both_routed "the guest is back"
streams "after that"
at g1 'stargate-net down sg0'
at g2 'stargate-net down sg0'
same "no ring remains" "" "$(at g1 'stargate-ring list --names | grep "^sgnet" || true')"
for guest in g1 g2; do at "$guest" 'rmmod stargate_net'; done
finish
