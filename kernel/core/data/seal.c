// SPDX-License-Identifier: GPL-2.0
/*
 * Sealed files: contents and size are final on all systems. docs/sealed-files.md has the order of
 * the stores, and what a crash leaves.
 *
 * A system that opens a file for writing sets its bit in `openers`, then looks at `replacing`, then
 * at the flag. A system that seals stores its name in `replacing`, then looks at `openers`, and
 * then sets the flag. Both make a full fence in between. So either the sealing system sees the
 * opener and gives up, or the opener waits until the file is sealed.
 */
#include "internal.h"

#define ATTEMPTS	16	/* of a file that changes meanwhile */

/* --- looks ----------------------------------------------------------------------------------- */

static u64 flags_of(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return sg_iget(vol, ref, genflags) >> 32;
}

bool sg_is_sealed(const struct sg_vol *vol, const struct sg_iref *ref)
{
	return !sg_is_lost(vol, ref->off) && flags_of(vol, ref) & SG_FL_SEALED;
}

int sg_may_open_to_write(struct sg_vol *vol, const struct sg_iref *ref)
{
	int err = sg_is_replacing(vol, ref) ? sg_wait_replaced(vol, ref) : 0;

	return err ?: sg_may_store(vol, ref);
}

/*
 * Returns another system that has the file open, or SG_SLOTS. A system that was fenced, and may
 * still run, counts: its processes may have the file mapped.
 */
static unsigned int user_elsewhere(const struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 users = sg_users_elsewhere(vol, ref);

	return users ? sg_ctz64(users) : SG_SLOTS;
}

static int used_by(const struct sg_vol *vol, unsigned int who, char *why)
{
	struct sg_slot slot;

	sg_slot_read(vol, who, &slot);
	if (SG_SLOT_STATE(slot.state) == SG_SLOT_LIVE)
		sg_snprintf(why, 200, "%.60s (slot %u) has the file open: close it there",
			    slot.name, who);
	else
		sg_snprintf(why, 200, "%.60s (slot %u) had the file open when it was fenced, and its "
			    "processes may still store: try again in %u s", slot.name, who,
			    SG_LAPSE_MS / 1000);
	return -EBUSY;
}

static int no_holes(struct sg_vol *vol, const struct sg_iref *ref, u64 size, char *why)
{
	u64 page, end = sg_pages_of(size), turns = 0;
	struct sg_met mapped = {};
	struct sg_run run;
	int err = 0;

	for (page = 0; page < end && !err; page += run.pages) {
		err = sg_turn(&turns) ?: sg_walk(vol, ref, page, end - page, &run) ?:
		      sg_met(vol, ref, &mapped, run.pages, 1);
		if (!err && !run.off) {
			sg_snprintf(why, 200, "the file has a hole at byte %llu: fill its holes with "
				    "fallocate, or seal a copy (cp --sparse=never)",
				    (unsigned long long)page << SG_PAGE_SHIFT);
			err = -EINVAL;
		}
	}
	return err;
}

/* --- seal ------------------------------------------------------------------------------------ */

static int store_flags(struct sg_vol *vol, const struct sg_iref *ref, u64 flags, s64 now)
{
	struct sg_tx *tx = sg_tx_begin(vol);

	sg_tx_inode(tx, ref);
	sg_tx_iset(tx, ref, genflags, (u32)sg_tx_iget(tx, ref, genflags) | flags << 32);
	sg_tx_iset(tx, ref, replacing, 0);
	sg_tx_times(tx, ref, 0, now);
	return sg_tx_commit(tx);
}

/*
 * The flag is set only if no other system has the file open. The commit also clears `replacing`. So
 * a crash leaves a file that is not sealed, or one to which no system can store any more.
 */
static int set_seal(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now, char *why)
{
	unsigned int who;
	int err;

	sg_replace_begin(vol, ref);
	who = user_elsewhere(vol, ref);
	err = who == SG_SLOTS ? 0 : used_by(vol, who, why);
	/* mappings show all of the last page */
	if (!err)
		err = sg_zero_mapped(vol, ref, size, SG_ALIGN_UP(size, SG_PAGE));
	sg_fence();
	if (!err)
		err = store_flags(vol, ref, (flags_of(vol, ref) & ~SG_FL_DIGEST) | SG_FL_SEALED,
				  now);
	if (err)
		sg_replace_end(vol, ref);
	return err;
}

static int seal_locked(struct sg_vol *vol, const struct sg_iref *ref, u64 seq, s64 now, char *why)
{
	int err = sg_may_change(vol, ref);

	if (err || flags_of(vol, ref) & SG_FL_SEALED)
		return err;
	if (sg_is_cutting(vol, ref) || sg_iget(vol, ref, seq) != seq)
		return -EAGAIN;
	return set_seal(vol, ref, sg_iget(vol, ref, size), now, why);
}

static int seal_once(struct sg_vol *vol, const struct sg_iref *ref, s64 now, char *why)
{
	u64 seq, size;
	int err = sg_is_cutting(vol, ref) ? sg_finish_cut(vol, ref) : 0;

	err = err ?: sg_read_begin(vol, ref, &seq);
	if (err)
		return err;
	size = sg_iget(vol, ref, size);
	if (size > SG_FILE_MAX)
		return sg_damaged(vol, ref->ino, ref->off, "inode larger than a file can be");
	err = no_holes(vol, ref, size, why);
	if (err && sg_read_retry(vol, ref, seq))
		return -EAGAIN;
	err = err ?: sg_ilock(vol, ref);
	if (err)
		return err;
	err = seal_locked(vol, ref, seq, now, why);
	sg_iunlock(vol, ref);
	return err;
}

/*
 * At the end, stores through mappings that have ended are written back. Until then a power cut may
 * take them from a file that is sealed already; a second call completes that.
 */
int sg_seal(struct sg_vol *vol, const struct sg_iref *ref, s64 now, char why[200])
{
	int err = sg_may_write(vol);
	unsigned int tries;

	why[0] = 0;
	if (err)
		return err;
	if (!sg_is_reg(sg_iget(vol, ref, mode)))
		return -EINVAL;
	err = sg_feature_allow(vol, SG_RO_COMPAT_SEALS);
	if (err == -EOPNOTSUPP)
		sg_snprintf(why, 200, "a system that uses the volume has software without sealed files");
	if (err)
		return err;
	for (tries = 0; tries < ATTEMPTS; tries++) {
		err = seal_once(vol, ref, now, why);
		if (err != -EAGAIN)
			break;
	}
	if (err == -EAGAIN) {
		sg_snprintf(why, 200, "the file changes all the time");
		return -EBUSY;
	}
	return err ?: sg_flush_killable(vol, ref, 0, sg_pages_of(sg_iget(vol, ref, size)));
}

int sg_unseal(struct sg_vol *vol, const struct sg_iref *ref, s64 now, char why[200])
{
	int err = sg_may_write(vol) ?: sg_ilock(vol, ref);
	unsigned int who;
	u64 flags;

	why[0] = 0;
	if (err)
		return err;
	err = sg_may_change(vol, ref);
	flags = flags_of(vol, ref);
	if (!err && flags & SG_FL_SEALED) {
		who = user_elsewhere(vol, ref);
		err = who != SG_SLOTS ? used_by(vol, who, why) :
		      store_flags(vol, ref, flags & ~(SG_FL_SEALED | SG_FL_DIGEST), now);
	}
	sg_iunlock(vol, ref);
	return err;
}

/* --- the root of the tree of hashes ---------------------------------------------------------- */

static u64 root_word(const struct sg_iref *ref, unsigned int i)
{
	return SG_IOFF(ref, tail) + 8 * i;
}

int sg_seal_root(struct sg_vol *vol, const struct sg_iref *ref, u64 root[SG_DIGEST_SIZE / 8])
{
	unsigned int turn = 0, i;
	u64 seq, flags;
	int err;

	do {
		err = sg_read_begin(vol, ref, &seq);
		if (err)
			return err;
		if (turn++ == SG_READ_TURNS)
			return sg_damaged(vol, ref->ino, ref->off, "a change of an inode never ends");
		flags = flags_of(vol, ref);
		for (i = 0; i < SG_DIGEST_SIZE / 8; i++)
			root[i] = sg_get(vol, root_word(ref, i));
	} while (sg_read_retry(vol, ref, seq));
	return flags & SG_FL_SEALED && flags & SG_FL_DIGEST ? 0 : -ENODATA;
}

static int set_root(struct sg_vol *vol, const struct sg_iref *ref, const u64 *root)
{
	u64 flags = flags_of(vol, ref);
	bool same = true;
	struct sg_tx *tx;
	unsigned int i;

	if (!(flags & SG_FL_SEALED))
		return -EINVAL;
	for (i = 0; i < SG_DIGEST_SIZE / 8; i++)
		same &= sg_get(vol, root_word(ref, i)) == root[i];
	if (flags & SG_FL_DIGEST)
		return same ? 0 : -EEXIST;
	tx = sg_tx_begin(vol);
	sg_tx_inode(tx, ref);
	for (i = 0; i < SG_DIGEST_SIZE / 8; i++)
		sg_tx_set(tx, root_word(ref, i), root[i]);
	sg_tx_iset(tx, ref, genflags, sg_tx_iget(tx, ref, genflags) | (u64)SG_FL_DIGEST << 32);
	return sg_tx_commit(tx);
}

int sg_seal_set_root(struct sg_vol *vol, const struct sg_iref *ref,
		     const u64 root[SG_DIGEST_SIZE / 8])
{
	int err = sg_may_write(vol) ?: sg_ilock(vol, ref);

	if (err)
		return err;
	err = sg_may_change(vol, ref) ?: set_root(vol, ref, root);
	sg_iunlock(vol, ref);
	return err;
}
