/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of stargatectl share. */
#ifndef SG_CTL_H
#define SG_CTL_H

#include <sys/stat.h>
#include "internal.h"
#include "tool.h"

#define CTL_PIECE	(1u << 20)	/* bytes copied at a time */
#define DEPTH_MAX	1024		/* of directories within each other */

/**
 * struct call - one command being run.
 * @argv, @argc: its arguments behind the volume.
 * @spent: steps taken in trees, see call_may_go_on().
 * @links: files with several names that have been copied, see links.c.
 * @clamped: put has said that a time does not fit.
 * @must_be_dir: put's path ends in a slash.
 */
struct call {
	struct member m;
	u64 spent;
	struct json j;
	void *links;
	bool json, recursive, longer, force, parents, clamped, must_be_dir;
	char **argv;
	int argc;
};

static inline struct sg_vol *call_vol(struct call *c)
{
	return &c->m.vol;
}

/*
 * One more step down a tree of the volume: a directory, an index page, an entry. Honest trees have
 * fewer than there can be inodes; false (said): this one goes in circles (D10).
 */
static inline bool call_may_go_on(struct call *c)
{
	u64 limit = (c->m.vol.size >> SG_PAGE_SHIFT) * SG_INODES_PER_PAGE;

	if (c->spent++ == limit)
		tool_error("%s: goes in circles; run fsck.stargatefs", c->m.target.path);
	return c->spent <= limit;
}

/* --- path.c -------------------------------------------------------------------------------- */

/*
 * "/a/b", or "<N>" for an inode number. Symbolic links on the way are followed, the last one if
 * @follow. Says what is wrong.
 */
int path_find(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr);
/* The directory that @path lies in, and its last name. */
int path_parent(struct sg_vol *vol, const char *path, struct sg_iref *dir, const char **name,
		u32 *len);
/* As path_find(), but says nothing. */
int path_seek(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr);
int path_error(const char *path, int err);	/* says it; returns err */
int outside_error(const char *path);		/* the same of errno */
int needs_recursion(const char *path);		/* -EISDIR, said */
const char *last_name(const char *path);	/* behind the last slash */
char *without_slashes(const char *path);	/* at its end; to be freed */

/**
 * struct listing - names of a directory, sorted.
 * @missing: -EUCLEAN when there are more, which are damaged. They have been told of.
 */
struct listed {
	char name[SG_NAME_MAX + 1];
	u32 len;
	u64 ino;
	unsigned int type;
};
struct listing {
	struct listed *item;
	size_t n, room;
	int missing;
};
/* Of the directory called @path. Says what is wrong. */
int list_dir(struct sg_vol *vol, const struct sg_iref *dir, const char *path, struct listing *out);
void list_free(struct listing *l);

/* --- links.c ------------------------------------------------------------------------------- */

/**
 * struct link_seen - a file that has other names, and has been copied.
 * @dev, @ino: which one. @other: its number in the volume (put). @path: where it is now (get).
 */
struct link_seen {
	u64 dev, ino, other;
	char *path;
};
const struct link_seen *links_find(void *const *links, u64 dev, u64 ino);
int links_add(void **links, const struct link_seen *what);
void links_free(void **links);

/* --- place.c ------------------------------------------------------------------------------- */

/**
 * struct place - a name in the volume.
 * @taken: it has a meaning now: @old, with @attr.
 */
struct place {
	struct sg_iref dir, old;
	const char *name;
	u32 len;
	bool taken;
	struct sg_attr attr;
};
/* For an inode of @mode. Says what is in the way; @from is whom it is about. */
int place_look(struct call *c, const struct sg_iref *dir, const char *name, u32 mode,
	       const char *from, struct place *p);
/* The name means @ref from now on; what it meant loses a name. */
int place_give(struct call *c, const struct place *p, const struct sg_iref *ref);
/* What a file keeps when its contents are replaced: owner, mode, flags, extended attributes. */
int place_inherit(struct call *c, const struct place *p, struct sg_new *new);

/* --- commands: 0, or what has been said ---------------------------------------------------- */

/* Their exit status: of what is found before the volume is touched. */
int before_put(struct call *c);
int before_label(struct call *c);
int before_dump(struct call *c);

int cmd_info(struct call *c);
int cmd_df(struct call *c);
int cmd_slots(struct call *c);
int cmd_label(struct call *c);
int cmd_ls(struct call *c);
int cmd_cat(struct call *c);
int cmd_stat(struct call *c);
int cmd_get(struct call *c);
int cmd_put(struct call *c);
int cmd_mkdir(struct call *c);
int cmd_rm(struct call *c);
int cmd_dump(struct call *c);

/* --- shared by them ------------------------------------------------------------------------ */

void show_slot(struct json *j, unsigned int number, const struct sg_slot *slot);
void dump_inode_raw(struct call *c, const struct sg_inode *in);
int dump_dir(struct call *c, const struct sg_iref *ref);
int dump_bucket(struct call *c, u64 off);
int dump_table(struct call *c, const struct sg_iref *ref);
int dump_xattr(struct call *c, const struct sg_iref *ref);
const char *type_name(u32 mode);

#endif
