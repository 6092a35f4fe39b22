// SPDX-License-Identifier: GPL-2.0
/* Targets of symbolic links: a short one is in the record, a longer one in a page. */
#include "internal.h"

/*
 * Copies by relaxed loads of one word each, because another system may remove the link, and reuse
 * its bytes, meanwhile.
 */
static void copy_out(const struct sg_vol *vol, u64 at, char *buf, u32 len)
{
	u32 i;

	for (i = 0; i < len; i += 8) {
		u64 word = sg_get(vol, at + i);

		memcpy(buf + i, &word, SG_MIN(len - i, 8u));
	}
}

static int read_target(const struct sg_vol *vol, const struct sg_iref *ref, char *buf, u32 len)
{
	u64 mode = sg_iget(vol, ref, mode), size = sg_iget(vol, ref, size);
	u64 at = sg_iget(vol, ref, table);

	if (!sg_is_lnk(mode))
		return mode ? -EINVAL : -ESTALE;
	if (!size || size > SG_SYMLINK_MAX)
		return -EUCLEAN;
	if (size < sizeof(((struct sg_inode *)0)->tail))
		at = SG_IOFF(ref, tail);
	else if (!sg_data_page(vol, at))
		return -EUCLEAN;
	len = SG_MIN((u32)size, len);
	copy_out(vol, at, buf, len);
	/* a target is a string, so it has no NUL */
	return memchr(buf, 0, len) ? -EUCLEAN : (int)size;
}

int sg_readlink(struct sg_vol *vol, const struct sg_iref *ref, char *buf, u32 len)
{
	unsigned int turn;
	u64 seq;

	for (turn = 0; turn < SG_READ_TURNS; turn += 1 + SG_READ_PAGE) {
		int got, err = sg_read_begin(vol, ref, &seq);

		if (err)
			return err;
		got = read_target(vol, ref, buf, len);
		if (!sg_read_retry(vol, ref, seq))
			return got == -EUCLEAN ?
				sg_damaged(vol, ref->ino, ref->off, "target of a link") : got;
	}
	return sg_damaged(vol, ref->ino, ref->off, "a change of an inode never ends");
}
