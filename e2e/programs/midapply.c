// SPDX-License-Identifier: Apache-2.0
/*
 * Stops a system in the middle of a change.
 *
 *   midapply load FOLDER       renames a file in the folder back and forth until it is killed
 *   midapply modes FILE        changes the file's mode back and forth until it is killed
 *   midapply VOLUME SLOT PID   stops the process PID, the QEMU of the system in SLOT
 *
 * The last command runs on the host, and VOLUME is the volume's memory. It repeats the stop until a
 * record of the system's journal is valid and a change counter in the record is odd, for at most
 * two minutes. It prints the offset of the odd counter.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../kernel/core/format/format.h"

#define SECONDS		120
#define SETTLE_US	20000	/* time until all threads of a process have stopped */
#define LOOKS		5

static const unsigned char *base;
static size_t size;

/* Returns the offset of an odd change counter of a valid record, or 0 if there is none. */
static u64 odd_counter(const struct sg_area *a)
{
	u64 head = *(volatile const u64 *)&a->head, off;
	unsigned int n = SG_AREA_COUNT(head), seqs = SG_AREA_SEQ_COUNT(head), i;

	if (!head || n > SG_AREA_WORDS || seqs > n)
		return 0;
	for (i = n - seqs; i < n; i++) {
		off = *(volatile const u64 *)&a->word[i].off;
		if (off && off % 8 == 0 && off < size && *(volatile const u64 *)(base + off) & 1)
			return off;
	}
	return 0;
}

static u64 find(const struct sg_area *area, u64 areas)
{
	u64 i, off = 0;

	for (i = 0; i < areas && !off; i++)
		off = odd_counter(&area[i]);
	return off;
}

/*
 * Returns the offset of the odd counter, or 0 if no counter stays odd after the process has
 * stopped.
 */
static u64 stays(const struct sg_area *area, u64 areas)
{
	u64 first, off;
	int i;

	usleep(SETTLE_US);
	first = find(area, areas);
	for (i = 0; first && i < LOOKS; i++) {
		usleep(SETTLE_US);
		off = find(area, areas);
		if (off != first)
			return 0;
	}
	return first;
}

static int load(const char *folder)
{
	if (chdir(folder) || open("a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0) {
		perror(folder);
		return 1;
	}
	for (;;) {
		if (rename("a", "b") || rename("b", "a")) {
			perror("midapply: rename");
			return 1;
		}
	}
}

static int modes(const char *file)
{
	int fd = open(file, O_RDWR | O_CLOEXEC);

	while (fd >= 0 && !fchmod(fd, 0600) && !fchmod(fd, 0644))
		;
	perror(file);
	return 1;
}

int main(int argc, char **argv)
{
	int fd = argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, tries;
	const struct sg_area *area;
	const struct sg_super *sb;
	time_t end = time(NULL) + SECONDS;
	struct stat st;
	pid_t pid;
	u64 off;

	if (argc == 3 && !strcmp(argv[1], "load"))
		return load(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "modes"))
		return modes(argv[2]);
	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "usage: midapply VOLUME SLOT PID | load FOLDER | modes FILE\n");
		return 2;
	}
	size = (size_t)st.st_size;
	base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	pid = (pid_t)atoi(argv[3]);
	if (base == MAP_FAILED || pid <= 1) {
		fprintf(stderr, "midapply: %s\n", strerror(errno));
		return 2;
	}
	sb = (const struct sg_super *)base;
	area = (const struct sg_area *)(base + sb->journal_off);
	area += strtoul(argv[2], NULL, 0) * sb->areas;
	for (tries = 0; time(NULL) < end; ) {
		if (!find(area, sb->areas))
			continue;
		if (kill(pid, SIGSTOP)) {
			perror("midapply: kill");
			return 2;
		}
		tries++;
		off = stays(area, sb->areas);
		if (off) {
			printf("counter at 0x%llx is odd, after %d tries\n",
			       (unsigned long long)off, tries);
			return 0;
		}
		kill(pid, SIGCONT);
		usleep(1000);
	}
	fprintf(stderr, "midapply: %d tries did not stop the process in the middle of a change\n", tries);
	return 1;
}
