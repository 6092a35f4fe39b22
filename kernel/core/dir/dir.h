/* SPDX-License-Identifier: GPL-2.0 */
/* Directories. */
#ifndef SG_DIR_H
#define SG_DIR_H

#include "inode/inode.h"

/**
 * struct sg_name - a name to look up, and its position if it was found.
 * @twins: another name may have the same hash, so a new name needs an unused tie-break.
 * @turns: how many of SG_READ_TURNS the search has used.
 * @seq: change counter of the directory at the last sg_dir_look(). The other fields are valid while
 *   the counter is the same.
 */
struct sg_name {
	const char *name;
	u32 len;
	bool twins;
	u32 turns;
	u64 hash;
	u64 seq;
	/* the bucket that has, or would have, the name; 0: the directory has no bucket */
	u64 bucket;
	u64 slot_off;		/* of its slot word */
	u64 ref_off;		/* of sg_dirent.ref */
	u64 ref;
};

/* 55 bits, not all of them 1 */
u64 sg_dir_hash(const struct sg_vol *vol, const char *name, u32 len);
void sg_name_of(const struct sg_vol *vol, const char *name, u32 len, struct sg_name *n);
/*
 * Checks that @dir is a directory, with or without a name. -ESTALE: the inode number is now free,
 * or belongs to another file.
 */
int sg_dir_there(const struct sg_vol *vol, const struct sg_iref *dir);
/*
 * Looks up a name without a lock, and outside any transaction in progress. Returns -ENOENT or
 * -ENOTDIR.
 */
int sg_dir_look(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n);
/*
 * The remaining functions run inside a transaction, with the directory locked.
 *
 * Adds a name that does not exist yet; updates entries, size and blocks. -EAGAIN (in tx->err, too):
 * the name needs more splits than fit into one transaction, which happens only with crafted names.
 * The caller aborts, calls sg_dir_make_room(), which uses separate transactions, and tries again.
 */
int sg_dir_add(struct sg_tx *tx, const struct sg_iref *dir, struct sg_name *n, u64 ino,
	       unsigned int type);
int sg_dir_make_room(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n);
/* Removes a name. It needs no page, so it also works when the volume is full. */
void sg_dir_remove(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n);
/* Changes the inode to which a name refers. */
void sg_dir_point(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n, u64 ino,
		  unsigned int type);
/* Cuts off the complete index of an empty directory, as one deferred free. */
void sg_dir_drop(struct sg_tx *tx, const struct sg_iref *dir);
/*
 * Makes one step of reclaiming SG_LEDGER_DIR for the index page @off, as sg_table_reclaim() does
 * for tables.
 */
int sg_dir_reclaim(struct sg_tx *tx, u64 off, unsigned int *index);

#endif
