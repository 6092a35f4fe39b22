// SPDX-License-Identifier: Apache-2.0
/*
 * Checks that a reader of a file never sees another file's bytes, even if the other file has got
 * pages of the reader's file (D7).
 *
 *   stale look [-m] [-b] [-c CPU] [-n THREADS] FILE OFFSET LENGTH
 *   stale cut [-r ROUNDS] [-w MS] FILE OFFSET LENGTH
 *
 * One system runs `look`, which reads one range of FILE again and again until SIGTERM. THREADS
 * threads call read(), or, with -m, one thread reads a mapping. A read may return FILE's own bytes,
 * zeroes, or the end of the file. Any other byte belongs to another file: `look` prints the byte
 * and fails.
 *
 * The threads never sleep, and share one address space and the processor CPU. So only a flush
 * removes a translation from that processor's TLB. With -b, a busy thread with a higher priority
 * uses the same processor. So a reader loses the processor in the middle of a copy, long enough for
 * another file to get the page.
 *
 * Another system runs `cut`, which frees those pages in each possible way, ROUNDS times. The volume
 * has so few free pages that the next file must get the freed pages. `cut` counts the pages that
 * were in both files, and fails if there were none, because then the test shows nothing. Before
 * each cut it waits for MS, so that the readers read the range.
 *
 * No check depends on clocks, because guests of a busy host run at any speed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define PAGE	4096
#define OWN	'o'		/* the content of FILE */
#define OTHERS	'x'		/* the content of the file that gets FILE's pages */
#define GLANCE	64		/* bytes read of each page of a mapping */
#define THREADS	16

static const char *file;
static off_t offset;
static size_t length;
static volatile sig_atomic_t ended;	/* set by SIGTERM */

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	int err = errno;
	va_list args;

	printf("stale: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(err ? " (errno %d, %s)\n" : "\n", err, strerror(err));
	fflush(stdout);
	_exit(1);
}

static void end(int sig)
{
	(void)sig;
	ended = true;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* --- look ------------------------------------------------------------------------------------- */

/* The numbers of reads, of words of each kind, and of reads that met the end of the file. */
static uint64_t reads, own, zeroes, ends;

/*
 * Checks each byte of a word, because a write to FILE may have stored only a part of the word so
 * far.
 */
static void judge_word(const unsigned char *word, off_t at)
{
	for (unsigned int i = 0; i < 8; i++)
		if (word[i] && word[i] != OWN) {
			errno = 0;
			die("offset %lld of %s: byte 0x%02x belongs to another file",
			    (long long)(at + i), file, word[i]);
		}
}

static void judge(const void *bytes, size_t n, off_t at)
{
	const uint64_t mine = 0x0101010101010101ull * OWN, *word = bytes;
	uint64_t met_own = 0, met_zero = 0;

	for (size_t i = 0; i < n / 8; i++) {
		uint64_t w = word[i];	/* one load only: other systems may change it */

		met_own += w == mine;
		met_zero += !w;
		if (w != mine && w)
			judge_word((unsigned char *)&w, at + 8 * (off_t)i);
	}
	__atomic_add_fetch(&own, met_own, __ATOMIC_RELAXED);
	__atomic_add_fetch(&zeroes, met_zero, __ATOMIC_RELAXED);
}

static void count(uint64_t *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

/* Opens the file. While `cut` replaces it, the name may be missing for a moment. */
static int open_file(void)
{
	int fd;

	while ((fd = open(file, O_RDONLY)) < 0)
		if (errno != ENOENT && errno != ESTALE)
			die("opening %s", file);
	return fd;
}

static bool is_removed(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		die("fstat %s", file);
	return !st.st_nlink;
}

static bool beside_busy;

/* Lowers the priority of the calling thread only: in Linux, each thread has its own priority. */
static void go_behind(void)
{
	if (setpriority(PRIO_PROCESS, 0, 19))
		die("the thread cannot lower its priority");
}

static void *be_busy(void *unused)
{
	while (!ended)
		;
	return unused;
}

static void *look(void *unused)
{
	char *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int fd = open_file();

	(void)unused;
	if (bytes == MAP_FAILED)
		die("no memory");
	if (beside_busy)
		go_behind();
	while (!ended) {
		ssize_t n = pread(fd, bytes, length, offset);

		if (n < 0)
			die("reading %s", file);
		judge(bytes, (size_t)n, offset);
		count(&reads);
		if ((size_t)n < length)
			count(&ends);
		if (is_removed(fd)) {
			close(fd);
			fd = open_file();
		}
	}
	return NULL;
}

static sigjmp_buf bus;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus, 1);
}

static void glance(const char *at, off_t where)
{
	if (sigsetjmp(bus, 0))
		count(&ends);
	else
		judge(at, GLANCE, where);
}

static void look_mapped(void)
{
	while (!ended) {
		int fd = open_file();
		char *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, offset);

		if (map == MAP_FAILED)
			die("mapping %s", file);
		while (!ended && !is_removed(fd)) {
			for (size_t at = 0; at < length; at += PAGE)
				glance(map + at, offset + (off_t)at);
			count(&reads);
		}
		munmap(map, length);
		close(fd);
	}
}

static int do_look(bool mapped, int cpu, int threads)
{
	struct sigaction sa = { .sa_handler = on_bus, .sa_flags = SA_NODEFER };
	pthread_t thread[THREADS], busy;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu >= 0 && sched_setaffinity(0, sizeof(set), &set))
		die("no processor %d", cpu);
	if (mapped) {
		sigaction(SIGBUS, &sa, NULL);
		look_mapped();
	}
	for (int i = 0; !mapped && i < threads; i++)
		if (pthread_create(&thread[i], NULL, look, NULL))
			die("no thread");
	if (beside_busy && pthread_create(&busy, NULL, be_busy, NULL))
		die("no thread");
	for (int i = 0; !mapped && i < threads; i++)
		pthread_join(thread[i], NULL);
	if (beside_busy)
		pthread_join(busy, NULL);
	printf("stale: %llu reads%s: %llu words of the file, %llu words of zeroes, %llu ends\n",
	       (unsigned long long)reads, mapped ? " of a mapping" : "", (unsigned long long)own,
	       (unsigned long long)zeroes, (unsigned long long)ends);
	return !own || !(zeroes + ends);
}

/* --- cut -------------------------------------------------------------------------------------- */

#define EXTENTS	512

struct extents {
	struct fiemap head;
	struct fiemap_extent extent[EXTENTS];
};

/* Finds the physical addresses of the range's pages. */
static void locate(int fd, off_t from, struct extents *e)
{
	memset(e, 0, sizeof(*e));
	e->head.fm_start = (uint64_t)from;
	e->head.fm_length = length;
	e->head.fm_extent_count = EXTENTS;
	if (ioctl(fd, FS_IOC_FIEMAP, e))
		die("FIEMAP");
}

/* Returns the number of pages that are in both lists. */
static uint64_t common(const struct extents *a, const struct extents *b)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < a->head.fm_mapped_extents; i++)
		for (unsigned int k = 0; k < b->head.fm_mapped_extents; k++) {
			const struct fiemap_extent *x = &a->extent[i], *y = &b->extent[k];
			uint64_t from = x->fe_physical, to = from + x->fe_length;

			if (from < y->fe_physical)
				from = y->fe_physical;
			if (to > y->fe_physical + y->fe_length)
				to = y->fe_physical + y->fe_length;
			bytes += to > from ? to - from : 0;
		}
	return bytes / PAGE;
}

/* Writes a file. In a full volume, a write must wait until no reader uses the freed pages. */
static int fill(const char *path, off_t from, size_t len, char with)
{
	static char *bytes;
	int fd = open(path, O_CREAT | O_RDWR, 0644);

	if (!bytes)
		bytes = malloc(length + PAGE);
	if (fd < 0 || !bytes)
		die("creating %s", path);
	memset(bytes, with, len);
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, bytes + done, len - done, from + (off_t)done);

		if (n > 0)
			done += (size_t)n;
		else if (n && errno != ENOSPC)
			die("writing %s", path);
		else
			pause_ms(1);
	}
	return fd;
}

/*
 * Fills the volume, and leaves free pages for only half of the range. So a file with the length of
 * the range needs the freed pages.
 */
static void fill_volume(const char *ballast)
{
	int fd = open(ballast, O_CREAT | O_EXCL | O_RDWR, 0644);
	struct statvfs vfs;

	if (fd < 0 || fstatvfs(fd, &vfs))
		die("creating %s", ballast);
	if (posix_fallocate(fd, 0, (off_t)(vfs.f_bavail * vfs.f_frsize - length / 2)))
		die("filling the volume");
	close(fd);
}

static void punch(int fd)
{
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)length))
		die("punching %s", file);
}

static void truncate_it(int fd)
{
	if (ftruncate(fd, offset))
		die("truncating %s", file);
}

/*
 * Removes the range, so that the hole behind it moves to its place. If the volume has no space for
 * this, the function makes a hole instead.
 */
static void collapse(int fd)
{
	off_t size = offset + 2 * (off_t)length;

	if (ftruncate(fd, size))
		die("making %s longer", file);
	if (!fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, offset, (off_t)length))
		return;
	if (errno != ENOSPC)
		die("collapsing %s", file);
	punch(fd);
}

static void make_anew(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (fd < 0)
		die("creating %s", path);
	close(fd);
}

static void remove_it(int fd)
{
	(void)fd;
	if (unlink(file))
		die("removing %s", file);
	make_anew(file);
}

static void replace(int fd)
{
	char path[4096];

	(void)fd;
	snprintf(path, sizeof(path), "%s.new", file);
	make_anew(path);
	if (rename(path, file))
		die("replacing %s", file);
}

static int do_cut(unsigned int rounds, long wait_ms)
{
	static void (*const ways[])(int) = {
		punch, truncate_it, collapse, punch, truncate_it, remove_it, punch, collapse,
		truncate_it, replace,
	};
	static struct extents before, after;
	char other[4096], ballast[4096];
	uint64_t again = 0;

	snprintf(other, sizeof(other), "%s.other", file);
	snprintf(ballast, sizeof(ballast), "%s.ballast", file);
	for (unsigned int round = 0; round < rounds; round++) {
		/*
		 * Writes one page more than the range. A hole in the range does not free that page,
		 * so the root of the file's tree stays the same.
		 */
		int fd = fill(file, offset, length + PAGE, OWN), got;

		if (!round)
			fill_volume(ballast);
		locate(fd, offset, &before);
		pause_ms(wait_ms);	/* time for readers to read the range */
		ways[round % (sizeof(ways) / sizeof(ways[0]))](fd);
		close(fd);
		got = fill(other, 0, length, OTHERS);
		locate(got, 0, &after);
		again += common(&before, &after);
		pause_ms(30);	/* time to read the other file's pages, if readers can see them */
		close(got);
		if (unlink(other))
			die("removing %s", other);
	}
	if (unlink(ballast))
		die("removing %s", ballast);
	printf("stale: %u cuts; the next file got %llu of the freed pages\n", rounds,
	       (unsigned long long)again);
	return !again;
}

int main(int argc, char **argv)
{
	int cpu = -1, threads = 1, rounds = 10, wait_ms = 50, c;
	bool looks, mapped = false;

	if (argc < 2)
		return 2;
	looks = !strcmp(argv[1], "look");
	while ((c = getopt(argc - 1, argv + 1, "bmc:n:r:w:")) != -1) {
		switch (c) {
		case 'b': beside_busy = true; break;
		case 'm': mapped = true; break;
		case 'c': cpu = atoi(optarg); break;
		case 'n': threads = atoi(optarg); break;
		case 'r': rounds = atoi(optarg); break;
		case 'w': wait_ms = atoi(optarg); break;
		default: return 2;
		}
	}
	if (optind + 4 != argc || rounds < 1 || threads < 1 || threads > THREADS ||
	    wait_ms < 1 || wait_ms > 999 ||
	    (!looks && strcmp(argv[1], "cut")))
		return 2;
	file = argv[optind + 1];
	offset = (off_t)strtoull(argv[optind + 2], NULL, 0);
	length = strtoull(argv[optind + 3], NULL, 0);
	signal(SIGTERM, end);
	return looks ? do_look(mapped, cpu, threads) : do_cut((unsigned int)rounds, wait_ms);
}
