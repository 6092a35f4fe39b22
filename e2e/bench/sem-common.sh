# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of the runs of e2e/bench/sem. They print lines of these kinds:
#
#   rate WHERE KIND PROCESSES TIMES NS PROCESSOR-NS  one round: the sum of all processes
#   turn WHERE KIND COUNT MEDIAN P99 LONGEST         in ns, by the first of two processes
#   asleep KIND NS MS                                the processor time NS within MS milliseconds
#   load NUMBER                                      the machine's load, before and after
#
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"

root=$(dirname "$0")/../..
ms=${SG_MS:-500} rounds=${SG_ROUNDS:-3} turns=${SG_TURNS:-500}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2034 # of the runs
here=(user-mutex kernel-mutex user-semaphore kernel-semaphore pthread-mutex pthread-robust sem_t
	futex sysv sysv-undo flock spin)
# shellcheck disable=SC2034 # of the runs
among=(user-mutex kernel-mutex user-semaphore kernel-semaphore flock spin tcp posix)

at() { on "$1" "$2" </dev/null || fail "$1: $2"; }
load() { echo "load $(cut -d ' ' -f 1 /proc/loadavg)"; }

bench_programs() {
	local guest
	gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread -I"$root/kernel/core" \
		-I"$root/kernel/lib" -o "$work/sembench" "$root/e2e/programs/sembench.c" \
		"$root"/kernel/lib/*.c || fail "sembench.c does not compile"
	(cd "$root/e2e/programs/semgo" && CGO_ENABLED=0 GOTOOLCHAIN=local go build -o "$work/" ./...) ||
		fail "semgo does not compile"
	for guest in $RIG_GUESTS; do
		put "$work/sembench" /root/sembench "$guest"
		put "$work/semgo" /root/semgo "$guest"
		at "$guest" 'mountpoint -q /dev/shm || mount -t tmpfs tmpfs /dev/shm'
	done
}

# path WHERE KIND: prints the path of the lock.
path() {
	case $1-$2 in
	*-tcp) echo 10.115.103.1:7001 ;;
	*-posix) echo /nfs/file ;;
	several-* | *-flock | *-user-* | *-kernel-*) echo "/mnt/sg/$2" ;;
	*) echo "/dev/shm/$2" ;;
	esac
}

# together GUESTS COMMAND: starts the command in each guest at the same moment. In the command, %w
# stands for the number of the process.
together() {
	local guests=$1 command=$2 guest who=0 jobs=() job
	at g1 "stargate-sem rm begin 2>/dev/null
		stargate-sem create begin --type barrier --value $(wc -w <<<"$guests")" >&2
	for guest in $guests; do
		on "$guest" "${command//%w/$who}" >"$work/said.$who" 2>"$work/trouble.$who" </dev/null &
		jobs+=($!)
		who=$((who + 1))
	done
	for job in "${jobs[@]}"; do
		wait "$job" || fail "$command in $guests: $(cat "$work"/trouble.*)"
	done
}

# rate WHERE KIND PROCESSES GUEST...
rate() {
	local where=$1 kind=$2 processes=$3 round
	shift 3
	for ((round = 0; round < rounds; round++)); do
		together "$*" "/root/sembench rate $kind $(path "$where" "$kind") $ms $((processes / $#)) begin"
		cat "$work"/said.* | awk -v what="rate $where $kind $processes" '
			{ n += $1; ns = $2 > ns ? $2 : ns; cpu += $3 }
			END { printf "%s %.0f %.0f %.0f\n", what, n, ns, cpu }'
		rm -f "$work"/said.*
	done
}

# pair WHERE KIND GUEST GUEST
pair() {
	together "$3 $4" "/root/sembench turn $2 $(path "$1" "$2") %w $turns begin"
	echo "turn $1 $2 $(cat "$work/said.0")"
	rm -f "$work"/said.*
}

asleep() {
	local ms=10000
	echo "asleep $1 $(at g1 "/root/sembench asleep $1 $(path one "$1") $ms") $ms"
}
