/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what N processors do to each other's cache lines (counter.c). */
#ifndef LINES_COUNTER_H
#define LINES_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#define CORES	64

/**
 * struct lines_sum - what operations cost, in all
 * @rmws: atomic read-modify-writes. @moved: lines fetched although another core had them.
 * @inval: copies in other cores that stores made void. @fences: sg_fence().
 * @backs: lines written back. @graces: waits for the end of all looks (sg_look_wait()).
 */
struct lines_sum {
	uint64_t rmws, moved, inval, fences, backs, graces;
};

void lines_init(void);		/* empty caches */
void lines_core(unsigned int core);	/* the core that the only thread plays from now on */
void lines_count(bool on);		/* sums are empty when it begins */
const struct lines_sum *lines_sum(void);
/* The line that moved most; its @moves. NULL: no line moved. */
const void *lines_most(uint64_t *moves);
/* Calls @each for all lines that moved or were changed by atomic operations. */
void lines_each(void (*each)(const void *line, uint64_t moved, uint64_t rmws));

#endif
