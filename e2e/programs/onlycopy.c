// SPDX-License-Identifier: Apache-2.0
/*
 * Reduces reads and writes to their copies. This library is loaded before the C library
 * (LD_PRELOAD). Then pread() and pwrite() of a program make no system call. They copy from and to
 * memory that is present since the start of the program. With ONLYCOPY=words, they copy as kernels
 * do on a processor without fast `rep movsb`. Without it, they copy as the C library does.
 * ONLYCOPY_MIB sets the memory for each file.
 *
 * A descriptor selects one of FILES areas. On a machine without caches, two files that share an
 * area cost as much as two files with separate areas.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

#define FILES 8
#define EXPORTED __attribute__((visibility("default")))

static char *memory;
static size_t each;
static int by_words;

__attribute__((constructor)) static void begin(void)
{
	const char *mib = getenv("ONLYCOPY_MIB"), *how = getenv("ONLYCOPY");

	each = (size_t)(mib ? atoi(mib) : 16) << 20;
	by_words = how && !strcmp(how, "words");
	memory = mmap(NULL, FILES * each, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		abort();
}

static void copy(void *to, const void *from, size_t len)
{
	size_t words = len / 8;

	if (!by_words) {
		memcpy(to, from, len);
		return;
	}
	len %= 8;
	asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (words) : : "memory");
	asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (len) : : "memory");
}

static char *place(int fd, off_t at, size_t len)
{
	if (at < 0 || (size_t)at + len > each)
		abort();	/* the access is beyond the memory of a file */
	return memory + (size_t)fd % FILES * each + at;
}

EXPORTED ssize_t pread64(int fd, void *buf, size_t len, off_t at)
{
	copy(buf, place(fd, at, len), len);
	return (ssize_t)len;
}

EXPORTED ssize_t pwrite64(int fd, const void *buf, size_t len, off_t at)
{
	copy(place(fd, at, len), buf, len);
	return (ssize_t)len;
}
