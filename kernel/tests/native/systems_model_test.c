// SPDX-License-Identifier: Apache-2.0
/*
 * Four systems on one volume. Each compares the tree below its directory with its own model
 * (kernel/tests/lib/model*.c), while all use the same pages, records and locks. They also work in a
 * shared directory. They die between two operations, with locks held, and join again. The effect of
 * each operation that had returned exists, inodes without a name are freed, and no page is lost.
 */
#include <sys/stat.h>
#include "internal.h"
#include "model.h"
#include "systems.h"

#define SYSTEMS	4
#define NAMES	6	/* names of each system in the shared directory */

static u8 *mem;
static u64 size, ops, every, seed;	/* @size: size of the memory, into which the volume grows */

struct player {
	struct model m;
	struct tkeeper keeper;
	struct rng rng;
	unsigned int n;
	struct sg_iref own, common, hub;
	bool linked[NAMES];	/* the names under which this system has linked the hub */
	u64 deaths;
};

static struct sg_vol guard;

static void damaged(struct sg_vol *vol, u64 ino, u64 off)
{
	test_fail(__FILE__, __LINE__, "damage reported by the system in slot %d: inode %" PRIu64
		  ", offset 0x%" PRIx64, vol->slot, ino, off);
}

static void enter(struct player *p)
{
	struct sg_identity id = tsys_identity(p->n + 1, 1);
	struct tvol *t = &p->m.t;

	t->mem = mem;
	t->size = size;
	CHECK_OK(sg_open(&t->v, mem, size, false, NULL));
	t->v.on_damage = damaged;
	t->v.in_use = model_in_use;
	if (sg_join(&t->v, &id, 0, false))
		test_fail(__FILE__, __LINE__, "system %u cannot join: %s", p->n, t->v.why);
	CHECK_OK(sg_iref(&t->v, SG_INO_ROOT, &t->root));
	tkeeper_start(&p->keeper, &t->v);
}

/* --- what all systems use -------------------------------------------------------------------- */

static u32 link_name(const struct player *p, unsigned int k, char *name)
{
	return (u32)sprintf(name, "link-%u-%u", p->n, k);
}

static void use_common(struct player *p)
{
	unsigned int k = (unsigned int)rng_below(&p->rng, NAMES);
	struct sg_vol *v = &p->m.t.v;
	struct sg_iref ref;
	struct sg_attr a;
	char name[30];
	u32 len = link_name(p, k, name);
	int err;

	CHECK_EQ(sg_lookup(v, &p->common, name, len, &ref, NULL), p->linked[k] ? 0 : -ENOENT);
	if (p->linked[k]) {
		CHECK_OK(sg_unlink(v, &p->common, name, len, 1));
		p->linked[k] = false;
	} else {
		err = sg_link(v, &p->hub, &p->common, name, len, 1);
		CHECK(!err || err == -ENOSPC);
		p->linked[k] = !err;
	}
	CHECK_OK(sg_getattr(v, &p->hub, &a));
	CHECK(a.nlink >= 1 && a.nlink <= 1 + SYSTEMS * NAMES);
}

/* --- death ------------------------------------------------------------------------------------ */

static void die(struct player *p)
{
	struct sg_vol *v = &p->m.t.v;
	unsigned int slot = (unsigned int)v->slot;
	u32 inc = v->incarnation;
	u64 start;

	tkeeper_end(&p->keeper);
	memset(p->m.using, 0, sizeof(p->m.using));
	if (rng_chance(&p->rng, 50))
		sg_ilock(v, &p->common);
	if (rng_chance(&p->rng, 30))
		sg_lock(v, sg_chunk_off(v, rng_below(&p->rng, v->sb.chunks)));
	sg_abandon(v);
	if (rng_chance(&p->rng, 50))
		sg_sleep_us((unsigned int)rng_below(&p->rng, 10000));
	CHECK_OK(sg_fence_slot(&guard, slot, inc));
	/* other live systems recover this one; without other systems, the next joiner does */
	if (rng_chance(&p->rng, 50))
		for (start = sg_ticks(); SG_SLOT_STATE(sg_load64(sg_state_word(&guard, slot))) !=
		     SG_SLOT_FREE && sg_ticks() - start < 50000000;)
			sg_sleep_us(200);
	p->deaths++;
}

static void leave(struct player *p)
{
	tkeeper_end(&p->keeper);
	memset(p->m.using, 0, sizeof(p->m.using));
	sg_leave(&p->m.t.v);
}

static void come_again(struct player *p)
{
	if (rng_chance(&p->rng, 80))
		die(p);
	else
		leave(p);
	enter(p);
	model_again(&p->m);
	if (rng_chance(&p->rng, 20))
		model_compare(&p->m);
}

static void *play(void *arg)
{
	struct player *p = arg;
	u64 i;

	for (i = 1; i <= ops / SYSTEMS; i++) {
		if (rng_chance(&p->rng, 4))
			use_common(p);
		if (rng_below(&p->rng, 2 * every) == 0)
			tsys_grow(&p->m.t.v, SG_CHUNK);
		model_step(&p->m);
		if (rng_below(&p->rng, every) == 0)
			come_again(p);
	}
	model_compare(&p->m);
	return NULL;
}

/* --- run -------------------------------------------------------------------------------------- */

static void setup(struct player *p)
{
	struct tsys s;
	char name[20];
	unsigned int i;

	mem = tsys_volume_in(size / 4 * 3, size);
	CHECK_OK(sg_open(&guard, mem, size, false, NULL));
	tsys_join(&s, mem, size, 9);
	test_create(&s.v, &s.root, "common", S_IFDIR | 0700);
	test_create(&s.v, &s.root, "hub", S_IFREG | 0600);
	for (i = 0; i < SYSTEMS; i++) {
		sprintf(name, "own-%u", i);
		test_create(&s.v, &s.root, name, S_IFDIR | 0755);
	}
	tsys_leave(&s);
	for (i = 0; i < SYSTEMS; i++) {
		p[i].n = i;
		p[i].rng.state = seed * 101 + i;
		enter(&p[i]);
		sprintf(name, "own-%u", i);
		p[i].own = test_lookup(&p[i].m.t.v, &p[i].m.t.root, name);
		p[i].common = test_lookup(&p[i].m.t.v, &p[i].m.t.root, "common");
		p[i].hub = test_lookup(&p[i].m.t.v, &p[i].m.t.root, "hub");
		model_share(&p[i].m, &p[i].own, seed * 1009 + i);
	}
}

/* Checks that one system counts as many inodes and links as all models together. */
static void count_all(struct player *p)
{
	u64 inodes = 1 + 2, links = 1, start = sg_ticks();
	struct sg_statfs st;
	struct sg_attr a;
	unsigned int i, k;

	for (i = 0; i < SYSTEMS; i++) {
		inodes += p[i].m.inodes;
		for (k = 0; k < NAMES; k++)
			links += p[i].linked[k];
	}
	do {	/* waits until inodes without a name of dead systems are freed */
		CHECK_OK(sg_statfs(&p[0].m.t.v, &st));
	} while (st.used_inodes != inodes && sg_ticks() - start < 10000000000ULL);
	CHECK_EQ(st.used_inodes, inodes);
	CHECK_OK(sg_getattr(&p[0].m.t.v, &p[0].hub, &a));
	CHECK_EQ(a.nlink, links);
	CHECK_OK(sg_getattr(&p[0].m.t.v, &p[0].common, &a));
	CHECK_EQ(a.entries, links - 1);
}

/*
 * Checks the volume. No system reclaims meanwhile, as the check reads deferred frees first, and
 * free pages later.
 */
static void check_at_rest(struct player *p)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++)
		tkeeper_end(&p[i].keeper);
	test_clean(mem, size);
	for (i = 0; i < SYSTEMS; i++)
		tkeeper_start(&p[i].keeper, &p[i].m.t.v);
}

/* Ends the test. The last systems to leave reclaim all deferred frees. */
static void end(struct player *p, u64 free_at_first)
{
	struct sg_statfs st;
	unsigned int i, k;
	char name[30];

	count_all(p);
	check_at_rest(p);
	for (i = 0; i < SYSTEMS; i++) {
		for (k = 0; k < NAMES; k++)
			if (p[i].linked[k])
				CHECK_OK(sg_unlink(&p[i].m.t.v, &p[i].common, name,
						   link_name(&p[i], k, name), 1));
		model_drop(&p[i].m);
	}
	for (i = SYSTEMS; i-- > 1;)
		leave(&p[i]);
	sg_settle(&p[0].m.t.v);
	CHECK_OK(sg_statfs(&p[0].m.t.v, &st));
	CHECK_EQ(st.used_inodes, 1 + 2 + SYSTEMS);
	/* all pages are free again, except those of the inode file, ledgers and buckets */
	free_at_first += (sg_size(&p[0].m.t.v) - size / 4 * 3) / SG_PAGE;
	CHECK(st.free_pages <= free_at_first && st.free_pages > free_at_first * 9 / 10);
	leave(&p[0]);
	test_clean(mem, size);
	test_unmap(mem, size);
}

static void run(u64 bytes, u64 n)
{
	static struct player p[SYSTEMS];
	u64 done = 0, full = 0, deaths = 0;
	pthread_t id[SYSTEMS];
	struct sg_statfs st;
	unsigned int i;

	size = bytes;
	ops = n;
	memset(p, 0, sizeof(p));
	setup(p);
	CHECK_OK(sg_statfs(&p[0].m.t.v, &st));
	for (i = 0; i < SYSTEMS; i++)
		CHECK_OK(pthread_create(&id[i], NULL, play, &p[i]));
	for (i = 0; i < SYSTEMS; i++) {
		CHECK_OK(pthread_join(id[i], NULL));
		done += p[i].m.done;
		full += p[i].m.full;
		deaths += p[i].deaths;
	}
	printf("%3" PRIu64 " MiB: %" PRIu64 " operations, %" PRIu64 " changes, %" PRIu64
	       " on a full volume, %" PRIu64 " deaths; grown to %" PRIu64 " MiB\n", size >> 20, ops,
	       done, full, deaths, sg_size(&p[0].m.t.v) >> 20);
	CHECK(sg_size(&p[0].m.t.v) > size / 4 * 3);
	fflush(stdout);
	end(p, st.free_pages);
}

int main(void)
{
	u64 n = test_amount(8000, 1000000, 20000000);

	seed = test_seed();
	tlog_catch();
	every = n / SYSTEMS / 100 + 1;
	run(64 << 20, n / 20);		/* full most of the time: systems wait for each other */
	run(512 << 20, n - n / 20);
	return test_done();
}
