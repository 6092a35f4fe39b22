// SPDX-License-Identifier: Apache-2.0
/*
 * sequence store DIR STOP	stores the numbers 1, 2, ... until STOP exists: each number in a
 *				file, through a mapping, in a log and as a name, in this order;
 *				prints the last number, and the ms of the longest step
 * sequence check DIR [STEP]	checks that the files show a state between two stores, after the
 *				step STEP
 * sequence freeze DIR MS  pauses all systems of the volume, with the limit MS, without a resume
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGES	3
#define WORDS	512
#define LOG_MAX	(64 * 4096)

static void fails(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);

	if (fd < 0)
		fails(name);
	return fd;
}

static void store(int fd, uint64_t k, int words, off_t at)
{
	static uint64_t buf[PAGES * WORDS];
	int i;

	for (i = 0; i < words; i++)
		buf[i] = k;
	if (pwrite(fd, buf, (size_t)words * 8, at) != words * 8)
		fails("pwrite");
}

static void append(int fd, uint64_t k)
{
	off_t end = lseek(fd, 0, SEEK_END);

	if (end >= LOG_MAX && ftruncate(fd, 0))
		fails("ftruncate");
	store(fd, k, 1, end >= LOG_MAX ? 0 : end);
}

static int sequence(const char *stop)
{
	double longest = 0, start, took;
	int a = open_file("a"), m = open_file("m"), log = open_file("log"), fd;
	volatile uint64_t *map;
	char name[32];
	uint64_t k;

	if (ftruncate(m, 4096))
		fails("m");
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, m, 0);
	if (map == MAP_FAILED)
		fails("mmap");
	for (k = 1; access(stop, F_OK); k++) {
		start = now();
		store(a, k, PAGES * WORDS, 0);
		*map = k;
		append(log, k);
		sprintf(name, "k-%llu", (unsigned long long)k);
		fd = open_file(name);
		close(fd);
		sprintf(name, "k-%llu", (unsigned long long)k - 1);
		if (k > 1 && unlink(name))
			fails(name);
		took = now() - start;
		longest = took > longest ? took : longest;
		usleep(200);
	}
	printf("%llu %.0f\n", (unsigned long long)k - 1, longest * 1000);
	return 0;
}

/* --- the check of a copy ---------------------------------------------------------------------- */

static uint64_t word_at(const char *name, off_t at)
{
	int fd = open(name, O_RDONLY);
	uint64_t k;

	if (fd < 0 || pread(fd, &k, 8, at < 0 ? lseek(fd, 0, SEEK_END) + at : at) != 8)
		fails(name);
	close(fd);
	return k;
}

static int wrong(const char *what, uint64_t a, uint64_t b)
{
	printf("%s: %llu and %llu\n", what, (unsigned long long)a, (unsigned long long)b);
	return 1;
}

static int check(uint64_t done)
{
	uint64_t a = word_at("a", 0), m = word_at("m", 0), log = word_at("log", -8), k;
	uint64_t high = 0, low = ~0ULL;
	DIR *dir = opendir(".");
	struct dirent *e;
	off_t i;

	for (i = 0; i < PAGES * WORDS; i++)
		if (word_at("a", i * 8) != a)
			return wrong("file a has two numbers", word_at("a", i * 8), a);
	while (dir && (e = readdir(dir))) {
		if (sscanf(e->d_name, "k-%lu", &k) != 1)
			continue;
		high = k > high ? k : high;
		low = k < low ? k : low;
	}
	if (a < m || m < log || log < high)
		return wrong("a later store is older than an earlier store", a << 32 | m,
			     log << 32 | high);
	if (a - high > 1 || high - low > 1 || (a != high && low != high))
		return wrong("the files and the names are of different steps", a, high << 32 | low);
	if (high < done)
		return wrong("the last step, and a later step that is missing", high, done);
	printf("%llu\n", (unsigned long long)high);
	return 0;
}

/* --- a pause of all systems ------------------------------------------------------------------- */

struct freeze {		/* as in kernel/core/uapi/ioctl.h */
	uint32_t limit_ms, reserved;
	char why[200];
};

static int freeze(unsigned int ms)
{
	struct freeze f = { .limit_ms = ms };

	if (!ioctl(open(".", O_RDONLY | O_DIRECTORY), _IOWR(0xd7, 4, struct freeze), &f))
		return 0;
	printf("%s: %s\n", strerror(errno), f.why);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc < 3 || chdir(argv[2]))
		fails("sequence store|check|freeze DIR");
	if (!strcmp(argv[1], "check"))
		return check(argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	if (!strcmp(argv[1], "freeze"))
		return freeze((unsigned int)atoi(argv[3]));
	return sequence(argv[3]);
}
