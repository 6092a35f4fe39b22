// SPDX-License-Identifier: Apache-2.0
/* stat: prints the attributes of an inode, and where its bytes are. */
#define _GNU_SOURCE
#include <sys/sysmacros.h>
#include "ctl.h"

static void show_flags(struct json *j, u32 flags)
{
	static const char *const names[] = { "immutable", "append", "noatime", "nodump", "sync",
					     "dirsync", "cutting", "atomic", "replace", "whole", "told",
					     "sealed", "digest" };
	char text[120] = "";
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!(flags >> i & 1))
			continue;
		if (*text)
			strcat(text, " ");
		strcat(text, names[i]);
	}
	json_str(j, "flags", text);
}

static void show_attr(struct json *j, const struct sg_iref *ref, const struct sg_attr *a)
{
	char mode[16];

	json_u64(j, "inode", ref->ino);
	json_hex(j, "record", ref->off);
	json_str(j, "type", type_name(a->mode));
	snprintf(mode, sizeof(mode), "0%o", a->mode & 07777);
	json_str(j, "mode", mode);
	json_u64(j, "links", a->nlink);
	json_u64(j, "uid", a->uid);
	json_u64(j, "gid", a->gid);
	json_size(j, "size", a->size);
	json_u64(j, "pages", a->blocks);
	json_u64(j, "generation", a->generation);
	show_flags(j, a->flags);
	json_u64(j, "changes", a->seq / 2);
	json_time(j, "modified", a->mtime);
	json_time(j, "changed", a->ctime);
	json_time(j, "accessed", a->atime);
	json_time(j, "born", a->btime);
	if (S_ISDIR(a->mode)) {
		json_u64(j, "entries", a->entries);
		json_u64(j, "parent", a->special);
	}
	if (S_ISCHR(a->mode) || S_ISBLK(a->mode)) {
		json_u64(j, "major", major(a->special));
		json_u64(j, "minor", minor(a->special));
	}
}

/* --- the place of the bytes ---------------------------------------------------------------- */

static void show_run(struct call *c, u64 page, const struct sg_run *run)
{
	struct json *j = &c->j;

	json_row(j, NULL);
	json_u64(j, "page", page);
	json_u64(j, "pages", run->pages);
	json_hex(j, "offset", run->off);
	json_hex(j, "phys", call_vol(c)->sb.phys + run->off);
	json_str(j, "leaf", run->level == 3 ? "1G" : run->level == 2 ? "2M" : "4K");
	json_close(j, '}');
}

/* Prints also pages beyond the size, which fallocate() allocates. sg_seek() skips holes. */
static int show_runs(struct call *c, const struct sg_iref *ref, u64 root)
{
	u64 page = 0, end = root ? sg_level_pages(SG_ROOT_HEIGHT(root) + 1) : 0;
	struct sg_run run;
	int err = 0;

	json_array(&c->j, "runs");
	while (page < end) {
		if (!call_may_go_on(c)) {
			err = -ELOOP;
			break;
		}
		err = sg_walk_bad(call_vol(c), ref, page, end - page, &run);
		if (err || !run.pages)
			break;
		if (run.off)
			show_run(c, page, &run);
		page += run.pages;
	}
	json_close(&c->j, ']');
	return err;
}

static int show_table(struct call *c, const struct sg_iref *ref, const char *path)
{
	struct json *j = &c->j;
	u64 root = sg_iget(call_vol(c), ref, table);
	int err;

	json_object(j, "table");
	json_hex(j, "root", root);
	json_u64(j, "height", SG_ROOT_HEIGHT(root));
	json_size(j, "reach", root ? sg_level_pages(SG_ROOT_HEIGHT(root) + 1) * SG_PAGE : 0);
	err = show_runs(c, ref, root);
	json_close(j, '}');
	return err == -ELOOP ? err : path_error(path, err);
}

/* The root of the tree of hashes that was kept with the seal. */
static void show_root(struct call *c, const struct sg_iref *ref)
{
	u64 root[SG_DIGEST_SIZE / 8];
	char text[2 * SG_DIGEST_SIZE + 1];
	unsigned int i;

	if (sg_seal_root(call_vol(c), ref, root))
		return;
	for (i = 0; i < SG_DIGEST_SIZE; i++)
		snprintf(text + 2 * i, 3, "%02x", ((const u8 *)root)[i]);
	json_str(&c->j, "root_hash", text);
}

/* --- extended attributes ------------------------------------------------------------------- */

static int show_xattr(void *ctx, unsigned int space, const char *name, u32 name_len,
		      const void *value, u32 value_len)
{
	static const char *const spaces[] = { "?.", "user.", "trusted.", "security.",
		"system.posix_acl_access", "system.posix_acl_default" };
	struct json *j = ctx;
	char full[300];
	int n;

	(void)value;
	n = snprintf(full, sizeof(full), "%s%.*s", spaces[space < 6 ? space : 0], (int)name_len,
		     name);
	json_row(j, NULL);
	json_bytes(j, "name", full, (size_t)n);
	json_u64(j, "bytes", value_len);
	json_close(j, '}');
	return 0;
}

int cmd_stat(struct call *c)
{
	struct json *j = &c->j;
	char target[SG_SYMLINK_MAX + 1];
	struct sg_attr attr;
	struct sg_iref ref;
	int err = path_find(call_vol(c), c->argv[0], false, &ref, &attr), n;

	if (err)
		return err;
	json_begin(j, stdout, !c->json);
	show_attr(j, &ref, &attr);
	if (S_ISLNK(attr.mode)) {
		n = sg_readlink(call_vol(c), &ref, target, SG_SYMLINK_MAX);
		json_bytes(j, "target", target, n > 0 ? (size_t)SG_MIN(n, SG_SYMLINK_MAX) : 0);
		err = path_error(c->argv[0], SG_MIN(n, 0));
	}
	if (S_ISREG(attr.mode))
		show_root(c, &ref);
	if (S_ISREG(attr.mode))
		err = show_table(c, &ref, c->argv[0]);
	if (attr.has_xattr) {
		json_array(j, "xattrs");
		n = sg_xattr_list(call_vol(c), &ref, show_xattr, j);
		json_close(j, ']');
		err = err ? err : path_error(c->argv[0], SG_MIN(n, 0));
	}
	json_end(j);
	return err;
}
