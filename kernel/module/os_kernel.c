// SPDX-License-Identifier: GPL-2.0
/* The kernel's side of the interface under the engine: functions too long for the header. */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/ratelimit.h>
#include <linux/timekeeping.h>
#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>

#include "copy_wide.h"
#include "sg_os.h"

#define LINE	64UL

/*
 * The best of clwb, clflushopt and clflush that the processor supports. The kernel patches it in at
 * boot, as its own clwb(). When a machine check finds a bad page, the kernel removes it from the
 * linear mapping before it notifies any driver. An access to a line of such a page then jumps to
 * @unmapped.
 */
#define WB_LINE(at, disp8)								\
	"1: " ALTERNATIVE_2(".byte 0x3e; clflush " at,					\
			    ".byte 0x66; clflush " at, X86_FEATURE_CLFLUSHOPT,		\
			    ".byte 0x66, 0x0f, 0xae, " disp8, X86_FEATURE_CLWB) "\n"	\
	_ASM_EXTABLE(1b, %l[unmapped])

/* Write a line back. Return false if its page is not mapped. */
static __always_inline bool sgfs_wb_line(unsigned long a)
{
	asm goto(WB_LINE("(%[a])", "0x30") : : [a] "a" (a) : "memory" : unmapped);
	return true;
unmapped:
	return false;
}

/* Write back this line and the next one. Return false if the page of either is not mapped. */
static __always_inline bool sgfs_wb_two_lines(unsigned long a)
{
	asm goto(WB_LINE("(%[a])", "0x30") WB_LINE("64(%[a])", "0x70, 0x40")
		 : : [a] "a" (a) : "memory" : unmapped);
	return true;
unmapped:
	return false;
}

/*
 * A page that is not mapped needs no write-back, because its bytes are lost. Without write-back,
 * sg_fence() still orders stores that bypass the caches.
 */
void sg_wb(const void *p, size_t len)
{
	unsigned long a = (unsigned long)p & ~(LINE - 1), end = (unsigned long)p + len;
	unsigned long last = end - LINE;

	if (!static_branch_likely(&sgfs_flush_key))
		return;
	while (a < end) {
		while (a < last && likely(sgfs_wb_two_lines(a)))
			a += 2 * LINE;
		if (a < end)
			a = likely(sgfs_wb_line(a)) ? a + LINE : (a & PAGE_MASK) + PAGE_SIZE;
	}
}

/*
 * Clear memory of the volume, and complete these stores by a fence. Otherwise a page that is freed
 * unused could be zeroed after another file has got it.
 */
void sg_os_clear(void *dst, size_t len)
{
	size_t done = sg_zero_wide(dst, len);

	if (done)
		sg_fence();
	memset(dst + done, 0, len - done);
	sg_wb(dst + done, len - done);
}

u64 sg_now(void)
{
	return ktime_get_real_ns();
}

u64 sg_ticks(void)
{
	return ktime_get_ns();
}

void sg_random(void *buf, size_t len)
{
	get_random_bytes(buf, len);
}

void sg_sleep_us(unsigned int us)
{
	usleep_range(us, us + us / 2 + 1);
}

int sg_bell_wait(struct sg_bell *b, u64 ns)
{
	int err = wait_event_interruptible_hrtimeout(b->q, xchg(&b->rung, 0), ns_to_ktime(ns));

	return err && err != -ETIME ? -EINTR : 0;
}

/*
 * Processors without SSE 4.2 do not have this instruction, but no machine with memory for
 * StargateFS has such a processor.
 */
static u32 sgfs_crc32c_slow(u32 crc, const u8 *p, size_t len)
{
	unsigned int bit;

	for (; len; len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

static __always_inline u64 sgfs_crc32c_word(u64 crc, const u8 *p)
{
	asm("crc32q %1, %0" : "+r" (crc) : "m" (*(const u64 *)p));
	return crc;
}

static __always_inline u64 sgfs_crc32c_line(u64 crc, const u8 *p)
{
	crc = sgfs_crc32c_word(sgfs_crc32c_word(crc, p), p + 8);
	crc = sgfs_crc32c_word(sgfs_crc32c_word(crc, p + 16), p + 24);
	crc = sgfs_crc32c_word(sgfs_crc32c_word(crc, p + 32), p + 40);
	return sgfs_crc32c_word(sgfs_crc32c_word(crc, p + 48), p + 56);
}

/* The library's crc32c() is a separate module on 6.1, and one instruction needs no library. */
u32 sg_crc32c(u32 crc, const void *buf, size_t len)
{
	const u8 *p = buf;
	u64 c = crc;

	if (!static_cpu_has(X86_FEATURE_XMM4_2))
		return sgfs_crc32c_slow(crc, p, len);
	for (; len >= 64; len -= 64, p += 64)
		c = sgfs_crc32c_line(c, p);
	for (; len >= 8; len -= 8, p += 8)
		c = sgfs_crc32c_word(c, p);
	for (crc = (u32)c; len; len--, p++)
		asm("crc32b %1, %0" : "+r" (crc) : "m" (*p));
	return crc;
}

/*
 * The caller may hold locks of the volume, so the allocation must not evict inodes of this file
 * system.
 */
void *sg_alloc(size_t len)
{
	return kvzalloc(len, GFP_NOFS);
}

void sg_free(void *p)
{
	kvfree(p);
}

void sg_log(void *owner, enum sg_level level, const char *fmt, ...)
{
	static const char *const prefix[] = { KERN_ERR, KERN_WARNING, KERN_INFO };
	/* Other members can cause any number of these messages, so their rate is limited. */
	static DEFINE_RATELIMIT_STATE(limit, 10 * HZ, 200);
	const struct super_block *sb = owner;
	struct va_format vaf;
	va_list ap;

	if (!__ratelimit(&limit))
		return;
	va_start(ap, fmt);
	vaf.fmt = fmt;
	vaf.va = &ap;
	if (sb)
		printk("%sstargatefs (%s): %pV\n", prefix[level], sb->s_id, &vaf);
	else
		printk("%sstargatefs: %pV\n", prefix[level], &vaf);
	va_end(ap);
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
