// SPDX-License-Identifier: Apache-2.0
/* Digests of trees. They do not include times, which are not journalled (docs/engine.md). */
#include <sys/stat.h>
#include "tree.h"

static const u8 zero[SG_PAGE];

struct level {
	struct tree *t;
	const char *path;
	u64 sum;
};

static u64 mix(u64 sum, const void *p, size_t len)
{
	u32 a = sg_crc32c((u32)sum, p, len), b = sg_crc32c((u32)(sum >> 32) ^ 0x5bd1e995, p, len);

	return ((u64)b << 32 | a) * 0x9e3779b97f4a7c15ULL;
}

static u64 digest_data(struct sg_vol *v, const struct sg_iref *ref, u64 size, u64 sum)
{
	u64 end = (size + SG_PAGE - 1) / SG_PAGE, page, i;
	struct sg_run run;

	for (page = 0; page < end; page += run.pages) {
		CHECK_OK(sg_walk(v, ref, page, end - page, &run));
		for (i = 0; run.off && i < run.pages; i++) {
			const u8 *p = v->base + run.off + i * SG_PAGE;
			u64 at = page + i, n = SG_PAGE;

			if (at == size / SG_PAGE)
				n = size % SG_PAGE;	/* ignores bytes behind the end */
			if (!memcmp(p, zero, n))
				continue;
			sum = mix(sum, &at, 8);
			sum = mix(sum, p, n);
		}
	}
	return sum;
}

static int meet_xattr(void *ctx, unsigned int space, const char *name, u32 name_len,
		      const void *value, u32 value_len)
{
	u64 *sum = ctx, one = mix(space, name, name_len);

	*sum += mix(one ^ value_len, value, value_len);
	return 0;
}

static bool meet_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie);

static u64 digest_dir(struct tree *t, const struct sg_iref *ref, const char *path, u64 sum)
{
	struct level l = { t, path, sum };
	u64 cookie = 0;

	CHECK_OK(sg_readdir(t->v, ref, &cookie, meet_name, &l));
	return l.sum;
}

static u64 digest_inode(struct tree *t, const struct sg_iref *ref, const char *path)
{
	u64 sum = 0, content = 0, xattrs = 0;
	char target[SG_SYMLINK_MAX + 1];
	struct sg_attr a;
	u32 type;

	CHECK_OK(sg_getattr(t->v, ref, &a));
	type = a.mode & S_IFMT;
	t->inodes++;
	CHECK_OK(sg_xattr_list(t->v, ref, meet_xattr, &xattrs));
	if (type == S_IFREG && a.ino != t->skip)
		content = digest_data(t->v, ref, a.size, a.size);
	if (type == S_IFLNK) {
		CHECK_EQ(sg_readlink(t->v, ref, target, sizeof(target)), a.size);
		content = mix(0, target, a.size);
	}
	if (t->text)
		fprintf(t->text, "%s ino %" PRIu64 " mode %o links %u owner %u:%u size %" PRIu64
			" entries %" PRIu64 " flags %x data %016" PRIx64 " xattrs %016" PRIx64 "\n",
			path, a.ino, a.mode, a.nlink, a.uid, a.gid, type == S_IFDIR ? 0 : a.size,
			a.entries, a.flags, content, xattrs);
	a.flags &= ~(SG_FL_ENGINE & ~(SG_FL_ATOMIC | SG_FL_SEALED | SG_FL_DIGEST));
	sum = mix(sum, &a.ino, 8);
	sum = mix(sum, &a.mode, offsetof(struct sg_attr, flags) - offsetof(struct sg_attr, mode));
	sum = mix(sum, &a.entries, 8);
	sum = mix(sum ^ content, &xattrs, 8);
	if (type != S_IFREG)
		sum = mix(sum, &a.special, 8);
	return type == S_IFDIR ? digest_dir(t, ref, path, sum) : sum;
}

static bool meet_name(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	struct level *l = ctx;
	struct sg_iref ref;
	char path[1024];

	(void)type;
	(void)cookie;
	CHECK((unsigned int)snprintf(path, sizeof(path), "%s/%.*s", l->path, (int)len, name) <
	      sizeof(path));
	CHECK_OK(sg_iref(l->t->v, ino, &ref));
	l->sum = mix(l->sum, name, len);
	l->sum += digest_inode(l->t, &ref, path);
	return true;
}

u64 tree_digest(struct tree *t)
{
	struct sg_iref root;

	CHECK_OK(sg_iref(t->v, SG_INO_ROOT, &root));
	t->inodes = 0;
	return digest_inode(t, &root, "");
}

u64 tree_of(struct sg_vol *v, u64 skip)
{
	struct tree t = { .v = v, .skip = skip };

	return tree_digest(&t);
}

char *tree_text(struct sg_vol *v)
{
	struct tree t = { .v = v };
	char *text = NULL;
	size_t len;

	t.text = open_memstream(&text, &len);
	CHECK(t.text);
	tree_digest(&t);
	fclose(t.text);
	return text;
}

u64 tree_below(struct sg_vol *v, const char *name)
{
	struct tree t = { .v = v };
	struct sg_iref root, dir;

	CHECK_OK(sg_iref(v, SG_INO_ROOT, &root));
	dir = test_lookup(v, &root, name);
	return digest_inode(&t, &dir, name);
}
