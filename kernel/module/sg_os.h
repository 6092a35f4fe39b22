/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's side of the interface under the engine: same names and semantics as
 * kernel/tools/lib/sg_os.h. All functions are called from process context.
 */
#ifndef SG_OS_H
#define SG_OS_H

#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <asm/barrier.h>
#include "format/format.h"

#undef swap	/* a macro of the kernel; the engine uses this name for other things */

/* --- volume memory ------------------------------------------------------------------------ */

/*
 * All systems together are CPUs of one coherent machine, even if this kernel has only one CPU. So
 * the locked operations have a plain lock prefix. The kernel's own atomics lose theirs by patching
 * in a guest with a single CPU.
 */
static inline u64 sg_load64(const u64 *p)
{
	return READ_ONCE(*p);
}

static inline u64 sg_load64_acquire(const u64 *p)
{
	return smp_load_acquire(p);
}

static inline void sg_store64(u64 *p, u64 v)
{
	WRITE_ONCE(*p, v);
}

static inline void sg_store64_release(u64 *p, u64 v)
{
	smp_store_release(p, v);
}

/* Store @new if the old value equals @old, and return the old value. Full barrier. */
static inline u64 sg_cas64(u64 *p, u64 old, u64 new)
{
	asm volatile("lock; cmpxchgq %2, %1"
		     : "+a" (old), "+m" (*p) : "r" (new) : "memory", "cc");
	return old;
}

/* The next three return the value before the operation. Full barrier. */
static inline u64 sg_add64(u64 *p, u64 v)
{
	asm volatile("lock; xaddq %0, %1" : "+r" (v), "+m" (*p) : : "memory", "cc");
	return v;
}

static inline u64 sg_or64(u64 *p, u64 v)
{
	u64 seen = READ_ONCE(*p), old;

	while ((old = sg_cas64(p, seen, seen | v)) != seen)
		seen = old;
	return old;
}

static inline u64 sg_and64(u64 *p, u64 v)
{
	u64 seen = READ_ONCE(*p), old;

	while ((old = sg_cas64(p, seen, seen & v)) != seen)
		seen = old;
	return old;
}

/* All systems see earlier stores before this system makes later loads. */
static inline void sg_full_fence(void)
{
	mb();		/* mfence, on a single CPU too */
}

static inline void sg_acquire_fence(void)
{
	barrier();	/* x86 reorders loads with neither loads nor later stores */
}

static inline void sg_release_fence(void)
{
	barrier();	/* x86 reorders stores with no earlier loads or stores */
}

/* Bulk stores. The caller makes them durable by sg_wb() and sg_fence(). */
/* As memcpy(), because the memory here is not a file with holes that a load could fill. */
static inline void sg_os_peek(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

/* Copies content of files. At bad memory it returns -EIO, and does not panic. */
static inline int sg_os_read(void *dst, const void *src, size_t len)
{
	return copy_mc_to_kernel(dst, src, len) ? -EIO : 0;
}

static inline void sg_os_write(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
}

static inline void sg_os_zero(void *dst, size_t len)
{
	memset(dst, 0, len);
}

/* As sg_os_zero() and sg_wb(), for pages that no system sees yet. */
void sg_os_clear(void *dst, size_t len);

/* true while a mount needs write-back (flush.c) */
DECLARE_STATIC_KEY_FALSE(sgfs_flush_key);
/* Start write-back of the cache lines of a range; sg_fence() waits until it is durable. */
void sg_wb(const void *p, size_t len);

static inline void sg_fence(void)
{
	wmb();		/* sfence */
}

/* --- everything else ------------------------------------------------------------------------ */

u64 sg_now(void);		/* ns since the epoch, signed range */
u64 sg_ticks(void);		/* monotonic ns */
void sg_random(void *buf, size_t len);
void sg_sleep_us(unsigned int us);

/* Tools' processes are nothing that a kernel looks for: it takes each one for alive. */
static inline bool sg_os_has_ended(const u8 boot[16], u64 process)
{
	return false;
}

u32 sg_crc32c(u32 crc, const void *buf, size_t len);

static inline unsigned int sg_cpu(void)	/* a hint, for spreading */
{
	return raw_smp_processor_id();
}

static inline void sg_relax(void)	/* one turn of a spin loop */
{
	cpu_relax();
}

static inline bool sg_wanted(void)	/* another task needs this processor */
{
	return need_resched();
}

static inline void sg_yield(void)
{
	cond_resched();
}

/* Report whether the waiting task is about to die, so that the result of its wait is useless. */
static inline u64 sg_self(void)		/* the running thread; never 0 */
{
	return (u64)(uintptr_t)current;
}

static inline bool sg_interrupted(void)
{
	return fatal_signal_pending(current);
}

/*
 * Begin and end a look at data that may be taken out of use meanwhile. A look is short, and never
 * sleeps. sg_look_wait() waits for all running looks (D7).
 */
static inline void sg_look_begin(void)
{
	rcu_read_lock();
}

static inline void sg_look_end(void)
{
	rcu_read_unlock();
}

static inline void sg_look_wait(void)
{
	synchronize_rcu_expedited();
}

void *sg_alloc(size_t len);	/* zeroed; NULL when there is none */
void sg_free(void *p);

static inline unsigned int sg_popcount64(u64 v)
{
	return hweight64(v);
}

static inline unsigned int sg_ctz64(u64 v)	/* v != 0 */
{
	return __ffs64(v);
}

/* Protects a few instructions on the system's own memory. */
struct sg_spin {
	spinlock_t s;
};
#define sg_spin_init(x)	spin_lock_init(&(x)->s)	/* a macro: each place is a class to lockdep */

static inline void sg_spin_lock(struct sg_spin *x)
{
	spin_lock(&x->s);
}

/* Also for interrupts, which must not wait for the thread that they have interrupted. */
static inline bool sg_spin_trylock(struct sg_spin *x)
{
	return spin_trylock(&x->s);
}

static inline void sg_spin_unlock(struct sg_spin *x)
{
	spin_unlock(&x->s);
}

/*
 * A bell, at which one task sleeps until a ring, or for @ns at most. An earlier ring is not lost.
 * -EINTR: after a signal.
 */
struct sg_bell {
	wait_queue_head_t q;
	int rung;
};
#define sg_bell_init(b)	do { init_waitqueue_head(&(b)->q); (b)->rung = 0; } while (0)

static inline void sg_bell_end(struct sg_bell *b)
{
}

static inline void sg_bell_ring(struct sg_bell *b)
{
	smp_store_release(&b->rung, 1);
	wake_up(&b->q);
}

int sg_bell_wait(struct sg_bell *b, u64 ns);

enum sg_level { SG_ERR, SG_WARN, SG_INFO };
/* @owner is sg_vol.owner, the struct super_block, so that a line names its volume; or NULL. */
__printf(3, 4) void sg_log(void *owner, enum sg_level level, const char *fmt, ...);
__printf(3, 4) int sg_snprintf(char *buf, size_t len, const char *fmt, ...);

#ifdef SG_DEBUG
#define SG_ASSERT(x)	WARN_ON_ONCE(!(x))
#else
#define SG_ASSERT(x)	((void)sizeof(!(x)))
#endif

#endif
