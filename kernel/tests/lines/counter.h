/* SPDX-License-Identifier: Apache-2.0 */
/* Counts transfers and invalidations of cache lines between N processors (counter.c). */
#ifndef LINES_COUNTER_H
#define LINES_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#define CORES	64

/**
 * struct lines_sum - the total cost of operations
 * @rmws: atomic read-modify-writes. @moved: lines fetched although another core had them.
 * @inval: copies in other cores that stores invalidated. @fences: sg_fence().
 * @backs: lines written back. @graces: waits for the end of all looks (sg_look_wait()).
 */
struct lines_sum {
	uint64_t rmws, moved, inval, fences, backs, graces;
};

void lines_init(void);		/* empties all caches */
/* sets the core as which the only thread acts from now on */
void lines_core(unsigned int core);
void lines_count(bool on);		/* starts or stops counting; a start clears the sums */
const struct lines_sum *lines_sum(void);
/* Returns the line that moved most, and its number of @moves. NULL: no line moved. */
const void *lines_most(uint64_t *moves);
/* Calls @each for all lines that moved or were changed by atomic operations. */
void lines_each(void (*each)(const void *line, uint64_t moved, uint64_t rmws));

#endif
