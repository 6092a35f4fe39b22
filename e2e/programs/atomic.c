// SPDX-License-Identifier: Apache-2.0
/*
 * Checks of atomic writes from the view of a program (docs/atomic-data.md).
 *
 *   atomic rules FILE                  checks statx(), pwritev2() and io_uring with RWF_ATOMIC
 *   atomic blocks FILE HOW SECONDS     writes and reads blocks that describe themselves, while
 *                                      other processes do the same; HOW: rwf (RWF_ATOMIC) or
 *                                      attr (any write)
 *   atomic check FILE                  checks that no block is torn
 *   atomic stamps FILE SECONDS         writes the pages of a file, each time with a higher number
 *   atomic mapped FILE SECONDS         maps the file again and again during `stamps`: a mapping
 *                                      never shows older bytes than read() does
 *   atomic full FILE                   overwrites until no page is free: a failed write leaves the
 *                                      old bytes
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef RWF_ATOMIC
#define RWF_ATOMIC	0x40
#endif
#define WANT_ATOMIC	0x10000u		/* STATX_WRITE_ATOMIC */
#define ATTR_ATOMIC	0x400000u		/* STATX_ATTR_WRITE_ATOMIC */
#define UNIT	65536u
#define BLOCKS	8u
#define PAGE	4096u

static unsigned long checks;

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("atomic: ", stdout);
	vprintf(fmt, ap);
	printf(" (%s)\n", strerror(errno));
	fflush(stdout);
	exit(1);
}

static void is(const char *what, long got, long want)
{
	checks++;
	if (got != want)
		fail("%s: %ld, not %ld", what, got, want);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		fail("%s cannot be opened", path);
	return fd;
}

/* --- rules ---------------------------------------------------------------------------------- */

/* Old headers lack these fields of struct statx. They follow stx_dio_offset_align. */
struct new_statx {
	uint8_t before[0x98];
	uint32_t dio_mem_align, dio_offset_align;
	uint64_t subvol;
	uint32_t unit_min, unit_max, segments_max;
	uint8_t rest[0x100 - 0xb4];
};

static long atomic_write(int fd, const void *buf, size_t len, off_t pos)
{
	struct iovec iov = { (void *)buf, len };
	long n = syscall(SYS_pwritev2, fd, &iov, 1, pos, 0, RWF_ATOMIC);

	return n < 0 ? -errno : n;
}

static void rules_statx(const char *path)
{
	struct new_statx st;
	uint32_t mask;
	uint64_t attributes;

	memset(&st, 0, sizeof(st));
	is("statx", syscall(SYS_statx, AT_FDCWD, path, 0, WANT_ATOMIC | 0x7ff, &st), 0);
	memcpy(&mask, st.before, 4);
	memcpy(&attributes, st.before + 8, 8);
	is("statx knows atomic writes", !!(mask & WANT_ATOMIC), 1);
	is("... as an attribute", !!(attributes & ATTR_ATOMIC), 1);
	is("unit_min is 512 at most", st.unit_min && st.unit_min <= 512, 1);
	is("unit_max", st.unit_max, UNIT);
	is("segments_max", st.segments_max, 1);
}

static void rules_refused(int fd, const char *path)
{
	static char buf[2 * UNIT];
	struct iovec two[2] = { { buf, 512 }, { buf, 512 } }, one = { buf, 512 };
	int pipes[2], rd;

	is("3 bytes", atomic_write(fd, buf, 3, 0), -EINVAL);
	is("1,000 bytes", atomic_write(fd, buf, 1000, 0), -EINVAL);
	is("not at a multiple", atomic_write(fd, buf, 4096, 512), -EINVAL);
	is("128 KiB", atomic_write(fd, buf, 2 * UNIT, 0), -EINVAL);
	is("two ranges", syscall(SYS_pwritev2, fd, two, 2, 0L, 0L, RWF_ATOMIC) < 0 ? -errno : 0,
	   -EINVAL);
	is("a read", syscall(SYS_preadv2, fd, &one, 1, 0L, 0L, RWF_ATOMIC) < 0 ? -errno : 0,
	   -EOPNOTSUPP);
	is("a pipe", pipe(pipes), 0);
	is("into a pipe", syscall(SYS_pwritev2, pipes[1], &one, 1, -1L, -1L, RWF_ATOMIC) < 0 ?
	   -errno : 0, -EOPNOTSUPP);
	rd = open(path, O_RDONLY);
	is("only for reading", atomic_write(rd, buf, 512, 0), -EBADF);
	close(rd);
	is("memory that is not there", atomic_write(fd, (void *)4096, 4096, 0), -EFAULT);
}

/* Makes one request by io_uring, without a library. */
static long by_uring(int fd, const void *buf, unsigned int len, uint64_t pos)
{
	struct io_uring_params p = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
	size_t sq_len = p.sq_off.array + p.sq_entries * 4;
	size_t cq_len = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	struct io_uring_sqe *sqe;
	char *sq, *cq;
	long ret;

	if (ring < 0)
		return -errno;
	sq = mmap(NULL, sq_len, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	cq = mmap(NULL, cq_len, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || sqe == MAP_FAILED)
		fail("io_uring cannot be mapped");
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_WRITE;
	sqe->fd = fd;
	sqe->addr = (uintptr_t)buf;
	sqe->len = len;
	sqe->off = pos;
	sqe->rw_flags = RWF_ATOMIC;
	*(unsigned int *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((unsigned int *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	ret = syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	if (ret == 1)
		ret = ((struct io_uring_cqe *)(cq + p.cq_off.cqes))->res;
	else
		ret = -errno;
	munmap(sq, sq_len);
	munmap(cq, cq_len);
	munmap(sqe, sizeof(*sqe));
	close(ring);
	return ret;
}

static void rules(const char *path)
{
	static char buf[UNIT], got[UNIT];
	int fd = open_file(path), app;
	size_t len;

	rules_statx(path);
	for (len = 512; len <= UNIT; len *= 2) {
		memset(buf, (int)(len / 512), len);
		is("RWF_ATOMIC", atomic_write(fd, buf, len, len), (long)len);
		is("pread", pread(fd, got, len, (off_t)len), (long)len);
		is("the bytes", memcmp(buf, got, len), 0);
	}
	memset(buf, 'u', UNIT);
	is("io_uring", by_uring(fd, buf, UNIT, 0), UNIT);
	is("io_uring, 1,000 bytes", by_uring(fd, buf, 1000, 0), -EINVAL);
	is("pread", pread(fd, got, UNIT, 0), UNIT);
	is("the bytes", memcmp(buf, got, UNIT), 0);
	is("ftruncate", ftruncate(fd, UNIT), 0);
	rules_refused(fd, path);
	is("refused writes change nothing", pread(fd, got, UNIT, 0), UNIT);
	is("the bytes", memcmp(buf, got, UNIT), 0);
	app = open(path, O_WRONLY | O_APPEND);
	memset(buf, 'a', UNIT);
	is("appended", atomic_write(app, buf, UNIT, 0), UNIT);
	is("appended, not at a multiple", atomic_write(app, buf, 512, 0), 512);
	is("appended, not at a multiple", atomic_write(app, buf, UNIT, 0), -EINVAL);
	printf("%lu checks\n", checks);
}

/* --- blocks --------------------------------------------------------------------------------- */

struct block {
	uint64_t magic, len, stamp, sum;
};

static uint64_t sum_of(const uint8_t *bytes, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325ull, word;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, bytes + i, 8);
		sum = (sum ^ word) * 0x100000001b3ull;
	}
	return sum;
}

static void make_block(uint8_t *bytes, size_t len, uint64_t *rng)
{
	struct block *k = (void *)bytes;
	size_t i;

	for (i = 0; i < len; i += 8) {
		uint64_t word = next(rng);

		memcpy(bytes + i, &word, 8);
	}
	*k = (struct block){ 0xb10c, len, next(rng), 0 };
	k->sum = sum_of(bytes, len);
}

static void check_block(int fd, unsigned int at)
{
	static uint8_t bytes[UNIT];
	struct block *k = (void *)bytes;
	uint64_t sum;

	is("a block is read", pread(fd, bytes, UNIT, (off_t)at * UNIT), UNIT);
	if (!k->magic)
		return;
	sum = k->sum;
	k->sum = 0;
	if (k->magic != 0xb10c || k->len > UNIT || sum_of(bytes, k->len) != sum)
		fail("block %u is torn: length %llu", at, (unsigned long long)k->len);
	checks++;
}

static size_t some_len(const char *how, uint64_t *rng)
{
	size_t len = 64 + next(rng) % (UNIT - 64);

	if (!strcmp(how, "rwf"))
		return 512u << next(rng) % 8;
	return next(rng) % 2 ? len & ~7ul : (len + PAGE - 1) / PAGE * PAGE;
}

static void blocks(const char *path, const char *how, double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
	uint64_t rng = now_ns() ^ (uint64_t)getpid() << 32;
	static uint8_t bytes[UNIT];
	unsigned long writes = 0;
	int fd = open_file(path);

	if (fallocate(fd, 0, 0, (off_t)BLOCKS * UNIT))
		fail("fallocate");
	while (now_ns() < end) {
		unsigned int at = (unsigned int)(next(&rng) % BLOCKS);
		size_t len = some_len(how, &rng);
		long n;

		make_block(bytes, len, &rng);
		n = !strcmp(how, "rwf") ? atomic_write(fd, bytes, len, (off_t)at * UNIT) :
		    pwrite(fd, bytes, len, (off_t)at * UNIT);
		is("a block is written", n, (long)len);
		writes++;
		check_block(fd, (unsigned int)(next(&rng) % BLOCKS));
		check_block(fd, at);
	}
	printf("%lu writes, %lu checks\n", writes, checks);
}

static void check(const char *path)
{
	int fd = open_file(path);
	unsigned int i;

	for (i = 0; i < BLOCKS; i++)
		check_block(fd, i);
	printf("%lu checks\n", checks);
}

/* --- mappings ------------------------------------------------------------------------------- */

#define PAGES	16u

static void stamps(const char *path, double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), stamp = 0, i;
	static uint64_t bytes[UNIT / 8];
	int fd = open_file(path);

	while (now_ns() < end) {
		stamp++;
		for (i = 0; i < UNIT / 8; i++)
			bytes[i] = stamp;
		is("pages are written", pwrite(fd, bytes, UNIT, 0), UNIT);
	}
	printf("%llu writes, %lu checks\n", (unsigned long long)stamp, checks);
}

static void mapped(const char *path, double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), first, later, got, rng = end;
	int fd = open_file(path);

	while (lseek(fd, 0, SEEK_END) < UNIT && now_ns() < end)
		usleep(1000);
	while (now_ns() < end) {
		unsigned int page = (unsigned int)(next(&rng) % PAGES), turn;
		volatile uint64_t *map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
					      (off_t)page * PAGE);

		if (map == MAP_FAILED)
			fail("mmap");
		for (turn = 0; turn < 4; turn++) {
			first = map[9];
			is("pread", pread(fd, &got, 8, (off_t)page * PAGE + 72), 8);
			later = map[9];
			checks++;
			if (first > got || got > later)
				fail("page %u: the mapping shows %llu, read() %llu, the mapping %llu",
				     page, (unsigned long long)first, (unsigned long long)got,
				     (unsigned long long)later);
			usleep(200);
		}
		munmap((void *)map, PAGE);
	}
	printf("%lu checks\n", checks);
}

/* --- a full volume -------------------------------------------------------------------------- */

static void full(const char *path)
{
	static uint8_t bytes[UNIT], old[4 * UNIT], got[4 * UNIT];
	unsigned long failed = 0, done = 0, turn;
	uint64_t rng = 5;
	int fd = open_file(path);

	is("pread", pread(fd, old, sizeof(old), 0), sizeof(old));
	for (turn = 0; turn < 60; turn++) {
		size_t len = some_len("attr", &rng), pos = next(&rng) % (sizeof(old) - len);
		long n;

		make_block(bytes, len, &rng);
		n = pwrite(fd, bytes, len, (off_t)pos);
		if (n < 0 && errno != ENOSPC)
			fail("pwrite");
		if (n >= 0) {
			is("all of it", n, (long)len);
			memcpy(old + pos, bytes, len);
		}
		*(n < 0 ? &failed : &done) += 1;
		is("pread", pread(fd, got, sizeof(got), 0), sizeof(got));
		is("old or new", memcmp(old, got, sizeof(old)), 0);
	}
	printf("%lu written, %lu refused, %lu checks\n", done, failed, checks);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "rules"))
		rules(argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "blocks"))
		blocks(argv[2], argv[3], atof(argv[4]));
	else if (argc == 3 && !strcmp(argv[1], "check"))
		check(argv[2]);
	else if (argc == 4 && !strcmp(argv[1], "stamps"))
		stamps(argv[2], atof(argv[3]));
	else if (argc == 4 && !strcmp(argv[1], "mapped"))
		mapped(argv[2], atof(argv[3]));
	else if (argc == 3 && !strcmp(argv[1], "full"))
		full(argv[2]);
	else
		return 2;
	return 0;
}
