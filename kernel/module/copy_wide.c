// SPDX-License-Identifier: GPL-2.0
/*
 * Writes, and zeroes for fresh pages, with stores that bypass the caches: no line needs write-back
 * afterwards. The kernel has such a copy (_copy_from_iter_flushcache()). This one has less
 * overhead, and for large amounts stores 32 bytes at a time instead of 8. It needs a third of the
 * instructions.
 *
 * Vector registers belong to user space. Their use costs one save and one restore per system call,
 * together the time of storing 2 KiB. The speed of memory hardly depends on the width of a store,
 * so vectors are not worth this cost for a small copy. From 256 KiB on, vectors are as fast within
 * some per cent (docs/decisions/0006).
 */
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/fpu/types.h>

#include "copy_wide.h"

#define STEP	128UL
#define LEAST	SZ_4K	/* for smaller copies, the kernel's own copy is as fast */
#define VECTORS	SZ_256K	/* from this size on vectors are used, if the processor has them */
/* most bytes of one step: with vectors, no other task gets the processor meanwhile */
#define MOST	SZ_64K

static bool sgfs_usable(void)
{
	return cpu_feature_enabled(X86_FEATURE_AVX) && irq_fpu_usable() &&
	       cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
}

/*
 * @len is a multiple of STEP, and not 0. The code loads a complete step before it stores any byte
 * of it. If a load faults, all earlier steps are complete. If a store faults (in a window whose
 * entry was removed), that step is not counted. The vector registers belong to the kernel here: gcc
 * keeps nothing in them.
 */
static __always_inline size_t sgfs_steps(void *to, const void __user *from, size_t len)
{
	long left = -(long)len;

	asm volatile("1:	vmovdqu	0(%[from], %[left]), %%ymm0\n"
		     "2:	vmovdqu	32(%[from], %[left]), %%ymm1\n"
		     "3:	vmovdqu	64(%[from], %[left]), %%ymm2\n"
		     "4:	vmovdqu	96(%[from], %[left]), %%ymm3\n"
		     "5:	vmovntdq %%ymm0, 0(%[to], %[left])\n"
		     "6:	vmovntdq %%ymm1, 32(%[to], %[left])\n"
		     "7:	vmovntdq %%ymm2, 64(%[to], %[left])\n"
		     "8:	vmovntdq %%ymm3, 96(%[to], %[left])\n"
		     "	addq	%[step], %[left]\n"
		     "	jnz	1b\n"
		     "9:	vzeroupper\n"
		     _ASM_EXTABLE_UA(1b, 9b) _ASM_EXTABLE_UA(2b, 9b)
		     _ASM_EXTABLE_UA(3b, 9b) _ASM_EXTABLE_UA(4b, 9b)
		     _ASM_EXTABLE(5b, 9b) _ASM_EXTABLE(6b, 9b)
		     _ASM_EXTABLE(7b, 9b) _ASM_EXTABLE(8b, 9b)
		     : [left] "+r" (left)
		     : [from] "r" (from + len), [to] "r" (to + len), [step] "i" (STEP)
		     : "memory", "cc");
	return len + left;
}

#define WORD_LOAD(label, at, reg)	#label ":	movq	" #at "(%[from], %[left]), %%" #reg "\n"
#define WORD_STORE(label, at, reg)	#label ":	movnti	%%" #reg ", " #at "(%[to], %[left])\n"

/* Copy by words, a line at a time. If a step ends early, one of its lines may have been stored. */
static __always_inline size_t sgfs_word_steps(void *to, const void __user *from, size_t len)
{
	long left = -(long)len;

	asm volatile(WORD_LOAD(10, 0, r8) WORD_LOAD(11, 8, r9)
		     WORD_LOAD(12, 16, r10) WORD_LOAD(13, 24, r11)
		     WORD_LOAD(14, 32, r12) WORD_LOAD(15, 40, r13)
		     WORD_LOAD(16, 48, r14) WORD_LOAD(17, 56, r15)
		     WORD_STORE(20, 0, r8) WORD_STORE(21, 8, r9)
		     WORD_STORE(22, 16, r10) WORD_STORE(23, 24, r11)
		     WORD_STORE(24, 32, r12) WORD_STORE(25, 40, r13)
		     WORD_STORE(26, 48, r14) WORD_STORE(27, 56, r15)
		     WORD_LOAD(30, 64, r8) WORD_LOAD(31, 72, r9)
		     WORD_LOAD(32, 80, r10) WORD_LOAD(33, 88, r11)
		     WORD_LOAD(34, 96, r12) WORD_LOAD(35, 104, r13)
		     WORD_LOAD(36, 112, r14) WORD_LOAD(37, 120, r15)
		     WORD_STORE(40, 64, r8) WORD_STORE(41, 72, r9)
		     WORD_STORE(42, 80, r10) WORD_STORE(43, 88, r11)
		     WORD_STORE(44, 96, r12) WORD_STORE(45, 104, r13)
		     WORD_STORE(46, 112, r14) WORD_STORE(47, 120, r15)
		     "	addq	%[step], %[left]\n"
		     "	jnz	10b\n"
		     "9:\n"
		     _ASM_EXTABLE_UA(10b, 9b) _ASM_EXTABLE_UA(11b, 9b)
		     _ASM_EXTABLE_UA(12b, 9b) _ASM_EXTABLE_UA(13b, 9b)
		     _ASM_EXTABLE_UA(14b, 9b) _ASM_EXTABLE_UA(15b, 9b)
		     _ASM_EXTABLE_UA(16b, 9b) _ASM_EXTABLE_UA(17b, 9b)
		     _ASM_EXTABLE(20b, 9b) _ASM_EXTABLE(21b, 9b)
		     _ASM_EXTABLE(22b, 9b) _ASM_EXTABLE(23b, 9b)
		     _ASM_EXTABLE(24b, 9b) _ASM_EXTABLE(25b, 9b)
		     _ASM_EXTABLE(26b, 9b) _ASM_EXTABLE(27b, 9b)
		     _ASM_EXTABLE_UA(30b, 9b) _ASM_EXTABLE_UA(31b, 9b)
		     _ASM_EXTABLE_UA(32b, 9b) _ASM_EXTABLE_UA(33b, 9b)
		     _ASM_EXTABLE_UA(34b, 9b) _ASM_EXTABLE_UA(35b, 9b)
		     _ASM_EXTABLE_UA(36b, 9b) _ASM_EXTABLE_UA(37b, 9b)
		     _ASM_EXTABLE(40b, 9b) _ASM_EXTABLE(41b, 9b)
		     _ASM_EXTABLE(42b, 9b) _ASM_EXTABLE(43b, 9b)
		     _ASM_EXTABLE(44b, 9b) _ASM_EXTABLE(45b, 9b)
		     _ASM_EXTABLE(46b, 9b) _ASM_EXTABLE(47b, 9b)
		     : [left] "+r" (left)
		     : [from] "r" (from + len), [to] "r" (to + len), [step] "i" (STEP)
		     : "memory", "cc", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15");
	return len + left;
}

static size_t sgfs_copy_some(void *to, const void __user *from, size_t len, bool vectors)
{
	size_t done = 0;

	if (!user_read_access_begin(from, len))
		return 0;
	done = vectors ? sgfs_steps(to, from, len) : sgfs_word_steps(to, from, len);
	user_read_access_end();
	return done;
}

size_t sg_copy_wide(void *to, size_t len, struct iov_iter *from)
{
	const void __user *source;
	size_t done = 0, want, n;
	bool vectors;

	len = round_down(min(len, iov_iter_count(from)), STEP);
	if (len < LEAST || !iter_is_ubuf(from) || !IS_ALIGNED((unsigned long)to, 64))
		return 0;
	vectors = len >= VECTORS && sgfs_usable();
	source = from->ubuf + from->iov_offset;
	do {
		want = min_t(size_t, len - done, MOST);
		if (vectors)
			kernel_fpu_begin();
		n = sgfs_copy_some(to + done, source + done, want, vectors);
		if (vectors)
			kernel_fpu_end();
		done += n;
	} while (n == want && done < len);
	iov_iter_advance(from, done);
	return done;
}

/* @len is a multiple of STEP, and not 0. */
static void sgfs_zero_steps(void *to, size_t len)
{
	long left = -(long)len;

	asm volatile("	vpxor	%%xmm0, %%xmm0, %%xmm0\n"
		     "1:	vmovntdq %%ymm0, 0(%[to], %[left])\n"
		     "	vmovntdq %%ymm0, 32(%[to], %[left])\n"
		     "	vmovntdq %%ymm0, 64(%[to], %[left])\n"
		     "	vmovntdq %%ymm0, 96(%[to], %[left])\n"
		     "	addq	%[step], %[left]\n"
		     "	jnz	1b\n"
		     "	vzeroupper\n"
		     : [left] "+r" (left)
		     : [to] "r" (to + len), [step] "i" (STEP)
		     : "memory", "cc");
}

static void sgfs_zero_words(void *to, size_t len)
{
	long left = -(long)len;

	asm volatile("1:	movnti	%[zero], 0(%[to], %[left])\n"
		     "	movnti	%[zero], 8(%[to], %[left])\n"
		     "	movnti	%[zero], 16(%[to], %[left])\n"
		     "	movnti	%[zero], 24(%[to], %[left])\n"
		     "	movnti	%[zero], 32(%[to], %[left])\n"
		     "	movnti	%[zero], 40(%[to], %[left])\n"
		     "	movnti	%[zero], 48(%[to], %[left])\n"
		     "	movnti	%[zero], 56(%[to], %[left])\n"
		     "	movnti	%[zero], 64(%[to], %[left])\n"
		     "	movnti	%[zero], 72(%[to], %[left])\n"
		     "	movnti	%[zero], 80(%[to], %[left])\n"
		     "	movnti	%[zero], 88(%[to], %[left])\n"
		     "	movnti	%[zero], 96(%[to], %[left])\n"
		     "	movnti	%[zero], 104(%[to], %[left])\n"
		     "	movnti	%[zero], 112(%[to], %[left])\n"
		     "	movnti	%[zero], 120(%[to], %[left])\n"
		     "	addq	%[step], %[left]\n"
		     "	jnz	1b\n"
		     : [left] "+r" (left)
		     : [to] "r" (to + len), [zero] "r" (0UL), [step] "i" (STEP)
		     : "memory", "cc");
}

size_t sg_zero_wide(void *to, size_t len)
{
	size_t done = 0, n;

	len = round_down(len, STEP);
	if (len < LEAST || !IS_ALIGNED((unsigned long)to, 64))
		return 0;
	if (len < VECTORS || !sgfs_usable()) {
		sgfs_zero_words(to, len);
		return len;
	}
	for (; done < len; done += n) {
		n = min_t(size_t, len - done, MOST);
		kernel_fpu_begin();
		sgfs_zero_steps(to + done, n);
		kernel_fpu_end();
	}
	return done;
}
