// SPDX-License-Identifier: Apache-2.0
/* The user-space implementation of sg_os.h, the interface on which the engine runs. */
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
 * A reader without a lock may read a page that was freed and reused, and detects this with the
 * change counter (D9). ThreadSanitizer reports a race unless every store is atomic. These functions
 * store complete words where possible, as a processor does. A concurrent reader is guaranteed to
 * read the old or the new word.
 */
#ifdef __SANITIZE_THREAD__
static void fill(u8 *dst, const u8 *src, size_t len)
{
	size_t i = 0;
	u64 word = 0;

	while (i < len) {
		if ((uintptr_t)(dst + i) % 8 || len - i < 8) {
			__atomic_store_n(&dst[i], src ? src[i] : 0, __ATOMIC_RELAXED);
			i++;
			continue;
		}
		if (src)
			memcpy(&word, src + i, 8);
		__atomic_store_n((u64 *)(dst + i), word, __ATOMIC_RELAXED);
		i += 8;
	}
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

static struct mapped {
	const u8 *base;
	u64 size;
	int fd;
} mapped[8];

static struct mapped *mapped_at(const void *base)
{
	struct mapped *m = mapped;

	while (m < mapped + sizeof(mapped) / sizeof(mapped[0]) && m->base != base)
		m++;
	return m < mapped + sizeof(mapped) / sizeof(mapped[0]) ? m : NULL;
}

void sg_os_mapped(const void *base, u64 size, int fd)
{
	struct mapped *m = mapped_at(NULL);

	if (m)
		*m = (struct mapped){ base, size, fd };
}

void sg_os_unmapped(const void *base)
{
	struct mapped *m = mapped_at(base);

	if (m)
		m->base = NULL;
}

void sg_os_peek(void *dst, const void *src, size_t len)
{
	const u8 *at = src;
	size_t i;

	for (i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
		const struct mapped *m = &mapped[i];

		if (!m->base || at < m->base || (u64)(at - m->base) >= m->size)
			continue;
		/* a range behind the end of the file has no data either */
		if (pread(m->fd, dst, len, at - m->base) != (ssize_t)len)
			memset(dst, 0, len);
		return;
	}
	memcpy(dst, src, len);
}

void sg_os_write(void *dst, const void *src, size_t len)
{
	fill(dst, src, len);
	sg_rec_store(dst, len);
	sg_hostile_store(dst);
}

void sg_os_zero(void *dst, size_t len)
{
	fill(dst, NULL, len);
	sg_rec_store(dst, len);
	sg_hostile_store(dst);
}

void sg_os_clear(void *dst, size_t len)
{
	sg_os_zero(dst, len);
	sg_wb(dst, len);
}

/*
 * True: a write-back is useless, because the volume's memory is lost with the machine's power.
 */
bool sg_os_forgets;

/*
 * Every x86-64 processor has clflush. It also evicts the cache line, which costs time but is
 * correct.
 */
void sg_wb(const void *p, size_t len)
{
	uintptr_t a = (uintptr_t)p & ~(uintptr_t)(LINE - 1);

#ifdef SG_RECORD
	sg_rec_wb(p, len);
#endif
	if (sg_os_forgets)
		return;
	for (; a < (uintptr_t)p + len; a += LINE)
		_mm_clflush((const void *)a);
}

void sg_fence(void)
{
	_mm_sfence();
	sg_rec_fence();
}

u64 (*sg_ticks_hook)(void);	/* for tests of time-outs: a clock that the test sets */
void (*sg_sleep_hook)(u64 ns);	/* with such a clock the function does not sleep */

static u64 clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}

u64 sg_now(void)
{
	if (sg_sleep_hook)
		return sg_ticks();
	return clock_ns(CLOCK_REALTIME);
}

u64 sg_ticks(void)
{
	u64 (*hook)(void) = __atomic_load_n(&sg_ticks_hook, __ATOMIC_ACQUIRE);

	return hook ? hook() : clock_ns(CLOCK_MONOTONIC);
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

	if (!id)	/* order of first calls: the same in each run */
		id = 1 + __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
	return id;
}

void sg_relax(void)
{
	_mm_pause();
}

bool sg_wanted(void)
{
	return false;
}

void sg_yield(void)
{
	sched_yield();
}

bool (*sg_interrupt_hook)(void);	/* for tests of waits */

u64 sg_self(void)
{
	static __thread char one;

	return (u64)(uintptr_t)&one;
}

bool sg_interrupted(void)
{
	return sg_interrupt_hook && sg_interrupt_hook();
}

void sg_sleep_us(unsigned int us)
{
	if (sg_sleep_hook)
		sg_sleep_hook(us * 1000ULL);
	else
		usleep(us);
}

void sg_bell_init(struct sg_bell *b)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&b->m, NULL);
	pthread_cond_init(&b->c, &attr);
	pthread_condattr_destroy(&attr);
	b->rung = false;
}

void sg_bell_end(struct sg_bell *b)
{
	pthread_cond_destroy(&b->c);
	pthread_mutex_destroy(&b->m);
}

void sg_bell_ring(struct sg_bell *b)
{
	pthread_mutex_lock(&b->m);
	b->rung = true;
	pthread_cond_signal(&b->c);
	pthread_mutex_unlock(&b->m);
}

int sg_bell_wait(struct sg_bell *b, u64 ns)
{
	u64 until = clock_ns(CLOCK_MONOTONIC) + (sg_sleep_hook ? 0 : ns);
	struct timespec t = { (time_t)(until / 1000000000ULL), (long)(until % 1000000000ULL) };

	if (sg_sleep_hook)
		sg_sleep_hook(ns);
	pthread_mutex_lock(&b->m);
	while (!b->rung && !pthread_cond_timedwait(&b->c, &b->m, &t))
		;
	b->rung = false;
	pthread_mutex_unlock(&b->m);
	return 0;
}

/* The code uses two counters alternately, so that a look that begins later does not delay a waiter.
 * */
static struct {
	pthread_mutex_t waiting;
	u64 turn, inside[2];
} looks = { .waiting = PTHREAD_MUTEX_INITIALIZER };
static __thread unsigned int look_depth, look_turn;

void sg_look_begin(void)
{
	if (look_depth++)
		return;
	look_turn = __atomic_load_n(&looks.turn, __ATOMIC_RELAXED) & 1;
	__atomic_fetch_add(&looks.inside[look_turn], 1, __ATOMIC_SEQ_CST);
}

void sg_look_end(void)
{
	if (!--look_depth)
		__atomic_fetch_sub(&looks.inside[look_turn], 1, __ATOMIC_SEQ_CST);
}

/*
 * Waits twice, because a look may have read the index before the first change, and incremented the
 * counter after it.
 */
void sg_look_wait(void)
{
	unsigned int i, old;

	pthread_mutex_lock(&looks.waiting);
	for (i = 0; i < 2; i++) {
		old = __atomic_fetch_add(&looks.turn, 1, __ATOMIC_SEQ_CST) & 1;
		while (__atomic_load_n(&looks.inside[old], __ATOMIC_SEQ_CST))
			sched_yield();
	}
	pthread_mutex_unlock(&looks.waiting);
}

bool (*sg_no_memory_hook)(size_t len);

void *sg_alloc(size_t len)
{
	return sg_no_memory_hook && sg_no_memory_hook(len) ? NULL : calloc(1, len);
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
