// SPDX-License-Identifier: Apache-2.0
#include "test_objects.h"
#include "uapi/semtype.h"

struct sg_sem_new test_object(unsigned int i, bool last_user, bool mapped, u64 initial)
{
	struct sg_sem_new new = { .type = 1 + i % (SG_SEM_KINDS - 1), .life = last_user,
		.flags = mapped ? SG_SEM_MAPPED : 0, .initial = initial, .mode = 0600 };

	if (new.type == SG_SEM_RING) {
		new.flags = SG_SEM_MAPPED | (mapped ? SG_SEM_SINGLE : 0);
		new.initial = SG_RING_MIN;
	}
	return new;
}

void test_use_ring(struct sg_vol *v, struct sg_sem *ring, struct sg_sem_caller *c, u64 until,
		   u64 size)
{
	struct sg_sem part;
	u64 i, off;
	int err;

	CHECK_EQ(sg_sem_ring_part(ring, SG_RING_PARTS, &part), -EINVAL);
	CHECK_OK(sg_sem_ring_part(ring, SG_RING_LOCK, &part));
	err = sg_sem_lock(v, &part, c, until);
	sg_sem_ring_sweep(v, ring);
	if (!err || err == -EOWNERDEAD) {
		sg_sem_consistent(v, &part, c);
		sg_sem_unlock(v, &part, c);	/* fails if a peer has cleared the lock */
	}
	if (!sg_sem_ring_reader(v, ring, until))
		CHECK(ring->cell >= SG_SEM_CELL_FIRST && ring->cell < SG_SEM_CELLS);
	for (i = SG_RING_TAIL; i < SG_RING_PARTS; i++) {
		CHECK_OK(sg_sem_ring_part(ring, (unsigned int)i, &part));
		sg_sem_await(v, &part, c, SG_SEMW_COUNT, until);
		sg_sem_advance(v, &part, i + 1);
	}
	for (i = 0; i <= ring->size / SG_PAGE; i++) {
		off = sg_sem_ring_at(v, ring, i);
		CHECK(off < size && !(off % SG_PAGE));
	}
	CHECK_EQ(off, 0);	/* no page exists behind the last one */
}
