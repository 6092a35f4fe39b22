# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of scenarios. A scenario begins with
#   source "$(dirname "$0")/../lib/scenario.sh"
# and ends with `finish`. `e2e/rig run` runs it, directly or through mk/test/run. A failed check
# prints the reason and ends the scenario.
set -euo pipefail

SG_TOOLS=${SG_TOOLS:-$(dirname "${BASH_SOURCE[0]}")/../../build/tools}
checks=0
case_start=$EPOCHREALTIME

# The systems: g1 ... gN, and with a node, `host` before them. A power cut of the host also cuts the
# power of all guests. So a scenario that can run with and without a node must not kill the first of
# `systems`, and uses indexes instead of names.
read -ra systems <<<"${RIG_SYSTEMS:-}"
in_a_node() { [[ ${systems[0]} == host ]]; }

# ring: prints pairs of systems. Each system is the first of one pair, and the second of another.
ring() {
	local i n=${#systems[@]}
	for ((i = 0; i < n; i++)); do echo "${systems[i]} ${systems[(i + 1) % n]}"; done
}

step() { printf '== %s (%s)\n' "$*" "$(elapsed)"; }

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

# elapsed: prints the time since the scenario's start.
elapsed() {
	awk -v a="$case_start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'
}

# passed WHAT: counts and prints a check that has passed.
passed() {
	checks=$((checks + 1))
	printf '   ok %s\n' "$*"
}

# holds WHAT COMMAND: checks that the command succeeds in g1.
holds() {
	local what=$1 said
	shift
	said=$(on g1 "$@" 2>&1 </dev/null) || fail "$what: status $?: $* said: $said"
	passed "$what"
}

# refused WHAT PATTERN COMMAND: checks that the command fails in g1, and that its output matches
# PATTERN.
refused() {
	local what=$1 pattern=$2 said
	shift 2
	if said=$(on g1 "$@" 2>&1 </dev/null); then
		fail "$what: the command succeeded: $* said: $said"
	fi
	grep -iqE -- "$pattern" <<<"$said" || fail "$what: the output does not match '$pattern': $said"
	passed "$what: $(grep -iE -m 1 -- "$pattern" <<<"$said")"
}

# refuses WHAT PATTERN SYSTEM COMMAND: checks that the command fails in the system, and that its
# output is one line that matches PATTERN.
refuses() {
	local said
	said=$(on "$3" "$4" 2>&1 </dev/null) && fail "$1: the command succeeded: $said"
	grep -qE -- "$2" <<<"$said" || fail "$1: the output does not match '$2': $said"
	[[ $(wc -l <<<"$said") -eq 1 ]] || fail "$1: the output has more than one line: $said"
	passed "$1: $said"
}

# same WHAT EXPECTED GOT: checks that two texts are equal.
same() {
	[[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"
	passed "$1"
}

# program NAME...: compiles e2e/programs/NAME.c, and copies the program to g1 as /root/NAME.
program() {
	local name
	compile "$@"
	for name in "$@"; do put "$compiled/$name" "/root/$name"; done
}

# program_everywhere NAME...: does the same for all systems.
program_everywhere() {
	local name system
	compile "$@"
	for name in "$@"; do
		for system in "${systems[@]}"; do put "$compiled/$name" "/root/$name" "$system"; done
	done
}

# compile NAME...: compiles e2e/programs/NAME.c statically on this machine, because guests have no
# compiler. Compiles only changed programs. Sets $compiled to the folder of the programs.
compile() {
	local here out name source
	here=$(dirname "${BASH_SOURCE[0]}")/..
	out=$here/../build/e2e
	mkdir -p "$out"
	for name in "$@"; do
		source=$here/programs/$name.c
		if [[ ! $out/$name -nt $source ||
			-n $(find "$here/programs" -name '*.h' -newer "$out/$name") ]]; then
			gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread \
				-o "$out/$name.$$" "$source" || fail "$source does not compile"
			mv "$out/$name.$$" "$out/$name"
		fi
	done
	compiled=$out
}

# put FILE PATH [SYSTEM]: copies a program to g1, or to that system.
put() {
	on "${3:-g1}" "cat >'$2' && chmod 755 '$2'" <"$1" || fail "$1 cannot be copied to ${3:-g1}"
}

# memory_fails ADDRESS: injects a machine check, which reports bad memory at ADDRESS to g1. On AMD's
# processors, the error is a deferred error, which the kernel finds when it polls the bank. Intel's
# processors signal the error (SRAO).
memory_fails() {
	if on g1 'grep -q AuthenticAMD /proc/cpuinfo' </dev/null; then
		on g1 'cd /sys/devices/system/machinecheck/machinecheck0 &&
			echo 1 >check_interval' </dev/null
		machine_check g1 4 0x9400100000080000 0 "$1" 0
	else
		machine_check g1 9 0xbd000000000000c0 5 "$1" 0x8c
	fi
}

# map_modes: prints the map modes that this scenario must test: several for `# maps: inside`, and
# the mode of the mount in all other cases.
map_modes() { echo "${SG_MAPS:-${SG_MAP:-walk splice shadow}}"; }

# each_its_map: gives the systems the map modes in a circle. maps_from N: does the same, but the
# first system gets mode number N.
each_its_map() { maps_from 0; }
maps_from() {
	local maps i
	read -ra maps <<<"$(map_modes)"
	for ((i = 0; i < ${#systems[@]}; i++)); do
		its_map "${systems[i]}" "${maps[(i + $1) % ${#maps[@]}]}"
	done
}

# its_map SYSTEM MAP: changes a system's map mode by a remount.
its_map() {
	on "$1" "mount -o remount,map=$2 /mnt/sg" </dev/null || fail "$1: map=$2"
	echo "   $1: $(on "$1" 'uname -r' </dev/null), map=$2"
}

# mount_with OPTIONS: unmounts the volume in g1, and mounts it with OPTIONS, and with data=$SG_DATA
# if that is set.
mount_with() {
	local options=$1
	[[ -z ${SG_DATA:-} || $1 == *data=* ]] || options+=",data=$SG_DATA"
	on g1 "umount /mnt/sg && mount -t stargatefs -o '$options' /dev/pmem0 /mnt/sg" ||
		fail "g1 cannot mount the volume with $options"
}

# each_map FUNCTION: calls FUNCTION once for each map mode, after a new mount with that mode.
each_map() {
	local map
	for map in $(map_modes); do
		step "map=$map"
		mount_with "map=$map"
		"$1" "$map"
	done
}

# scaled QUICK NORMAL LONG: prints the amount of work for this SG_TEST_SCALE.
scaled() {
	case ${SG_TEST_SCALE:-normal} in
	quick) echo "$1" ;;
	long) echo "$3" ;;
	*) echo "$2" ;;
	esac
}

# seed: prints SG_SEED if it is set, or a random number.
seed() { echo "${SG_SEED:-$((RANDOM * 32768 + RANDOM))}"; }

# finish: the scenario's last line.
finish() {
	[[ $checks -gt 0 ]] || fail "the scenario has made no check"
	echo "$checks checks, $(elapsed)"
}
