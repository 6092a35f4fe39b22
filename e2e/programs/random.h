/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-random numbers (splitmix64). The same first state gives the same numbers everywhere. */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

static uint64_t state;

static uint64_t random64(void)
{
	state += 0x9e3779b97f4a7c15ull;
	uint64_t z = state;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

#endif
