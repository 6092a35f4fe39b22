// SPDX-License-Identifier: Apache-2.0
/*
 * poison FILE [GO]: maps FILE and reads a byte of each page. With GO, it reads all pages, prints
 * "looked", waits until the file GO exists, and reads all pages a second time. For each page that
 * raises a signal, it prints the page's number, and "bad memory" if the signal reported bad memory
 * at the page's address.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	4096

static sigjmp_buf back;
static volatile int code;
static void *volatile where;

static void caught(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	code = info->si_code;
	where = info->si_addr;
	siglongjmp(back, 1);
}

static volatile char *map(const char *path, size_t *size)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(1);
	}
	*size = (size_t)st.st_size;
	p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static void look(volatile char *base, size_t size)
{
	volatile size_t at;

	for (at = 0; at < size; at += PAGE) {
		if (!sigsetjmp(back, 1))
			(void)base[at];
		else if (code == BUS_MCEERR_AR || code == BUS_MCEERR_AO)
			printf("%zu bad memory%s\n", at / PAGE,
			       (char *)where == base + at ? "" : ", elsewhere");
		else
			printf("%zu signal %d\n", at / PAGE, code);
	}
}

/* A process may get a signal as soon as the kernel detects that one of its mapped pages is bad. */
static void wait_for(const char *path)
{
	sigsetjmp(back, 1);
	while (access(path, F_OK))
		usleep(10000);
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_sigaction = caught, .sa_flags = SA_SIGINFO };
	volatile char *base;
	size_t size;

	if (argc < 2 || argc > 3)
		return 2;
	base = map(argv[1], &size);
	sigaction(SIGBUS, &act, NULL);
	if (argc == 3) {
		look(base, size);
		puts("looked");
		fflush(stdout);
		wait_for(argv[2]);
	}
	look(base, size);
	return 0;
}
