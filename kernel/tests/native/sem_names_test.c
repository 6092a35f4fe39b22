// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores by name: valid names, valid objects, the life of objects when threads,
 * processes or systems die, many objects, and refusals on a full volume.
 */
#include "sem_pair.h"

/* pages of the file without objects: members of two systems, bells, and their tables */
#define NO_OBJECTS	8

static u64 pages_of_file(void)
{
	const struct sg_iref file = sg_sem_file();

	return sg_iget(&t.v, &file, blocks);
}

/* --- names ------------------------------------------------------------------------------------ */

static void names(void)
{
	static const struct {
		const char *name;
		u32 len;
		int err;
	} bad[] = {
		{ "", 0, -EINVAL }, { "a/b", 3, -EINVAL }, { "a\0b", 3, -EINVAL }, { "/", 1, -EINVAL },
	};
	struct sg_sem_new new = new_of(SG_SEM_COUNT, 0, 1);
	char longest[SG_SEM_NAME_MAX + 2];
	struct sg_sem sem, again;
	unsigned int i;

	begin();
	for (i = 0; i < SG_ARRAY_SIZE(bad); i++) {
		CHECK_EQ(sg_sem_create(&t.v, bad[i].name, bad[i].len, &new, false, false, &sem),
			 bad[i].err);
		CHECK_EQ(sg_sem_open(&t.v, bad[i].name, bad[i].len, 0, false, &sem), bad[i].err);
		CHECK_EQ(sg_sem_unlink(&t.v, bad[i].name, bad[i].len, SG_SEM_ANY), bad[i].err);
	}
	memset(longest, 'x', sizeof(longest));
	CHECK_EQ(sg_sem_create(&t.v, longest, SG_SEM_NAME_MAX + 1, &new, true, false, &sem),
		 -ENAMETOOLONG);
	CHECK_OK(sg_sem_create(&t.v, longest, SG_SEM_NAME_MAX, &new, true, false, &sem));
	CHECK_EQ(sg_sem_create(&t.v, longest, SG_SEM_NAME_MAX, &new, true, false, &again), -EEXIST);
	CHECK_OK(sg_sem_open(&other, longest, SG_SEM_NAME_MAX, SG_SEM_COUNT, false, &again));
	CHECK_EQ(again.rec, sem.rec);
	CHECK_EQ(again.words, sem.words);
	sg_sem_close(&other, &again);
	CHECK_EQ(sg_sem_open(&other, longest, SG_SEM_NAME_MAX, SG_SEM_MUTEX, false, &again),
		 -EINVAL);
	CHECK_EQ(try_open(&other, "x", 0, false, &again), -ENOENT);
	CHECK_EQ(sem_rm(&other, "x"), -ENOENT);
	sg_sem_close(&t.v, &sem);
	CHECK_OK(sg_sem_unlink(&other, longest, SG_SEM_NAME_MAX, SG_SEM_ANY));
	CHECK_EQ(pages_of_file(), NO_OBJECTS);
	end();
}

/*
 * The named object was replaced after the lookup: the call fails, and does not touch the new
 * object.
 */
static void meant(void)
{
	struct sg_sem_stat first, st;
	struct sg_sem sem;

	begin();
	sem = sem_make(&t.v, "m", SG_SEM_COUNT, 0, 3);
	first = stat_of(&other, "m");
	CHECK_EQ(sg_sem_reset(&other, "m", 1, first.serial + 1ULL), -ESTALE);
	CHECK_OK(sg_sem_reset(&other, "m", 1, first.serial));
	sg_sem_close(&t.v, &sem);
	CHECK_OK(sem_rm(&t.v, "m"));
	sem = sem_make(&t.v, "m", SG_SEM_COUNT, 0, 3);
	sg_sem_close(&t.v, &sem);
	st = stat_of(&t.v, "m");
	CHECK(st.serial != first.serial);
	CHECK_EQ(sg_sem_unlink(&other, "m", 1, first.serial), -ESTALE);
	CHECK_EQ(sg_sem_reset(&other, "m", 1, first.serial), -ESTALE);
	CHECK_EQ(stat_of(&t.v, "m").serial, st.serial);
	CHECK_OK(sg_sem_unlink(&other, "m", 1, st.serial));
	CHECK_EQ(sg_sem_unlink(&other, "m", 1, st.serial), -ENOENT);
	end();
}

static void refused(void)
{
	static const struct {
		unsigned int type, life, flags;
		u64 initial;
	} bad[] = {
		{ 0, 0, 0, 0 }, { SG_SEM_TYPES, 0, 0, 0 }, { SG_SEM_COUNT, SG_SEM_LIVES, 0, 0 },
		{ SG_SEM_COUNT, 0, 4, 0 }, { SG_SEM_COUNT, 0, SG_SEM_RECURSIVE, 0 },
		{ SG_SEM_COUNT, 0, 0, SG_SEMW_VALUE + 1 }, { SG_SEM_BARRIER, 0, 0, 0 },
	};
	struct sg_sem sem;
	unsigned int i;

	begin();
	for (i = 0; i < SG_ARRAY_SIZE(bad); i++) {
		struct sg_sem_new new = { .type = bad[i].type, .life = bad[i].life,
			.flags = bad[i].flags, .initial = bad[i].initial };

		CHECK_EQ(try_create(&t.v, "bad", new, true, &sem), -EINVAL);
	}
	/* an object, and the pages that all objects share */
	sem = sem_make(&t.v, "event", SG_SEM_EVENT, 0, 0);
	CHECK_EQ(sg_sem_lock(&t.v, &sem, me, 0), -EINVAL);
	CHECK_EQ(sg_sem_unlock(&t.v, &sem, me), -EINVAL);
	CHECK_EQ(sg_sem_consistent(&t.v, &sem, me), -EINVAL);
	CHECK_EQ(sg_sem_wait(&t.v, &sem, me, 0), -EINVAL);
	CHECK_EQ(sg_sem_post(&t.v, &sem), -EINVAL);
	CHECK_EQ(sg_sem_read_lock(&t.v, &sem, me, 0), -EINVAL);
	CHECK_EQ(sg_sem_read_unlock(&t.v, &sem), -EINVAL);
	CHECK_EQ(sg_sem_write_lock(&t.v, &sem, me, 0), -EINVAL);
	CHECK_EQ(sg_sem_write_unlock(&t.v, &sem, me), -EINVAL);
	CHECK_EQ(sg_sem_drain(&t.v, &sem, me, 0), -EINVAL);
	CHECK_EQ(sg_sem_cond_wait(&t.v, &sem, me, 0, 0), -EINVAL);
	CHECK_EQ(sg_sem_cond_signal(&t.v, &sem, true), -EINVAL);
	CHECK_EQ(sg_sem_meet(&t.v, &sem, me, 0), -EINVAL);
	sg_sem_close(&t.v, &sem);
	sem = sem_make(&t.v, "count", SG_SEM_COUNT, 0, 0);
	CHECK_EQ(sg_sem_advance(&t.v, &sem, 1), -EINVAL);
	CHECK_EQ(sg_sem_await(&t.v, &sem, me, 0, 0), -EINVAL);
	sg_sem_close(&t.v, &sem);
	end();
}

/* A removed object stays while it is open. Its name can immediately be given to another object. */
static void lifetimes(void)
{
	struct sg_sem_new new = new_of(SG_SEM_COUNT, 0, 3);
	struct sg_sem a, b, c;
	u64 pages;

	begin();
	a = sem_make(&t.v, "kept", SG_SEM_COUNT, SG_SEM_MAPPED, 3);
	b = sem_of(&other, "kept");
	pages = pages_of_file();
	CHECK_OK(sem_rm(&other, "kept"));
	CHECK(!sem_there(&t.v, "kept"));
	CHECK_EQ(sem_rm(&t.v, "kept"), -ENOENT);
	CHECK_EQ(pages_of_file(), pages);
	CHECK_OK(sg_sem_wait(&t.v, &a, me, 0));
	CHECK_OK(sg_sem_wait(&other, &b, they, 0));
	c = sem_make(&t.v, "kept", SG_SEM_COUNT, 0, 0);
	CHECK(c.rec != a.rec && c.words != a.words);
	CHECK_EQ(sg_sem_wait(&t.v, &c, me, 0), -EAGAIN);
	CHECK_OK(sg_sem_wait(&t.v, &a, me, 0));
	CHECK_EQ(sg_sem_wait(&other, &b, they, 0), -EAGAIN);
	sg_sem_close(&t.v, &a);
	CHECK_OK(sg_sem_post(&other, &b));
	CHECK_OK(sg_sem_wait(&other, &b, they, 0));
	sg_sem_close(&other, &b);
	CHECK(pages_of_file() < pages);	/* frees the page of the object's words, and its table */
	sg_sem_close(&t.v, &c);
	CHECK(sem_there(&other, "kept"));

	/* this object stays until its last user, on any system, has closed it */
	new.life = SG_SEM_LAST_USER;
	CHECK_OK(try_create(&t.v, "brief", new, true, &a));
	CHECK_OK(try_create(&t.v, "brief", new, false, &b));
	c = sem_of(&other, "brief");
	sg_sem_close(&t.v, &a);
	sg_sem_close(&t.v, &b);
	CHECK(sem_there(&t.v, "brief"));
	sg_sem_close(&other, &c);
	CHECK(!sem_there(&t.v, "brief"));
	CHECK_EQ(try_open(&t.v, "brief", 0, false, &a), -ENOENT);
	end();
}

/* The death of a system that has an object open does not extend the object's life. */
static void lifetimes_of_the_dead(void)
{
	struct sg_sem_new new = new_of(SG_SEM_COUNT, 0, 3);
	struct sg_sem a, b;
	unsigned int turn;

	for (turn = 0; turn < 3; turn++) {
		begin();
		new.life = SG_SEM_LAST_USER;
		CHECK_OK(try_create(&other, "brief", new, true, &a));
		CHECK_OK(try_create(&other, "removed", new_of(SG_SEM_RWLOCK, 0, 0), true, &b));
		CHECK_OK(sem_rm(&t.v, "removed"));
		kill_other(false);
		/* the object stays until the dead system is recovered */
		CHECK(sem_there(&t.v, "brief"));
		CHECK(sg_recover_slot(&t.v, (unsigned int)(t.v.slot + 1)));
		CHECK(!sem_there(&t.v, "brief"));
		if (turn == 0) {		/* a create of the name detects the free slot */
			CHECK_OK(try_create(&t.v, "brief", new, true, &a));
			CHECK_EQ(stat_of(&t.v, "brief").value, 3);
			sg_sem_close(&t.v, &a);
		} else if (turn == 1) {		/* an open by another system detects it */
			CHECK_EQ(try_open(&t.v, "brief", 0, false, &a), -ENOENT);
		}
		join_other();			/* the next system in the slot detects it */
		CHECK_EQ(pages_of_file(), NO_OBJECTS);
		end();
	}
}

struct seen {
	unsigned int n, stop;
	char last[SG_SEM_NAME_MAX + 1];
};

static bool see(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st)
{
	struct seen *s = ctx;

	if (s->stop && s->n == s->stop)
		return false;
	CHECK(st->type == SG_SEM_COUNT && st->uid == 7 && st->gid == 8 && st->mode == 0600);
	CHECK_EQ(st->created, 1234);
	memcpy(s->last, name, len);
	s->last[len] = 0;
	CHECK_EQ(st->value, (u64)atoi(s->last));
	s->n++;
	return true;
}

static void many(void)
{
	u64 n = test_amount(600, 5000, 66000), i, cookie, start, first, last;
	u64 size = SG_ALIGN_UP(SIZE + n * 6000, SG_CHUNK);
	struct seen s = { 0 };
	struct sg_sem sem;
	char name[24];

	tvol_make(&t, size);
	me = caller_of(&t.v, 1);
	first = last = 0;
	for (i = 0; i < n; i++) {
		sprintf(name, "%" PRIu64, i);
		start = sg_ticks();
		sem = sem_make(&t.v, name, SG_SEM_COUNT, 0, i);
		sg_sem_close(&t.v, &sem);
		*(i < n / 4 ? &first : &last) += i < n / 4 || i >= n - n / 4 ? sg_ticks() - start : 0;
	}
	printf("%" PRIu64 " objects made; in the first quarter %" PRIu64 " us each, in the last "
	       "quarter %" PRIu64 " us\n", n, first / (n / 4) / 1000, last / (n / 4) / 1000);
	CHECK(last < 4 * first + 100 * MS);
	cookie = 0;
	CHECK_OK(sg_sem_list(&t.v, &cookie, see, &s));
	CHECK_EQ(s.n, n);
	for (i = 0; i < n; i += 7) {
		sprintf(name, "%" PRIu64, i);
		CHECK_EQ(stat_of(&t.v, name).value, i);
		CHECK_OK(sem_rm(&t.v, name));
		CHECK(!sem_there(&t.v, name));
	}
	s = (struct seen){ 0 };
	cookie = 0;
	CHECK_OK(sg_sem_list(&t.v, &cookie, see, &s));
	CHECK_EQ(s.n, n - (n + 6) / 7);
	caller_end(&t.v, me);
	tvol_recheck(&t);
	for (i = 0; i < n; i++) {
		sprintf(name, "%" PRIu64, i);
		CHECK_EQ(sem_rm(&t.v, name), i % 7 ? 0 : -ENOENT);
	}
	CHECK(pages_of_file() < 8);
	tvol_drop(&t);
}

/* A listing that was stopped continues at the same position. */
static void list_in_pieces(void)
{
	u64 cookie = 0, chain = ~0ULL;
	struct seen s = { .stop = 1 };
	unsigned int i, have = 0, sum = 0;
	struct sg_sem sem;
	char name[24];

	begin();
	/* makes more objects of one chain than a page has room for */
	for (i = 0; have < 20; i++) {
		u64 in;

		sprintf(name, "%u", i);
		in = sg_sem_chain(sg_sem_hash(&t.v, name, (u32)strlen(name)));
		chain = have ? chain : in;
		if (have >= 10 && in != chain)
			continue;
		sem = sem_make(&t.v, name, SG_SEM_COUNT, 0, i);
		sg_sem_close(&t.v, &sem);
		sum += i;
		have++;
	}
	for (i = 0; i < 20; i++) {
		s.n = 0;
		CHECK_OK(sg_sem_list(&t.v, &cookie, see, &s));
		CHECK_EQ(s.n, 1);
		sum -= (unsigned int)atoi(s.last);
	}
	CHECK_EQ(sum, 0);
	s.n = 0;
	CHECK_OK(sg_sem_list(&t.v, &cookie, see, &s));
	CHECK_EQ(s.n, 0);
	end();
}

/* On a full volume no object can be created, and every object can be removed. */
static void full(void)
{
	struct sg_iref file;
	struct sg_statfs st;
	struct sg_sem sem;
	char name[24];
	u64 i, n;
	int err = 0;

	begin();
	t.v.space_wait_ms = 1;
	file = test_create(&t.v, &t.root, "big", 0100600);
	CHECK_OK(sg_statfs(&t.v, &st));
	CHECK_OK(sg_allocate(&t.v, &file, 0, st.free_pages - 60));
	for (n = 0; !err && n < 1000; n++) {
		sprintf(name, "%" PRIu64, n);
		err = try_create(&t.v, name, new_of(SG_SEM_RWLOCK, 0, 0), true, &sem);
		if (!err)
			sg_sem_close(&t.v, &sem);
	}
	CHECK_EQ(err, -ENOSPC);
	CHECK(n > 3);
	for (i = 0; i < n - 1; i++) {
		sprintf(name, "%" PRIu64, i);
		CHECK_OK(sem_rm(&t.v, name));
	}
	CHECK(!sem_there(&t.v, name) || n == 1);
	CHECK_EQ(pages_of_file(), NO_OBJECTS);
	end();
}

int main(void)
{
	names();
	meant();
	refused();
	lifetimes();
	lifetimes_of_the_dead();
	many();
	list_in_pieces();
	full();
	return test_done();
}
