#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Traffic between two guests: through the volume with one and two queues, over virtio-net, and over
# the loopback of one guest. e2e/bench/net runs it. Prints a line for each figure: way, pattern,
# value. Environment: ROUNDS: how often; SECONDS_EACH: length of a request pattern.
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
program_everywhere netload
for guest in g1 g2; do
	put "$root/build/module/$SG_KERNEL/stargate_net.ko" /root/stargate_net.ko "$guest"
	at "$guest" 'insmod /root/stargate_net.ko && (setsid /root/netload serve 5000 >/dev/null 2>&1 </dev/null &)'
done
at g1 'stargate-net allow'

# queues N: makes the devices anew, with other addresses for each number of queues.
queues() {
	local guest
	for guest in g1 g2; do
		at "$guest" "ip link del sg0 2>/dev/null; stargate-net up sg0 --queues $1 &&
			ip address add 10.77.$1.${guest#g}/24 dev sg0"
	done
	at g1 "for i in \$(seq 100); do ping -c 1 -W 1 10.77.$1.2 >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1"
}

# figure WAY HOST PATTERN COMMAND...: prints one value.
figure() {
	echo "FIGURE $1 $3 $(at g1 "/root/netload $4 $2 5000 $5" | awk '{ print $1 }')"
	checks=$((checks + 1))
}

# patterns WAY HOST MEGABYTES
patterns() {
	figure "$1" "$2" stream send "$3 1"
	figure "$1" "$2" streams8 send "$(($3 / 8)) 8"
	figure "$1" "$2" fetch fetch "$3 1"
	figure "$1" "$2" rr-1 rr "$seconds 1"
	figure "$1" "$2" rr-16K rr "$seconds 16384"
	figure "$1" "$2" crr-1 crr "$seconds 1"
	figure "$1" "$2" udprr-1 udprr "$seconds 1"
	figure "$1" "$2" udprr-16K udprr "$seconds 16384"
}

seconds=${SECONDS_EACH:-3}
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
	queues 1
	patterns volume-1 10.77.1.2 100000000
	patterns virtio 10.115.103.2 24000000
	queues 2
	patterns volume-2 10.77.2.2 100000000
	patterns loopback 127.0.0.1 200000000
done
for guest in g1 g2; do at "$guest" 'ip link del sg0; rmmod stargate_net; pkill netload'; done
finish
