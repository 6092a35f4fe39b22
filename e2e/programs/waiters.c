// SPDX-License-Identifier: Apache-2.0
/*
 * Runs processes that wait for other systems.
 *
 *   waiters flock DIR COUNT wait
 *	starts COUNT threads, which wait for locks of DIR/0, DIR/1, ...
 *   waiters flock DIR COUNT each
 *	locks and unlocks these files, one after the other, without waiting
 *   waiters flock DIR COUNT keep
 *	locks these files without waiting, and keeps the locks
 *   waiters posix FILE
 *	locks FILE by fcntl() without waiting; exits with 1 if FILE is locked
 *   waiters exec FILE GO
 *	locks FILE by fcntl(), with a descriptor that execve() closes; becomes `sleep 600` when the
 *	file GO exists
 *   waiters trace PID
 *	begins to trace that process, and ends
 *   waiters fill FILE GO
 *	maps FILE, and moves the process's arguments, as ps shows them, to FILE's first page; when
 *	the file GO exists, stores a byte to FILE's second page, while another thread calls mmap()
 *   waiters again FILE
 *	stores to the first page of FILE again and again; other threads free that page, and call
 *	mmap(), again and again
 *   waiters store FILE
 *	stores to the first page of FILE through a mapping
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define PAGE	4096

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static int open_number(const char *dir, int i)
{
	char path[320];
	int fd;

	snprintf(path, sizeof(path), "%s/%d", dir, i);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		die(path);
	return fd;
}

static void *wait_for_lock(void *arg)
{
	int *fd = arg;

	return flock(*fd, LOCK_EX) ? arg : NULL;
}

static int lock_all(const char *dir, int count, const char *how)
{
	int *fd = calloc((size_t)count, sizeof(*fd)), i;
	pthread_t id;

	for (i = 0; i < count; i++)
		fd[i] = open_number(dir, i);
	for (i = 0; i < count; i++) {
		if (!strcmp(how, "wait")) {
			if (pthread_create(&id, NULL, wait_for_lock, &fd[i]))
				die("thread");
			continue;
		}
		if (flock(fd[i], LOCK_EX | LOCK_NB))
			die("flock");
		if (!strcmp(how, "each") && flock(fd[i], LOCK_UN))
			die("unlock");
	}
	printf("%d locks\n", count);
	while (strcmp(how, "each"))
		pause();
	return 0;
}

static int lock_posix(const char *file)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		die(file);
	return fcntl(fd, F_SETLK, &all);
}

static int lock_and_exec(const char *file, const char *go)
{
	if (lock_posix(file))
		die("lock");
	printf("locked\n");
	while (access(go, F_OK))
		usleep(10000);
	execlp("sleep", "sleep", "600", NULL);
	die("sleep");
	return 2;
}

static int trace(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		die("ptrace");
	return 0;
}

/*
 * mmap() takes mmap_lock as a writer. While a page fault makes this thread wait, each reader of the
 * process's state in /proc waits behind it.
 */
static void *map_something(void *arg)
{
	usleep(500000);
	if (mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		die("mmap");
	printf("mapped\n");
	return arg;
}

/* Moves the command line of this process, as ps shows it, to the mapped file. */
static void show_as_name(volatile unsigned char *p)
{
	p[0] = 'x';
	p[1] = 0;
	if (prctl(PR_SET_MM, PR_SET_MM_ARG_START, p, 0, 0) ||
	    prctl(PR_SET_MM, PR_SET_MM_ARG_END, p + 2, 0, 0))
		die("PR_SET_MM");
}

static int fill(const char *file, const char *go)
{
	int fd = open(file, O_RDWR);
	pthread_t other;
	volatile unsigned char *p;

	if (fd < 0 || ftruncate(fd, 2 * PAGE))
		die(file);
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		die(file);
	show_as_name(p);
	printf("stored\n");
	while (access(go, F_OK))
		usleep(10000);
	if (pthread_create(&other, NULL, map_something, NULL))
		die("thread");
	p[PAGE] = 1;
	printf("filled\n");
	pthread_join(other, NULL);
	return 0;
}

static int again_fd;

static void *remove_again(void *arg)
{
	while (!fallocate(again_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE))
		;
	die("fallocate");
	return arg;
}

/* Each mmap() waits for page faults, which hold mmap_lock, and makes later faults wait. */
static void *map_again(void *arg)
{
	for (;; usleep(1000)) {
		void *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || munmap(p, PAGE))
			die("mmap");
	}
	return arg;
}

static int store_again(const char *file)
{
	pthread_t id[2];
	volatile unsigned char *p;

	again_fd = open(file, O_RDWR | O_CREAT, 0600);
	if (again_fd < 0 || ftruncate(again_fd, PAGE))
		die(file);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, again_fd, 0);
	if (p == MAP_FAILED || pthread_create(&id[0], NULL, remove_again, NULL) ||
	    pthread_create(&id[1], NULL, map_again, NULL))
		die(file);
	printf("again\n");
	while (p)
		p[0] = 1;
	return 0;
}

/* Stores through a mapping, to a page that is present. */
static int store_to(const char *file)
{
	int fd = open(file, O_RDWR);
	volatile unsigned char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		die(file);
	p[0] = 1;
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 5 && !strcmp(argv[1], "flock"))
		return lock_all(argv[2], atoi(argv[3]), argv[4]);
	if (argc == 3 && !strcmp(argv[1], "posix"))
		return lock_posix(argv[2]) ? 1 : 0;
	if (argc == 3 && !strcmp(argv[1], "trace"))
		return trace(atoi(argv[2]));
	if (argc == 4 && !strcmp(argv[1], "exec"))
		return lock_and_exec(argv[2], argv[3]);
	if (argc == 4 && !strcmp(argv[1], "fill"))
		return fill(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "again"))
		return store_again(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "store"))
		return store_to(argv[2]);
	fprintf(stderr, "waiters flock DIR COUNT wait|each|keep | waiters posix FILE |\n"
		"waiters exec FILE GO | waiters trace PID | waiters fill FILE GO |\n"
		"waiters again FILE | waiters store FILE\n");
	return 2;
}
