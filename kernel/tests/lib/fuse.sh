#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Functions for the tests of stargatefs-fuse (native/fuse*_test.sh). Each test runs in its own mount
# namespace, so that no other process of the machine keeps its mounts busy. Volumes are in $memory,
# which is a tmpfs. On a machine without /dev/fuse, or for a user that may not open it, the test
# checks only the refusal.
if [[ -z ${SG_FUSE_INSIDE:-} ]]; then
	if { : <>/dev/fuse; } 2>/dev/null; then
		user=(--user --map-root-user)
		[[ $(id -u) -ne 0 ]] || user=()
		export SG_FUSE_INSIDE=1
		exec unshare "${user[@]}" --mount --propagation private "$0" "$@"
	fi
fi

programs=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../e2e/programs" && pwd)
# shellcheck disable=SC2034 # used by the sourcing scripts
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "${BASH_SOURCE[0]}")/tools.sh"
fuse=$tools/stargatefs-fuse
memory=$dir/memory
servers=()

# Without /dev/fuse the test checks only that the refusal gives the reason.
if [[ -z ${SG_FUSE_INSIDE:-} ]]; then
	expect 0 "$mkfs" -q --size 16M --phys 16G v.img
	mkdir m
	expect 1 "$fuse" v.img m
	says '^stargatefs-fuse: .*(/dev/fuse|may not mount)' err
	echo "this machine has no /dev/fuse: only the refusal was tested"
	echo "$checks checks"
	exit 0
fi

mkdir "$memory"
mount -t tmpfs -o size=2G tmpfs "$memory"

end_all() {
	local one status=$?
	set +e
	[[ $status -eq 0 ]] || tail -n 5 ./*.log >&2
	for one in $(jobs -p); do
		kill -KILL "$one" 2>/dev/null
	done
	for one in "${servers[@]}"; do
		umount -l "$dir/$one" 2>/dev/null
	done
	pkill -KILL -f "stargatefs-fuse .* $dir/" 2>/dev/null
	umount -l "$memory"
	cd /
	rm -rf "$dir"
}
trap end_all EXIT

# make_volume NAME SIZE [OPTION...]: makes a volume $memory/NAME.
make_volume() {
	expect 0 "$mkfs" -q --size "$2" --phys 16G "${@:3}" "$memory/$1"
}

# serve NAME VOLUME [OPTION...]: mounts VOLUME at NAME; the server's messages go to NAME.log.
serve() {
	mkdir -p "$1"
	"$fuse" "${@:3}" "$memory/$2" "$dir/$1" 2>>"$1.log" ||
		fail "$1 is not mounted: $(cat "$1.log")"
	servers+=("$1")
	checks=$((checks + 1))
}

# pids_of NAME: prints the process ids of the mount's keeper and server.
pids_of() {
	pgrep -f "^[^ ]*stargatefs-fuse .* $dir/$1\$" || true
}

# process_of NAME COMM: prints the process of the mount that has this name. The server's number may
# be lower than the keeper's.
process_of() {
	local pid
	for pid in $(pids_of "$1"); do
		[[ $(cat "/proc/$pid/comm" 2>/dev/null) != "$2" ]] || echo "$pid"
	done | tail -n 1
}
server_of() { process_of "$1" stargatefs-srv; }
keeper_of() { process_of "$1" stargatefs-fuse; }

# ended NAME: fails unless the mount's processes exit within 10 s.
ended() {
	local i
	for ((i = 0; i < 200; i++)); do
		[[ -n $(pids_of "$1") ]] || { checks=$((checks + 1)); return 0; }
		sleep 0.05
	done
	fail "the server of $1 has not exited: $(pids_of "$1")"
}

leave() {
	umount "$1" || fail "$1 cannot be unmounted"
	ended "$1"
}

# clean VOLUME: fails unless fsck has no findings, and all systems have left the volume.
clean() {
	expect 0 "$fsck" -n "$memory/$1"
	says ': clean;'
}

# is WHAT EXPECTED GOT: fails unless GOT equals EXPECTED.
is() {
	[[ $2 == "$3" ]] || fail "$1: '$3', not '$2'"
	checks=$((checks + 1))
}

# program NAME: compiles e2e/programs/NAME.c.
program() {
	gcc -O1 -std=gnu11 -o "$1" "$programs/$1.c" -lpthread ||
		fail "$1 does not compile"
}

# end PID: ends a process that this test has started.
end() {
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

# soon WHAT SECONDS COMMAND...: repeats COMMAND, and fails unless it succeeds within SECONDS.
soon() {
	local end=$((SECONDS + $2 + 1))
	until "${@:3}" 2>/dev/null; do
		[[ $SECONDS -lt $end ]] || fail "$1: not within $2 s"
		sleep 0.02
	done
	checks=$((checks + 1))
}
