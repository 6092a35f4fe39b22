/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The checker (sg_check() in engine.h): shared declarations of its files. docs/fsck.md explains it.
 *
 * One pass walks all structures once, claims each page for its first owner, and makes in place the
 * repairs that need no new page. It records the repairs that need the engine (new names, new
 * pages). Between passes the checker joins the volume and makes those repairs through the engine.
 * The space map is correct at that time. Passes are repeated until one finds nothing. So each
 * repair is checked by a later pass, and another run of the checker continues an interrupted
 * repair.
 *
 *   check.c		the passes and their order
 *   check_view.c	reading the volume as recovery would leave it; stores of repairs
 *   check_super.c	superblocks, hot page, mount table, transaction areas
 *   check_sys.c	system inodes: the file of records, and how it is found
 *   check_inode.c	inode records and lists of free ones
 *   check_loss.c	how many inodes could not be kept
 *   check_table.c	file tables
 *   check_dir.c	directories: index and buckets
 *   check_xattr.c	extended attributes
 *   check_deferred.c	ledgers
 *   check_userlock.c	locks of users
 *   check_sem.c	shared semaphores
 *   check_tree.c	names, links, parents
 *   check_space.c	owners of pages; space map and counters
 *   check_engine.c	repairs that need new pages: lost+found, rebuilt directories
 *   check_image.c	a copy of the pages that were read, for bug reports
 */
#ifndef SG_CHECK_H
#define SG_CHECK_H

#include "internal.h"

/*
 * After this many passes the checker ends the repair, because some program must be changing the
 * volume.
 */
#define CK_PASSES	20

/* How a finding may be repaired. */
enum ck_cure {
	CK_SAFE,	/* the repair cannot lose data, so SG_CHECK_PREEN makes it, too */
	CK_ASK,		/* the repair may lose data, or a person should decide */
	CK_NEVER,	/* this checker cannot repair it */
};

/* Facts about an inode record (sg_ck.state). */
enum {
	CK_USED = 1,		/* in use and valid */
	CK_DIR = 2,
	CK_NAMED = 4,		/* directory: its only name has been seen */
	CK_DEFERRED = 8,		/* a ledger frees it */
	CK_LISTED = 16,		/* on a list of free records */
	CK_TYPELESS = 32,	/* in use, of unknown type; a name may have the type */
	CK_REBUILD = 64,	/* directory: its index is damaged */
	CK_ROOTED = 128,	/* its parents lead to the root */
	CK_CUT = 256,		/* directory: its name is removed, which breaks a circle */
	CK_MISSING = 512,	/* in a hole of the inode file */
	/* on a list of deferred inodes; set only while these lists are checked */
	CK_CHAINED = 1024,
};

struct ck_page;			/* a private copy of a page (check_view.c) */

struct ck_work {		/* work for the engine after a pass */
	u64 ino;
	u64 arg;
};
struct ck_list {
	struct ck_work *item;
	u64 n, room;
};

struct sg_ck {
	struct sg_vol vol;
	const struct sg_check_opts *opts;
	struct sg_check_result *res;
	char line[160];

	bool looking;		/* the pass stores nothing in any mode: true in the first pass */
	bool dead;		/* this check was fenced: other systems use the volume */
	unsigned int pass;
	u64 found, unfixed;	/* in this pass */
	u64 beyond;		/* number of these findings that are CK_NEVER */
	bool no_memory;
	/* the owner of some pages is unclear, so unclaimed pages are not freed */
	bool hold_pages;
	bool recovering;	/* a slot is not free, or a ledger not empty */
	/* a record's type "directory" was restored: the next pass reads its names */
	bool retyped;
	bool relist;		/* the lists of free records must be made again */
	bool was_moving;	/* an incomplete relocation was found and completed */
	u64 ring_pages;		/* pages of all rings found so far in this pass */
	u64 ring_reported;	/* 1 + the place of the ring that has pages but no record */

	/* copies of the pages that recovery would change (SG_CHECK_ONLY) */
	struct ck_page **copies;
	u64 ncopies;

	u64 *map;		/* one bit for each page: claimed */
	u64 map_bytes;
	u64 inodes;		/* number of records of the inode file */
	u64 *ipage;		/* offset of each page of the inode file, 0 for a hole */
	u64 ipages;		/* capacity of @ipage */
	u16 *state;		/* CK_* per inode */
	u32 *links;		/* number of names seen; of a directory: number of subdirectories */
	/* of a directory: its parent, the directory that has its name; or 0 */
	u64 *parent;

	struct ck_list orphans;	/* in use, without a name */
	struct ck_list rebuild;	/* directories */
	/* lost pages that look like buckets of damaged directories (arg: offset) */
	struct ck_list strays;
	struct ck_list settle;	/* inodes to evict or to cut */
	struct ck_list holes;	/* pages of the inode file */
	struct ck_list cut;	/* directories in a circle: the next pass removes their name */

	/* the inodes before the first repair (check_loss.c) */
	/* for each inode number: the inode's type, or a flag that a name had one */
	u8 *knew;
	u64 knew_n;
	u64 expected;		/* inodes */
	/* number of inodes by the counters; number of free records on no list */
	u64 said_used;
	u64 unlisted;
	/* lost+found, if this repair has made it, because it is not one of the old inodes */
	u64 made;
	bool no_space;		/* for the engine's work */

	struct ck_image *image;	/* the image being made, or NULL */

	/* hashes of reported findings that remain, so that each is reported once */
	u32 said[256];
	unsigned int nsaid;
};

/* --- check.c ------------------------------------------------------------------------------- */

/*
 * Reports and counts the finding in c->line. Returns true if the caller must repair it now. Callers
 * use the form ck_found(c, cure, ino, off, "format", ...).
 */
bool ck_report(struct sg_ck *c, enum ck_cure cure, u64 ino, u64 off);
#define ck_found(c, cure, ino, off, ...) \
	(sg_snprintf((c)->line, sizeof((c)->line), __VA_ARGS__), ck_report(c, cure, ino, off))
/*
 * Returns the cure for findings whose repair frees something (a record, a name's count, a page).
 * The repair is safe only while all findings of this pass have been repaired: a remaining one may
 * refer to the freed object, even from a place that cannot be read.
 */
enum ck_cure ck_giving(const struct sg_ck *c);
void ck_progress(struct sg_ck *c, const char *phase, u64 done, u64 total);
void ck_note(struct sg_ck *c, struct ck_list *list, u64 ino, u64 arg);
/* casts for formats that are the same in kernel and user space */
#define CK_U(x)	((unsigned long long)(x))

/* --- check_view.c -------------------------------------------------------------------------- */

int ck_view_recovered(struct sg_ck *c);		/* replays committed transactions into copies */
void ck_view_free(struct sg_ck *c);
const void *ck_page(const struct sg_ck *c, u64 off);	/* the page that holds @off; aligned */
/* the range must not cross the end of a page */
const void *ck_at(const struct sg_ck *c, u64 off);
static inline u64 ck_get(const struct sg_ck *c, u64 off)
{
	return sg_load64(ck_at(c, off));
}
/*
 * Reports whether the checker still has exclusive access. If not, it stores nothing more, and the
 * check fails.
 */
bool ck_is_ours(struct sg_ck *c);
/* Makes a repair: stores a word and starts its write-back. */
void ck_set(struct sg_ck *c, u64 off, u64 val);
void ck_zero(struct sg_ck *c, u64 off, u64 len);

/* --- check_space.c ------------------------------------------------------------------------- */

int ck_space_begin(struct sg_ck *c);
/* Claims all of these pages, or none if one has an owner. */
bool ck_claim(struct sg_ck *c, u64 off, u64 pages);
bool ck_claimed(const struct sg_ck *c, u64 off);
void ck_space(struct sg_ck *c);
/*
 * Checks whether an empty root directory has lost its names. Called when all other pages have been
 * claimed.
 */
void ck_root_strays(struct sg_ck *c);

/* --- check_super.c ------------------------------------------------------------------------- */

int ck_end_move(struct sg_ck *c, void *base, u64 size);
/* another system has exclusive access */
bool ck_slot_taken(const struct sg_ck *c, unsigned int slot);
void ck_super(struct sg_ck *c);
void ck_hot(struct sg_ck *c);
void ck_slots(struct sg_ck *c);
void ck_lock(struct sg_ck *c, u64 ino, u64 off);
void ck_areas(struct sg_ck *c);
void ck_chunk_locks(struct sg_ck *c);

/* --- check_table.c ------------------------------------------------------------------------- */

struct ck_tree {		/* result of a walk */
	u64 pages;		/* data pages and tables */
	u64 end;		/* file page behind the last mapped one */
	bool bad;
};
typedef void (*ck_leaf)(struct sg_ck *c, void *ctx, u64 page, u64 off, u64 pages);
/*
 * Walks the table of the root word at @root_off, claims its pages, and repairs it. @leaf may be
 * NULL.
 */
void ck_table(struct sg_ck *c, u64 ino, u64 root_off, u64 max_pages, struct ck_tree *out,
	      ck_leaf leaf, void *ctx);
/*
 * Claims a cut-off table of @level, from entry @first on. Returns false if a page of the table
 * already has an owner.
 */
bool ck_table_deferred(struct sg_ck *c, u64 off, unsigned int level, unsigned int first);

/* --- check_sys.c --------------------------------------------------------------------------- */

int ck_inode_file(struct sg_ck *c);		/* system inodes; sizes the arrays */
void ck_inode_free_arrays(struct sg_ck *c);

/* --- check_loss.c -------------------------------------------------------------------------- */

/* called in the first pass, before names are read */
int ck_loss_begin(struct sg_ck *c);
void ck_loss_before(struct sg_ck *c);		/* called at the end of the first pass */
void ck_loss_after(struct sg_ck *c);		/* called at the end of the last pass */
/* Records a name that refers to an inode that is not in use. */
void ck_loss_named(struct sg_ck *c, u64 ino, unsigned int type);

/* --- check_inode.c ------------------------------------------------------------------------- */

u64 ck_inode_off(const struct sg_ck *c, u64 ino);
const struct sg_inode *ck_inode(const struct sg_ck *c, u64 ino);
#define ck_ifield(c, ino, field)	(ck_inode_off(c, ino) + offsetof(struct sg_inode, field))
void ck_records(struct sg_ck *c);
void ck_files(struct sg_ck *c);
void ck_free_lists(struct sg_ck *c);
void ck_blocks(struct sg_ck *c, u64 ino, u64 pages);
void ck_clear_inode(struct sg_ck *c, u64 ino);
bool ck_type_known(u64 mode);

/* --- check_dir.c --------------------------------------------------------------------------- */

void ck_dirs(struct sg_ck *c);
/* Claims everything below a cut-off index page of @level (1: or less), from word @first on. */
bool ck_dir_deferred(struct sg_ck *c, u64 page, unsigned int first, unsigned int level, u64 *pages);
bool ck_is_bucket_of(const struct sg_ck *c, u64 off, u64 *ino);
/* Calls @fn for each valid name in a copy of a bucket. */
typedef void (*ck_name)(struct sg_ck *c, void *ctx, const struct sg_dirent *d);
void ck_bucket_names(struct sg_ck *c, const struct sg_bucket *b, ck_name fn, void *ctx);

/* --- check_xattr.c ------------------------------------------------------------------------- */

u64 ck_xattr(struct sg_ck *c, u64 ino);		/* pages of the blob */
bool ck_xattr_deferred(struct sg_ck *c, u64 head);

/* --- check_deferred.c ---------------------------------------------------------------------- */

void ck_deferred_of_inodes(struct sg_ck *c);	/* only marks these inodes: CK_DEFERRED */
void ck_deferred(struct sg_ck *c);

/* --- check_userlock.c ---------------------------------------------------------------------- */

void ck_userlocks(struct sg_ck *c, void *ctx, u64 first, u64 off, u64 pages);	/* a ck_leaf */

/* --- check_sem.c --------------------------------------------------------------------------- */

void ck_sems(struct sg_ck *c, void *ctx, u64 first, u64 off, u64 pages);	/* a ck_leaf */

/* --- check_tree.c -------------------------------------------------------------------------- */

/*
 * Checks a name in @dir that refers to @ref. Returns false if the caller must remove the name. A
 * repair may change the word at @ref_off.
 */
bool ck_refers(struct sg_ck *c, u64 dir, const struct sg_dirent *d, u64 ref_off);
bool ck_removed_dir(const struct sg_ck *c, u64 ino);
void ck_tree(struct sg_ck *c);

/* --- check_engine.c ------------------------------------------------------------------------ */

/*
 * Takes a slot and replays the transactions that other systems had committed. The check changes the
 * volume from here on.
 */
int ck_hold(struct sg_ck *c);
/* the identity that has exclusive access */
const struct sg_identity *ck_identity(const struct sg_ck *c);
void ck_release(struct sg_ck *c);

bool ck_engine_needed(const struct sg_ck *c);
int ck_engine(struct sg_ck *c);

/* --- check_image.c: only with c->image ------------------------------------------------------- */

/*
 * The checker calls one of these functions wherever it reads a page. The function stores in the
 * image the parts that the checker uses. @firm: the page has been claimed. Otherwise the page may
 * have another owner, and a later call for that owner replaces these parts.
 */
static inline bool ck_hidden(const struct sg_ck *c)	/* an image with hidden names */
{
	return c->vol.sb.incompat & SG_INCOMPAT_HIDDEN;
}
int ck_image_begin(struct sg_ck *c);	/* both functions return 0 without an image */
int ck_image_finish(struct sg_ck *c);
void ck_image_free(struct sg_ck *c);
void ck_image_records(struct sg_ck *c, u64 off);
enum { CK_SEEN_NONE, CK_SEEN_USED, CK_SEEN_FREE, CK_SEEN_BAD };
void ck_image_survey(struct sg_ck *c, u64 off, const u8 kind[SG_INODES_PER_PAGE], bool first);
void ck_image_target(struct sg_ck *c, u64 off, u64 len, bool firm);
void ck_image_table(struct sg_ck *c, u64 off, unsigned int level, bool firm);
void ck_image_index(struct sg_ck *c, u64 off);
void ck_image_ledger(struct sg_ck *c, u64 off);
void ck_image_deferred(struct sg_ck *c, u64 off);
/*
 * Store a bucket. The first function is for a bucket of which only the head is valid. The second
 * stores the slots @slot, of which those in @keep are valid.
 */
void ck_image_head(struct sg_ck *c, u64 off);
void ck_image_bucket(struct sg_ck *c, u64 off, const struct sg_bucket *from, const u64 *slot,
		     const bool *keep);
/*
 * Stores pages without an owner that look like buckets (check_dir.c). @pages: one bit for each page
 * from @page on.
 */
void ck_image_lost(struct sg_ck *c, u64 lost, u64 page);
/* @deferred: the checker uses only the list of the blob's pages. */
void ck_image_xattr(struct sg_ck *c, u64 off, const struct sg_xattr_head *from, bool deferred,
		    bool firm);
void ck_image_userlocks(struct sg_ck *c, u64 off, unsigned int good);
void ck_image_sems(struct sg_ck *c, u64 off, const bool good[SG_SEM_RECORDS]);

#endif
