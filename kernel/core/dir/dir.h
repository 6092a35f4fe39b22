/* SPDX-License-Identifier: GPL-2.0 */
/* Directories. */
#ifndef SG_DIR_H
#define SG_DIR_H

#include "inode/inode.h"

/**
 * struct sg_name - a name that is looked for, and where it was found.
 * @twins: some other name may have the same hash: a new one has to look for a free tie-break.
 * @turns: of SG_READ_TURNS, that looking for it has taken.
 * @seq: of the directory, when sg_dir_look() looked. As long as it stands, so does the rest.
 */
struct sg_name {
	const char *name;
	u32 len;
	bool twins;
	u32 turns;
	u64 hash;
	u64 seq;
	u64 bucket;		/* page that it is or would be in; 0: the directory has none */
	u64 slot_off;		/* of its slot word */
	u64 ref_off;		/* of sg_dirent.ref */
	u64 ref;
};

u64 sg_dir_hash(const struct sg_vol *vol, const char *name, u32 len); /* 55 bits, never all ones */
void sg_name_of(const struct sg_vol *vol, const char *name, u32 len, struct sg_name *n);
/* 0: @dir is one, named or not; -ESTALE: its number is nobody's by now, or another file's. */
int sg_dir_there(const struct sg_vol *vol, const struct sg_iref *dir);
/* Looks without a lock, and sees no transaction that is under way. -ENOENT, -ENOTDIR. */
int sg_dir_look(const struct sg_vol *vol, const struct sg_iref *dir, struct sg_name *n);
/*
 * The rest is done in a transaction, with the directory locked.
 *
 * Adds a name that is known to be absent; entries, size and blocks follow. -EAGAIN (in tx->err,
 * too): would take more splits than a transaction holds, as only crafted names do. Abort, call
 * sg_dir_make_room(), which uses transactions of its own, and try again.
 */
int sg_dir_add(struct sg_tx *tx, const struct sg_iref *dir, struct sg_name *n, u64 ino,
	       unsigned int type);
int sg_dir_make_room(struct sg_vol *vol, const struct sg_iref *dir, const struct sg_name *n);
/* Needs no page: names can be removed when the volume is full. */
void sg_dir_remove(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n);
/* Changes what a name refers to. */
void sg_dir_point(struct sg_tx *tx, const struct sg_iref *dir, const struct sg_name *n, u64 ino,
		  unsigned int type);
/* Cuts the whole index of an empty directory: a debt. */
void sg_dir_drop(struct sg_tx *tx, const struct sg_iref *dir);
/* One step in paying SG_DEBT_DIR for the index page @off; as sg_table_pay(). */
int sg_dir_pay(struct sg_tx *tx, u64 off, unsigned int *index);

#endif
