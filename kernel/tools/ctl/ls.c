// SPDX-License-Identifier: Apache-2.0
/*
 * ls: lists the names of a directory, or of a tree. Each name takes one line, even if it contains
 * line ends.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/sysmacros.h>
#include "ctl.h"

const char *type_name(u32 mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return "file";
	case S_IFDIR: return "directory";
	case S_IFLNK: return "symlink";
	case S_IFCHR: return "character device";
	case S_IFBLK: return "block device";
	case S_IFIFO: return "fifo";
	case S_IFSOCK: return "socket";
	}
	return "unknown";
}

/* Makes "drwxr-x--T". */
static const char *show_mode(u32 mode, char buf[11])
{
	static const char types[] = "?pc?d?b?-?l?s???", bits[] = "rwxrwxrwx";
	unsigned int i;

	buf[0] = types[mode >> 12 & 15];
	for (i = 0; i < 9; i++)
		buf[i + 1] = mode >> (8 - i) & 1 ? bits[i] : '-';
	if (mode & 04000)
		buf[3] = mode & 0100 ? 's' : 'S';
	if (mode & 02000)
		buf[6] = mode & 010 ? 's' : 'S';
	if (mode & 01000)
		buf[9] = mode & 01 ? 't' : 'T';
	buf[10] = 0;
	return buf;
}

static int link_target(struct sg_vol *vol, const struct sg_iref *ref, char buf[SG_SYMLINK_MAX + 1])
{
	int n = sg_readlink(vol, ref, buf, SG_SYMLINK_MAX);

	buf[n > 0 ? SG_MIN(n, SG_SYMLINK_MAX) : 0] = 0;
	return n < 0 ? n : 0;
}

/*
 * In a line with several fields, the arrow of a symbolic link must be unique. So this function
 * escapes the blank of an arrow in a name.
 */
static void put_field(const char *text)
{
	const char *arrow;

	for (; (arrow = strstr(text, " -> ")); text = arrow + 1) {
		put_text(stdout, text, (size_t)(arrow - text));
		fputs("\\x20", stdout);
	}
	put_text(stdout, text, strlen(text));
}

static void ls_json(struct call *c, const struct listed *e, const struct sg_attr *a,
		    const char *target)
{
	struct json *j = &c->j;

	json_row(j, NULL);
	json_bytes(j, "name", e->name, e->len);
	json_u64(j, "inode", e->ino);
	json_str(j, "type", type_name(a->mode));
	json_u64(j, "mode", a->mode & 07777);
	json_u64(j, "links", a->nlink);
	json_u64(j, "uid", a->uid);
	json_u64(j, "gid", a->gid);
	json_u64(j, "size", a->size);
	json_s64(j, "mtime", a->mtime);
	if (*target)
		json_str(j, "target", target);
	json_close(j, '}');
}

static void ls_long(const struct listed *e, const struct sg_attr *a, const char *target)
{
	char mode[11], when[48];

	printf("%s %3u %5u %5u ", show_mode(a->mode, mode), a->nlink, a->uid, a->gid);
	if (S_ISCHR(a->mode) || S_ISBLK(a->mode))
		printf("%5u,%6u", major(a->special), minor(a->special));
	else
		printf("%12llu", (unsigned long long)a->size);
	printf(" %.19s ", show_time(a->mtime, when));
	put_field(e->name);
	if (*target) {
		printf(" -> ");
		put_field(target);
	}
	putchar('\n');
}

/*
 * Returns "DIR/NAME", which the caller frees. For a name in the root directory, the result has only
 * one slash.
 */
static char *path_of(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", strcmp(dir, "/") ? dir : "", name) < 0)
		abort();
	return path;
}

/*
 * Prints a line for a name. From here on, the type is that of the inode, or 0 if the inode cannot
 * be read.
 */
static int ls_one(struct call *c, struct listed *e, const char *path)
{
	char target[SG_SYMLINK_MAX + 1] = "";
	struct sg_attr attr;
	struct sg_iref ref;
	int err = sg_iref(call_vol(c), e->ino, &ref);

	if (!err)
		err = sg_getattr(call_vol(c), &ref, &attr);
	e->type = err ? 0 : attr.mode >> 12;
	if (!err && S_ISLNK(attr.mode))
		err = link_target(call_vol(c), &ref, target);
	if (!c->json && !c->longer) {
		put_text(stdout, e->name, e->len);
		putchar('\n');
	} else if (!err && c->json) {
		ls_json(c, e, &attr, target);
	} else if (!err) {
		ls_long(e, &attr, target);
	}
	return path_error(path, err);
}

static int ls_names(struct call *c, struct listing *l, const char *path)
{
	int err = 0, e;
	char *name;
	size_t i;

	for (i = 0; i < l->n; i++) {
		name = path_of(path, l->item[i].name);
		e = ls_one(c, &l->item[i], name);
		err = err ? err : e;
		free(name);
	}
	return err;
}

static int ls_dir(struct call *c, const struct sg_iref *dir, const char *path, unsigned int depth);

static int ls_sub(struct call *c, u64 ino, const char *path, unsigned int depth)
{
	struct sg_iref ref;
	int err = sg_iref(call_vol(c), ino, &ref);

	if (err || depth > DEPTH_MAX)
		return path_error(path, err ? err : -ENAMETOOLONG);
	if (!c->json) {
		putchar('\n');
		put_text(stdout, path, strlen(path));
		fputs(":\n", stdout);
	}
	return ls_dir(c, &ref, path, depth);
}

static int ls_below(struct call *c, const struct listing *l, const char *path, unsigned int depth)
{
	int err = 0, e;
	char *sub;
	size_t i;

	for (i = 0; i < l->n && err != -ELOOP; i++) {
		if (l->item[i].type != S_IFDIR >> 12)
			continue;
		sub = path_of(path, l->item[i].name);
		e = ls_sub(c, l->item[i].ino, sub, depth + 1);
		err = err ? err : e;
		free(sub);
	}
	return err;
}

static int ls_dir(struct call *c, const struct sg_iref *dir, const char *path, unsigned int depth)
{
	struct listing l;
	int err = tree_meet(c, path, dir->ino) ?: list_dir(call_vol(c), dir, path, &l), e;

	if (err)
		return err;
	if (c->json) {
		json_object(&c->j, NULL);
		json_str(&c->j, "path", path);
		json_array(&c->j, "entries");
	}
	e = ls_names(c, &l, path);
	err = l.missing ? l.missing : e;
	if (c->json) {
		json_close(&c->j, ']');
		json_close(&c->j, '}');
	}
	if (c->recursive) {
		e = ls_below(c, &l, path, depth);
		err = err ? err : e;
	}
	list_free(&l);
	return err;
}

int cmd_ls(struct call *c)
{
	const char *path = c->argc ? c->argv[0] : "/";
	struct listed single = { .len = 0 };
	struct sg_attr attr;
	struct sg_iref ref;
	int err = path_find(call_vol(c), path, true, &ref, &attr);

	if (err)
		return err;
	if (c->json) {
		json_begin(&c->j, stdout, false);
		json_array(&c->j, S_ISDIR(attr.mode) ? "directories" : "entries");
	}
	if (S_ISDIR(attr.mode)) {
		err = ls_dir(c, &ref, path, 0);
	} else {
		single.ino = ref.ino;
		single.name = path;
		single.len = (u32)strlen(path);
		err = ls_one(c, &single, path);
	}
	if (c->json) {
		json_close(&c->j, ']');
		json_end(&c->j);
	}
	return err;
}
