// SPDX-License-Identifier: Apache-2.0
/*
 * places SEED CALLS DIR: makes, removes and renames a few directories as fast as possible. A rename
 * may move a directory into another one, or replace another one. Other systems run the same program
 * with the same directories. A call may fail because of the other systems. The program prints any
 * other error, and fails.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t state;

static unsigned int below(unsigned int n)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(state >> 33) % n;
}

/* Chooses a path of one to three components. Each component is one of three names. */
static void some_path(char path[32])
{
	int len = sprintf(path, "p%u", below(3));
	unsigned int depth = below(3);

	while (depth--)
		len += sprintf(path + len, "/%c", 'a' + (int)below(2));
}

/*
 * Checks that an error may be the effect of other systems. ESTALE means that another system has
 * changed a name while this system used it (docs/limitations.md).
 */
static int expected(int err)
{
	static const int known[] = { 0, ENOENT, EEXIST, ENOTEMPTY, EINVAL, EBUSY, ESTALE };

	for (unsigned int i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (err == known[i])
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "mkdir", "rmdir", "rename" };
	uint64_t calls, done = 0, stale = 0;
	char a[32], b[32];

	if (argc != 4 || chdir(argv[3]))
		return 2;
	state = strtoull(argv[1], NULL, 0);
	for (calls = strtoull(argv[2], NULL, 0); calls; calls--) {
		unsigned int what = below(3);
		int err;

		some_path(a);
		some_path(b);
		err = what == 0 ? mkdir(a, 0755) : what == 1 ? rmdir(a) : rename(a, b);
		if (err && !expected(errno)) {
			printf("places: %s %s %s: %s\n", names[what], a, what == 2 ? b : "",
			       strerror(errno));
			return 1;
		}
		done += !err;
		stale += err && errno == ESTALE;
	}
	printf("places: %s calls, %llu done, %llu stale\n", argv[2], (unsigned long long)done,
	       (unsigned long long)stale);
	return 0;
}
