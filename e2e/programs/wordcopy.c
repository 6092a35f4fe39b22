// SPDX-License-Identifier: Apache-2.0
/*
 * memcpy as kernels do it on a processor without fast `rep movsb`: by words. A library, to be put
 * before the C library's (LD_PRELOAD), so that a program's copies are those of a kernel.
 */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t len);

void *memcpy(void *to, const void *from, size_t len)
{
	void *at = to;
	size_t words = len / 8;

	len %= 8;
	asm volatile("rep movsq" : "+D" (at), "+S" (from), "+c" (words) : : "memory");
	asm volatile("rep movsb" : "+D" (at), "+S" (from), "+c" (len) : : "memory");
	return to;
}
