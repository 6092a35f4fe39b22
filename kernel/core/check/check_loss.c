// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the inodes that could not be kept. Before the first repair, the code records which inodes
 * exist, which other numbers have a name, and how many inodes the counters report. At the end it
 * compares this record with the remaining inodes. So a successful repair also reports the losses.
 */
#include "check.h"

#define BY_NAME	0x80	/* in knew[]: a name without a record; otherwise only the type */

static bool in_use(const struct sg_ck *c, u64 ino)
{
	return ino < c->inodes && c->state[ino] & (CK_USED | CK_TYPELESS) && ino != c->made;
}

/*
 * Reports whether the inode has neither links nor names, because recovery frees it, or its system
 * was about to free it.
 */
static bool dying(const struct sg_ck *c, u64 ino)
{
	return c->state[ino] & CK_USED && !(c->state[ino] & CK_NAMED) && !c->links[ino] &&
	       ino != SG_INO_ROOT && !sg_nlink(ck_inode(c, ino)->mode);
}

/*
 * Returns the number of records that the volume stores for the inode file, if the volume has room
 * for so many.
 */
static u64 records_said(const struct sg_ck *c)
{
	u64 most = (sg_size(&c->vol) >> SG_PAGE_SHIFT) * SG_INODES_PER_PAGE;
	u64 said = ck_get(c, SG_HOT(inodes));

	return SG_MAX(c->inodes, said <= most ? said : 0);
}

int ck_loss_begin(struct sg_ck *c)
{
	c->knew_n = records_said(c);
	c->knew = sg_alloc(c->knew_n + 1);
	return c->knew ? 0 : -ENOMEM;
}

void ck_loss_named(struct sg_ck *c, u64 ino, unsigned int type)
{
	if (ino < c->knew_n && !c->knew[ino])
		c->knew[ino] = (u8)(BY_NAME | type);
}

static u64 kept(const struct sg_ck *c)
{
	u64 ino, n = c->inodes && !in_use(c, SG_INO_ROOT);	/* the root is made again */

	for (ino = 1; ino < c->inodes; ino++)
		n += in_use(c, ino) && !dying(c, ino);
	return n;
}

/*
 * Computes the number of inodes before the repair. It is the number in the counters, if records in
 * a hole of the inode file, and free records on no list, can explain it. Otherwise it is the number
 * of inodes that have names.
 */
void ck_loss_before(struct sg_ck *c)
{
	u64 ino, used = 0, ends = 0, typeless = 0, named = 0, room = c->unlisted;

	for (ino = 1; ino < c->inodes; ino++) {
		room += (c->state[ino] & CK_MISSING) != 0;
		if (!in_use(c, ino))
			continue;
		used++;
		typeless += (c->state[ino] & CK_TYPELESS) != 0;
		ends += dying(c, ino);
		c->knew[ino] = dying(c, ino) ? 0 :
			       (u8)((sg_mode(ck_inode(c, ino)->mode) & SG_S_IFMT) >> 12);
	}
	for (ino = 1; ino < c->knew_n; ino++)
		named += (c->knew[ino] & BY_NAME) != 0;
	if (!c->inodes)
		room = c->knew_n;
	if (c->said_used >= used ? c->said_used - used <= room : used - c->said_used <= typeless)
		c->expected = c->said_used - SG_MIN(c->said_used, ends);
	else
		c->expected = used - ends + named;
}

void ck_loss_after(struct sg_ck *c)
{
	struct sg_check_result *res = c->res;
	u64 now = kept(c), ino, files = 0, dirs = 0;

	if (now >= c->expected)
		return;
	res->lost = c->expected - now;
	for (ino = 1; ino < c->knew_n; ino++) {
		unsigned int type = c->knew[ino] & 15;

		if (!c->knew[ino] || in_use(c, ino))
			continue;
		dirs += type == SG_S_IFDIR >> 12;
		files += type == SG_S_IFREG >> 12;
	}
	res->lost_dirs = SG_MIN(dirs, res->lost);
	res->lost_files = SG_MIN(files, res->lost - res->lost_dirs);
}
