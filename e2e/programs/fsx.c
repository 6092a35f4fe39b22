// SPDX-License-Identifier: Apache-2.0
/*
 * Makes random operations on one file, and the same changes to a copy of the file in memory. Each
 * read is compared with the copy, and some operations compare the complete file. Bytes that were
 * stored in any way (write, mapping, copy) must show in each way of reading. Bytes that were never
 * written must be zero.
 *
 *   fsx [-s SEED] [-n OPERATIONS] [-l BYTES] [-t SECONDS] [-x OP,...] FILE
 *   fsx -i [-s SEED] [-l BYTES] [-x OP,...] FILE
 *
 * SEED determines all operations. An operation that the file system refuses as unsupported
 * (EOPNOTSUPP) ends the run with an error, unless -x excludes it.
 *
 * With -i, the program takes turns with the same program on other systems, with the same SEED. For
 * the line "do N" on standard input, it does the next N operations. For the line "skip N", it only
 * changes its copy, because another system has done these operations. It answers each line with
 * "ok". The file and a mapping of the complete file stay open during all turns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "random.h"

#define PAGE 4096ul
#define LOG_LINES 40

static const char *path;
static int fd = -1;
static unsigned char *good, *buffer;	/* expected content of the file; scratch */
static size_t size, limit = 6ul << 20;
static int stored_beyond;	/* a mapping has stored behind the end in the last page */
static int skipping;		/* another system does the operations; only the copy changes */
static uint64_t seed = 1;
static unsigned long op_number;
static char log_lines[LOG_LINES][96];

static size_t below(size_t n)
{
	return n ? random64() % n : 0;
}

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	int err = errno;
	va_list args;

	printf("fsx: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" (errno %d, %s)\n", err, strerror(err));
	printf("fsx: seed %llu, operation %lu; the last operations were:\n", (unsigned long long)seed,
	       op_number);
	for (unsigned long i = op_number >= LOG_LINES ? op_number - LOG_LINES + 1 : 1;
	     i <= op_number; i++)
		printf("  %6lu %s\n", i, log_lines[i % LOG_LINES]);
	exit(1);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(log_lines[op_number % LOG_LINES], sizeof(log_lines[0]), format, args);
	va_end(args);
}

/*
 * Returns a size of a random order of magnitude, from single bytes to more than a leaf of 2 MiB.
 */
static size_t any_length(void)
{
	size_t most = 1ul << (1 + below(23));

	return 1 + below(most < limit ? most : limit);
}

/* Chooses a range within [0, end), often at page boundaries, where errors are likely. */
static void any_range(size_t end, size_t *pos, size_t *len)
{
	*pos = below(end);
	*len = any_length();
	switch (below(4)) {
	case 0:
		*pos &= ~(PAGE - 1);
		break;
	case 1:
		*pos &= ~((2ul << 20) - 1);
		break;
	}
	if (*len > end - *pos)
		*len = end - *pos;
}

static void expect(const char *how, const unsigned char *got, size_t pos, size_t len)
{
	if (!memcmp(got, good + pos, len))
		return;
	for (size_t i = 0; i < len; i++)
		if (got[i] != good[pos + i]) {
			size_t bad = 0;

			for (size_t j = i; j < len; j++)
				bad += got[j] != good[pos + j];
			errno = 0;
			die("%s shows wrong bytes: first at %#zx: %#x instead of %#x, %zu bytes of "
			    "[%#zx, %#zx) in all, file size %#zx",
			    how, pos + i, got[i], good[pos + i], bad, pos, pos + len, size);
		}
}

static void check_size(void)
{
	struct stat st;

	if (fstat(fd, &st))
		die("fstat");
	if ((size_t)st.st_size != size)
		die("size is %#llx instead of %#zx", (long long)st.st_size, size);
}

static void fill(unsigned char *to, size_t len)
{
	uint64_t word = random64() | 0x0101010101010101ull;	/* no byte is zero */

	for (size_t i = 0; i < len; i++) {
		if (i % 8 == 0)
			word += 0x0203050709010305ull;
		to[i] = word >> (i % 8 * 8) | 1;
	}
}

static void grown_to(size_t end)
{
	if (end > size)
		size = end;
}

/* --- Operations, which change the file and its copy ------------------------------------------- */

static void op_read(void)
{
	size_t pos, len;

	any_range(size + PAGE, &pos, &len);
	note("read [%#zx, +%#zx)", pos, len);
	if (skipping)
		return;
	ssize_t n = pread(fd, buffer, len, pos);
	size_t want = pos >= size ? 0 : len < size - pos ? len : size - pos;

	if (n < 0 || (size_t)n != want)
		die("read of %#zx bytes at %#zx gave %zd, not %zu", len, pos, n, want);
	expect("read", buffer, pos, want);
}

static void op_write(void)
{
	size_t pos, len;

	any_range(limit, &pos, &len);
	if (below(3) == 0 && size < limit) {	/* append */
		pos = size;
		len = any_length();
		if (len > limit - pos)
			len = limit - pos;
	}
	note("write [%#zx, +%#zx)", pos, len);
	fill(good + pos, len);
	ssize_t n = skipping ? (ssize_t)len : pwrite(fd, good + pos, len, pos);

	if (n != (ssize_t)len)
		die("write of %#zx bytes at %#zx gave %zd", len, pos, n);
	grown_to(pos + len);
}

/*
 * Checks a mapping. It must show the bytes of its range. In the last page it must show zeros behind
 * the end of the file, unless another mapping has stored there.
 */
static void op_mapread(void)
{
	size_t pos, len;
	int flags = below(2) ? MAP_SHARED : MAP_PRIVATE;

	if (!size)
		return;
	any_range(size, &pos, &len);
	note("mapread [%#zx, +%#zx)", pos, len);
	size_t start = pos & ~(PAGE - 1), end = (pos + len + PAGE - 1) & ~(PAGE - 1);
	if (skipping)
		return;
	unsigned char *map = mmap(NULL, end - start, PROT_READ, flags, fd, start);

	if (map == MAP_FAILED)
		die("mmap for reading");
	expect("a mapping", map + (pos - start), pos, len);
	if (pos + len == size && !stored_beyond)
		for (size_t i = size; i < end; i++)
			if (map[i - start])
				die("%#x behind the end at %#zx, size %#zx", map[i - start], i,
				    size);
	munmap(map, end - start);
}

static void op_mapwrite(void)
{
	size_t pos, len;
	int sync = below(3) == 0;

	if (!size)
		return;
	any_range(size, &pos, &len);
	note("mapwrite [%#zx, +%#zx)", pos, len);
	size_t start = pos & ~(PAGE - 1);

	fill(good + pos, len);
	if (skipping)
		return;
	unsigned char *map = mmap(NULL, pos + len - start, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				  start);

	if (map == MAP_FAILED)
		die("mmap for writing");
	memcpy(map + (pos - start), good + pos, len);
	if (sync && msync(map, pos + len - start, MS_SYNC))
		die("msync");
	munmap(map, pos + len - start);
}

static void op_truncate(void)
{
	size_t to = below(3) ? below(limit + 1) : below(limit / PAGE + 1) * PAGE;

	note("truncate %#zx -> %#zx", size, to);
	if (!skipping && ftruncate(fd, to))
		die("truncate to %#zx", to);
	if (to < size) {
		memset(good + to, 0, size - to);
		stored_beyond = 0;
	}
	size = to;
}

static void change_space(int mode, size_t pos, size_t len)
{
	if (!skipping && fallocate(fd, mode, pos, len))
		die("fallocate(%#x, %#zx, %#zx)", mode, pos, len);
}

static void op_punch(void)
{
	size_t pos, len;

	any_range(limit, &pos, &len);
	note("punch [%#zx, +%#zx)", pos, len);
	change_space(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, pos, len);
	memset(good + pos, 0, len);
}

static void op_zero(void)
{
	size_t pos, len;
	int keep = below(2) ? FALLOC_FL_KEEP_SIZE : 0;

	any_range(limit, &pos, &len);
	note("zero%s [%#zx, +%#zx)", keep ? " keep" : "", pos, len);
	change_space(FALLOC_FL_ZERO_RANGE | keep, pos, len);
	memset(good + pos, 0, len);
	if (!keep)
		grown_to(pos + len);
}

static void op_allocate(void)
{
	size_t pos, len;
	int keep = below(2) ? FALLOC_FL_KEEP_SIZE : 0;

	any_range(limit, &pos, &len);
	note("allocate%s [%#zx, +%#zx)", keep ? " keep" : "", pos, len);
	change_space(keep, pos, len);
	if (!keep)
		grown_to(pos + len);
}

static void op_collapse(void)
{
	size_t pages = size / PAGE;

	if (pages < 2)
		return;
	size_t pos = below(pages - 1) * PAGE, len = (1 + below(pages - 1 - pos / PAGE)) * PAGE;

	if (pos + len >= size)
		return;
	note("collapse [%#zx, +%#zx)", pos, len);
	change_space(FALLOC_FL_COLLAPSE_RANGE, pos, len);
	memmove(good + pos, good + pos + len, size - pos - len);
	memset(good + size - len, 0, len);
	size -= len;
}

static void op_insert(void)
{
	size_t room = (limit - size) / PAGE;

	if (size < PAGE || !room)
		return;
	size_t pos = below(size / PAGE) * PAGE, len = (1 + below(room < 600 ? room : 600)) * PAGE;

	note("insert [%#zx, +%#zx)", pos, len);
	change_space(FALLOC_FL_INSERT_RANGE, pos, len);
	memmove(good + pos + len, good + pos, size - pos);
	memset(good + pos, 0, len);
	size += len;
}

static void op_copy(void)
{
	size_t from, to, len;

	if (size < 2)
		return;
	any_range(size, &from, &len);
	to = below(limit - len + 1);
	if (from < to + len && to < from + len)
		return;		/* the source must not overlap the target in the same file */
	note("copy [%#zx, +%#zx) -> %#zx", from, len, to);
	for (size_t done = 0; !skipping && done < len;) {
		off_t in = from + done, out = to + done;
		ssize_t n = copy_file_range(fd, &in, fd, &out, len - done, 0);

		if (n <= 0)
			die("copy_file_range of %#zx bytes gave %zd", len - done, n);
		done += n;
	}
	memcpy(good + to, good + from, len);
	grown_to(to + len);
}

/* Stores behind the end, in the last page. These bytes must not show when the file grows. */
static void op_beyond(void)
{
	size_t start = size & ~(PAGE - 1), to = size + 1 + below(2 * PAGE);

	if (start == size || to > limit)
		return;
	note("beyond: store behind %#zx, then truncate to %#zx", size, to);
	stored_beyond = 1;
	if (skipping) {
		size = to;
		return;
	}
	unsigned char *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);

	if (map == MAP_FAILED)
		die("mmap of the last page");
	memset(map + (size - start), 0xee, PAGE - (size - start));
	munmap(map, PAGE);
	if (ftruncate(fd, to))
		die("truncate to %#zx", to);
	size = to;
}

static void op_sync(void)
{
	int data = below(2);

	note("fsync");
	if (!skipping && (data ? fdatasync(fd) : fsync(fd)))
		die("fsync");
}

static void op_reopen(void)
{
	note("reopen");
	if (skipping)
		return;
	if (close(fd))
		die("close");
	fd = open(path, O_RDWR);
	if (fd < 0)
		die("open");
}

/* Checks that SEEK_DATA skips only ranges of zeros, and that SEEK_HOLE moves forward. */
static void op_seek(void)
{
	size_t pos = below(size + 1);

	note("seek %#zx", pos);
	if (skipping)
		return;
	off_t data = lseek(fd, pos, SEEK_DATA);

	if (data < 0 && errno != ENXIO)
		die("SEEK_DATA");
	size_t end = data < 0 ? size : (size_t)data;

	if (end < pos && pos < size)
		die("SEEK_DATA went from %#zx back to %#zx", pos, end);
	for (size_t i = pos; i < end; i++)
		if (good[i])
			die("SEEK_DATA skipped data at %#zx", i);
	if (data >= 0) {
		off_t hole = lseek(fd, data, SEEK_HOLE);

		if (hole <= data || (size_t)hole > size)
			die("SEEK_HOLE from %#lx gave %#lx, size %#zx", (long)data, (long)hole,
			    size);
	}
}

static void op_whole(void)
{
	note("whole file");
	if (skipping)
		return;
	ssize_t n = pread(fd, buffer, limit, 0);

	if (n < 0 || (size_t)n != size)
		die("reading all gave %zd, not %#zx", n, size);
	expect("reading all", buffer, 0, size);
}

static struct {
	const char *name;
	void (*run)(void);
	unsigned int weight;
} ops[] = {
	{ "read", op_read, 20 },	 { "write", op_write, 20 },
	{ "mapread", op_mapread, 15 },	 { "mapwrite", op_mapwrite, 15 },
	{ "truncate", op_truncate, 8 },	 { "punch", op_punch, 6 },
	{ "zero", op_zero, 4 },		 { "allocate", op_allocate, 6 },
	{ "collapse", op_collapse, 4 },	 { "insert", op_insert, 4 },
	{ "copy", op_copy, 6 },		 { "beyond", op_beyond, 4 },
	{ "sync", op_sync, 3 },		 { "reopen", op_reopen, 3 },
	{ "seek", op_seek, 5 },		 { "whole", op_whole, 2 },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static void exclude(char *list)
{
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		size_t i;

		for (i = 0; i < OPS && strcmp(ops[i].name, name); i++)
			;
		if (i == OPS) {
			fprintf(stderr, "fsx: -x %s: no such operation\n", name);
			exit(2);
		}
		ops[i].weight = 0;
	}
}

static void one(void)
{
	unsigned int all = 0, i, chosen;

	for (i = 0; i < OPS; i++)
		all += ops[i].weight;
	chosen = below(all);
	for (i = 0; chosen >= ops[i].weight; i++)
		chosen -= ops[i].weight;
	op_number++;
	note("%s: nothing to do", ops[i].name);
	ops[i].run();
	if (!skipping)
		check_size();
}

/*
 * Takes turns with other systems. This process must see their operations in calls, and in a mapping
 * that it made earlier.
 */
static int in_turns(void)
{
	unsigned char *map = mmap(NULL, limit, PROT_READ, MAP_SHARED, fd, 0);
	unsigned long n;
	char what[8];

	if (map == MAP_FAILED)
		die("mmap of all");
	while (scanf("%7s %lu", what, &n) == 2) {
		skipping = !strcmp(what, "skip");
		if (!skipping) {
			check_size();
			op_whole();
			expect("an earlier mapping", map, 0, size);
		}
		while (n--)
			one();
		if (!skipping)
			expect("an earlier mapping", map, 0, size);
		printf("ok\n");
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long operations = 1000;
	time_t end = 0;
	int c, turns = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((c = getopt(argc, argv, "is:n:l:t:x:")) != -1) {
		switch (c) {
		case 'i': turns = 1; break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'n': operations = strtoul(optarg, NULL, 0); break;
		case 'l': limit = strtoul(optarg, NULL, 0); break;
		case 't': end = time(NULL) + atoi(optarg); break;
		case 'x': exclude(optarg); break;
		default: return 2;
		}
	}
	if (optind + 1 != argc || limit < 4 * PAGE) {
		fprintf(stderr, "usage: fsx [-i] [-s SEED] [-n OPERATIONS] [-l BYTES] [-t SECONDS] [-x OP,...] FILE\n");
		return 2;
	}
	path = argv[optind];
	state = seed;
	good = calloc(1, limit);
	buffer = malloc(limit);
	fd = open(path, O_RDWR | O_CREAT | (turns ? 0 : O_TRUNC), 0600);
	if (!good || !buffer || fd < 0)
		die("opening %s", path);
	if (turns)
		return in_turns();
	while (op_number < operations && !(end && time(NULL) >= end))
		one();
	op_whole();
	printf("fsx: seed %llu, %lu operations on %s, all as expected\n", (unsigned long long)seed,
	       op_number, path);
	return 0;
}
