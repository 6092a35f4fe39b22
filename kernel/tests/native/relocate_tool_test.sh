#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stargatectl relocate, as a user calls it: moves to another base and back, dry runs, refusals,
# repeated kills. Also the messages of all other tools for a half-moved volume.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

clean() {
	expect 0 "$fsck" -n v.img
	says ': clean'
}

# at ADDRESS: the volume has this base, is clean, and has all files.
at() {
	expect 0 "$ctl" -j info v.img
	json "int(d['base'], 16) == $1"
	clean
	rm -rf back
	expect 0 "$ctl" get -r v.img / back
	diff -r --no-dereference tree back >/dev/null || fail "the volume's files have changed"
}

# Makes a sparse file with many small extents, so that its tables have holes, and moving the tables
# takes long.
mkdir -p tree/dir
head -c 3M /dev/urandom >tree/large
head -c 100 /dev/urandom >tree/dir/small
ln -s "$(printf 'x%.0s' $(seq 200))" tree/link
for i in $(seq 0 2 400); do
	printf 'piece %s' "$i" | dd of=tree/dir/pieces bs=4096 seek=$((i * 97)) conv=notrunc status=none
done
expect 0 "$mkfs" -q --size 64M --phys 16G v.img
expect 0 "$ctl" put -r v.img tree/. /
at $((16 << 30))

# --- moves to another base and back -------------------------------------------------------------

cp v.img before
expect 0 "$ctl" relocate --dry-run --base 20G v.img
says '^v.img: would be moved from 0x400000000 to 0x500000000; [0-9]+ addresses in [0-9]+ tables$'
cmp v.img before || fail 'a dry run has changed the volume'
expect 0 "$ctl" relocate --base 20G v.img
says '^v.img: moved from 0x400000000 to 0x500000000; [0-9]+ addresses in [0-9]+ tables$'
at $((20 << 30))
expect 0 "$ctl" relocate --base 20G v.img
says ': lies at 0x500000000, the address in its superblock: nothing to do$'
expect 0 "$ctl" -j relocate --base 0x500200000 v.img # the ranges overlap
json 'd["from"] == "0x500000000" and d["to"] == "0x500200000" and not d["resumed"]'
json 'd["entries"] > 200 and d["tables"] > 10 and not d["dry_run"]'
at $((0x500200000))
expect 0 "$ctl" relocate --base 20478M v.img
at $((20478 << 20))
expect 0 "$ctl" relocate --base 16G v.img
at $((16 << 30))

# --- refusals -------------------------------------------------------------------------------

refuses 1 'its address is unknown; give the address .*--base 16G' "$ctl" relocate v.img
for bad in 1 4097 -1 5000T nonsense ''; do
	refuses 2 "--base '.*': must be 2M to 4095T, a multiple of 2M" \
		"$ctl" relocate --base "$bad" v.img
done
refuses 2 'relocate: takes VOLUME' "$ctl" relocate --base 20G v.img more
refuses 2 'ls: takes no --base' "$ctl" ls --base 20G v.img
refuses 2 'ls: takes no --dry-run' "$ctl" ls --dry-run v.img
refuses 1 'No such file' "$ctl" relocate --base 20G none.img
truncate -s 32M empty.img
refuses 1 'no StargateFS here' "$ctl" relocate --base 20G empty.img
at $((16 << 30))

# relocate refuses a damaged volume.
cp v.img damaged.img
off=$("$ctl" -j dump v.img inode /large | pick 'int(d["record"], 16)')
printf '\1' | dd of=damaged.img bs=1 seek=$((off + 48 + 5)) conv=notrunc status=none
refuses 1 'damaged: repair it with fsck.stargatefs -y first' "$ctl" relocate --base 20G damaged.img
expect 0 "$ctl" -j info damaged.img
json 'd["base"] == "0x400000000"'

# --- half moved -----------------------------------------------------------------------------

moving() { # FILE: reports whether its superblock has the feature bit of a move
	(($(od -An -tu1 -j32 -N1 "$1") & 1))
}

# The tool calls sched_yield() after each table, and msync() after each step. The preloaded library
# kills the tool at the AT-th of these calls that finds VOLUME half moved.
cat >killed.c <<-'END'
	#define _GNU_SOURCE
	#include <fcntl.h>
	#include <signal.h>
	#include <stdlib.h>
	#include <sys/mman.h>
	#include <sys/syscall.h>
	#include <unistd.h>
	static void look(void)
	{
		static int calls, fd = -1;
		char moving = 0;

		if (fd < 0)
			fd = open(getenv("VOLUME"), O_RDONLY | O_CLOEXEC);
		if (fd < 0 || pread(fd, &moving, 1, 32) != 1)
			abort();
		if (moving & 1 && ++calls == atoi(getenv("AT")))
			raise(SIGKILL);
	}
	int sched_yield(void)
	{
		look();
		return (int)syscall(SYS_sched_yield);
	}
	int msync(void *p, size_t len, int flags)
	{
		look();
		return (int)syscall(SYS_msync, p, len, flags);
	}
END
gcc -shared -fPIC -o killed.so killed.c || fail "cannot compile killed.c"
# Allows the loader to load the preloaded library before the tool's sanitizer libraries.
sanitizers=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0

# killed AT VOLUME BASE [OPTION...]: runs a move to BASE that is killed at the AT-th call.
killed() {
	expect 137 env LD_PRELOAD="$dir/killed.so" ASAN_OPTIONS="$sanitizers" VOLUME="$2" AT="$1" \
		"$ctl" relocate "${@:4}" --base "$3" "$2"
	moving "$2" || fail "a move that was killed at call $1 has not left the volume half moved"
}

# half FILE BASE: FILE is a copy of the volume whose move to BASE was killed between two tables.
half() {
	cp v.img "$1"
	killed 40 "$1" "$2"
}

half h.img 20G
refuses 1 'half moved to base 0x500000000: run stargatectl relocate to finish' "$ctl" ls h.img
refuses 1 'half moved to base 0x500000000' "$ctl" put h.img tree/large /new
refuses 1 'half moved to base' "$ctl" label h.img new
refuses 8 'half moved to base 0x500000000.* stargatectl relocate' "$fsck" -n h.img
refuses 1 'use this StargateFS or died while using it' "$mkfs" --phys 16G h.img
cp h.img other.img
expect 0 "$ctl" relocate h.img # the volume has recorded the target base
says 'moved from 0x[45]00000000 to 0x500000000 \(an earlier run had begun this\)'
mv v.img whole.img
mv h.img v.img
at $((20 << 30))
mv other.img v.img
cp v.img h.img
expect 0 "$ctl" relocate --base 16G v.img
at $((16 << 30))
mv h.img v.img
expect 1 "$fsck" -p v.img
says 'was half moved to base 0x500000000.*: repaired'
at $((20 << 30))

# The test kills the move repeatedly. Each run continues where the previous one ended.
mv whole.img v.img
for at in 1 2 30 75 110 150 1 60 130; do
	killed "$at" v.img $((16384 + 2 * at))M --force
done
expect 0 "$ctl" relocate --force --base 16G v.img
at $((16 << 30))

# --- documented -----------------------------------------------------------------------------

sed 's/\\//g' "$man/stargatectl.8" >page
expect 0 "$ctl" --help
for word in relocate --base --dry-run; do
	says "$word"
	says "$word" "$completion/stargatectl"
	says "$word" page
done

echo "$checks checks"
