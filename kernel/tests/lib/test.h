/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for test programs: checks that print the failed condition, reproducible random numbers,
 * and volumes in anonymous memory. docs/testing.md describes their use.
 */
#ifndef SG_TEST_H
#define SG_TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include "engine.h"

/* --- checks -------------------------------------------------------------------------------- */

extern unsigned long test_checks;

/* Prints the file and line, the message, the seed and this thread's notes, and ends the program. */
void test_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
/* Notes the present work of this thread, for the line that test_fail() prints. */
void test_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Fails the test unless test_within(0, NULL) is called within @seconds. For calls that must not
 * wait forever.
 */
void test_within(unsigned int seconds, const char *what);
/* Prints "N checks", and returns the exit status for main(). */
int test_done(void);

static inline void test_counted(void)
{
	__atomic_fetch_add(&test_checks, 1, __ATOMIC_RELAXED);
}

#define CHECK(cond) do {								\
	test_counted();									\
	if (!(cond))									\
		test_fail(__FILE__, __LINE__, "%s", #cond);				\
} while (0)

#define CHECK_EQ(a, b) do {								\
	s64 a_ = (s64)(a), b_ = (s64)(b);						\
	test_counted();									\
	if (a_ != b_)									\
		test_fail(__FILE__, __LINE__, "%s is %" PRId64 " (0x%" PRIx64 "), "	\
			  "not %s = %" PRId64 " (0x%" PRIx64 ")", #a, a_, (u64)a_, #b,	\
			  b_, (u64)b_);							\
} while (0)

#define CHECK_OK(call) CHECK_EQ(call, 0)

/* Receives the engine's log lines, for tests that expect damage. */
extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);

/* Makes the clock run ten times as fast, or ends that. For time-outs of many seconds. */
void test_hasten(bool on);

/*
 * Calls @told before and after each access of this thread to @page, until test_trap_end() (trap.c).
 */
void test_trap(u8 *page, void (*told)(void *addr, bool behind));
void test_trap_end(void);

/* Calls fork(2). The child is killed when the calling thread ends. */
pid_t test_fork(void);

/* --- amounts and random numbers ------------------------------------------------------------ */

/* Returns the amount of work by SG_TEST_SCALE; SG_OPS=N overrides it. */
u64 test_amount(u64 quick, u64 normal, u64 slow);
/* SEED=N, default 1: the same run every time. SEED=random: another run every time. */
u64 test_seed(void);

struct rng {
	u64 state;
};
u64 rng_next(struct rng *r);			/* splitmix64 */
u64 rng_below(struct rng *r, u64 n);		/* 0..n-1; 0 for n == 0 */
u64 rng_range(struct rng *r, u64 lo, u64 hi);	/* lo..hi */
bool rng_chance(struct rng *r, unsigned int percent);
/* uniform in magnitude, so small numbers are frequent */
u64 rng_size(struct rng *r, u64 max);
void rng_fill(struct rng *r, void *buf, size_t len);

/* --- volumes ------------------------------------------------------------------------------- */

#define TEST_PHYS	0x240000000ULL
#define TEST_SMALL	SG_VOLUME_MIN

/**
 * struct tvol - a volume in shared anonymous memory, with unmapped pages around it. Its pages are
 * full of garbage before mkfs, so that none is zero by chance. @size: size of the memory.
 */
struct tvol {
	u8 *mem;
	u64 size;
	struct sg_vol v;
	struct sg_iref root;
};

extern const struct sg_identity test_identity;

u8 *test_map(u64 size);				/* shared memory between guard pages */
void test_unmap(u8 *mem, u64 size);
void tvol_make(struct tvol *t, u64 size);	/* maps, formats and joins */
void tvol_make_in(struct tvol *t, u64 size, u64 memory);	/* leaves room to grow to @memory */
/*
 * Ends all lapses, because the fenced systems have really stopped: their slots and pages are free
 * immediately.
 */
void test_lapses_over(u8 *mem);
/*
 * For `holding` of struct sg_check_opts: ends all lapses. No fenced system runs here, and a repair
 * would wait 10 s for each volume.
 */
int test_end_lapses(void *ctx, struct sg_vol *v);
void tvol_join(struct tvol *t);			/* opens, and joins by force */
void tvol_leave(struct tvol *t);
void tvol_crash(struct tvol *t);		/* the slot stays live, as after a kill */
void tvol_recheck(struct tvol *t);		/* leaves, checks, joins */
void tvol_drop(struct tvol *t);			/* leaves, checks, unmaps */

/* Fails the test if sg_check() has findings, and prints them. */
void test_clean(void *base, u64 size);
/* Prints the findings of sg_check(), and returns whether the volume is clean. */
bool test_is_clean(void *base, u64 size, struct sg_check_result *res);

/* Create or look up in one line. Names are C strings. */
struct sg_iref test_create(struct sg_vol *v, const struct sg_iref *dir, const char *name, u32 mode);
struct sg_iref test_lookup(struct sg_vol *v, const struct sg_iref *dir, const char *name);
/* Stores a name for any inode number, like damage or an attacker. */
void test_forge_name(struct sg_vol *v, const struct sg_iref *dir, const char *name, u64 ino,
		     unsigned int type);
/* Makes a symbolic link whose target has @len bytes. */
void test_symlink(struct sg_vol *v, const struct sg_iref *dir, const char *name, u32 len);
/* Writes @len bytes to a file, at most 3 MiB. */
void test_fill(struct sg_vol *v, const struct sg_iref *f, u64 pos, u64 len);

#endif
