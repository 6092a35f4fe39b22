// SPDX-License-Identifier: GPL-2.0
/*
 * Copies through windows that survive a missing entry.
 *
 * A peer may clear an entry at any time, and a plain memcpy over it would crash the kernel. The
 * kernel's copies from and to user space recover from a fault on either side, so user iterators use
 * these directly. The code calls _copy_to_iter(), because copy_to_iter() searches the list of
 * vmalloc areas in every call, for a check that is not needed here. All other iterators use a
 * bounce page, because their copy is a plain memcpy.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>

#include "copy_wide.h"
#include "window_priv.h"

/* Return the part of [pos, pos + len) that the window can show. */
static size_t sgfs_window_clip(const struct sg_window *w, u64 pos, size_t len)
{
	u64 size = SG_WINDOW_SIZE(w->height);

	return pos >= size ? 0 : min_t(u64, len, size - pos);
}

/* Return the bytes up to the end of the page, so that one copy uses one translation. */
static size_t sgfs_page_piece(const void *addr, size_t len)
{
	return min_t(size_t, len, PAGE_SIZE - offset_in_page(addr));
}

/* Copy @len bytes within a page. False: a part of them may have been stored. */
static bool sgfs_put_nofault(void *dst, const void *src, size_t len)
{
	size_t i = 0;

	pagefault_disable();
	if (IS_ALIGNED((unsigned long)dst, sizeof(u64)))
		for (; i + sizeof(u64) <= len; i += sizeof(u64))
			__put_kernel_nofault(dst + i, src + i, u64, fault);
	for (; i < len; i++)
		__put_kernel_nofault(dst + i, src + i, u8, fault);
	pagefault_enable();
	return true;
fault:
	pagefault_enable();
	return false;
}

static size_t sgfs_bounce_to_iter(const void *src, size_t len, struct iov_iter *to)
{
	void *page = (void *)__get_free_page(GFP_NOWAIT);	/* in a look */
	size_t done = 0;

	while (page && done < len) {
		size_t n = sgfs_page_piece(src + done, len - done);
		size_t copied;

		if (copy_from_kernel_nofault(page, src + done, n))
			break;
		copied = _copy_to_iter(page, n, to);
		done += copied;
		if (copied < n)
			break;
	}
	free_page((unsigned long)page);
	return done;
}

static size_t sgfs_bounce_from_iter(void *dst, size_t len, struct iov_iter *from)
{
	void *page = (void *)__get_free_page(GFP_NOWAIT);
	size_t done = 0;

	while (page && done < len) {
		size_t n = sgfs_page_piece(dst + done, len - done);
		size_t copied = _copy_from_iter(page, n, from);

		if (!sgfs_put_nofault(dst + done, page, copied)) {
			iov_iter_revert(from, copied);
			break;
		}
		done += copied;
		if (copied < n)
			break;
	}
	free_page((unsigned long)page);
	return done;
}

static size_t sgfs_copy_out(const void *src, size_t len, struct iov_iter *to)
{
	return user_backed_iter(to) ? _copy_to_iter(src, len, to) :
	       sgfs_bounce_to_iter(src, len, to);
}

static size_t sgfs_window_copy_in(void *dst, size_t len, struct iov_iter *from)
{
	return user_backed_iter(from) ? _copy_from_iter(dst, len, from) :
					sgfs_bounce_from_iter(dst, len, from);
}

size_t sg_window_copy_to_iter(struct sg_window *w, u64 pos, size_t len, struct iov_iter *to)
{
	size_t want = sgfs_window_clip(w, pos, min(len, iov_iter_count(to)));
	size_t done = sgfs_copy_out(w->addr + pos, want, to);

	if (done < want && sg_window_refresh(w))
		done += sgfs_copy_out(w->addr + pos + done, want - done, to);
	if (done < want)
		atomic64_inc(&w->ws->shorts);
	return done;
}

size_t sg_window_copy_from_iter(struct sg_window *w, u64 pos, size_t len, struct iov_iter *from)
{
	size_t want = sgfs_window_clip(w, pos, min(len, iov_iter_count(from)));
	size_t done, wide;

	/*
	 * Check this here, and do not rely on the MMU. On a write to a read-only entry the kernel's
	 * fault handler reads the entry, and expects every table in the kernel's linear mapping.
	 */
	if (!w->write)
		return 0;
	wide = sg_copy_wide(w->addr + pos, want, from);
	done = wide;
	if (done < want)
		done += sgfs_window_copy_in(w->addr + pos + done, want - done, from);
	if (done < want && sg_window_refresh(w))
		done += sgfs_window_copy_in(w->addr + pos + done, want - done, from);
	if (done < want)
		atomic64_inc(&w->ws->shorts);
	sg_window_wb(w, pos + wide, done - wide);
	return done;
}

/* Write one line back; false when no entry maps it. */
#define WB_LINE(insn, line)								\
({											\
	__label__ gone, out;								\
	bool mapped_ = true;								\
											\
	asm goto("1: " insn " %0\n" _ASM_EXTABLE(1b, %l[gone])				\
		 : : "m" (*(const char *)(line)) : "memory" : gone);			\
	goto out;									\
gone:											\
	mapped_ = false;								\
out:											\
	mapped_;									\
})

void sg_window_wb(struct sg_window *w, u64 pos, size_t len)
{
	const unsigned int size = boot_cpu_data.x86_clflush_size;
	const char *end = w->addr + pos + sgfs_window_clip(w, pos, len);
	const char *line = PTR_ALIGN_DOWN((const char *)w->addr + pos, size);

	while (line < end) {
		bool mapped;

		if (cpu_feature_enabled(X86_FEATURE_CLWB))
			mapped = WB_LINE("clwb", line);
		else if (cpu_feature_enabled(X86_FEATURE_CLFLUSHOPT))
			mapped = WB_LINE("clflushopt", line);
		else
			mapped = WB_LINE("clflush", line);
		line = mapped ? line + size : PTR_ALIGN(line + 1, PAGE_SIZE);
	}
}
