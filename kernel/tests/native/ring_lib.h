/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of libstargate's rings over the engine (sem_kernel.h). */
#ifndef SG_RING_LIB_H
#define SG_RING_LIB_H

#include "sem_kernel.h"
#include "lib.h"
#include "uapi/ringword.h"

#define KIB	1024ULL

static u8 buf[64 * KIB], out[64 * KIB];

static inline stargate_ring *ring_make(const char *name, u64 size, unsigned int flags)
{
	const struct stargate_new what = { .type = STARGATE_RING, .flags = flags, .mode = 0600,
					   .initial = size };
	stargate_ring *r;

	CHECK_OK(stargate_ring_create(&r, at[0], name, &what, STARGATE_EXCLUSIVE));
	return r;
}

static inline stargate_ring *ring_have(unsigned int system, const char *name)
{
	stargate_ring *r;

	CHECK_OK(stargate_ring_open(&r, at[system], name));
	return r;
}

static inline struct stargate_ring_stat state_of(stargate_ring *r)
{
	struct stargate_ring_stat st;

	CHECK_OK(stargate_ring_fstat(r, &st));
	return st;
}

static inline void fill(u8 *to, u64 len, u64 seed)
{
	struct rng rng = { seed };

	rng_fill(&rng, to, len);
}

/* Returns the words of the ring's page in the volume. */
static inline u64 *words_of(const char *name)
{
	struct sg_sem sem = sem_of(&sys[0].v, name);
	u64 *page = sg_at(&sys[0].v, sem.words);

	sg_sem_close(&sys[0].v, &sem);
	return page;
}

static inline void put(stargate_ring *r, u32 tag, u64 len)
{
	fill(buf, len, tag);
	CHECK_OK(stargate_ring_send(r, tag, buf, len, STARGATE_TRY));
}

static inline void get(stargate_ring *r, u32 tag, u64 len)
{
	size_t got;
	u32 said;

	fill(buf, len, tag);
	CHECK_OK(stargate_ring_recv(r, &said, out, sizeof(out), &got, STARGATE_TRY));
	CHECK_EQ(said, tag);
	CHECK_EQ(got, len);
	CHECK(!memcmp(buf, out, len));
}

#endif
