#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Processes in place of virtual machines (machine.c), each with a `stargatectl guard`, and volumes
# that both use; sourced by tests of the guard.
set -euo pipefail
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "${BASH_SOURCE[0]}")/tools.sh"

machine=$tools/../tests/machine
# shellcheck disable=SC2034 # used by the sourcing scripts
a=aaaaaaaa-0000-4000-8000-000000000001
# shellcheck disable=SC2034
b=bbbbbbbb-0000-4000-8000-000000000002
[[ -x $machine ]] || fail "no $machine: make build PART=test-programs"

# --- virtual machines -----------------------------------------------------------------------

# by NAME: its input, its process id, and the number of lines read from its output
declare -A feed pid lines

# start NAME COMMAND...: runs COMMAND in the background; ask() sends lines to it.
start() {
	local name=$1 fd
	shift
	rm -f "$name.in"
	mkfifo "$name.in"
	: >"$name.out"
	"$@" <"$name.in" >"$name.out" 2>"$name.err" &
	pid[$name]=$!
	exec {fd}>"$name.in"
	feed[$name]=$fd
	lines[$name]=0
}

# guarded NAME UUID VOLUME...: runs a machine under a guard.
guarded() {
	local name=$1 uuid=$2
	shift 2
	start "$name" "$ctl" guard "$@" -- "$machine" -uuid "$uuid"
}

# inner NAME: prints the process id of the machine that NAME guards.
inner() {
	local child=
	for _ in $(seq 100); do
		child=$(pgrep -P "${pid[$1]}" || true)
		[[ -z $child ]] || break
		sleep 0.02
	done
	[[ -n $child ]] || fail "$1 has no machine"
	echo "$child"
}

cleanup() {
	local name
	for name in "${!pid[@]}"; do
		pkill -KILL -P "${pid[$name]}" 2>/dev/null || true
		kill -KILL "${pid[$name]}" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap cleanup EXIT

ask() { echo "$2" >&"${feed[$1]}"; }

# answers NAME PATTERN [SECONDS]: fails unless NAME prints a line within SECONDS that matches
# PATTERN.
answers() {
	local name=$1 pattern=$2 end said
	end=$(now)
	lines[$name]=$((lines[$name] + 1))
	until [[ $(wc -l <"$name.out") -ge ${lines[$name]} ]]; do
		[[ $(since "$end") -lt $((${3:-10} * 1000)) ]] || fail "$name does not answer"
		sleep 0.01
	done
	said=$(sed -n "${lines[$name]}p" "$name.out")
	[[ $said =~ ^$pattern$ ]] || fail "$name answers '$said', not '$pattern'"
	checks=$((checks + 1))
}

tell() {
	ask "$1" "$2"
	answers "$1" "${3:-ok}"
}

silent() {
	sleep "$2"
	[[ $(wc -l <"$1.out") -eq ${lines[$1]} ]] || fail "$1 prints another line: $(tail -n 1 "$1.out")"
	checks=$((checks + 1))
}

# ends NAME STATUS [PATTERN]: fails unless NAME exits with STATUS, and its standard error matches
# PATTERN.
ends() {
	local name=$1 want=$2 got=0 fd=${feed[$1]}
	{ wait "${pid[$name]}"; } 2>/dev/null || got=$?
	[[ $got -eq $want ]] || fail "$name: status $got, not $want: $(cat "$name.err")"
	exec {fd}>&-
	unset "pid[$name]" "feed[$name]"
	checks=$((checks + 1))
	if [[ $# -gt 2 ]]; then
		says "$3" "$name.err"
	elif [[ -s $name.err ]]; then
		fail "$name prints an error: $(cat "$name.err")"
	fi
}

now() { echo "${EPOCHREALTIME/[.,]/}"; }
since() { echo $((($(now) - $1) / 1000)); } # in ms

# soon WHAT START: fails if WHAT, begun at START, took 2 s or longer.
soon() {
	local took
	took=$(since "$2")
	[[ $took -lt 2000 ]] || fail "$1 took $took ms"
	echo "$1: $took ms"
	checks=$((checks + 1))
}

# who VOLUME: prints name and state of each system of VOLUME, in one line.
who() {
	"$ctl" systems -j "$1" |
		pick '" ".join(s["name"][8:9] + ":" + s["state"] for s in d["systems"])'
}

is_there() {
	local said
	said=$(who "${2:-v.img}")
	[[ $said == "$1" ]] || fail "the systems are '$said', not '$1'"
	checks=$((checks + 1))
}

make_volume() {
	rm -f "$1"
	expect 0 "$mkfs" -q --size 32M --phys 16G "$1"
}

