# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What scenarios share. A scenario begins with
#   source "$(dirname "$0")/../lib/scenario.sh"
# and ends with `finish`. It runs with `e2e/rig run`, by itself or through mk/run-tests; a failed
# check ends it with the reason.
set -euo pipefail

checks=0
case_start=$EPOCHREALTIME

step() { printf '== %s (%s)\n' "$*" "$(elapsed)"; }

fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

# elapsed: time since the scenario began.
elapsed() {
	awk -v a="$case_start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'
}

# passed WHAT: one more check has been made.
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

# refused WHAT PATTERN COMMAND: the command fails in g1, and says something like PATTERN.
refused() {
	local what=$1 pattern=$2 said
	shift 2
	if said=$(on g1 "$@" 2>&1 </dev/null); then
		fail "$what: not refused: $* said: $said"
	fi
	grep -iqE -- "$pattern" <<<"$said" || fail "$what: refused without '$pattern': $said"
	passed "$what: $(grep -iE -m 1 -- "$pattern" <<<"$said")"
}

# same WHAT EXPECTED GOT
same() {
	[[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"
	passed "$1"
}

# program NAME...: compile e2e/programs/NAME.c statically and put it into g1 as /root/NAME. Compiled
# here, because guests have no compiler; once per state of the source.
program() {
	local here out name source
	here=$(dirname "${BASH_SOURCE[0]}")/..
	out=$here/../build/e2e
	mkdir -p "$out"
	for name in "$@"; do
		source=$here/programs/$name.c
		if [[ ! $out/$name -nt $source ]]; then
			gcc -static -O2 -std=gnu11 -Wall -Wextra -Werror -pthread \
				-o "$out/$name.$$" "$source" || fail "$source does not compile"
			mv "$out/$name.$$" "$out/$name"
		fi
		put "$out/$name" "/root/$name"
	done
}

# put FILE PATH: copy a program into g1.
put() {
	on g1 "cat >'$2' && chmod 755 '$2'" <"$1" || fail "$1 does not get into g1"
}

# The map modes that this run is to see: of `# maps: inside`, or the one it was mounted with.
map_modes() { echo "${SG_MAPS:-${SG_MAP:-walk splice shadow}}"; }

# mount_with OPTIONS: unmount, and mount the volume anew so.
mount_with() {
	on g1 "umount /mnt/sg && mount -t stargatefs -o '$1' /dev/pmem0 /mnt/sg" ||
		fail "mounting with $1"
}

# each_map FUNCTION: call it once with each map mode, the volume freshly mounted so.
each_map() {
	local map
	for map in $(map_modes); do
		step "map=$map"
		mount_with "map=$map"
		"$1" "$map"
	done
}

# scaled QUICK NORMAL LONG: the amount of work that SG_TEST_SCALE asks for.
scaled() {
	case ${SG_TEST_SCALE:-normal} in
	quick) echo "$1" ;;
	long) echo "$3" ;;
	*) echo "$2" ;;
	esac
}

# seed: one that differs from run to run; given SG_SEED, that one.
seed() { echo "${SG_SEED:-$((RANDOM * 32768 + RANDOM))}"; }

# finish: the scenario's last line.
finish() {
	[[ $checks -gt 0 ]] || fail "nothing was checked"
	echo "$checks checks, $(elapsed)"
}
