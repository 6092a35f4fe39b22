/* SPDX-License-Identifier: GPL-2.0 */
/* Directories. */
#ifndef SG_DIR_H
#define SG_DIR_H

#include "inode/inode.h"

/**
 * struct sg_name - a name that is looked for, and where it was found.
 * @twins: another name may have the same hash: a new name needs an unused tie-break.
 * @turns: how many of SG_READ_TURNS the search has taken.
 * @seq: of the directory when sg_dir_look() looked. While it is the same, the rest is, too.
 */
struct sg_name {
	const char *name;
	u32 len;
	bool twins;
	u32 turns;
	u64 hash;
	u64 seq;
	/* page that has, or would have, the name; 0: the directory has none */
	u64 bucket;
	u64 slot_off;		/* of its slot word */
	u64 ref_off;		/* of sg_dirent.ref */
	u64 ref;
};

u64 sg_dir_hash(const struct sg_vol *vol, const char *name, u32 len); /* 55 bits, never all ones */
void sg_name_of(const struct sg_vol *vol, const char *name, u32 len, struct sg_name *n);
/* 0: @dir is a directory, named or not; -ESTALE: its number is free now, or another file's. */
int sg_dir_there(const struct sg_vol *vol, const struct sg_iref *dir);
/* Looks without a lock, and sees no transaction in progress. -ENOENT, -ENOTDIR. */
int sg_dir_look(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n);
/*
 * The remaining functions belong to a transaction, with the directory locked.
 *
 * Adds a name that is known to be absent; entries, size and blocks follow. -EAGAIN (in tx->err,
 * too): this would take more splits than a transaction holds, which only crafted names do. The
 * caller aborts, calls sg_dir_make_room(), which uses transactions of its own, and tries again.
 */
int sg_dir_add(struct sg_tx *tx, const struct sg_iref *dir, struct sg_name *n, u64 ino,
	       unsigned int type);
int sg_dir_make_room(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n);
/* Needs no page, so names can be removed when the volume is full. */
void sg_dir_remove(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n);
/* Changes the inode to which a name refers. */
void sg_dir_point(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n, u64 ino,
		  unsigned int type);
/* Cuts the whole index of an empty directory: it becomes a deferred free. */
void sg_dir_drop(struct sg_tx *tx, const struct sg_iref *dir);
/* One step of reclaiming SG_LEDGER_DIR for the index page @off; as sg_table_reclaim(). */
int sg_dir_reclaim(struct sg_tx *tx, u64 off, unsigned int *index);

#endif
