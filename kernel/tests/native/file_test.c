// SPDX-License-Identifier: Apache-2.0
/*
 * File data compared with a simple model: writes, reads, sizes, holes, inserted and collapsed
 * ranges, full volumes.
 */
#include "data_util.h"

/* --- the model: a few windows of a sparse file; everything else is a hole -------------------- */

#define WINDOW	(6 * MIB)
static const u64 window[] = { 0, GIB - 2 * MIB, SG_FILE_MAX - WINDOW };
#define WINDOWS (sizeof(window) / sizeof(window[0]))

struct model {
	u64 size;
	u8 *bytes[WINDOWS];
};

static void model_new(struct model *m)
{
	u64 i;

	m->size = 0;
	for (i = 0; i < WINDOWS; i++)
		m->bytes[i] = calloc(1, WINDOW);
}

static void model_end(struct model *m)
{
	u64 i;

	for (i = 0; i < WINDOWS; i++)
		free(m->bytes[i]);
}

static void model_zero(struct model *m, u64 pos, u64 end)
{
	u64 i;

	for (i = 0; i < WINDOWS; i++) {
		u64 a = SG_MAX(pos, window[i]), b = SG_MIN(end, window[i] + WINDOW);

		if (a < b)
			memset(m->bytes[i] + (a - window[i]), 0, b - a);
	}
}

/* Chooses a position and a length inside one window, often at borders of pages and chunks. */
static u64 some_range(unsigned int *w, u64 *len, u64 max)
{
	u64 in = rnd(WINDOW), align = rnd(4);

	*w = (unsigned int)(rnd(4) ? 0 : rnd(WINDOWS));
	*len = 1 + rnd(rnd(3) ? SG_MIN(max, 9000u) : max);
	if (align == 1)
		in &= ~(SG_PAGE - 1);
	if (align == 2)
		in = in / SG_CHUNK * SG_CHUNK;
	if (!rnd(3))
		*len = SG_ALIGN_UP(*len, SG_PAGE);
	if (align == 2 && !rnd(3))
		*len = SG_CHUNK;
	*len = SG_MIN(*len, WINDOW - in);
	return window[*w] + in;
}

static u8 buf[WINDOW + SG_PAGE], got[WINDOW];

static void compare(struct sg_vol *vol, const struct sg_iref *f, const struct model *m,
		    unsigned int w, u64 pos, u64 len)
{
	s64 n = sg_read(vol, f, pos, got, len);
	u64 expect = pos < m->size ? SG_MIN(len, m->size - pos) : 0;

	CHECK(n == (s64)expect);
	CHECK(!memcmp(got, m->bytes[w] + (pos - window[w]), expect));
}

static void compare_all(struct sg_vol *vol, const struct sg_iref *f, const struct model *m)
{
	unsigned int w;

	CHECK(sg_iget(vol, f, size) == m->size);
	for (w = 0; w < WINDOWS; w++)
		compare(vol, f, m, w, window[w], WINDOW);
}

/* Checks that every non-zero byte is in a data range, and that both searches agree. */
static void compare_seek(struct sg_vol *vol, const struct sg_iref *f, const struct model *m,
			 u64 pos)
{
	s64 data = sg_seek(vol, f, pos, false), hole = sg_seek(vol, f, pos, true);
	u64 end, w, i;

	if (pos >= m->size) {
		CHECK(data == -ENXIO && hole == -ENXIO);
		return;
	}
	CHECK(hole >= (s64)pos && hole <= (s64)m->size);
	CHECK(data == -ENXIO || (data >= (s64)pos && data < (s64)m->size));
	CHECK((data == (s64)pos) != (hole == (s64)pos));
	end = data < 0 ? m->size : (u64)data;
	for (w = 0; w < WINDOWS; w++)
		for (i = SG_MAX(pos, window[w]); i < SG_MIN(end, window[w] + WINDOW); i++)
			if (m->bytes[w][i - window[w]])
				test_fail(__FILE__, __LINE__, "a hole has a byte that is not zero");
}

static s64 now = 1000;

static void one_step(struct sg_vol *vol, const struct sg_iref *f, struct model *m)
{
	u64 len, pos, i, seq = sg_seq(vol, f);
	unsigned int w, op = (unsigned int)rnd(16);
	s64 n;

	now++;
	switch (op) {
	case 0 ... 5:
		pos = some_range(&w, &len, 3 * MIB);
		for (i = 0; i < len; i += 8)
			*(u64 *)(buf + i) = rng_next(&rng);
		n = sg_write(vol, f, pos, buf, len, now);
		CHECK(n == (s64)len);
		memcpy(m->bytes[w] + (pos - window[w]), buf, len);
		m->size = SG_MAX(m->size, pos + len);
		CHECK((s64)sg_iget(vol, f, mtime) == now && sg_seq(vol, f) != seq);
		break;
	case 6 ... 8:
		pos = some_range(&w, &len, WINDOW);
		compare(vol, f, m, w, pos, len);
		break;
	case 9 ... 10:
		pos = some_range(&w, &len, WINDOW);
		CHECK(!sg_resize(vol, f, pos, now));
		model_zero(m, pos, SG_FILE_MAX);
		m->size = pos;
		CHECK((s64)sg_iget(vol, f, mtime) == now && sg_seq(vol, f) != seq);
		break;
	case 11 ... 13:
		pos = some_range(&w, &len, 4 * MIB);
		if (!rnd(20))
			len = SG_FILE_MAX;
		CHECK(!sg_punch(vol, f, pos, len, now));
		model_zero(m, pos, pos + SG_MIN(len, SG_FILE_MAX - pos));
		CHECK((s64)sg_iget(vol, f, mtime) == now && sg_seq(vol, f) != seq);
		break;
	case 14:
		pos = some_range(&w, &len, 3 * MIB);
		CHECK(!sg_allocate(vol, f, pos >> SG_PAGE_SHIFT, sg_pages_of(len)));
		CHECK(sg_iget(vol, f, size) == m->size);
		break;
	case 15:
		pos = some_range(&w, &len, 1);
		compare_seek(vol, f, m, pos);
		break;
	}
	CHECK(sg_iget(vol, f, size) == m->size);
}

static void test_random(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	struct sg_iref f[2] = { file_new(vol), file_new(vol) };
	unsigned int i, k, n = (unsigned int)test_amount(200, 2000, 50000);
	struct account acc;
	struct model m[2];
	u64 larges = 0;

	model_new(&m[0]);
	model_new(&m[1]);
	for (i = 0; i < n; i++) {
		k = (unsigned int)rnd(2);
		one_step(vol, &f[k], &m[k]);
		if (i % 50 == 0) {
			compare_all(vol, &f[k], &m[k]);
			account_volume(vol, f, 2, &acc);
			larges += acc.large;
		}
	}
	CHECK(larges);
	for (k = 0; k < 2; k++) {
		compare_all(vol, &f[k], &m[k]);
		CHECK(!sg_flush(vol, &f[k], 0, ~0ULL));
		model_end(&m[k]);
	}
	account_volume(vol, f, 2, NULL);
	file_end(vol, &f[0]);
	CHECK(!sg_resize(vol, &f[1], 0, 5));
	CHECK(!sg_iget(vol, &f[1], table) && !sg_iget(vol, &f[1], blocks));
	file_end(vol, &f[1]);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok random\n");
}

/* --- limits ---------------------------------------------------------------------------------- */

static void test_limits(void)
{
	struct sg_vol *vol = vol_new(16 * MIB);
	struct sg_iref f = file_new(vol);
	struct sg_write w;
	u64 seq, changes;

	CHECK(sg_write(vol, &f, SG_FILE_MAX, "x", 1, 1) == -EFBIG);
	CHECK(sg_write(vol, &f, SG_FILE_MAX - 1, "xy", 2, 1) == 1);
	CHECK(sg_iget(vol, &f, size) == SG_FILE_MAX);
	CHECK(sg_resize(vol, &f, SG_FILE_MAX + 1, 1) == -EFBIG);
	CHECK(sg_allocate(vol, &f, SG_FILE_PAGES, 1) == -EFBIG);
	CHECK(sg_allocate(vol, &f, 1, ~0ULL) == -EFBIG);
	CHECK(sg_write_begin(vol, &f, 0, 0, 0, &w) == -EINVAL);
	CHECK(!sg_resize(vol, &f, 0, 1));
	CHECK(sg_seek(vol, &f, 0, true) == -ENXIO);
	CHECK(sg_read(vol, &f, 0, buf, 10) == 0);
	/* a small file has no table */
	CHECK(sg_write(vol, &f, 0, buf, 4096, 1) == 4096);
	CHECK(sg_iget(vol, &f, blocks) == 1 && !sg_root(vol, &f));
	/* a write of no bytes frees its pages again */
	CHECK(!sg_write_begin(vol, &f, 8192, 4096, 0, &w) && w.fresh);
	CHECK(!sg_write_end(vol, &f, &w, 0, 7));
	CHECK(sg_iget(vol, &f, size) == 4096 && sg_iget(vol, &f, blocks) == 1);
	/* after a partial write the file ends behind its bytes, and has no stale byte */
	dirty_free_pages(vol);
	CHECK(!sg_write_begin(vol, &f, 8192 + 5, 12000, 0, &w) && w.fresh && w.len == 12000);
	memset(vol->base + w.off, 1, 100);
	CHECK(!sg_write_end(vol, &f, &w, 100, 7));
	CHECK(sg_iget(vol, &f, size) == 8192 + 105 && sg_iget(vol, &f, mtime) == 7);
	CHECK(!sg_resize(vol, &f, 20000, 8));
	CHECK(sg_read(vol, &f, 4096, got, 20000) == 20000 - 4096);
	memset(buf, 0, 20000);
	memset(buf + 4096 + 5, 1, 100);
	CHECK(!memcmp(got, buf, 20000 - 4096));
	/* a write that keeps the size */
	seq = sg_seq(vol, &f);
	CHECK(!sg_write_begin(vol, &f, 5 * MIB, 4096, SG_WRITE_KEEP_SIZE, &w) && w.fresh);
	memset(vol->base + w.off, 0, w.len);
	CHECK(!sg_write_end(vol, &f, &w, w.len, 0));
	CHECK(sg_iget(vol, &f, size) == 20000 && sg_iget(vol, &f, mtime) == 8);
	CHECK(sg_seq(vol, &f) != seq);
	/*
	 * a write in place, inside the size, needs no transaction; with equal times it stores only
	 * the data
	 */
	seq = sg_counters(vol).commits;
	CHECK(!sg_write_begin(vol, &f, 4095, 1, 0, &w) && !w.fresh && !w.locked && w.len == 1);
	CHECK(!sg_write_end(vol, &f, &w, 1, 8));
	CHECK(sg_write(vol, &f, 10000, buf, 10000, 9) == 10000);
	/* equal times are not stored again */
	changes = sg_seq(vol, &f);
	CHECK_OK(sg_touch(vol, &f, SG_SET_MTIME | SG_SET_CTIME, 9, 9, 0));
	CHECK(sg_seq(vol, &f) == changes && sg_iget(vol, &f, mtime) == 9);
	CHECK_OK(sg_touch(vol, &f, SG_SET_MTIME | SG_SET_CTIME, 9, 10, 0));
	CHECK(sg_seq(vol, &f) != changes && sg_iget(vol, &f, ctime) == 10);
	/* fills the rest of an allocated page */
	CHECK(sg_write(vol, &f, 20000, buf, 480, 9) == 480);
	CHECK(sg_counters(vol).commits == seq);
	CHECK(sg_iget(vol, &f, size) == 20480);
	file_end(vol, &f);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok limits\n");
}

static bool reads_zero(struct sg_vol *vol, const struct sg_iref *f, u64 pos, u64 len)
{
	u64 i;

	CHECK(len <= WINDOW && sg_read(vol, f, pos, got, len) == (s64)len);
	for (i = 0; i < len; i++)
		if (got[i])
			return false;
	return true;
}

/* A write into allocated pages behind the size stops halfway. */
static void test_unfinished(struct sg_vol *vol, const struct sg_iref *f)
{
	static const struct {
		u64 size, pos, len, done;
	} t[] = {
		{ 0, 0, 50000, 0 }, { 0, 0, 50000, 10 }, { 4096, 4096, 50000, 0 },
		{ 4096, 9000, 50000, 4096 }, { 100, 70000, 3000000, 0 }, { 100, 5 * MIB, 9000, 0 },
		{ 100, 5 * MIB, 9000, 100 }, { SG_CHUNK, SG_CHUNK, 3 * MIB, 0 },
	};
	struct sg_write w;
	unsigned int i;
	u64 size;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		CHECK_OK(sg_resize(vol, f, 0, 1));
		CHECK_OK(sg_allocate(vol, f, 0, 6 * MIB >> SG_PAGE_SHIFT));
		CHECK_OK(sg_resize(vol, f, t[i].size, 1));
		CHECK_OK(sg_allocate(vol, f, 0, 6 * MIB >> SG_PAGE_SHIFT));
		CHECK_OK(sg_write_begin(vol, f, t[i].pos, t[i].len, 0, &w));
		CHECK(!w.fresh && w.locked);
		memset(vol->base + w.off, 0xdd, w.len);
		CHECK_OK(sg_write_end(vol, f, &w, t[i].done, 1));
		size = t[i].done ? t[i].pos + t[i].done : sg_iget(vol, f, size);
		CHECK(sg_iget(vol, f, size) == size && size <= t[i].pos + t[i].done);
		CHECK_OK(sg_resize(vol, f, 6 * MIB, 1));
		CHECK(reads_zero(vol, f, size, 6 * MIB - size));
	}
}

/* Bytes that a mapping stored behind the end stay invisible when the file grows. */
static void test_tail(void)
{
	struct sg_vol *vol = vol_new(16 * MIB);
	struct sg_iref f = file_new(vol);
	struct sg_run run;
	int way;

	for (way = 0; way < 4; way++) {
		CHECK(!sg_resize(vol, &f, 0, 1));
		memset(buf, 0xaa, 4096);
		CHECK(sg_write(vol, &f, 0, buf, 100, 1) == 100);
		CHECK(!sg_walk(vol, &f, 0, 1, &run));
		memset(vol->base + run.off + 100, 0x55, SG_PAGE - 100);
		if (way == 0)
			CHECK(!sg_resize(vol, &f, 5000, 1));
		if (way == 1)
			CHECK(sg_write(vol, &f, 200, buf, 1, 1) == 1);
		if (way == 2)
			CHECK(sg_write(vol, &f, 9000, buf, 1, 1) == 1);
		if (way == 3)
			CHECK(!sg_resize(vol, &f, 150, 1) && !sg_resize(vol, &f, 50, 1) &&
			      !sg_resize(vol, &f, 3000, 1));
		memset(buf, 0, 4096);
		CHECK(sg_read(vol, &f, 100, got, 4096) > 0);
		CHECK(!memcmp(got, buf, way == 1 ? 100 : way == 3 ? 2900 : 3996));
	}
	test_unfinished(vol, &f);
	file_end(vol, &f);
	vol_end(vol);
	printf("ok tail\n");
}

/* Pages allocated behind the end are freed when the file is truncated to the size that it has. */
static void test_same_size(void)
{
	static const u64 sizes[] = { 0, 100, 4096, 10000 };
	struct sg_vol *vol = vol_new(64 * MIB);
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
		struct sg_iref f = file_new(vol);
		u64 blocks, first = sg_pages_of(sizes[i]);
		struct sg_run run;

		memset(buf, 0x77, sizes[i]);
		CHECK(sg_write(vol, &f, 0, buf, sizes[i], 1) == (s64)sizes[i]);
		blocks = sg_iget(vol, &f, blocks);
		/* no pages behind the size: nothing to truncate */
		CHECK(!sg_resize(vol, &f, sizes[i], 2));
		CHECK(sg_iget(vol, &f, blocks) == blocks && sg_iget(vol, &f, mtime) == 2);
		CHECK(!sg_allocate(vol, &f, first, 3 * SG_CHUNK_PAGES));
		CHECK(!sg_allocate(vol, &f, 1ULL << 30, 1));
		CHECK(sg_iget(vol, &f, blocks) > blocks + 3 * SG_CHUNK_PAGES);
		CHECK(!sg_resize(vol, &f, sizes[i], 3));
		CHECK(!sg_walk(vol, &f, first, SG_TABLE_PAGES - first, &run));
		CHECK(!run.off && sg_iget(vol, &f, size) == sizes[i]);
		CHECK(sg_iget(vol, &f, blocks) <= blocks + 5);	/* new tables */
		CHECK(sg_iget(vol, &f, mtime) == 3 && sg_iget(vol, &f, ctime) == 3);
		CHECK(sg_read(vol, &f, 0, got, sizes[i]) == (s64)sizes[i]);
		CHECK(!memcmp(got, buf, sizes[i]));
		file_end(vol, &f);
	}
	vol_end(vol);
	printf("ok same size\n");
}

/* Another system has appended bytes since the caller read the size. These bytes remain. */
static void test_extend(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	struct sg_iref f = file_new(vol);

	CHECK(sg_write(vol, &f, 3 * SG_PAGE, "theirs", 6, 1) == 6);
	CHECK(!sg_extend(vol, &f, 2 * SG_PAGE, 7));
	CHECK(sg_iget(vol, &f, size) == 3 * SG_PAGE + 6 && sg_iget(vol, &f, mtime) == 7);
	CHECK(sg_read(vol, &f, 3 * SG_PAGE, got, 6) == 6 && !memcmp(got, "theirs", 6));
	CHECK(!sg_extend(vol, &f, 5 * SG_PAGE, 8));
	CHECK(sg_iget(vol, &f, size) == 5 * SG_PAGE && sg_iget(vol, &f, mtime) == 8);
	CHECK(sg_extend(vol, &f, SG_FILE_MAX + 1, 9) == -EFBIG);
	file_end(vol, &f);
	vol_end(vol);
	printf("ok extend\n");
}

/* Two files grow alternately by small amounts. Finally both have large leaves. */
static void test_small_pieces(void)
{
	static const u64 pieces[] = { 4096, 1000, 65536, 131072 };
	struct sg_vol *vol = vol_new(64 * MIB);
	struct sg_iref f[2];
	struct account acc;
	unsigned int i, k;
	u64 pos, word;

	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		f[0] = file_new(vol);
		f[1] = file_new(vol);
		for (pos = 0; pos < 8 * MIB; pos += pieces[i])
			for (k = 0; k < 2; k++) {
				for (word = 0; word < pieces[i]; word += 8)
					*(u64 *)(buf + word) = pos + word + k;
				CHECK(sg_write(vol, &f[k], pos, buf, pieces[i], 1) ==
				      (s64)pieces[i]);
			}
		account_volume(vol, f, 2, &acc);
		/* with small pieces, the first 4 MiB of each file need not be large leaves */
		CHECK(acc.large >= 4 && acc.tables <= 6 + 2 * (pieces[i] == 1000));
		for (k = 0; k < 2; k++)
			for (pos = 0; pos < 8 * MIB; pos += pieces[i]) {
				CHECK(sg_read(vol, &f[k], pos, &word, 8) == 8 && word == pos + k);
				pos += pieces[i] * rnd(20);
			}
		file_end(vol, &f[0]);
		file_end(vol, &f[1]);
		account_volume(vol, NULL, 0, NULL);
	}
	vol_end(vol);
	printf("ok small pieces\n");
}

/* --- a full volume --------------------------------------------------------------------------- */

static u64 fill(struct sg_vol *vol, const struct sg_iref *f, u64 pos, u64 step)
{
	u64 done = 0;
	s64 n;

	memset(buf, 0x77, step);
	while ((n = sg_write(vol, f, pos + done, buf, step, 3)) > 0)
		done += (u64)n;
	CHECK(n == -ENOSPC);
	return done;
}

static void test_full(void)
{
	static const u64 steps[] = { 4096, 100, 3 * MIB, 70000 };
	struct sg_vol *vol = vol_new(16 * MIB);
	struct sg_iref f[2] = { file_new(vol), file_new(vol) };
	struct sg_statfs st;
	unsigned int turn, k;
	u64 done, first = 0;

	for (turn = 0; turn < 12; turn++) {
		done = fill(vol, &f[0], 0, steps[turn % 4]);
		CHECK(done == sg_iget(vol, &f[0], size));
		first = SG_MAX(first, done);
		CHECK(done + 200 * SG_PAGE > first);	/* no round loses space */
		account_volume(vol, f, 2, NULL);
		CHECK(!sg_statfs(vol, &st));
		CHECK(st.free_pages < 4);
		CHECK(sg_allocate(vol, &f[1], 0, 100) == -ENOSPC);
		/* existing data can be overwritten, truncated, punched */
		CHECK(sg_write(vol, &f[0], 5000, buf, 100000, 4) == 100000);
		for (k = 0; k < 50; k++)
			CHECK(!sg_punch(vol, &f[0], (u64)k * 200000 + 1, 5000 + k, 4));
		CHECK(!sg_resize(vol, &f[0], done - done / 7, 4));
		CHECK(!sg_resize(vol, &f[0], done - done / 3, 4));
		account_volume(vol, f, 2, NULL);
		/* the truncated pages can be used immediately */
		CHECK(sg_write(vol, &f[1], 0, buf, done / 8, 4) == (s64)(done / 8));
		fill(vol, &f[1], done / 8, 40960);
		CHECK(!sg_resize(vol, &f[turn & 1], 0, 5));
		CHECK(!sg_resize(vol, &f[1], 0, 5));
		CHECK(!sg_resize(vol, &f[0], 0, 5));
		account_volume(vol, f, 2, NULL);
	}
	file_end(vol, &f[0]);
	file_end(vol, &f[1]);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok full\n");
}

/*
 * No free page remains to split a large leaf. The leaf remains, and its punched bytes read as
 * zeroes.
 */
static void test_full_split(void)
{
	struct sg_vol *vol = vol_new(32 * MIB);
	struct sg_iref f[2] = { file_new(vol), file_new(vol) };
	struct account acc;
	struct sg_statfs st;
	u8 *zero = calloc(1, SG_CHUNK);

	memset(buf, 0x99, 4 * MIB);
	CHECK(sg_write(vol, &f[0], 0, buf, 4 * MIB, 1) == 4 * MIB);
	account_volume(vol, f, 2, &acc);
	CHECK(acc.large == 2);
	fill(vol, &f[1], 0, 4096);
	while (!sg_statfs(vol, &st) && st.free_pages) {	/* until no page is free */
		struct sg_tx *tx = sg_tx_begin(vol);
		u64 off, got, page = sg_iget(vol, &f[1], blocks);

		CHECK(!sg_take_run(tx, SG_USE_DATA, 0, 1, &off, &got));
		if (sg_table_add(tx, &f[1], page, off, 1))
			sg_tx_abort(tx);
		else
			CHECK(!sg_tx_commit(tx));
		if (page + 1 != sg_iget(vol, &f[1], blocks))
			break;
	}
	CHECK(!sg_punch(vol, &f[0], 8192, 40960, 1));
	CHECK(!sg_punch(vol, &f[0], SG_CHUNK - 40960, 81920, 1));
	CHECK(!sg_resize(vol, &f[0], 3 * MIB + 5, 1));
	CHECK(!sg_is_cutting(vol, &f[0]));
	account_volume(vol, f, 2, &acc);
	memset(buf, 0x99, 4 * MIB);
	memset(buf + 8192, 0, 40960);
	memset(buf + SG_CHUNK - 40960, 0, 81920);
	CHECK(sg_read(vol, &f[0], 0, got, WINDOW) == 3 * MIB + 5);
	CHECK(!memcmp(got, buf, 3 * MIB + 5));
	/* the file grows again over pages that could not be freed */
	CHECK(!sg_resize(vol, &f[0], 4 * MIB, 1));
	CHECK(sg_read(vol, &f[0], 3 * MIB + 5, got, WINDOW) == MIB - 5);
	CHECK(!memcmp(got, zero, MIB - 5));
	free(zero);
	file_end(vol, &f[0]);
	file_end(vol, &f[1]);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok full split\n");
}

/* --- an unfinished truncation ---------------------------------------------------------------- */

/*
 * Makes the state of another system's unfinished truncation: the new size, and no page freed yet.
 */
static void cutting(struct sg_vol *vol, const struct sg_iref *f, u64 size)
{
	struct sg_tx *tx;
	u64 flags;

	CHECK_OK(sg_resize(vol, f, 0, 1));
	memset(buf, 0xcc, 3 * MIB);
	CHECK(sg_write(vol, f, 0, buf, 3 * MIB, 1) == 3 * MIB);
	tx = sg_tx_begin(vol);
	flags = sg_tx_iget(tx, f, genflags);
	sg_tx_inode(tx, f);
	sg_tx_iset(tx, f, size, size);
	sg_tx_iset(tx, f, genflags, flags | (u64)SG_FL_CUTTING << 32);
	sg_defer_inode(tx, f);
	CHECK_OK(sg_tx_commit(tx));
	CHECK(sg_is_cutting(vol, f));
}

static void test_cutting(void)
{
	struct sg_vol *vol = vol_new(32 * MIB);
	struct sg_iref f = file_new(vol);
	unsigned int way;
	u64 size;

	for (way = 0; way < 7; way++) {
		size = way & 1 ? 4096 * 3 : 5000;
		cutting(vol, &f, size);
		if (way == 0)
			CHECK_OK(sg_finish_cut(vol, &f));
		if (way == 1)
			CHECK(sg_write(vol, &f, 2 * MIB + 1, "x", 1, 1) == 1);
		if (way == 2)
			CHECK_OK(sg_allocate(vol, &f, 400, 5));
		if (way == 3)
			CHECK_OK(sg_resize(vol, &f, 100 * MIB, 1));
		if (way == 4)
			CHECK_OK(sg_resize(vol, &f, 4000, 1));
		if (way == 5)
			CHECK_OK(sg_insert(vol, &f, 0, 4096, 1));
		if (way == 6)
			CHECK_OK(sg_collapse(vol, &f, 0, 4096, 1));
		CHECK(!sg_is_cutting(vol, &f));
		account_volume(vol, &f, 1, NULL);
		size = sg_iget(vol, &f, size);
		if (way == 1) {
			CHECK(reads_zero(vol, &f, 4096 * 3, 2 * MIB + 1 - 4096 * 3));
		} else {
			CHECK_OK(sg_resize(vol, &f, 6 * MIB, 1));
			size = way == 3 ? 4096 * 3 : size;
			CHECK(reads_zero(vol, &f, size, 6 * MIB - size));
		}
	}
	file_end(vol, &f);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok cutting\n");
}

/* --- moving ---------------------------------------------------------------------------------- */

static void test_move(void)
{
	struct sg_vol *vol = vol_new(64 * MIB);
	struct sg_iref f = file_new(vol);
	unsigned int i, n = (unsigned int)test_amount(60, 500, 5000);
	u64 pos, len, size = 0, k, seq;
	u8 *model = calloc(1, 2 * WINDOW);
	struct account acc;

	CHECK(sg_collapse(vol, &f, 0, 4096, 1) == -EINVAL);
	CHECK(sg_insert(vol, &f, 0, 4096, 1) == -EINVAL);
	CHECK(sg_write(vol, &f, 0, buf, 10000, 1) == 10000);
	CHECK(sg_collapse(vol, &f, 1, 4096, 1) == -EINVAL);
	CHECK(sg_collapse(vol, &f, 0, 4095, 1) == -EINVAL);
	CHECK(sg_collapse(vol, &f, 0, 0, 1) == -EINVAL);
	CHECK(sg_collapse(vol, &f, 4096, 8192, 1) == -EINVAL);
	CHECK(sg_insert(vol, &f, 12288, 4096, 1) == -EINVAL);
	CHECK(sg_insert(vol, &f, 0, SG_FILE_MAX - 8192, 1) == -EFBIG);
	/* moves the pages as far as possible, and back */
	CHECK_OK(sg_insert(vol, &f, 4096, SG_FILE_MAX - 12288, 1));
	CHECK(sg_iget(vol, &f, size) == SG_FILE_MAX - 2288);
	CHECK(sg_seek(vol, &f, 4096, false) == (s64)(SG_FILE_MAX - 8192));
	CHECK_OK(sg_collapse(vol, &f, 4096, SG_FILE_MAX - 12288, 1));
	CHECK(sg_iget(vol, &f, size) == 10000);
	CHECK(sg_read(vol, &f, 0, got, WINDOW) == 10000 && !memcmp(got, buf, 10000));
	CHECK_OK(sg_resize(vol, &f, 0, 1));
	account_volume(vol, &f, 1, NULL);
	for (i = 0; i < n; i++) {
		pos = rnd(size + 1) & ~(SG_PAGE - 1);
		if (!rnd(3))
			pos &= ~(SG_CHUNK - 1);
		len = (1 + rnd(rnd(2) ? 4 : 700)) << SG_PAGE_SHIFT;
		if (!rnd(3))
			len = SG_CHUNK;
		seq = sg_seq(vol, &f);
		now++;
		if (size < MIB || !rnd(3)) {
			len = SG_MIN(len, WINDOW - pos) - rnd(4096);
			for (k = 0; k < len; k += 8)
				*(u64 *)(buf + k) = rng_next(&rng);
			CHECK(sg_write(vol, &f, pos, buf, len, now) == (s64)len);
			memcpy(model + pos, buf, len);
			size = SG_MAX(size, pos + len);
		} else if (rnd(2) && size + len <= WINDOW && pos < size) {
			CHECK_OK(sg_insert(vol, &f, pos, len, now));
			memmove(model + pos + len, model + pos, size - pos);
			memset(model + pos, 0, len);
			size += len;
			CHECK(sg_seq(vol, &f) != seq);
		} else if (pos + len < size) {
			CHECK_OK(sg_collapse(vol, &f, pos, len, now));
			memmove(model + pos, model + pos + len, size - pos - len);
			memset(model + size - len, 0, len);
			size -= len;
			CHECK(sg_seq(vol, &f) != seq);
		} else if (rnd(2)) {
			len = SG_MIN(len, WINDOW - pos);
			CHECK_OK(sg_punch(vol, &f, pos, len, now));
			memset(model + pos, 0, len);
		} else {
			size = rnd(size);
			CHECK_OK(sg_resize(vol, &f, size, now));
			memset(model + size, 0, 2 * WINDOW - size);
		}
		CHECK(sg_iget(vol, &f, size) == size);
		CHECK(sg_read(vol, &f, 0, got, WINDOW) == (s64)size && !memcmp(got, model, size));
		account_volume(vol, &f, 1, &acc);
	}
	/* no room for the second table: nothing changes */
	CHECK_OK(sg_resize(vol, &f, 0, 1));
	size = fill(vol, &f, 0, 4096);
	CHECK(sg_insert(vol, &f, 4096, 4096, 1) == -ENOSPC || sg_iget(vol, &f, size) > size);
	account_volume(vol, &f, 1, NULL);
	file_end(vol, &f);
	account_volume(vol, NULL, 0, NULL);
	free(model);
	vol_end(vol);
	printf("ok move\n");
}

/* Moves many tables: small leaves replace large leaves, and large leaves replace small ones. */
static void test_move_large(void)
{
	struct sg_vol *vol = vol_new(256 * MIB);
	struct sg_iref f = file_new(vol);
	u64 size = 100 * MIB, i, word, seen;
	struct account before, shifted, after;

	for (i = 0; i < size; i += SG_CHUNK) {
		for (word = 0; word < SG_CHUNK; word += 8)
			*(u64 *)(buf + word) = i + word + 1;
		CHECK(sg_write(vol, &f, i, buf, SG_CHUNK, 1) == (s64)SG_CHUNK);
	}
	account_volume(vol, &f, 1, &before);
	CHECK(before.large == 50 && before.tables == 1);
	CHECK_OK(sg_insert(vol, &f, 4096, 4096, 1));
	account_volume(vol, &f, 1, &shifted);
	CHECK(shifted.large == 0 && shifted.tables == 52 && shifted.leaves == before.leaves);
	for (i = 0; i < size + 4096; i += 8 * (1 + rnd(1000))) {
		CHECK(sg_read(vol, &f, i, &seen, 8) == 8);
		CHECK(seen == (i < 4096 ? i + 1 : i < 8192 ? 0 : i - 4095));
	}
	CHECK_OK(sg_collapse(vol, &f, 4096, 4096, 1));
	account_volume(vol, &f, 1, &after);
	/* the first 2 MiB are the exception: they consist of two runs */
	CHECK(after.large == 49 && after.tables == 2 && after.leaves == before.leaves);
	/* moves complete chunks: their large leaves stay large */
	CHECK_OK(sg_collapse(vol, &f, 10 * SG_CHUNK, 30 * SG_CHUNK, 1));
	account_volume(vol, &f, 1, &after);
	CHECK(after.large == 20 && after.tables == 1);
	CHECK(sg_read(vol, &f, 10 * SG_CHUNK, &seen, 8) == 8 && seen == 40 * SG_CHUNK + 1);
	file_end(vol, &f);
	account_volume(vol, NULL, 0, NULL);
	vol_end(vol);
	printf("ok move large\n");
}

/*
 * A request that exceeds the free space fails before it takes a page. Deferred frees count as free
 * space.
 */
static void test_too_much(void)
{
	struct sg_vol *vol = vol_new(16 * MIB);
	struct sg_iref f = file_new(vol);
	u64 before = sg_free_pages(vol), n;

	CHECK_EQ(sg_allocate(vol, &f, 0, 1ULL << 28), -ENOSPC);
	CHECK_EQ(sg_allocate(vol, &f, 5, before + 1), -ENOSPC);
	CHECK_EQ(sg_free_pages(vol), before);
	CHECK_OK(sg_allocate(vol, &f, 0, before / 2));
	n = sg_free_pages(vol);
	CHECK_EQ(sg_allocate(vol, &f, 0, before + 100), -ENOSPC);
	CHECK_EQ(sg_free_pages(vol), n);
	/* allocating existing pages needs no free page */
	CHECK_OK(sg_allocate(vol, &f, before / 2, n / 2));
	CHECK_OK(sg_allocate(vol, &f, 0, before / 2 + n / 2));
	file_end(vol, &f);
	vol_end(vol);
}

/* A size larger than SG_FILE_MAX is damage. If sg_seek() returned such a size, it would be negative
 * as s64, and the caller would take it for an error code. */
static void test_seek_size(void)
{
	static const u64 sizes[] = { -1ULL, -512ULL, -4095ULL, 1ULL << 63, SG_FILE_MAX + 1 };
	struct sg_vol *vol = vol_new(16 * MIB);
	struct sg_iref f = file_new(vol);
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(sizes); i++) {
		sg_store64(sg_at(vol, SG_IOFF(&f, size)), sizes[i]);
		CHECK(sg_seek(vol, &f, 0, true) == -EUCLEAN);
		CHECK(sg_seek(vol, &f, 0, false) == -EUCLEAN);
	}
	sg_store64(sg_at(vol, SG_IOFF(&f, size)), 0);
	sg_store64(sg_at(vol, SG_HOT(errors)), 0);
	sg_store64(sg_at(vol, SG_HOT(error_ino)), 0);
	file_end(vol, &f);
	vol_end(vol);
}

/*
 * An interrupted write in place leaves bytes behind the size. When the file grows over these bytes,
 * the engine zeroes them, as far as one such write can reach. This also holds after the pages have
 * moved.
 */
static void test_move_stale(bool insert)
{
	struct sg_vol *vol = vol_new(32 * MIB);
	struct sg_iref f = file_new(vol);
	u64 size = insert ? MIB : 3 * MIB, pos, i, n;
	struct sg_run run;

	CHECK(!sg_allocate(vol, &f, 0, 5 * MIB / SG_PAGE));
	CHECK(!sg_resize(vol, &f, size, 1));
	for (pos = size; pos < sg_stale_end(size); pos += run.pages * SG_PAGE) {
		CHECK(!sg_walk(vol, &f, pos / SG_PAGE, (sg_stale_end(size) - pos) / SG_PAGE, &run));
		if (run.off)
			memset(vol->base + run.off, 0xee, run.pages * SG_PAGE);
	}
	CHECK(!(insert ? sg_insert : sg_collapse)(vol, &f, 0, MIB / 2, 2));
	CHECK(!sg_resize(vol, &f, 6 * MIB, 3));
	for (pos = 0; pos < 6 * MIB; pos += n) {
		n = sizeof(buf) / 8 * 8;
		n = (u64)sg_read(vol, &f, pos, buf, SG_MIN(n, 6 * MIB - pos));
		CHECK(n > 0 && n <= sizeof(buf));
		for (i = 0; i < n; i++)
			if (buf[i])
				test_fail(__FILE__, __LINE__, "byte %" PRIu64 " is 0x%x", pos + i, buf[i]);
	}
	file_end(vol, &f);
	vol_end(vol);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	rng.state = test_seed();
	test_limits();
	test_tail();
	test_same_size();
	test_extend();
	test_full();
	test_too_much();
	test_seek_size();
	test_move_stale(true);
	test_move_stale(false);
	test_full_split();
	test_cutting();
	test_move();
	test_move_large();
	test_small_pieces();
	test_random();
	return test_done();
}
