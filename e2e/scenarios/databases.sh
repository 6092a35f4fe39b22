#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Databases without their double writes, on files with atomic writes (docs/operate/databases.md):
# PostgreSQL with full_page_writes=off, MariaDB with innodb_doublewrite=0, SQLite with
# synchronous=OFF. The guest loses its power under load, again and again, sometimes during recovery.
# After each boot, all databases recover, their own checks find no damage, and all transactions are
# there whose end this script has seen outside of the guest.
#
# SG_KILLS=N: number of power cuts. SG_DATABASES="sqlite postgres maria": only these.
# SG_DATA=inplace: without the attribute. The checks then find torn pages after enough power cuts.
#
# rig: --size 1G --mem 1536M --pkgs "sqlite3 postgresql-17 mariadb-server-core mariadb-client-core" --timeout 4h
# kernels: 6.12
# maps: walk
# limit: 7200
# shellcheck disable=SC2016 # quoted text is for the VM's shell
# shellcheck source=e2e/lib/scenario.sh
source "$(dirname "$0")/../lib/scenario.sh"
# shellcheck source=e2e/lib/databases.sh
source "$(dirname "$0")/../lib/databases.sh"

kills=${SG_KILLS:-$(scaled 2 50 200)}
read -ra databases <<<"${SG_DATABASES:-sqlite postgres maria}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seed=$(seed)
RANDOM=$seed
echo "SG_SEED=$seed repeats the moments of the power cuts, roughly; $kills power cuts"

# --- a database's life ---------------------------------------------------------------------------

# load DATABASE: runs transactions until the guest dies. All answers go to a file outside.
load() {
	local from
	from=$(cat "$work/$1.next")
	statements "$1" "$from" 2>/dev/null | "sql_$1" >"$work/$1.said" 2>"$work/$1.errors" || true
}

acked() { sed -nE 's/^ack ([0-9]+) \.$/\1/p' "$work/$1.said"; }

# verify DATABASE: recovered, whole, and with all transactions that were acknowledged.
verify() {
	local answer oldest
	answer=$("check_$1") || fail "$1: its check failed: $answer"
	[[ -z $answer ]] || fail "$1: its check: $answer"
	answer=$(echo 'select sum(n) from a; select count(*) from a; select count(*) from t;
		select count(*) from u; select count(*) from t join u on t.id = u.id and t.v = u.v;' | "sql_$1") ||
		fail "$1: cannot be read"
	read -rd '' sum counters rows others pairs <<<"$answer" || true
	[[ $sum == 0 && $counters == 1000 && $rows == "$others" && $rows == "$pairs" ]] ||
		fail "$1: parts of a transaction: sum $sum, $counters counters, $rows, $others and $pairs rows"
	echo 'select id from t order by id;' | "sql_$1" | sort >"$work/$1.ids"
	acked "$1" | sort >"$work/$1.acked"
	answer=$(comm -23 "$work/$1.acked" "$work/$1.ids" | head -n 3 | tr '\n' ' ')
	[[ -z $answer ]] || fail "$1: acknowledged transactions are lost: $answer..."
	sort -n "$work/$1.ids" "$work/$1.acked" | tail -n 1 | awk '{ print $1 + 1 }' >"$work/$1.next"
	wc -l <"$work/$1.acked" >>"$work/$1.total"
	# a volume that fills up would end the test
	oldest=$(($(<"$work/$1.next") - 1500))
	printf 'delete from %s where id < %d;\n' t "$oldest" u "$oldest" | "sql_$1" >/dev/null ||
		fail "$1: delete"
}

# all FUNCTION: calls it for each database, at the same time.
all() {
	local database jobs=()
	for database in "${databases[@]}"; do
		"$1" "$database" &
		jobs+=($!)
	done
	for job in "${jobs[@]}"; do wait "$job" || fail "$1"; done
}
start() { "start_$1"; }

# loaded: waits until each database has acknowledged some transactions of this life.
loaded() {
	local database try
	for database in "${databases[@]}"; do
		for try in $(seq 1200); do
			[[ $(acked "$database" | wc -l) -lt 20 ]] || continue 2
			sleep 0.1
		done
		fail "$database: no transactions after $try turns: $(tail -n 3 "$work/$database".{said,errors})"
	done
}

cut_power() {
	kill_guest g1
	for job in "${loads[@]}"; do wait "$job" || true; done
	loads=()
}

step "databases are made"
in_guest "mkdir /mnt/sg/db && stargatectl attr /mnt/sg data=${SG_DATA:-atomic} db"
for database in "${databases[@]}"; do
	"make_$database"
	"start_$database"
	make_tables "$database"
	echo 1 >"$work/$database.next"
	: >"$work/$database.said"
	passed "$database: $(on g1 "stargatectl attr /mnt/sg db/$database" </dev/null)"
done

loads=()
for ((turn = 1; turn <= kills; turn++)); do
	for database in "${databases[@]}"; do
		: >"$work/$database.said"
		load "$database" &
		loads+=($!)
	done
	loaded
	sleep "$(awk -v r="$RANDOM" 'BEGIN { print r / 32768 * 3 }')"
	cut_power
	start_guest g1
	if ((turn % 5 == 0)); then
		# recovery is interrupted, too
		all start >/dev/null 2>&1 &
		loads+=($!)
		sleep "$(awk -v r="$RANDOM" 'BEGIN { print r / 32768 * 4 }')"
		cut_power
		start_guest g1
	fi
	all start
	all verify
	passed "power cut $turn: $(for database in "${databases[@]}"; do
		printf '%s %s acknowledged; ' "$database" "$(tail -n 1 "$work/$database.total")"; done)$(elapsed)"
done
for database in "${databases[@]}"; do
	echo "   $database: $(awk '{ n += $1 } END { print n }' "$work/$database.total") acknowledged transactions, none lost"
done
finish
