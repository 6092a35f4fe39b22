// SPDX-License-Identifier: GPL-2.0
/*
 * Inodes: records of the inode file, found by number. A transaction takes free records from the
 * list of its own area, and returns them to that list, so that parallel creators do not use the
 * same list.
 */
#include "internal.h"

#define GROW_PAGES	4	/* the file grows by 64 records at a time */
#define BUSY_RECORDS	8	/* number of busy records to skip before new ones are made */
/* surplus of records in an area before another one takes over its list */
#define SURPLUS		256
/* number of areas without a live system to search for free records */
#define LOOKS		32

/* --- find ----------------------------------------------------------------------------------- */

int sg_iref(const struct sg_vol *vol, u64 ino, struct sg_iref *ref)
{
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	struct sg_run run;
	int err;

	if (sg_is_lost(vol, SG_HOT_OFF))
		return -EIO;
	if (!ino || ino > SG_INO_MAX || ino >= sg_get(vol, SG_HOT(inodes)))
		return -ESTALE;
	err = sg_walk(vol, &sys, ino / SG_INODES_PER_PAGE, 1, &run);
	if (err)
		return err;
	if (!run.off)
		return sg_damaged(vol, ino, sys.off, "inode file has a hole");
	ref->ino = ino;
	ref->off = run.off + ino % SG_INODES_PER_PAGE * SG_INODE_SIZE;
	ref->generation = 0;
	return 0;
}

/* --- attributes ----------------------------------------------------------------------------- */

static void read_attr(const struct sg_vol *vol, const struct sg_iref *ref, struct sg_attr *attr)
{
	u64 mode = sg_iget(vol, ref, mode), owner = sg_iget(vol, ref, owner);
	u64 genflags = sg_iget(vol, ref, genflags);

	attr->ino = ref->ino;
	attr->mode = sg_mode(mode);
	attr->nlink = sg_nlink(mode);
	attr->uid = (u32)owner;
	attr->gid = (u32)(owner >> 32);
	attr->size = sg_iget(vol, ref, size);
	attr->blocks = sg_iget(vol, ref, blocks);
	attr->mtime = (s64)sg_iget(vol, ref, mtime);
	attr->ctime = (s64)sg_iget(vol, ref, ctime);
	attr->atime = (s64)sg_iget(vol, ref, atime);
	attr->btime = (s64)sg_iget(vol, ref, btime);
	attr->generation = (u32)genflags;
	attr->flags = (u32)(genflags >> 32);
	attr->special = sg_iget(vol, ref, special);
	attr->entries = sg_iget(vol, ref, entries);
	attr->has_xattr = sg_iget(vol, ref, xattr) != 0;
}

static bool mode_known(u32 mode)
{
	switch (mode & SG_S_IFMT) {
	case SG_S_IFREG:
	case SG_S_IFDIR:
	case SG_S_IFLNK:
	case SG_S_IFBLK:
	case SG_S_IFCHR:
	case SG_S_IFIFO:
	case SG_S_IFSOCK:
		return !(mode & ~(SG_S_IFMT | 07777u));
	}
	return false;
}

int sg_getattr(struct sg_vol *vol, const struct sg_iref *ref, struct sg_attr *attr)
{
	unsigned int turn = 0;
	u64 seq;
	int err;

	do {
		err = sg_read_begin(vol, ref, &seq);
		if (err)
			return err;
		if (turn++ == SG_READ_TURNS)
			return sg_damaged(vol, ref->ino, ref->off, "a change of an inode never ends");
		read_attr(vol, ref, attr);
	} while (sg_read_retry(vol, ref, seq));
	attr->seq = seq;
	if (!attr->mode)
		return -ESTALE;
	if (!mode_known(attr->mode))
		return sg_damaged(vol, ref->ino, ref->off, "inode of no known type");
	if (attr->size > SG_FILE_MAX)
		return sg_damaged(vol, ref->ino, ref->off, "inode larger than a file can be");
	return 0;
}

/* --- change --------------------------------------------------------------------------------- */

void sg_tx_times(struct sg_tx *tx, const struct sg_iref *ref, s64 mtime, s64 ctime)
{
	if (mtime)
		sg_tx_iset(tx, ref, mtime, (u64)mtime);
	if (ctime)
		sg_tx_iset(tx, ref, ctime, (u64)ctime);
}

static void set_owner(struct sg_tx *tx, const struct sg_iref *ref, unsigned int set,
		      const struct sg_attr *attr)
{
	u64 owner = sg_tx_iget(tx, ref, owner);
	u32 uid = set & SG_SET_UID ? attr->uid : (u32)owner;
	u32 gid = set & SG_SET_GID ? attr->gid : (u32)(owner >> 32);

	sg_tx_iset(tx, ref, owner, (u64)uid | (u64)gid << 32);
}

static void set_genflags(struct sg_tx *tx, const struct sg_iref *ref, unsigned int set,
			 const struct sg_attr *attr)
{
	u64 old = sg_tx_iget(tx, ref, genflags);
	u32 gen = (u32)old, flags = (u32)(old >> 32);

	if (set & SG_SET_GENERATION && attr->generation)	/* 0 matches any generation */
		gen = attr->generation;
	if (set & SG_SET_FLAGS)
		flags = (flags & SG_FL_ENGINE) | (attr->flags & SG_FL_KNOWN & ~SG_FL_ENGINE);
	sg_tx_iset(tx, ref, genflags, (u64)gen | (u64)flags << 32);
}

int sg_setattr(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	       const struct sg_attr *attr)
{
	struct sg_tx *tx;
	u64 mode;
	int err;

	err = sg_ilock(vol, ref);
	if (err)
		return err;
	mode = sg_iget(vol, ref, mode);
	if (!mode) {
		sg_iunlock(vol, ref);
		return -ESTALE;
	}
	tx = sg_tx_begin(vol);
	sg_tx_plain(tx);
	sg_tx_inode(tx, ref);
	if (set & SG_SET_MODE)
		sg_tx_iset(tx, ref, mode, (mode & ~07777ULL) | (attr->mode & 07777));
	if (set & (SG_SET_UID | SG_SET_GID))
		set_owner(tx, ref, set, attr);
	if (set & (SG_SET_FLAGS | SG_SET_GENERATION))
		set_genflags(tx, ref, set, attr);
	if (set & SG_SET_MTIME)
		sg_tx_iset(tx, ref, mtime, (u64)attr->mtime);
	if (set & SG_SET_CTIME)
		sg_tx_iset(tx, ref, ctime, (u64)attr->ctime);
	if (set & SG_SET_ATIME)
		sg_tx_iset(tx, ref, atime, (u64)attr->atime);
	if (set & SG_SET_BTIME)
		sg_tx_iset(tx, ref, btime, (u64)attr->btime);
	err = sg_tx_commit(tx);
	sg_iunlock(vol, ref);
	return err;
}

int sg_may_change(const struct sg_vol *vol, const struct sg_iref *ref)
{
	int err = sg_may_write(vol);

	if (err)
		return err;
	/* system inodes have no number, and some have no mode */
	return sg_is_same(vol, ref) && (!ref->ino || sg_iget(vol, ref, mode)) ? 0 : -ESTALE;
}

int sg_may_store(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_may_change(vol, ref) ?:
	       (sg_iget(vol, ref, genflags) >> 32 & SG_FL_SEALED ? -EPERM : 0);
}

void sg_inode_changed(struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 *seq = sg_at(vol, SG_IOFF(ref, seq));

	sg_store64_release(seq, (sg_load64(seq) | 1) + 1);
	sg_wb(vol->base + ref->off, 128);
}

int sg_wait_inode(struct sg_vol *vol, const struct sg_iref *ref)
{
	int err = sg_wait_ends(vol) ? -EINTR : sg_ilock(vol, ref);

	if (!err)
		sg_iunlock(vol, ref);
	return err;
}

static bool times_are(const struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
		      s64 mtime, s64 ctime, s64 atime)
{
	return (!(set & SG_SET_MTIME) || sg_iget(vol, ref, mtime) == (u64)mtime) &&
	       (!(set & SG_SET_CTIME) || sg_iget(vol, ref, ctime) == (u64)ctime) &&
	       (!(set & SG_SET_ATIME) || sg_iget(vol, ref, atime) == (u64)atime);
}

/*
 * Stores times without the journal, because each time is one word, and none depends on another.
 * With a coarse clock many writes have the same time, and nothing has to be stored.
 */
int sg_touch(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set, s64 mtime,
	     s64 ctime, s64 atime)
{
	struct sg_inode *rec = sg_at(vol, ref->off);
	int err = sg_may_change(vol, ref);

	if (err || times_are(vol, ref, set, mtime, ctime, atime))
		return err;
	err = sg_ilock(vol, ref);
	if (err)
		return err;
	err = sg_may_change(vol, ref);
	if (err) {
		sg_iunlock(vol, ref);
		return err;
	}
	if (set & SG_SET_MTIME)
		sg_store64(&rec->mtime, (u64)mtime);
	if (set & SG_SET_CTIME)
		sg_store64(&rec->ctime, (u64)ctime);
	if (set & SG_SET_ATIME)
		sg_store64(&rec->atime, (u64)atime);
	sg_inode_changed(vol, ref);
	sg_iunlock(vol, ref);
	return 0;
}

/* --- take and give -------------------------------------------------------------------------- */

static u64 free_list(u64 area)
{
	return area + offsetof(struct sg_area, free_ino);
}

static u64 used_inodes(u64 area)
{
	return area + offsetof(struct sg_area, used_inodes);
}

static bool lives_elsewhere(const struct sg_vol *vol, unsigned int slot)
{
	return (int)slot != vol->slot &&
	       SG_SLOT_STATE(sg_load64(sg_state_word(vol, slot))) == SG_SLOT_LIVE;
}

/*
 * Takes over an area's list. The area's count of inodes in use moves with the list, and the sum of
 * all areas does not change. So a count below zero shows that at least this many records have been
 * added to that area's list since.
 */
static bool steal_from(struct sg_tx *tx, u64 area)
{
	u64 lock = area + offsetof(struct sg_area, lock), head;
	struct sg_vol *vol = tx->vol;

	if (area == tx->area || !sg_get(vol, free_list(area)) || !sg_trylock(vol, lock))
		return false;
	head = sg_get(vol, free_list(area));
	if (!head) {
		sg_unlock(vol, lock);
		return false;
	}
	sg_tx_keep_lock(tx, lock, NULL);
	sg_tx_set(tx, free_list(area), 0);
	sg_tx_set(tx, free_list(tx->area), head);
	tx->used_inodes += (s64)sg_get(vol, used_inodes(area));
	sg_tx_set(tx, used_inodes(area), 0);
	return true;
}

/*
 * Reports whether no thread has used the given area of this system since the last check, or since
 * the join.
 */
static bool is_idle(struct sg_vol *vol, unsigned int which)
{
	struct sg_tx *tx = &vol->tx[which];
	u64 turn = sg_load64(&tx->turn);

	if (turn == sg_load64(&tx->seen_turn))
		return true;
	sg_store64(&tx->seen_turn, turn);
	return false;
}

/*
 * Takes over the list of an area that is idle, or that has freed more inodes than it has made.
 * Areas are numbered from the first one of this system on, in the circle of the mount table.
 */
static bool steal_surplus_of(struct sg_tx *tx, unsigned int nth, u64 *from)
{
	struct sg_vol *vol = tx->vol;
	unsigned int slot = ((unsigned int)vol->slot + nth / vol->sb.areas) % SG_SLOTS;
	unsigned int which = nth % vol->sb.areas;
	bool free;

	*from = sg_area_off(vol, slot, which);
	if ((int)slot == vol->slot)
		free = is_idle(vol, which);
	else
		free = !lives_elsewhere(vol, slot);
	if ((!free && (s64)sg_get(vol, used_inodes(*from)) > -SURPLUS) || !steal_from(tx, *from))
		return false;
	tx->donor = nth;
	return true;
}

/*
 * Searches other areas for free records. Reading the area of a live system moves a cache line away
 * from that system's thread. If creators read all areas, they would also take lists from each
 * other. So each call reads three areas: the area that had a list at the last search, one of this
 * system, and one of another live system. The next call reads two different ones.
 */
static bool steal_surplus(struct sg_tx *tx, u64 *from)
{
	struct sg_vol *vol = tx->vol;
	unsigned int areas = vol->sb.areas, k;

	if (tx->nlocks + 2 >= tx->most_locks)
		return false;
	if ((tx->donor >= areas && steal_surplus_of(tx, tx->donor, from)) ||
	    steal_surplus_of(tx, tx->looks % areas, from))
		return true;
	for (k = 0; k < LOOKS; k++) {
		unsigned int nth = areas + tx->looks++ % ((SG_SLOTS - 1) * areas);

		if (steal_surplus_of(tx, nth, from))
			return true;
		if (lives_elsewhere(vol, ((unsigned int)vol->slot + nth / areas) % SG_SLOTS))
			break;
	}
	*from = 0;
	return false;
}

/*
 * Takes over the list of any area that no thread uses now, when there is no space. Areas of live
 * systems come last, because such a system cannot use its area while this system is paused with the
 * area locked. *from: the area that had the list.
 */
static bool steal_list(struct sg_tx *tx, u64 *from)
{
	struct sg_vol *vol = tx->vol;
	unsigned int total = SG_SLOTS * vol->sb.areas, k;

	if (tx->nlocks + 2 >= tx->most_locks)
		return false;
	for (k = 0; k < 2 * total; k++) {
		unsigned int in = k % total;
		unsigned int slot = ((unsigned int)vol->slot + in / vol->sb.areas) % SG_SLOTS;

		*from = sg_area_off(vol, slot, in % vol->sb.areas);
		if (lives_elsewhere(vol, slot) == (k >= total) && steal_from(tx, *from))
			return true;
	}
	*from = 0;
	return false;
}

/*
 * Adds records to the inode file, linked to each other. The area names the first record, and the
 * last record names the area's old list. -ENOSPC without tx->err: nothing was done.
 */
static int grow_list(struct sg_tx *tx)
{
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	struct sg_vol *vol = tx->vol;
	u64 first, off, got, rest, i, n;
	int err;

	if (sg_tx_wait_lock(tx, SG_HOT(inode_lock), NULL))
		return tx->err;
	first = sg_get(vol, SG_HOT(inodes));
	if (first + GROW_PAGES * SG_INODES_PER_PAGE > SG_INO_MAX)
		return -ENOSPC;
	err = sg_try_run(tx, SG_USE_META, 0, GROW_PAGES, &off, &got);
	if (err)
		return err;
	sg_fresh_zero(vol, off, got * SG_PAGE);
	n = got * SG_INODES_PER_PAGE;
	rest = sg_tx_get(tx, free_list(tx->area));	/* records whose locks are busy */
	for (i = 0; i < n; i++)
		sg_fresh_set(vol, off + i * SG_INODE_SIZE + offsetof(struct sg_inode, next_free),
			     i + 1 < n ? first + i + 1 : rest);
	sg_wb(vol->base + off, got * SG_PAGE);
	if (sg_table_add(tx, &sys, first / SG_INODES_PER_PAGE, off, got))
		return tx->err;
	sg_tx_set(tx, SG_HOT(inodes), first + n);
	sg_sys_copy(tx, SG_SYS_INODES);
	sg_tx_set(tx, free_list(tx->area), first);
	tx->fresh_ino = first;
	tx->fresh_ino_off = off;
	return 0;
}

#define BAD_LIST	"list of free inodes is damaged"

/*
 * Returns the record of a number from the free list; records of grow_list() are not in the table
 * yet.
 */
static int free_record(struct sg_tx *tx, u64 ino, struct sg_iref *ref)
{
	int err;

	if (tx->fresh_ino && ino == tx->fresh_ino) {
		ref->ino = ino;
		ref->off = tx->fresh_ino_off;
		ref->generation = 0;
		return 0;
	}
	err = sg_iref(tx->vol, ino, ref);
	if (err == -EIO)
		return err;
	if (err || sg_iget(tx->vol, ref, mode))
		return sg_damaged(tx->vol, ino, tx->area, BAD_LIST);
	return 0;
}

/*
 * Returns the flags of a new inode. No system writes to the inode yet, so its pages may be replaced
 * from the start.
 */
static u32 atomic_flags(const struct sg_vol *vol, u32 mode)
{
	if (!sg_knows_atomic(vol))
		return 0;
	return sg_is_reg(mode) ? SG_FL_ATOMIC | SG_FL_REPLACE : sg_is_dir(mode) ? SG_FL_ATOMIC : 0;
}

/*
 * Fills a free record like a fresh page, because no other system can see it. The words that make it
 * free, mode and next_free, do not change until the commit.
 */
static void fill_record(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_new *new,
			u64 special)
{
	struct sg_inode *rec = sg_at(vol, ref->off);
	/* 0 matches any generation (sg_is_same()) */
	u32 gen = (u32)sg_load64(&rec->genflags) + 1 ?: 1;
	u32 flags = new->flags & SG_FL_KNOWN & ~SG_FL_ENGINE;

	if (new->flags & SG_FL_ATOMIC)
		flags |= atomic_flags(vol, new->mode);
	sg_store64(&rec->owner, (u64)new->uid | (u64)new->gid << 32);
	sg_store64(&rec->size, 0);
	sg_store64(&rec->table, 0);
	sg_store64(&rec->blocks, 0);
	sg_store64(&rec->mtime, (u64)new->now);
	sg_store64(&rec->ctime, (u64)new->now);
	sg_store64(&rec->atime, (u64)new->now);
	sg_store64(&rec->btime, (u64)new->now);
	sg_store64(&rec->xattr, 0);
	sg_store64(&rec->genflags, (u64)gen | (u64)flags << 32);
	sg_store64(&rec->special, special);
	sg_store64(&rec->entries, 0);
	sg_store64(&rec->openers, 0);
	sg_store64(&rec->project, 0);
	sg_store64(&rec->mappers, 0);
	sg_store64(&rec->holers, 0);
	sg_wb(rec, offsetof(struct sg_inode, tail));
}

/*
 * Finds the first record of this list whose lock is free, and takes that lock. The lock is held
 * until this transaction's journal record is invalid. The commit makes the inode reachable, and the
 * journal record has its link count and change counter. Without the lock, a replay would undo later
 * stores of other systems. The area is locked, so the function only tries a lock. The holder of a
 * busy one has just freed the inode, or reads it by an old reference; or it was fenced while it
 * filled the record, and may continue. *from: the word that names the inode's record.
 */
static int lock_record(struct sg_tx *tx, struct sg_iref *out, u64 *from)
{
	struct sg_vol *vol = tx->vol;
	unsigned int passed;
	u64 ino;
	int err;

	*from = free_list(tx->area);
	for (passed = 0; passed <= BUSY_RECORDS; passed++) {
		ino = sg_tx_get(tx, *from);
		if (!ino)
			return -EBUSY;
		err = free_record(tx, ino, out);
		if (sg_is_bad_memory(vol, err)) {
			/*
			 * its successor cannot be read: new records precede it, or replace the list
			 */
			if (!passed)
				sg_tx_set(tx, *from, 0);
			return -EBUSY;
		}
		if (err)
			return err;
		if (sg_trylock_filled(vol, SG_IOFF(out, lock))) {
			sg_tx_keep_lock(tx, SG_IOFF(out, lock), NULL);
			/*
			 * damage: the record was on two lists, and may have been taken from the
			 * other one
			 */
			if (sg_iget(vol, out, mode))
				return sg_damaged(vol, ino, tx->area, BAD_LIST);
			return 0;
		}
		/*
		 * if this system was fenced, another one has the list, and may have taken the
		 * record
		 */
		if (!sg_is_ours(vol))
			return -EIO;
		*from = SG_IOFF(out, next_free);
	}
	return -EBUSY;
}

/* Takes over another area's list, or makes records, because the area's own list is empty. */
static int refill_list(struct sg_tx *tx, u64 *stolen)
{
	int err;

	if (steal_surplus(tx, stolen))
		return 0;
	err = grow_list(tx);
	return err == -ENOSPC && !tx->err && steal_list(tx, stolen) ? 0 : err;
}

int sg_inode_take(struct sg_tx *tx, const struct sg_new *new, u32 nlink, u64 special,
		  struct sg_iref *out)
{
	u64 from, stolen = 0;
	int err;

	SG_ASSERT(!tx->holds_chunk);
	if (tx->err)
		return tx->err;
	tx->fresh_ino = 0;
	if (!sg_get(tx->vol, free_list(tx->area))) {
		err = refill_list(tx, &stolen);
		if (err) {
			sg_tx_fail(tx, err);
			return tx->err;
		}
	}
	err = lock_record(tx, out, &from);
	if (err == -EBUSY && !tx->fresh_ino)
		err = grow_list(tx) ?: lock_record(tx, out, &from);
	if (err) {
		/* the rest of a damaged list is lost until fsck, which is better than a loop */
		if (err == -EUCLEAN && stolen && from == free_list(tx->area))
			from = free_list(stolen);
		if (err == -EUCLEAN)
			sg_store64(sg_at(tx->vol, from), 0);
		sg_tx_fail(tx, err);
		return tx->err;
	}
	sg_tx_set(tx, from, sg_iget(tx->vol, out, next_free));
	sg_tx_fresh(tx);
	fill_record(tx->vol, out, new, special);
	out->generation = (u32)sg_iget(tx->vol, out, genflags);
	sg_tx_inode(tx, out);
	sg_tx_iset(tx, out, mode, (u64)new->mode | (u64)nlink << 32);
	tx->used_inodes++;
	return tx->err;
}

void sg_inode_inherit(struct sg_tx *tx, const struct sg_iref *dir, u32 mode,
		      const struct sg_iref *ref)
{
	u64 word = sg_iget(tx->vol, ref, genflags);

	if (!(sg_iget(tx->vol, dir, genflags) >> 32 & SG_FL_ATOMIC))
		return;
	sg_fresh_set(tx->vol, SG_IOFF(ref, genflags),
		     word | (u64)atomic_flags(tx->vol, mode) << 32);
	sg_wb(sg_at(tx->vol, SG_IOFF(ref, genflags)), 8);
}

void sg_inode_give(struct sg_tx *tx, const struct sg_iref *ref)
{
	sg_tx_inode(tx, ref);
	sg_tx_iset(tx, ref, mode, 0);
	sg_tx_iset(tx, ref, next_free, sg_tx_get(tx, free_list(tx->area)));
	sg_tx_set(tx, free_list(tx->area), ref->ino);
	tx->used_inodes--;
}
