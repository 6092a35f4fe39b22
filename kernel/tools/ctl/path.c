// SPDX-License-Identifier: Apache-2.0
/* Paths within a volume, and lists of names. */
#define _GNU_SOURCE
#include <stdlib.h>
#include "ctl.h"

#define LINKS_MAX	40

int path_error(const char *path, int err)
{
	if (err == -EUCLEAN)
		tool_error("%s: damaged; run fsck.stargatefs", path);
	else if (err == -ENOSPC)
		tool_error("%s: No space left in the volume", path);
	else if (err == -ESTALE)
		tool_error("%s: there is no such inode", path);
	else if (err)
		tool_error("%s: %s", path, strerror(-err));
	return err;
}

int outside_error(const char *path)
{
	int err = -errno;

	tool_error("%s: %s", path, strerror(-err));
	return err;
}

int needs_recursion(const char *path)
{
	tool_error("%s: Is a directory; give -r for it and all below", path);
	return -EISDIR;
}

const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *without_slashes(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return strndup(path, n);
}

/* Reads "<N>". */
static int by_number(struct sg_vol *vol, const char *path, struct sg_iref *out)
{
	size_t n = strlen(path);
	char digits[24] = "";
	u64 ino;

	if (n < 3 || n - 2 >= sizeof(digits) || path[n - 1] != '>')
		return -EINVAL;
	memcpy(digits, path + 1, n - 2);
	return parse_number(digits, 10, UINT64_MAX, &ino) ? sg_iref(vol, ino, out) : -EINVAL;
}

/* --- a metadata image, in which names do not match their hashes ---------------------------- */

struct wanted {
	const char *name;
	u32 len;
	u64 ino;
};

static bool is_wanted(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct wanted *w = ctx;

	(void)type;
	(void)cookie;
	if (len == w->len && !memcmp(name, w->name, len))
		w->ino = ino;
	return !w->ino;
}

static int search(struct sg_vol *vol, struct sg_iref *at, const char *name, u32 len)
{
	struct wanted w = { .name = name, .len = len };
	u64 cookie = 0, before;
	int err;

	do {
		before = cookie;
		err = sg_readdir(vol, at, &cookie, is_wanted, &w);
	} while (!err && !w.ino && cookie != INT64_MAX && cookie != before);
	if (w.ino)
		return sg_iref(vol, w.ino, at);
	return err ? err : -ENOENT;
}

static int step(struct sg_vol *vol, struct sg_iref *at, const char *name, u32 len)
{
	struct sg_attr attr;
	unsigned int type;
	int err = sg_getattr(vol, at, &attr);

	if (err)
		return err;
	if (!S_ISDIR(attr.mode))
		return -ENOTDIR;
	if (len == 1 && name[0] == '.')
		return 0;
	if (len == 2 && !memcmp(name, "..", 2))
		return sg_iref(vol, attr.special, at);
	if (len > SG_NAME_MAX)
		return -ENAMETOOLONG;
	if (vol->sb.incompat & SG_INCOMPAT_HIDDEN)
		return search(vol, at, name, len);
	return sg_lookup(vol, at, name, len, at, &type);
}

/*
 * Returns the target of a link, and the rest of the path behind it. The caller frees the returned
 * text.
 */
static char *target_and_rest(struct sg_vol *vol, const struct sg_iref *link, const char *rest)
{
	char target[SG_SYMLINK_MAX + 1], *path;
	int n = sg_readlink(vol, link, target, sizeof(target) - 1);

	if (n <= 0)
		return NULL;
	target[SG_MIN(n, SG_SYMLINK_MAX)] = 0;
	return asprintf(&path, "%s%s", target, rest) < 0 ? NULL : path;
}

static int walk(struct sg_vol *vol, struct sg_iref at, const char *path, bool follow,
		unsigned int links, struct sg_iref *out)
{
	int err = 0;

	if (*path == '/')
		err = sg_iref(vol, SG_INO_ROOT, &at);
	while (!err && *path) {
		struct sg_iref dir = at;
		struct sg_attr attr;
		u32 len;

		path += strspn(path, "/");
		len = (u32)strcspn(path, "/");
		if (!len) {	/* a slash at the end: the path means a directory */
			err = sg_getattr(vol, &at, &attr);
			if (!err && !S_ISDIR(attr.mode))
				err = -ENOTDIR;
			break;
		}
		err = step(vol, &at, path, len);
		path += len;
		if (!err)
			err = sg_getattr(vol, &at, &attr);
		if (!err && S_ISLNK(attr.mode) && (follow || *path)) {
			char *again = target_and_rest(vol, &at, path);

			if (!again)
				return -EUCLEAN;
			err = links ? walk(vol, dir, again, follow, links - 1, out) : -ELOOP;
			free(again);
			return err;
		}
	}
	*out = at;
	return err;
}

static int find(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out)
{
	struct sg_iref root;
	int err;

	if (*path == '<')
		return by_number(vol, path, out);
	err = sg_iref(vol, SG_INO_ROOT, &root);
	return err ? err : walk(vol, root, path, follow, LINKS_MAX, out);
}

int path_seek(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr)
{
	int err = *path ? find(vol, path, follow, out) : -ENOENT;

	return err ? err : sg_getattr(vol, out, attr);
}

int path_find(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr)
{
	int err = path_seek(vol, path, follow, out, attr);

	if (err != -EINVAL || *path != '<')
		return path_error(path, err);
	tool_error("%s: is not an inode number; write a name that begins like this as /%s", path,
		   path);
	return err;
}

/* Reports a path without a last name that a command could change. */
static const char *nameless(const char *path, const char *name, u32 len)
{
	if (*path == '<')
		return "is a number, not a name; give a path";
	if (!len)
		return *path ? "is the root directory" : "the path is empty";
	if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')))
		return "ends in \".\" or \"..\"; give the directory's own name";
	return NULL;
}

int path_parent(struct sg_vol *vol, const char *path, struct sg_iref *dir, const char **name,
		u32 *len)
{
	size_t end = strlen(path), start;
	struct sg_attr attr;
	const char *why;
	char *parent;
	int err;

	while (end && path[end - 1] == '/')
		end--;
	for (start = end; start && path[start - 1] != '/'; start--)
		;
	*name = path + start;
	*len = (u32)(end - start);
	why = nameless(path, *name, *len);
	if (why) {
		tool_error("%s: %s", path, why);
		return -EINVAL;
	}
	parent = strndup(path, start);
	if (!parent)
		return path_error(path, -ENOMEM);
	err = find(vol, parent, true, dir);
	if (!err)
		err = sg_getattr(vol, dir, &attr);
	if (!err && !S_ISDIR(attr.mode))
		err = -ENOTDIR;
	path_error(start > 1 ? parent : path, err);
	free(parent);
	return err;
}

/* --- names of a directory ------------------------------------------------------------------ */

/*
 * @left: number of needed bytes. While the buffer grows, a name is stored as its offset in the
 * buffer.
 */
static bool more_text(struct listing *l, size_t left)
{
	size_t room = l->text_room ? l->text_room + l->text_room / 2 : 4096;
	char *text;

	if (l->text_room - l->used >= left)
		return true;
	text = realloc(l->text, room);
	if (!text)
		return false;
	l->text = text;
	l->text_room = room;
	return true;
}

static bool add_listed(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct listing *l = ctx;
	struct listed *item;

	(void)cookie;
	if (l->n == l->room) {
		size_t room = l->room ? l->room + l->room / 2 : 64;

		item = realloc(l->item, room * sizeof(*item));
		if (!item)
			return false;
		l->item = item;
		l->room = room;
	}
	len = SG_MIN(len, (u32)SG_NAME_MAX);
	if (!more_text(l, len + 1))
		return false;
	memcpy(l->text + l->used, name, len);
	l->text[l->used + len] = 0;
	item = &l->item[l->n++];
	item->name = (const char *)(uintptr_t)l->used;
	item->len = len;
	l->used += len + 1;
	item->ino = ino;
	item->type = type;
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = memcmp(x->name, y->name, SG_MIN(x->len, y->len));

	return order ? order : (int)x->len - (int)y->len;
}

#define SAID_MAX 64 /* messages about damaged names of one directory */

static struct {
	u64 off[SAID_MAX];
	size_t n;
} left_out;

/* The engine skips an invalid name, and reports its place. */
static void leave_out(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	(void)ino;
	if (left_out.n < SAID_MAX)
		left_out.off[left_out.n] = off;
	left_out.n++;
}

static int read_names(struct sg_vol *vol, const struct sg_iref *dir, struct listing *out)
{
	u64 cookie = 0, before;
	int err;

	do {
		before = cookie;
		err = sg_readdir(vol, dir, &cookie, add_listed, out);
	} while (!err && cookie != INT64_MAX && cookie != before);
	return !err && cookie != INT64_MAX ? -ENOMEM : err;
}

/* Checks that no name is missing from the list. Returns -EUCLEAN, after a message, if one is. */
static int missing(const struct sg_vol *vol, const struct sg_iref *dir, const char *path, size_t n)
{
	u64 entries = sg_iget(vol, dir, entries);
	size_t i;

	for (i = 0; i < left_out.n && i < SAID_MAX; i++)
		tool_error("%s: a name in it is damaged and left out (at 0x%llx); run fsck.stargatefs",
			   path, (unsigned long long)left_out.off[i]);
	if (left_out.n > SAID_MAX)
		tool_error("%s: ... and %zu more names", path, left_out.n - SAID_MAX);
	if (left_out.n)
		return -EUCLEAN;
	/* if this system is not alone, another one may have changed the directory */
	if (!vol->alone || entries == n)
		return 0;
	tool_error("%s: counts %llu names, and %zu were found; run fsck.stargatefs", path,
		   (unsigned long long)entries, n);
	return -EUCLEAN;
}

int list_dir(struct sg_vol *vol, const struct sg_iref *dir, const char *path, struct listing *out)
{
	bool quiet = tool_quiet;
	size_t i;
	int err;

	memset(out, 0, sizeof(*out));
	left_out.n = 0;
	vol->on_damage = leave_out;
	tool_quiet = true;	/* the engine does not have the path, which this message prints */
	err = read_names(vol, dir, out);
	tool_quiet = quiet;
	vol->on_damage = NULL;
	if (err) {
		list_free(out);
		return path_error(path, err);
	}
	for (i = 0; i < out->n; i++)	/* the buffer does not grow any more */
		out->item[i].name = out->text + (uintptr_t)out->item[i].name;
	out->missing = missing(vol, dir, path, out->n);
	if (out->n)
		qsort(out->item, out->n, sizeof(*out->item), by_name);
	return 0;
}

void list_free(struct listing *l)
{
	free(l->item);
	free(l->text);
	memset(l, 0, sizeof(*l));
}
