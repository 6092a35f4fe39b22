// SPDX-License-Identifier: Apache-2.0
/* The seam under the engine, user-space side. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <sg_os.h>

#define LINE 64

/*
 * Who reads without a lock may look at a page that has been freed and used again, and finds that
 * out from the change counter (D9). ThreadSanitizer takes it for a race unless every store is an
 * atomic one; bytes will do.
 */
#ifdef __SANITIZE_THREAD__
static void fill(u8 *dst, const u8 *src, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		__atomic_store_n(&dst[i], src ? src[i] : 0, __ATOMIC_RELAXED);
}
#else
static void fill(u8 *dst, const u8 *src, size_t len)
{
	if (src)
		memcpy(dst, src, len);
	else
		memset(dst, 0, len);
}
#endif

void sg_os_write(void *dst, const void *src, size_t len)
{
	fill(dst, src, len);
	sg_rec_store(dst, len);
}

void sg_os_zero(void *dst, size_t len)
{
	fill(dst, NULL, len);
	sg_rec_store(dst, len);
}

/* clflush is in every x86-64; that it also evicts costs time, not correctness. */
void sg_wb(const void *p, size_t len)
{
	uintptr_t a = (uintptr_t)p & ~(uintptr_t)(LINE - 1);

#ifdef SG_RECORD
	sg_rec_wb(p, len);
#endif
	for (; a < (uintptr_t)p + len; a += LINE)
		_mm_clflush((const void *)a);
}

void sg_fence(void)
{
	_mm_sfence();
	sg_rec_fence();
}

static u64 clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}

u64 sg_now(void)
{
	return clock_ns(CLOCK_REALTIME);
}

u64 sg_ticks(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void sg_random(void *buf, size_t len)
{
	if (getrandom(buf, len, 0) != (ssize_t)len)
		abort();
}

unsigned int sg_cpu(void)
{
	static __thread unsigned int id;
	static unsigned int threads;

	if (!id)	/* in the order of asking: the same in each run of a single thread */
		id = 1 + __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
	return id;
}

void sg_relax(void)
{
	_mm_pause();
}

void sg_yield(void)
{
	sched_yield();
}

bool (*sg_interrupt_hook)(void);	/* for tests of waiting */

bool sg_interrupted(void)
{
	return sg_interrupt_hook && sg_interrupt_hook();
}

void sg_sleep_us(unsigned int us)
{
	usleep(us);
}

void *sg_alloc(size_t len)
{
	return calloc(1, len);
}

void sg_free(void *p)
{
	free(p);
}

void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);

void sg_log(void *owner, enum sg_level level, const char *fmt, ...)
{
	static const char *const names[] = { "error", "warning", "info" };
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (sg_log_hook)
		sg_log_hook(owner, level, line);
	else if (level != SG_INFO)
		fprintf(stderr, "stargatefs: %s: %s\n", names[level], line);
}

int sg_snprintf(char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, len, fmt, ap);
	va_end(ap);
	return n;
}

#ifdef SG_DEBUG
void sg_assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
	abort();
}
#endif
