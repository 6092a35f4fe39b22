// SPDX-License-Identifier: Apache-2.0
/*
 * Measures several ways to copy data to memory. The result shows for which sizes stores past this
 * processor's caches are faster, and for which sizes vectors are faster.
 *
 *   crossover [ROUNDS]   prints "copy WAY SIZE NS-WRITTEN NS-WRITTEN-AND-READ"; each time is the
 *                        median of all rounds
 *
 * In each way, the data leaves the caches for memory, and a fence follows. The file system must do
 * this for a writer. The ways are:
 *   cached    the processor's fastest copy, and then each cache line is written back
 *   words     stores of 8 bytes past the caches, as in the kernel's own functions
 *   vectors   stores of 32 bytes past the caches (kernel/module/copy_wide.c)
 *   saved     as vectors, but saves the program's registers before the copy and restores them after
 *             it, as a kernel must
 *
 * No cache has a line of the destination before the write. The read follows the write at once.
 */
#define _GNU_SOURCE
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MIB	(1ul << 20)
#define ROOM	(512 * MIB)	/* more than any cache holds */
#define LARGEST	MIB

static char *target, *source, *sink, *area;
static size_t at;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void copy(void *to, const void *from, size_t len)
{
	asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (len) : : "memory");
}

__attribute__((target("clwb"))) static void cached(char *to, const char *from, size_t len)
{
	copy(to, from, len);
	for (size_t i = 0; i < len; i += 64)
		_mm_clwb(to + i);
	_mm_sfence();
}

static void words(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i += 8)
		_mm_stream_si64((long long *)(to + i), *(const long long *)(from + i));
	_mm_sfence();
}

__attribute__((target("avx"))) static void vectors(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i += 128)
		for (size_t k = 0; k < 128; k += 32)
			_mm256_stream_si256((__m256i *)(to + i + k),
					    _mm256_loadu_si256((const __m256i *)(from + i + k)));
	_mm256_zeroupper();
	_mm_sfence();
}

__attribute__((target("avx,xsave"))) static void saved(char *to, const char *from, size_t len)
{
	for (size_t done = 0; done < len; done += 65536) {
		_xsave64(area, 7);
		vectors(to + done, from + done, len - done < 65536 ? len - done : 65536);
	}
	_xrstor64(area, 7);
}

static const struct way {
	const char *name;
	void (*write)(char *to, const char *from, size_t len);
} ways[] = { { "cached", cached }, { "words", words }, { "vectors", vectors }, { "saved", saved } };

/* Returns an address of which no cache has a line, far from the previous one. */
static char *place(size_t len)
{
	at = (at + 37 * 4096 + ((len + 4095) & ~4095ul)) % (ROOM - LARGEST);
	return target + (at & ~4095ul);
}

static double one(const struct way *w, size_t len, int read)
{
	unsigned int n = len < 65536 ? 512 : 32;
	uint64_t start = now();

	for (unsigned int i = 0; i < n; i++) {
		char *to = place(len);

		w->write(to, source, len);
		if (read)
			copy(sink, to, len);
	}
	return (double)(now() - start) / n;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static char *memory(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	madvise(p, len, MADV_HUGEPAGE);
	memset(p, 1, len);
	return p;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 15;
	size_t count = sizeof(ways) / sizeof(ways[0]);
	static double took[4][2][101];

	if (!rounds || rounds > 101 || !__builtin_cpu_supports("avx")) {
		fprintf(stderr, "usage: crossover [ROUNDS], on a processor with AVX\n");
		return 2;
	}
	target = memory(ROOM);
	source = memory(LARGEST);
	sink = memory(LARGEST);
	area = aligned_alloc(64, 4096);
	memset(area, 0, 4096);
	for (size_t len = 512; len <= LARGEST; len *= 2) {
		for (unsigned int r = 0; r < rounds; r++)
			for (size_t w = 0; w < count; w++)
				for (int read = 0; read < 2; read++)
					took[w][read][r] = one(&ways[w], len, read);
		for (size_t w = 0; w < count; w++) {
			for (int read = 0; read < 2; read++)
				qsort(took[w][read], rounds, sizeof(double), by_size);
			printf("copy %s %zu %.0f %.0f\n", ways[w].name, len, took[w][0][rounds / 2],
			       took[w][1][rounds / 2]);
		}
	}
	return 0;
}
