// SPDX-License-Identifier: Apache-2.0
/*
 * Measures how much several systems on one file system slow each other down. Each system runs one
 * process. The process prints "ready" after its preparation, and begins when it reads a line. So
 * all processes begin together.
 *
 *   together rate OPERATION DIR NAME MS      repeats OPERATION for MS milliseconds, and prints
 *                                            "CALLS NANOSECONDS"; OPERATION is:
 *       create     makes and removes the files DIR/NAME-0, DIR/NAME-1, ...
 *       stat       calls stat() of DIR/NAME
 *       write      writes 4 KiB to the next block of DIR/NAME, which has 1 MiB
 *   together ring KIND FILE WHO COUNT        two systems (WHO 0 and 1) follow each other around a
 *                                            ring of three locks of KIND flock or posix
 *   together pass FILE WHO COUNT             each of two systems writes a number, and reads until
 *                                            the other system has written the same number
 *   together cut FILE LENGTH COUNT           truncates a file of LENGTH bytes that others map
 *   together map FILE                        maps FILE, and reads all of it, until a signal
 *
 * ring, pass and cut print "COUNT MEDIAN P99 LONGEST" in nanoseconds. ring and pass print half of
 * the time between two turns of this system, because the other system has one turn in between.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	4096
#define BLOCKS	256
#define LOCKS	3
#define SECOND	1000000000ull
#define PATIENCE (5 * SECOND) /* after this time, the program gives up waiting for a change */
#define BUDGET	(15 * SECOND) /* the time limit of all turns: slow turns reduce their number */

static char block[BLOCK];

__attribute__((noreturn)) static void die(const char *what)
{
	printf("together: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void nap(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static int opened(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	if (fd < 0)
		die(path);
	return fd;
}

static void ready(void)
{
	char line[16];

	puts("ready");
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

/* --- rates ------------------------------------------------------------------------------------ */

static const char *name;
static int file;

static void make_and_remove(unsigned int i)
{
	char path[64];

	snprintf(path, sizeof(path), "%s-%u", name, i);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (fd < 0 || close(fd) || unlink(path))
		die(path);
}

static void look(unsigned int i)
{
	struct stat st;

	(void)i;
	if (stat(name, &st))
		die(name);
}

static void overwrite(unsigned int i)
{
	if (pwrite(file, block, BLOCK, (off_t)(i % BLOCKS) * BLOCK) != BLOCK)
		die(name);
}

static void no_file(void)
{
}

static void some_file(void)
{
	close(opened(name));
}

static void full_file(void)
{
	file = opened(name);
	for (unsigned int i = 0; i < BLOCKS; i++)
		overwrite(i);
}

static const struct {
	const char *name;
	void (*prepare)(void);
	void (*run)(unsigned int i);
} operations[] = {
	{ "create", no_file, make_and_remove },
	{ "stat", some_file, look },
	{ "write", full_file, overwrite },
};

static void rate(const char *operation, const char *dir, long ms)
{
	unsigned int calls = 0;

	if (chdir(dir))
		die(dir);
	for (size_t o = 0; o < sizeof(operations) / sizeof(operations[0]); o++) {
		if (strcmp(operations[o].name, operation))
			continue;
		operations[o].prepare();
		ready();
		uint64_t start = now(), end = start + (uint64_t)ms * 1000000, at;

		while ((at = now()) < end)
			operations[o].run(calls++);
		printf("%u %llu\n", calls, (unsigned long long)(at - start));
		return;
	}
	errno = EINVAL;
	die(operation);
}

/* --- durations -------------------------------------------------------------------------------- */

static uint64_t *took;
static unsigned int count;

static void measures(const char *text)
{
	count = (unsigned int)atoi(text);
	took = calloc(count ? count : 1, sizeof(*took));
	if (!count || !took)
		die("COUNT");
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void tell(unsigned int share)
{
	qsort(took, count, sizeof(*took), by_size);
	printf("%u %llu %llu %llu\n", count, (unsigned long long)took[count / 2] / share,
	       (unsigned long long)took[(uint64_t)count * 99 / 100] / share,
	       (unsigned long long)took[count - 1] / share);
}

static int ring_fd[LOCKS];
static int ring_flock;

static void turn(unsigned int which, int on)
{
	struct flock l = { .l_type = on ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_len = 1 };

	l.l_start = which;
	if (ring_flock ? flock(ring_fd[which], on ? LOCK_EX : LOCK_UN) :
			 fcntl(ring_fd[0], F_SETLKW, &l))
		die("lock");
}

/*
 * Each system takes the lock that the other system has just released. So each step of one system
 * waits for a step of the other system.
 */
static void ring(const char *kind, const char *path, unsigned int who)
{
	char each[256];

	ring_flock = !strcmp(kind, "flock");
	for (unsigned int i = 0; i < LOCKS; i++) {
		snprintf(each, sizeof(each), "%s.%u", path, i);
		ring_fd[i] = opened(each);
	}
	turn(who, 1);
	ready();
	for (unsigned int i = 0; i < count; i++) {
		unsigned int next = (who + i + 1) % LOCKS;
		uint64_t start = now();

		turn(next, 1);
		turn((who + i) % LOCKS, 0);
		took[i] = now() - start;
	}
	turn((who + count) % LOCKS, 0);
	tell(2);
}

static int await(int fd, off_t at, uint64_t wanted)
{
	uint64_t seen = 0, start = now();

	while (seen != wanted) {
		if (pread(fd, &seen, sizeof(seen), at) < 0)
			die("read");
		if (now() - start > PATIENCE)
			return 0;
	}
	return 1;
}

static void pass(const char *path, unsigned int who)
{
	off_t mine = who * BLOCK, other = BLOCK - mine;

	file = opened(path);
	for (off_t at = 0; at < 2 * BLOCK; at += BLOCK)
		if (pwrite(file, block, BLOCK, at) != BLOCK)
			die(path);
	ready();
	uint64_t i = 0, first = now();

	while (i < count && now() - first < BUDGET) {
		uint64_t start = now(), turn = i + 1;

		if (who && !await(file, other, turn))
			break;
		if (pwrite(file, &turn, sizeof(turn), mine) != sizeof(turn))
			die(path);
		if (!who && !await(file, other, turn))
			break;
		took[i++] = now() - start;
	}
	count = (unsigned int)i;
	if (count)
		tell(2);
	else
		puts("never");
}

static void fill(size_t len)
{
	for (size_t at = 0; at < len; at += BLOCK)
		if (pwrite(file, block, BLOCK, (off_t)at) != BLOCK)
			die("write");
}

/* Before each truncation, other systems get 20 ms to read the file through their mappings. */
static void cut(const char *path, size_t len)
{
	file = opened(path);
	ready();
	for (unsigned int i = 0; i < count; i++) {
		fill(len);
		nap(20);
		uint64_t start = now();

		if (ftruncate(file, 0))
			die(path);
		took[i] = now() - start;
	}
	tell(1);
}

static sigjmp_buf beyond;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(beyond, 1);
}

static void map(const char *path)
{
	struct sigaction sa = { .sa_handler = on_bus };
	size_t len = BLOCKS * BLOCK;
	volatile char *all, sum = 0;

	file = opened(path);
	all = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (all == MAP_FAILED)
		die("mmap");
	sigaction(SIGBUS, &sa, NULL);
	ready();
	for (;;) {
		if (!sigsetjmp(beyond, 1))
			for (size_t at = 0; at < len; at += BLOCK)
				sum += all[at];
		nap(1);
	}
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	memset(block, 0, sizeof(block));
	if (argc == 6 && !strcmp(argv[1], "rate")) {
		name = argv[4];
		rate(argv[2], argv[3], atol(argv[5]));
	} else if (argc == 6 && !strcmp(argv[1], "ring")) {
		measures(argv[5]);
		ring(argv[2], argv[3], (unsigned int)atoi(argv[4]));
	} else if (argc == 5 && !strcmp(argv[1], "pass")) {
		measures(argv[4]);
		pass(argv[2], (unsigned int)atoi(argv[3]));
	} else if (argc == 5 && !strcmp(argv[1], "cut")) {
		measures(argv[4]);
		cut(argv[2], (size_t)atol(argv[3]));
	} else if (argc == 3 && !strcmp(argv[1], "map")) {
		map(argv[2]);
	} else {
		fputs("usage: together rate|ring|pass|cut|map ...\n", stderr);
		return 2;
	}
	return 0;
}
