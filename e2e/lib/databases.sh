# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # $work is of the caller; quoted text is for the VM's shell
#
# SQLite, PostgreSQL and MariaDB in g1, in folders of /mnt/sg/db, for scenarios and benchmarks that
# source e2e/lib/scenario.sh first. $work is a folder for their output. With twice=on, the databases
# write pages twice, as on other file systems; otherwise once (docs/operate/databases.md).

twice=${twice:-off}
synchronous=off
[[ $twice == off ]] || synchronous=full

# in_guest COMMAND: the same as `on g1`, but a failure ends the scenario.
in_guest() { on g1 "$1" </dev/null || fail "${2:-$1}"; }

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
	on g1 'cat >>/mnt/sg/db/postgres/postgresql.conf' <<EOT
full_page_writes = $twice
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
	on g1 "cd / && $(postgres pg_amcheck -h /tmp -d postgres --heapallindexed)" </dev/null 2>&1
}

make_maria() {
	on g1 'mkdir /mnt/sg/db/maria && cat >/mnt/sg/db/maria.cnf' <<EOT
[mysqld]
datadir=/mnt/sg/db/maria
socket=/tmp/maria.sock
user=root
skip-networking
innodb_doublewrite=$twice
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
		-cmd ".output /dev/null" -cmd "pragma journal_mode=wal" -cmd "pragma synchronous='"$synchronous"'" \
		-cmd "pragma wal_autocheckpoint=10" -cmd "pragma cache_size=20" -cmd ".output stdout" \
		/mnt/sg/db/sqlite/db'
}
check_sqlite() { echo 'pragma integrity_check;' | sql_sqlite | grep -vx ok || true; }

# How a database makes a text of random length.
declare -A text=(
	[sqlite]='hex(randomblob(1 + abs(random()) % 700))'
	[postgres]='repeat(md5(random()::text), 1 + (random() * 40)::int)'
	[maria]='repeat(md5(rand()), 1 + floor(rand() * 40))'
)

make_tables() {
	[[ $1 != postgres ]] || echo 'create extension amcheck;' | sql_postgres
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

