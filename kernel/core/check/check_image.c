// SPDX-License-Identifier: GPL-2.0
/*
 * A metadata image: the pages that the checker reads, and nothing else. With an image, developers
 * can search for a fault in a volume whose owner may not give it to them (docs/tools.md).
 *
 * The image has the pages that one pass of the checker has read. So it has no contents of files,
 * and a check of the image has the same findings. Unless names are kept, the image hides all text
 * that users have chosen: names, link targets, extended attributes. For that, the code builds each
 * kind of page again from the parts that the checker uses. Unused bytes, such as removed names,
 * become zeroes. Each invalid word becomes one fixed invalid word.
 *
 * A directory finds a name by a keyed hash of the name. The hash determines the name's place, so
 * the image keeps the hashes, and hidden names do not match them. SG_INCOMPAT_HIDDEN in the
 * superblock records this. The image's superblock has no key, so that nobody can test guessed
 * names.
 *
 * The image already contains the changes that replay would make, and its journal records have the
 * same values. So a replay of the image changes nothing.
 */
#include "check.h"
#include "dir/dir_index.h"
#include "sem/sem.h"

#define BLOCK	16	/* number of bytes of a name that are mixed with each other */

/**
 * struct ck_image - an image being made.
 * @firm: one bit for each page whose content is final. @loose: one bit for each page that a caller
 * with a better claim may replace.
 * @key: of the hash that hides names; it is never stored.
 * @page: the page being made.
 */
struct ck_image {
	const struct sg_check_image *to;
	u64 *firm, *loose;
	struct sg_vol key;
	u64 page[SG_PAGE / 8];
	int err;
};

/* --- pages of the image ---------------------------------------------------------------------- */

static bool test_bit(const u64 *map, u64 page)
{
	return map[page / 64] >> (page & 63) & 1;
}

static bool all_zero(const u64 *w)
{
	unsigned int i;

	for (i = 0; i < SG_PAGE / 8; i++)
		if (w[i])
			return false;
	return true;
}

/*
 * Stores the page. The first caller with @firm decides the page's content, just as the first claim
 * decides the page's owner.
 */
static void put(struct sg_ck *c, u64 off, const void *bytes, bool firm)
{
	struct ck_image *m = c->image;
	u64 page = off >> SG_PAGE_SHIFT;
	bool again = test_bit(m->loose, page);

	if (m->err || test_bit(m->firm, page) || (!firm && again))
		return;
	(firm ? m->firm : m->loose)[page / 64] |= 1ULL << (page & 63);
	if (again || !all_zero(bytes))
		m->err = m->to->put(m->to->ctx, off & ~(SG_PAGE - 1), bytes);
}

/*
 * Stores the page unchanged if nothing has to be hidden. True: the page is stored. Callers never
 * use it for a page that may belong to a file.
 */
static bool put_plain(struct sg_ck *c, u64 off, bool firm)
{
	bool plain = c->image->to->plain && firm;

	if (plain)
		put(c, off, sg_at(&c->vol, off), true);
	return plain;
}

/* Returns a copy of the page, which the caller may change. */
static u64 *copy(struct sg_ck *c, u64 off)
{
	memcpy(c->image->page, ck_page(c, off), SG_PAGE);
	return c->image->page;
}

/* --- hide ------------------------------------------------------------------------------------ */

/*
 * Finds the class of a byte: any byte of its class may replace the byte. Returns the size of the
 * class; *first is its first byte. Letters, digits, and the bytes of UTF-8 that select a character
 * are hidden. Dots, blanks and similar characters remain, and the length, too.
 */
static unsigned int class_of(u8 byte, u8 *first)
{
	if (byte >= 0x80 && byte < 0xc0) {
		*first = 0x80;
		return 64;
	}
	*first = 0;
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= 'a' && byte <= 'z') ? 62 : 0;
}

static unsigned int number_of(u8 byte)
{
	return byte >= 'a' ? byte - 'a' + 36u : byte >= 'A' ? byte - 'A' + 10u : (u32)byte - '0';
}

static u8 shifted(u8 byte, u64 by)
{
	static const char letters[] =
		"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	unsigned int n;
	u8 first;

	n = class_of(byte, &first);
	if (!n)
		return byte;
	if (first)
		return (u8)(first + (byte - first + by) % n);
	return (u8)letters[(number_of(byte) + by) % n];
}

/*
 * Shifts each byte within its class by a hash of all other bytes. This can be reversed with the
 * key, so different names remain different.
 */
static void mix(const struct ck_image *m, u64 tweak, u8 *block, u32 len)
{
	struct {
		u64 tweak;
		/* no padding, because all bytes of it are hashed */
		u8 round, at, none[6], byte[BLOCK];
	} in = { .tweak = tweak };
	u32 i;

	for (in.round = 0; in.round < 3; in.round++) {
		for (i = 0; i < len; i++) {
			u8 first;

			if (!class_of(block[i], &first))
				continue;
			memcpy(in.byte, block, len);
			in.byte[i] = first;
			in.at = (u8)i;
			block[i] = shifted(block[i], sg_dir_hash(&m->key, (const char *)&in,
								 sizeof(in)));
		}
	}
}

/* Hides a name. @tweak: a number that makes equal names in different directories different. */
static void hide(const struct ck_image *m, u64 tweak, u8 *name, u32 len)
{
	u32 head = SG_MIN(len, (u32)BLOCK), i;
	u64 of[BLOCK / 8 + 1] = { tweak }, by = 0;

	if (len > head)
		tweak ^= sg_dir_hash(&m->key, (const char *)name + head, len - head) << 9;
	mix(m, tweak, name, head);
	memcpy(of + 1, name, head);
	for (i = head; i < len; i++) {
		if (!((i - head) % 4)) {
			of[0] += 1ULL << 40;
			by = sg_dir_hash(&m->key, (const char *)of, sizeof(of));
		}
		name[i] = shifted(name[i], by & 0xfff);
		by >>= 12;
	}
}

/* Hides a link target, but keeps its slashes, its dots and its length. */
static void hide_target(u8 *text, u64 len)
{
	u64 i;

	for (i = 0; i < len; i++)
		if (text[i] && text[i] != '/' && text[i] != '.')
			text[i] = 'x';
}

/* --- inode records --------------------------------------------------------------------------- */

static void hide_record(struct sg_inode *in)
{
	u64 size = in->size;

	if (in->mode && !ck_type_known(in->mode)) {	/* the bytes may have any content */
		*in = (struct sg_inode){ .lock = in->lock, .mode = in->mode,
					 .genflags = in->genflags, .next_free = in->next_free,
					 .deferred_next = in->deferred_next };
		return;
	}
	in->genflags &= ~((u64)SG_FL_DIGEST << 32);	/* contents are not in the image */
	if (!sg_is_lnk(in->mode) || size >= sizeof(in->tail))
		size = 0;
	hide_target(in->tail, size);
	memset(in->tail + size, 0, sizeof(in->tail) - size);
}

void ck_image_records(struct sg_ck *c, u64 off)
{
	struct sg_inode *in;
	unsigned int i;

	if (put_plain(c, off, true))
		return;
	in = (struct sg_inode *)copy(c, off);
	for (i = 0; i < SG_INODES_PER_PAGE; i++)
		hide_record(&in[i]);
	put(c, off, in, true);
}

/*
 * Stores, for each inode record of the page, only how the survey (check_sys.c) counted it. The
 * contents stay out of the image, because the surveyed table may belong to another file.
 */
void ck_image_survey(struct sg_ck *c, u64 off, const u8 kind[SG_INODES_PER_PAGE], bool first)
{
	struct sg_inode *in = (struct sg_inode *)c->image->page;
	unsigned int i;

	memset(in, 0, SG_PAGE);
	for (i = 0; i < SG_INODES_PER_PAGE; i++) {
		in[i].project = kind[i] == CK_SEEN_BAD;
		in[i].genflags = kind[i] == CK_SEEN_FREE;
		if (kind[i] == CK_SEEN_USED)
			in[i].mode = 1ULL << 32 | SG_S_IFIFO;
	}
	if (first) {
		in[SG_INO_ROOT].mode = 2ULL << 32 | SG_S_IFDIR;
		in[SG_INO_ROOT].special = SG_INO_ROOT;
	}
	put(c, off, in, false);
}

void ck_image_target(struct sg_ck *c, u64 off, u64 len, bool firm)
{
	u8 *text;

	if (put_plain(c, off, firm))
		return;
	text = (u8 *)copy(c, off);
	hide_target(text, len);
	memset(text + len, 0, SG_PAGE - len);
	put(c, off, text, firm);
}

/* --- tables, indexes, deferred frees --------------------------------------------------------- */

void ck_image_table(struct sg_ck *c, u64 off, unsigned int level, bool firm)
{
	unsigned int i;
	u64 *t, to;

	if (put_plain(c, off, firm))
		return;
	t = copy(c, off);
	for (i = 0; i < SG_TABLE_ENTRIES; i++)
		if (sg_entry_kind(&c->vol, t[i], level, &to) == SG_ENTRY_BAD &&
		    !sg_table_lost(&c->vol, t[i]))
			t[i] = SG_PTE_PRESENT;
	put(c, off, t, firm);
}

void ck_image_index(struct sg_ck *c, u64 off)
{
	unsigned int i;
	u64 *t;

	if (put_plain(c, off, true))
		return;
	t = copy(c, off);
	for (i = 0; i < SG_TABLE_ENTRIES; i++)
		if (t[i] && (!sg_data_page(&c->vol, t[i] & ~SG_DIR_ENTRY_KIND) ||
			     !(t[i] & SG_DIR_ENTRY_KIND)))
			t[i] = SG_DIR_ENTRY_KIND;
	put(c, off, t, true);
}

void ck_image_ledger(struct sg_ck *c, u64 off)
{
	if (!put_plain(c, off, true))
		put(c, off, ck_page(c, off), true);
}

/*
 * Stores a page that a ledger names, before its kind is known, because the check needs the page's
 * deferred inodes early.
 */
void ck_image_deferred(struct sg_ck *c, u64 off)
{
	unsigned int i;
	u64 *w;

	w = copy(c, off);
	if (!sg_data_page(&c->vol, w[0]))
		w[0] = 0;
	for (i = 1; i < SG_LEDGER_WORDS; i++)
		if (SG_LEDGER_KIND(w[i]) != SG_LEDGER_INODE || SG_LEDGER_VALUE(w[i]) >= c->inodes)
			w[i] = 0;
	put(c, off, w, false);
}

/* --- buckets --------------------------------------------------------------------------------- */

void ck_image_head(struct sg_ck *c, u64 off)
{
	struct sg_bucket *b;

	if (put_plain(c, off, true))
		return;
	b = (struct sg_bucket *)copy(c, off);
	memset(b->reserved, 0, SG_PAGE - offsetof(struct sg_bucket, reserved));
	put(c, off, b, true);
}

/* @slot: the slots that the image gets; @keep: which of them have valid names. */
void ck_image_bucket(struct sg_ck *c, u64 off, const struct sg_bucket *from, const u64 *slot,
		     const bool *keep)
{
	struct sg_bucket *to = (struct sg_bucket *)c->image->page;
	unsigned int i;

	if (put_plain(c, off, true))
		return;
	memset(to, 0, sizeof(*to));
	memcpy(to, from, offsetof(struct sg_bucket, reserved));
	for (i = 0; i < SG_BUCKET_SLOTS; i++) {
		unsigned int at = SG_BUCKET_OFF(slot[i]);
		const struct sg_dirent *d = (const void *)((const u8 *)from + at);
		struct sg_dirent *e = (void *)((u8 *)to + at);

		to->slot[i] = slot[i];
		if (!keep[i])
			continue;
		memcpy(e, d, sizeof(*d) + SG_REF_LEN(d->ref));
		hide(c->image, from->dir, e->name, SG_REF_LEN(d->ref));
	}
	put(c, off, to, true);
}

/* --- extended attributes --------------------------------------------------------------------- */

/*
 * Hides attribute names of programs, and all values except ACLs, which contain only numbers of
 * users and groups.
 */
static void hide_entries(const struct ck_image *m, u64 ino, u8 *payload, u64 size)
{
	struct sg_xattr_entry *e;
	u64 pos = 0;

	while (pos < size) {
		u64 end = size - pos;

		e = (void *)(payload + pos);
		if (end >= sizeof(*e))
			end = SG_ALIGN_UP(sizeof(*e) + e->name_len + (u64)e->value_len, 8);
		if (end < sizeof(*e) || end > size - pos) {	/* the page has changed meanwhile */
			memset(e, 0, size - pos);
			return;
		}
		if (e->space == SG_XATTR_USER || e->space == SG_XATTR_TRUSTED)
			hide(m, ino, e->name, e->name_len);
		if (e->space != SG_XATTR_ACL_ACCESS && e->space != SG_XATTR_ACL_DEFAULT)
			memset(e->name + e->name_len, 0, end - sizeof(*e) - e->name_len);
		pos += end;
	}
}

static void gather(struct sg_ck *c, const struct sg_xattr_head *h, u8 *payload)
{
	u64 i;

	if (!h->pages)
		memcpy(payload, h->page, h->size);
	for (i = 0; i < h->pages; i++)
		memcpy(payload + i * SG_PAGE, ck_page(c, h->page[i]),
		       SG_MIN(h->size - i * SG_PAGE, SG_PAGE));
}

/* @deferred: the checker does not read its payload. */
void ck_image_xattr(struct sg_ck *c, u64 off, const struct sg_xattr_head *from, bool deferred,
		    bool firm)
{
	struct sg_xattr_head *h = (struct sg_xattr_head *)c->image->page;
	u64 room = SG_ALIGN_UP(from->size, SG_PAGE), i;
	u8 *payload;

	if (put_plain(c, off, firm)) {
		for (i = 0; i < from->pages && !deferred; i++)
			put_plain(c, from->page[i], firm);
		return;
	}
	payload = sg_alloc(room);
	if (!payload) {
		c->no_memory = true;
		return;
	}
	if (!deferred) {
		gather(c, from, payload);
		hide_entries(c->image, from->ino, payload, from->size);
	}
	memset(h, 0, sizeof(*h));
	memcpy(h, from, offsetof(struct sg_xattr_head, page) + from->pages * 8);
	h->crc = sg_crc32c(sg_crc32c(~0u, &from->ino, 16), payload, from->size);
	if (!from->pages)
		memcpy(h->page, payload, from->size);
	put(c, off, h, firm);
	for (i = 0; i < from->pages && !deferred; i++)
		put(c, from->page[i], payload + i * SG_PAGE, firm);
	sg_free(payload);
}

/* --- system files ---------------------------------------------------------------------------- */

/* Stores locks up to the first invalid one, at which the checker stops. */
void ck_image_userlocks(struct sg_ck *c, u64 off, unsigned int good)
{
	struct sg_userlock_page *p;
	u64 tail;

	if (put_plain(c, off, true))
		return;
	p = (struct sg_userlock_page *)copy(c, off);
	if (good < SG_USERLOCK_RECORDS) {
		tail = offsetof(struct sg_userlock_page, record) + good * sizeof(p->record[0]);
		memset((u8 *)p + tail, 0, SG_PAGE - tail);
		p->record[good].head = ~0ULL;
	}
	put(c, off, p, true);
}

/* Keeps only the part of the name's hash that determines the semaphore's place. */
void ck_image_sems(struct sg_ck *c, u64 off, const bool good[SG_SEM_RECORDS])
{
	struct sg_sem_page *p;
	unsigned int i;

	if (put_plain(c, off, true))
		return;
	p = (struct sg_sem_page *)copy(c, off);
	memset(p->reserved, 0, sizeof(p->reserved));
	for (i = 0; i < SG_SEM_RECORDS; i++) {
		struct sg_sem_record *r = &p->record[i];
		u32 len = (u32)SG_MIN(r->mode >> 32, (u64)SG_SEM_NAME_MAX);

		if (!r->head || !good[i]) {
			*r = (struct sg_sem_record){ .head = r->head ? ~0ULL : 0 };
			continue;
		}
		r->hash = sg_sem_chain(r->hash);
		hide(c->image, off, r->name, len);
		memset(r->name + len, 0, sizeof(r->name) - len);
	}
	put(c, off, p, true);
}

/* --- pages at fixed places ------------------------------------------------------------------- */

static void mark(const struct ck_image *m, struct sg_super *sb)
{
	sb->incompat |= SG_INCOMPAT_IMAGE | (m->to->plain ? 0 : SG_INCOMPAT_HIDDEN);
	if (!m->to->plain)
		memset(sb->hash_seed, 0, sizeof(sb->hash_seed));
	sg_super_sign(sb);
}

/*
 * Stores a superblock in the image. If it differs from the superblock in use, its copy in the image
 * also differs, whether it is valid or not.
 */
static void put_super(struct sg_ck *c, u64 off, size_t len)
{
	struct sg_super *sb = (struct sg_super *)copy(c, off), by = c->vol.sb;
	bool same = !memcmp(sb, &by, sizeof(by)), valid = !sg_super_crc_wrong(sb);

	memset((u8 *)sb + len, 0, SG_PAGE - len);
	mark(c->image, &by);
	if (sb->magic == SG_MAGIC)
		mark(c->image, sb);
	else			/* foreign bytes */
		memset(sb, 0, sizeof(*sb));
	if (!valid || (!same && !memcmp(sb, &by, sizeof(by))))
		sb->crc ^= 1;
	put(c, off, sb, true);
}

/* Clears the bits of slots that no system has, because no system waits there. */
static void hide_lock(const struct sg_ck *c, struct sg_lock *lock)
{
	lock->waiters &= sg_slots_taken(&c->vol);
}

/* Stores the part of a record that a system inode uses; only users' files use the rest. */
static void hide_sys(const struct sg_ck *c, struct sg_inode *in)
{
	const struct sg_inode was = *in;

	*in = (struct sg_inode){ .lock = was.lock, .seq = was.seq, .mode = was.mode,
				 .size = was.size, .table = was.table, .blocks = was.blocks,
				 .genflags = was.genflags };
	hide_lock(c, &in->lock);
}

/*
 * Keeps an entry that lies only partly in the volume, because the checker does not read the part
 * outside.
 */
static void hide_bad(const struct sg_ck *c, struct sg_hot *h)
{
	u64 i, used = SG_BADS_USED(h->bads), pages = sg_bound(&c->vol) / SG_PAGE;

	for (i = 0; i < SG_BAD_MAX; i++)
		if (h->bad[i] && (i >= used || !SG_BAD_VALID(h->bad[i]) ||
				  SG_BAD_PAGE(h->bad[i]) >= pages))
			h->bad[i] = ~0ULL;
}

static void put_hot(struct sg_ck *c)
{
	struct sg_hot *h;
	unsigned int i;

	if (sg_is_lost(&c->vol, SG_HOT_OFF) || put_plain(c, SG_HOT_OFF, true))
		return;
	h = (struct sg_hot *)copy(c, SG_HOT_OFF);
	hide_lock(c, &h->rename_lock);
	hide_lock(c, &h->inode_lock);
	hide_lock(c, &h->slot_lock);
	hide_lock(c, &h->alone_lock);
	hide_lock(c, &h->grow_lock);
	hide_lock(c, &h->freeze_lock);
	hide_bad(c, h);
	memset(h->reserved, 0, sizeof(h->reserved));
	h->reserved2 = 0;
	for (i = 0; i < SG_SYS_COUNT; i++)
		hide_sys(c, &h->sys[i]);
	memset(h->doorbell, 0, sizeof(h->doorbell));
	memset((u8 *)h + sizeof(*h), 0, SG_PAGE - sizeof(*h));
	put(c, SG_HOT_OFF, h, true);
}

/*
 * Keeps the incarnation of a slot without a system, because a check compares it. Clears the other
 * fields of that slot.
 */
static void hide_slot(struct sg_slot *s)
{
	u32 state = SG_SLOT_STATE(s->state), inc = SG_SLOT_INC(s->state);

	if (state == SG_SLOT_FREE || state > SG_SLOT_RECOVERING) {
		*s = (struct sg_slot){
			.state = SG_SLOT_WORD(state == SG_SLOT_FREE ? SG_SLOT_FREE : 0xffu, inc) };
		return;
	}
	if (s->named != inc) {
		memset(s->machine, 0, sizeof(s->machine));
		memset(s->boot, 0, sizeof(s->boot));
		memset(s->name, 0, sizeof(s->name));
		memset(s->version, 0, sizeof(s->version));
		s->pid = 0;
		s->beat_ns = 0;
	}
	if (s->hosted != inc) {
		memset(s->host, 0, sizeof(s->host));
		memset(s->host_boot, 0, sizeof(s->host_boot));
	}
	s->knows = SG_SLOT_KNOWS(s->knows & SG_RO_COMPAT_KNOWN, inc);
}

static void put_slots(struct sg_ck *c, u64 off)
{
	struct sg_slot *s;
	unsigned int i;

	if (sg_is_lost(&c->vol, off) || put_plain(c, off, true))
		return;
	s = (struct sg_slot *)copy(c, off);
	for (i = 0; i < SG_PAGE / sizeof(*s); i++)
		hide_slot(&s[i]);
	put(c, off, s, true);
}

static void put_chunks(struct sg_ck *c, u64 off)
{
	u64 chunk = (off - c->vol.sb.chunk_off) / sizeof(struct sg_chunk);
	struct sg_chunk *of;
	unsigned int i;

	if (sg_is_lost(&c->vol, off) || put_plain(c, off, true))
		return;
	of = (struct sg_chunk *)copy(c, off);
	for (i = 0; i < SG_PAGE / sizeof(*of); i++) {
		if (chunk + i >= sg_chunks(&c->vol))
			memset(&of[i], 0, sizeof(of[i]));
		hide_lock(c, &of[i].lock);
		memset(of[i].reserved, 0, sizeof(of[i].reserved));
	}
	put(c, off, of, true);
}

/* Returns the word that a replay would store at this offset. The image already has that value. */
static u64 word_of(struct sg_ck *c, u64 off)
{
	struct ck_image *m = c->image;
	u64 page = off >> SG_PAGE_SHIFT, words[SG_PAGE / 8];

	if (off >= sg_size(&c->vol) || off & 7 || sg_area_record(&c->vol, off))
		return 0;
	if (off >= c->vol.sb.journal_off && off < c->vol.sb.ledger_off)	/* a counter of an area */
		return ck_get(c, off);
	if (!(test_bit(m->firm, page) || test_bit(m->loose, page)))
		return 0;
	m->err = m->err ?: m->to->get(m->to->ctx, off & ~(SG_PAGE - 1), words);
	if (m->err)
		return 0;
	return words[(off & (SG_PAGE - 1)) / 8];
}

static void put_area(struct sg_ck *c, u64 off)
{
	struct sg_area *a = sg_alloc(sizeof(*a));
	unsigned int n, log, i;

	if (!a) {
		c->no_memory = true;
		return;
	}
	memcpy(a, ck_page(c, off), sizeof(*a));
	n = sg_tx_words(a, &log);
	for (i = 0; i < n; i++)
		a->word[i].val = word_of(c, a->word[i].off);
	if (log)	/* contents of a file, which the image does not have */
		a->head = (a->head & ~(SG_AREA_LOGS(0xff) | 0xffff)) | n;
	memset(a->word + n, 0, (SG_AREA_WORDS - n) * sizeof(a->word[0]));
	if (n)
		a->crc = sg_area_crc(a->head, a->word, n);
	else if (sg_tx_words(a, &log) + log)
		a->crc ^= 1;
	put(c, off, a, true);
	sg_free(a);
}

static void put_journal(struct sg_ck *c)
{
	unsigned int slot, i;
	u64 off;

	for (slot = 0; slot < SG_SLOTS; slot++) {
		for (i = 0; i < c->vol.sb.areas; i++) {
			off = sg_area_off(&c->vol, slot, i);
			if (!sg_is_lost(&c->vol, off) && !put_plain(c, off, true))
				put_area(c, off);
		}
	}
}

/*
 * Stores all areas except the ledgers (check_deferred.c) and the journal, whose changes the image
 * already contains. No check reads hints, so they are zeroes unless names are kept.
 */
static void put_places(struct sg_ck *c)
{
	u64 end = SG_ALIGN_UP(sg_chunk_off(&c->vol, sg_chunks(&c->vol)), SG_PAGE), off;
	const struct sg_super *sb = &c->vol.sb;

	put_super(c, 0, sizeof(struct sg_super));
	put_super(c, sg_size(&c->vol) - SG_PAGE, sizeof(struct sg_last));
	put_hot(c);
	for (off = sb->slot_off; off < sb->journal_off; off += SG_PAGE)
		put_slots(c, off);
	for (off = sb->hint_off; off < sb->chunk_off; off += SG_PAGE)
		if (!sg_is_lost(&c->vol, off))
			put_plain(c, off, true);
	for (off = sb->chunk_off; off < end; off += SG_PAGE)
		put_chunks(c, off);
}

/* --- begin and end --------------------------------------------------------------------------- */

int ck_image_begin(struct sg_ck *c)
{
	struct ck_image *m;

	if (!c->opts->image)
		return 0;
	m = sg_alloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	c->image = m;
	m->to = c->opts->image;
	m->firm = sg_alloc(c->map_bytes);
	m->loose = sg_alloc(c->map_bytes);
	sg_random(m->key.sb.hash_seed, sizeof(m->key.sb.hash_seed));
	return m->firm && m->loose ? 0 : -ENOMEM;
}

int ck_image_finish(struct sg_ck *c)
{
	if (!c->image)
		return 0;
	put_places(c);
	put_journal(c);
	return c->image->err ?: c->no_memory ? -ENOMEM : 0;
}

void ck_image_free(struct sg_ck *c)
{
	if (!c->image)
		return;
	sg_free(c->image->firm);
	sg_free(c->image->loose);
	sg_free(c->image);
	c->image = NULL;
}
