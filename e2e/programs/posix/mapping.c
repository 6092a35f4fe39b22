// SPDX-License-Identifier: Apache-2.0
/* Tests of mmap(): coherence with read() and write(), holes, the file's end, private copies. */
#include <linux/falloc.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "posix.h"

#define PAGE 4096L
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static char *map(int fd, size_t len, int prot, int flags)
{
	return OK(mmap(NULL, len, prot, flags, fd, 0));
}

#define RW (PROT_READ | PROT_WRITE)

TEST("mmap", shared_is_the_file)
{
	int fd = make_file("f", "", 0);
	char *p, buf[8];

	OK(ftruncate(fd, 3 * PAGE));
	p = map(fd, 3 * PAGE, RW, MAP_SHARED);
	CHECK(pwrite(fd, "write", 5, PAGE) == 5);
	CHECK(!memcmp(p + PAGE, "write", 5));
	memcpy(p + PAGE + 5, "map", 3);
	CHECK(pread(fd, buf, 8, PAGE) == 8 && !memcmp(buf, "writemap", 8));
	OK(msync(p, 3 * PAGE, MS_SYNC));
	OK(munmap(p, 3 * PAGE));
	CHECK(pread(fd, buf, 8, PAGE) == 8 && !memcmp(buf, "writemap", 8));
}

TEST("mmap", hole_read_then_filled_by_write)
{
	int fd = make_file("f", "", 0);
	char *p, *q;

	OK(ftruncate(fd, 2 * PAGE));
	p = map(fd, 2 * PAGE, RW, MAP_SHARED);
	q = map(fd, 2 * PAGE, PROT_READ, MAP_PRIVATE);
	CHECK(is_zero(p, 2 * PAGE) && is_zero(q, 2 * PAGE));
	CHECK(stat_of("f").st_blocks == 0);		/* reading allocates nothing */
	CHECK(pwrite(fd, "a", 1, 0) == 1);
	CHECK(p[0] == 'a' && q[0] == 'a');
	OK(fallocate(fd, 0, PAGE, PAGE));
	CHECK(pwrite(fd, "b", 1, PAGE) == 1);
	CHECK(p[PAGE] == 'b' && q[PAGE] == 'b');
}

TEST("mmap", hole_filled_through_another_mapping)
{
	int fd = make_file("f", "", 0);
	char *p, *q, c;

	OK(ftruncate(fd, PAGE));
	p = map(fd, PAGE, RW, MAP_SHARED);
	q = map(fd, PAGE, RW, MAP_SHARED);
	CHECK(p[10] == 0 && q[10] == 0);
	p[10] = 'x';
	CHECK(q[10] == 'x' && pread(fd, &c, 1, 10) == 1 && c == 'x');
	CHECK(stat_of("f").st_blocks == 8);
}

/* The hole is larger than the largest page of zeroes. Both mappings see each store at once. */
TEST("mmap", large_hole)
{
	const size_t len = 2048 * PAGE;
	int fd = make_file("f", "", 0);
	char *p, *q, c;

	OK(ftruncate(fd, (off_t)len));
	p = map(fd, len, RW, MAP_SHARED);
	q = map(fd, len, RW, MAP_PRIVATE);
	CHECK(is_zero(p, len) && is_zero(q, len));
	CHECK(stat_of("f").st_blocks == 0);
	p[700 * PAGE] = 'a';				/* by a store */
	CHECK(q[700 * PAGE] == 'a' && pread(fd, &c, 1, 700 * PAGE) == 1 && c == 'a');
	CHECK(pwrite(fd, "b", 1, 1300 * PAGE) == 1);	/* by a call */
	CHECK(p[1300 * PAGE] == 'b' && q[1300 * PAGE] == 'b');
	q[1301 * PAGE] = 'c';				/* a private copy */
	CHECK(p[1301 * PAGE] == 0 && pread(fd, &c, 1, 1301 * PAGE) == 1 && c == 0);
	CHECK(stat_of("f").st_blocks <= 64);		/* two pages and their tables */
	CHECK(is_zero(p, 700 * PAGE) && is_zero(p + 701 * PAGE, 599 * PAGE));
	CHECK(is_zero(p + 1301 * PAGE, 747 * PAGE) && is_zero(q + 1302 * PAGE, 746 * PAGE));
	OK(fallocate(fd, 0, 0, (off_t)len));
	CHECK(pwrite(fd, "d", 1, 100 * PAGE) == 1);
	CHECK(p[100 * PAGE] == 'd' && q[100 * PAGE] == 'd' && q[1301 * PAGE] == 'c');
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)len));
	CHECK(is_zero(p, len));
}

static void child_reads_and_stores(char *p, size_t len)
{
	if (!is_zero(p, len))
		_exit(1);
	p[len - 1] = 'e';
	_exit(0);
}

TEST("mmap", large_hole_and_fork)
{
	const size_t len = 1024 * PAGE;
	int fd = make_file("f", "", 0), status;
	char *p;
	pid_t pid;

	OK(ftruncate(fd, (off_t)len));
	p = map(fd, len, RW, MAP_SHARED);
	CHECK(is_zero(p, len));
	pid = OK(fork());
	if (!pid)
		child_reads_and_stores(p, len);
	OK(waitpid(pid, &status, 0));
	CHECK(status == 0 && p[len - 1] == 'e');
	OK(mprotect(p, len, PROT_READ));
	CHECK(is_zero(p, len - PAGE));
	OK(mprotect(p, len, RW));
	p[0] = 'f';
	CHECK(p[0] == 'f' && is_zero(p + PAGE, len - 2 * PAGE));
	OK(madvise(p, len, MADV_DONTNEED));
	CHECK(p[0] == 'f' && p[PAGE] == 0);
}

TEST("mmap", private_copies)
{
	int fd = make_file("f", "abc", 3);
	char *p = map(fd, PAGE, RW, MAP_PRIVATE), c;

	p[0] = 'X';
	CHECK(pread(fd, &c, 1, 0) == 1 && c == 'a');
	CHECK(pwrite(fd, "Y", 1, 1) == 1);
	CHECK(p[0] == 'X' && p[1] == 'b');
	p = map(fd, PAGE, RW, MAP_PRIVATE);
	CHECK(p[1] == 'Y');			/* reads the page, and then stores to it */
	p[1] = 'Z';
	CHECK(pread(fd, &c, 1, 1) == 1 && c == 'Y');
}

TEST("mmap", fork_shares)
{
	int fd = make_file("f", "", 0);
	char *p;
	pid_t pid;

	OK(ftruncate(fd, PAGE));
	p = map(fd, PAGE, RW, MAP_SHARED);
	p[0] = 1;
	pid = OK(fork());
	if (!pid) {
		p[1] = 2;
		_exit(p[0] != 1);
	}
	while (((volatile char *)p)[1] != 2)
		usleep(1000);
}

static int beyond_fd;

static void touch_beyond(void)
{
	char *p = map(beyond_fd, 4 * PAGE, PROT_READ, MAP_SHARED);

	printf("%d", p[2 * PAGE]);
}

static void write_beyond(void)
{
	char *p = map(beyond_fd, 4 * PAGE, RW, MAP_SHARED);

	p[2 * PAGE] = 1;
}

TEST("mmap", sigbus_beyond_the_end)
{
	char *p;

	beyond_fd = make_file("f", "x", 1);
	OK(ftruncate(beyond_fd, PAGE + 1));
	dies_of(SIGBUS, touch_beyond);
	dies_of(SIGBUS, write_beyond);
	p = map(beyond_fd, 4 * PAGE, RW, MAP_SHARED);
	CHECK(p[PAGE + 100] == 0);		/* the rest of the last page */
}

static void touch_spare(void)
{
	char *p = map(beyond_fd, 16 * PAGE, PROT_READ, MAP_SHARED);

	CHECK(p[0] == 's');
	printf("%d", p[3 * PAGE]);
}

/* One fault may map several pages. Each must behave as if its own fault had mapped it. */
TEST("mmap", neighbours_of_a_page)
{
	char *p, *q, *own;
	int i;

	beyond_fd = make_file("f", "", 0);
	OK(fallocate(beyond_fd, FALLOC_FL_KEEP_SIZE, 0, 16 * PAGE));
	for (i = 0; i < 3; i++)
		CHECK(pwrite(beyond_fd, "shared" + i, 1, i * PAGE) == 1);
	/* The file has allocated pages beyond its size. */
	dies_of(SIGBUS, touch_spare);
	OK(ftruncate(beyond_fd, 16 * PAGE));
	p = map(beyond_fd, 16 * PAGE, RW, MAP_SHARED);
	own = map(beyond_fd, 16 * PAGE, RW, MAP_PRIVATE);
	q = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, beyond_fd, PAGE);
	CHECK(q != MAP_FAILED && q[0] == 'h' && q[PAGE] == 'a');
	CHECK(p[0] == 's' && own[0] == 's' && is_zero(p + 3 * PAGE, 13 * PAGE));
	own[PAGE] = 'x';
	p[2 * PAGE] = 'y';
	CHECK(pwrite(beyond_fd, "z", 1, 5 * PAGE) == 1);
	CHECK(p[PAGE] == 'h' && q[0] == 'h' && q[PAGE] == 'y' && own[2 * PAGE] == 'y');
	CHECK(p[5 * PAGE] == 'z' && own[5 * PAGE] == 'z');
	OK(fallocate(beyond_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, 2 * PAGE));
	CHECK(!p[PAGE] && !q[0] && !q[PAGE] && own[PAGE] == 'x' && !own[2 * PAGE]);
	OK(munmap(q, 2 * PAGE));
}

static char *cut_map;

static void touch_cut(void)
{
	printf("%d", cut_map[PAGE]);
}

TEST("mmap", truncation_takes_pages_away)
{
	int fd = make_file("f", "", 0);

	OK(ftruncate(fd, 2 * PAGE));
	cut_map = map(fd, 2 * PAGE, RW, MAP_SHARED);
	memset(cut_map, 'c', 2 * PAGE);
	OK(ftruncate(fd, PAGE));
	dies_of(SIGBUS, touch_cut);
	CHECK(cut_map[0] == 'c');
	OK(ftruncate(fd, 2 * PAGE));
	CHECK(is_zero(cut_map + PAGE, PAGE));	/* the old contents do not come back */
	cut_map[PAGE] = 'd';
	CHECK(pread(fd, &cut_map[0], 1, PAGE) == 1 && cut_map[0] == 'd');
}

TEST("mmap", bytes_behind_the_end_are_not_kept)
{
	int fd = make_file("f", "abc", 3);
	char *p = map(fd, PAGE, RW, MAP_SHARED), buf[10];

	memset(p + 3, 'g', 100);
	OK(ftruncate(fd, 50));
	CHECK(pread(fd, buf, 10, 0) == 10 && is_zero(buf + 3, 7));
	memset(p + 50, 'g', 100);
	CHECK(pwrite(fd, "z", 1, 200) == 1);
	CHECK(pread(fd, buf, 10, 60) == 10 && is_zero(buf, 10));
}

TEST("mmap", punched_pages_become_zero)
{
	int fd = make_file("f", "", 0);
	char *p;

	OK(ftruncate(fd, 4 * PAGE));
	p = map(fd, 4 * PAGE, RW, MAP_SHARED);
	memset(p, 'p', 4 * PAGE);
	OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, 2 * PAGE));
	CHECK(p[0] == 'p' && is_zero(p + PAGE, 2 * PAGE) && p[3 * PAGE] == 'p');
	p[PAGE] = 'q';
	CHECK(pread(fd, &p[0], 1, PAGE) == 1 && p[0] == 'q');
}

TEST("mmap", collapse_moves_what_is_mapped)
{
	int fd = make_file("f", "", 0);
	char *p;
	int i;

	OK(ftruncate(fd, 4 * PAGE));
	p = map(fd, 4 * PAGE, RW, MAP_SHARED);
	for (i = 0; i < 4; i++)
		p[i * PAGE] = 'a' + i;
	OK(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, PAGE, PAGE));
	CHECK(p[0] == 'a' && p[PAGE] == 'c' && p[2 * PAGE] == 'd');
	OK(fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, PAGE));
	CHECK(p[0] == 0 && p[PAGE] == 'a' && p[2 * PAGE] == 'c' && p[3 * PAGE] == 'd');
}

TEST("mmap", large_pages)
{
	const size_t len = 6 * MIB;
	int fd = make_file("f", "", 0);
	char *p, *buf = malloc(len);
	size_t i;

	OK(fallocate(fd, 0, 0, len));
	p = map(fd, len, RW, MAP_SHARED);
	for (i = 0; i < len; i += PAGE)
		CHECK(p[i] == 0);
	fill(p, len, 5);
	CHECK(pread(fd, buf, len, 0) == (ssize_t)len && is_filled(buf, len, 5));
	fill(buf, len, 6);
	CHECK(pwrite(fd, buf, len, 0) == (ssize_t)len && is_filled(p, len, 6));
	OK(msync(p, len, MS_SYNC));
	OK(mprotect(p + 2 * MIB + PAGE, PAGE, PROT_READ));	/* splits a large entry */
	CHECK(is_filled(p, len, 6));
	OK(ftruncate(fd, 3 * MIB + 5 * PAGE));
	CHECK(!memcmp(p, buf, 3 * MIB + 5 * PAGE));
	OK(munmap(p + MIB, MIB));
	CHECK(!memcmp(p, buf, MIB) && !memcmp(p + 2 * MIB, buf + 2 * MIB, MIB));
}

TEST("mmap", private_large_pages)
{
	const size_t len = 4 * MIB;
	int fd = make_file("f", "", 0);
	char *p, *buf = malloc(len);

	fill(buf, len, 7);
	CHECK(pwrite(fd, buf, len, 0) == (ssize_t)len);
	p = map(fd, len, RW, MAP_PRIVATE);
	CHECK(is_filled(p, len, 7));
	p[2 * MIB + 5] = 1;
	CHECK(pread(fd, buf, len, 0) == (ssize_t)len && is_filled(buf, len, 7));
	CHECK(p[2 * MIB + 5] == 1 && !memcmp(p, buf, 2 * MIB));
}

TEST("mmap", modification_time_follows_stores)
{
	int fd = make_file("f", "x", 1);
	char *p = map(fd, PAGE, RW, MAP_SHARED);
	struct stat before = stat_of("f");

	wait_tick();
	p[0] = 'y';
	OK(msync(p, PAGE, MS_SYNC));
	CHECK(later(stat_of("f").st_mtim, before.st_mtim));
}

TEST("mmap", map_sync)
{
	int fd = make_file("f", "", 0);
	char *p;

	OK(ftruncate(fd, PAGE));
	p = map(fd, PAGE, RW, MAP_SHARED_VALIDATE | MAP_SYNC);
	p[0] = 's';
	CHECK(pread(fd, &p[1], 1, 0) == 1 && p[1] == 's');
}

TEST("mmap", file_is_source_and_target)
{
	int fd = make_file("f", "", 0), other = make_file("g", "", 0);
	char *p;

	OK(ftruncate(fd, 64 * PAGE));
	p = map(fd, 64 * PAGE, RW, MAP_SHARED);
	fill(p, 32 * PAGE, 8);
	CHECK(pwrite(fd, p, 32 * PAGE, 32 * PAGE) == 32 * PAGE);	/* onto itself */
	CHECK(is_filled(p + 32 * PAGE, 32 * PAGE, 8));
	CHECK(pwrite(other, p, 32 * PAGE, 0) == 32 * PAGE);
	OK(ftruncate(fd, 0));
	OK(ftruncate(fd, 64 * PAGE));
	CHECK(pread(other, p, 32 * PAGE, 0) == 32 * PAGE);	/* into holes of a mapping */
	CHECK(is_filled(p, 32 * PAGE, 8));
}

TEST("mmap", advice_and_moves)
{
	int fd = make_file("f", "", 0);
	char *p, *q;

	OK(ftruncate(fd, 8 * PAGE));
	p = OK(mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_POPULATE, fd, 0));
	fill(p, 4 * PAGE, 2);
	OK(madvise(p, 4 * PAGE, MADV_DONTNEED));
	CHECK(is_filled(p, 4 * PAGE, 2));
	OK(mlock(p, 4 * PAGE));
	OK(munlock(p, 4 * PAGE));
	q = OK(mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	q = OK(mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q));
	CHECK(is_filled(q, 4 * PAGE, 2) && is_zero(q + 4 * PAGE, 4 * PAGE));
	OK(mprotect(q, PAGE, PROT_READ));
	CHECK(is_filled(q, 4 * PAGE, 2));
	OK(mprotect(q, PAGE, RW));
	q[0] = 0;
	OK(madvise(q + PAGE, PAGE, MADV_REMOVE));	/* a hole in the file */
	CHECK(is_zero(q + PAGE, PAGE) && lseek(fd, 0, SEEK_HOLE) == PAGE);
}

static long locked_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[200];
	long kb = -1;

	CHECK(f);
	while (kb < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmLck: %ld", &kb);
	fclose(f);
	return kb;
}

/*
 * See docs/limitations.md: for a mapping of device memory (VM_IO), mlock() returns 0, but locks and
 * counts nothing. So msync(MS_INVALIDATE) finds no lock. It invalidates nothing, because there is
 * no copy.
 */
TEST("mmap", locking_does_nothing)
{
	int fd = make_file("f", "", 0);
	long before = locked_kb();
	char *p;

	OK(ftruncate(fd, 4 * PAGE));
	p = OK(mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0));
	OK(mlock(p, 4 * PAGE));
	CHECK(locked_kb() == before);
	p[5] = 'x';
	OK(msync(p, 4 * PAGE, MS_SYNC | MS_INVALIDATE));
	CHECK(p[5] == 'x');
	CHECK(pwrite(fd, "y", 1, 5) == 1 && p[5] == 'y');
	OK(munlock(p, 4 * PAGE));
	OK(msync(p, 4 * PAGE, MS_ASYNC | MS_INVALIDATE));
}

TEST("mmap", grows_where_it_is)
{
	int fd = make_file("f", "", 0);
	char *room = OK(mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	char *p = OK(mmap(room, 4 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0));

	OK(ftruncate(fd, 8 * PAGE));
	fill(p, 4 * PAGE, 2);
	OK(munmap(room + 4 * PAGE, 4 * PAGE));
	if (mremap(p, 4 * PAGE, 8 * PAGE, 0) == MAP_FAILED && errno == ENOMEM)
		skip("this kernel does not grow special mappings in place");
	CHECK(is_filled(p, 4 * PAGE, 2) && is_zero(p + 4 * PAGE, 4 * PAGE));
}

TEST("mmap", unlinked_while_mapped)
{
	int fd = make_file("f", "", 0);
	char *p;

	OK(ftruncate(fd, 16 * PAGE));
	p = map(fd, 16 * PAGE, RW, MAP_SHARED);
	close(fd);
	OK(unlink("f"));
	fill(p, 16 * PAGE, 3);
	CHECK(is_filled(p, 16 * PAGE, 3));
}

TEST("mmap", other_process_looks_in)
{
	int fd = make_file("f", "", 0);
	char *p, buf[4];
	struct iovec mine = { buf, 4 }, theirs;
	pid_t pid;
	int go[2];

	OK(ftruncate(fd, PAGE));
	p = map(fd, PAGE, RW, MAP_SHARED);
	memcpy(p, "peek", 4);
	OK(pipe(go));
	pid = OK(fork());
	if (!pid) {
		OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
		CHECK(p[0] == 'p' && write(go[1], "x", 1) == 1);
		pause();
	}
	CHECK(read(go[0], buf, 1) == 1);
	theirs = (struct iovec){ p, 4 };
	/*
	 * process_vm_readv() uses get_user_pages(), which fails for special entries: a documented
	 * limitation. Kernels without CONFIG_CROSS_MEMORY_ATTACH lack the call.
	 */
	if (process_vm_readv(pid, &mine, 1, &theirs, 1, 0) != -1 || errno != ENOSYS)
		FAILS(process_vm_readv(pid, &mine, 1, &theirs, 1, 0), EFAULT);
	{
		char path[64];
		int mem;

		snprintf(path, sizeof(path), "/proc/%d/mem", pid);
		mem = OK(open(path, O_RDWR));
		CHECK(pread(mem, buf, 4, (off_t)p) == 4 && !memcmp(buf, "peek", 4));
		CHECK(pwrite(mem, "poke", 4, (off_t)p) == 4 && !memcmp(p, "poke", 4));
	}
	OK(kill(pid, SIGKILL));
}

/* A debugger reads the process's private copies, and stores into them. */
TEST("mmap", other_process_looks_at_copies)
{
	int fd = make_file("f", "", 0), go[2], mem;
	volatile char *own, *seen;
	char *p, buf[4], path[64];
	pid_t pid;

	CHECK(pwrite(fd, "file", 4, 0) == 4 && pwrite(fd, "also", 4, PAGE) == 4 &&
	      pwrite(fd, "this", 4, 2 * PAGE) == 4);
	own = p = map(fd, 3 * PAGE, RW, MAP_PRIVATE);
	seen = OK(mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	OK(pipe(go));
	pid = OK(fork());
	if (!pid) {
		OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
		memcpy(p, "copy", 4);
		CHECK(write(go[1], "x", 1) == 1);
		while (own[3] != '1')
			usleep(1000);
		seen[0] = 1;
		pause();
	}
	CHECK(read(go[0], buf, 1) == 1);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = OK(open(path, O_RDWR));
	CHECK(pread(mem, buf, 4, (off_t)p) == 4 && !memcmp(buf, "copy", 4));
	CHECK(pread(mem, buf, 4, (off_t)(p + 2 * PAGE)) == 4 && !memcmp(buf, "this", 4));
	CHECK(pwrite(mem, "new1", 4, (off_t)p) == 4);
	CHECK(pread(mem, buf, 4, (off_t)p) == 4 && !memcmp(buf, "new1", 4));
	while (!seen[0])
		usleep(1000);
	CHECK(pread(fd, buf, 4, 0) == 4 && !memcmp(buf, "file", 4));
	CHECK(pread(fd, buf, 4, PAGE) == 4 && !memcmp(buf, "also", 4));
	OK(kill(pid, SIGKILL));
}

/* An access beyond the mapping's end does not reach the file, even if the file has data there. */
TEST("mmap", other_process_looks_beyond)
{
	char buf[20], *room = OK(mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	int fd = make_file("f", "", 0), mem;
	off_t end = (off_t)(room + PAGE);

	OK(ftruncate(fd, 2 * PAGE));
	CHECK(pwrite(fd, "aaaaaaaaaabbbbbbbbbb", 20, PAGE - 10) == 20);
	OK(mmap(room, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0));
	memcpy(room + PAGE, "nnnnnnnnnn", 10);
	mem = OK(open("/proc/self/mem", O_RDWR));
	CHECK(pread(mem, buf, 20, end - 10) == 20 && !memcmp(buf, "aaaaaaaaaannnnnnnnnn", 20));
	CHECK(pwrite(mem, "AAAAAAAAAANNNNNNNNNN", 20, end - 10) == 20);
	CHECK(!memcmp(room + PAGE - 10, "AAAAAAAAAANNNNNNNNNN", 20));
	CHECK(pread(fd, buf, 20, PAGE - 10) == 20 && !memcmp(buf, "AAAAAAAAAAbbbbbbbbbb", 20));
}

static void read_all(const char *path)
{
	static char buf[1 << 16];
	int fd = OK(open(path, O_RDONLY));

	while (read(fd, buf, sizeof(buf)) > 0)
		;
	OK(close(fd));
}

/* Some calls search a mapping for struct pages or large pages. They find none, and do no harm. */
static void looked_at(char *p, size_t len)
{
	struct iovec mine = { NULL, 8 }, theirs = { p + 10 * PAGE, 8 };
	char buf[8];
	uint64_t entry;
	int fd, go[2];

	mine.iov_base = buf;
	if (process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) != -1 || errno != ENOSYS)
		FAILS(process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0), EFAULT);
	OK(pipe(go));
	FAILS(vmsplice(go[1], &theirs, 1, 0), EFAULT);
	close(go[0]);
	close(go[1]);
	madvise(p, len, MADV_COLD);		/* the kernel may refuse these four */
	madvise(p, len, MADV_PAGEOUT);
	madvise(p, len, MADV_FREE);
	madvise(p, len, MADV_COLLAPSE);
	FAILS(madvise(p, len, MADV_POPULATE_READ), EINVAL);	/* see docs/limitations.md */
	fd = OK(open("/proc/self/pagemap", O_RDONLY));
	CHECK(pread(fd, &entry, 8, (off_t)((uintptr_t)p / PAGE * 8)) == 8);
	OK(close(fd));
	read_all("/proc/self/smaps");
	read_all("/proc/self/numa_maps");
}

TEST("mmap", nobody_gets_large_pages)
{
	const size_t len = 2048 * PAGE;
	int fd = make_file("f", "", 0), hole = make_file("g", "", 0);
	char *p;

	p = OK(mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	fill(p, len, 4);
	CHECK(pwrite(fd, p, len, 0) == (ssize_t)len);
	OK(munmap(p, len));
	p = map(fd, len, RW, MAP_SHARED);
	CHECK(is_filled(p, len, 4));
	looked_at(p, len);
	CHECK(is_filled(p, len, 4));
	p = map(fd, len, RW, MAP_PRIVATE);
	CHECK(is_filled(p, len, 4));
	looked_at(p, len);
	CHECK(is_filled(p, len, 4));
	OK(ftruncate(hole, (off_t)len));
	p = map(hole, len, RW, MAP_SHARED);
	CHECK(is_zero(p, len));
	looked_at(p, len);
	CHECK(is_zero(p, len));
}

TEST("mmap", freeze_stops_stores)
{
	int fd = make_file("f", "", 0), frozen, early, status;
	volatile char *p;
	pid_t pid;

	OK(ftruncate(fd, PAGE));
	p = map(fd, PAGE, RW, MAP_SHARED);
	p[0] = 'a';				/* the entry is writable */
	frozen = ioctl(fd, FIFREEZE, 0);
	if (frozen && errno == EOPNOTSUPP)
		skip("no freezing here");
	pid = fork();
	if (!pid) {
		p[0] = 'b';
		_exit(0);
	}
	usleep(300000);
	early = p[0];				/* a check that fails here would leave it frozen */
	OK(ioctl(fd, FITHAW, 0));
	CHECK(!frozen && pid > 0 && waitpid(pid, &status, 0) == pid && !status);
	CHECK(early == 'a' && p[0] == 'b');
}
