// SPDX-License-Identifier: Apache-2.0
/*
 * Marks the last word of each page of physical memory, and counts marks. The memory is /dev/mem, or
 * a file that maps the same memory.
 *
 *   pages mark FILE AT BASE SIZE KEY SAVED   marks each page, and stores the old words in SAVED
 *   pages restore FILE AT BASE SIZE SAVED    restores the old words
 *   pages count FILE AT BASE SIZE KEY        prints "same S ones O zero Z other X": the numbers of
 *                                            pages whose word is the page's mark, has all bits set,
 *                                            is zero, or has another value
 *   pages spoil FILE AT BASE SIZE KEY        marks each page without reading the old word
 *
 * The pages are SIZE bytes of the file from the offset AT on, at the physical address BASE. The
 * mark of a page is computed from KEY and from the page's address. So a page with the mark of
 * another page does not count as `same`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096
#define LAST	(PAGE / sizeof(uint64_t) - 1)

static volatile uint64_t *words;	/* the mapped memory */
static uint64_t base, pages, key;

static int fail(const char *what)
{
	fprintf(stderr, "pages: %s: %s\n", what, strerror(errno));
	return 1;
}

static volatile uint64_t *word(uint64_t page)
{
	return words + page * (PAGE / sizeof(uint64_t)) + LAST;
}

static uint64_t mark_of(uint64_t page)
{
	return (base + page * PAGE) ^ key;
}

static int map(const char *path, uint64_t at, int store)
{
	int fd = open(path, (store ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	void *mem;

	if (fd < 0)
		return fail(path);
	mem = mmap(NULL, pages * PAGE, PROT_READ | (store ? PROT_WRITE : 0), MAP_SHARED, fd,
		   (off_t)at);
	close(fd);
	if (mem == MAP_FAILED)
		return fail("mmap");
	words = mem;
	return 0;
}

static int mark(const char *saved)
{
	FILE *f = fopen(saved, "wx");
	uint64_t i, was;

	if (!f)
		return fail(saved);
	for (i = 0; i < pages; i++) {
		was = *word(i);
		if (fwrite(&was, sizeof(was), 1, f) != 1)
			return fail(saved);
	}
	if (fclose(f))
		return fail(saved);
	for (i = 0; i < pages; i++)
		*word(i) = mark_of(i);
	return 0;
}

static int restore(const char *saved)
{
	FILE *f = fopen(saved, "r");
	uint64_t i, was;

	if (!f)
		return fail(saved);
	for (i = 0; i < pages; i++) {
		if (fread(&was, sizeof(was), 1, f) != 1)
			return fail(saved);
		*word(i) = was;
	}
	fclose(f);
	return 0;
}

static int count(void)
{
	uint64_t i, is, same = 0, ones = 0, zero = 0, other = 0;

	for (i = 0; i < pages; i++) {
		is = *word(i);
		if (is == mark_of(i))
			same++;
		else if (is == UINT64_MAX)
			ones++;
		else if (!is)
			zero++;
		else
			other++;
	}
	printf("same %llu ones %llu zero %llu other %llu\n", (unsigned long long)same,
	       (unsigned long long)ones, (unsigned long long)zero, (unsigned long long)other);
	return 0;
}

static int spoil(void)
{
	uint64_t i;

	for (i = 0; i < pages; i++)
		*word(i) = mark_of(i);
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 6 ? argv[1] : "";

	if (argc < 7)
		goto usage;
	base = strtoull(argv[4], NULL, 0);
	pages = strtoull(argv[5], NULL, 0) / PAGE;
	key = strtoull(argv[6], NULL, 0);
	if (!base || !pages)
		goto usage;
	if (map(argv[2], strtoull(argv[3], NULL, 0), strcmp(verb, "count") != 0))
		return 1;
	if (!strcmp(verb, "mark") && argc == 8)
		return mark(argv[7]);
	if (!strcmp(verb, "restore"))
		return restore(argv[6]);
	if (!strcmp(verb, "count"))
		return count();
	if (!strcmp(verb, "spoil"))
		return spoil();
usage:
	fprintf(stderr, "usage: pages mark|restore|count|spoil FILE AT BASE SIZE KEY [SAVED]; see pages.c\n");
	return 2;
}
