// SPDX-License-Identifier: Apache-2.0
/*
 * Listing directories. A position in a directory is the engine's cookie. Positions 0 and 1 are "."
 * and "..".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include "fuse.h"

#define COOKIE_NAMES	2

int op_opendir(void)
{
	struct fuse_open_out out = { 0 };
	struct sg_iref ref;
	int err;

	if (handle_of_last(&out.fh))
		return reply(&out, sizeof(out));
	err = node_ref(IN->nodeid, &ref);
	if (!err)
		err = node_open(IN->nodeid, &ref, false, false);
	if (err)
		return err;
	err = handle_new(IN->nodeid, HANDLE_DIR, &out.fh);
	if (err) {
		node_close(IN->nodeid);
		return err;
	}
	nodes_opened();
	return reply(&out, sizeof(out));
}

/**
 * struct list - a reply under construction.
 * @plus: entries have attributes. @last: the previous entry. Its position is set to the cookie of
 * the next entry.
 */
struct list {
	u8 *out;
	size_t used, room;
	bool plus;
	struct fuse_dirent *last;
};

static bool add(struct list *l, const char *name, u32 len, u64 ino, unsigned int type)
{
	size_t head = l->plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
	size_t size = FUSE_REC_ALIGN(head + len);
	struct fuse_dirent *d;
	u8 *at = l->out + l->used;

	if (l->used + size > l->room)
		return false;
	memset(at, 0, size);
	d = (void *)(at + head - FUSE_NAME_OFFSET);
	d->ino = ino;
	d->namelen = len;
	d->type = type;
	memcpy(d->name, name, len);
	l->last = d;
	l->used += size;
	return true;
}

/*
 * Adds attributes to an entry. The kernel counts an entry with attributes as a look-up, and one
 * without attributes only as a name.
 */
static void add_attributes(struct list *l, u64 ino)
{
	struct fuse_direntplus *plus;
	struct sg_iref ref;

	plus = (void *)((u8 *)l->last - offsetof(struct fuse_direntplus, dirent));
	if (node_of(ino, &ref))
		return;
	if (entry_of(&ref, &plus->entry_out))
		memset(&plus->entry_out, 0, sizeof(plus->entry_out));
	else
		node_known(plus->entry_out.nodeid);
}

static bool add_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct list *l = ctx;

	if (l->last)
		l->last->off = cookie;
	if (!add(l, name, len, ino, type))
		return false;
	if (l->plus)
		add_attributes(l, ino);
	return true;
}

static int read_names(const struct sg_iref *dir, u64 at, struct list *l)
{
	u64 parent = dir->ino == SG_INO_ROOT ? dir->ino : sg_load64(&node_record(dir)->special);
	int err;

	if (!at && !add(l, ".", 1, dir->ino, 4))
		return -EINVAL;
	if (!at)
		l->last->off = 1;
	if (at < COOKIE_NAMES && !add(l, "..", 2, parent, 4))
		return l->used ? 0 : -EINVAL;
	at = at < COOKIE_NAMES ? COOKIE_NAMES : at;
	if (l->last)
		l->last->off = at;
	err = sg_readdir(VOL, dir, &at, add_name, l);
	if (l->last)
		l->last->off = at;
	return l->used ? 0 : err;
}

static int readdir(bool plus)
{
	const struct fuse_read_in *in = ARG(struct fuse_read_in);
	struct list l = { .plus = plus };
	struct sg_iref dir;
	int err = in ? node_ref(IN->nodeid, &dir) : -EINVAL;

	if (err)
		return err;
	l.out = out_room();
	if (!l.out)
		return -ENOMEM;
	l.room = in->size < IO_MAX ? in->size : IO_MAX;
	err = read_names(&dir, in->offset, &l);
	if (err)
		return err;
	if (!in->offset && !(in->flags & O_NOATIME))
		touch_atime(&dir);
	return reply_large(l.out, l.used);
}

int op_readdir(void)
{
	return readdir(false);
}

int op_readdirplus(void)
{
	return readdir(true);
}
