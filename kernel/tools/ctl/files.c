// SPDX-License-Identifier: Apache-2.0
/* Commands about names: ls, cat, mkdir, rm. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ctl.h"

#define PIECE		(1u << 20)
#define DEPTH_MAX	1024

/* --- ls ------------------------------------------------------------------------------------ */

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

/* "drwxr-x--T" */
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

/* Names of a stranger must not command the terminal. */
static void put_name(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			printf("\\x%02x", (unsigned char)name[i]);
		else
			putchar(name[i]);
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
	put_name(e->name, e->len);
	if (*target) {
		printf(" -> ");
		put_name(target, strlen(target));
	}
	putchar('\n');
}

static int ls_one(struct call *c, const struct listed *e)
{
	char target[SG_SYMLINK_MAX + 1] = "";
	struct sg_attr attr;
	struct sg_iref ref;
	int err = 0;

	if (c->json || c->longer) {
		err = sg_iref(call_vol(c), e->ino, &ref);
		if (!err)
			err = sg_getattr(call_vol(c), &ref, &attr);
		if (!err && S_ISLNK(attr.mode))
			err = link_target(call_vol(c), &ref, target);
	}
	if (err)
		return path_error(e->name, err);
	if (c->json) {
		ls_json(c, e, &attr, target);
	} else if (c->longer) {
		ls_long(e, &attr, target);
	} else {
		put_name(e->name, e->len);
		putchar('\n');
	}
	return 0;
}

static int ls_dir(struct call *c, const struct sg_iref *dir, const char *path, unsigned int depth);

static int ls_below(struct call *c, const struct listing *l, const char *path, unsigned int depth)
{
	int err = 0, e;
	size_t i;

	for (i = 0; i < l->n; i++) {
		struct sg_iref ref;
		char *sub;

		if (l->item[i].type != S_IFDIR >> 12 || depth > DEPTH_MAX ||
		    err == -ELOOP)
			continue;
		if (asprintf(&sub, "%s/%s", strcmp(path, "/") ? path : "", l->item[i].name) < 0)
			return -ENOMEM;
		e = sg_iref(call_vol(c), l->item[i].ino, &ref);
		if (!e && !c->json)
			printf("\n%s:\n", sub);
		e = e ? path_error(sub, e) : ls_dir(c, &ref, sub, depth + 1);
		err = err ? err : e;
		free(sub);
	}
	return err;
}

static int ls_dir(struct call *c, const struct sg_iref *dir, const char *path, unsigned int depth)
{
	struct listing l;
	size_t i;
	int err, e;

	if (!call_may_go_on(c))
		return -ELOOP;
	err = list_dir(call_vol(c), dir, &l);
	if (err)
		return path_error(path, err);
	if (c->json) {
		json_object(&c->j, NULL);
		json_str(&c->j, "path", path);
		json_array(&c->j, "entries");
	}
	for (i = 0; i < l.n; i++) {
		e = ls_one(c, &l.item[i]);
		err = err ? err : e;
	}
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
		single.len = (u32)snprintf(single.name, sizeof(single.name), "%s", path);
		single.len = SG_MIN(single.len, SG_NAME_MAX);
		err = ls_one(c, &single);
	}
	if (c->json) {
		json_close(&c->j, ']');
		json_end(&c->j);
	}
	return err;
}

/* --- cat ----------------------------------------------------------------------------------- */

static int cat_file(struct call *c, const char *path, char *buf)
{
	struct sg_attr attr;
	struct sg_iref ref;
	u64 pos = 0;
	int err = path_find(call_vol(c), path, true, &ref, &attr);

	if (err)
		return err;
	if (!S_ISREG(attr.mode))
		return path_error(path, S_ISDIR(attr.mode) ? -EISDIR : -EINVAL);
	while (pos < attr.size) {
		s64 n = sg_read(call_vol(c), &ref, pos, buf, SG_MIN(attr.size - pos, (u64)PIECE));

		if (n < 0)
			return path_error(path, (int)n);
		if (!n || fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
			break;
		pos += (u64)n;
	}
	return 0;
}

int cmd_cat(struct call *c)
{
	char *buf = malloc(PIECE);
	int i, err = buf ? 0 : -ENOMEM;

	for (i = 0; buf && i < c->argc; i++) {
		int e = cat_file(c, c->argv[i], buf);

		err = err ? err : e;
	}
	free(buf);
	return err;
}

/* --- mkdir --------------------------------------------------------------------------------- */

static int make_dir(struct call *c, const char *path)
{
	struct sg_new new = { .mode = S_IFDIR | 0755, .uid = geteuid(), .gid = getegid(),
			      .now = (s64)sg_now() };
	struct sg_iref dir, ref;
	struct sg_attr attr;
	const char *name;
	unsigned int type;
	u32 len;
	int err = path_parent(call_vol(c), path, &dir, &name, &len);

	if (err)
		return err;
	err = sg_create(call_vol(c), &dir, name, len, &new, &ref);
	if (err == -EEXIST && c->parents && !sg_lookup(call_vol(c), &dir, name, len, &ref, &type) &&
	    !sg_getattr(call_vol(c), &ref, &attr) && S_ISDIR(attr.mode))
		return 0;
	return path_error(path, err);
}

static int make_parents(struct call *c, const char *path)
{
	char *copy = strdup(path), *slash;
	int err = copy ? 0 : -ENOMEM;

	for (slash = copy ? strchr(copy + 1, '/') : NULL; !err && slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (slash[1] && slash[-1] != '/')
			err = make_dir(c, copy);
		*slash = '/';
	}
	free(copy);
	return err;
}

int cmd_mkdir(struct call *c)
{
	int i, err = 0;

	for (i = 0; i < c->argc && !err; i++) {
		if (c->parents)
			err = make_parents(c, c->argv[i]);
		if (!err)
			err = make_dir(c, c->argv[i]);
	}
	return err;
}

/* --- rm ------------------------------------------------------------------------------------ */

static int remove_name(struct call *c, const struct sg_iref *dir, const char *name, u32 len,
		       const char *path, unsigned int depth);

static int remove_below(struct call *c, const struct sg_iref *dir, const char *path,
			unsigned int depth)
{
	struct listing l;
	size_t i;
	int err;

	if (!call_may_go_on(c))
		return -ELOOP;
	err = list_dir(call_vol(c), dir, &l);
	if (err)
		return path_error(path, err);
	for (i = 0; i < l.n && !err; i++)
		err = remove_name(c, dir, l.item[i].name, l.item[i].len, l.item[i].name, depth + 1);
	list_free(&l);
	return err;
}

static int remove_name(struct call *c, const struct sg_iref *dir, const char *name, u32 len,
		       const char *path, unsigned int depth)
{
	struct sg_vol *vol = call_vol(c);
	struct sg_iref ref;
	unsigned int type;
	s64 now = (s64)sg_now();
	int err = sg_lookup(vol, dir, name, len, &ref, &type);

	if (!err && type == S_IFDIR >> 12) {
		if (!c->recursive || depth > DEPTH_MAX)
			return path_error(path, -EISDIR);
		err = remove_below(c, &ref, path, depth);
		if (err)
			return err;
		err = sg_rmdir(vol, dir, name, len, now);
	} else if (!err) {
		err = sg_unlink(vol, dir, name, len, now);
	}
	if (!err)
		err = sg_evict(vol, &ref);
	return path_error(path, err);
}

int cmd_rm(struct call *c)
{
	int i, err = 0, e;

	for (i = 0; i < c->argc; i++) {
		struct sg_iref dir;
		const char *name;
		u32 len;

		e = path_parent(call_vol(c), c->argv[i], &dir, &name, &len);
		if (!e)
			e = remove_name(c, &dir, name, len, c->argv[i], 0);
		err = err ? err : e;
	}
	return err;
}
