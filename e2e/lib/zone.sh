# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Common parts of scenarios in which the node has a zone, and each VM one of its volumes. Their
# header has `node: --no-mount`. A scenario sources this file after scenario.sh.
# shellcheck disable=SC2016 # quoted text is for a system's shell

# in_one SYSTEM WHAT COMMAND: checks that COMMAND succeeds in the system.
in_one() {
	local said
	said=$(on "$1" "$3" 2>&1 </dev/null) || fail "$2: $1: $3: $said"
	passed "$2"
}

# denied SYSTEM WHAT PATTERN COMMAND: checks that COMMAND fails in the system, and that its output
# matches PATTERN.
denied() {
	local said
	if said=$(on "$1" "$4" 2>&1 </dev/null); then fail "$2: the command succeeded: $said"; fi
	grep -qE -- "$3" <<<"$said" || fail "$2: the output does not match '$3': $said"
	passed "$2: $(grep -E -m 1 -- "$3" <<<"$said")"
}

# of VOLUME KEY: prints the value of KEY in the output of `stargatectl volume show`.
of() {
	on host "stargatectl -j volume show $1" </dev/null | python3 -c 'import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

# start GUEST VOLUME [--read-only]: starts a guest with the volume. stargatectl prints QEMU's
# arguments for the volume.
start() {
	local words machine=0b5e55ed-0000-4000-8000-00000000000${1#g}
	mapfile -t words < <(on host "stargatectl -j volume qemu-args $2 --memory 384M \
		--machine $machine ${3:-}" </dev/null | python3 -c 'import json, sys
print(*json.load(sys.stdin)["args"], sep="\n")')
	[[ -n ${words[*]} ]] || fail "stargatectl prints no arguments for $2"
	start_guest "$1" --no-mount -- "${words[@]}"
	on "$1" 'for try in $(seq 500); do [ -b /dev/pmem0 ] && exit; sleep 0.02; done; exit 1' </dev/null ||
		fail "$1 has no volume"
}

# memory FROM END: prints the bytes of the range between two addresses. This machine reads them, and
# not the node. bytes FROM END: prints a digest of these bytes.
memory() {
	dd if="$RIG_RANGE" iflag=skip_bytes,count_bytes bs=1M skip=$(($1 - RIG_BASE)) \
		count=$(($2 - $1)) status=none
}
bytes() { memory "$1" "$2" | sha256sum; }
