// SPDX-License-Identifier: Apache-2.0
/*
 * Checks writes of every size and alignment, also from memory that is partly missing or not yet
 * present. Also checks that the writer's vector registers keep their values.
 *
 *   copies DIR SEED TURNS      prints "N checks"; after an error, prints the error and exits with 1
 *
 * The program makes every write in a file and in a copy of the file in memory. Both must be equal
 * after the write.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE	4096ul
#define MIB	(1ul << 20)	/* the module copies writes of this size by vectors */
#define ROOM	(4 * MIB)	/* the size of the file, and of the source */

static unsigned char *source, *expected, *seen;
static unsigned long checks, seed;
static int file;

__attribute__((noreturn)) static void wrong(const char *what, size_t at, size_t len, long ret)
{
	printf("%s: %zu bytes at %zu: returned %ld (%s), check %lu\n", what, len, at, ret,
	       strerror(errno), checks);
	exit(1);
}

static unsigned long chance(unsigned long below)
{
	seed = seed * 6364136223846793005ul + 1442695040888963407ul;
	return (seed >> 33) % below;
}

static void fill(void)
{
	for (size_t i = 0; i < ROOM; i += 8)
		*(uint64_t *)(source + i) = (chance(1ul << 31) << 32 | chance(1ul << 31)) + i;
}

/* Checks that the file equals its copy in memory. */
static void compare(const char *what, size_t at, size_t len, long ret)
{
	ssize_t n = pread(file, seen, ROOM, 0);

	if (n != (ssize_t)ROOM || memcmp(seen, expected, ROOM))
		wrong(what, at, len, ret);
	checks++;
}

static size_t some_size(void)
{
	switch (chance(6)) {
	case 0:
		return 1 + chance(300);
	case 1:
		return PAGE * (1 + chance(40));
	case 2:
		return 4000 + chance(300);
	case 3:
		return MIB - 200 + chance(400);
	case 4:
		return MIB + chance(2 * MIB);
	}
	return 1 + chance(300 * 1024);
}

static void write_somewhere(void)
{
	size_t len = some_size(), from = chance(ROOM - len), at = chance(ROOM - len);
	struct iovec parts[2];
	long ret;

	if (chance(2))
		at &= ~(PAGE - 1);
	if (chance(2))
		from &= ~63ul;
	if (chance(4)) {
		ret = pwrite(file, source + from, len, (off_t)at);
	} else {
		parts[0] = (struct iovec){ source + from, len / 2 };
		parts[1] = (struct iovec){ source + from + len / 2, len - len / 2 };
		ret = pwritev(file, parts, 2, (off_t)at);
	}
	if (ret != (long)len)
		wrong("a write", at, len, ret);
	memcpy(expected + at, source + from, len);
	compare("a write", at, len, ret);
}

/*
 * Writes from a source with a missing page. The call may write all or some of the bytes before that
 * page, and no byte behind it.
 */
static void write_up_to_a_hole(void)
{
	size_t at = chance(2) ? 0 : chance(64), hole = 1 + chance(chance(2) ? 60 : 400);
	size_t from = chance(2) ? 0 : chance(PAGE);
	size_t there = hole * PAGE - from, len = there + PAGE * (1 + chance(chance(2) ? 8 : 400));
	long ret;

	if (mprotect(source + hole * PAGE, PAGE, PROT_NONE))
		wrong("mprotect", at, len, -1);
	ret = pwrite(file, source + from, len, (off_t)at);
	if (mprotect(source + hole * PAGE, PAGE, PROT_READ | PROT_WRITE))
		wrong("mprotect", at, len, -1);
	if (ret > (long)there || (ret <= 0 && !(ret == -1 && errno == EFAULT)))
		wrong("a write from a source that ends early", at, len, ret);
	if (ret > 0)
		memcpy(expected + at, source + from, (size_t)ret);
	compare("a write from a source that ends early", at, len, ret);
}

/*
 * Writes from a source whose pages the kernel must first read from a file. The call writes all
 * bytes.
 */
static void write_what_is_not_there_yet(const char *path)
{
	int other = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	size_t len = PAGE * (2 + chance(chance(2) ? 60 : 600));
	unsigned char *p;
	long ret;

	if (other < 0 || pwrite(other, source, len, 0) != (ssize_t)len)
		wrong(path, 0, len, -1);
	p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, other, 0);
	if (p == MAP_FAILED)
		wrong("mmap", 0, len, -1);
	ret = pwrite(file, p, len, 0);
	if (ret != (long)len)
		wrong("a write from a source that is not in memory yet", 0, len, ret);
	memcpy(expected, source, len);
	compare("a write from a source that is not in memory yet", 0, len, ret);
	munmap(p, len);
	close(other);
}

/* Checks that a write leaves the values of the program's vector registers unchanged. */
__attribute__((target("avx"))) static void keep_registers(void)
{
	uint64_t before[16 * 4], after[16 * 4];
	const size_t len = MIB + 64 * PAGE;
	long ret;

	for (int i = 0; i < 16 * 4; i++)
		before[i] = chance(1ul << 31) * 0x9e3779b97f4a7c15ul;
	memset(after, 0, sizeof(after));
#define ALL(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11) x(12) x(13) x(14) x(15)
#define LOAD(n) "vmovdqu " #n "*32(%[before]), %%ymm" #n "\n"
#define KEEP(n) "vmovdqu %%ymm" #n ", " #n "*32(%[after])\n"
	register long r10 asm("r10") = 0;

	asm volatile(ALL(LOAD) "syscall\n" ALL(KEEP) "vzeroupper\n"
		     : "=a" (ret)
		     : "a" (18L /* pwrite64 */), "D" ((long)file), "S" (source), "d" (len),
		       "r" (r10), [before] "r" (before), [after] "r" (after)
		     : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
		       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	if (ret != (long)len || memcmp(before, after, sizeof(before)))
		wrong("vector registers", 0, len, ret);
	memcpy(expected, source, len);
	compare("vector registers", 0, len, ret);
}

static unsigned char *memory(void)
{
	unsigned char *p = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	if (p == MAP_FAILED)
		wrong("memory", 0, ROOM, -1);
	return p;
}

int main(int argc, char **argv)
{
	unsigned long turns = argc == 4 ? strtoul(argv[3], NULL, 0) : 0;
	char path[32], other[32];

	if (!turns || chdir(argv[1])) {
		fprintf(stderr, "usage: copies DIR SEED TURNS\n");
		return 2;
	}
	seed = strtoul(argv[2], NULL, 0);
	snprintf(path, sizeof(path), "copies-%d", (int)getpid());
	snprintf(other, sizeof(other), "/tmp/copies-%d", (int)getpid());
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	source = memory();
	expected = memory();
	seen = memory();
	fill();
	if (file < 0 || pwrite(file, expected, ROOM, 0) != (ssize_t)ROOM)
		wrong(path, 0, ROOM, -1);
	for (unsigned long i = 0; i < turns; i++) {
		write_somewhere();
		write_up_to_a_hole();
		if (i % 8 == 0)
			write_what_is_not_there_yet(other);
		if (__builtin_cpu_supports("avx"))
			keep_registers();
	}
	unlink(path);
	unlink(other);
	printf("%lu checks\n", checks);
	return 0;
}
