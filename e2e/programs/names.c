// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the instructions of a look-up of one name in a large directory. The kernel has not cached
 * the name.
 *
 *   names COUNT
 *
 * The program runs in a folder with COUNT files, name-000000000 and so on. It prints "lookup-COUNT
 * INSTRUCTIONS SPREAD" for existing names, and "absent-COUNT INSTRUCTIONS SPREAD" for absent names.
 * In each of seven repeats it drops all names from the cache, and looks up 200 names in all parts
 * of the directory. The result is the lowest count.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "count.h"

#define NAMES	200
#define WARM	20
#define REPEATS	7

static char names[NAMES + WARM][24];

static void forget(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	if (fd < 0 || write(fd, "2", 1) != 1)
		die("/proc/sys/vm/drop_caches");
	close(fd);
}

static uint64_t look(long answer)
{
	struct stat st;
	uint64_t start = 0;

	for (unsigned int i = 0; i < NAMES + WARM; i++) {
		if (i == WARM)
			start = counter();
		if (sys(SYS_stat, names[i], &st) != answer) {
			printf("%s: stat() returned an unexpected result\n", names[i]);
			exit(1);
		}
	}
	return (counter() - start) / NAMES;
}

static void measure(const char *what, unsigned long count, long answer)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned int i = 0; i < NAMES + WARM; i++)
		snprintf(names[i], sizeof(names[i]), answer ? "none-%09lu" : "name-%09lu",
			 i * 7919ul * (count / 1000) % count);
	for (unsigned int r = 0; r < REPEATS; r++) {
		forget();
		settle();
		uint64_t took = look(answer);

		least = took < least ? took : least;
		most = took > most ? took : most;
	}
	printf("%s-%lu %llu %llu\n", what, count, (unsigned long long)least,
	       (unsigned long long)((most - least) * 10000 / least));
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

	if (count < 1000) {
		fprintf(stderr, "usage: names COUNT (1000 or more)\n");
		return 2;
	}
	must_count();
	measure("lookup", count, 0);
	measure("absent", count, -ENOENT);
	return 0;
}
