// SPDX-License-Identifier: Apache-2.0
/*
 * A model of the caches of up to 64 cores, behind the calls that -fsanitize=thread inserts before
 * each load and store. This file replaces the sanitizer's runtime. So the model sees all accesses
 * of the engine, whose source is not changed; one thread acts as all cores in turn.
 *
 * A line is in any number of caches, or changed in one. Caches have no size limit, and a line that
 * is written back stays in its cache. The model has neither waiting nor memory: it counts the lines
 * that cores take from each other. It ignores stacks. A line that no core had is not counted as a
 * transfer.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sg_os.h>
#include "counter.h"

#define LINE	64
#define PLACES	(1u << 22)	/* more than the lines that a set of systems accesses */
#define STACK	(64ULL << 20)
#define NOBODY	(-1)

struct line {
	uintptr_t at;		/* address of the line; 0: unused */
	u64 holders;		/* a bit per core that has the line */
	int owner;		/* the core that has changed the line, or NOBODY */
	u32 round;		/* the count to which the sums below belong */
	u32 moved, rmws;
};

static struct line *place;
static unsigned int core, lines_used;
static u32 rounds;
static bool counting;
static uintptr_t stack;
static struct lines_sum sum;

void lines_init(void)
{
	char here;

	if (place)
		munmap(place, PLACES * sizeof(*place));
	lines_used = 0;
	place = mmap(NULL, PLACES * sizeof(*place), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (place == MAP_FAILED) {
		perror("lines: no memory");
		exit(2);
	}
	stack = (uintptr_t)&here;
}

void lines_core(unsigned int n)
{
	core = n;
}

void lines_count(bool on)
{
	counting = on;
	if (!on)
		return;
	rounds++;
	memset(&sum, 0, sizeof(sum));
}

const struct lines_sum *lines_sum(void)
{
	return &sum;
}

static struct line *line_at(uintptr_t at)
{
	u64 i = (at / LINE * 0x9e3779b97f4a7c15ULL) >> 42;

	for (;; i++) {
		struct line *l = &place[i % PLACES];

		if (l->at == at)
			return l;
		if (l->at)
			continue;
		if (++lines_used > PLACES / 4 * 3) {
			fprintf(stderr, "lines: the model has too few places: increase PLACES\n");
			exit(2);
		}
		*l = (struct line){ .at = at, .owner = NOBODY };
		return l;
	}
}

static bool counts(const struct line *l)
{
	return l->at && l->round == rounds && (l->moved || l->rmws);
}

const void *lines_most(u64 *moves)
{
	const struct line *most = NULL;
	unsigned int i;

	*moves = 0;
	for (i = 0; i < PLACES; i++) {
		if (!counts(&place[i]) || place[i].moved <= *moves)
			continue;
		most = &place[i];
		*moves = most->moved;
	}
	return most ? (const void *)most->at : NULL;
}

void lines_each(void (*each)(const void *line, u64 moved, u64 rmws))
{
	unsigned int i;

	for (i = 0; i < PLACES; i++)
		if (counts(&place[i]))
			each((const void *)place[i].at, place[i].moved, place[i].rmws);
}

static void note(struct line *l, bool moved, bool rmw, unsigned int inval)
{
	if (!counting || (!moved && !rmw))
		return;
	if (l->round != rounds) {
		l->round = rounds;
		l->moved = l->rmws = 0;
	}
	l->moved += moved;
	l->rmws += rmw;
	sum.moved += moved;
	sum.rmws += rmw;
	sum.inval += inval;
}

static void line_load(struct line *l)
{
	u64 me = 1ULL << core;
	bool moved = !(l->holders & me) && l->holders;

	if (l->owner != (int)core)
		l->owner = NOBODY;
	l->holders |= me;
	note(l, moved, false, 0);
}

static void line_store(struct line *l, bool rmw)
{
	u64 others = l->holders & ~(1ULL << core);

	l->holders = 1ULL << core;
	l->owner = (int)core;
	note(l, others, rmw, (unsigned int)__builtin_popcountll(others));
}

static bool on_stack(uintptr_t at)
{
	return at - (stack - STACK / 2) < STACK;
}

static void access_to(const volatile void *p, size_t len, bool store, bool rmw)
{
	uintptr_t at = (uintptr_t)p & ~(uintptr_t)(LINE - 1), end = (uintptr_t)p + len;

	if (!place || on_stack(at))
		return;
	for (; at < end; at += LINE) {
		struct line *l = line_at(at);

		if (store)
			line_store(l, rmw);
		else
			line_load(l);
	}
}

/* --- functions that the compiler calls ----------------------------------------------------- */

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}

#define HOOK(name, store, len)			\
	void name(void *p);			\
	void name(void *p)			\
	{					\
		access_to(p, len, store, false);\
	}
#define HOOKS(len)						\
	HOOK(__tsan_read##len, false, len)			\
	HOOK(__tsan_write##len, true, len)			\
	HOOK(__tsan_unaligned_read##len, false, len)		\
	HOOK(__tsan_unaligned_write##len, true, len)		\
	HOOK(__tsan_volatile_read##len, false, len)		\
	HOOK(__tsan_volatile_write##len, true, len)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void *p, size_t len);
void __tsan_write_range(void *p, size_t len);
void __tsan_read_range(void *p, size_t len)
{
	access_to(p, len, false, false);
}

void __tsan_write_range(void *p, size_t len)
{
	access_to(p, len, true, false);
}

/* Memory order has no effect here, because only one thread runs. */
#define RMW(bits, type, name, op)						\
	type __tsan_atomic##bits##_##name(volatile type *p, type v, int order);	\
	type __tsan_atomic##bits##_##name(volatile type *p, type v, int order)	\
	{									\
		type was = *p;							\
										\
		(void)order;							\
		access_to(p, bits / 8, true, true);				\
		*p = (type)(op);						\
		return was;							\
	}
#define ATOMIC(bits, type)							\
	type __tsan_atomic##bits##_load(const volatile type *p, int order);	\
	void __tsan_atomic##bits##_store(volatile type *p, type v, int order);	\
	type __tsan_atomic##bits##_load(const volatile type *p, int order)	\
	{									\
		(void)order;							\
		access_to(p, bits / 8, false, false);				\
		return *p;							\
	}									\
	void __tsan_atomic##bits##_store(volatile type *p, type v, int order)	\
	{									\
		(void)order;							\
		access_to(p, bits / 8, true, false);				\
		*p = v;								\
	}									\
	RMW(bits, type, exchange, v)						\
	RMW(bits, type, fetch_add, was + v)					\
	RMW(bits, type, fetch_sub, was - v)					\
	RMW(bits, type, fetch_and, was & v)					\
	RMW(bits, type, fetch_or, was | v)					\
	RMW(bits, type, fetch_xor, was ^ v)					\
	int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *was,	\
							  type v, int order, int failed);	\
	int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p, type *was,	\
							  type v, int order, int failed)	\
	{									\
		type is = *p;							\
		bool same = is == *was;						\
										\
		(void)order;							\
		(void)failed;							\
		access_to(p, bits / 8, true, true);				\
		if (same)							\
			*p = v;							\
		*was = is;							\
		return same;							\
	}									\
	int __tsan_atomic##bits##_compare_exchange_weak(volatile type *p, type *was,	\
							type v, int order, int failed);	\
	int __tsan_atomic##bits##_compare_exchange_weak(volatile type *p, type *was,	\
							type v, int order, int failed)	\
	{									\
		return __tsan_atomic##bits##_compare_exchange_strong(p, was, v, order, failed);	\
	}									\
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type was,	\
							type v, int order, int failed);	\
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type was,	\
							type v, int order, int failed)	\
	{									\
		__tsan_atomic##bits##_compare_exchange_strong(p, &was, v, order, failed);	\
		return was;							\
	}
ATOMIC(8, u8)
ATOMIC(16, u16)
ATOMIC(32, u32)
ATOMIC(64, u64)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_thread_fence(int order) { (void)order; }
void __tsan_atomic_signal_fence(int order) { (void)order; }

/* --- accesses that the compiler does not report (linked with --wrap) ------------------------- */

void *__real_memcpy(void *dst, const void *src, size_t len);
void *__real_memset(void *dst, int c, size_t len);
void *__wrap_memcpy(void *dst, const void *src, size_t len);
void *__wrap_memset(void *dst, int c, size_t len);

void *__wrap_memcpy(void *dst, const void *src, size_t len)
{
	access_to(src, len, false, false);
	access_to(dst, len, true, false);
	return __real_memcpy(dst, src, len);
}

void *__wrap_memset(void *dst, int c, size_t len)
{
	access_to(dst, len, true, false);
	return __real_memset(dst, c, len);
}

/*
 * --- the interface under the engine, without dependence on time, chance or the machine ---------
 */

void __wrap_sg_wb(const void *p, size_t len);
void __wrap_sg_os_clear(void *dst, size_t len);
void __wrap_sg_fence(void);
unsigned int __wrap_sg_cpu(void);
void __wrap_sg_random(void *buf, size_t len);
void __wrap_sg_look_begin(void);
void __wrap_sg_look_end(void);
void __wrap_sg_look_wait(void);
void *__wrap_sg_alloc(size_t len);

void __wrap_sg_wb(const void *p, size_t len)
{
	uintptr_t first = (uintptr_t)p / LINE, last = ((uintptr_t)p + len - 1) / LINE;

	if (counting && len)
		sum.backs += last - first + 1;
}

void __wrap_sg_os_clear(void *dst, size_t len)
{
	sg_os_zero(dst, len);
	__wrap_sg_wb(dst, len);
}

void __wrap_sg_fence(void)
{
	sum.fences += counting;
}

unsigned int lines_cpu;

unsigned int __wrap_sg_cpu(void)
{
	return lines_cpu;
}

void __wrap_sg_random(void *buf, size_t len)
{
	static u64 state = 88172645463325252ULL;
	u8 *to = buf;

	while (len--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		*to++ = (u8)(state >> 32);
	}
}

/* Looks cost nothing here: a kernel keeps their state in memory of each processor. */
void __wrap_sg_look_begin(void) {}
void __wrap_sg_look_end(void) {}

void __wrap_sg_look_wait(void)
{
	sum.graces += counting;
}

/* Allocates like a kernel: objects larger than a line begin at a line. */
void *__wrap_sg_alloc(size_t len)
{
	size_t whole = (len + LINE - 1) & ~(size_t)(LINE - 1);
	void *p = aligned_alloc(LINE, whole);

	return p ? __real_memset(p, 0, whole) : NULL;
}
