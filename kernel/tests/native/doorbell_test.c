// SPDX-License-Identifier: Apache-2.0
/*
 * Doorbells (docs/doorbells.md): addresses in the volume, also forged ones; rings that arrive, that
 * are late, lost or sent without reason; storms; and the threads that a ring starts. The exchange
 * between the systems is a part of this test.
 */
#include <sys/resource.h>
#include "sem_util.h"

#define SIZE	TEST_SMALL
#define SYSTEMS	3
#define HERE	7	/* the number of the exchange */

/* --- the exchange ----------------------------------------------------------------------------- */

static enum { PASS, LOSE, DELAY } exchange_does;
#define DELAY_US	8000

static u8 *mem;
static struct tsys sys[SYSTEMS];
static u64 passed[SYSTEMS], dues[SYSTEMS], due_bits[SYSTEMS];
static pthread_t late[16];	/* threads that deliver rings late */
static unsigned int lates;

static void *deliver_late(void *arg)
{
	sg_sleep_us(DELAY_US);
	sg_doorbell_rung(arg);
	return NULL;
}

/* The number of a system at the exchange is 100 + its index. */
static void exchange(struct sg_vol *vol, u16 id)
{
	unsigned int to = id - 100u;

	(void)vol;
	if (to >= SYSTEMS)
		return;		/* as a real exchange: a ring to a wrong number is lost */
	sg_add64(&passed[to], 1);
	if (exchange_does == PASS) {
		sg_doorbell_rung(&sys[to].v);
	} else if (exchange_does == DELAY) {
		CHECK(lates < SG_ARRAY_SIZE(late));
		CHECK_OK(pthread_create(&late[lates++], NULL, deliver_late, &sys[to].v));
	}
}

static void note_due(struct sg_vol *vol, unsigned int due)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++)
		if (vol == &sys[i].v) {
			sg_add64(&dues[i], 1);
			sg_or64(&due_bits[i], due);
		}
}

static void begin(unsigned int systems)
{
	unsigned int i;

	exchange_does = PASS;
	mem = tsys_volume(SIZE);
	for (i = 0; i < systems; i++) {
		tsys_join(&sys[i], mem, SIZE, i + 1);
		sys[i].v.ring = exchange;
		sys[i].v.due = note_due;
		sg_doorbell_announce(&sys[i].v, HERE, (u16)(100 + i));
		passed[i] = dues[i] = due_bits[i] = 0;
	}
}

static void end(unsigned int systems)
{
	unsigned int i;

	for (i = 0; i < systems; i++)
		tsys_leave(&sys[i]);
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

static unsigned int slot_of(unsigned int i)
{
	return (unsigned int)sys[i].v.slot;
}

/* --- addresses -------------------------------------------------------------------------------- */

static u64 *word_of(unsigned int slot)
{
	return (u64 *)(mem + SG_HOT(doorbell)) + slot;
}

static void addresses(void)
{
	u32 inc;
	u16 id;

	begin(2);
	CHECK(sg_doorbell_of(&sys[0].v, slot_of(1), &id));
	CHECK_EQ(id, 101);
	CHECK(sg_doorbell_of(&sys[1].v, slot_of(0), &id));
	CHECK_EQ(id, 100);
	CHECK(!sg_doorbell_of(&sys[0].v, slot_of(0), &id));	/* no system rings itself */
	CHECK(!sg_doorbell_of(&sys[0].v, SG_SLOTS, &id));
	CHECK(!sg_doorbell_of(&sys[0].v, slot_of(1) + 1, &id));	/* a free slot */
	CHECK(sg_doorbell_covers(&sys[0].v));

	/* another exchange: neither can ring the other */
	sg_doorbell_announce(&sys[1].v, HERE + 1, 101);
	CHECK(!sg_doorbell_of(&sys[0].v, slot_of(1), &id));
	CHECK(!sg_doorbell_of(&sys[1].v, slot_of(0), &id));
	CHECK(!sg_doorbell_covers(&sys[0].v));

	/* the bell of the slot's last owner is not that of its next owner */
	sg_doorbell_announce(&sys[1].v, HERE, 101);
	inc = sys[1].v.incarnation;
	tsys_leave(&sys[1]);
	CHECK(!sg_doorbell_of(&sys[0].v, 1, &id));
	CHECK(sg_doorbell_covers(&sys[0].v));
	tsys_join(&sys[1], mem, SIZE, 2);
	*word_of(slot_of(1)) = SG_DOORBELL(HERE, 101, inc);
	CHECK(!sg_doorbell_of(&sys[0].v, slot_of(1), &id));
	CHECK(!sg_doorbell_covers(&sys[0].v));		/* that system cannot ring this one */

	/* a system that has no bell itself sends no ring */
	sg_doorbell_announce(&sys[1].v, HERE, 101);
	sg_doorbell_announce(&sys[0].v, 0, 0);
	CHECK_EQ(*word_of(slot_of(0)), 0);
	CHECK(!sg_doorbell_of(&sys[0].v, slot_of(1), &id));
	sg_doorbell_ring(&sys[0].v, slot_of(1));
	CHECK_EQ(passed[1], 0);
	end(2);
}

/* Any words: a ring goes to a number that the word names, or nowhere; the call returns. */
static void forged_addresses(void)
{
	struct rng rng = { test_seed() };
	u64 i, n = test_amount(20000, 200000, 2000000);
	unsigned int slot;

	begin(2);
	for (i = 0; i < n; i++) {
		slot = (unsigned int)rng_below(&rng, SG_SLOTS);
		if (slot == slot_of(0))
			continue;
		*word_of(slot) = rng_chance(&rng, 50) ? rng_next(&rng) :
				 SG_DOORBELL(HERE, rng_next(&rng), sys[1].v.incarnation);
		sg_doorbell_ring(&sys[0].v, slot);
		if (i % 64 == 0)
			sg_doorbell_ring_all(&sys[0].v);
	}
	CHECK_EQ(passed[0] + passed[2], 0);	/* only the one live system was rung */
	for (slot = 0; slot < SG_SLOTS; slot++)
		*word_of(slot) = 0;
	end(2);
}

/* --- semaphores ------------------------------------------------------------------------------- */

static struct sg_sem there;
static u64 rounds, at[2];

/* Each unit is consumed after a sleep; @at[1] is when the sleeper had it. */
static void *consume(void *arg)
{
	struct sg_sem_caller *c = caller_of(&sys[1].v, 2);
	u64 i;

	(void)arg;
	for (i = 1; i <= rounds; i++) {
		CHECK_OK(sg_sem_wait(&sys[1].v, &there, c, SG_SEM_NEVER));
		sg_store64(&at[1], sg_ticks());
		sg_store64_release(&at[0], i);
	}
	caller_end(&sys[1].v, c);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	return *(const u64 *)a < *(const u64 *)b ? -1 : 1;
}

/* Returns the median time from a post in one system to the end of a sleep in another one, in ns. */
static u64 hand_over(struct sg_sem *here, u64 n, u64 pause_us)
{
	u64 took[64], i, start;
	pthread_t thread;

	rounds = n;
	at[0] = 0;
	CHECK_OK(pthread_create(&thread, NULL, consume, NULL));
	for (i = 0; i < n; i++) {
		sg_sleep_us((unsigned int)pause_us);
		start = sg_ticks();
		CHECK_OK(sg_sem_post(&sys[0].v, here));
		tawait(&at[0], i + 1);
		took[i] = sg_load64(&at[1]) - start;
	}
	CHECK_OK(pthread_join(thread, NULL));
	qsort(took, n, sizeof(took[0]), by_size);
	return took[n / 2];
}

static void semaphores(void)
{
	struct listener ear[2];
	u64 told, delayed, polled;
	struct sg_sem here;
	unsigned int i;

	begin(2);
	here = sem_make(&sys[0].v, "here", SG_SEM_COUNT, 0, 0);
	there = sem_of(&sys[1].v, "here");
	for (i = 0; i < 2; i++)
		listen_begin(&ear[i], &sys[i].v);

	told = hand_over(&here, 8, 100000);
	CHECK_EQ(sys[1].v.doorbells.lost, 0);
	CHECK(sys[1].v.doorbells.rings >= 8);
	CHECK_EQ(sys[1].v.doorbells.rings, passed[1]);

	exchange_does = DELAY;
	delayed = hand_over(&here, 4, 30000);
	while (lates)	/* the last ring is still under way */
		CHECK_OK(pthread_join(late[--lates], NULL));

	/* rings are lost: the system looks by itself, notes the loss, and polls as without bells */
	exchange_does = LOSE;
	hand_over(&here, 4, 30000);
	CHECK(sys[1].v.doorbells.lost >= 1);
	CHECK(!sg_doorbell_covers(&sys[1].v));
	polled = hand_over(&here, 8, 100000);
	printf("hand-over after a sleep: %" PRIu64 " us with a bell, %" PRIu64 " us with a late one, %"
	       PRIu64 " us when bells are lost\n", told / 1000, delayed / 1000, polled / 1000);
	CHECK(told < 10 * MS);
	CHECK(delayed < 60 * MS);
	CHECK(polled < 15 * MS);

	for (i = 0; i < 2; i++)
		listen_end(&ear[i]);
	sg_sem_close(&sys[0].v, &here);
	sg_sem_close(&sys[1].v, &there);
	end(2);
}

static u64 switches(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (u64)use.ru_nvcsw;
}

/* Returns how often threads of this process slept while one waited for @ms. */
static u64 sleeps_of(struct sg_sem *here, unsigned int ms)
{
	pthread_t thread;
	u64 before;

	rounds = 1;
	at[0] = 0;
	CHECK_OK(pthread_create(&thread, NULL, consume, NULL));
	sg_sleep_us(1200000);
	before = switches();
	sg_sleep_us(ms * 1000);
	before = switches() - before;
	CHECK_OK(sg_sem_post(&sys[0].v, here));
	CHECK_OK(pthread_join(thread, NULL));
	return before;
}

/* A sleeper and the thread that polls for it look ten times a second, if bells work. */
static void idle(void)
{
	struct listener ear;
	struct sg_sem here;
	u64 with, without;

	begin(2);
	here = sem_make(&sys[0].v, "here", SG_SEM_COUNT, 0, 0);
	there = sem_of(&sys[1].v, "here");
	listen_begin(&ear, &sys[1].v);
	with = sleeps_of(&here, 1000);
	sg_doorbell_announce(&sys[1].v, 0, 0);
	without = sleeps_of(&here, 1000);
	printf("sleeps in a second of waiting: %" PRIu64 " with bells, %" PRIu64 " without\n", with,
	       without);
	CHECK(with <= 40);
	CHECK(without > 2 * with);
	listen_end(&ear);
	sg_sem_close(&sys[0].v, &here);
	sg_sem_close(&sys[1].v, &there);
	end(2);
}

/* --- work that is due ------------------------------------------------------------------------- */

static void forged_rings(void)
{
	unsigned int i;

	begin(2);
	sg_doorbell_rung(&sys[1].v);	/* it sees the words for the first time */
	dues[1] = 0;
	for (i = 0; i < 100000; i++)
		sg_doorbell_rung(&sys[1].v);
	CHECK_EQ(dues[1], 0);
	end(2);
}

struct keeper {
	struct sg_vol *v;
	struct sg_bell bell;
	u64 stop;
};
static struct keeper keeper;

static void *keep(void *arg)
{
	struct keeper *k = arg;

	while (!sg_load64(&k->stop)) {
		sg_bell_wait(&k->bell, SG_MAINTAIN_MS * MS);
		CHECK(sg_maintain(k->v) >= 0);
		CHECK(sg_freeze_watch(k->v) >= 0);
	}
	return NULL;
}

static void start_keeper(struct sg_vol *vol, unsigned int due)
{
	note_due(vol, due);
	if (vol == keeper.v)
		sg_bell_ring(&keeper.bell);
}

static u64 epoch_takes(void)
{
	u64 start = sg_ticks();

	CHECK(sg_epoch_next(&sys[0].v, 5000));
	return (sg_ticks() - start) / 1000;
}

/* An epoch, and a freeze, are answered at once. */
static void told_at_once(void)
{
	u64 with = 0, without = 0, froze;
	pthread_t thread;
	unsigned int i;
	char why[200];

	begin(2);
	keeper = (struct keeper){ .v = &sys[1].v };
	sg_bell_init(&keeper.bell);
	sys[1].v.due = start_keeper;
	CHECK_OK(pthread_create(&thread, NULL, keep, &keeper));
	for (i = 0; i < 20; i++)
		with += epoch_takes();
	froze = sg_ticks();
	CHECK_OK(sg_freeze(&sys[0].v, 2000, why));
	froze = (sg_ticks() - froze) / 1000;
	CHECK_OK(sg_thaw(&sys[0].v));
	sg_doorbell_announce(&sys[0].v, 0, 0);
	for (i = 0; i < 20; i++)
		without += epoch_takes();
	printf("an epoch took %" PRIu64 " us with bells, %" PRIu64 " us without; a freeze %" PRIu64
	       " us\n", with / 20, without / 20, froze);
	CHECK(with * 2 < without);
	CHECK(froze < 25000);
	CHECK(due_bits[1] & SG_DUE_ACKNOWLEDGE);
	CHECK(due_bits[1] & SG_DUE_FREEZE);
	sg_store64(&keeper.stop, 1);
	CHECK_OK(pthread_join(thread, NULL));
	sg_bell_end(&keeper.bell);
	end(2);
}

/* --- storms ----------------------------------------------------------------------------------- */

/* Rings at this interval for some simulated time. Returns the number that the driver passes on. */
static u64 storm(struct sg_ring_rate *rate, u64 *now, u64 interval, u64 seconds)
{
	u64 until = *now + seconds * SEC, n = 0;
	unsigned int mute;

	while (*now < until) {
		mute = sg_ring_count(rate, *now);
		n++;
		*now += mute ? mute * MS : interval;
	}
	return n;
}

static void storms(void)
{
	struct sg_ring_rate rate = {};
	u64 now = 12345 * SEC, n;

	/* an exchange with four rings in a millisecond is never muted */
	n = storm(&rate, &now, 250000, 10);
	CHECK_EQ(n, 10 * SEC / 250000);
	CHECK_EQ(rate.mute_ms, 0);

	n = storm(&rate, &now, 500, 60);
	printf("a storm of two million rings a second: %" PRIu64 " passed on in a minute\n", n);
	CHECK(n < 20 * (u64)SG_RING_BURST);
	CHECK_EQ(rate.mute_ms, SG_MUTE_MS_MAX);

	/* after some calm the sender has its bell again, and the next mute is short */
	n = storm(&rate, &now, 10 * MS, 30);
	CHECK(n >= 2900);
	while (!sg_ring_count(&rate, now))
		;
	CHECK_EQ(rate.mute_ms, SG_MUTE_MS_MIN);
}

/* While a sender is muted, the system polls. */
static void muted(void)
{
	begin(2);
	CHECK(sg_doorbell_covers(&sys[1].v));
	sys[1].v.doorbells.muted = 1;
	CHECK(!sg_doorbell_covers(&sys[1].v));
	sys[1].v.doorbells.muted = 0;
	CHECK(sg_doorbell_covers(&sys[1].v));
	end(2);
}

int main(void)
{
	addresses();
	forged_addresses();
	semaphores();
	idle();
	forged_rings();
	told_at_once();
	storms();
	muted();
	return test_done();
}
