// SPDX-License-Identifier: Apache-2.0
/*
 * Damages records, words and owners of shared semaphores. Then lists, opens, uses, removes and
 * makes objects. Each call may fail, but must return soon.
 */
#include "fuzz.h"

static struct sg_sem_caller me;

static bool emit(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st)
{
	unsigned int *n = ctx;

	(void)name;
	CHECK(len && len <= SG_SEM_NAME_MAX && st->type && st->type < SG_SEM_KINDS);
	return ++*n < 1000;
}

static void use(struct sg_vol *v, struct sg_sem *s, u64 until)
{
	struct sg_sem_stat st;
	u64 seen;
	int err;

	sg_sem_fstat(v, s, &st);
	switch (s->type) {
	case SG_SEM_MUTEX:
		err = sg_sem_lock(v, s, &me, until);
		if (!err || err == -EOWNERDEAD) {
			sg_sem_consistent(v, s, &me);
			CHECK(sg_sem_unlock(v, s, &me) != -EPERM);
		}
		break;
	case SG_SEM_COUNT:
		sg_sem_wait(v, s, &me, until);
		sg_sem_post(v, s);
		break;
	case SG_SEM_RWLOCK:
		err = sg_sem_read_lock(v, s, &me, until);
		if (!err || err == -EOWNERDEAD)
			CHECK(sg_sem_read_unlock(v, s) != -EPERM);
		err = sg_sem_write_lock(v, s, &me, until);
		if (!err || err == -EOWNERDEAD)
			CHECK(sg_sem_write_unlock(v, s, &me) != -EPERM);
		break;
	case SG_SEM_COND:
		sg_sem_cond_prepare(v, s, &seen);
		sg_sem_cond_wait(v, s, &me, seen, until);
		sg_sem_cond_signal(v, s, true);
		break;
	case SG_SEM_BARRIER:
		sg_sem_meet(v, s, &me, until);
		break;
	case SG_SEM_EVENT:
		sg_sem_await(v, s, &me, ~0ULL, until);
		sg_sem_advance(v, s, 3);
		break;
	case SG_SEM_RING:
		test_use_ring(v, s, &me, until, FUZZ_SIZE);
		break;
	}
	sg_sem_ring(v, s);
}

static void one_object(struct sg_vol *v, unsigned int i, u8 script)
{
	struct sg_sem_new new = test_object(i + script, script & 1, script & 2, 2);
	struct sg_sem_stat st;
	struct sg_sem sem;
	char name[12];
	u32 len;

	sprintf(name, "%u", i);
	len = (u32)strlen(name);
	sg_sem_stat(v, name, len, &st);
	if (!sg_sem_open(v, name, len, 0, i & 1, &sem)) {
		use(v, &sem, script & 8 && i == 3 ? sg_ticks() + 1000000 : 0);
		if (script & 4)
			sg_sem_unlink(v, name, len, SG_SEM_ANY);
		sg_sem_close(v, &sem);
	}
	if (script & 16)
		sg_sem_reset(v, name, len, SG_SEM_ANY);
	if (script & 32)
		sg_sem_unlink(v, name, len, SG_SEM_ANY);
	if (!sg_sem_create(v, name, len, &new, script & 64, true, &sem)) {
		use(v, &sem, 0);
		if (i & 1)
			sg_sem_close(v, &sem);
	}
}

static void use_all(struct sg_vol *v, u8 script)
{
	unsigned int i, n = 0;
	u64 cookie = 0;

	sg_sem_list(v, &cookie, emit, &n);
	if (sg_sem_enter(v, 5, 6, "fuzz", &me))
		return;
	for (i = 0; i < FUZZ_OBJECTS; i++)
		one_object(v, i, (u8)(script + i));
	sg_sem_exit(v, &me);
	sg_sem_list(v, &cookie, emit, &n);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u8 *mem = fuzz_volume(data, size, FZ_SEMS);
	struct sg_vol v;

	if (!mem || !fuzz_join(&v, mem, false))
		return 0;
	v.space_wait_ms = 1;
	use_all(&v, fuzz_script(data, size));
	sg_abandon(&v);
	if (!fuzz_join(&v, mem, false))
		return 0;
	v.space_wait_ms = 1;
	use_all(&v, (u8)(fuzz_script(data, size) * 7));
	sg_leave(&v);
	return 0;
}
