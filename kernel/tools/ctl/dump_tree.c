// SPDX-License-Identifier: Apache-2.0
/* dump: prints trees (directories and file tables) and extended attributes. */
#define _GNU_SOURCE
#include "ctl.h"

/* --- directories --------------------------------------------------------------------------- */

static void dump_dirent(struct call *c, const struct sg_bucket *b, unsigned int i)
{
	unsigned int off = SG_BUCKET_OFF(b->slot[i]), len;
	const struct sg_dirent *d = (const void *)((const u8 *)b + off);
	struct json *j = &c->j;

	json_row(j, NULL);
	json_u64(j, "slot", i);
	json_hex(j, "word", b->slot[i]);
	if (b->slot[i] != SG_BUCKET_TOMB && !(off & 7) && off >= offsetof(struct sg_bucket, data) &&
	    off <= SG_PAGE - sizeof(*d)) {
		len = SG_MIN(SG_REF_LEN(d->ref), (unsigned int)(SG_PAGE - off - sizeof(*d)));
		json_hex(j, "key", d->key);
		json_u64(j, "inode", SG_REF_INO(d->ref));
		json_u64(j, "type", SG_REF_TYPE(d->ref));
		json_bytes(j, "name", (const char *)d->name, len);
	}
	json_close(j, '}');
}

int dump_bucket(struct call *c, u64 off)
{
	const struct sg_bucket *b = sg_at(call_vol(c), off);
	struct json *j = &c->j;
	unsigned int i;

	json_hex(j, "bucket", off);
	json_bool(j, "magic", (u32)b->head == SG_BUCKET_MAGIC);
	json_u64(j, "depth", b->head >> 32);
	json_u64(j, "dir", b->dir);
	json_hex(j, "prefix", b->prefix);
	json_u64(j, "bytes", b->fill & 0xffff);
	json_u64(j, "names", b->fill >> 16 & 0xffff);
	json_u64(j, "tombs", b->fill >> 32 & 0xffff);
	json_array(j, "slots");
	for (i = 0; i < SG_BUCKET_SLOTS; i++)
		if (b->slot[i])
			dump_dirent(c, b, i);
	json_close(j, ']');
	return 0;
}

static void dump_index_word(struct call *c, u64 word, unsigned int level)
{
	u64 off = word & ~SG_DIR_ENTRY_KIND, last = 0;
	struct json *j = &c->j;
	unsigned int i;

	json_object(j, NULL);
	if (!sg_data_page(call_vol(c), off) || level > SG_DIR_LEVELS_MAX) {
		json_hex(j, "bad", word);
	} else if ((word & SG_DIR_ENTRY_KIND) == SG_DIR_ENTRY_BUCKET) {
		dump_bucket(c, off);
	} else {
		json_hex(j, "index", off);
		json_array(j, "below");
		for (i = 0; i < SG_TABLE_ENTRIES; i++) {
			u64 w = sg_get(call_vol(c), off + 8 * i);

			if (w && w != last && call_may_go_on(c))
				dump_index_word(c, w, level + 1);
			last = w;
		}
		json_close(j, ']');
	}
	json_close(j, '}');
}

int dump_dir(struct call *c, const struct sg_iref *ref)
{
	u64 root = sg_iget(call_vol(c), ref, table);

	if (!sg_is_dir(sg_iget(call_vol(c), ref, mode)))
		return path_error(c->argv[1], -ENOTDIR);
	json_u64(&c->j, "entries", sg_iget(call_vol(c), ref, entries));
	json_array(&c->j, "tree");
	if (root)
		dump_index_word(c, root, 0);
	json_close(&c->j, ']');
	return 0;
}

/* --- file tables --------------------------------------------------------------------------- */

static void dump_table_page(struct call *c, u64 table, unsigned int level, u64 page)
{
	struct sg_vol *vol = call_vol(c);
	struct json *j = &c->j;
	unsigned int i;

	for (i = 0; i < SG_TABLE_ENTRIES; i++) {
		u64 at = table + 8 * i, e = sg_get(vol, at), off = 0;
		enum sg_entry kind = sg_entry_kind(vol, e, level, &off);

		if (kind == SG_ENTRY_NONE)
			continue;
		if (!call_may_go_on(c))
			return;
		json_row(j, NULL);
		json_u64(j, "level", level);
		json_u64(j, "page", page + i * sg_level_pages(level));
		json_hex(j, "at", at);
		json_hex(j, "entry", e);
		json_str(j, "names", kind == SG_ENTRY_LEAF ? "data" :
			 kind == SG_ENTRY_TABLE ? "table" : "nothing valid");
		json_close(j, '}');
		if (kind == SG_ENTRY_TABLE)
			dump_table_page(c, off, level - 1, page + i * sg_level_pages(level));
	}
}

int dump_table(struct call *c, const struct sg_iref *ref)
{
	struct sg_vol *vol = call_vol(c);
	u64 root = sg_iget(vol, ref, table), off = 0;
	enum sg_entry kind = sg_root_kind(vol, root, &off);

	if (!sg_is_reg(sg_iget(vol, ref, mode))) {
		tool_error("%s: is not a file, and has no file table", c->argv[1]);
		return -EINVAL;
	}
	json_hex(&c->j, "root", root);
	json_u64(&c->j, "height", SG_ROOT_HEIGHT(root));
	json_bool(&c->j, "valid", kind != SG_ENTRY_BAD);
	json_array(&c->j, "entries");
	if (kind == SG_ENTRY_TABLE)
		dump_table_page(c, off, SG_ROOT_HEIGHT(root), 0);
	json_close(&c->j, ']');
	return 0;
}

/* --- extended attributes ------------------------------------------------------------------- */

static int dump_one_xattr(void *ctx, unsigned int space, const char *name, u32 name_len,
			  const void *value, u32 value_len)
{
	struct json *j = ctx;

	json_row(j, NULL);
	json_u64(j, "space", space);
	json_bytes(j, "name", name, name_len);
	json_u64(j, "bytes", value_len);
	json_bytes(j, "value", value, SG_MIN(value_len, 256u));
	json_close(j, '}');
	return 0;
}

int dump_xattr(struct call *c, const struct sg_iref *ref)
{
	struct sg_vol *vol = call_vol(c);
	u64 head = sg_iget(vol, ref, xattr), i;
	const struct sg_xattr_head *h;
	struct json *j = &c->j;
	int n;

	json_hex(j, "head", head);
	if (!head)
		return 0;
	if (!sg_data_page(vol, head))
		return path_error(c->argv[1], -EUCLEAN);
	h = sg_at(vol, head);
	json_bool(j, "magic", h->magic == SG_XATTR_MAGIC);
	json_hex(j, "crc", h->crc);
	json_u64(j, "inode", h->ino);
	json_u64(j, "bytes", h->size);
	json_array(j, "pages");
	for (i = 0; i < SG_MIN(h->pages, (u64)SG_ARRAY_SIZE(h->page)); i++)
		json_hex(j, NULL, h->page[i]);
	json_close(j, ']');
	json_array(j, "attributes");
	n = sg_xattr_list(vol, ref, dump_one_xattr, j);
	json_close(j, ']');
	return path_error(c->argv[1], SG_MIN(n, 0));
}
