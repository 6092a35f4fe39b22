/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of stargatectl share. */
#ifndef SG_CTL_H
#define SG_CTL_H

#include <sys/stat.h>
#include "internal.h"
#include "tool.h"

/**
 * struct call - one command being run.
 * @argv, @argc: its arguments behind the volume.
 * @spent: steps taken in trees, see call_may_go_on().
 */
struct call {
	struct member m;
	u64 spent;
	struct json j;
	bool json, recursive, longer, force, parents;
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
int path_error(const char *path, int err);	/* says it; returns err */

/**
 * struct listing - names of a directory, sorted.
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
};
int list_dir(struct sg_vol *vol, const struct sg_iref *dir, struct listing *out);
void list_free(struct listing *l);

/* --- commands ------------------------------------------------------------------------------ */

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
