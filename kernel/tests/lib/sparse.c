// SPDX-License-Identifier: Apache-2.0
/*
 * Sparse bytes: a hash table of pages. A zeroed page stays in the table; a truncated one is freed.
 */
#include "sparse.h"
#include "test.h"

static u64 home(const struct sparse *s, u64 page)
{
	return page * 0x9e3779b97f4a7c15ULL >> 20 & (s->cap - 1);
}

static struct sparse_page *find(const struct sparse *s, u64 page)
{
	u64 i;

	if (!s->cap)
		return NULL;
	for (i = home(s, page); s->e[i].page; i = (i + 1) & (s->cap - 1))
		if (s->e[i].page == page + 1)
			return &s->e[i];
	return NULL;
}

static void put(struct sparse *s, u64 page, u8 *bytes)
{
	u64 i = home(s, page);

	while (s->e[i].page)
		i = (i + 1) & (s->cap - 1);
	s->e[i] = (struct sparse_page){ page + 1, bytes };
	s->n++;
}

static void *must(void *p)
{
	CHECK(p);
	return p;
}

/* Rebuilds the table with @cap entries, and moves the pages from @from on by @by. */
static void rebuild(struct sparse *s, u64 cap, u64 from, s64 by)
{
	struct sparse old = *s;
	u64 i;

	s->e = must(calloc(cap, sizeof(*s->e)));
	s->cap = cap;
	s->n = 0;
	for (i = 0; i < old.cap; i++) {
		u64 page = old.e[i].page - 1;

		if (!old.e[i].page)
			continue;
		if (page < from)
			put(s, page, old.e[i].bytes);
		else if (by >= 0 || page >= from + (u64)-by)
			put(s, page + (u64)by, old.e[i].bytes);
		else
			free(old.e[i].bytes);
	}
	free(old.e);
}

void sparse_shift(struct sparse *s, u64 from, s64 by)
{
	if (s->cap)
		rebuild(s, s->cap, from, by);
}

void sparse_free(struct sparse *s)
{
	u64 i;

	for (i = 0; i < s->cap; i++)
		free(s->e[i].bytes);
	free(s->e);
	memset(s, 0, sizeof(*s));
}

const u8 *sparse_page(const struct sparse *s, u64 page)
{
	const struct sparse_page *p = find(s, page);

	return p ? p->bytes : NULL;
}

static u8 *page_for_write(struct sparse *s, u64 page)
{
	struct sparse_page *p = find(s, page);
	u8 *bytes;

	if (p)
		return p->bytes;
	if (2 * s->n >= s->cap)
		rebuild(s, s->cap ? 2 * s->cap : 8, ~0ULL, 0);
	bytes = must(calloc(1, SG_PAGE));
	put(s, page, bytes);
	return bytes;
}

void sparse_write(struct sparse *s, u64 pos, const void *buf, u64 len)
{
	while (len) {
		u64 in = pos & (SG_PAGE - 1), n = len < SG_PAGE - in ? len : SG_PAGE - in;

		memcpy(page_for_write(s, pos >> SG_PAGE_SHIFT) + in, buf, n);
		pos += n;
		buf = (const u8 *)buf + n;
		len -= n;
	}
}

void sparse_read(const struct sparse *s, u64 pos, void *buf, u64 len)
{
	while (len) {
		u64 in = pos & (SG_PAGE - 1), n = len < SG_PAGE - in ? len : SG_PAGE - in;
		const u8 *bytes = sparse_page(s, pos >> SG_PAGE_SHIFT);

		if (bytes)
			memcpy(buf, bytes + in, n);
		else
			memset(buf, 0, n);
		pos += n;
		buf = (u8 *)buf + n;
		len -= n;
	}
}

/*
 * Zeroes a range, and drops complete pages. Visits only existing pages, so the range may be huge.
 */
void sparse_zero(struct sparse *s, u64 pos, u64 len)
{
	u64 end = len > ~0ULL - pos ? ~0ULL : pos + len, i;
	bool dropped = false;

	for (i = 0; i < s->cap; i++) {
		u64 first = (s->e[i].page - 1) << SG_PAGE_SHIFT, lo, hi;

		if (!s->e[i].page || first >= end || first + SG_PAGE <= pos)
			continue;
		lo = pos > first ? pos - first : 0;
		hi = end - first < SG_PAGE ? end - first : SG_PAGE;
		memset(s->e[i].bytes + lo, 0, hi - lo);
		dropped |= hi - lo == SG_PAGE;
		if (hi - lo == SG_PAGE) {
			free(s->e[i].bytes);
			s->e[i].bytes = NULL;
		}
	}
	if (dropped) {	/* closes gaps in the table, which open addressing does not allow */
		struct sparse old = *s;

		s->e = must(calloc(old.cap, sizeof(*s->e)));
		s->n = 0;
		for (i = 0; i < old.cap; i++)
			if (old.e[i].bytes)
				put(s, old.e[i].page - 1, old.e[i].bytes);
		free(old.e);
	}
}
