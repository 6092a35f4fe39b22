#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Servers of stargatefs-fuse that die at a chosen moment of a call; for tests that have sourced
# fuse.sh. $deaths is empty where the library cannot be loaded.
# shellcheck disable=SC2034,SC2154 # set or used by the sourcing scripts

# $DEATH_AT is MOMENT:OPCODE. The server kills itself there as long as it can remove $DEATH_FILE.
#   part     it has read only the first 64 KiB of such a request
#   read     it has read such a request, and has done nothing yet
#   done     it has executed the call, and has not recorded its reply
#            first it runs $DEATH_SCRIPT, if there is one, while its other threads go on
#   reply    it has recorded the reply, and has not sent it
#   replied  it has sent the reply
#
# With each:OPCODE the server does not die: before each such call, as long as $DEATH_FILE exists, it
# runs $DEATH_SCRIPT. With lock:OPCODE it does so before that thread takes its $DEATH_LOCK-th lock
# in one such call. With late:OPCODE it does not die, but stops in that call until the volume has
# been unmapped, or for three seconds. With starts:0 it stops for two seconds before it fences the
# last server's slot. With joined:0 it stops for two seconds after it has joined, before it marks
# the inherited files. With wait:0 the keeper sends itself SIGTERM just before it waits for its
# server. With old:26 the kernel seems to be older than 5.13. With send:0 the keeper cannot send the
# new mount to its server.
cat >death.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fuse.h"

#define REAL(name)	__typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static u64 seen[256];	/* requests: their numbers, and in the last byte the opcode */
static unsigned int next;
static __thread bool late;
static __thread int locks_left;
static bool one_is_late, unmapped;

static bool is_now(const char *moment, unsigned int opcode)
{
	const char *at = getenv("DEATH_AT"), *file = getenv("DEATH_FILE");
	char text[32];

	snprintf(text, sizeof(text), "%s:%u", moment, opcode);
	return at && file && !strcmp(at, text) && !unlink(file);
}

static bool is_each(unsigned int opcode)
{
	const char *at = getenv("DEATH_AT"), *file = getenv("DEATH_FILE");
	char text[32];

	snprintf(text, sizeof(text), "each:%u", opcode);
	return at && file && !strcmp(at, text) && !access(file, F_OK);
}

static void die(void)
{
	kill(getpid(), SIGKILL);
	pause();
}

static unsigned int opcode_of(u64 unique)
{
	unsigned int i;

	for (i = 0; i < 256; i++)
		if (seen[i] >> 8 == unique)
			return seen[i] & 0xff;
	return 0;
}

/*
 * The kernel copies a request page by page, and fails at the first page that it cannot get: here a
 * page without access, and in a server that is being killed any page.
 */
static void cut_room(void *buf, int access)
{
	const char *at = getenv("DEATH_AT");

	if (at && !strncmp(at, "part:", 5))
		mprotect((void *)(((uintptr_t)buf + 65536) & -4096UL), 4096, access);
}

ssize_t read(int fd, void *buf, size_t len)
{
	REAL(read);
	struct fuse_in_header *in = buf;
	ssize_t n;

	if (len == CALL_BYTES)
		cut_room(buf, PROT_NONE);
	n = real(fd, buf, len);
	if (len == CALL_BYTES && n < 0 && errno == EFAULT && is_now("part", in->opcode))
		die();
	if (len == CALL_BYTES)
		cut_room(buf, PROT_READ | PROT_WRITE);
	if (len != CALL_BYTES || n < (ssize_t)sizeof(*in))
		return n;
	seen[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 256] = in->unique << 8 | in->opcode;
	if (is_now("read", in->opcode))
		die();
	if (is_each(in->opcode) && system(getenv("DEATH_SCRIPT")))
		abort();
	if (is_now("lock", in->opcode))
		locks_left = atoi(getenv("DEATH_LOCK"));
	if (is_now("old", in->opcode))
		((struct fuse_init_in *)(in + 1))->flags &= ~FUSE_SETXATTR_EXT;
	late = is_now("late", in->opcode);
	if (late)
		__atomic_store_n(&one_is_late, true, __ATOMIC_RELEASE);
	return n;
}

/* A call asks for its time before it changes anything. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	REAL(clock_gettime);
	int i;

	for (i = 0; late && id == CLOCK_REALTIME && i < 300; i++) {
		if (__atomic_load_n(&unmapped, __ATOMIC_ACQUIRE))
			break;
		usleep(10000);
	}
	if (id == CLOCK_REALTIME)
		late = false;
	return real(id, t);
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	REAL(pthread_mutex_lock);

	if (locks_left && !--locks_left && system(getenv("DEATH_SCRIPT")))
		abort();
	return real(m);
}

int munmap(void *at, size_t len)
{
	REAL(munmap);
	int r = real(at, len);

	if (len >= 16 << 20 && __atomic_load_n(&one_is_late, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&unmapped, true, __ATOMIC_RELEASE);
		sleep(1);
	}
	return r;
}

/* A reply that is kept: struct call is around it. */
ssize_t write(int fd, const void *buf, size_t len)
{
	REAL(write);
	const struct fuse_out_header *out = buf;
	unsigned int opcode = len >= sizeof(*out) && out->len == len ? opcode_of(out->unique) : 0;
	ssize_t n;

	if (opcode && is_now("done", opcode)) {
		if (getenv("DEATH_SCRIPT") && system(getenv("DEATH_SCRIPT")))
			abort();
		((struct call *)((char *)buf - offsetof(struct call, reply)))->state = CALL_RUNNING;
		die();
	}
	if (opcode && is_now("reply", opcode))
		die();
	n = real(fd, buf, len);
	if (opcode && is_now("replied", opcode))
		die();
	return n;
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
	REAL(writev);
	const struct fuse_out_header *out = v->iov_base;
	unsigned int opcode = v->iov_len == sizeof(*out) ? opcode_of(out->unique) : 0;
	ssize_t len;

	if (opcode && is_now("reply", opcode))
		die();
	len = real(fd, v, n);
	if (opcode && is_now("replied", opcode))
		die();
	return len;
}

static void stop_at(const char *moment)
{
	if (is_now(moment, 0))
		usleep(2000000);
}

/* The first act of a server. */
int prctl(int option, ...)
{
	REAL(prctl);
	va_list args;
	unsigned long arg;

	va_start(args, option);
	arg = va_arg(args, unsigned long);
	va_end(args);
	if (option == PR_SET_NAME && !strcmp((const char *)arg, "stargatefs-srv"))
		stop_at("starts");
	return real(option, arg, 0UL, 0UL, 0UL);
}

/* A server that has just joined locks its byte of the volume's file. */
int fcntl(int fd, int command, ...)
{
	REAL(fcntl);
	va_list args;
	void *arg;

	va_start(args, command);
	arg = va_arg(args, void *);
	va_end(args);
	if (command == F_OFD_SETLK)
		stop_at("joined");
	return real(fd, command, arg);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	REAL(sendmsg);

	if (is_now("send", 0)) {
		errno = ENOBUFS;
		return -1;
	}
	return real(fd, m, flags);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	REAL(waitpid);

	if (pid > 0 && is_now("wait", 0))
		raise(SIGTERM);
	return real(pid, status, options);
}
END
deaths=
symbols=$(nm -D "$fuse" 2>/dev/null || true)
if [[ $symbols == *san_* ]]; then
	echo "a sanitizer's library must be loaded before death.so: no server dies at a chosen moment"
elif [[ $symbols != *' read@'* ]]; then
	echo "$fuse is static: no server dies at a chosen moment"
else
	gcc -shared -fPIC -O1 -std=gnu11 -Wall -Werror -I"$sources/core" -I"$sources/tools/lib" \
		-I"$sources/lib" -I"$sources/tools/fuse" -o death.so death.c -ldl ||
		fail "cannot compile death.c"
	deaths=yes
fi

# serve_to_die MOMENT NAME VOLUME [OPTION...]: starts a server like serve does; the first time that
# the server reaches MOMENT, it kills itself.
serve_to_die() {
	: >death
	LD_PRELOAD="$dir/death.so" DEATH_AT="$1" DEATH_FILE="$dir/death" serve "${@:2}"
}

# died: fails unless the server has died at the chosen moment, and the keeper has started another
# one.
died() {
	[[ ! -e death ]] || fail "no server has died"
	checks=$((checks + 1))
}
