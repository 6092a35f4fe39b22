/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The POSIX matrix: one small test for each expectation of a file system's users. Each test has its
 * own process and its own new directory. It ends at the first failed check.
 */
#ifndef POSIX_H
#define POSIX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

struct test {
	const char *subject, *name;
	void (*run)(void);
	struct test *next;
};
void add_test(struct test *t);

#define TEST(subject, name)						\
	static void name(void);						\
	__attribute__((constructor)) static void add_##name(void)	\
	{								\
		static struct test t = { subject, #name, name, NULL };	\
		add_test(&t);						\
	}								\
	static void name(void)

void failed(const char *file, int line, const char *what) __attribute__((noreturn));

#define CHECK(x) ((x) ? (void)0 : failed(__FILE__, __LINE__, #x))
/* Returns the value of a call that must not return -1. */
#define OK(x) __extension__ ({						\
	__typeof__(x) value_ = (x);					\
	if (value_ == (__typeof__(value_))-1)				\
		failed(__FILE__, __LINE__, #x);				\
	value_; })
#define FAILS(x, err) __extension__ ({					\
	errno = 0;							\
	if ((long)(x) != -1 || errno != (err))				\
		failed(__FILE__, __LINE__, #x " must fail with " #err); })

/* Ends a test for a feature that this kernel lacks, and prints why. The summary counts the test. */
void skip(const char *why) __attribute__((noreturn));

int make_file(const char *name, const void *data, size_t len);	/* open, read and write */
void fill(void *buf, size_t len, unsigned int seed);
bool is_filled(const void *buf, size_t len, unsigned int seed);
bool is_zero(const void *buf, size_t len);
struct stat stat_of(const char *name);
off_t size_of(const char *name);
bool exists(const char *name);
void wait_tick(void);			/* sleeps until new time stamps differ from earlier ones */
bool later(struct timespec a, struct timespec b);
bool same_time(struct timespec a, struct timespec b);
/* Runs @fn in a child process as this user, without capabilities. The child must succeed. */
void as_user(uid_t uid, gid_t gid, void (*fn)(void));
void in_child(void (*fn)(void));
/* Runs @fn in a child process. The signal @sig must end the child. */
void dies_of(int sig, void (*fn)(void));

#define MIB (1024L * 1024)

#endif
