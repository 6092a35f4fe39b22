#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tools change a volume on a block device while a system uses the memory behind it. A loop device
# has its own page cache over its file, like /dev/pmemN over memory. machine.c has mapped the file.
# If a system joins while a tool works, either the join is refused or the tool stores nothing. Other
# systems see the tool's heartbeat. The tool undoes no store of another system.
# shellcheck source=kernel/tests/lib/machines.sh
source "$(dirname "$0")/../lib/machines.sh"

expect 0 "$mkfs" -q --phys 16G --size 32M v.img
loop=$(losetup -f --show v.img 2>err) || {
	echo "no loop device: $(cat err)"
	echo "$checks checks"
	exit 0
}
tool=
trap '[[ -z $tool ]] || kill -KILL "$tool" 2>/dev/null; kill "${pid[@]}" 2>/dev/null || true
	losetup -d "$loop"; cd /; rm -rf "$dir"' EXIT
base=0x400000000

# refused N LINE: fails unless the answer of machine N is a refusal with a reason.
refused() {
	local n=$1 answer
	shift
	echo "$*" >&"${to[$n]}"
	read -r -t 60 -u "${from[$n]}" answer || fail "no answer to '$*'"
	[[ $answer == error* ]] || fail "$*: $answer"
	checks=$((checks + 1))
}

# holding PROGRAM...: the program has exclusive access, and waits for the FIFO at the end.
holding() {
	rm -f fifo
	mkfifo fifo
	"$@" <fifo >tool.out 2>tool.err &
	tool=$!
	exec {hold}>fifo
}
let_go() {
	local got=0
	exec {hold}>&-
	wait "$tool" || got=$?
	tool=
	[[ $got == "$1" ]] || { cat tool.err >&2; fail "status $got, not $1"; }
	checks=$((checks + 1))
}

# --- without another system -------------------------------------------------------------------

head -c 3000000 /dev/urandom >file
expect 0 "$ctl" put "$loop" file /file
expect 0 "$ctl" mkdir "$loop" /d
expect 0 "$ctl" label "$loop" other
expect 0 "$fsck" -n v.img
expect 0 "$ctl" cat v.img /file
same out file
expect 0 "$ctl" bad "$loop" add $((base + 0x1000000))
expect 0 "$ctl" bad v.img
says '^0x401000000  4 KiB'
expect 0 "$ctl" bad "$loop" remove $((base + 0x1000000))
expect 0 "$ctl" bad "$loop" add $((base + 0x3000)) # no system can join with this page bad
cp v.img seen.img
refuses 1 'bad memory' "$ctl" mkdir "$loop" /e
same v.img seen.img
expect 0 "$ctl" bad "$loop" remove $((base + 0x3000))
expect 0 "$fsck" -n v.img
cp v.img whole.img

# --- while a system uses the volume -----------------------------------------------------------

start 1
say 1 join v.img "$m1" 1
say 1 mkdir 0 before
cp v.img seen.img
for words in 'bad VOLUME add 0x401000000' 'bad VOLUME remove 0x401000000' 'mkdir VOLUME /x' \
	'tune VOLUME --lease 5' 'relocate VOLUME --base 32G'; do
	# shellcheck disable=SC2086
	refuses 1 'in use by machine-11111111 \(slot' "$ctl" ${words/VOLUME/$loop}
done
cmp -n 4096 --ignore-initial=4096 v.img seen.img || fail "the hot page has changed"
refuses 8 'in use by machine-11111111 \(slot' "$fsck" -y "$loop"
say 1 mkdir 0 after
say 1 leave 0
expect 0 "$fsck" -n v.img

# --- a system that joins while a tool works ---------------------------------------------------

# put reads a pipe, so the test decides how long it works.
holding "$ctl" put "$loop" - /slow
sleep 8 # longer than the tool watches the slots, and longer than a live system may be silent
"$ctl" systems v.img >slots || true
refused 1 join v.img "$m1" 2
sleep 6
refused 1 join v.img "$m1" 3
echo slow >&"$hold"
let_go 0
say 1 join v.img "$m1" 4
say 1 mkdir 1 later
say 1 leave 1
expect 0 "$fsck" -n v.img
expect 0 "$ctl" cat v.img /slow
says '^slow$'
expect 0 "$ctl" stat v.img /later

# --- a system that joins just before the tool is seen ------------------------------------------

if ! nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	# the tool calls madvise() when it has watched all slots, to drop the data that it has read:
	# then the preloaded library runs the join
	cat >moment.c <<-'END'
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int madvise(void *p, size_t len, int advice)
		{
			static int done;

			if (advice == MADV_DONTNEED && !done) {
				done = 1;
				unsetenv("LD_PRELOAD");
				if (system(getenv("MOMENT")))
					abort();
			}
			return (int)syscall(SYS_madvise, p, len, advice);
		}
	END
	gcc -shared -fPIC -o moment.so moment.c || fail "cannot compile moment.c"
	export join="join v.img $m1 5" stdin1=/proc/$$/fd/${to[1]}
	# shellcheck disable=SC2016
	expect 1 env LD_PRELOAD="$dir/moment.so" MOMENT='echo "$join" >$stdin1; sleep 2' \
		"$ctl" mkdir "$loop" /moment
	says 'began to use the volume meanwhile' err
	read -r -t 60 -u "${from[1]}" answer || fail "no answer"
	[[ $answer == ok ]] || fail "$answer"
	say 1 mkdir 2 there
	say 1 leave 2
	expect 0 "$fsck" -n v.img
	expect 0 "$ctl" stat v.img /there
	expect 1 "$ctl" stat v.img /moment
fi

# --- a system that joins while the tool stores its slot -----------------------------------------

if ! nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	# The preloaded library runs a command at one of two moments. The tool accesses the page of
	# its slot past the cache: the command runs just before it reads that page, or just after it
	# stored it.
	cat >between.c <<-'END'
		#define _GNU_SOURCE
		#include <fcntl.h>
		#include <stdlib.h>
		#include <string.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		static void moment(const char *which, int fd, size_t len, off_t at)
		{
			static int done;

			if (done || len != 4096 || !(fcntl(fd, F_GETFL) & O_DIRECT) ||
			    at != strtol(getenv("AT"), NULL, 0) || strcmp(getenv("WHEN"), which))
				return;
			done = 1;
			unsetenv("LD_PRELOAD");
			if (system(getenv("MOMENT")))
				abort();
		}
		ssize_t pread(int fd, void *to, size_t len, off_t at)
		{
			moment("before", fd, len, at);
			return syscall(SYS_pread64, fd, to, len, at);
		}
		ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
		{
			ssize_t n = syscall(SYS_pwrite64, fd, from, len, at);

			moment("after", fd, len, at);
			return n;
		}
	END
	gcc -shared -fPIC -o between.so between.c || fail "cannot compile between.c"
	at=$("$ctl" -j dump v.img super | pick 'd["slot_off"]')
	last=$("$ctl" -j dump v.img hot | pick 'd["incarnation"]')
	# between before|after COMMAND: runs a tool that changes the volume, and runs COMMAND before
	# or after that change.
	between() {
		expect 1 env LD_PRELOAD="$dir/between.so" WHEN="$1" AT="$at" MOMENT="$2" \
			"$ctl" mkdir "$loop" /between
		says 'no more changes are stored; try again' err
		mv err between.err
		expect 1 "$ctl" stat v.img /between
	}
	# in_slot N STATE: the state of slot N is STATE (0 free, 1 live).
	in_slot() {
		[[ $(od -An -tu1 -j$((at + 256 * $1)) -N1 v.img | tr -d ' ') == "$2" ]] ||
			fail "slot $1 is not $2"
		checks=$((checks + 1))
	}
	# byte VALUE: prints the byte in the form that poke takes.
	byte() {
		printf '\\%03o' "$1"
	}

	# A system with an older incarnation takes the second slot, and sends no heartbeat.
	poke state 0 "\\1\\0\\0\\0$(byte "$last")\\0\\0\\0"
	cp v.img seen.img
	between before "dd if=state of=v.img bs=1 seek=$((at + 256)) conv=notrunc status=none"
	says '\(slot 1\) uses the volume meanwhile' between.err
	in_slot 0 0
	in_slot 1 1
	cp seen.img v.img

	# A system joins in the slot that the tool is about to take: that system continues.
	export join="join v.img $m1 6" stdin1=/proc/$$/fd/${to[1]} stdout1=/proc/$$/fd/${from[1]}
	# shellcheck disable=SC2016
	between before 'echo "$join" >$stdin1; read -r answer <$stdout1; [ "$answer" = ok ]'
	says 'machine-11111111 \(slot 0\) began to use the volume meanwhile' between.err
	in_slot 0 1
	say 1 mkdir 3 goes-on
	say 1 leave 3
	expect 0 "$fsck" -n v.img
	expect 0 "$ctl" stat v.img /goes-on

	# A system has taken its incarnation, but no slot yet.
	last=$("$ctl" -j dump v.img hot | pick 'd["incarnation"]')
	poke number 0 "$(byte $((last + 1)))"
	between after "dd if=number of=v.img bs=1 seek=$((0x1030)) conv=notrunc status=none"
	says 'another system began to use the volume meanwhile' between.err
	in_slot 0 0
	expect 0 "$fsck" -n v.img
fi

# --- a mount table that cannot be read --------------------------------------------------------

if ! nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	cat >poison.c <<-'END'
		#define _GNU_SOURCE
		#include <errno.h>
		#include <fcntl.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		ssize_t pread(int fd, void *to, size_t len, off_t at)
		{
			if (fcntl(fd, F_GETFL) & O_DIRECT) {
				errno = EIO;
				return -1;
			}
			return syscall(SYS_pread64, fd, to, len, at);
		}
	END
	gcc -shared -fPIC -o poison.so poison.c || fail "cannot compile poison.c"
	refuses 8 "^fsck.stargatefs: $loop: its mount table cannot be read\$" \
		env LD_PRELOAD="$dir/poison.so" "$fsck" -y "$loop"
	refuses 1 "$loop: its mount table cannot be read\$" \
		env LD_PRELOAD="$dir/poison.so" "$ctl" relocate "$loop" --base 32G
fi

# --- a killed tool has changed nothing, and no system waits for the tool ----------------------

cp v.img seen.img
holding "$ctl" put "$loop" - /killed
sleep 4
echo killed >&"$hold"
sleep 1
kill -KILL "$tool"
wait "$tool" 2>/dev/null || true
tool=
exec {hold}>&-
expect 0 "$ctl" mkdir v.img /next
expect 0 "$fsck" -n v.img
expect 1 "$ctl" stat v.img /killed

# --- a system that fences the tool: the tool stores nothing -----------------------------------

holding "$ctl" put "$loop" - /lost
sleep 4
expect 0 "$ctl" mkdir --force v.img /forced
echo lost >&"$hold"
let_go 1
says 'no more changes are stored' tool.err
expect 0 "$fsck" -n v.img
expect 0 "$ctl" stat v.img /forced
expect 1 "$ctl" stat v.img /lost

# --- a repair that takes a slot on the device twice -------------------------------------------

# The repair first completes the move, then repairs the inode.
if ! nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	cat >half.c <<-'END'
		#define _GNU_SOURCE
		#include <signal.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int msync(void *p, size_t len, int flags)
		{
			static int calls;

			if (++calls == 2)
				raise(SIGKILL);
			return (int)syscall(SYS_msync, p, len, flags);
		}
	END
	gcc -shared -fPIC -o half.so half.c || fail "cannot compile half.c"
	cp whole.img v.img
	record=$("$ctl" -j stat v.img /file | pick 'd["record"]')
	expect 137 env LD_PRELOAD="$dir/half.so" "$ctl" relocate --base 20G v.img
	poke v.img $((record + 28)) '\7' # the file's link count
	cp v.img half.img
	refuses 8 'half moved to base 0x500000000' "$fsck" -n "$loop"
	expect 1 "$fsck" -y "$loop"
	says 'was half moved to base 0x500000000'
	says '2 found, 2 repaired'
	expect 0 "$fsck" -n v.img
	expect 0 "$ctl" cat v.img /file
	same out file

	# Another system takes an incarnation after each store, also before the tool takes its
	# second slot. The tool's first slot stays taken, as its changes are not complete on the
	# device.
	cat >taken.c <<-'END'
		#define _GNU_SOURCE
		#include <fcntl.h>
		#include <stdint.h>
		#include <stdlib.h>
		#include <sys/mman.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int madvise(void *p, size_t len, int advice)
		{
			static int calls;
			uint64_t number;
			int fd;

			if (advice == MADV_DONTNEED && calls++) {
				fd = open(getenv("VOLUME"), O_RDWR);
				if (pread(fd, &number, 8, 0x1030) != 8)
					abort();
				number++;
				if (pwrite(fd, &number, 8, 0x1030) != 8)
					abort();
				close(fd);
			}
			return (int)syscall(SYS_madvise, p, len, advice);
		}
	END
	gcc -shared -fPIC -o taken.so taken.c || fail "cannot compile taken.c"
	cp half.img v.img
	expect 8 env LD_PRELOAD="$dir/taken.so" VOLUME="$dir/v.img" "$fsck" -y "$loop"
	says 'another system began to use the volume meanwhile' err
	in_slot 0 1
	expect 1 "$fsck" -y "$loop"
	expect 0 "$fsck" -n v.img
fi

# --- a move stores each changed page once, and frees its private copies ------------------------

if ! nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	cat >stored.c <<-'END'
		#define _GNU_SOURCE
		#include <fcntl.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		static unsigned long pages;
		ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
		{
			pages += !(fcntl(fd, F_GETFL) & O_DIRECT);
			return syscall(SYS_pwrite64, fd, from, len, at);
		}
		__attribute__((destructor)) static void tell(void)
		{
			FILE *f = fopen(getenv("STORED"), "w");

			fprintf(f, "%lu\n", pages);
			fclose(f);
		}
	END
	gcc -shared -fPIC -o stored.so stored.c || fail "cannot compile stored.c"
	cp whole.img v.img
	for i in $(seq 300); do
		printf x | dd of=pieces bs=2M seek="$i" conv=notrunc status=none
	done
	expect 0 "$ctl" put v.img pieces /pieces
	expect 0 env LD_PRELOAD="$dir/stored.so" STORED="$dir/stored" "$ctl" -j relocate "$loop" --base 20G
	json 'd["tables"] > 300'
	tables=$(pick 'd["tables"]' <out)
	[[ $(<stored) -ge $((2 * tables)) && $(<stored) -lt $((3 * tables)) ]] ||
		fail "$(<stored) pages were stored, of $tables tables"
	expect 0 "$fsck" -n v.img
fi

# --- no memory for a private copy --------------------------------------------------------------

# A limit of private memory makes the mapping fail, as vm.overcommit_memory=2 does.
if ! nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	few=(prlimit --data=$((24 << 20)))
	cp whole.img v.img
	expect 1 "$fsck" -p "$loop" # the volume was not left cleanly
	for mode in -p -y; do
		expect 0 "${few[@]}" "$fsck" "$mode" "$loop"
		says ': clean'
	done
	poke v.img 0x1040 '\1\0\0\0' # a change that the checker reports as damage
	cp v.img seen.img
	none="$loop: the kernel refuses a private mapping of 32 MiB; .*vm.overcommit_memory"
	refuses 8 "$none" "${few[@]}" "$fsck" -p "$loop"
	refuses 1 "$none" "${few[@]}" "$ctl" mkdir "$loop" /none
	same v.img seen.img
	expect 1 "$fsck" -p "$loop"
	says 'damage was seen while in use'
	expect 0 "$fsck" -n v.img
fi

# --- a repair ---------------------------------------------------------------------------------

cp whole.img v.img
poke v.img 0x1040 '\1\0\0\0' # sets the count of reported damage
expect 1 "$fsck" -y "$loop"
expect 0 "$fsck" -n v.img
expect 0 "$ctl" relocate "$loop" --base 20G
expect 0 "$ctl" -j info v.img
json 'd["base"] == "0x500000000"'
expect 0 "$fsck" -n v.img
expect 0 "$ctl" grow "$loop"
expect 0 "$ctl" cat v.img /file
same out file
echo "$checks checks"
