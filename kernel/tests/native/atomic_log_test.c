// SPDX-License-Identifier: Apache-2.0
/*
 * Logs that a hostile member has forged (D10). Replay of any log stores only into pages of the one
 * regular file whose change counter is in the record. An invalid log is reported as damage.
 */
#include <sys/stat.h>
#include "internal.h"
#include "systems.h"

#define SLOT	5u		/* without a system */
#define LEN	(3 * SG_PAGE)

static struct tvol t;
static struct sg_iref f, other, dir;
static struct sg_area *area;
static u8 was[LEN];
static u64 reports, scratch;

static void reported(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)vol;
	(void)ino;
	(void)off;
	reports++;
}

struct forged {
	struct sg_log_head head;
	struct sg_log_piece piece[2];
	u8 bytes[256];
};

static u64 old_seq(const struct sg_iref *ref)
{
	return sg_iget(&t.v, ref, seq);
}

/* Stores a record with the change counter of @ref and @n words of log. */
static void forge(const struct sg_iref *ref, const void *log, unsigned int n)
{
	area->word[0] = (struct sg_word){ SG_IOFF(ref, seq), (old_seq(ref) | 1) + 1 };
	memcpy(&area->word[1], log, n * sizeof(struct sg_word));
	area->head = SG_AREA_HEAD(77, n + 1) | SG_AREA_SEQS(1) | SG_AREA_LOGS(n);
	area->crc = sg_area_crc(area->head, area->word, n + 1);
}

static struct forged right(const struct sg_iref *ref)
{
	struct forged g = { .head = { ref->ino | 1ULL << 40, (u32)sg_iget(&t.v, ref, genflags) } };

	g.piece[0] = (struct sg_log_piece){ .pos = 100, .len = SG_LOG_WORD(200, 0) };
	/* one piece: its bytes are stored where a second piece would be */
	memset(&g.piece[1], 0x5a, sizeof(g.piece[1]) + sizeof(g.bytes));
	return g;
}

static unsigned int words(u64 bytes)
{
	return sg_log_words(1, bytes);
}

static void replay(void)
{
	CHECK_OK(sg_tx_replay(&t.v, SLOT, 0));
	CHECK(!area->head);
}

static void holds(const struct sg_iref *ref, const u8 *bytes)
{
	static u8 got[LEN];

	CHECK_EQ(sg_read(&t.v, ref, 0, got, LEN), LEN);
	CHECK(!memcmp(got, bytes, LEN));
}

/* Checks that replay of the log changes nothing, and reports it unless @silent. */
static void refused_as(const struct sg_iref *ref, const void *g, unsigned int n, bool silent)
{
	u64 before = reports;

	memset(t.v.damage_seen, 0, sizeof(t.v.damage_seen));
	forge(ref, g, n);
	replay();
	holds(&f, was);
	holds(&other, was);
	CHECK(silent || reports > before);
}

static void refused(const struct forged *g)
{
	refused_as(&f, g, words(200), false);
}

static void a_right_one(void)
{
	struct forged g = right(&f);
	u8 want[LEN];

	memcpy(want, was, LEN);
	memset(want + 100, 0x5a, 200);
	forge(&f, &g, words(200));
	replay();
	holds(&f, want);
	holds(&other, was);
	CHECK_EQ(reports, 0);
	CHECK_EQ(sg_write(&t.v, &f, 0, was, LEN, 1), LEN);
}

static void other_files(void)
{
	struct forged g = right(&other);

	refused(&g);		/* the record has the change counter of f */
	g = right(&f);
	g.head.generation++;
	refused(&g);
	g.head.generation = 0;
	refused(&g);
	g = right(&f);
	g.head.ino = (SG_INO_MAX - 1) | 1ULL << 40;
	refused(&g);
	g = right(&dir);
	refused_as(&dir, &g, words(200), false);
}

/*
 * The words behind the log are pieces without bytes, followed by enough bytes. So only the number
 * of the log's words shows that this log is invalid.
 */
static void more_pieces_than_words(void)
{
	static struct sg_word log[SG_AREA_WORDS];
	struct forged g = right(&f);
	unsigned int i;

	memset(area->word, 0, sizeof(area->word));
	memcpy(log, &g, sizeof(g.head) + sizeof(g.piece[0]));
	for (i = 2; i <= SG_LOG_PIECES; i++) {
		log[0].off = f.ino | (u64)i << 40;
		refused_as(&f, log, sg_log_words(1, 0), false);
		refused_as(&f, log, sg_log_words(i, 0) - 1, false);
	}
}

static void bounds(void)
{
	struct forged g = right(&f);
	unsigned int i;

	g.piece[0].len = SG_LOG_WORD(SG_ATOMIC_MAX + 1, 0);
	refused(&g);
	g = right(&f);
	g.piece[0].pos = SG_FILE_MAX - 10;
	refused(&g);
	g.piece[0].pos = ~0ULL - 10;
	refused(&g);
	/* more bytes than the record has */
	g = right(&f);
	g.piece[0].len = SG_LOG_WORD(4096, 0);
	refused(&g);
	/* more pieces than the log has; and a log of one word, or of none */
	for (i = 2; i < 256; i += 11) {
		g = right(&f);
		g.head.ino = f.ino | (u64)i << 40;
		refused_as(&f, &g, 1 + i % 3, false);
	}
	more_pieces_than_words();
	g = right(&f);
	g.head.ino = f.ino;	/* no piece */
	refused_as(&f, &g, words(200), true);
	refused_as(&f, &g, 1, true);
	/* the position is behind the end of the table, which has no page there */
	g = right(&f);
	g.piece[0].pos = 1ULL << 40;
	refused(&g);
	/* the piece begins in the file, and ends behind the last page */
	g.piece[0].pos = LEN - 100;
	refused(&g);
	CHECK_EQ(sg_iget(&t.v, &f, size), LEN);
}

static void outside(void)
{
	const u64 from[] = { 8, SG_PAGE, t.v.sb.data_off - SG_PAGE, t.v.size - SG_PAGE, t.v.size,
			     ~0ULL << 12, t.v.size - SG_PAGE - 100, ~0ULL };
	struct forged g = right(&f);
	struct sg_run run;
	unsigned int i;
	u8 want[LEN];

	for (i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		g.piece[0].from = from[i];
		g.piece[0].len = SG_LOG_WORD(200, from[i] < t.v.size - 200 ?
					     sg_crc32c(~0u, t.mem + from[i], 200) : 0);
		refused(&g);
	}
	/* bytes in a page that may hold them, with a wrong checksum, then with the right one */
	memset(t.mem + scratch, 0x77, SG_PAGE);
	g.piece[0].from = scratch + 50;
	g.piece[0].len = SG_LOG_WORD(200, 1);
	refused(&g);
	/* bytes in the same pages to which replay would store them */
	CHECK_OK(sg_walk(&t.v, &f, 0, 1, &run));
	g = right(&f);
	g.piece[0].from = run.off + 50;
	g.piece[0].len = SG_LOG_WORD(200, sg_crc32c(~0u, t.mem + run.off + 50, 200));
	refused(&g);
	/* a valid piece and an invalid one: neither is stored */
	g = right(&f);
	g.head.ino = f.ino | 2ULL << 40;
	g.piece[1] = (struct sg_log_piece){ 400, SG_LOG_WORD(200, 1), scratch + 50, 0 };
	refused_as(&f, &g, sg_log_words(2, 200), false);
	g = right(&f);
	g.piece[0].from = scratch + 50;
	g.piece[0].len = SG_LOG_WORD(200, sg_crc32c(~0u, t.mem + scratch + 50, 200));
	memcpy(want, was, LEN);
	memset(want + 100, 0x77, 200);
	forge(&f, &g, words(0));
	replay();
	holds(&f, want);
	CHECK_EQ(sg_write(&t.v, &f, 0, was, LEN, 1), LEN);
}

/* Replays logs of random words: only pages of f may change. */
static void any(u64 rounds)
{
	struct rng rng = { test_seed() };
	struct sg_word log[40];
	u64 i, n;

	for (i = 0; i < rounds; i++) {
		struct forged g = right(&f);
		unsigned int hits = (unsigned int)rng_below(&rng, 6);

		n = 1 + rng_below(&rng, 40);
		rng_fill(&rng, log, sizeof(log));
		if (rng_chance(&rng, 80))
			memcpy(log, &g, SG_MIN(sizeof(g), sizeof(log)));
		while (hits--)
			((u64 *)log)[rng_below(&rng, 8)] = rng_chance(&rng, 50) ? rng_next(&rng) :
							   rng_size(&rng, 1ULL << 48);
		forge(rng_chance(&rng, 90) ? &f : &other, log, (unsigned int)n);
		/* the record's head may also have wrong counts */
		if (rng_chance(&rng, 20)) {
			area->head = SG_AREA_HEAD(77, n + 1) | SG_AREA_SEQS(rng_below(&rng, 256)) |
				     SG_AREA_LOGS(rng_below(&rng, 256));
			if (SG_AREA_LOG_COUNT(area->head) < n)
				/* the rest would be plain words, which replay may store anywhere */
				continue;
			area->crc = sg_area_crc(area->head, area->word, (unsigned int)n + 1);
		}
		replay();
		if (rng_chance(&rng, 5))
			holds(&other, was);
	}
	area->head = 0;
	holds(&other, was);
}

int main(void)
{
	u64 *errors, got;
	struct sg_tx *tx;

	tvol_make(&t, TEST_SMALL);
	t.v.on_damage = reported;
	tlog_catch();	/* damage is reported many times */
	f = test_create(&t.v, &t.root, "f", S_IFREG | 0600);
	other = test_create(&t.v, &t.root, "other", S_IFREG | 0600);
	dir = test_create(&t.v, &t.root, "dir", S_IFDIR | 0700);
	rng_fill(&(struct rng){ 3 }, was, LEN);
	CHECK_EQ(sg_write(&t.v, &f, 0, was, LEN, 1), LEN);
	CHECK_EQ(sg_write(&t.v, &other, 0, was, LEN, 1), LEN);
	tx = sg_tx_begin(&t.v);
	CHECK_OK(sg_take_run(tx, SG_USE_DATA, 0, 1, &scratch, &got));
	sg_tx_abort(tx);
	area = sg_at(&t.v, sg_area_off(&t.v, SLOT, 0));
	a_right_one();
	other_files();
	bounds();
	outside();
	any(test_amount(3000, 100000, 2000000));
	CHECK_EQ(sg_write(&t.v, &f, 0, was, LEN, 1), LEN);
	holds(&f, was);
	errors = sg_at(&t.v, SG_HOT(errors));
	errors[0] = errors[1] = 0;
	memset(area->word, 0, sizeof(area->word));
	tvol_drop(&t);
	return test_done();
}
