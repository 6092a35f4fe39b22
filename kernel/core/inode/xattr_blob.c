// SPDX-License-Identifier: GPL-2.0
/*
 * Extended attributes: one blob per inode, never changed, only replaced.
 *
 * A reader copies the complete payload into its own memory. The inode's change counter shows that
 * the blob was not replaced meanwhile, and the checksum shows that the copy is right. After that
 * the reader loads nothing from the volume. Most blobs have a few dozen bytes; most inodes have
 * none.
 */
#include "internal.h"

#define SMALL		256	/* payloads up to this size need no allocated memory */
#define HEAD_WORDS	(offsetof(struct sg_xattr_head, page) / 8)
#define RECLAIM_WORDS	(8 * 2)
#define RECLAIM_RESERVE	8	/* words for the head, the deferred free and counters */

/* --- read ------------------------------------------------------------------------------------- */

struct blob {
	u64 head;		/* offset of its head page; 0: there is no blob */
	u64 pages;		/* number of its pages, including the head */
	u32 len;
	u8 *data;		/* the payload: small, or allocated */
	u64 small[SMALL / 8];
};

static void blob_free(struct blob *b)
{
	if (b->data && b->data != (u8 *)b->small)
		sg_free(b->data);
	b->data = NULL;
}

/* The fields of a head, each of them loaded once. */
struct head {
	u32 magic, crc;
	u64 ino, size, pages;
};

static struct head read_head(const struct sg_vol *vol, u64 off)
{
	u64 first = sg_get(vol, off);

	return (struct head){
		.magic = (u32)first,
		.crc = (u32)(first >> 32),
		.ino = sg_get(vol, off + offsetof(struct sg_xattr_head, ino)),
		.size = sg_get(vol, off + offsetof(struct sg_xattr_head, size)),
		.pages = sg_get(vol, off + offsetof(struct sg_xattr_head, pages)),
	};
}

static u64 pages_for(u64 size)
{
	return size <= SG_XATTR_INLINE ? 0 : SG_ALIGN_UP(size, SG_PAGE) / SG_PAGE;
}

static bool xattr_blob_head_valid(const struct head *h)
{
	return h->magic == SG_XATTR_MAGIC && h->size && h->size <= SG_XATTR_TOTAL_MAX &&
	       h->pages == pages_for(h->size);
}

static u64 page_word(u64 head, u64 i)
{
	return head + offsetof(struct sg_xattr_head, page) + i * 8;
}

/*
 * Copies by relaxed loads of one word each, because without a lock the pages may be reused
 * meanwhile.
 */
static void copy_words(const struct sg_vol *vol, u64 from, u8 *to, u64 len)
{
	u64 i, word;

	for (i = 0; i < len; i += 8) {
		word = sg_get(vol, from + i);
		memcpy(to + i, &word, 8);
	}
}

static bool copy_payload(const struct sg_vol *vol, const struct head *h, u64 head, u8 *to)
{
	u64 i, pos;

	if (!h->pages) {
		copy_words(vol, page_word(head, 0), to, h->size);
		return true;
	}
	for (i = 0, pos = 0; i < h->pages; i++, pos += SG_PAGE) {
		u64 page = sg_get(vol, page_word(head, i));

		if (!sg_data_page(vol, page))
			return false;
		copy_words(vol, page, to + pos, SG_MIN(h->size - pos, SG_PAGE));
	}
	return true;
}

static u32 xattr_blob_payload_crc(u64 ino, u64 size, const void *payload)
{
	const u64 id[2] = { ino, size };

	return sg_crc32c(sg_crc32c(~0u, id, sizeof(id)), payload, size);
}

static bool xattr_blob_entry_valid(unsigned int space, u32 name_len, u32 value_len)
{
	bool acl = space == SG_XATTR_ACL_ACCESS || space == SG_XATTR_ACL_DEFAULT;

	return space >= SG_XATTR_USER && space <= SG_XATTR_ACL_DEFAULT && acl == !name_len &&
	       value_len <= SG_XATTR_VALUE_MAX;
}

static u32 entry_size(u32 name_len, u32 value_len)
{
	return (u32)SG_ALIGN_UP(sizeof(struct sg_xattr_entry) + name_len + value_len, 8);
}

/*
 * Reports whether the entries of a payload in private memory are valid. Each must lie inside, and
 * the last one must end the payload.
 */
static bool xattr_blob_entries_valid(const u8 *data, u32 len)
{
	u32 pos = 0;

	while (pos < len) {
		const struct sg_xattr_entry *e = (const void *)(data + pos);

		if (len - pos < sizeof(*e) ||
		    !xattr_blob_entry_valid(e->space, e->name_len, e->value_len) ||
		    len - pos < entry_size(e->name_len, e->value_len))
			return false;
		pos += entry_size(e->name_len, e->value_len);
	}
	return true;
}

/*
 * Makes one attempt to copy a blob. -EUCLEAN, not reported: a change in progress may look like
 * damage.
 */
static int copy_blob(const struct sg_vol *vol, const struct sg_iref *ref, struct blob *b)
{
	struct head h;

	b->len = 0;
	b->head = sg_iget(vol, ref, xattr);
	b->pages = 0;
	if (!b->head)
		return 0;
	if (!sg_iget(vol, ref, mode))
		return -ESTALE;		/* the words of a free record have no meaning */
	if (!sg_data_page(vol, b->head))
		return -EUCLEAN;
	h = read_head(vol, b->head);
	if (!xattr_blob_head_valid(&h) || h.ino != ref->ino || h.size & 7)
		return -EUCLEAN;
	b->data = h.size <= SMALL ? (u8 *)b->small : sg_alloc(h.size);
	if (!b->data)
		return -ENOMEM;
	b->len = (u32)h.size;
	b->pages = 1 + h.pages;
	if (!copy_payload(vol, &h, b->head, b->data) ||
	    xattr_blob_payload_crc(ref->ino, h.size, b->data) != h.crc ||
	    !xattr_blob_entries_valid(b->data, b->len))
		return -EUCLEAN;
	return 0;
}

/*
 * Reports whether the blob was replaced. A blob never changes, so the copy is right while the blob
 * still belongs to the inode.
 */
static bool is_replaced(const struct sg_vol *vol, const struct sg_iref *ref, const struct blob *b)
{
	sg_acquire_fence();
	return sg_iget(vol, ref, xattr) != b->head;
}

/*
 * Copies a blob; the caller frees the copy after any result. Other changes of the inode do not
 * restart a long copy, because they may be faster than the copy.
 */
static int load_blob(const struct sg_vol *vol, const struct sg_iref *ref, struct blob *b)
{
	unsigned int turn;
	u64 seq;
	int err;

	b->data = NULL;
	for (turn = 0; turn < SG_READ_TURNS; turn += 1 + (u32)b->pages * SG_READ_PAGE) {
		int got;

		err = sg_read_begin(vol, ref, &seq);
		if (err)
			return err;
		got = copy_blob(vol, ref, b);
		if (!got && b->head && !is_replaced(vol, ref, b))
			return 0;
		if (!sg_read_retry(vol, ref, seq))
			return got == -EUCLEAN ? sg_damaged(vol, ref->ino, b->head,
							    "extended attributes") : got;
		blob_free(b);
	}
	return sg_damaged(vol, ref->ino, ref->off, "a change of an inode never ends");
}

static const struct sg_xattr_entry *find_entry(const struct blob *b, unsigned int space,
					       const char *name, u32 name_len)
{
	u32 pos = 0;

	while (pos < b->len) {
		const struct sg_xattr_entry *e = (const void *)(b->data + pos);

		if (e->space == space && e->name_len == name_len &&
		    !memcmp(e->name, name, name_len))
			return e;
		pos += entry_size(e->name_len, e->value_len);
	}
	return NULL;
}

static int xattr_blob_check_name(unsigned int space, u32 name_len)
{
	if (name_len > 255)
		return -ERANGE;
	return xattr_blob_entry_valid(space, name_len, 0) ? 0 : -EINVAL;
}

static int copy_value(const struct sg_xattr_entry *e, void *buf, u32 len)
{
	if (!e)
		return -ENODATA;
	if (buf) {
		if (len < e->value_len)
			return -ERANGE;
		memcpy(buf, e->name + e->name_len, e->value_len);
	}
	return (int)e->value_len;
}

int sg_xattr_get(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		 const char *name, u32 name_len, void *buf, u32 len)
{
	struct blob b;
	int err;

	if (!sg_iget(vol, ref, xattr))
		return -ENODATA;
	err = xattr_blob_check_name(space, name_len);
	if (err)
		return err;
	err = load_blob(vol, ref, &b);
	if (!err)
		err = copy_value(find_entry(&b, space, name, name_len), buf, len);
	blob_free(&b);
	return err;
}

int sg_xattr_list(struct sg_vol *vol, const struct sg_iref *ref, sg_xattr_emit emit, void *ctx)
{
	struct blob b;
	u32 pos = 0;
	int err;

	if (!sg_iget(vol, ref, xattr))
		return 0;
	err = load_blob(vol, ref, &b);
	while (!err && pos < b.len) {
		const struct sg_xattr_entry *e = (const void *)(b.data + pos);
		const char *name = (const char *)e->name;

		err = emit(ctx, e->space, name, e->name_len, name + e->name_len, e->value_len);
		pos += entry_size(e->name_len, e->value_len);
	}
	blob_free(&b);
	return err;
}

/* --- write ------------------------------------------------------------------------------------ */

/* Writes the pages of a larger payload, in runs as long as possible, and names them in the head. */
static int write_pages(struct sg_tx *tx, const u8 *payload, u32 len, u64 head, u64 pages)
{
	u64 done = 0, goal = head, off, got, i;

	while (done < pages) {
		if (sg_take_run(tx, SG_USE_META, goal, pages - done, &off, &got))
			return tx->err;
		sg_fresh_write(tx->vol, off, payload + done * SG_PAGE,
			       SG_MIN(len - done * SG_PAGE, got * SG_PAGE));
		for (i = 0; i < got; i++)
			sg_fresh_set(tx->vol, page_word(head, done + i), off + i * SG_PAGE);
		done += got;
		goal = off + got * SG_PAGE;
	}
	return 0;
}

int sg_xattr_build(struct sg_tx *tx, u64 ino, const void *payload, u32 len, u64 *head, u64 *pages)
{
	u64 more = pages_for(len), i;
	struct sg_vol *vol = tx->vol;

	*head = 0;
	*pages = 0;
	if (tx->err || !len)
		return tx->err;
	if (len > SG_XATTR_TOTAL_MAX || len & 7 || !xattr_blob_entries_valid(payload, len)) {
		sg_tx_fail(tx, -EINVAL);
		return tx->err;
	}
	if (sg_take_page(tx, SG_USE_META, head))
		return tx->err;
	sg_fresh_set(vol, *head, SG_XATTR_MAGIC |
		     (u64)xattr_blob_payload_crc(ino, len, payload) << 32);
	sg_fresh_set(vol, *head + offsetof(struct sg_xattr_head, ino), ino);
	sg_fresh_set(vol, *head + offsetof(struct sg_xattr_head, size), len);
	sg_fresh_set(vol, *head + offsetof(struct sg_xattr_head, pages), more);
	for (i = offsetof(struct sg_xattr_head, reserved) / 8; i < HEAD_WORDS; i++)
		sg_fresh_set(vol, *head + i * 8, 0);
	if (!more)
		sg_fresh_write(vol, page_word(*head, 0), payload, len);
	else if (write_pages(tx, payload, len, *head, more))
		return tx->err;
	sg_wb(sg_at(vol, *head), HEAD_WORDS * 8 + more * 8);
	*pages = 1 + more;
	return 0;
}

static void set_blob(struct sg_tx *tx, const struct sg_iref *ref, u64 head, u64 pages,
		     u64 old_pages)
{
	sg_tx_inode(tx, ref);
	sg_tx_iset(tx, ref, xattr, head);
	sg_tx_iset(tx, ref, blocks, sg_tx_iget(tx, ref, blocks) + pages - old_pages);
}

void sg_xattr_drop(struct sg_tx *tx, const struct sg_iref *ref)
{
	u64 head = sg_tx_iget(tx, ref, xattr), pages = 0;

	if (!head)
		return;
	if (sg_data_page(tx->vol, head)) {
		struct head h = read_head(tx->vol, head);

		pages = xattr_blob_head_valid(&h) ? 1 + h.pages : 0;
	}
	if (pages)	/* otherwise these pages are lost until fsck finds them */
		sg_defer_free(tx, SG_LEDGER_XATTR, head >> SG_PAGE_SHIFT, 0);
	else
		sg_damaged(tx->vol, ref->ino, head, "extended attributes");
	set_blob(tx, ref, 0, 0, pages);
}

/* --- reclaim ---------------------------------------------------------------------------------- */

/* Frees a run. Returns false if this transaction cannot free it. */
static bool reclaim_run(struct sg_tx *tx, u64 off, u64 pages)
{
	return tx->n + RECLAIM_WORDS + RECLAIM_RESERVE <= SG_AREA_WORDS &&
	       sg_give_run(tx, off, pages);
}

/*
 * Returns how many pages at the end of the first @n are contiguous in a chunk; *off: the first of
 * them. 0: damage.
 */
static u64 last_run(const struct sg_vol *vol, u64 head, u64 n, u64 *off)
{
	u64 page = sg_get(vol, page_word(head, n - 1)), run = 0;

	while (sg_data_page(vol, page)) {
		*off = page;
		run++;
		if (run == n || !(page & (SG_CHUNK - 1)))
			break;
		page = sg_get(vol, page_word(head, n - 1 - run));
		if (page != *off - SG_PAGE)
			break;
	}
	return run;
}

/*
 * Reclaims a blob. Its pages may lie in more chunks than a transaction can lock. So a transaction
 * frees some pages at the end of the list, and removes them from the head. No reader uses the blob
 * any more; a system that continues after a crash, and the checker, use the head. The head itself
 * is freed last.
 */
int sg_xattr_reclaim(struct sg_tx *tx, u64 head, bool *done)
{
	struct head h = read_head(tx->vol, head);
	u64 left = h.pages, off, n;

	*done = false;
	if (!xattr_blob_head_valid(&h))
		return sg_damaged(tx->vol, 0, head, "extended attributes being freed");
	while (left) {
		n = last_run(tx->vol, head, left, &off);
		if (!n) {
			sg_damaged(tx->vol, 0, head, "extended attributes being freed");
			left--;
		} else if (reclaim_run(tx, off, n)) {
			left -= n;
		} else {
			break;
		}
	}
	*done = !left && reclaim_run(tx, head, 1);
	if (!*done && left == h.pages && tx->busy) {
		sg_tx_fail(tx, -EBUSY);
	} else if (!*done) {
		sg_tx_set(tx, head + offsetof(struct sg_xattr_head, pages), left);
		sg_tx_set(tx, head + offsetof(struct sg_xattr_head, size),
			  left ? left * SG_PAGE : 8);
	}
	return tx->err;
}

/* --- change ----------------------------------------------------------------------------------- */

/**
 * struct change - a change of one attribute.
 * @value: NULL removes the attribute. @optional: removing an absent attribute is no error.
 * @mode: 0, or the permissions that the inode also gets.
 */
struct change {
	unsigned int space;
	const char *name;
	u32 name_len;
	const void *value;
	u32 len;
	unsigned int flags;
	bool optional, has_mode;
	u32 mode;
	s64 now;
};

static int check_change(const struct change *c, bool exists)
{
	if (exists && c->value && c->flags & SG_XATTR_CREATE)
		return -EEXIST;
	if (!exists && (c->value ? !!(c->flags & SG_XATTR_REPLACE) : !c->optional))
		return -ENODATA;
	return 0;
}

static void put_entry(u8 *to, const struct change *c)
{
	struct sg_xattr_entry *e = (void *)to;

	e->value_len = c->len;
	e->space = (u8)c->space;
	e->name_len = (u8)c->name_len;
	memcpy(e->name, c->name, c->name_len);
	memcpy(e->name + c->name_len, c->value, c->len);
}

/* Returns the payload after the change, in newly allocated memory. *len 0: no attribute remains. */
static int changed_payload(const struct blob *b, const struct sg_xattr_entry *old,
			   const struct change *c, u8 **out, u32 *len)
{
	u32 gone = old ? entry_size(old->name_len, old->value_len) : 0;
	u32 added = c->value ? entry_size(c->name_len, c->len) : 0;
	u32 before = old ? (u32)((const u8 *)old - b->data) : b->len;
	u8 *to;

	*out = NULL;
	*len = b->len - gone + added;
	if (*len > SG_XATTR_TOTAL_MAX)
		return -ENOSPC;
	if (!*len)
		return 0;
	to = sg_alloc(*len);
	if (!to)
		return -ENOMEM;
	if (before)
		memcpy(to, b->data, before);
	if (b->len - before - gone)
		memcpy(to + before, b->data + before + gone, b->len - before - gone);
	if (added)
		put_entry(to + *len - added, c);
	*out = to;
	return 0;
}

static int change_tx(struct sg_vol *vol, const struct sg_iref *ref, const struct blob *old,
		     const u8 *payload, u32 len, const struct change *c)
{
	struct sg_tx *tx = sg_tx_begin(vol);
	u64 head, pages, mode = sg_iget(vol, ref, mode);

	if (!sg_xattr_build(tx, ref->ino, payload, len, &head, &pages)) {
		if (old->head)
			sg_defer_free(tx, SG_LEDGER_XATTR, old->head >> SG_PAGE_SHIFT, 0);
		set_blob(tx, ref, head, pages, old->pages);
		if (c->has_mode)
			sg_tx_iset(tx, ref, mode, (mode & ~07777ULL) | (c->mode & 07777));
		sg_tx_times(tx, ref, 0, c->now);
	}
	return sg_tx_commit(tx);
}

static int mode_tx(struct sg_vol *vol, const struct sg_iref *ref, const struct change *c)
{
	struct sg_tx *tx = sg_tx_begin(vol);
	u64 mode = sg_iget(vol, ref, mode);

	sg_tx_inode(tx, ref);
	if (c->has_mode)
		sg_tx_iset(tx, ref, mode, (mode & ~07777ULL) | (c->mode & 07777));
	sg_tx_times(tx, ref, 0, c->now);
	return sg_tx_commit(tx);
}

static int change_locked(struct sg_vol *vol, const struct sg_iref *ref, struct blob *b,
			 const struct change *c)
{
	const struct sg_xattr_entry *old;
	struct sg_nospace nospace = {};
	u8 *payload;
	u32 len;
	int err;

	if (!sg_iget(vol, ref, mode))
		return -ESTALE;
	err = load_blob(vol, ref, b);
	if (err)
		return err;
	old = find_entry(b, c->space, c->name, c->name_len);
	err = check_change(c, old);
	if (err)
		return err;
	if (!old && !c->value)
		return mode_tx(vol, ref, c);
	err = changed_payload(b, old, c, &payload, &len);
	if (err)
		return err;
	do {
		err = change_tx(vol, ref, b, payload, len, c);
	} while (err == -ENOSPC && vol->up->more_space(vol, &nospace));
	sg_free(payload);
	return err;
}

static int xattr_blob_change(struct sg_vol *vol, const struct sg_iref *ref, const struct change *c)
{
	int err = xattr_blob_check_name(c->space, c->name_len) ?: sg_may_write(vol);
	struct blob b = { .data = NULL };

	if (!err && c->value && c->len > SG_XATTR_VALUE_MAX)
		err = -E2BIG;
	if (!err)
		err = sg_ilock(vol, ref);
	if (err)
		return err;
	err = change_locked(vol, ref, &b, c);
	sg_iunlock(vol, ref);
	blob_free(&b);
	return err;
}

int sg_xattr_set(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		 const char *name, u32 name_len, const void *value, u32 len, unsigned int flags,
		 s64 now)
{
	const struct change c = {
		.space = space, .name = name, .name_len = name_len, .value = value, .len = len,
		.flags = flags, .now = now,
	};

	return xattr_blob_change(vol, ref, &c);
}

int sg_xattr_set_mode(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		      const void *value, u32 len, u32 mode, s64 now)
{
	const struct change c = {
		.space = space, .name = "", .value = value, .len = len, .optional = true,
		.has_mode = true, .mode = mode, .now = now,
	};

	return xattr_blob_change(vol, ref, &c);
}
