# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of scenarios. A scenario begins with
#   source "$(dirname "$0")/../lib/scenario.sh"
# and ends with `finish`. It runs with `e2e/rig run`, directly or through mk/test/run; a failed
# check ends it and prints the reason.
set -euo pipefail

SG_TOOLS=${SG_TOOLS:-$(dirname "${BASH_SOURCE[0]}")/../../build/tools}
checks=0
case_start=$EPOCHREALTIME

# The systems: g1 ... gN, and in a node `host` before them. If the host's power is cut, all guests
# lose theirs. So a scenario that runs in both ways keeps the first of `systems` live, and names the
# others by their place.
read -ra systems <<<"${RIG_SYSTEMS:-}"
in_a_node() { [[ ${systems[0]} == host ]]; }

# ring: pairs of neighbours, so that each system is the first once and the second once.
ring() {
	local i n=${#systems[@]}
	for ((i = 0; i < n; i++)); do echo "${systems[i]} ${systems[(i + 1) % n]}"; done
}

step() { printf '== %s (%s)\n' "$*" "$(elapsed)"; }

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

# elapsed: time since the scenario began.
elapsed() {
	awk -v a="$case_start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'
}

# passed WHAT: counts one more check.
passed() {
	checks=$((checks + 1))
	printf '   ok %s\n' "$*"
}

# holds WHAT COMMAND: the command succeeds in g1.
holds() {
	local what=$1 said
	shift
	said=$(on g1 "$@" 2>&1 </dev/null) || fail "$what: status $?: $* said: $said"
	passed "$what"
}

# refused WHAT PATTERN COMMAND: the command fails in g1, and its output matches PATTERN.
refused() {
	local what=$1 pattern=$2 said
	shift 2
	if said=$(on g1 "$@" 2>&1 </dev/null); then
		fail "$what: not refused: $* said: $said"
	fi
	grep -iqE -- "$pattern" <<<"$said" || fail "$what: refused without '$pattern': $said"
	passed "$what: $(grep -iE -m 1 -- "$pattern" <<<"$said")"
}

# refuses WHAT PATTERN SYSTEM COMMAND: the command fails there, and its output is one line that
# matches PATTERN.
refuses() {
	local said
	said=$(on "$3" "$4" 2>&1 </dev/null) && fail "$1: not refused: $said"
	grep -qE -- "$2" <<<"$said" || fail "$1: refused without '$2': $said"
	[[ $(wc -l <<<"$said") -eq 1 ]] || fail "$1: more than a line: $said"
	passed "$1: $said"
}

# same WHAT EXPECTED GOT
same() {
	[[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"
	passed "$1"
}

# program NAME...: compiles e2e/programs/NAME.c statically and puts it into g1 as /root/NAME. It is
# compiled here, because guests have no compiler, and once per state of the source.
program() {
	local name
	compile "$@"
	for name in "$@"; do put "$compiled/$name" "/root/$name"; done
}

# program_everywhere NAME...: the same for all systems.
program_everywhere() {
	local name system
	compile "$@"
	for name in "$@"; do
		for system in "${systems[@]}"; do put "$compiled/$name" "/root/$name" "$system"; done
	done
}

# compile NAME...: into $compiled.
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

# put FILE PATH [GUEST]: copies a program into g1, or that guest.
put() {
	on "${3:-g1}" "cat >'$2' && chmod 755 '$2'" <"$1" || fail "$1 does not get into ${3:-g1}"
}

# memory_fails ADDRESS: a machine check tells g1 that its memory there is bad. On AMD's processors
# the error is a deferred one, which the kernel finds in the bank when it polls; Intel's signal it
# (SRAO).
memory_fails() {
	if on g1 'grep -q AuthenticAMD /proc/cpuinfo' </dev/null; then
		on g1 'cd /sys/devices/system/machinecheck/machinecheck0 &&
			echo 1 >check_interval' </dev/null
		machine_check g1 4 0x9400100000080000 0 "$1" 0
	else
		machine_check g1 9 0xbd000000000000c0 5 "$1" 0x8c
	fi
}

# The map modes that this run is to see: of `# maps: inside`, or the one it was mounted with.
map_modes() { echo "${SG_MAPS:-${SG_MAP:-walk splice shadow}}"; }

# each_its_map: gives each system a map mode, in turn. maps_from N: the first one gets the Nth.
each_its_map() { maps_from 0; }
maps_from() {
	local maps i
	read -ra maps <<<"$(map_modes)"
	for ((i = 0; i < ${#systems[@]}; i++)); do
		its_map "${systems[i]}" "${maps[(i + $1) % ${#maps[@]}]}"
	done
}

# its_map SYSTEM MAP
its_map() {
	on "$1" "mount -o remount,map=$2 /mnt/sg" </dev/null || fail "$1: map=$2"
	echo "   $1: $(on "$1" 'uname -r' </dev/null), map=$2"
}

# mount_with OPTIONS: unmounts the volume and mounts it with them, and with data=$SG_DATA.
mount_with() {
	local options=$1
	[[ -z ${SG_DATA:-} || $1 == *data=* ]] || options+=",data=$SG_DATA"
	on g1 "umount /mnt/sg && mount -t stargatefs -o '$options' /dev/pmem0 /mnt/sg" ||
		fail "mounting with $options"
}

# each_map FUNCTION: calls it once per map mode, after a fresh mount in that mode.
each_map() {
	local map
	for map in $(map_modes); do
		step "map=$map"
		mount_with "map=$map"
		"$1" "$map"
	done
}

# scaled QUICK NORMAL LONG: the amount of work for this SG_TEST_SCALE.
scaled() {
	case ${SG_TEST_SCALE:-normal} in
	quick) echo "$1" ;;
	long) echo "$3" ;;
	*) echo "$2" ;;
	esac
}

# seed: a number that differs from run to run, or SG_SEED if given.
seed() { echo "${SG_SEED:-$((RANDOM * 32768 + RANDOM))}"; }

# finish: the scenario's last line.
finish() {
	[[ $checks -gt 0 ]] || fail "nothing was checked"
	echo "$checks checks, $(elapsed)"
}
