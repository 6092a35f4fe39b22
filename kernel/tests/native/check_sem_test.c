// SPDX-License-Identifier: Apache-2.0
/*
 * The checker and the file of shared semaphores. The checker finds an invalid object and removes
 * it; the other objects stay. Volatile words may have any value. The volume is clean afterwards.
 */
#include "sem_util.h"

#define OBJECTS	12

static struct tvol t;
static struct sg_sem_record *rec[OBJECTS];
/*
 * entries of the file's table, for the page of object 3's words, and the first and last page of
 * RING
 */
static u64 *words_entry, *data_entry[2];
#define RING	6

static const char *name_of(unsigned int i)
{
	static char name[12];

	sprintf(name, "n%u", i);
	return name;
}

static struct sg_sem_new kind(unsigned int i)
{
	unsigned int type = 1 + i % (SG_SEM_KINDS - 1);

	return new_of(type, i & 1 || type == SG_SEM_RING ? SG_SEM_MAPPED : 0,
		      type == SG_SEM_RING ? SG_RING_MIN : 3);
}

/* Returns the entry of a system file's page in its table. */
static u64 *entry_of(const struct sg_vol *v, u64 page)
{
	const struct sg_iref file = sg_sem_file();
	u64 root = sg_iget(v, &file, table), off;
	unsigned int level = SG_ROOT_HEIGHT(root);
	u64 *e = NULL;

	CHECK_EQ(sg_root_kind(v, root, &off), SG_ENTRY_TABLE);
	for (; level; level--) {
		e = (u64 *)sg_at(v, off) + page / sg_level_pages(level) % SG_TABLE_ENTRIES;
		sg_entry_kind(v, *e, level, &off);
	}
	return e;
}

static void make(void)
{
	unsigned int i;

	tvol_make(&t, 32ULL << 20);
	for (i = 0; i < OBJECTS; i++) {
		struct sg_sem sem;

		CHECK_OK(try_create(&t.v, name_of(i), kind(i), true, &sem));
		rec[i] = sg_sem_record(&t.v, &sem);
		if (i == 3 || i == RING) {
			u64 page = sg_sem_chain(rec[i]->hash), in = sem.rec & (SG_PAGE - 1);
			unsigned int k = (unsigned int)(in / sizeof(struct sg_sem_record)) - 1;

			if (i == 3)
				words_entry = entry_of(&t.v, sg_sem_words_page(page, k));
			data_entry[0] = entry_of(&t.v, sg_sem_ring_page(page, k));
			data_entry[1] = data_entry[0] + SG_RING_MIN / SG_PAGE - 1;
		}
		sg_sem_close(&t.v, &sem);
	}
	tvol_leave(&t);
}

static unsigned int orphans;	/* findings of data without a ring */

static void note(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	(void)ino;
	(void)off;
	(void)fixed;
	if (strstr(what, "semaphore"))
		++*(unsigned int *)ctx;
	if (strstr(what, "belongs to no ring"))
		orphans++;
}

static struct sg_check_result check(enum sg_check_mode mode, unsigned int *said)
{
	struct sg_check_opts opts = { .mode = mode, .id = &test_identity, .force = true,
		.report = note, .ctx = said, .holding = test_end_lapses };
	struct sg_check_result res;

	*said = 0;
	CHECK_OK(sg_check(t.mem, t.size, &opts, &res));
	return res;
}

/* Checks that all objects are unchanged, except @lost. A negative @lost is none. */
static void others_stay(int lost)
{
	struct sg_sem_stat st;
	unsigned int i;
	int err;

	tvol_join(&t);
	for (i = 0; i < OBJECTS; i++) {
		err = sg_sem_stat(&t.v, name_of(i), (u32)strlen(name_of(i)), &st);
		CHECK_EQ(err, (int)i == lost ? -ENOENT : 0);
		CHECK(err || (st.type == kind(i).type && st.flags == kind(i).flags));
	}
	if (lost >= 0) {	/* its record can be used again */
		struct sg_sem sem = sem_make(&t.v, name_of((unsigned int)lost), SG_SEM_RWLOCK,
					     SG_SEM_MAPPED, 0);

		sg_sem_close(&t.v, &sem);
		CHECK_OK(sem_rm(&t.v, name_of((unsigned int)lost)));
	}
	tvol_leave(&t);
	test_clean(t.mem, t.size);
	test_unmap(t.mem, t.size);
}

static void type(void) { rec[3]->head |= 0x70; }
static void life(void) { rec[3]->head |= 0xff00; }
static void flag(void) { rec[3]->head |= 1ULL << 24; }
static void name(void) { rec[3]->name[1] ^= 8; }
static void no_name(void) { rec[3]->mode = 0600; }
static void long_name(void) { rec[3]->mode |= 0x7ffULL << 32; }
static void hash(void) { rec[3]->hash ^= 1ULL << 50; }
/*
 * Renames the object, and stores the hash of the new name: the record then belongs to another
 * chain.
 */
static void place(void)
{
	rec[3]->name[1] = 'x';
	rec[3]->hash = sg_sem_hash(&t.v, rec[3]->name, (u32)(rec[3]->mode >> 32));
}
static void words(void) { *words_entry = 0; }

static void ring_type(void) { rec[RING]->head ^= SG_SEM_RING ^ 0x70; }
static void ring_size(void) { rec[RING]->initial++; }
static void ring_too_large(void) { rec[RING]->initial = 2 * SG_RING_MAX; }
static void ring_larger(void) { rec[RING]->initial = SG_RING_MAX; }
static void ring_first_page(void) { *data_entry[0] = 0; }
static void ring_last_page(void) { *data_entry[1] = 0; }

static void is_found(void (*damage)(void), const char *what, int lost)
{
	struct sg_check_result res;
	unsigned int said;

	test_note("damage: %s", what);
	make();
	damage();
	res = check(SG_CHECK_ONLY, &said);
	CHECK_EQ(said, 1);
	CHECK(res.found && !res.fixed);
	res = check(SG_CHECK_PREEN, &said);	/* preening leaves this finding to an operator */
	CHECK(res.found > res.fixed && data_entry[0][1]);
	orphans = 0;
	res = check(SG_CHECK_REPAIR, &said);
	CHECK_EQ(said, 1);
	CHECK_EQ(res.found, res.fixed);
	CHECK_EQ(orphans, lost == RING);	/* the repair frees the data of a removed ring */
	others_stay(lost);
}

/* Data without a ring is the only finding, reported once for all of its pages, and freed. */
static void data_alone(bool made_smaller)
{
	struct sg_check_result res;
	unsigned int said;
	u64 used, pages = SG_RING_MIN / SG_PAGE;

	make();
	tvol_join(&t);
	used = sg_free_pages(&t.v);
	tvol_leave(&t);
	if (made_smaller) {	/* data pages behind the ring's end */
		u64 *e = data_entry[1] + 1;

		e[0] = *data_entry[0];
		*data_entry[0] = 0;	/* so no page has two owners; the ring lacks one page */
		check(SG_CHECK_REPAIR, &said);
		others_stay(RING);
		return;
	}
	rec[RING]->head = 0;
	orphans = 0;
	res = check(SG_CHECK_ONLY, &said);
	CHECK(!said && orphans == 1 && res.found && !res.fixed);
	res = check(SG_CHECK_PREEN, &said);
	CHECK_EQ(res.found, res.fixed);
	CHECK_EQ(orphans, 2);
	tvol_join(&t);
	CHECK(sg_free_pages(&t.v) >= used + pages);
	tvol_leave(&t);
	others_stay(RING);
}

/* Volatile words with allowed values are no finding. */
static void is_no_finding(void)
{
	struct sg_check_result res;
	unsigned int said;

	make();
	rec[3]->users = ~0ULL;
	rec[3]->waits.waiters = 0x123456;
	rec[3]->waits.last = 999;
	rec[3]->unclean = 7;
	rec[4]->words.word = ~0ULL;
	rec[5]->owner = ~0ULL;
	res = check(SG_CHECK_ONLY, &said);
	CHECK_EQ(res.found, 0);
	others_stay(-1);
}

/* No system can hold this lock of a barrier, so a waiter would wait forever. */
static void lock(void)
{
	struct sg_check_result res;
	unsigned int said;

	make();
	rec[4]->lock.word = SG_LOCK_WORD(5, 0xffffff);
	res = check(SG_CHECK_PREEN, &said);
	CHECK_EQ(res.found, 1);
	CHECK_EQ(res.fixed, 1);
	others_stay(-1);
}

#define FOUND(damage)	is_found(damage, #damage, 3)
#define RING_FOUND(damage) is_found(damage, #damage, RING)

int main(void)
{
	FOUND(type);
	FOUND(life);
	FOUND(flag);
	FOUND(name);
	FOUND(no_name);
	FOUND(long_name);
	FOUND(hash);
	FOUND(place);
	FOUND(words);
	RING_FOUND(ring_type);
	RING_FOUND(ring_size);
	RING_FOUND(ring_too_large);
	RING_FOUND(ring_larger);
	RING_FOUND(ring_first_page);
	RING_FOUND(ring_last_page);
	data_alone(false);
	data_alone(true);
	is_no_finding();
	lock();
	return test_done();
}
