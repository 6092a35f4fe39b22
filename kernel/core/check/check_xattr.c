// SPDX-License-Identifier: GPL-2.0
/*
 * Extended attributes. A blob has a checksum and is never changed in place, so the checker removes
 * an invalid blob.
 */
#include "check.h"

/* State of reading a payload, which is read in parts because its pages need not be adjacent. */
struct payload {
	const struct sg_ck *c;
	const struct sg_xattr_head *head;
	u64 size;
};

static bool head_valid(const struct sg_ck *c, const struct sg_xattr_head *h)
{
	u64 pages = sg_load64(&h->pages), i;

	if (h->magic != SG_XATTR_MAGIC || !h->size || h->size > SG_XATTR_TOTAL_MAX)
		return false;
	if (!pages)
		return h->size <= SG_XATTR_INLINE;
	if (pages > SG_ARRAY_SIZE(h->page) || pages != SG_ALIGN_UP(h->size, SG_PAGE) / SG_PAGE)
		return false;
	for (i = 0; i < pages; i++)
		if (!sg_data_page(&c->vol, sg_load64(&h->page[i])))
			return false;
	return true;
}

/* Returns the bytes of the payload from @pos on, up to the end of a page. */
static const u8 *piece(const struct payload *p, u64 pos)
{
	if (!p->head->pages)
		return (const u8 *)p->head->page + pos;
	return (const u8 *)ck_page(p->c, p->head->page[pos / SG_PAGE]) + pos % SG_PAGE;
}

static u64 piece_len(const struct payload *p, u64 pos)
{
	u64 room = p->head->pages ? SG_PAGE - pos % SG_PAGE : p->size - pos;

	return SG_MIN(room, p->size - pos);
}

static u32 payload_crc(const struct payload *p)
{
	u32 crc = sg_crc32c(~0u, &p->head->ino, 16); /* ino and size */
	u64 pos, n;

	for (pos = 0; pos < p->size; pos += n) {
		n = piece_len(p, pos);
		crc = sg_crc32c(crc, piece(p, pos), n);
	}
	return crc;
}

static bool entry_valid(const struct sg_xattr_entry *e)
{
	switch (e->space) {
	case SG_XATTR_USER: case SG_XATTR_TRUSTED: case SG_XATTR_SECURITY:
		return e->name_len && e->value_len <= SG_XATTR_VALUE_MAX;
	case SG_XATTR_ACL_ACCESS: case SG_XATTR_ACL_DEFAULT:
		return !e->name_len && e->value_len <= SG_XATTR_VALUE_MAX;
	}
	return false;
}

/* Entries are 8-byte aligned, so no header crosses a page boundary. */
static bool entries_valid(const struct payload *p)
{
	u64 pos = 0;

	while (pos < p->size) {
		struct sg_xattr_entry e;

		if (p->size - pos < sizeof(e))
			return false;
		memcpy(&e, piece(p, pos), sizeof(e));
		if (!entry_valid(&e))
			return false;
		pos += SG_ALIGN_UP(sizeof(e) + e.name_len + e.value_len, 8);
	}
	return pos == p->size;
}

/*
 * Checks the blob at @off and claims its pages. @ino 0: any owner. Returns the number of pages, or
 * 0 if the blob cannot be used.
 */
static u64 check_blob(struct sg_ck *c, u64 off, u64 ino)
{
	struct sg_xattr_head *h;
	struct payload p;
	u64 i, pages = 0;

	if (!sg_data_page(&c->vol, off))
		return 0;
	h = sg_alloc(sizeof(*h));	/* a copy, which cannot change after the check */
	if (!h) {
		c->no_memory = true;
		return 0;
	}
	memcpy(h, ck_page(c, off), sizeof(*h));
	p = (struct payload){ c, h, h->size };
	if (!head_valid(c, h) || (ino && (h->ino != ino || payload_crc(&p) != h->crc ||
					  !entries_valid(&p))))
		goto out;
	if (!ck_claim(c, off, 1))
		goto taken;
	for (i = 0; i < h->pages; i++)
		if (!ck_claim(c, h->page[i], 1))
			goto taken;
	pages = 1 + h->pages;
taken:
	if (c->image)
		ck_image_xattr(c, off, h, !ino, pages != 0);
out:
	sg_free(h);
	return pages;
}

/* Reports whether enough of the blob can be read to exclude an ACL. */
static bool had_no_acl(struct sg_ck *c, u64 off, u64 ino)
{
	struct sg_xattr_head *h;
	struct sg_xattr_entry e;
	struct payload p;
	bool none = false;
	u64 pos;

	if (!sg_data_page(&c->vol, off))
		return false;
	h = sg_alloc(sizeof(*h));
	if (!h)
		return false;
	memcpy(h, ck_page(c, off), sizeof(*h));
	p = (struct payload){ c, h, h->size };
	if (head_valid(c, h) && h->ino == ino && entries_valid(&p)) {
		none = true;
		for (pos = 0; pos < p.size && none; ) {
			memcpy(&e, piece(&p, pos), sizeof(e));
			none = e.space != SG_XATTR_ACL_ACCESS;
			pos += SG_ALIGN_UP(sizeof(e) + e.name_len + e.value_len, 8);
		}
	}
	sg_free(h);
	return none;
}

/*
 * Reports and removes a damaged blob. With an ACL, the group's permissions in the mode are the mask
 * of all entries of the ACL. Without the ACL they would become the permissions of the group itself.
 * So the checker clears these permissions first; an interruption then leaves less access, not more.
 */
static void drop_blob(struct sg_ck *c, u64 ino, u64 at, u64 off)
{
	u64 mode_at = ck_ifield(c, ino, mode), mode = ck_get(c, mode_at);
	bool closes = mode & 070 && !sg_is_lnk(mode) && !had_no_acl(c, off, ino);

	if (!ck_found(c, CK_ASK, ino, at, "its extended attributes are damaged%s", closes ?
		      ", and with them maybe an ACL: its group loses its permissions" : ""))
		return;
	if (closes) {
		ck_set(c, mode_at, mode & ~070ULL);
		sg_fence();
	}
	ck_set(c, at, 0);
}

u64 ck_xattr(struct sg_ck *c, u64 ino)
{
	u64 at = ck_ifield(c, ino, xattr), off = ck_get(c, at), pages;

	if (!off)
		return 0;
	pages = check_blob(c, off, ino);
	if (!pages && !c->no_memory)
		drop_blob(c, ino, at, off);
	return pages;
}

bool ck_xattr_deferred(struct sg_ck *c, u64 head)
{
	return check_blob(c, head, 0) != 0;
}
