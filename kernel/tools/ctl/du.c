// SPDX-License-Identifier: Apache-2.0
/*
 * du: prints how much space a tree takes: pages of data, tables, names and attributes.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "ctl.h"

/*
 * struct sum - the counts of a name, and of all below it. @new: not yet counted under another
 * name.
 */
struct sum {
	u64 bytes;
	bool new;
};

/* A damaged inode may have any count: adds at most the pages of the volume. */
static u64 pages_of(const struct call *c, const struct visit *v)
{
	return SG_MIN(v->attr.blocks, c->m.vol.size >> SG_PAGE_SHIFT);
}

/* Counts a file under the first of its names. */
static int is_new(struct call *c, const struct visit *v, bool *out)
{
	const struct link_seen this = { .dev = LINK_FILE, .ino = v->ino };

	*out = S_ISDIR(v->attr.mode) || v->attr.nlink < 2 ||
	       !links_find(&c->links, LINK_FILE, v->ino);
	if (!*out || S_ISDIR(v->attr.mode) || v->attr.nlink < 2)
		return 0;
	return path_error(v->path, links_add(&c->links, &this));
}

static int count(struct call *c, const struct visit *v, void *ctx)
{
	struct sum *s = (struct sum *)ctx + v->depth;
	int err;

	*s = (struct sum){ .new = false };
	err = v->err ? 0 : is_new(c, v, &s->new);
	if (s->new)
		s->bytes = pages_of(c, v) * SG_PAGE;
	return err;
}

static void show(struct call *c, const struct visit *v, u64 bytes)
{
	struct json *j = &c->j;
	char text[32];

	if (c->json) {
		json_row(j, NULL);
		json_str(j, "path", v->path);
		json_u64(j, "bytes", bytes);
		json_close(j, '}');
		return;
	}
	if (c->human)
		printf("%s\t", show_size(bytes, text));
	else
		printf("%llu\t", (unsigned long long)bytes / 1024);
	print_text(v->path);
	putchar('\n');
}

/* Does not list a file again that was counted under another name, as du(1). */
static int leave(struct call *c, const struct visit *v, void *ctx)
{
	struct sum *s = (struct sum *)ctx + v->depth;

	if (v->depth)
		s[-1].bytes += s->bytes;
	if (!v->depth || (!c->total && s->new && (c->all || S_ISDIR(v->attr.mode))))
		show(c, v, s->bytes);
	return 0;
}

int before_du(struct call *c)
{
	if (c->all && c->total)
		return tool_usage_error("du: give either --all or --summarize");
	return 0;
}

int cmd_du(struct call *c)
{
	static struct sum sums[DEPTH_MAX + 1];
	const struct walk w = { .see = count, .leave = leave, .ctx = sums, .depth = UINT_MAX };

	return walk_list(c, "used", &w);
}
