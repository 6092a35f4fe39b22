// SPDX-License-Identifier: GPL-2.0
/*
 * The second copy of the words that locate the system inodes' pages (struct sg_sys_copy). Nothing
 * else names the inode file, and a volume without it has no files. The copy is in the last page,
 * far from the hot page. Only the checker reads it.
 */
#include "internal.h"

u64 sg_sys_check(unsigned int which, u64 table, u64 records)
{
	const u64 words[] = { which, table, records };

	return SG_SYS_CHECK(sg_crc32c(~0u, words, sizeof(words)));
}

void sg_sys_copies_write(struct sg_vol *vol, u64 size)
{
	const struct sg_hot *hot = sg_at(vol, SG_HOT_OFF);
	unsigned int i;

	for (i = 0; i < SG_SYS_COUNT; i++) {
		u64 table = sg_load64(&hot->sys[i].table);
		u64 records = sg_load64(i == SG_SYS_INODES ? &hot->inodes : &hot->sys[i].size);
		struct sg_sys_copy *copy = sg_at(vol, sg_sys_copy_at(size, i));

		sg_store64(&copy->table, table);
		sg_store64(&copy->records, records);
		sg_store64(&copy->check, sg_sys_check(i, table, records));
		sg_wb(copy, sizeof(*copy));
	}
	sg_fence();
}

/* Sets the copy's words; called after the transaction has set the two original words. */
void sg_sys_copy(struct sg_tx *tx, unsigned int which)
{
	const struct sg_iref sys = sg_sys_ref(which);
	u64 records = which == SG_SYS_INODES ? sg_tx_get(tx, SG_HOT(inodes)) :
		      sg_tx_iget(tx, &sys, size);
	u64 table = sg_tx_iget(tx, &sys, table), copy;

	/* the volume does not grow while this system holds the lock for the copy */
	tx->vol->up->follow(tx->vol);
	copy = sg_sys_copy_off(tx->vol, which);
	sg_tx_set(tx, copy + offsetof(struct sg_sys_copy, table), table);
	sg_tx_set(tx, copy + offsetof(struct sg_sys_copy, records), records);
	sg_tx_set(tx, copy + offsetof(struct sg_sys_copy, check),
		  sg_sys_check(which, table, records));
}
