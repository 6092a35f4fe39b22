/* SPDX-License-Identifier: GPL-2.0 */
/* Stores into the volume that bypass the caches (copy_wide.c). */
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
 * Never sleeps. Source and target pages may be absent: the caller disables page faults. The copied
 * bytes need no write-back, only a fence. If a page is absent, up to one line after the returned
 * count may have been stored. The caller continues from the returned count by other means, and
 * stores that line again.
 *
 * Return: bytes copied. Fewer than @len, or none, when a page is absent, when the rest is too
 * small, or when processor, iterator or alignment do not allow it. The caller copies the rest by
 * other means.
 */
size_t sg_copy_wide(void *to, size_t len, struct iov_iter *from);

/**
 * sg_zero_wide() - zero memory of the volume with non-temporal stores
 * @to: in the volume's linear mapping
 * @len: how much
 *
 * Never sleeps. The zeroed bytes need no write-back, only a fence. Before this fence they are not
 * ordered with later stores.
 *
 * Return: bytes zeroed, from the start: less than @len, or none, when the rest is too small, or
 * when processor or alignment do not allow it.
 */
size_t sg_zero_wide(void *to, size_t len);

#endif
