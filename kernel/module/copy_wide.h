/* SPDX-License-Identifier: GPL-2.0 */
/* Stores into the volume that pass the caches by (copy_wide.c). */
#ifndef SG_COPY_WIDE_H
#define SG_COPY_WIDE_H

#include <linux/types.h>

struct iov_iter;

/**
 * sg_copy_wide() - copy from user memory into the volume with non-temporal stores
 * @to: in the volume's linear mapping, or in a window
 * @len: how much at most
 * @from: advanced by what has been copied
 *
 * Never sleeps, and needs nothing of what it copies from or to to be there: page faults are to be
 * disabled by the caller. What it has copied needs no write-back, only a fence. Where a page is not
 * there, up to a line behind what it says may have been stored, of bytes that could be read: the
 * caller goes on from there by other means, and stores the same again.
 *
 * Return: bytes copied. Fewer than @len, or none, when a page is not there, when the rest is not
 * worth it, or when processor, iterator or alignment do not allow it: the rest is the caller's, by
 * other means.
 */
size_t sg_copy_wide(void *to, size_t len, struct iov_iter *from);

/**
 * sg_zero_wide() - zero memory of the volume with non-temporal stores
 * @to: in the volume's linear mapping
 * @len: how much
 *
 * Never sleeps. What it has zeroed needs no write-back, only a fence, before which it is not
 * ordered with stores behind it.
 *
 * Return: bytes zeroed, from the start: less than @len, or none, when the rest is not worth it, or
 * when processor or alignment do not allow it.
 */
size_t sg_zero_wide(void *to, size_t len);

#endif
