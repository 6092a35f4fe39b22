// SPDX-License-Identifier: Apache-2.0
/*
 * Limits how much a command copies out of a volume (D10). The volume's tables and directories are
 * untrusted: a file may map the same page many times, and a directory may have many names. A
 * correct volume maps each page once. In a correct volume the walk meets each directory, and each
 * file with one name, only once.
 */
#include <stdlib.h>
#include "ctl.h"

static bool has_been_met(struct call *c, u64 ino)
{
	u64 word = ino / 64, room = SG_MAX(2 * c->met_room, word + 1024), had;
	u64 *more;

	if (word >= c->met_room) {
		more = realloc(c->met, room * sizeof(*more));
		if (!more)
			return false;	/* the number of steps still limits the walk */
		memset(more + c->met_room, 0, (room - c->met_room) * sizeof(*more));
		c->met = more;
		c->met_room = room;
	}
	had = c->met[word] >> ino % 64 & 1;
	c->met[word] |= 1ULL << ino % 64;
	return had;
}

/*
 * While other systems change the volume, an inode that the walk has met may move, or its number may
 * belong to another file.
 */
int tree_meet(struct call *c, const char *path, u64 ino)
{
	if (!call_may_go_on(c))
		return -ELOOP;
	if (!c->m.vol.alone || !has_been_met(c, ino))
		return 0;
	tool_error("%s: has two names, but can have only one; run fsck.stargatefs", path);
	return -EUCLEAN;
}

/*
 * The walk may meet a file twice if another system moves the file at the same time. If one file
 * alone maps too much, the command refuses it and removes its copy. The bytes of such a file do not
 * count against later files.
 */
static int take(struct call *c, const char *path, struct piece *p)
{
	u64 most = c->m.vol.alone ? c->m.vol.size : 2 * c->m.vol.size;

	p->sum += p->end - p->pos;
	c->taken += p->end - p->pos;
	if (p->sum <= most && c->taken <= most)
		return 1;
	if (p->sum > most)
		c->taken -= p->sum;
	tool_error("%s: maps more than the volume has; run fsck.stargatefs", path);
	return -EUCLEAN;
}

int piece_next(struct call *c, const char *path, const struct sg_iref *ref, u64 size,
	       struct piece *p)
{
	s64 pos = p->end >= size ? -ENXIO : sg_seek(call_vol(c), ref, p->end, false), end;

	if (pos == -ENXIO || (pos >= 0 && (u64)pos >= size))
		return 0;
	if (pos < 0)
		return path_error(path, (int)pos);
	end = sg_seek(call_vol(c), ref, (u64)pos, true);
	p->pos = (u64)pos;
	p->end = end < 0 ? size : SG_MIN((u64)end, size);
	if (p->end <= p->pos)	/* another system is changing the file */
		p->end = SG_MIN(p->pos + SG_PAGE, size);
	return take(c, path, p);
}
