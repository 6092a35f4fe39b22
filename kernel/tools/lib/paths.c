// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the paths of inodes in findings. An inode does not store its name. So the first finding
 * that needs a path causes a read of the complete tree, from the root. A clean volume is not read a
 * second time.
 *
 * The tree is damaged, and a hostile member may change it (D10). The engine reads it and skips
 * invalid names. This code reads each directory once, however many names it has. It stops at the
 * number of names that a correct volume can hold.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include "paths.h"

#define PARTS_MAX	1024	/* of a path */

/**
 * struct known - a name. @ino: its inode; 0: the entry is free. @dir: its directory, in which the
 * name follows position @cookie of sg_readdir().
 */
struct known {
	u64 ino, dir, cookie;
};

/**
 * struct paths - the names that have been read. @known: hash table by inode number, with open
 * addressing; its size is a power of two. @secret: random in each run, because a member could
 * otherwise choose inode numbers that all collide. @dirs: directories in the order in which the
 * walk met them; the first @done have been read.
 */
struct paths {
	void *base;
	u64 size;
	bool asked, open, full;
	struct sg_vol vol;
	struct known *known;
	u64 n, room, limit, secret[2];
	u64 *dirs, dir;
	size_t ndirs, dirs_room, done;
};

struct paths *paths_begin(void *base, u64 size)
{
	struct paths *p = calloc(1, sizeof(*p));

	if (p) {
		p->base = base;
		p->size = size;
		sg_random(p->secret, sizeof(p->secret));
	}
	return p;
}

void paths_end(struct paths *p)
{
	if (!p)
		return;
	if (p->open)
		sg_abandon(&p->vol);
	free(p->known);
	free(p->dirs);
	free(p);
}

/* --- known names ----------------------------------------------------------------------------- */

/* Returns the entry of an inode, or the free entry for it. */
static struct known *place_of(const struct paths *p, u64 ino)
{
	u64 i = (ino ^ p->secret[0]) * (p->secret[1] | 1);

	i = (i ^ i >> 29) * 0x9e3779b97f4a7c15ULL >> 20 & (p->room - 1);
	while (p->known[i].ino && p->known[i].ino != ino)
		i = (i + 1) & (p->room - 1);
	return &p->known[i];
}

static bool more_room(struct paths *p)
{
	struct known *old = p->known, *new;
	u64 had = p->room, i;

	if (2 * p->n < had)
		return true;
	new = calloc(had ? 2 * had : 1024, sizeof(*new));
	if (!new)
		return false;
	p->known = new;
	p->room = had ? 2 * had : 1024;
	for (i = 0; i < had; i++)
		if (old[i].ino)
			*place_of(p, old[i].ino) = old[i];
	free(old);
	return true;
}

static bool add_dir(struct paths *p, u64 ino)
{
	if (p->ndirs == p->dirs_room) {
		size_t room = p->dirs_room ? 2 * p->dirs_room : 64;
		u64 *more = realloc(p->dirs, room * sizeof(*more));

		if (!more)
			return false;
		p->dirs = more;
		p->dirs_room = room;
	}
	p->dirs[p->ndirs++] = ino;
	return true;
}

/* --- reading --------------------------------------------------------------------------------- */

/* Keeps the first name of an inode, which the messages show. */
static bool note(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct paths *p = ctx;
	struct known *k;

	(void)name;
	(void)len;
	if (ino <= SG_INO_ROOT || ino >= p->limit)	/* no inode can have that number */
		return true;
	p->full |= p->n >= p->limit || !more_room(p);
	if (p->full)
		return false;
	k = place_of(p, ino);
	if (k->ino)
		return true;
	*k = (struct known){ ino, p->dir, cookie };
	p->n++;
	if (type == S_IFDIR >> 12)
		p->full = !add_dir(p, ino);
	return !p->full;
}

static void read_dir(struct paths *p, u64 ino)
{
	u64 cookie = 0, before;
	struct sg_iref dir;

	p->dir = ino;
	if (sg_iref(&p->vol, ino, &dir))
		return;
	do {
		before = cookie;
		if (sg_readdir(&p->vol, &dir, &cookie, note, p))
			return;
	} while (!p->full && cookie != before && cookie != INT64_MAX);
}

static bool read_all(struct paths *p)
{
	p->asked = true;
	p->open = !sg_open_to_look(&p->vol, p->base, p->size, NULL);
	if (!p->open)
		return false;
	/* does not wait, because locks in the volume belong to dead systems */
	p->vol.alone = true;
	p->limit = (p->size >> SG_PAGE_SHIFT) * SG_INODES_PER_PAGE;
	if (!more_room(p) || !add_dir(p, SG_INO_ROOT))
		return false;
	while (p->done < p->ndirs && !p->full)
		read_dir(p, p->dirs[p->done++]);
	return true;
}

/* --- a path ---------------------------------------------------------------------------------- */

struct one {
	u64 ino;
	bool found;
	char name[SG_NAME_MAX + 1];
};

static bool take(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct one *one = ctx;

	(void)type;
	(void)cookie;
	one->found = ino == one->ino && len <= SG_NAME_MAX;
	if (one->found) {
		memcpy(one->name, name, len);
		one->name[len] = 0;
	}
	return false;
}

/* A repair may have removed the name since. */
static bool name_of(struct paths *p, const struct known *k, struct one *one)
{
	u64 cookie = k->cookie;
	struct sg_iref dir;

	*one = (struct one){ .ino = k->ino };
	return !sg_iref(&p->vol, k->dir, &dir) &&
	       !sg_readdir(&p->vol, &dir, &cookie, take, one) && one->found;
}

char *paths_find(struct paths *p, u64 ino)
{
	char *path = ino == SG_INO_ROOT ? strdup("/") : strdup(""), *longer;
	unsigned int parts;
	struct one one;

	if (!p || (!p->asked && !read_all(p)))
		p = NULL;
	for (parts = 0; ino != SG_INO_ROOT && path; parts++) {
		const struct known *k = p && p->known ? place_of(p, ino) : NULL;
		bool named = k && k->ino && parts < PARTS_MAX && name_of(p, k, &one);

		longer = NULL;
		if (named && asprintf(&longer, "/%s%s", one.name, path) < 0)
			longer = NULL;
		free(path);
		path = longer;
		ino = named ? k->dir : SG_INO_ROOT;
	}
	return path;
}
