// SPDX-License-Identifier: GPL-2.0
/*
 * Bad pages: memory that the hardware can no longer read. The hot page lists them, so all systems
 * see them immediately (docs/bad-memory.md). A system that finds a bad page adds it. All code that
 * reads a page through a reference, or allocates pages, checks the list first. While no page is
 * bad, the check is one load and one comparison.
 *
 * A system also keeps the bad pages that it has found itself in private memory. These remain even
 * if a member removes them from the list, because this kernel may have unmapped the page meanwhile.
 *
 * An entry is one word. It changes by compare-and-swap, without a lock, because a thread that finds
 * a bad page may hold any lock. An entry is valid as soon as it is stored. sg_hot.bads has the
 * number of entries to read, and a count of changes.
 */
#include "internal.h"

static u64 used(const struct sg_vol *vol)
{
	if (vol->hot_lost)
		return 0;
	return SG_MIN(SG_BADS_USED(sg_get(vol, SG_HOT(bads))), SG_BAD_MAX);
}

static u64 *entry(const struct sg_vol *vol, u64 i)
{
	return sg_at(vol, SG_HOT(bad) + i * 8);
}

/*
 * Returns the range of an entry, limited to existing pages, because any member may have stored the
 * entry (D10).
 */
static struct sg_run piece_of(const struct sg_vol *vol, u64 w)
{
	u64 page = SG_BAD_PAGE(w), end = sg_bound(vol) / SG_PAGE;

	if (!SG_BAD_VALID(w) || page >= end)
		return (struct sg_run){};
	return (struct sg_run){ .off = page, .pages = SG_MIN(SG_BAD_COUNT(w), end - page) };
}

static struct sg_run bad_pages_piece(const struct sg_vol *vol, u64 i)
{
	return piece_of(vol, sg_load64(entry(vol, i)));
}

/*
 * Returns the known ranges one by one: the entries of the list, then this system's own. False:
 * there are no more.
 */
static bool known(const struct sg_vol *vol, u64 i, struct sg_run *p)
{
	u64 n = used(vol), own = sg_load64(&vol->nown);

	if (i < n)
		*p = bad_pages_piece(vol, i);
	else if (i - n < own)
		*p = piece_of(vol, sg_load64(&vol->own_bad[i - n]));
	else
		return false;
	return true;
}

/* --- queries ---------------------------------------------------------------------------------- */

/* Returns how many of the @pages pages from @first on lie before the first bad one. */
static u64 before(struct sg_run bad, u64 first, u64 pages)
{
	if (!bad.pages || first >= bad.off + bad.pages || bad.off >= first + pages)
		return pages;
	return bad.off > first ? bad.off - first : 0;
}

u64 sg_good_pages(const struct sg_vol *vol, u64 off, u64 pages)
{
	u64 first = off / SG_PAGE, i;
	struct sg_run p;

	for (i = 0; pages && known(vol, i, &p); i++)
		pages = before(p, first, pages);
	return pages;
}

bool sg_is_bad(const struct sg_vol *vol, u64 off, u64 pages)
{
	return sg_good_pages(vol, off, pages) != pages;
}

bool sg_bad_entry(const struct sg_vol *vol, unsigned int i, u64 *page, u64 *pages)
{
	struct sg_run p;

	if (i >= used(vol))
		return false;
	p = bad_pages_piece(vol, i);
	*page = p.off;
	*pages = p.pages;
	return true;
}

u64 sg_bad_pages(const struct sg_vol *vol)
{
	u64 i, n = used(vol), sum = 0;

	for (i = 0; i < n; i++)
		sum += bad_pages_piece(vol, i).pages;
	return SG_MIN(sum, sg_bound(vol) / SG_PAGE);
}

/* Returns the offset of the word of the chunk table that has the bit of @page. */
static u64 used_word_off(const struct sg_vol *vol, u64 page)
{
	u64 off = sg_chunk_off(vol, page / SG_CHUNK_PAGES) + offsetof(struct sg_chunk, map);

	return off + page % SG_CHUNK_PAGES / 64 * 8;
}

static bool page_used(const struct sg_vol *vol, u64 page)
{
	u64 off = used_word_off(vol, page);

	return sg_is_lost(vol, off) || sg_get(vol, off) >> (page & 63) & 1;
}

/*
 * Returns a mask of the bits from @page on in its word of the chunk table, at most *n; sets *n to
 * their number.
 */
static u64 bits_from(u64 page, u64 *n)
{
	*n = SG_MIN(*n, 64 - (page & 63));
	return (*n == 64 ? ~0ULL : (1ULL << *n) - 1) << (page & 63);
}

void sg_bad_mask(const struct sg_vol *vol, u64 chunk, u64 map[SG_CHUNK_PAGES / 64])
{
	u64 first = chunk * SG_CHUNK_PAGES, i, page;
	struct sg_run p;

	for (i = 0; known(vol, i, &p); i++) {
		u64 end = SG_MIN(p.off + p.pages, first + SG_CHUNK_PAGES), n;

		for (page = SG_MAX(p.off, first); page < end; page += n) {
			n = end - page;
			map[(page - first) / 64] |= bits_from(page, &n);
		}
	}
}

bool sg_bad_listed(const void *base, u64 off)
{
	const struct sg_hot *hot = (const void *)((const u8 *)base + SG_HOT_OFF);
	u64 i, page = off / SG_PAGE, n = SG_MIN(SG_BADS_USED(sg_load64(&hot->bads)), SG_BAD_MAX);

	for (i = 0; i < n; i++) {
		u64 w = sg_load64(&hot->bad[i]);

		if (SG_BAD_VALID(w) && page - SG_BAD_PAGE(w) < SG_BAD_COUNT(w))
			return true;
	}
	return false;
}

/* Each entry of the list may claim the largest possible range, so this loop may be long. */
u64 sg_bad_free(const struct sg_vol *vol)
{
	u64 i, page, n = used(vol), k, sum = 0, turns = 0, table = ~0ULL;
	bool lost = false;

	for (i = 0; i < n; i++) {
		struct sg_run p = bad_pages_piece(vol, i);
		u64 end = SG_MIN(p.off + p.pages, sg_size(vol) / SG_PAGE);

		for (page = p.off; page < end; page += k) {
			u64 off = used_word_off(vol, page), bits;

			k = end - page;
			bits = bits_from(page, &k);
			/* sg_is_lost() searches the complete list, so it is called once per page */
			if (off / SG_PAGE != table) {
				table = off / SG_PAGE;
				lost = sg_is_lost(vol, off);
			}
			if (!lost)
				sum += sg_popcount64(bits & ~sg_get(vol, off));
			if (sg_turn(&turns))
				/* the thread is being killed, so no caller needs the sum */
				return sum;
		}
	}
	return sum;
}

/* Reports whether the pages are vital: in the areas at fixed places, or the last page. */
static bool is_vital(const struct sg_vol *vol, struct sg_run p)
{
	u64 last = sg_size(vol) / SG_PAGE - 1;

	return p.pages && (p.off < vol->sb.data_off / SG_PAGE ||
			   (p.off <= last && p.off + p.pages > last));
}

bool sg_bad_vital(const struct sg_vol *vol, u64 *off)
{
	u64 i, last = sg_size(vol) - SG_PAGE;
	struct sg_run p;

	for (i = 0; known(vol, i, &p); i++) {
		if (is_vital(vol, p)) {
			*off = p.off < vol->sb.data_off / SG_PAGE ? p.off * SG_PAGE : last;
			return true;
		}
	}
	return false;
}

const char *sg_page_role(const struct sg_vol *vol, u64 off)
{
	const struct sg_super *sb = &vol->sb;

	if (off / SG_PAGE == sg_size(vol) / SG_PAGE - 1)
		return "backup superblock";
	if (off >= sb->data_off)
		return page_used(vol, off / SG_PAGE) ? "in use" : "free";
	return off >= sb->chunk_off ? "chunk table" : off >= sb->hint_off ? "hints" :
	       off >= sb->ledger_off ? "ledgers" : off >= sb->journal_off ? "journal" :
	       off >= sb->slot_off ? "mount table" : off >= SG_HOT_OFF ? "hot page" : "superblock";
}

/* --- consequences ----------------------------------------------------------------------------- */

int sg_bad_refuse(struct sg_vol *vol)
{
	u64 off;

	if (!sg_bad_vital(vol, &off))
		return 0;
	sg_snprintf(vol->why, sizeof(vol->why),
		    "bad memory at offset 0x%llx (%s): restore the volume from a backup; if that memory is good again, run stargatectl bad VOLUME remove",
		    (unsigned long long)off, sg_page_role(vol, off));
	return -EIO;
}

/*
 * Stops this system, because no part of the volume can be found any more, and even this system's
 * slot may be unreadable. The system then behaves as if it had been fenced. It stores nothing, and
 * every call fails with EIO. A system that has no slot yet does not stop here: sg_bad_refuse()
 * makes its mount fail.
 */
static void stop(struct sg_vol *vol, u64 off)
{
	if ((vol->slot < 0 && !vol->read_only) || sg_cas64(&vol->shut_down, 0, 1))
		return;
	sg_log(vol->owner, SG_ERR,
	       "bad memory at offset 0x%llx (%s): the volume cannot be used any more; restore it from a backup",
	       (unsigned long long)off, sg_page_role(vol, off));
	sg_stop_state(vol);
	if (vol->on_death)
		vol->on_death(vol);
}

void sg_bad_look(struct sg_vol *vol)
{
	u32 changes;
	u64 off;

	if (vol->hot_lost) {
		stop(vol, SG_HOT_OFF);
		return;
	}
	changes = SG_BADS_CHANGES(sg_get(vol, SG_HOT(bads)));
	if (changes == vol->bads_seen)
		return;
	vol->bads_seen = changes;
	if (sg_bad_vital(vol, &off))
		stop(vol, off);
	if (vol->on_bad)
		vol->on_bad(vol);
}

/* --- the list --------------------------------------------------------------------------------- */

/*
 * Makes sg_hot.bads cover at least @n entries; with @news also counts a change. The result is
 * durable.
 */
static void bad_pages_count(struct sg_vol *vol, u64 n, bool news)
{
	u64 *word = sg_at(vol, SG_HOT(bads)), seen = sg_load64(word), want, old;

	for (;; seen = old) {
		want = SG_BADS(SG_MAX(SG_MIN(SG_BADS_USED(seen), SG_BAD_MAX), n),
			       SG_BADS_CHANGES(seen) + news);
		old = sg_cas64(word, seen, want);
		if (old == seen)
			break;
	}
	sg_wb(word, 8);
	sg_fence();
}

static bool bad_pages_change(struct sg_vol *vol, u64 i, u64 is, u64 to)
{
	u64 *word = entry(vol, i);

	if (sg_cas64(word, is, to) != is)
		return false;
	sg_wb(word, 8);
	sg_fence();
	return true;
}

/*
 * Extends an entry that ends right before these pages. This keeps the list short, because memory
 * that fails is often found page by page.
 */
static bool extend(struct sg_vol *vol, u64 page, u64 pages)
{
	u64 i, n = used(vol);

	for (i = 0; i < n; i++) {
		u64 w = sg_load64(entry(vol, i)), has = SG_BAD_COUNT(w);

		if (SG_BAD_VALID(w) && SG_BAD_PAGE(w) + has == page &&
		    has + pages <= SG_BAD_COUNT_MAX &&
		    bad_pages_change(vol, i, w, SG_BAD(SG_BAD_PAGE(w), has + pages)))
			return true;
	}
	return false;
}

static int note(struct sg_vol *vol, u64 page, u64 pages)
{
	u64 i;

	if (extend(vol, page, pages))
		return 0;
	for (i = 0; i < SG_BAD_MAX; i++) {
		u64 w = sg_load64(entry(vol, i));

		if (SG_BAD_VALID(w))
			continue;
		/* sg_hot.bads covers the entry before it is stored, so the store makes it valid */
		bad_pages_count(vol, i + 1, false);
		if (bad_pages_change(vol, i, w, SG_BAD(page, pages)))
			return 0;
	}
	return -ENOSPC;
}

/*
 * Chooses the word that sg_has_bad() loads. The page with the list may itself be bad, and any
 * member can change the list's word (D10).
 */
static void look_at(struct sg_vol *vol, bool own)
{
	const u64 *word = own ? &vol->nown : sg_at(vol, SG_HOT(bads));

	*(const u64 *volatile *)&vol->bads = word;
}

void sg_bad_watch(struct sg_vol *vol)
{
	bool own = false;
	u64 i;

	for (i = 0; i < vol->nown; i++)
		own |= vol->own_bad[i] != 0;
	look_at(vol, own);
}

/*
 * Adds a range to those that this system has found itself. nown never shrinks; forget_own() says
 * why.
 */
static void add_own(struct sg_vol *vol, u64 w)
{
	u64 i = 0;

	while (i < vol->nown && vol->own_bad[i])
		i++;
	if (i == SG_BAD_MAX)
		return;
	sg_store64(&vol->own_bad[i], w);
	sg_release_fence();
	if (i == vol->nown)
		sg_store64(&vol->nown, i + 1);
}

/*
 * Adds the range to this system's private memory, independent of the list. Returns true if the
 * range is new to this system.
 */
static bool remember(struct sg_vol *vol, u64 page, u64 pages)
{
	struct sg_run p;
	bool found = false;
	u64 i;

	sg_spin_lock(&vol->spin);
	for (i = 0; i < vol->nown && !found; i++) {
		p = piece_of(vol, vol->own_bad[i]);
		found = page >= p.off && page + pages <= p.off + p.pages;
	}
	if (!found)
		add_own(vol, SG_BAD(page, SG_MIN(pages, (u64)SG_BAD_COUNT_MAX)));
	vol->hot_lost |= page <= 1 && page + pages > 1;
	sg_bad_watch(vol);
	sg_spin_unlock(&vol->spin);
	return !found;
}

/*
 * Removes all own ranges that touch these pages; other pages of these ranges are still on the list.
 * A reader may have just loaded the address of nown, and must not read 0 there while the list has
 * entries. So nown does not change, and the next range reuses the removed one's place.
 */
static void forget_own(struct sg_vol *vol, u64 first, u64 end)
{
	u64 i;

	sg_spin_lock(&vol->spin);
	for (i = 0; i < vol->nown; i++) {
		struct sg_run p = piece_of(vol, vol->own_bad[i]);

		if (p.off < end && first < p.off + p.pages)
			sg_store64(&vol->own_bad[i], 0);
	}
	vol->hot_lost &= !(first <= 1 && end > 1);
	sg_bad_watch(vol);
	sg_spin_unlock(&vol->spin);
}

static int pages_of(const struct sg_vol *vol, u64 off, u64 bytes, u64 *first, u64 *end)
{
	*first = off / SG_PAGE;
	*end = (off + bytes + SG_PAGE - 1) / SG_PAGE;
	if (!bytes || !sg_inside(vol, off, bytes))
		return -EINVAL;
	if (vol->read_only && vol->slot < 0)
		return -EROFS;
	/* the bad page may be the one with this slot, so the slot's state is not loaded */
	return sg_load64(&vol->shut_down) ? -EIO : 0;
}

/* Returns the number of pages from @page on that the list does not have. */
static u64 unlisted(const struct sg_vol *vol, u64 page, u64 pages)
{
	u64 i, n = used(vol);

	for (i = 0; i < n && pages; i++)
		pages = before(bad_pages_piece(vol, i), page, pages);
	return SG_MIN(pages, (u64)SG_BAD_COUNT_MAX);
}

int sg_bad_add(struct sg_vol *vol, u64 off, u64 bytes)
{
	u64 page, end, n, at;
	int err = pages_of(vol, off, bytes, &page, &end), added = 0;
	bool news = err != -EINVAL && remember(vol, page, end - page);

	if (!err && vol->hot_lost) {	/* other systems find this bad page themselves */
		sg_bad_look(vol);
		return news;
	}
	while (!err && page < end) {
		n = unlisted(vol, page, end - page);
		if (n) {
			err = note(vol, page, n);
			added += !err;
		}
		page += n ? n : 1;
	}
	if (added || news)
		sg_log(vol->owner, SG_WARN, "bad memory at offset 0x%llx, %llu bytes (%s)",
		       (unsigned long long)off, (unsigned long long)bytes, sg_page_role(vol, off));
	if (added) {
		bad_pages_count(vol, 0, true);
		sg_bad_look(vol);
	/* the list has no entry, because it is full or this system may not change it */
	} else if (news) {
		if (sg_bad_vital(vol, &at))
			stop(vol, at);
		if (vol->on_bad)
			vol->on_bad(vol);
	}
	if (err == -ENOSPC)
		sg_log(vol->owner, SG_ERR,
		       "bad memory at offset 0x%llx cannot be listed: the list is full (%u ranges)",
		       (unsigned long long)off, SG_BAD_MAX);
	return err ?: added > 0;
}

/* attempts to change an entry; only a hostile member makes more necessary */
#define FORGET_TURNS	16

/*
 * Removes [first, end) from an entry: its pages before and behind that range stay listed. Returns
 * -EAGAIN if another system changes the entry all the time.
 */
static int forget_in(struct sg_vol *vol, u64 i, u64 first, u64 end)
{
	unsigned int turn;

	for (turn = 0; turn < FORGET_TURNS; turn++) {
		u64 w = sg_load64(entry(vol, i)), page = SG_BAD_PAGE(w);
		u64 stop = page + SG_BAD_COUNT(w);
		u64 left = page < first ? SG_BAD(page, first - page) : 0;
		int err;

		if (!SG_BAD_VALID(w) || page >= end || stop <= first)
			return 0;
		if (stop > end) {
			err = note(vol, end, stop - end);
			if (err)
				return err;
		}
		if (bad_pages_change(vol, i, w, left))
			return 1;
	}
	return -EAGAIN;
}

int sg_bad_remove(struct sg_vol *vol, u64 off, u64 bytes)
{
	u64 first, end, i, n = used(vol);
	int err = pages_of(vol, off, bytes, &first, &end), removed = 0;

	if (!err)
		forget_own(vol, first, end);
	for (i = 0; i < n && !err; i++) {
		int ret = forget_in(vol, i, first, end);

		removed |= ret > 0;
		err = SG_MIN(ret, 0);
	}
	if (removed) {
		bad_pages_count(vol, 0, true);
		sg_bad_look(vol);
	}
	return err ?: removed;
}
