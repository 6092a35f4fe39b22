// SPDX-License-Identifier: Apache-2.0
/* Semaphores, conditions, barriers, event counters. */
#include "lib.h"

/* --- semaphore -------------------------------------------------------------------------------- */

API int stargate_sem_wait(stargate_sem *s, uint64_t until)
{
	if (sgl_is_mapped(s, SG_SEM_COUNT) && sg_semw_down(s->page))
		return 0;
	return sgl_do(s, SG_SEM_OP_WAIT, until);
}

API int stargate_sem_post(stargate_sem *s)
{
	if (sgl_is_mapped(s, SG_SEM_COUNT) && sg_semw_up(s->page))
		return 0;
	return sgl_do(s, SG_SEM_OP_POST, 0);
}

/* --- event counter ---------------------------------------------------------------------------- */

/* While no thread sleeps, the word is the count and nothing else. */
static bool count_up(u64 *word, u64 by)
{
	u64 seen = sg_semw_load(word), old;

	for (; seen <= SG_SEMW_COUNT && by <= SG_SEMW_COUNT - seen; seen = old) {
		old = sg_semw_cas(word, seen, seen + by);
		if (old == seen)
			return true;
	}
	return false;
}

API int stargate_cond_look(stargate_sem *s, uint64_t *seen)
{
	*seen = 0;
	if (!sgl_is_mapped(s, SG_SEM_COND))
		return sgl_ask(s, SG_SEM_OP_COND_LOOK, seen, 0);
	*seen = sg_semw_count(s->page);
	return 0;
}

API int stargate_cond_wait_from(stargate_sem *s, uint64_t seen, uint64_t until)
{
	return sgl_ask(s, SG_SEM_OP_COND_WAIT, &seen, until);
}

API int stargate_cond_wait(stargate_sem *s, stargate_sem *mutex, uint64_t until)
{
	uint64_t seen;
	int err = stargate_cond_look(s, &seen), again;

	if (!err)
		err = stargate_mutex_unlock(mutex);
	if (err)
		return err;
	err = stargate_cond_wait_from(s, seen, until);
	do
		again = stargate_mutex_lock(mutex, STARGATE_FOREVER);
	while (again == EINTR);
	return again ? again : err;
}

API int stargate_cond_signal(stargate_sem *s)
{
	if (sgl_is_mapped(s, SG_SEM_COND) && count_up(s->page, 1))
		return 0;
	return sgl_do(s, SG_SEM_OP_SIGNAL, 0);
}

API int stargate_cond_broadcast(stargate_sem *s)
{
	if (sgl_is_mapped(s, SG_SEM_COND) && count_up(s->page, 1))
		return 0;
	return sgl_do(s, SG_SEM_OP_BROADCAST, 0);
}

API int stargate_barrier_wait(stargate_sem *s, uint64_t until, int *last)
{
	u64 value = 0;
	int err = sgl_ask(s, SG_SEM_OP_MEET, &value, until);

	if (last)
		*last = !err && value;
	return err;
}

API int stargate_event_advance(stargate_sem *s, uint64_t by)
{
	if (sgl_is_mapped(s, SG_SEM_EVENT) && count_up(s->page, by))
		return 0;
	return sgl_ask(s, SG_SEM_OP_ADVANCE, &by, 0);
}

API int stargate_event_read(stargate_sem *s, uint64_t *count)
{
	struct stargate_stat st;
	int err;

	if (s->type != SG_SEM_EVENT)
		return EINVAL;
	if (s->page) {
		*count = sg_semw_count(s->page);
		return 0;
	}
	err = stargate_fstat(s, &st);
	if (!err)
		*count = st.value;
	return err;
}

API int stargate_event_await(stargate_sem *s, uint64_t count, uint64_t until)
{
	if (sgl_is_mapped(s, SG_SEM_EVENT) && sg_semw_count(s->page) >= count)
		return 0;
	return sgl_ask(s, SG_SEM_OP_AWAIT, &count, until);
}
