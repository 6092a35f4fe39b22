/* SPDX-License-Identifier: GPL-2.0 */
/* Inodes, their opens, their attributes. */
#ifndef SG_INODE_H
#define SG_INODE_H

#include "journal/ledger.h"
#include "journal/epoch.h"
#include "table/table.h"

/*
 * A free record, filled from @new (links, size 0), touched in tx, and locked until tx ends. Before
 * any page is taken.
 */
int sg_inode_take(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 special,
		  struct sg_iref *out);
/* Frees the record. Its table, index and xattrs have been cut in this transaction. */
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
 * The inode is locked, and is about to be changed in place: 0, if we live (a lock that was waited
 * for may not be ours), and it is the file that is meant still (D9).
 */
int sg_may_change(const struct sg_vol *vol, const struct sg_iref *ref);
/* Words of an inode were stored in place, its lock held: readers notice, write-back starts. */
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

/* Begin, read, retry while it says true (D9). Bounded: -EUCLEAN; -EINTR: who waits is to die. */
int sg_read_begin(const struct sg_vol *vol, const struct sg_iref *ref, u64 *seq);
bool sg_read_retry(const struct sg_vol *vol, const struct sg_iref *ref, u64 seq);
/* Turns of a reader that finds the inode changed each time, until it gives up (-EUCLEAN). */
#define SG_READ_TURNS	1000000u
/* A page that is looked through in a turn counts as so many more: what is bounded is the time. */
#define SG_READ_PAGE	100u

/* --- copies of the system inodes (inode_backup.c) ---------------------------------------- */

u64 sg_sys_check(unsigned int which, u64 table, u64 records);	/* sg_sys_copy.check */
/* All anew, from the system inodes, for a volume of @size: for who makes, moves or grows it. */
void sg_sys_copies_write(struct sg_vol *vol, u64 size);
/* The inode file has got another root word, or more records, in this transaction. */
void sg_sys_copy(struct sg_tx *tx, unsigned int which);

/* --- opens (opens.c) --------------------------------------------------------------------- */

bool sg_open_elsewhere(const struct sg_vol *vol, const struct sg_iref *ref);
bool sg_is_left(const struct sg_vol *vol, u64 ino);	/* without a name, and open nowhere */
/* @ref: with its generation. */
bool sg_open_here(struct sg_vol *vol, const struct sg_iref *ref);
void sg_tmpfile_open(struct sg_vol *vol, const struct sg_iref *ref);	/* a new one, by us */
/* @all: whatever we may seem to have open, we have just joined and have not. */
void sg_withdraw_opens(struct sg_vol *vol, bool all);

/* --- lists of deferred inodes (deferred_walk.c) ------------------------------------------ */

/**
 * struct sg_owed_walk - along a list that others may change meanwhile.
 * @at: word that names the next one. @ref: the present one. @n: passed so far.
 * @mark: one passed before; coming there again the list is a circle.
 */
struct sg_owed_walk {
	u64 at;
	struct sg_iref ref;
	u64 n, mark;
};
struct sg_owed_walk sg_owed_walk(const struct sg_vol *vol, unsigned int slot, unsigned int area);
/* False: the end, or what should be on the list and is not, or who is at it is to die. */
bool sg_owed_walk_next(const struct sg_vol *vol, struct sg_owed_walk *w);

/* --- extended attributes (xattr_blob.c) -------------------------------------------------- */

void sg_xattr_drop(struct sg_tx *tx, const struct sg_iref *ref);	/* blob becomes a debt */
/* Frees pages of a blob, as many as one transaction can; *done: that was all. */
int sg_xattr_pay(struct sg_tx *tx, u64 head, bool *done);
/* Writes a payload into fresh pages; *head: offset for sg_inode.xattr (0 for an empty payload). */
int sg_xattr_build(struct sg_tx *tx, u64 ino, const void *payload, u32 len, u64 *head, u64 *pages);

#endif
