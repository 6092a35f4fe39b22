// SPDX-License-Identifier: GPL-2.0
/*
 * Large writes, and zeroes for fresh pages: 32 bytes a store instead of the kernel's 8
 * (_copy_from_iter_flushcache()), which for 1 MiB is a quarter of the instructions, and no
 * write-back of each line behind it.
 *
 * Vector registers belong to user space: using them costs their saving and, on the way out, their
 * loading, once per system call. So this is for pages, not for bytes.
 */
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/fpu/types.h>

#include "copy_wide.h"

#define STEP	128UL	/* in four registers */
#define LEAST	SZ_4K	/* below, saving the registers costs more than it gains */
#define MOST	SZ_64K	/* at once: nobody else gets the processor meanwhile */

static bool usable(void)
{
	return cpu_feature_enabled(X86_FEATURE_AVX) && irq_fpu_usable() &&
	       cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
}

/*
 * @len is a multiple of STEP, and not 0. A step is loaded before any of it is stored, so where a
 * load faults, all steps before it are complete; where a store does (a window whose entry has
 * gone), the step is not counted. The registers are the kernel's: gcc keeps nothing there.
 */
static __always_inline size_t steps(void *to, const void __user *from, size_t len)
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

static size_t copy_some(void *to, const void __user *from, size_t len)
{
	size_t done = 0;

	if (!user_read_access_begin(from, len))
		return 0;
	done = steps(to, from, len);
	user_read_access_end();
	return done;
}

size_t sg_copy_wide(void *to, size_t len, struct iov_iter *from)
{
	const void __user *source;
	size_t done = 0, want, n;

	len = round_down(min(len, iov_iter_count(from)), STEP);
	if (len < LEAST || !iter_is_ubuf(from) || !IS_ALIGNED((unsigned long)to, 64) || !usable())
		return 0;
	source = from->ubuf + from->iov_offset;
	do {
		want = min_t(size_t, len - done, MOST);
		kernel_fpu_begin();
		n = copy_some(to + done, source + done, want);
		kernel_fpu_end();
		done += n;
	} while (n == want && done < len);
	iov_iter_advance(from, done);
	return done;
}

/* @len is a multiple of STEP, and not 0. */
static void zero_steps(void *to, size_t len)
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

size_t sg_zero_wide(void *to, size_t len)
{
	size_t done = 0, n;

	len = round_down(len, STEP);
	if (len < LEAST || !IS_ALIGNED((unsigned long)to, 64) || !usable())
		return 0;
	for (; done < len; done += n) {
		n = min_t(size_t, len - done, MOST);
		kernel_fpu_begin();
		zero_steps(to + done, n);
		kernel_fpu_end();
	}
	return done;
}
