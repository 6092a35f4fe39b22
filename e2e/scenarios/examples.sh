#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests the examples (docs/examples), and the bindings for Go and Python on a mount. Programs in C,
# Go and Python send streams between systems, in several combinations. A robust lock elects a
# leader. When the leader is killed, another system leads. Every class of the Python binding is
# used.
# Programs in all three languages increase one counter.
#
# rig: --guests 2 --size 128M --mem 384M --pkgs python3
# node: --guests 2 --size 128M --pkgs python3
# kernels: 6.12
# node-kernels: 6.12
# maps: walk
# limit: 600
# node-limit: 1800
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step "the examples are built"
make -s -C "$root" lib >"$work/log" 2>&1 || fail "make lib failed: $(tail "$work/log")"
"$root/kernel/lib/python/build-wheel" 1.0.0 "$work" >/dev/null
gcc -static -O2 -Wall -Wextra -Werror -pthread -I"$root/kernel/lib" -I"$root/kernel/core" \
	-o "$work/ring-c" "$root/docs/examples/ring.c" "$root"/kernel/lib/*.c || fail "ring.c does not compile"
gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" -I"$root/kernel/lib" \
	-o "$work/sem" "$root/e2e/programs/sem.c" "$root"/kernel/lib/*.c || fail "sem.c does not compile"
for folder in docs/examples/go e2e/programs/semgo; do
	(cd "$root/$folder" && CGO_ENABLED=0 GOTOOLCHAIN=local go build -o "$work/" ./...) ||
		fail "$folder does not compile"
done
for system in "${systems[@]}"; do
	put "$work/ring-c" /root/ring-c "$system"
	put "$work/ring" /root/ring-go "$system"
	put "$root/docs/examples/ring.py" /root/ring-py "$system"
	put "$work/leader" /root/leader "$system"
	put "$work/sem" /root/sem "$system"
	put "$work/semgo" /root/semgo "$system"
	put "$root/e2e/programs/sem.py" /root/sem.py "$system"
	put "$root/build/lib/libstargate.so.1" /usr/lib/libstargate.so.1 "$system"
	put "$work/stargate-1.0.0-py3-none-any.whl" /root/stargate-1.0.0-py3-none-any.whl "$system"
done
export_wheel='export PYTHONPATH=/root/stargate-1.0.0-py3-none-any.whl PYTHONDONTWRITEBYTECODE=1;'

at() { on "$1" "$export_wheel $2" </dev/null || fail "$1: $2"; }
# both WHAT SYSTEM COMMAND SYSTEM COMMAND: checks that both commands succeed at the same time.
both() {
	local first
	on "$2" "$export_wheel $3" >"$work/1" 2>&1 </dev/null & first=$!
	on "$4" "$export_wheel $5" >"$work/2" 2>&1 </dev/null || fail "$1: $4: $(cat "$work/2")"
	wait "$first" || fail "$1: $2: $(cat "$work/1")"
	passed "$1"
}
one=${systems[0]} two=${systems[1]}

step "streams"
bytes=$(scaled 300K 1M 20M)
ring | while read -r from to; do
	for how in "c go" "go py" "py c" "py go"; do
		read -r first second <<<"$how"
		both "a stream passes from ring-$first on $from to ring-$second on $to" \
			"$from" "head -c $bytes /dev/urandom | tee /tmp/in | /root/ring-$first produce /mnt/sg/stream
				sha256sum </tmp/in" \
			"$to" "/root/ring-$second consume /mnt/sg/stream | sha256sum"
		same "the receiver gets all bytes of the sender" "$(cat "$work/1")" "$(cat "$work/2")"
	done
done
passed "streams pass between all tested pairs of systems and languages"

step "leaders"
# leads SYSTEM LINE: waits until the system's leader has printed LINE.
leads() { at "$1" "for i in \$(seq 200); do grep -qx '$2' /tmp/leads && exit 0; sleep 0.1; done; exit 1"; }
for system in "${systems[@]}"; do
	at "$system" "(sleep 600 | setsid /root/leader /mnt/sg chief $system) >/tmp/leads 2>&1 </dev/null &"
	[[ $system != "$one" ]] || leads "$one" "$one leads"
done
for system in "${systems[@]:1}"; do
	same "$system waits, because $one leads" "" "$(at "$system" 'sleep 0.5; cat /tmp/leads')"
done
at "$one" 'pkill -KILL leader'
said=$(for _ in $(seq 200); do
	for system in "${systems[@]:1}"; do
		at "$system" 'cat /tmp/leads'
	done | grep . && break
	sleep 0.1
done)
[[ $said =~ ^g[12]' leads, after a death'$ ]] || fail "no other system leads after the leader's death: '$said'"
passed "another system leads: $said"
for system in "${systems[@]:1}"; do at "$system" 'pkill -KILL leader || true'; done

step "every class of the binding for Python"
for system in "$one" "$two"; do
	same "all classes work on $system" "all of it" "$(at "$system" 'python3 -W error /root/sem.py all 2>&1')"
done
at "$one" 'stargate-sem create b --type barrier --value 2'
both "processes of both systems meet at a barrier" "$one" 'python3 /root/sem.py meet b 20' "$two" 'python3 /root/sem.py meet b 20'
same "in each round wait() returns True to exactly one of the two processes" 20 "$(($(cat "$work/1") + $(cat "$work/2")))"

step "locks in Go are owned by their handle"
for system in "$one" "$two"; do
	same "all checks in Go pass on $system" "all of it" "$(at "$system" '/root/semgo all 2>&1')"
done

step "one counter in three languages"
n=$(scaled 300 2000 20000)
at "$one" 'stargate-sem create m --type mutex && /root/sem count m user /mnt/sg/n 1'
both "programs in C, Go and Python increase the counter in both systems" \
	"$one" "python3 /root/sem.py count m /mnt/sg/n $n & /root/semgo count m /mnt/sg/n 4 $n & wait -n && wait -n" \
	"$two" "/root/sem count m user /mnt/sg/n $n & /root/semgo count m /mnt/sg/n 2 $n & wait -n && wait -n"
same "the counter has every increase" "$((8 * n + 1)) $((8 * n + 1))" "$(at "$two" '/root/sem words /mnt/sg/n')"
at "$two" "setsid python3 /root/sem.py hold m >/tmp/held 2>&1 </dev/null &
	for i in \$(seq 200); do grep -q held /tmp/held && exit 0; sleep 0.05; done; cat /tmp/held; exit 1"
at "$two" 'pkill -KILL python3'
same "a death in Python is noticed in Go" "its owner died" "$(at "$one" '/root/semgo after m 2>&1')"
finish
