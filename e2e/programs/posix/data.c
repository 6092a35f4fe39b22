// SPDX-License-Identifier: Apache-2.0
/* Tests of contents: reading, writing, truncating, holes, fallocate() and copies by the kernel. */
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#include "posix.h"

#define PAGE 4096L

static char *buffer(size_t len)
{
	char *p = malloc(len);

	CHECK(p);
	return p;
}

static bool range_is(int fd, off_t pos, size_t len, unsigned int seed)
{
	char *buf = buffer(len);
	bool same = pread(fd, buf, len, pos) == (ssize_t)len && is_filled(buf, len, seed);

	free(buf);
	return same;
}

static bool range_zero(int fd, off_t pos, size_t len)
{
	char *buf = buffer(len);
	bool zero = pread(fd, buf, len, pos) == (ssize_t)len && is_zero(buf, len);

	free(buf);
	return zero;
}

static int filled_file(const char *name, size_t len, unsigned int seed)
{
	char *buf = buffer(len);
	int fd;

	fill(buf, len, seed);
	fd = make_file(name, buf, len);
	free(buf);
	return fd;
}

TEST("data", every_length_and_offset)
{
	static const size_t lens[] = { 0, 1, 7, 8, 63, 64, 4095, 4096, 4097, 12288, 100001,
		3 * MIB };
	static const off_t offs[] = { 0, 1, 4095, 4096, 8191, 2 * MIB - 3, 5 * MIB };
	unsigned int i, j;

	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		for (j = 0; j < sizeof(offs) / sizeof(*offs); j++) {
			char *buf = buffer(lens[i] + 1);
			int fd = make_file("f", "", 0);

			fill(buf, lens[i], i + j);
			CHECK(pwrite(fd, buf, lens[i], offs[j]) == (ssize_t)lens[i]);
			CHECK(size_of("f") == (lens[i] ? offs[j] + (off_t)lens[i] : 0));
			CHECK(range_is(fd, offs[j], lens[i], i + j));
			CHECK(!lens[i] || range_zero(fd, 0, offs[j]));
			CHECK(pread(fd, buf, 1, offs[j] + lens[i]) == 0);
			close(fd);
			free(buf);
		}
}

TEST("data", overwrites)
{
	char *model = calloc(1, 256 * 1024), *buf = buffer(256 * 1024);
	int fd = make_file("f", model, 256 * 1024), i;

	srand(42);
	for (i = 0; i < 2000; i++) {
		size_t len = rand() % 9000 + 1, pos = rand() % (256 * 1024 - len);

		fill(model + pos, len, i);
		CHECK(pwrite(fd, model + pos, len, pos) == (ssize_t)len);
	}
	CHECK(pread(fd, buf, 256 * 1024, 0) == 256 * 1024 && !memcmp(buf, model, 256 * 1024));
}

TEST("data", errors)
{
	int fd = make_file("f", "x", 1), ro = OK(open("f", O_RDONLY));
	int dir = OK(open(".", O_RDONLY));
	void *volatile nowhere = (void *)8;
	char c;

	FAILS(write(ro, "x", 1), EBADF);
	FAILS(pread(fd, &c, 1, -1), EINVAL);
	FAILS(pwrite(fd, &c, 1, -1), EINVAL);
	FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
	FAILS(read(dir, &c, 1), EISDIR);
	FAILS(pread(fd, nowhere, 1, 0), EFAULT);
	FAILS(pwrite(fd, nowhere, 1, 0), EFAULT);
	CHECK(size_of("f") == 1);
	FAILS(ftruncate(fd, -1), EINVAL);
	FAILS(ftruncate(ro, 0), EINVAL);
	FAILS(ftruncate(fd, (off_t)1 << 62), EFBIG);
	FAILS(truncate(".", 0), EISDIR);
	FAILS(truncate("none", 0), ENOENT);
}

TEST("data", fault_in_the_middle_of_a_write)
{
	char *p = OK(aligned_alloc(PAGE, 2 * PAGE));
	int fd = make_file("f", "", 0);
	struct iovec iov[2] = { { p, 100 }, { (void *)8, 100 } };

	memset(p, 'a', 2 * PAGE);
	CHECK(writev(fd, iov, 2) == 100);
	CHECK(size_of("f") == 100);
	free(p);
}

TEST("data", append)
{
	int a = make_file("f", "1", 1), b = OK(open("f", O_WRONLY | O_APPEND));
	char buf[8];

	CHECK(write(b, "2", 1) == 1);
	CHECK(pwrite(a, "3", 1, 2) == 1);
	CHECK(write(b, "4", 1) == 1);
	CHECK(pread(a, buf, 8, 0) == 4 && !memcmp(buf, "1234", 4));
}

TEST("data", direct_and_sync)
{
	static const int flags[] = { O_DIRECT, O_SYNC, O_DSYNC, O_DIRECT | O_SYNC };
	unsigned int i;

	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		int fd = OK(open("f", O_RDWR | O_CREAT | O_TRUNC | flags[i], 0644));
		char *buf = buffer(10001), *back = buffer(10001);

		fill(buf, 10001, i);
		memcpy(back, buf, 10001);
		/* statx() recommends an alignment, but none is required. */
		CHECK(pwrite(fd, buf + 1, 10000, 3) == 10000);
		OK(fsync(fd));
		OK(fdatasync(fd));
		memset(buf, 0, 10001);
		CHECK(pread(fd, buf + 1, 10000, 3) == 10000);
		buf[0] = back[0];
		CHECK(!memcmp(buf, back, 10001));
		CHECK(pwrite(fd, buf + 7, 1, 4099) == 1 && pread(fd, buf + 8, 1, 4099) == 1);
		CHECK(buf[8] == buf[7]);
		close(fd);
		free(back);
		free(buf);
	}
}

TEST("data", vectors)
{
	char a[3] = "abc", b[5] = "defgh", back[8];
	struct iovec w[2] = { { a, 3 }, { b, 5 } }, r[2] = { { back, 1 }, { back + 1, 7 } };
	int fd = make_file("f", "", 0);

	CHECK(writev(fd, w, 2) == 8);
	CHECK(preadv(fd, r, 2, 0) == 8 && !memcmp(back, "abcdefgh", 8));
	CHECK(pwritev2(fd, w, 1, -1, RWF_APPEND) == 3 && size_of("f") == 11);
	CHECK(pwritev2(fd, w, 2, 2, RWF_DSYNC) == 8);
	CHECK(pwritev2(fd, w, 2, 0, 0) == 8);
	CHECK(preadv2(fd, r, 2, 0, 0) == 8 && !memcmp(back, "abcdefgh", 8));
}

TEST("data", vectors_that_must_not_wait)
{
	char a[3] = "abc", b[5] = "defgh", back[8];
	struct iovec w[2] = { { a, 3 }, { b, 5 } }, r[2] = { { back, 1 }, { back + 1, 7 } };
	int fd = make_file("f", "", 0);
	ssize_t n;

	CHECK(writev(fd, w, 2) == 8);
	/* The file system decides whether the write would have to wait. */
	CHECK(pwritev2(fd, w, 2, 0, RWF_NOWAIT) == 8 || errno == EAGAIN);
	n = preadv2(fd, r, 2, 0, RWF_NOWAIT);
	CHECK(n == 8 || errno == EAGAIN);
	CHECK((n == 8 || preadv2(fd, r, 2, 0, 0) == 8) && !memcmp(back, "abcdefgh", 8));
}

TEST("data", truncate_and_extend)
{
	int fd = filled_file("f", 3 * PAGE, 1);

	OK(ftruncate(fd, PAGE + 100));
	/* The file has two pages and one table. */
	CHECK(size_of("f") == PAGE + 100 && stat_of("f").st_blocks <= 24);
	OK(ftruncate(fd, 5 * PAGE));
	CHECK(range_is(fd, 0, PAGE + 100, 1));
	CHECK(range_zero(fd, PAGE + 100, 4 * PAGE - 100));
	OK(ftruncate(fd, 0));
	CHECK(stat_of("f").st_blocks == 0);
	close(OK(open("f", O_WRONLY | O_TRUNC)));
	OK(ftruncate(fd, 10 * MIB));
	CHECK(range_zero(fd, 5 * MIB, 4096) && stat_of("f").st_blocks == 0);
}

static void over_the_limit(void)
{
	struct rlimit limit = { 10000, 10000 };
	int fd = OK(open("f", O_RDWR));
	char buf[6000] = "";

	OK(setrlimit(RLIMIT_FSIZE, &limit));
	signal(SIGXFSZ, SIG_IGN);
	CHECK(write(fd, buf, 6000) == 6000);
	CHECK(write(fd, buf, 6000) == 4000);
	FAILS(write(fd, buf, 1), EFBIG);
	FAILS(ftruncate(fd, 10001), EFBIG);
}

TEST("data", file_size_limit)
{
	close(make_file("f", "", 0));
	in_child(over_the_limit);
}

TEST("data", huge_sparse_file)
{
	const off_t far = (off_t)16 << 40;
	int fd = make_file("f", "", 0);

	CHECK(pwrite(fd, "end", 3, far - 3) == 3);
	CHECK(size_of("f") == far && stat_of("f").st_blocks < 64);
	CHECK(lseek(fd, 0, SEEK_DATA) == far - PAGE);
	CHECK(lseek(fd, 0, SEEK_HOLE) == 0);
	CHECK(range_zero(fd, far / 2, 10000));
	CHECK(pwrite(fd, "mid", 3, far / 2) == 3);
	CHECK(lseek(fd, 0, SEEK_DATA) == far / 2);
	OK(ftruncate(fd, 1));
	CHECK(stat_of("f").st_blocks < 8);
}

TEST("data", holes)
{
	int fd = make_file("f", "", 0);

	OK(ftruncate(fd, 10 * PAGE));
	CHECK(pwrite(fd, "x", 1, 2 * PAGE) == 1 && pwrite(fd, "x", 1, 5 * PAGE + 9) == 1);
	CHECK(lseek(fd, 0, SEEK_HOLE) == 0);
	CHECK(lseek(fd, 0, SEEK_DATA) == 2 * PAGE);
	CHECK(lseek(fd, 2 * PAGE + 5, SEEK_DATA) == 2 * PAGE + 5);
	CHECK(lseek(fd, 2 * PAGE, SEEK_HOLE) == 3 * PAGE);
	CHECK(lseek(fd, 3 * PAGE, SEEK_DATA) == 5 * PAGE);
	CHECK(lseek(fd, 5 * PAGE, SEEK_HOLE) == 6 * PAGE);
	FAILS(lseek(fd, 6 * PAGE, SEEK_DATA), ENXIO);
	FAILS(lseek(fd, 10 * PAGE, SEEK_HOLE), ENXIO);
	FAILS(lseek(fd, -1, SEEK_DATA), ENXIO);
}

TEST("data", fallocate_allocates)
{
	int fd = make_file("f", "", 0);

	OK(fallocate(fd, 0, 100, 3 * MIB));
	CHECK(size_of("f") == 3 * MIB + 100 && stat_of("f").st_blocks >= 3 * 2048);
	CHECK(range_zero(fd, 0, 3 * MIB + 100));
	OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 5 * MIB));
	CHECK(size_of("f") == 3 * MIB + 100 && stat_of("f").st_blocks >= 5 * 2048);
	CHECK(pwrite(fd, "x", 1, 2 * MIB) == 1);
	OK(fallocate(fd, 0, 0, 3 * MIB));
	CHECK(range_zero(fd, 0, 2 * MIB) && range_zero(fd, 2 * MIB + 1, MIB));
	OK(ftruncate(fd, 4 * MIB));
	CHECK(range_zero(fd, 3 * MIB, MIB));
	FAILS(fallocate(fd, 0, 0, 0), EINVAL);
	FAILS(fallocate(fd, 0, -1, 1), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, PAGE), EOPNOTSUPP);
}

/* Preallocated pages hold written zeroes, so they count as data (docs/limitations.md). */
TEST("data", preallocated_is_data)
{
	int fd = make_file("f", "", 0);

	OK(ftruncate(fd, 8 * PAGE));
	OK(fallocate(fd, 0, 2 * PAGE, 3 * PAGE));
	CHECK(lseek(fd, 0, SEEK_DATA) == 2 * PAGE && lseek(fd, 2 * PAGE, SEEK_HOLE) == 5 * PAGE);
	CHECK(range_zero(fd, 0, 8 * PAGE));
}

TEST("data", preallocated_is_data_for_fiemap)
{
	struct {
		struct fiemap map;
		struct fiemap_extent ext[8];
	} m = { .map = { .fm_length = ~0ULL, .fm_extent_count = 8 } };
	int fd = make_file("f", "", 0);
	unsigned int i;

	OK(ftruncate(fd, 8 * PAGE));
	OK(fallocate(fd, 0, 2 * PAGE, 3 * PAGE));
	OK(ioctl(fd, FS_IOC_FIEMAP, &m));
	CHECK(m.map.fm_mapped_extents >= 1 && m.ext[0].fe_logical == 2 * PAGE);
	for (i = 0; i < m.map.fm_mapped_extents; i++)
		CHECK(!(m.ext[i].fe_flags & FIEMAP_EXTENT_UNWRITTEN));
}

TEST("data", punch)
{
	int fd = filled_file("f", 8 * PAGE, 3);
	blkcnt_t before = stat_of("f").st_blocks;

	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE + 100, 3 * PAGE));
	CHECK(size_of("f") == 8 * PAGE && stat_of("f").st_blocks == before - 16);
	CHECK(range_is(fd, 0, PAGE + 100, 3));
	CHECK(range_zero(fd, PAGE + 100, 3 * PAGE));
	{
		char *want = buffer(8 * PAGE), *got = buffer(8 * PAGE);

		fill(want, 8 * PAGE, 3);
		CHECK(pread(fd, got, 8 * PAGE, 0) == 8 * PAGE);
		CHECK(!memcmp(want + 4 * PAGE + 100, got + 4 * PAGE + 100, 4 * PAGE - 100));
	}
	CHECK(lseek(fd, PAGE, SEEK_HOLE) == 2 * PAGE);
}

TEST("data", zero_range)
{
	int fd = filled_file("f", 4 * PAGE, 4);

	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 10, 2 * PAGE));
	CHECK(range_is(fd, 0, 10, 4) && range_zero(fd, 10, 2 * PAGE));
	CHECK(lseek(fd, 0, SEEK_HOLE) == 4 * PAGE);		/* zeroes, but allocated */
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 3 * PAGE, 3 * PAGE));
	CHECK(size_of("f") == 4 * PAGE);
	OK(fallocate(fd, FALLOC_FL_ZERO_RANGE, 3 * PAGE, 3 * PAGE));
	CHECK(size_of("f") == 6 * PAGE && range_zero(fd, 3 * PAGE, 3 * PAGE));
}

static void write_pages(int fd, int n)
{
	char page[PAGE];
	int i;

	for (i = 0; i < n; i++) {
		memset(page, 'a' + i, PAGE);
		CHECK(pwrite(fd, page, PAGE, i * PAGE) == PAGE);
	}
}

static bool page_has(int fd, int page, char c)
{
	char buf[PAGE], want[PAGE];

	memset(want, c, PAGE);
	return pread(fd, buf, PAGE, page * PAGE) == PAGE && !memcmp(buf, want, PAGE);
}

TEST("data", collapse_range)
{
	int fd = make_file("f", "", 0);

	write_pages(fd, 6);
	OK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, PAGE, 2 * PAGE));
	CHECK(size_of("f") == 4 * PAGE && page_has(fd, 0, 'a') && page_has(fd, 1, 'd') &&
	      page_has(fd, 3, 'f'));
	FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 100), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4 * PAGE), EINVAL);
}

TEST("data", insert_range)
{
	int fd = make_file("f", "", 0);

	write_pages(fd, 3);
	OK(fallocate(fd, FALLOC_FL_INSERT_RANGE, PAGE, 2 * PAGE));
	CHECK(size_of("f") == 5 * PAGE && page_has(fd, 0, 'a') && page_has(fd, 1, 0) &&
	      page_has(fd, 3, 'b') && page_has(fd, 4, 'c'));
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 5 * PAGE, PAGE), EINVAL);
	FAILS(fallocate(fd, FALLOC_FL_INSERT_RANGE, 1, PAGE), EINVAL);
}

TEST("data", fiemap)
{
	struct {
		struct fiemap map;
		struct fiemap_extent ext[8];
	} m = { .map = { .fm_length = ~0ULL, .fm_extent_count = 8 } };
	int fd = make_file("f", "", 0);

	CHECK(pwrite(fd, "x", 1, 0) == 1 && pwrite(fd, "y", 1, 10 * PAGE) == 1);
	OK(ioctl(fd, FS_IOC_FIEMAP, &m));
	CHECK(m.map.fm_mapped_extents == 2);
	CHECK(m.ext[0].fe_logical == 0 && m.ext[0].fe_length == PAGE &&
	      !(m.ext[0].fe_flags & FIEMAP_EXTENT_LAST));
	CHECK(m.ext[1].fe_logical == 10 * PAGE && m.ext[1].fe_flags & FIEMAP_EXTENT_LAST);
	CHECK(m.ext[0].fe_physical && m.ext[0].fe_physical != m.ext[1].fe_physical);
	m.map.fm_length = PAGE;
	OK(ioctl(fd, FS_IOC_FIEMAP, &m));
	CHECK(m.map.fm_mapped_extents == 1 && !(m.ext[0].fe_flags & FIEMAP_EXTENT_LAST));
}

TEST("data", copies_in_the_kernel)
{
	int in = filled_file("in", 300000, 9), out = make_file("out", "", 0), p[2];
	loff_t a = 0, b = 0;
	off_t pos = 0;
	ssize_t n;

	while ((n = OK(copy_file_range(in, &a, out, &b, 300000 - a, 0))) > 0)
		;
	CHECK(a == 300000 && range_is(out, 0, 300000, 9));
	OK(ftruncate(out, 0));
	OK(lseek(out, 0, SEEK_SET));
	while (pos < 300000)
		CHECK(sendfile(out, in, &pos, 300000) > 0);
	CHECK(range_is(out, 0, 300000, 9));
	OK(ftruncate(out, 0));
	OK(pipe(p));
	for (a = b = 0; a < 300000; ) {
		n = OK(splice(in, &a, p[1], NULL, 50000, 0));
		CHECK(splice(p[0], NULL, out, &b, n, 0) == n);
	}
	CHECK(range_is(out, 0, 300000, 9));
}

TEST("data", full_volume)
{
	char *buf = calloc(1, MIB), name[32];
	int fd = make_file("big", "", 0), i;
	ssize_t n;

	/* Fills the volume, however large the scenario has made it. */
	while ((n = write(fd, buf, MIB)) > 0)
		;
	CHECK(n == -1 && errno == ENOSPC);
	while ((n = write(fd, buf, 1)) > 0)
		;
	CHECK(errno == ENOSPC);
	for (i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "small%d", i);
		if (mkdir(name, 0755))
			break;
	}
	CHECK(i < 10000 && errno == ENOSPC);
	OK(unlink("big"));				/* a full volume allows removals */
	close(fd);
	fd = make_file("after", buf, MIB);
	CHECK(pread(fd, buf, MIB, 0) == MIB && is_zero(buf, MIB));
}
