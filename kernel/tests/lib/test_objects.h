/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects of each kind, and the uses of a ring, for tests of damaged and hostile volumes. */
#ifndef SG_TEST_OBJECTS_H
#define SG_TEST_OBJECTS_H

#include "test.h"

/* A new object: number @i has the kind 1 + i modulo the number of kinds. A ring is small. */
struct sg_sem_new test_object(unsigned int i, bool last_user, bool mapped, u64 initial);

/*
 * All that a kernel does with a ring. The ring's words and its record may be forged: each call may
 * fail, but returns, with offsets inside of @size bytes.
 */
void test_use_ring(struct sg_vol *v, struct sg_sem *ring, struct sg_sem_caller *c, u64 until,
		   u64 size);

#endif
