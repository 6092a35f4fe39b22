#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A library that changes a path immediately after a tool has used it, for tests that have sourced
# tools.sh. $swaps is empty where the library cannot be loaded.
# shellcheck disable=SC2034,SC2154 # set or used by the sourcing scripts

# The library runs $SWAP_SCRIPT once, after a $SWAP_CALL on a path whose last name is $SWAP_NAME. It
# skips the first $SWAP_SKIP such calls.
cat >swap.c <<'END'
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void swap(const char *call, const char *path)
{
	const char *want = getenv("SWAP_CALL"), *name = strrchr(path, '/');
	static int done, skipped;
	int err = errno;

	name = name ? name + 1 : path;
	if (done || !want || strcmp(want, call) || strcmp(name, getenv("SWAP_NAME")))
		return;
	if (skipped < atoi(getenv("SWAP_SKIP"))) {
		skipped++;
		return;
	}
	done = 1;
	unsetenv("LD_PRELOAD");
	if (system(getenv("SWAP_SCRIPT")))
		abort();
	close(open(getenv("SWAP_DONE"), O_CREAT | O_WRONLY, 0600));
	errno = err;
}
#define REAL(name)	__typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int lstat(const char *path, struct stat *st)
{
	REAL(lstat);
	int r = real(path, st);

	swap("stat", path);
	return r;
}

int fstatat(int at, const char *path, struct stat *st, int flags)
{
	REAL(fstatat);
	int r = real(at, path, st, flags);

	swap("stat", path);
	return r;
}

int mkdir(const char *path, mode_t mode)
{
	REAL(mkdir);
	int r = real(path, mode);

	swap("mkdir", path);
	return r;
}

int mkdirat(int at, const char *path, mode_t mode)
{
	REAL(mkdirat);
	int r = real(at, path, mode);

	swap("mkdir", path);
	return r;
}

int openat(int at, const char *path, int flags, ...)
{
	REAL(openat);
	va_list ap;
	int r;

	va_start(ap, flags);
	r = real(at, path, flags, va_arg(ap, mode_t));
	va_end(ap);
	swap("open", path);
	return r;
}

int open(const char *path, int flags, ...)
{
	REAL(open);
	va_list ap;
	int r;

	va_start(ap, flags);
	r = real(path, flags, va_arg(ap, mode_t));
	va_end(ap);
	swap("open", path);
	return r;
}

DIR *opendir(const char *path)
{
	REAL(opendir);
	DIR *d = real(path);

	swap("open", path);
	return d;
}
END
swaps=
if nm -D "$ctl" 2>/dev/null | grep -qE '__[atu][sb]?san|__ubsan'; then
	echo "a sanitizer's library must be loaded before swap.so: tests with swapped paths are skipped"
else
	gcc -shared -fPIC -O1 -Wno-nonnull -o swap.so swap.c -ldl || fail "cannot compile swap.c"
	swaps=yes
fi

# swapped CALL NAME SCRIPT STATUS COMMAND...: runs COMMAND, which exits with STATUS, and SCRIPT
# after CALL on NAME.
swapped() {
	local call=$1 name=$2 script=$3
	shift 3
	rm -f swapped
	expect "$1" env LD_PRELOAD="$dir/swap.so" SWAP_CALL="$call" SWAP_NAME="$name" \
		SWAP_SCRIPT="$script" SWAP_SKIP="${swap_skip:-0}" SWAP_DONE="$dir/swapped" "${@:2}"
}
