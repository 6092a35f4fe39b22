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

kills=${SG_KILLS:-$(scaled 2 50 200)}
read -ra databases <<<"${SG_DATABASES:-sqlite postgres maria}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seed=$(seed)
RANDOM=$seed
echo "SG_SEED=$seed repeats the moments of the power cuts, roughly; $kills power cuts"

# in_guest COMMAND: the same as `on g1`, but a failure ends the scenario.
in_guest() { on g1 "$1" </dev/null || fail "${2:-$1}"; }

# --- the databases -------------------------------------------------------------------------------

# Each database has a table `a` of 1,000 counters, whose sum stays 0, and tables `t` and `u` with
# the same rows. make_X, start_X: the server. sql_X: runs SQL from the standard input in the guest.
# check_X: the database's own check, which prints nothing if all is well.

bin=/usr/lib/postgresql/17/bin
postgres() { echo "runuser -u postgres -- env LC_ALL=C $bin/$*"; }

make_postgres() {
	in_guest "mkdir -m 700 /mnt/sg/db/postgres && chown postgres /mnt/sg/db/postgres && cd / &&
		$(postgres initdb -D /mnt/sg/db/postgres --auth trust --data-checksums --locale C \
			--no-instructions) >/tmp/initdb.log 2>&1 ||
		{ cat /tmp/initdb.log; exit 1; }" initdb
	on g1 'cat >>/mnt/sg/db/postgres/postgresql.conf' <<'EOT'
full_page_writes = off
listen_addresses = ''
unix_socket_directories = '/tmp'
wal_level = minimal
max_wal_senders = 0
shared_buffers = 1MB
bgwriter_delay = 10ms
bgwriter_lru_maxpages = 1000
jit = off
EOT
}
start_postgres() {
	in_guest "rm -f /mnt/sg/db/postgres/postmaster.pid; cd / &&
		$(postgres pg_ctl -D /mnt/sg/db/postgres -l /tmp/postgres.log -w -t 300 -s start) \
		>/tmp/ctl.log 2>&1 || { cat /tmp/ctl.log /tmp/postgres.log; exit 1; }" "postgres does not start"
}
sql_postgres() {
	on g1 "cd / && exec stdbuf -oL $(postgres psql -h /tmp -d postgres -qAtX -F "' '" \
		-v ON_ERROR_STOP=1)"
}
check_postgres() {
	on g1 "cd / && $(postgres pg_amcheck -h /tmp -d postgres --install-missing \
		--heapallindexed)" </dev/null 2>&1
}

make_maria() {
	on g1 'mkdir /mnt/sg/db/maria && cat >/mnt/sg/db/maria.cnf' <<'EOT'
[mysqld]
datadir=/mnt/sg/db/maria
socket=/tmp/maria.sock
user=root
skip-networking
innodb_doublewrite=0
innodb_flush_log_at_trx_commit=1
innodb_buffer_pool_size=8M
innodb_log_file_size=8M
innodb_max_dirty_pages_pct=0
innodb_use_native_aio=0
performance_schema=0
[client]
socket=/tmp/maria.sock
EOT
	in_guest 'mariadb-install-db --defaults-file=/mnt/sg/db/maria.cnf --skip-test-db \
		--auth-root-authentication-method=normal >/tmp/install.log 2>&1 ||
		{ cat /tmp/install.log; exit 1; }' "mariadb-install-db"
}
start_maria() {
	in_guest 'setsid mariadbd --defaults-file=/mnt/sg/db/maria.cnf \
			</dev/null >/tmp/maria.log 2>&1 &
		for try in $(seq 600); do
			! mariadb --defaults-file=/mnt/sg/db/maria.cnf -e "select 1" >/dev/null 2>&1 || exit 0
			kill -0 $! || break
			sleep 0.5
		done
		cat /tmp/maria.log; exit 1' "mariadb does not start"
}
sql_maria() {
	on g1 'mariadb --defaults-file=/mnt/sg/db/maria.cnf -N -B --unbuffered db |
		stdbuf -oL tr "\t" " "'
}
check_maria() {
	echo 'check table a, t, u extended' | sql_maria | grep -v 'status OK$' || true
	on g1 'grep -iE "corrupt|checksum mismatch" /tmp/maria.log' </dev/null || true
}

make_sqlite() { in_guest 'mkdir /mnt/sg/db/sqlite'; }
start_sqlite() { :; }
sql_sqlite() {
	on g1 'exec stdbuf -oL sqlite3 -batch -bail -separator " " -cmd ".timeout 10000" \
		-cmd ".output /dev/null" -cmd "pragma journal_mode=wal" -cmd "pragma synchronous=off" \
		-cmd "pragma wal_autocheckpoint=10" -cmd "pragma cache_size=20" -cmd ".output stdout" \
		/mnt/sg/db/sqlite/db'
}
check_sqlite() { echo 'pragma integrity_check;' | sql_sqlite | grep -vx ok || true; }

# --- a database's life ---------------------------------------------------------------------------

# How a database makes a text of random length.
declare -A text=(
	[sqlite]='hex(randomblob(1 + abs(random()) % 700))'
	[postgres]='repeat(md5(random()::text), 1 + (random() * 40)::int)'
	[maria]='repeat(md5(rand()), 1 + floor(rand() * 40))'
)

make_tables() {
	[[ $1 != maria ]] || on g1 'mariadb --defaults-file=/mnt/sg/db/maria.cnf -e "create database db"' </dev/null
	{
		echo 'create table a (id int primary key, n int, pad varchar(250));'
		echo 'create table t (id int primary key, v varchar(2000));'
		echo 'create table u (id int primary key, v varchar(2000));'
		echo 'begin;'
		seq 1000 | awk '{ printf "insert into a values (%d, 0, \"%0200d\");\n", $1, 7 }' | tr '"' "'"
		echo 'commit;'
	} | "sql_$1" >"$work/$1.made" 2>&1 || fail "$1: tables: $(tail -n 3 "$work/$1.made")"
}

# statements DATABASE FROM: transactions without end; each answers "ack ID ." when it is committed.
statements() {
	awk -v from="$2" -v seed="$RANDOM" -v text="${text[$1]}" -v database="$1" 'BEGIN {
		srand(seed)
		for (i = from; i < from + 1000000; i++) {
			printf "begin; insert into t values (%d, %s);", i, text
			printf " insert into u select * from t where id = %d;", i
			printf " update a set n = n - 1 where id = %d;", 1 + rand() * 1000
			printf " update a set n = n + 1 where id = %d; commit;", 1 + rand() * 1000
			printf " select \047ack\047, %d, \047.\047;\n", i
			if (database == "postgres" && i % 40 == 0)
				print "checkpoint;"
		}
	}'
}

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
