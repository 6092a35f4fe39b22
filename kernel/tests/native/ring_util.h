/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system that uses a ring without libstargate: by the operations of uapi/ringword.h on the
 * volume's memory, and by the engine. A test defines _GNU_SOURCE before it includes this file.
 */
#ifndef SG_RING_UTIL_H
#define SG_RING_UTIL_H

#include <sys/mman.h>
#include "sem_util.h"
#include "uapi/ringword.h"

/**
 * struct ring_user - a ring that is open in one thread
 */
struct ring_user {
	struct sg_vol *v;
	struct sg_sem sem, lock, tail, room;
	struct sg_sem_caller *c;
	struct sg_ring w;
	void *twice;
};

static inline struct sg_sem_new ring_new(u64 size, unsigned int flags)
{
	return new_of(SG_SEM_RING, SG_SEM_MAPPED | flags, size);
}

/* Maps the ring's data twice, one after the other, like a process. */
static inline void ring_map(struct ring_user *u)
{
	u64 pages = u->sem.size / SG_PAGE, i;
	u8 *at = mmap(NULL, 2 * u->sem.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	for (i = 0; i < 2 * pages; i++)
		CHECK(mremap(sg_at(u->v, sg_sem_ring_at(u->v, &u->sem, i % pages)), 0, SG_PAGE,
			     MREMAP_MAYMOVE | MREMAP_FIXED, at + i * SG_PAGE) != MAP_FAILED);
	u->twice = at;
	u->w = (struct sg_ring){ .page = sg_at(u->v, u->sem.words), .data = at,
		.grains = u->sem.size / SG_RING_GRAIN, .single = u->sem.flags & SG_SEM_SINGLE };
}

static inline void ring_use(struct ring_user *u, struct sg_vol *v, const char *name, u32 tid)
{
	*u = (struct ring_user){ .v = v, .sem = sem_of(v, name), .c = caller_of(v, tid) };
	CHECK_OK(sg_sem_ring_part(&u->sem, SG_RING_LOCK, &u->lock));
	CHECK_OK(sg_sem_ring_part(&u->sem, SG_RING_TAIL, &u->tail));
	CHECK_OK(sg_sem_ring_part(&u->sem, SG_RING_ROOM, &u->room));
	ring_map(u);
}

static inline void ring_end(struct ring_user *u)
{
	munmap(u->twice, 2 * u->sem.size);
	caller_end(u->v, u->c);
	sg_sem_close(u->v, &u->sem);
}

/* Takes the ring's lock, and returns memory for a record of @len bytes. */
static inline u8 *ring_begin(struct ring_user *u, u64 len, u64 *tail)
{
	u64 n = sg_ringw_grains(len);
	enum sg_ring_result res;
	int err = sg_sem_lock(u->v, &u->lock, u->c, SG_SEM_NEVER);

	if (err == -EOWNERDEAD)
		err = sg_sem_consistent(u->v, &u->lock, u->c);
	CHECK_OK(err);
	*tail = sg_ringw_tail(&u->w);
	while ((res = sg_ringw_room(&u->w, *tail, n)) == SG_RING_NONE) {
		u64 count = sg_ringw_want_room(&u->w);

		res = sg_ringw_room(&u->w, *tail, n);
		if (res != SG_RING_NONE)
			break;
		err = sg_sem_await(u->v, &u->room, u->c, count, in_ms(50));
		if (err == -ETIMEDOUT)
			err = sg_sem_ring_sweep(u->v, &u->sem);
		CHECK_OK(err);
	}
	CHECK_EQ(res, SG_RING_OK);
	return (u8 *)(sg_ringw_record(&u->w, *tail) + 1);
}

static inline void ring_commit(struct ring_user *u, u64 tail, u64 len, u32 tag)
{
	enum sg_ring_result res = sg_ringw_commit(&u->w, tail, len, tag);

	if (res == SG_RING_ASK)
		CHECK_OK(sg_sem_advance(u->v, &u->tail, sg_ringw_grains(len)));
	else
		CHECK_EQ(res, SG_RING_OK);
}

static inline void ring_unlock(struct ring_user *u)
{
	CHECK_OK(sg_sem_unlock(u->v, &u->lock, u->c));
}

static inline void ring_give(struct ring_user *u)
{
	if (sg_ringw_release(&u->w) && !sg_ringw_tell(&u->w))
		CHECK_OK(sg_sem_advance(u->v, &u->room, 1));
}

/* Claims at most @most records. Returns their number, or 0 if none came until @until. */
static inline unsigned int ring_take_many(struct ring_user *u, struct sg_ring_claim *c,
					  unsigned int most, u64 until)
{
	unsigned int n;
	enum sg_ring_result res;
	int err;

	if (!u->w.cell) {
		CHECK_OK(sg_sem_ring_reader(u->v, &u->sem, ~0ULL));
		u->w.cell = u->sem.cell;
	}
	for (;;) {
		res = sg_ringw_claim_many(&u->w, ~0u, c, most, &n);
		if (res == SG_RING_OK)
			return n;
		if (sg_load64(u->w.page + u->w.cell))
			ring_give(u);
		CHECK(res == SG_RING_NONE || res == SG_RING_BUSY);
		err = sg_sem_await(u->v, &u->tail, u->c,
				   SG_RING_HEAD_POS(sg_load64(u->w.page + SG_RING_HEAD)) + 1, until);
		if (err == -ETIMEDOUT)
			return 0;
		CHECK_OK(err);
	}
}

#endif
