// SPDX-License-Identifier: Apache-2.0
/*
 * Uses FILE, a file of memory, as a VMM does. For `read` and `write`, FILE can also be /dev/mem.
 *
 *   region read FILE AT LENGTH    copies bytes of a shared mapping to standard output
 *   region pinned FILE AT LENGTH  copies them through the kernel, which pins the pages
 *   region write FILE AT LENGTH   copies standard input to a shared mapping
 *   region touch FILE             loads from each page, and prints the number of page faults
 *   region populate FILE          calls MADV_POPULATE_WRITE for the whole mapping
 *   region private FILE           makes a private mapping
 *   region hold FILE STOP         keeps a mapping until the file STOP exists
 *   region use FILE STOP          as hold, and loads from all pages again and again
 *   region look FILE STOP         as hold, but opens FILE only for reading
 *   region child FILE STOP        as hold, in a child; the parent makes the mapping and exits
 *   region neighbours FILE STOP   as hold, with two adjacent mappings, each of one half of FILE
 *   region again FILE STOP        as hold, and then makes a new mapping
 *   region many FILE N            maps FILE@UUID in N processes until a call fails; prints the
 *                                 number of mappings of the first process, and of all processes
 *   region forks FILE N           maps FILE@UUID, forks N children, and then lets another process
 *                                 map FILE
 *   region lend FILE STOP         keeps a page in a pipe, without a mapping, until STOP exists
 *   region longterm FILE          pins a page without a time limit, as VFIO does for DMA
 *   region sendfile FILE          sends a page by sendfile() to a file in memory
 *   region splice FILE            sends a page by splice() to a pipe
 *   region readonly FILE          checks that a mapping for reading cannot become writable
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define PAGE 4096

static char *base;	/* the mapping */
static size_t size;	/* its length */

static int fail(const char *what)
{
	fprintf(stderr, "region: %s: %s\n", what, strerror(errno));
	return 1;
}

/* Maps @len bytes of the file from offset @at on, or the whole file if @len is 0. */
static int map(const char *path, int share, int flags, size_t at, size_t len)
{
	size_t lead = at % PAGE;
	int fd = open(path, flags | O_CLOEXEC);
	int prot = flags == O_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return fail(path);
	size = len ? len : (size_t)st.st_size;
	base = mmap(NULL, lead + size, prot, share, fd, (off_t)(at - lead));
	close(fd);
	if (base == MAP_FAILED)
		return fail("mmap");
	base += lead;
	return 0;
}

static int put(const char *from)
{
	size_t len = size;

	for (ssize_t n; len; from += n, len -= (size_t)n) {
		n = write(STDOUT_FILENO, from, len);
		if (n <= 0)
			return fail("write");
	}
	return 0;
}

/* Makes the kernel pin the pages, as KVM does. It cannot pin memory without struct pages. */
static int pinned(void)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char *copy = malloc(size);

	if (fd < 0 || !copy || pread(fd, copy, size, (off_t)(uintptr_t)base) != (ssize_t)size)
		return fail("/proc/self/mem");
	return put(copy);
}

static int take(void)
{
	char *to = base;
	ssize_t n;

	while ((n = read(STDIN_FILENO, to, (size_t)(base + size - to))) > 0)
		to += n;
	return n < 0 ? fail("read") : 0;
}

static int touch(void)
{
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	for (size_t at = 0; at < size; at += PAGE)
		(void)*(volatile unsigned char *)(base + at);
	getrusage(RUSAGE_SELF, &after);
	printf("%ld\n", after.ru_minflt - before.ru_minflt);
	return 0;
}

static int hold(const char *stop)
{
	printf("mapped\n");
	fflush(stdout);
	while (access(stop, F_OK))
		usleep(10000);
	return 0;
}

static int again(const char *path, const char *stop)
{
	hold(stop);
	if (munmap(base, size))
		return fail("munmap");
	if (map(path, MAP_SHARED, O_RDWR, 0, 0))
		return 1;
	printf("mapped again\n");
	return 0;
}

/* Maps @path for a VM whose UUID no other call uses. */
static bool map_for(const char *path, int process, int i)
{
	char name[300];

	snprintf(name, sizeof(name), "%s@dddddddd-0000-4000-8000-%06x%06x", path, process, i);
	return !map(name, MAP_SHARED, O_RDWR, 0, PAGE);
}

/* Each process keeps its mappings until all processes have reported their numbers. */
static int many(const char *path, int processes)
{
	int up[2], down[2], i, n, total = 0;
	char end;

	if (pipe(up) || pipe(down))
		return fail("pipe");
	for (i = 0; i < processes; i++) {
		if (fork())
			continue;
		close(down[1]);
		for (n = 0; n < 1000 && map_for(path, i, n); n++)
			;
		_exit(write(up[1], &n, sizeof(n)) < 0 || read(down[0], &end, 1));
	}
	for (i = 0; i < processes && read(up[0], &n, sizeof(n)) == sizeof(n); i++) {
		total += n;
		if (!i)
			printf("%d of one\n", n);
	}
	printf("%d in all\n", total);
	close(down[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

/* Children share the parent's mapping, so they do not reduce the number of other mappings. */
static int forks(const char *path, int children)
{
	int go[2], stay[2], i;
	pid_t other;
	char c = 0;

	if (pipe(go) || pipe(stay))
		return fail("pipe");
	other = fork();
	if (!other) {
		close(stay[1]);
		_exit(read(go[0], &c, 1) != 1 || !map_for(path, 1, 0));
	}
	if (!map_for(path, 0, 0))
		return fail("mmap");
	for (i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return fail("fork");
		if (pid)
			continue;
		close(stay[1]);
		_exit(read(stay[0], &c, 1));
	}
	if (write(go[1], &c, 1) != 1 || waitpid(other, &i, 0) != other)
		return fail("the other process");
	close(stay[1]);
	while (wait(NULL) > 0)
		;
	printf("%s\n", i ? "no room" : "mapped");
	return 0;
}

/* Prints "mapped" after the first load from every page. */
static int use(const char *stop)
{
	bool said = false;

	while (access(stop, F_OK)) {
		for (size_t at = 0; at < size; at += PAGE)
			(void)*(volatile unsigned char *)(base + at);
		if (!said)
			printf("mapped\n");
		fflush(stdout);
		said = true;
		usleep(10000);
	}
	return 0;
}

/*
 * Replaces the mapping by one mapping for each half. Both have the same open file and flags, and
 * adjacent offsets, so that the kernel may merge them.
 */
static int neighbours(const char *path, const char *stop)
{
	size_t half = size / 2;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return fail(path);
	for (size_t at = 0; at < size; at += half)
		if (mmap(base + at, half, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			 (off_t)at) == MAP_FAILED)
			return fail("mmap");
	close(fd);
	return hold(stop);
}

/* The pipe refers to the page, and has no copy of it. A reader gets the content at that time. */
static int lend(const char *stop)
{
	struct iovec page = { base, PAGE };
	int ends[2];

	if (pipe(ends) || vmsplice(ends[1], &page, 1, 0) != PAGE || munmap(base, size))
		return fail("vmsplice");
	return hold(stop);
}

/* Registers the page as a buffer of io_uring, which pins it until the ring is closed. */
static int longterm(void)
{
	struct io_uring_params params = { 0 };
	struct iovec page = { base, PAGE };
	int ring = (int)syscall(__NR_io_uring_setup, 1, &params);

	if (ring < 0)
		return fail("io_uring_setup");
	if (syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &page, 1))
		return fail("io_uring_register");
	return 0;
}

static int child(const char *stop)
{
	switch (fork()) {
	case -1:
		return fail("fork");
	case 0:
		return hold(stop);
	}
	return 0;
}

static int send_page(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("copy", MFD_CLOEXEC);
	off_t at = 0;

	if (from < 0 || to < 0 || sendfile(to, from, &at, PAGE) != PAGE)
		return fail("sendfile");
	return 0;
}

static int splice_page(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), ends[2];
	off_t at = 0;

	if (from < 0 || pipe(ends) || splice(from, &at, ends[1], NULL, PAGE, 0) != PAGE)
		return fail("splice");
	return 0;
}

static int not_refused(const char *what)
{
	fprintf(stderr, "region: the kernel does not refuse %s\n", what);
	return 1;
}

static int readonly(void)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char byte = *(volatile char *)base;

	if (fd < 0)
		return fail("/proc/self/mem");
	if (!mprotect(base, size, PROT_READ | PROT_WRITE) || errno != EACCES)
		return not_refused("mprotect for writing");
	if (!mprotect(base, PAGE, PROT_WRITE) || errno != EACCES)
		return not_refused("mprotect of one page");
	if (!madvise(base, size, MADV_POPULATE_WRITE))
		return not_refused("MADV_POPULATE_WRITE");
	if (pwrite(fd, &byte, 1, (off_t)(uintptr_t)base) == 1)
		return not_refused("a store through /proc/self/mem");
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";
	size_t at = argc == 5 ? strtoull(argv[3], NULL, 0) : 0;
	size_t len = argc == 5 ? strtoull(argv[4], NULL, 0) : 0;

	if (argc < 3) {
		fprintf(stderr, "region: read|pinned|write|touch|populate|private|hold|look|again|many|child|"
				"neighbours|use|lend|longterm|sendfile|splice|readonly FILE ...\n");
		return 2;
	}
	if (!strcmp(verb, "many") && argc == 4)
		return many(argv[2], atoi(argv[3]));
	if (!strcmp(verb, "forks") && argc == 4)
		return forks(argv[2], atoi(argv[3]));
	if (map(argv[2], strcmp(verb, "private") ? MAP_SHARED : MAP_PRIVATE,
		strcmp(verb, "look") && strcmp(verb, "readonly") ? O_RDWR : O_RDONLY, at, len))
		return 1;
	if ((!strcmp(verb, "hold") || !strcmp(verb, "look")) && argc == 4)
		return hold(argv[3]);
	if (!strcmp(verb, "again") && argc == 4)
		return again(argv[2], argv[3]);
	if (!strcmp(verb, "lend") && argc == 4)
		return lend(argv[3]);
	if (!strcmp(verb, "child") && argc == 4)
		return child(argv[3]);
	if (!strcmp(verb, "neighbours") && argc == 4)
		return neighbours(argv[2], argv[3]);
	if (!strcmp(verb, "use") && argc == 4)
		return use(argv[3]);
	if (!strcmp(verb, "longterm"))
		return longterm();
	if (!strcmp(verb, "sendfile"))
		return send_page(argv[2]);
	if (!strcmp(verb, "splice"))
		return splice_page(argv[2]);
	if (!strcmp(verb, "readonly"))
		return readonly();
	if (!strcmp(verb, "read"))
		return put(base);
	if (!strcmp(verb, "pinned"))
		return pinned();
	if (!strcmp(verb, "write"))
		return take();
	if (!strcmp(verb, "touch"))
		return touch();
	if (!strcmp(verb, "populate") && madvise(base, size, MADV_POPULATE_WRITE))
		return fail("MADV_POPULATE_WRITE");
	return 0;
}
