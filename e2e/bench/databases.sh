#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# e2e/bench/atomic runs this inside the rig: the same transactions on databases that write pages
# twice, on files in place, and on databases that do not, on files with atomic writes. Prints
# "database NAME TWICE TRANSACTIONS CALLS BYTES FSYNCS SECONDS": calls of write(), bytes that the
# databases have asked the file system to write, and calls of fsync().
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/databases.sh
source "$(dirname "$0")/../lib/databases.sh"

transactions=${SG_TRANSACTIONS:-500}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=1

counter() { on g1 "sed -n 's/^$1 //p' /sys/fs/stargatefs/*/operations" </dev/null; }

measure() {
	local calls bytes fsyncs start acks
	make_tables "$1"
	calls=$(counter writes) bytes=$(counter write_bytes) fsyncs=$(counter fsyncs)
	start=$EPOCHREALTIME
	{ statements "$1" 1 2>/dev/null || true; } | head -n "$transactions" |
		"sql_$1" >"$work/said" || fail "$1"
	acks=$(grep -c '^ack' "$work/said") || true
	((acks >= transactions * 9 / 10)) || fail "$1: $(tail -n 2 "$work/said")"
	awk -v name="$1 $twice $acks" -v calls=$(($(counter writes) - calls)) \
		-v bytes=$(($(counter write_bytes) - bytes)) \
		-v fsyncs=$(($(counter fsyncs) - fsyncs)) \
		-v a="$start" -v b="$EPOCHREALTIME" \
		'BEGIN { printf "database %s %d %d %d %.1f\n", name, calls, bytes, fsyncs, b - a }'
}

end_sqlite() { :; }
end_postgres() { in_guest "cd / && $(postgres pg_ctl -D /mnt/sg/db/postgres -m fast -s -w stop)"; }
end_maria() {
	on g1 'pkill -x mariadbd; while pgrep -x mariadbd; do sleep 0.2; done' </dev/null >/dev/null
}

for twice in on off; do
	synchronous=off data=atomic
	[[ $twice == off ]] || synchronous=full data=inplace
	in_guest "mkdir /mnt/sg/db && stargatectl attr /mnt/sg data=$data db"
	for database in ${SG_DATABASES:-sqlite postgres maria}; do
		step "$database, double writes $twice" >&2
		"make_$database"
		"start_$database"
		measure "$database"
		"end_$database"
	done
	in_guest 'rm -rf /mnt/sg/db'
done
