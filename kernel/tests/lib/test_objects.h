/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects of each kind, and uses of a ring, for tests of damaged and hostile volumes. */
#ifndef SG_TEST_OBJECTS_H
#define SG_TEST_OBJECTS_H

#include "test.h"

/*
 * Returns the parameters of object @i, whose kind is 1 + i modulo the number of kinds. Rings are
 * small.
 */
struct sg_sem_new test_object(unsigned int i, bool last_user, bool mapped, u64 initial);

/*
 * Does all operations of a kernel on a ring. The ring's words and its record may be forged: each
 * call may fail, but returns, with offsets below @size.
 */
void test_use_ring(struct sg_vol *v, struct sg_sem *ring, struct sg_sem_caller *c, u64 until,
		   u64 size);

#endif
