/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user-space version of the interface on which the engine runs. kernel/module/sg_os.h is the
 * kernel's version, with the same names and semantics. From outside, the engine includes only
 * <sg_os.h>.
 *
 * All stores to a volume use the functions of the first group. So tests can record each store
 * (SG_RECORD: kernel/tests/lib/record.h), and no store bypasses the journal.
 */
#ifndef SG_OS_H
#define SG_OS_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <pthread.h>
#include "format/format.h"

/* Hooks of the crash recorder, called after each store, write-back and fence. */
#ifdef SG_RECORD
void sg_rec_store(const void *p, size_t len);
void sg_rec_wb(const void *p, size_t len);
void sg_rec_fence(void);
#else
static inline void sg_rec_store(const void *p, size_t len) { (void)p; (void)len; }
static inline void sg_rec_wb(const void *p, size_t len) { (void)p; (void)len; }
static inline void sg_rec_fence(void) { }
#endif

/*
 * Hooks of kernel/tests/hostile: before each load and after each store, another system may store.
 */
#ifdef SG_HOSTILE
void sg_hostile_load(const u64 *p);
void sg_hostile_store(const void *p);
#else
static inline void sg_hostile_load(const u64 *p) { (void)p; }
static inline void sg_hostile_store(const void *p) { (void)p; }
#endif

/* --- volume memory ------------------------------------------------------------------------ */

static inline u64 sg_load64(const u64 *p)
{
	sg_hostile_load(p);
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline u64 sg_load64_acquire(const u64 *p)
{
	sg_hostile_load(p);
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void sg_store64(u64 *p, u64 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
	sg_rec_store(p, 8);
	sg_hostile_store(p);
}

static inline void sg_store64_release(u64 *p, u64 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
	sg_rec_store(p, 8);
	sg_hostile_store(p);
}

/* Returns the old value, and stores @new if the old value equals @old. Full barrier. */
static inline u64 sg_cas64(u64 *p, u64 old, u64 new)
{
	__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	sg_rec_store(p, 8);
	sg_hostile_store(p);
	return old;
}

/* The next three return the value before the operation. Full barrier. */
static inline u64 sg_add64(u64 *p, u64 v)
{
	u64 old = __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);

	sg_rec_store(p, 8);
	sg_hostile_store(p);
	return old;
}

static inline u64 sg_or64(u64 *p, u64 v)
{
	u64 old = __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);

	sg_rec_store(p, 8);
	sg_hostile_store(p);
	return old;
}

static inline u64 sg_and64(u64 *p, u64 v)
{
	u64 old = __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);

	sg_rec_store(p, 8);
	sg_hostile_store(p);
	return old;
}

/* Orders all earlier stores, as seen by all systems, before all later loads. */
static inline void sg_full_fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void sg_acquire_fence(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static inline void sg_release_fence(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Reads content of files. In the kernel this can fail if the memory is bad. */
static inline int sg_os_read(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return 0;
}

/* Bulk stores. They are not durable before sg_wb() and sg_fence(). */
void sg_os_write(void *dst, const void *src, size_t len);
void sg_os_zero(void *dst, size_t len);
/* As sg_os_zero() and sg_wb(), for pages that no system can reach yet. */
void sg_os_clear(void *dst, size_t len);
/*
 * As memcpy(), but does not fill a hole of a file. On tmpfs, a load through a mapping would fill
 * it.
 */
void sg_os_peek(void *dst, const void *src, size_t len);
/* Registers the file of the mapping at @base for sg_os_peek(), until a call removes it. */
void sg_os_mapped(const void *base, u64 size, int fd);
void sg_os_unmapped(const void *base);

/* If the volume's memory is lost with the machine's power (tmpfs), sg_wb() does nothing. */
extern bool sg_os_forgets;
/* Starts write-back of the cache lines of a range; sg_fence() waits until it is durable. */
void sg_wb(const void *p, size_t len);
void sg_fence(void);

/* --- everything else ------------------------------------------------------------------------ */

u64 sg_now(void);		/* ns since the epoch, signed range */
u64 sg_ticks(void);		/* monotonic ns */
void sg_random(void *buf, size_t len);
unsigned int sg_cpu(void);	/* a hint, to spread the load */
void sg_relax(void);		/* one turn of a spin loop */
/* whether another task needs this processor; user space cannot detect this */
bool sg_wanted(void);
void sg_yield(void);
u64 sg_self(void);		/* the running thread; never 0 */
/* whether the waiting task must die; in user space a signal kills it directly */
bool sg_interrupted(void);
void sg_sleep_us(unsigned int us);
/*
 * Reports whether a tool's process (sg_slot.pid) of such a boot has certainly ended. Returns false
 * also if this process cannot see the tool's process.
 */
bool sg_os_has_ended(const u8 boot[16], u64 process);
u32 sg_crc32c(u32 crc, const void *buf, size_t len);

/*
 * Begins and ends a look: a read of data that another thread may free. Looks may be nested.
 * sg_look_wait() waits for all looks in progress in this process (D7).
 */
void sg_look_begin(void);
void sg_look_end(void);
void sg_look_wait(void);

void *sg_alloc(size_t len);	/* zeroed; NULL without memory */
void sg_free(void *p);

static inline unsigned int sg_popcount64(u64 v)
{
	return (unsigned int)__builtin_popcountll(v);
}

static inline unsigned int sg_ctz64(u64 v)	/* v != 0 */
{
	return (unsigned int)__builtin_ctzll(v);
}

/* Protects a few instructions on the system's own memory. */
#ifdef SG_LINES
/*
 * In kernel/tests/lines, one thread emulates all processors. This lock is as long as the kernel's,
 * and always free.
 */
struct sg_spin {
	u32 v;
};
static inline void sg_spin_init(struct sg_spin *s) { s->v = 0; }
static inline void sg_spin_lock(struct sg_spin *s)
{
	__atomic_exchange_n(&s->v, 1, __ATOMIC_ACQUIRE);
}
static inline bool sg_spin_trylock(struct sg_spin *s)
{
	sg_spin_lock(s);
	return true;
}
static inline void sg_spin_unlock(struct sg_spin *s)
{
	__atomic_store_n(&s->v, 0, __ATOMIC_RELEASE);
}
#else
struct sg_spin {
	pthread_mutex_t m;
};
static inline void sg_spin_init(struct sg_spin *s) { pthread_mutex_init(&s->m, NULL); }
static inline void sg_spin_lock(struct sg_spin *s) { pthread_mutex_lock(&s->m); }
static inline bool sg_spin_trylock(struct sg_spin *s) { return !pthread_mutex_trylock(&s->m); }
static inline void sg_spin_unlock(struct sg_spin *s) { pthread_mutex_unlock(&s->m); }
#endif

/*
 * A bell: one task sleeps until another rings, or for at most @ns. A ring before the sleep is not
 * lost. Returns -EINTR after a signal (never in user space).
 */
struct sg_bell {
	pthread_mutex_t m;
	pthread_cond_t c;
	bool rung;
};
void sg_bell_init(struct sg_bell *b);
void sg_bell_end(struct sg_bell *b);
void sg_bell_ring(struct sg_bell *b);
int sg_bell_wait(struct sg_bell *b, u64 ns);

enum sg_level { SG_ERR, SG_WARN, SG_INFO };
/*
 * Prints a line. @owner is sg_vol.owner, an object of the engine's caller that names the volume in
 * the line.
 */
void sg_log(void *owner, enum sg_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int sg_snprintf(char *buf, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#ifdef SG_DEBUG
void sg_assert_failed(const char *what, const char *file, int line) __attribute__((noreturn));
#define SG_ASSERT(x) ((x) ? (void)0 : sg_assert_failed(#x, __FILE__, __LINE__))
#else
#define SG_ASSERT(x) ((void)sizeof(!(x)))
#endif

#ifndef ENODATA
#error "errno.h of Linux expected"
#endif

#endif
