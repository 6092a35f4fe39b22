// SPDX-License-Identifier: Apache-2.0
/*
 * Mutexes and reader-writer locks. The library locks them itself if they are free; otherwise the
 * kernel does.
 */
#include "lib.h"

/* --- mutex ------------------------------------------------------------------------------------ */

static u64 *more_of(const struct stargate_sem *s)
{
	return &((struct sg_semwords *)s->page)->more;
}

static bool is_again(const struct stargate_sem *s, u64 me)
{
	return s->flags & SG_SEM_RECURSIVE && (sg_semw_load(s->page) & SG_SEMW_OWNER) == me;
}

/* As in the engine: if the mutex was reset since @more was loaded, its owner starts a new count. */
static bool count_again(const struct stargate_sem *s, u64 me, u64 more, u64 now)
{
	return is_again(s, me) && sg_semw_cas(more_of(s), more, now) == more;
}

API int stargate_mutex_lock(stargate_sem *s, uint64_t until)
{
	u64 me, more;

	if (!sgl_is_mapped(s, SG_SEM_MUTEX))
		return sgl_do(s, SG_SEM_OP_LOCK, until);
	me = sgl_me(s);
	if (me && sg_semw_take(s->page, me))
		return 0;
	more = sg_semw_load(more_of(s));
	if (me && more < SG_SEMW_VALUE && count_again(s, me, more, more + 1))
		return 0;
	return sgl_do(s, SG_SEM_OP_LOCK, until);
}

API int stargate_mutex_unlock(stargate_sem *s)
{
	u64 me, more;

	if (!sgl_is_mapped(s, SG_SEM_MUTEX))
		return sgl_do(s, SG_SEM_OP_UNLOCK, 0);
	me = sgl_me(s);
	more = sg_semw_load(more_of(s));
	/* a count above the limit is invalid: another member has stored it */
	if (s->flags & SG_SEM_RECURSIVE && me && more && more <= SG_SEMW_VALUE)
		return count_again(s, me, more, more - 1) ? 0 : sgl_do(s, SG_SEM_OP_UNLOCK, 0);
	return me && sg_semw_give(s->page, me) ? 0 : sgl_do(s, SG_SEM_OP_UNLOCK, 0);
}

API int stargate_consistent(stargate_sem *s)
{
	return sgl_do(s, SG_SEM_OP_CONSISTENT, 0);
}

/* --- reader-writer lock ----------------------------------------------------------------------- */

API int stargate_read_lock(stargate_sem *s, uint64_t until)
{
	if (sgl_is_mapped(s, SG_SEM_RWLOCK) && s->cell && sg_semw_read(s->page, s->cell))
		return 0;
	return sgl_do(s, SG_SEM_OP_READ, until);
}

API int stargate_read_unlock(stargate_sem *s)
{
	if (!sgl_is_mapped(s, SG_SEM_RWLOCK) || !s->cell)
		return sgl_do(s, SG_SEM_OP_READ_END, 0);
	if (!sg_semw_load(s->cell))
		return EPERM;
	return sg_semw_unread(s->page, s->cell) ? 0 : sgl_do(s, SG_SEM_OP_RING, 0);
}

API int stargate_write_lock(stargate_sem *s, uint64_t until)
{
	u64 me = sgl_is_mapped(s, SG_SEM_RWLOCK) ? sgl_me(s) : 0;

	if (!me || !sg_semw_take(s->page, me))
		return sgl_do(s, SG_SEM_OP_WRITE, until);
	return sg_semw_no_readers(s->page) ? 0 : sgl_do(s, SG_SEM_OP_DRAIN, until);
}

API int stargate_write_unlock(stargate_sem *s)
{
	u64 me = sgl_is_mapped(s, SG_SEM_RWLOCK) ? sgl_me(s) : 0;

	return me && sg_semw_give(s->page, me) ? 0 : sgl_do(s, SG_SEM_OP_WRITE_END, 0);
}
