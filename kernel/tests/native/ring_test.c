// SPDX-License-Identifier: Apache-2.0
/*
 * Rings through libstargate, over the engine; the test acts as the library's kernel (sem_kernel.h).
 * Cases: records between threads of two systems, waits, limits, deaths. ring_forged_test has forged
 * words.
 */
#define _GNU_SOURCE
#include "ring_lib.h"

/*
 * --- the feature bit ---------------------------------------------------------------------------
 */

/* A system with older software does not announce the features that it knows. */
static void feature(void)
{
	const struct stargate_new what = { .type = STARGATE_RING, .mode = 0600 };
	struct sg_super *sb = (struct sg_super *)mem, *backup = (void *)(mem + SIZE - SG_PAGE);
	stargate_ring *r;
	struct tsys old;
	u64 *knows;

	CHECK_EQ(sb->ro_compat, 0);
	tsys_join(&old, mem, SIZE, 9);
	knows = &((struct sg_slot *)sg_at(&old.v, sg_slot_off(&old.v, (unsigned int)old.v.slot)))->knows;
	CHECK_EQ(*knows, SG_SLOT_KNOWS(SG_RO_COMPAT_KNOWN, old.v.incarnation));
	*knows = 0;
	CHECK_EQ(stargate_ring_create(&r, at[0], "old", &what, 0), EOPNOTSUPP);
	CHECK_EQ(sb->ro_compat, 0);
	/* the slot's last owner announced the feature */
	*knows = SG_SLOT_KNOWS(SG_RO_COMPAT_RINGS, old.v.incarnation - 1);
	CHECK_EQ(stargate_ring_create(&r, at[0], "old", &what, 0), EOPNOTSUPP);
	tsys_leave(&old);
	CHECK_OK(stargate_ring_create(&r, at[0], "old", &what, 0));
	stargate_ring_close(r);
	CHECK_OK(stargate_remove(at[0], "old"));
	CHECK_EQ(sb->ro_compat, SG_RO_COMPAT_RINGS);
	CHECK_EQ(backup->ro_compat, SG_RO_COMPAT_RINGS);
}

/* --- names and sizes -------------------------------------------------------------------------- */

static void names(void)
{
	struct stargate_new what = { .type = STARGATE_RING, .mode = 0600, .initial = 65 << 20 };
	stargate_ring *r, *o;
	stargate_sem *s;

	CHECK_EQ(stargate_ring_create(&r, at[0], "n", &what, 0), EINVAL);
	what.initial = 1;
	what.flags = STARGATE_GUARDED;
	CHECK_EQ(stargate_ring_create(&r, at[0], "n", &what, 0), EINVAL);
	what.flags = 0;
	CHECK_OK(stargate_ring_create(&r, at[0], "n", &what, 0));
	CHECK_EQ(state_of(r).size, 64 * KIB);
	CHECK_EQ(stargate_ring_most(r), 32 * KIB - 16);
	CHECK_EQ(stargate_ring_create(&o, at[1], "n", &what, STARGATE_EXCLUSIVE), EEXIST);
	what.initial = 1 << 20;	/* a create of an existing ring opens it with its old size */
	CHECK_OK(stargate_ring_create(&o, at[1], "n", &what, 0));
	CHECK_EQ(state_of(o).size, 64 * KIB);
	stargate_ring_close(o);
	CHECK_EQ(stargate_open(&s, at[0], "n", STARGATE_MUTEX, 0), EPROTOTYPE);
	stargate_close(make("mutex", STARGATE_MUTEX, 0, 0));
	s = have(0, "mutex");
	CHECK_EQ(stargate_ring_open(&o, at[0], "mutex"), EPROTOTYPE);
	stargate_close(s);
	CHECK_OK(stargate_remove(at[0], "mutex"));
	CHECK_EQ(stargate_ring_open(&o, at[0], "none"), ENOENT);
	CHECK_OK(stargate_ring_send(r, 1, "a", 1, STARGATE_TRY));
	CHECK_OK(stargate_remove(at[1], "n"));
	CHECK_EQ(stargate_ring_open(&o, at[1], "n"), ENOENT);
	CHECK_EQ(state_of(r).used, 32);
	stargate_ring_close(r);
	stargate_ring_close(NULL);
}

/*
 * A volume of 32 MiB has no room for this ring. The failed create frees all pages that it has
 * taken.
 */
static void no_space(void)
{
	const struct stargate_new what = { .type = STARGATE_RING, .mode = 0600, .initial = 64 << 20 };
	u64 before = sg_free_pages(&sys[0].v);
	stargate_ring *r;
	unsigned int i;

	CHECK_EQ(stargate_ring_create(&r, at[0], "large", &what, 0), ENOSPC);
	CHECK_EQ(stargate_ring_open(&r, at[0], "large"), ENOENT);
	r = ring_make("fits", 8 << 20, 0);
	stargate_ring_close(r);
	CHECK_OK(stargate_remove(at[0], "fits"));
	for (i = 0; i < 500 && sg_free_pages(&sys[0].v) + 64 < before; i++) {
		sg_reclaim(&sys[0].v, ~0u);
		sg_sleep_us(10000);
	}
	CHECK(sg_free_pages(&sys[0].v) + 64 >= before);	/* tables stay allocated */
}

/* --- records ---------------------------------------------------------------------------------- */

static void records(void)
{
	stargate_ring *a = ring_make("r", 64 * KIB, 0), *b = ring_have(1, "r");
	struct rng rng = { test_seed() };
	size_t len;
	u32 i, tag;

	CHECK_EQ(stargate_ring_recv(b, NULL, out, 1, &len, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_ring_recv(b, NULL, out, 1, &len, stargate_in(2 * MS)), ETIMEDOUT);
	put(a, 1, 0);
	put(b, 2, 1);
	put(a, 3, 100);
	get(b, 1, 0);
	get(a, 2, 1);
	CHECK_EQ(stargate_ring_recv(b, &tag, out, 99, &len, STARGATE_TRY), EMSGSIZE);
	CHECK_EQ(len, 100);
	get(b, 3, 100);
	CHECK_EQ(stargate_ring_send(a, 1, buf, 32 * KIB - 15, STARGATE_TRY), EMSGSIZE);
	/* records of each length cross the end of the ring */
	for (i = 0; i < test_amount(2000, 20000, 200000); i++) {
		len = i % 16 ? rng_below(&rng, 2000) : rng_below(&rng, 32 * KIB - 15);
		put(i & 1 ? a : b, i, len);
		get(i & 2 ? a : b, i, len);
	}
	/* two records of the largest length fill the ring */
	put(a, 1, stargate_ring_most(a));
	put(a, 2, stargate_ring_most(a));
	CHECK_EQ(state_of(a).used, 64 * KIB);
	CHECK_EQ(stargate_ring_send(a, 3, buf, 0, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_ring_send(a, 3, buf, 0, stargate_in(2 * MS)), ETIMEDOUT);
	get(b, 1, stargate_ring_most(a));
	put(a, 3, 7);
	get(b, 2, stargate_ring_most(a));
	get(b, 3, 7);
	CHECK_EQ(state_of(b).used, 0);
	CHECK_EQ(state_of(b).sent, i + 6);
	stargate_ring_close(a);
	stargate_ring_close(b);
}

static void in_place(void)
{
	stargate_ring *a = ring_make("p", 64 * KIB, 0), *b = ring_have(1, "p");
	const void *from;
	size_t len;
	void *to;
	u32 tag;

	CHECK_EQ(stargate_ring_commit(a, 1, 0), EPERM);
	CHECK_EQ(stargate_ring_cancel(a), EPERM);
	CHECK_EQ(stargate_ring_release(a), EPERM);
	CHECK_OK(stargate_ring_reserve(a, 1000, &to, STARGATE_TRY));
	CHECK_EQ(stargate_ring_reserve(a, 1000, &to, STARGATE_TRY), EDEADLK);
	CHECK_EQ(stargate_ring_commit(b, 1, 0), EPERM);
	CHECK_EQ(stargate_ring_commit(a, 1, 1001), EINVAL);
	CHECK_OK(stargate_ring_cancel(a));
	CHECK_EQ(stargate_ring_peek(b, &tag, &from, &len, STARGATE_TRY), EAGAIN);
	CHECK_OK(stargate_ring_reserve(a, 1000, &to, STARGATE_TRY));
	memcpy(to, "hello", 5);
	CHECK_OK(stargate_ring_commit(a, 9, 5));
	put(a, 10, 3);
	CHECK_OK(stargate_ring_peek(b, &tag, &from, &len, STARGATE_TRY));
	CHECK(tag == 9 && len == 5 && !memcmp(from, "hello", 5));
	CHECK_EQ(stargate_ring_peek(b, &tag, &from, &len, STARGATE_TRY), EBUSY);
	get(a, 10, 3);		/* another handle gets the next record */
	CHECK_OK(stargate_ring_release(b));
	CHECK_EQ(stargate_ring_release(b), EPERM);
	stargate_ring_close(a);
	stargate_ring_close(b);
	CHECK_OK(stargate_remove(at[0], "p"));
}

/* --- batches ---------------------------------------------------------------------------------- */

#define MANY	100u
static struct stargate_record batch[MANY];

static void fill_batch(u32 n, u32 len)
{
	u32 i;

	fill(buf, sizeof(buf), n);
	for (i = 0; i < n; i++)
		batch[i] = (struct stargate_record){ buf + i, len + i, i, 0 };
}

static void same_batch(const struct stargate_record *got, size_t n, u32 first_one, u32 len)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u32 is = first_one + i;

		CHECK_EQ(got[i].tag, is);
		CHECK_EQ(got[i].len, len + is);
		CHECK(!memcmp(got[i].data, buf + is, len + is));
	}
}

static void batches(void)
{
	stargate_ring *a = ring_make("many", 64 * KIB, 0), *b = ring_have(1, "many");
	struct stargate_record got[MANY];
	size_t n, sent;
	u32 i;

	/* a batch of no record, and one of more records than fit */
	CHECK_OK(stargate_ring_send_many(a, batch, 0, &sent, STARGATE_TRY));
	CHECK_EQ(stargate_ring_recv_many(b, out, sizeof(out), got, MANY, &n, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_ring_recv_many(b, out, sizeof(out), got, 0, &n, STARGATE_TRY), EINVAL);
	fill_batch(MANY, 10);
	CHECK_OK(stargate_ring_send_many(a, batch, MANY, &sent, STARGATE_TRY));
	CHECK_EQ(sent, MANY);
	CHECK_EQ(state_of(a).sent, MANY);
	CHECK_OK(stargate_ring_recv_many(b, out, sizeof(out), got, MANY, &n, STARGATE_TRY));
	CHECK_EQ(n, STARGATE_BATCH);
	same_batch(got, n, 0, 10);
	for (i = 0; i < n; i++)
		CHECK(!((uintptr_t)got[i].data & 7));
	/* receives as many records as fit into the buffer */
	CHECK_OK(stargate_ring_recv_many(b, out, 80 + 75, got, MANY, &n, STARGATE_TRY));
	CHECK_EQ(n, 2);
	same_batch(got, 2, 64, 10);
	CHECK_EQ(stargate_ring_recv_many(b, out, 75, got, MANY, &n, STARGATE_TRY), EMSGSIZE);
	CHECK(!n && got[0].len == 76);
	/* reads in place: one claim, and the ring keeps its records */
	CHECK_OK(stargate_ring_peek_many(b, got, 20, &n, STARGATE_TRY));
	CHECK_EQ(n, 20);
	same_batch(got, 20, 66, 10);
	CHECK_EQ(stargate_ring_peek_many(b, got, 1, &n, STARGATE_TRY), EBUSY);
	CHECK_OK(stargate_ring_recv_many(a, out, sizeof(out), got, MANY, &n, STARGATE_TRY));
	CHECK_EQ(n, 14);
	same_batch(got, 14, 86, 10);
	for (i = 0; i < 100 && !stargate_ring_send(a, i, buf, 3000, STARGATE_TRY); i++)
		CHECK_OK(stargate_ring_recv(a, NULL, out, sizeof(out), &n, STARGATE_TRY));
	CHECK(i < 22);
	CHECK_OK(stargate_ring_release(b));
	/* sends a part of the batch, then the rest */
	fill_batch(40, 3000);
	CHECK_EQ(stargate_ring_send_many(a, batch, 40, &sent, STARGATE_TRY), EAGAIN);
	CHECK_EQ(sent, 64 * KIB / 3040);
	CHECK_EQ(stargate_ring_send_many(a, batch + sent, 40 - sent, &n, stargate_in(2 * MS)), ETIMEDOUT);
	CHECK_EQ(n, 0);
	CHECK_OK(stargate_ring_recv_many(b, out, sizeof(out), got, 7, &n, STARGATE_TRY));
	same_batch(got, 7, 0, 3000);
	CHECK_EQ(stargate_ring_send_many(a, batch + sent, 40 - sent, &n, STARGATE_TRY), EAGAIN);
	CHECK_EQ(n, 7);
	CHECK_OK(stargate_reset(at[0], "many"));
	batch[39].len = stargate_ring_most(a) + 1;
	CHECK_EQ(stargate_ring_send_many(a, batch, 40, &sent, STARGATE_TRY), EMSGSIZE);
	CHECK_EQ(sent, 0);
	CHECK_EQ(state_of(a).used, 0);
	stargate_ring_close(a);
	stargate_ring_close(b);
	CHECK_OK(stargate_remove(at[0], "many"));
}

/*
 * A reader keeps the record at a position. The writer stops before that position, even if other
 * readers have read later records. This also holds for position 0.
 */
static void slowest(u32 before)
{
	stargate_ring *w = ring_make("s", 64 * KIB, 0), *slow = ring_have(0, "s"), *fast = ring_have(1, "s");
	const void *from;
	size_t len;
	u32 i, n;

	for (i = 0; i < before; i++) {
		put(w, i, 1000);
		get(fast, i, 1000);
	}
	put(w, 100, 5000);
	CHECK_OK(stargate_ring_peek(slow, NULL, &from, &len, STARGATE_TRY));
	fill(buf, 5000, 100);
	memcpy(out, buf, 5000);
	for (n = 0; n < 1000; n++) {
		if (stargate_ring_send(w, n, buf, 3000, STARGATE_TRY))
			break;
		CHECK_OK(stargate_ring_recv(fast, NULL, buf, sizeof(buf), &len, STARGATE_TRY));
	}
	CHECK(n >= (64 * KIB - 5016) / 3024 - 1 && n <= 64 * KIB / 3016);
	CHECK(!memcmp(from, out, 5000));
	CHECK_EQ(stargate_ring_send(w, n, buf, 3000, stargate_in(150 * MS)), ETIMEDOUT);
	CHECK_OK(stargate_ring_release(slow));
	CHECK_OK(stargate_ring_send(w, n, buf, 3000, STARGATE_TRY));
	CHECK_EQ(state_of(w).claims_lost, 0);
	stargate_ring_close(w);
	stargate_ring_close(slow);
	stargate_ring_close(fast);
	CHECK_OK(stargate_remove(at[0], "s"));
}

static void single(void)
{
	stargate_ring *a = ring_make("1", 64 * KIB, STARGATE_SINGLE), *b = ring_have(1, "1");
	u32 i;

	CHECK(state_of(b).single);
	put(a, 1, 10);
	get(b, 1, 10);
	put(b, 2, 20);
	CHECK_EQ(stargate_ring_recv(a, NULL, out, sizeof(out), &(size_t){ 0 }, STARGATE_TRY), EBUSY);
	for (i = 3; i < 5000; i++) {
		put(a, i, i % 3000);
		get(b, i - 1, i == 3 ? 20 : (i - 1) % 3000);
	}
	stargate_ring_close(b);
	get(a, i - 1, (i - 1) % 3000);
	stargate_ring_close(a);
	CHECK_OK(stargate_remove(at[0], "1"));
}

/* A ring keeps its records after all users have closed it. */
static void kept(void)
{
	stargate_ring *r = ring_make("k", 64 * KIB, 0);

	put(r, 1, 3000);
	put(r, 2, 5);
	stargate_ring_close(r);
	r = ring_have(1, "k");
	CHECK_EQ(state_of(r).used, 3024 + 32);
	get(r, 1, 3000);
	get(r, 2, 5);
	stargate_ring_close(r);
	CHECK_OK(stargate_remove(at[0], "k"));
}

/* --- deaths ----------------------------------------------------------------------------------- */

static void *dies_with_claim(void *arg)
{
	stargate_ring *r = arg;
	const void *from;
	size_t len;

	CHECK_OK(stargate_ring_peek(r, NULL, &from, &len, STARGATE_TRY));
	stargate_ring_close(r);		/* like the kernel closes files of a killed process */
	thread_ends();
	return NULL;
}

static void *dies_while_it_sends(void *arg)
{
	void *to;

	CHECK_OK(stargate_ring_reserve(arg, 30000, &to, STARGATE_TRY));
	memset(to, 0x55, 30000);
	thread_ends();
	return NULL;
}

static void in_thread(void *(*body)(void *arg), void *arg)
{
	pthread_t t;

	CHECK_OK(pthread_create(&t, NULL, body, arg));
	CHECK_OK(pthread_join(t, NULL));
}

static void deaths(void)
{
	stargate_ring *a = ring_make("d", 64 * KIB, 0), *b = ring_have(1, "d");
	u64 *page = words_of("d");
	unsigned int cell;

	put(a, 1, 100);
	put(a, 2, 200);
	in_thread(dies_with_claim, b);
	CHECK_EQ(state_of(a).claims_lost, 1);
	get(a, 2, 200);
	b = ring_have(1, "d");
	in_thread(dies_while_it_sends, b);
	CHECK_EQ(stargate_ring_recv(a, NULL, out, 1, &(size_t){ 0 }, STARGATE_TRY), EAGAIN);
	fill(buf, 300, 3);
	CHECK_OK(stargate_ring_send(a, 3, buf, 300, stargate_in(SEC)));
	get(b, 3, 300);
	/* the dead reader only tried to claim: another reader was first */
	put(a, 4, 40);
	put(a, 5, 50);
	cell = b->w.cell;
	sg_store64(page + cell, SG_RING_CELL_AT(SG_RING_HEAD_POS(page[SG_RING_HEAD]), SG_RING_TRIES));
	get(a, 4, 40);
	get(a, 5, 50);
	stargate_ring_close(b);
	CHECK_EQ(state_of(a).claims_lost, 1);
	/*
	 * the dead reader has moved the head, but not recorded that yet; no reader has claimed
	 * since
	 */
	b = ring_have(1, "d");
	put(a, 6, 60);
	get(b, 6, 60);
	cell = b->w.cell;
	sg_store64(page + cell, SG_RING_CELL_AT(SG_RING_HEAD_POS(page[SG_RING_HEAD]) - 5, SG_RING_TRIES));
	stargate_ring_close(b);
	CHECK_EQ(state_of(a).claims_lost, 2);
	/* the same state, except that another reader has claimed a record since */
	b = ring_have(1, "d");
	put(a, 7, 60);
	get(b, 7, 60);
	cell = b->w.cell;
	sg_store64(page + cell, SG_RING_CELL_AT(SG_RING_HEAD_POS(page[SG_RING_HEAD]) - 5, SG_RING_TRIES));
	put(a, 8, 60);
	get(a, 8, 60);
	stargate_ring_close(b);
	CHECK_EQ(state_of(a).claims_lost, 3);
	stargate_ring_close(a);
	CHECK_OK(stargate_remove(at[0], "d"));
}

/* A system dies while it has a claim, and while it sends. */
static void system_dies(bool all)
{
	struct sg_ring w;
	struct tsys other;
	struct sg_sem sem;
	struct sg_ring_claim c;
	struct sg_sem_caller *who;
	struct sg_sem lock;
	stargate_ring *a = ring_make("y", 64 * KIB, 0);
	u32 i, slot, incarnation;

	put(a, 1, 8000);
	put(a, 2, 10);
	tsys_join(&other, mem, SIZE, 7);
	sem = sem_of(&other.v, "y");
	CHECK_OK(sg_sem_ring_reader(&other.v, &sem, ~0ULL));
	w = (struct sg_ring){ .page = sg_at(&other.v, sem.words), .data = a->w.data,
		.grains = a->w.grains, .cell = sem.cell };
	CHECK_EQ(sg_ringw_claim(&w, sizeof(out), &c), SG_RING_OK);
	who = caller_of(&other.v, 1);
	CHECK_OK(sg_sem_ring_part(&sem, SG_RING_LOCK, &lock));
	CHECK_OK(sg_sem_lock(&other.v, &lock, who, 0));
	if (all)
		stargate_ring_close(a);
	slot = (unsigned int)other.v.slot;
	incarnation = other.v.incarnation;
	tsys_die(&other);
	sg_free(who);
	CHECK_OK(sg_fence_slot(&sys[0].v, slot, incarnation));
	if (all) {
		while (tsys_state(&sys[0], slot) != SG_SLOT_FREE)
			sg_sleep_us(1000);
		a = ring_have(1, "y");
		CHECK_EQ(stargate_ring_recv(a, NULL, out, 100, &(size_t){ 0 }, STARGATE_TRY), EAGAIN);
		put(a, 3, 30);
		get(a, 3, 30);
	} else {
		get(a, 2, 10);
		/* only the claim limits the room for further records */
		for (i = 0; i < 100; i++) {
			CHECK_OK(stargate_ring_send(a, i, buf, 3000, stargate_in(2 * SEC)));
			CHECK_OK(stargate_ring_recv(a, NULL, out, sizeof(out), &(size_t){ 0 }, STARGATE_TRY));
		}
	}
	CHECK_EQ(state_of(a).claims_lost, 1);
	stargate_ring_close(a);
	CHECK_OK(stargate_remove(at[0], "y"));
}

/*
 * A system is paused while it sends, and fenced. Until its lapse ends, it may still store where the
 * next record begins, so no system sends before that.
 */
static void sender_lapses(bool all)
{
	stargate_ring *a = ring_make("l", 64 * KIB, 0);
	struct sg_sem_caller *who;
	struct sg_sem sem, lock;
	u32 slot, incarnation;
	struct tsys other;
	u64 *lapsed;

	tsys_join(&other, mem, SIZE, 7);
	sem = sem_of(&other.v, "l");
	who = caller_of(&other.v, 1);
	CHECK_OK(sg_sem_ring_part(&sem, SG_RING_LOCK, &lock));
	CHECK_OK(sg_sem_lock(&other.v, &lock, who, 0));
	if (all)
		stargate_ring_close(a);
	slot = (unsigned int)other.v.slot;
	incarnation = other.v.incarnation;
	tsys_die(&other);
	sg_free(who);
	CHECK_OK(sg_fence_lapsed(&sys[0].v, slot, incarnation));
	while (tsys_state(&sys[0], slot) != SG_SLOT_FREE)
		sg_sleep_us(1000);
	if (all)
		a = ring_have(1, "l");
	CHECK_EQ(stargate_ring_send(a, 1, buf, 10, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_ring_send(a, 1, buf, 10, stargate_in(50 * MS)), ETIMEDOUT);
	lapsed = sg_at(&sys[0].v, SG_HOT(lapsed));
	sg_store64(lapsed, 0);
	fill(buf, 10, 1);
	CHECK_OK(stargate_ring_send(a, 1, buf, 10, stargate_in(20 * SEC)));
	get(a, 1, 10);
	stargate_ring_close(a);
	CHECK_OK(stargate_remove(at[0], "l"));
}

/* --- the file of the objects is locked by another system -------------------------------------- */

/*
 * A sender waits for room in a full ring, and a handle receives for the first time: both waits end
 * in time.
 */
static void file_locked(void)
{
	stargate_ring *a = ring_make("b", 64 * KIB, 0), *b = ring_have(1, "b");
	const struct sg_iref file = sg_sem_file();
	struct tsys other;
	size_t len;
	u64 begun;

	put(a, 1, stargate_ring_most(a));
	put(a, 2, stargate_ring_most(a));
	tsys_join(&other, mem, SIZE, 7);
	CHECK_OK(sg_ilock(&other.v, &file));
	begun = sg_ticks();
	CHECK_EQ(stargate_ring_send(a, 3, buf, 10, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_ring_send(a, 3, buf, 10, stargate_in(150 * MS)), ETIMEDOUT);
	CHECK_EQ(stargate_ring_recv(b, NULL, out, sizeof(out), &len, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_ring_recv(b, NULL, out, sizeof(out), &len, stargate_in(50 * MS)), ETIMEDOUT);
	CHECK(sg_ticks() - begun < 20 * SEC);
	sg_iunlock(&other.v, &file);
	tsys_leave(&other);
	get(b, 1, stargate_ring_most(a));
	get(b, 2, stargate_ring_most(a));
	stargate_ring_close(a);
	stargate_ring_close(b);
	CHECK_OK(stargate_remove(at[0], "b"));
}

/*
 * --- at the same moment -------------------------------------------------------------------------
 */

static stargate_ring *first, *second;
static unsigned int looks;

/* The second reader moves the head just before the first one does. */
static void overtakes(void *addr, bool behind)
{
	u8 room[100];
	size_t len;
	u32 tag;

	if (behind || addr != &first->w.page[SG_RING_HEAD] || ++looks != 3)
		return;
	CHECK_OK(stargate_ring_recv(second, &tag, room, sizeof(room), &len, STARGATE_TRY));
	CHECK_EQ(tag, 1);
}

static void overtaken(void)
{
	first = ring_make("o", 64 * KIB, 0);
	second = ring_have(1, "o");
	put(second, 0, 1);
	get(first, 0, 1);
	put(second, 0, 1);
	get(second, 0, 1);
	put(first, 1, 100);
	put(first, 2, 200);
	test_trap((u8 *)first->w.page, overtakes);
	get(first, 2, 200);
	test_trap_end();
	CHECK(looks > 3);
	CHECK_EQ(state_of(first).used, 0);
	stargate_ring_close(first);
	stargate_ring_close(second);
	CHECK_OK(stargate_remove(at[0], "o"));
}

/* A sender that waits for room is woken, instead of checking for room every 100 ms. */
#define HAND_OVERS	40

static void *sends_on(void *arg)
{
	static u8 block[30000];
	unsigned int i;

	for (i = 0; i < HAND_OVERS; i++)
		CHECK_OK(stargate_ring_send(arg, i, block, sizeof(block), stargate_in(60 * SEC)));
	thread_ends();
	return NULL;
}

static void wakes(void)
{
	stargate_ring *a = ring_make("w", 64 * KIB, 0), *b = ring_have(1, "w");
	u64 begun = 0;
	unsigned int i;
	pthread_t t;
	size_t len;

	CHECK_OK(pthread_create(&t, NULL, sends_on, a));
	for (i = 0; i < HAND_OVERS; i++) {
		while (i < HAND_OVERS - 2 && state_of(b).used < 60000)
			sg_sleep_us(100);
		sg_sleep_us(2000);	/* the sender waits by now */
		CHECK_OK(stargate_ring_recv(b, NULL, out, sizeof(out), &len, stargate_in(60 * SEC)));
		begun = begun ?: sg_ticks();
	}
	CHECK(sg_ticks() - begun < HAND_OVERS * 60 * MS);
	CHECK_OK(pthread_join(t, NULL));
	stargate_ring_close(a);
	stargate_ring_close(b);
	CHECK_OK(stargate_remove(at[0], "w"));
}

/* --- many threads ----------------------------------------------------------------------------- */

#define SENDERS		2
#define RECEIVERS	3
#define MOST		4096u
static u64 rounds, received, *seen[SENDERS];
static const char *many_name;

struct message {
	u64 sender, number, sum;
	u8 data[];
};

static u64 sum_of(const struct message *m, u64 len)
{
	u64 sum = m->number * 31 + m->sender, i;

	for (i = 0; i < len - sizeof(*m); i++)
		sum = sum * 131 + m->data[i];
	return sum;
}

#define GROUP	5u

static void make_message(struct rng *rng, struct stargate_record *rec, struct message *m, u64 n,
			 u64 number)
{
	u64 len = sizeof(*m) + rng_size(rng, MOST - sizeof(*m));

	rng_fill(rng, m->data, len - sizeof(*m));
	m->sender = n;
	m->number = number;
	m->sum = sum_of(m, len);
	*rec = (struct stargate_record){ m, len, (u32)n, 0 };
}

/* Sends @count records, by one of three calls. */
static void send_group(stargate_ring *r, const struct stargate_record *rec, u64 count, u64 way)
{
	size_t sent;
	void *to;

	if (way % 3 == 2) {
		CHECK_OK(stargate_ring_send_many(r, rec, count, &sent, stargate_in(60 * SEC)));
		CHECK_EQ(sent, count);
		return;
	}
	for (; count; count--, rec++) {
		if (way % 3) {
			CHECK_OK(stargate_ring_send(r, rec->tag, rec->data, rec->len, stargate_in(60 * SEC)));
			continue;
		}
		CHECK_OK(stargate_ring_reserve(r, MOST, &to, stargate_in(60 * SEC)));
		memcpy(to, rec->data, rec->len);
		CHECK_OK(stargate_ring_commit(r, rec->tag, rec->len));
	}
}

static void *sends(void *arg)
{
	u64 n = (u64)(uintptr_t)arg, i, k, count;
	stargate_ring *r = ring_have(n & 1, many_name);
	u8 room[GROUP][MOST] __attribute__((aligned(8)));
	struct stargate_record rec[GROUP];
	struct rng rng = { n + 1 };

	for (i = 0; i < rounds; i += count) {
		count = SG_MIN(1 + rng_below(&rng, GROUP), rounds - i);
		for (k = 0; k < count; k++)
			make_message(&rng, &rec[k], (void *)room[k], n, i + k);
		send_group(r, rec, count, rng_below(&rng, 3));
	}
	stargate_ring_close(r);
	thread_ends();
	return NULL;
}

static void check_message(const struct stargate_record *rec, u64 last[SENDERS])
{
	const struct message *m = rec->data;

	CHECK(rec->len >= sizeof(*m) && m->sender == rec->tag && rec->tag < SENDERS && m->number < rounds);
	CHECK_EQ(m->sum, sum_of(m, rec->len));
	CHECK_EQ(sg_add64(&seen[rec->tag][m->number], 1), 0);
	CHECK(m->number + 1 > last[rec->tag]);	/* each reader gets a sender's records in order */
	last[rec->tag] = m->number + 1;
	sg_add64(&received, 1);
}

static void *receives(void *arg)
{
	u64 n = (u64)(uintptr_t)arg, last[SENDERS] = { 0 }, all = SENDERS * rounds, turn;
	stargate_ring *r = ring_have(n & 1, many_name);
	u8 room[GROUP * MOST] __attribute__((aligned(8)));
	struct stargate_record rec[GROUP];
	size_t got, i;
	int err;

	for (turn = 0; sg_load64(&received) < all; turn++) {
		got = 1;
		rec[0].data = room;
		if (turn % 2)
			err = stargate_ring_recv(r, &rec[0].tag, room, sizeof(room), &rec[0].len,
						 stargate_in(20 * MS));
		else
			err = stargate_ring_recv_many(r, room, sizeof(room), rec, GROUP, &got,
						      stargate_in(20 * MS));
		CHECK(!err || err == ETIMEDOUT);
		for (i = 0; i < got && !err; i++)
			check_message(&rec[i], last);
	}
	stargate_ring_close(r);
	thread_ends();
	return NULL;
}

static void many(const char *name, u64 size, unsigned int flags, u64 readers)
{
	pthread_t thread[SENDERS + RECEIVERS];
	stargate_ring *r = ring_make(name, size, flags);
	u64 i;

	many_name = name;
	rounds = test_amount(5000, 50000, 2000000);
	received = 0;
	for (i = 0; i < SENDERS; i++)
		seen[i] = sg_alloc(rounds * sizeof(u64));
	for (i = 0; i < SENDERS; i++)
		CHECK_OK(pthread_create(&thread[i], NULL, sends, (void *)(uintptr_t)i));
	for (i = 0; i < readers; i++)
		CHECK_OK(pthread_create(&thread[SENDERS + i], NULL, receives, (void *)(uintptr_t)i));
	for (i = 0; i < SENDERS + readers; i++)
		CHECK_OK(pthread_join(thread[i], NULL));
	CHECK_EQ(received, SENDERS * rounds);
	CHECK_EQ(state_of(r).sent, SENDERS * rounds);
	CHECK_EQ(state_of(r).used, 0);
	for (i = 0; i < SENDERS; i++)
		sg_free(seen[i]);
	stargate_ring_close(r);
	CHECK_OK(stargate_remove(at[0], name));
}

int main(void)
{
	begin();
	feature();
	names();
	no_space();
	records();
	in_place();
	batches();
	slowest(0);
	slowest(1);
	slowest(61);
	single();
	kept();
	overtaken();
	wakes();
	deaths();
	system_dies(false);
	system_dies(true);
	sender_lapses(false);
	sender_lapses(true);
	file_locked();
	many("many", 64 * KIB, 0, RECEIVERS);
	many("one", 64 * KIB, STARGATE_SINGLE, 1);
	end();
	return test_done();
}
