/* SPDX-License-Identifier: GPL-2.0 */
/* Inodes, their openers, their attributes. */
#ifndef SG_INODE_H
#define SG_INODE_H

#include "journal/ledger.h"
#include "journal/epoch.h"
#include "table/table.h"

/*
 * Takes a free record and fills it from @new (links, size 0). The inode is part of @tx, and locked
 * until @tx ends. The caller must not have taken any page in @tx.
 */
int sg_inode_take(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 special,
		  struct sg_iref *out);
/*
 * Gives the new inode @ref of this mode the flag that it inherits from its directory: SG_FL_ATOMIC.
 */
void sg_inode_inherit(struct sg_tx *tx, const struct sg_iref *dir, u32 mode,
		      const struct sg_iref *ref);
/* Frees the record. The transaction must have cut off its table, index and xattrs. */
void sg_inode_give(struct sg_tx *tx, const struct sg_iref *ref);
static inline struct sg_iref sg_sys_ref(unsigned int which)
{
	return (struct sg_iref){ .off = SG_HOT(sys) + which * sizeof(struct sg_inode) };
}
static inline unsigned int sg_sys_which(const struct sg_iref *sys)
{
	return (unsigned int)((sys->off - SG_HOT(sys)) / sizeof(struct sg_inode));
}
/*
 * Checks before a change in place, with the inode locked. 0: this system is live, and @ref still
 * names this file (D9). If the system is not live, the wait for the lock may have ended without the
 * lock.
 */
int sg_may_change(const struct sg_vol *vol, const struct sg_iref *ref);
/* The same before a change of contents or size. -EPERM: the file is sealed. */
int sg_may_store(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Makes readers detect a change, and starts write-back. Called after words of an inode were stored
 * in place, with the inode's lock held.
 */
void sg_inode_changed(struct sg_vol *vol, const struct sg_iref *ref);
void sg_tx_times(struct sg_tx *tx, const struct sg_iref *ref, s64 mtime, s64 ctime); /* 0: keep */
static inline u32 sg_mode(u64 word) { return (u32)word; }
static inline u32 sg_nlink(u64 word) { return (u32)(word >> 32); }

#define SG_S_IFMT	0170000u
#define SG_S_IFSOCK	0140000u
#define SG_S_IFLNK	0120000u
#define SG_S_IFREG	0100000u
#define SG_S_IFBLK	0060000u
#define SG_S_IFDIR	0040000u
#define SG_S_IFCHR	0020000u
#define SG_S_IFIFO	0010000u

static inline bool sg_is_dir(u64 mode) { return (sg_mode(mode) & SG_S_IFMT) == SG_S_IFDIR; }
static inline bool sg_is_reg(u64 mode) { return (sg_mode(mode) & SG_S_IFMT) == SG_S_IFREG; }
static inline bool sg_is_lnk(u64 mode) { return (sg_mode(mode) & SG_S_IFMT) == SG_S_IFLNK; }

/* --- readers without a lock (seqread.c) -------------------------------------------------- */

/*
 * A reader calls begin, reads, and repeats this while retry returns true (D9). The wait is bounded;
 * begin then returns -EUCLEAN. It returns -EINTR if the thread is being killed.
 */
int sg_read_begin(const struct sg_vol *vol, const struct sg_iref *ref, u64 *seq);
bool sg_read_retry(const struct sg_vol *vol, const struct sg_iref *ref, u64 seq);
/*
 * Number of turns after which a reader that finds the inode changed each time gives up (-EUCLEAN).
 */
#define SG_READ_TURNS	1000000u
/* A page that is searched in a turn counts as this many turns, because the bound is on time. */
#define SG_READ_PAGE	100u

/* --- copies of the system inodes (inode_backup.c) ---------------------------------------- */

u64 sg_sys_check(unsigned int which, u64 table, u64 records);	/* sg_sys_copy.check */
/* Writes all copies from the system inodes, for a volume of @size: for mkfs, move and growth. */
void sg_sys_copies_write(struct sg_vol *vol, u64 size);
/*
 * Updates the copy of the inode file's words. Called in a transaction that changes the inode file's
 * root word or number of records.
 */
void sg_sys_copy(struct sg_tx *tx, unsigned int which);

/* --- replaced pages (mappers.c) ---------------------------------------------------------- */

/*
 * Makes systems wait that begin to map the file, or open it for writing; the inode is locked.
 * Returns false if a process maps the file. The transaction that replaces pages or seals the file,
 * or sg_replace_end(), ends these waits.
 */
bool sg_replace_begin(struct sg_vol *vol, const struct sg_iref *ref);
void sg_replace_end(struct sg_vol *vol, const struct sg_iref *ref);

/* --- opens (opens.c) --------------------------------------------------------------------- */

bool sg_open_elsewhere(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Returns the other systems that have the inode open, and those that were fenced with the inode
 * open and are not recovered yet, or may still store. The inode is locked.
 */
u64 sg_users_elsewhere(const struct sg_vol *vol, const struct sg_iref *ref);
/* reports whether the inode has no name, and no system has it open */
bool sg_is_left(const struct sg_vol *vol, u64 ino);
/* @ref must have its generation. */
bool sg_open_here(struct sg_vol *vol, const struct sg_iref *ref);
/* for a new inode, made by this system */
void sg_tmpfile_open(struct sg_vol *vol, const struct sg_iref *ref);
/* @all: this system has just joined, so it has nothing open, and clears all its bits. */
void sg_withdraw_opens(struct sg_vol *vol, bool all);

/* --- lists of deferred inodes (deferred_walk.c) ------------------------------------------ */

/**
 * struct sg_deferred_walk - a walk along a list that other systems may change meanwhile.
 * @at: word that names the next record. @ref: the current one. @n: number of records passed.
 * @mark: a record passed before; if the walk reaches it again, the list is a circle.
 */
struct sg_deferred_walk {
	u64 at;
	struct sg_iref ref;
	u64 n, mark;
};
struct sg_deferred_walk sg_deferred_walk(const struct sg_vol *vol, unsigned int slot,
					 unsigned int area);
/*
 * Returns false at the end of the list, at a record without the flag of a list, or if the thread is
 * being killed.
 */
bool sg_deferred_walk_next(const struct sg_vol *vol, struct sg_deferred_walk *w);

/* --- extended attributes (xattr_blob.c) -------------------------------------------------- */

/* makes the blob a deferred free */
void sg_xattr_drop(struct sg_tx *tx, const struct sg_iref *ref);
/* Frees as many pages of a blob as one transaction can; *done: no page remains. */
int sg_xattr_reclaim(struct sg_tx *tx, u64 head, bool *done);
/* Writes a payload into fresh pages; *head: offset for sg_inode.xattr (0 for an empty payload). */
int sg_xattr_build(struct sg_tx *tx, u64 ino, const void *payload, u32 len, u64 *head, u64 *pages);

#endif
