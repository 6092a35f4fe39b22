// SPDX-License-Identifier: Apache-2.0
/*
 * Rings, and SIGKILL. Processes act as systems, each with its own slot, like a virtual machine.
 * Some send and some receive. They are killed at any point: in the middle of a record, with a
 * claim, asleep. The program fences the dead process, like a guard, and the others continue. Every
 * received record is complete. Each record arrives at most once and in order, and lost claims are
 * counted.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include "ring_util.h"

#define SIZE	(32ULL << 20)
#define SENDERS	2
#define WORKERS	5
#define NUMBERS	(1u << 20)
#define MOST	3000u
#define BATCH	4u	/* most records in one claim */
#define TOO_LONG (20 * SEC)

static u8 *mem;

/*
 * @number: number of the next record, assigned under the ring's lock. @sent, @came: flags for each
 * record.
 */
static struct shared {
	u64 number, stop, drained, state[WORKERS], last[WORKERS];
	u8 sent[NUMBERS], came[NUMBERS];
} *sh;

struct message {
	u64 number, sum;
	u8 data[];
};

static u64 sum_of(const u8 *from, u64 len, u64 number)
{
	u64 sum = number;

	while (len--)
		sum = sum * 131 + *from++;
	return sum;
}

static void send_one(struct ring_user *u, struct rng *rng, unsigned int k)
{
	u64 len = sizeof(struct message) + rng_size(rng, MOST), tail;
	struct message *m = (struct message *)ring_begin(u, len, &tail);
	u64 number = sg_add64(&sh->number, 1);

	CHECK(number < NUMBERS);
	m->number = number;
	rng_fill(rng, m->data, len - sizeof(*m));
	m->sum = sum_of(m->data, len - sizeof(*m), number);
	ring_commit(u, tail, len, k);
	__atomic_store_n(&sh->sent[number], 1, __ATOMIC_SEQ_CST);
	ring_unlock(u);
}

/* @last: the number of the last record that this reader received, which only grows. */
static void look_at(const struct sg_ring_claim *c, u64 *last)
{
	static u8 copy[MOST + sizeof(struct message)] __attribute__((aligned(8)));
	const struct message *m = (const void *)copy;

	CHECK(c->len >= sizeof(*m) && c->len <= sizeof(copy));
	memcpy(copy, c->data, c->len);
	CHECK(m->number < NUMBERS && c->tag < SENDERS);
	CHECK_EQ(m->sum, sum_of(m->data, c->len - sizeof(*m), m->number));
	CHECK(!*last || m->number > *last - 1);
	*last = m->number + 1;
	CHECK_EQ(__atomic_fetch_add(&sh->came[m->number], 1, __ATOMIC_SEQ_CST), 0);
}

/* Claims, checks and releases some records. */
static bool receive_some(struct ring_user *u, struct rng *rng, u64 *last, u64 until)
{
	struct sg_ring_claim c[BATCH];
	unsigned int n, i;

	n = ring_take_many(u, c, 1 + (unsigned int)rng_below(rng, BATCH), until);
	if (!n)
		return false;
	for (i = 0; i < n; i++) {
		if (rng_chance(rng, 20))
			sg_sleep_us((unsigned int)rng_below(rng, 300));
		look_at(&c[i], last);
	}
	ring_give(u);
	return true;
}

static void be_system(void *arg)
{
	unsigned int k = (unsigned int)(uintptr_t)arg;
	struct rng rng = { sg_ticks() };
	struct listener ear;
	struct ring_user u;
	struct tsys s;
	u64 last = 0;

	tsys_join(&s, mem, SIZE, k + 1);
	tsys_maintain(&s);
	listen_begin(&ear, &s.v);
	ring_use(&u, &s.v, "ring", k);
	sg_store64(&sh->state[k], SG_LOCK_WORD(s.v.slot, s.v.incarnation));
	while (!sg_load64(k < SENDERS ? &sh->stop : &sh->drained)) {
		if (k < SENDERS)
			send_one(&u, &rng, k);
		else if (!receive_some(&u, &rng, &last, in_ms(20)))
			continue;
		sg_store64(&sh->last[k], sg_ticks());
	}
	ring_end(&u);
	listen_end(&ear);
	tsys_leave(&s);
}

static void await(struct sg_vol *v, unsigned int k)
{
	u64 start = sg_ticks();

	while (!sg_load64(&sh->state[k])) {
		CHECK(sg_ticks() - start < TOO_LONG);
		sg_maintain(v);
		sg_sleep_us(200);
	}
}

static void kill_one(struct tsys *guard, pid_t *pid, unsigned int k)
{
	u64 word;

	tproc_kill(pid[k]);
	word = sg_load64(&sh->state[k]);
	CHECK_OK(sg_fence_slot(&guard->v, SG_LOCK_SLOT(word), SG_LOCK_INC(word)));
	sg_store64(&sh->state[k], 0);
	sg_store64(&sh->last[k], 0);
	pid[k] = tproc(be_system, (void *)(uintptr_t)k);
}

static void all_go_on(void)
{
	u64 now = sg_ticks();
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		u64 last = sg_load64(&sh->last[i]);

		if (last && now > last)
			CHECK(now - last < TOO_LONG);
	}
}

static void end_all(struct tsys *guard, pid_t *pid)
{
	unsigned int k;

	sg_store64(&sh->stop, 1);
	for (k = 0; k < WORKERS; k++) {
		siginfo_t info = { .si_pid = 0 };

		if (k == SENDERS) {
			u64 start = sg_ticks();

			while (stat_of(&guard->v, "ring").value) {
				CHECK(sg_ticks() - start < TOO_LONG);
				sg_maintain(&guard->v);
				sg_sleep_us(500);
			}
			sg_store64(&sh->drained, 1);
		}
		while (!waitid(P_PID, (id_t)pid[k], &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid) {
			sg_maintain(&guard->v);
			sg_sleep_us(500);
		}
		tproc_end(pid[k]);
	}
}

static void account(struct tsys *guard, u64 kills)
{
	u64 lost = stat_of(&guard->v, "ring").claims_lost, missing = 0, came = 0, i;

	for (i = 0; i < sh->number; i++) {
		CHECK(sh->came[i] <= 1);
		came += sh->came[i];
		missing += sh->sent[i] && !sh->came[i];
	}
	printf("%" PRIu64 " processes killed, %" PRIu64 " records received, %" PRIu64
	       " lost with their readers, %" PRIu64 " claims counted as lost\n", kills, came, missing, lost);
	/* a reader may die after it has noted a record, but before it releases the record */
	CHECK(missing <= BATCH * lost && lost <= missing + kills);
	CHECK(came > kills);
}

int main(void)
{
	u64 kills = test_amount(40, 300, 10000), i;
	struct rng rng = { test_seed() };
	pid_t pid[WORKERS];
	struct tsys guard;
	struct sg_sem sem;
	unsigned int k;

	mem = tsys_volume(SIZE);
	sh = tshare(sizeof(*sh));
	tsys_join(&guard, mem, SIZE, 50);
	CHECK_OK(try_create(&guard.v, "ring", ring_new(SG_RING_MIN, 0), true, &sem));
	for (k = 0; k < WORKERS; k++)
		pid[k] = tproc(be_system, (void *)(uintptr_t)k);
	for (i = 0; i < kills && sg_load64(&sh->number) < NUMBERS - 100000; i++) {
		k = (unsigned int)rng_below(&rng, WORKERS);
		await(&guard.v, k);
		sg_sleep_us((unsigned int)rng_below(&rng, 6000));
		kill_one(&guard, pid, k);
		all_go_on();
	}
	for (k = 0; k < WORKERS; k++)
		await(&guard.v, k);
	end_all(&guard, pid);
	account(&guard, i);
	sg_sem_close(&guard.v, &sem);
	tsys_leave(&guard);
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
	return test_done();
}
