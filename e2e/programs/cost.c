// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the instructions of single operations. A repeated count gives the same number.
 *
 *   cost DIR REPEATS OPERATION...      prints "OPERATION INSTRUCTIONS SPREAD" for each operation
 *
 * Each repeat begins with an empty folder, and does some operations to warm up. Then it counts the
 * other operations in one run. The run is so short that most runs contain no timer interrupt. The
 * cost of an empty loop is subtracted. The result is the lowest count of all repeats, because other
 * work of the kernel can only add instructions. SPREAD tells by how much the median exceeds the
 * lowest count, in hundredths of a per cent.
 *
 *   cost --where DIR REPEATS OPERATION...
 *
 * prints the functions that execute these instructions: "where OPERATION SAMPLES WHOSE FUNCTION"
 * (samples.h).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "count.h"
#include "samples.h"

#define KIB		1024u
#define MIB		(1024u * KIB)
#define HUGE		(2 * MIB)
#define LARGE		(4 * MIB)
#define REPEATS_MAX	64
#define FOLDER		"cost"
#define FILES		100	/* files in the folder that is listed */

static char *buffer, *other;	/* MIB bytes each; all pages are present */
static char *large, *large_other;	/* LARGE bytes each; all pages are present */
static char *mapped;		/* an aligned address range of HUGE bytes */
static int file = -1;
static char names[2048][16];	/* filled before the first count */

/* --- Preparations in an empty folder, before @all operations ---------------------------------- */

static void open_file(int flags)
{
	file = open("data", O_CREAT | O_RDWR | flags, 0600);
	if (file < 0)
		die("data");
}

static void with_empty(unsigned int all)
{
	(void)all;
	open_file(0);
}

static void with_append(unsigned int all)
{
	(void)all;
	open_file(O_APPEND);
}

static void with_data(unsigned int all)
{
	(void)all;
	open_file(0);
	if (pwrite(file, buffer, MIB, 0) != MIB)
		die("data");
}

static void with_large(unsigned int all)
{
	(void)all;
	open_file(0);
	if (pwrite(file, large, LARGE, 0) != LARGE)
		die("data");
}

static void with_huge(unsigned int all)
{
	with_data(all);
	for (unsigned int at = MIB; at < HUGE; at += MIB)
		if (pwrite(file, buffer, MIB, at) != MIB)
			die("data");
}

static void with_hole(unsigned int all)
{
	(void)all;
	open_file(0);
	if (ftruncate(file, MIB))
		die("data");
}

static void make(unsigned int all)
{
	for (unsigned int i = 0; i < all; i++) {
		int fd = open(names[i], O_CREAT | O_EXCL | O_WRONLY, 0600);

		if (fd < 0)
			die(names[i]);
		close(fd);
	}
}

static void with_names(unsigned int all)
{
	with_empty(all);
	make(all);
}

static void with_folders(unsigned int all)
{
	with_empty(all);
	for (unsigned int i = 0; i < all; i++)
		if (mkdir(names[i], 0700))
			die(names[i]);
}

static void with_other_folder(unsigned int all)
{
	with_names(all);
	if (mkdir("there", 0700))
		die("there");
}

static void with_symlink(unsigned int all)
{
	with_empty(all);
	if (symlink("data", "symlink"))
		die("symlink");
}

static void with_xattr(unsigned int all)
{
	with_empty(all);
	if (setxattr("data", "user.cost", "value", 5, 0))
		die("setxattr");
}

static void with_listing(unsigned int all)
{
	(void)all;
	make(FILES);
	file = open(".", O_RDONLY | O_DIRECTORY);
	if (file < 0)
		die("the folder");
}

static void with_forgotten_names(unsigned int all)
{
	with_names(all);
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);

	sync();
	if (fd < 0 || write(fd, "2", 1) != 1)
		die("/proc/sys/vm/drop_caches");
	close(fd);
}

/* --- Operations, which return 0 on success ---------------------------------------------------- */

static int do_nothing(unsigned int i)
{
	(void)i;
	return 0;
}

static int do_call(unsigned int i)
{
	(void)i;
	return sys(SYS_getppid) <= 0;
}

static void copy_words(void *to, const void *from, size_t bytes)
{
	size_t words = bytes / 8;

	asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (words) : : "memory");
}

static int do_memcpy_4k(unsigned int i)
{
	copy_words(other + i % 256 * 4096, buffer + i % 256 * 4096, 4096);
	return 0;
}

static int do_memcpy_1m(unsigned int i)
{
	(void)i;
	copy_words(other, buffer, MIB);
	return 0;
}

static int do_memcpy_4m(unsigned int i)
{
	(void)i;
	copy_words(large_other, large, LARGE);
	return 0;
}

/* Copies by the C library, which uses vectors on processors without fast `rep movsb`. */
static int do_libc_4k(unsigned int i)
{
	memcpy(other + i % 256 * 4096, buffer + i % 256 * 4096, 4096);
	return 0;
}

static int do_libc_1m(unsigned int i)
{
	(void)i;
	memcpy(other, buffer, MIB);
	return 0;
}

static int do_libc_4m(unsigned int i)
{
	(void)i;
	memcpy(large_other, large, LARGE);
	return 0;
}

static int do_read_1(unsigned int i)
{
	return sys(SYS_pread64, file, buffer, 1, i % 256 * 4096) != 1;
}

static int do_read_4k(unsigned int i)
{
	return sys(SYS_pread64, file, buffer, 4096, i % 256 * 4096) != 4096;
}

static int do_read_1m(unsigned int i)
{
	(void)i;
	return sys(SYS_pread64, file, buffer, MIB, 0) != MIB;
}

static int do_read_64k(unsigned int i)
{
	return sys(SYS_pread64, file, buffer, 65536, i % 16 * 65536) != 65536;
}

static int do_read_4m(unsigned int i)
{
	(void)i;
	return sys(SYS_pread64, file, large, LARGE, 0) != LARGE;
}

static int do_write_1(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, 1, i % 256 * 4096) != 1;
}

static int do_write_4k(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, 4096, i % 256 * 4096) != 4096;
}

static int do_write_1m(unsigned int i)
{
	(void)i;
	return sys(SYS_pwrite64, file, buffer, MIB, 0) != MIB;
}

static int do_write_16k(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, 16384, i % 64 * 16384) != 16384;
}

static int do_write_64k(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, 65536, i % 16 * 65536) != 65536;
}

/* Writes inside of a page, at an odd offset. */
static int do_write_64(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, 64, i % 256 * 4096 + 129) != 64;
}

static int do_write_1k(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, KIB, i % 256 * 4096 + 129) != KIB;
}

/* Writes that begin and end inside of pages. */
static int do_write_odd_4k(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, 4096, i % 255 * 4096 + 129) != 4096;
}

static int do_write_odd_16k(unsigned int i)
{
	return sys(SYS_pwrite64, file, buffer, 16384, i % 63 * 16384 + 129) != 16384;
}

static int do_write_4m(unsigned int i)
{
	(void)i;
	return sys(SYS_pwrite64, file, large, LARGE, 0) != LARGE;
}

static int do_append_64(unsigned int i)
{
	(void)i;
	return sys(SYS_write, file, buffer, 64) != 64;
}

static int do_append_4k(unsigned int i)
{
	(void)i;
	return sys(SYS_write, file, buffer, 4096) != 4096;
}

static int do_append_1m(unsigned int i)
{
	(void)i;
	return sys(SYS_write, file, buffer, MIB) != MIB;
}

static int do_append_4k_fsync(unsigned int i)
{
	return do_append_4k(i) || sys(SYS_fsync, file);
}

static int do_fsync(unsigned int i)
{
	(void)i;
	return sys(SYS_fsync, file) != 0;
}

static int do_write_64_fsync(unsigned int i) { return do_write_64(i) || do_fsync(i); }
static int do_write_1k_fsync(unsigned int i) { return do_write_1k(i) || do_fsync(i); }
static int do_write_4k_fsync(unsigned int i) { return do_write_4k(i) || do_fsync(i); }
static int do_write_16k_fsync(unsigned int i) { return do_write_16k(i) || do_fsync(i); }
static int do_write_64k_fsync(unsigned int i) { return do_write_64k(i) || do_fsync(i); }
static int do_write_odd_4k_fsync(unsigned int i) { return do_write_odd_4k(i) || do_fsync(i); }
static int do_write_odd_16k_fsync(unsigned int i) { return do_write_odd_16k(i) || do_fsync(i); }

static int do_fstat(unsigned int i)
{
	struct stat st;

	(void)i;
	return sys(SYS_fstat, file, &st) != 0;
}

static int do_stat(unsigned int i)
{
	struct stat st;

	(void)i;
	return sys(SYS_stat, "data", &st) != 0;
}

static int do_stat_absent(unsigned int i)
{
	struct stat st;

	(void)i;
	return sys(SYS_stat, "absent", &st) != -ENOENT;
}

static int do_lookup(unsigned int i)
{
	struct stat st;

	return sys(SYS_stat, names[i], &st) != 0;
}

static int do_open_close(unsigned int i)
{
	long fd = sys(SYS_open, "data", O_RDONLY, 0);

	(void)i;
	return fd < 0 || sys(SYS_close, fd);
}

static int do_create(unsigned int i)
{
	long fd = sys(SYS_open, names[i], O_CREAT | O_EXCL | O_WRONLY, 0600);

	return fd < 0 || sys(SYS_close, fd);
}

static int do_create_fsync(unsigned int i)
{
	long fd = sys(SYS_open, names[i], O_CREAT | O_EXCL | O_WRONLY, 0600);

	return fd < 0 || sys(SYS_fsync, fd) || sys(SYS_close, fd);
}

static int do_unlink(unsigned int i)
{
	return sys(SYS_unlink, names[i]) != 0;
}

static int do_mkdir(unsigned int i)
{
	return sys(SYS_mkdir, names[i], 0700) != 0;
}

static int do_rmdir(unsigned int i)
{
	return sys(SYS_rmdir, names[i]) != 0;
}

static int do_rename(unsigned int i)
{
	return sys(SYS_rename, i % 2 ? "moved" : "data", i % 2 ? "data" : "moved") != 0;
}

static int do_rename_over(unsigned int i)
{
	return sys(SYS_rename, names[i], "target") != 0;
}

static int do_rename_across(unsigned int i)
{
	char to[32];

	memcpy(to, "there/", 6);
	memcpy(to + 6, names[i], sizeof(names[i]));
	return sys(SYS_rename, names[i], to) != 0;
}

static int do_link(unsigned int i)
{
	return sys(SYS_link, "data", names[i]) != 0;
}

static int do_symlink(unsigned int i)
{
	return sys(SYS_symlink, "data", names[i]) != 0;
}

static int do_readlink(unsigned int i)
{
	(void)i;
	return sys(SYS_readlink, "symlink", buffer, 64) != 4;
}

static int do_list(unsigned int i)
{
	long n, some = 0;

	(void)i;
	if (sys(SYS_lseek, file, 0, SEEK_SET))
		return -1;
	while ((n = sys(SYS_getdents64, file, buffer, 32 * KIB)) > 0)
		some += n;
	return n < 0 || some < FILES * 24;
}

static int do_grow_and_cut(unsigned int i)
{
	return do_write_4k(i * 256) || sys(SYS_ftruncate, file, 0);
}

static int do_allocate(unsigned int i)
{
	return sys(SYS_fallocate, file, 0, (long)i * MIB, MIB) != 0;
}

static int do_punch(unsigned int i)
{
	return do_write_4k(i) ||
	       sys(SYS_fallocate, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		   i % 256 * 4096, 4096);
}

static int do_seek_data(unsigned int i)
{
	(void)i;
	return sys(SYS_lseek, file, 0, SEEK_DATA) != 0;
}

/* Maps the file, makes one access, and unmaps it. */
static int touch(int prot, size_t len, long pos)
{
	volatile char *p = mapped;

	if (sys(SYS_mmap, p, len, prot, MAP_SHARED | MAP_FIXED, file, pos) != (long)p)
		return -1;
	if (prot & PROT_WRITE)
		*p = 1;
	else
		(void)*p;
	return sys(SYS_munmap, p, len) != 0;
}

static int do_map_read(unsigned int i)
{
	return touch(PROT_READ, 4096, i % 256 * 4096);
}

static int do_map_write(unsigned int i)
{
	return touch(PROT_READ | PROT_WRITE, 4096, i % 256 * 4096);
}

static int do_map_huge(unsigned int i)
{
	(void)i;
	return touch(PROT_READ | PROT_WRITE, HUGE, 0);
}

static int do_setxattr(unsigned int i)
{
	return sys(SYS_setxattr, "data", "user.cost", i % 2 ? "odd value" : "even one!", 9, 0) != 0;
}

static int do_getxattr(unsigned int i)
{
	(void)i;
	return sys(SYS_getxattr, "data", "user.cost", buffer, 64) != 5;
}

static int do_chmod(unsigned int i)
{
	return sys(SYS_chmod, "data", i % 2 ? 0600 : 0640) != 0;
}

static int do_utimens(unsigned int i)
{
	struct timespec times[2] = { { 1, i }, { 2, i } };

	return sys(SYS_utimensat, AT_FDCWD, "data", times, 0) != 0;
}

static int do_flock(unsigned int i)
{
	(void)i;
	return sys(SYS_flock, file, LOCK_EX) || sys(SYS_flock, file, LOCK_UN);
}

static int do_posix_lock(unsigned int i)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	(void)i;
	if (sys(SYS_fcntl, file, F_SETLK, &lock))
		return -1;
	lock.l_type = F_UNLCK;
	return sys(SYS_fcntl, file, F_SETLK, &lock) != 0;
}

/* --- Operations of one or four threads, each with its own file -------------------------------- */

#define THREADS		4

static pthread_barrier_t barrier;
static int thread_file[THREADS];
static unsigned int thread_turns;
static long thread_call;

static void *thread_main(void *arg)
{
	int fd = thread_file[(uintptr_t)arg];

	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < thread_turns; i++)
		if (sys(thread_call, fd, buffer, 4096, i % 256 * 4096) != 4096)
			die("a thread's operation");
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void with_thread_files(unsigned int all)
{
	char name[16];

	(void)all;
	for (unsigned int t = 0; t < THREADS; t++) {
		sprintf(name, "data-%u", t);
		thread_file[t] = open(name, O_CREAT | O_RDWR, 0600);
		if (thread_file[t] < 0 || pwrite(thread_file[t], buffer, MIB, 0) != MIB)
			die(name);
	}
}

/* Counts @turns operations of each of @n threads. Starts and ends of threads are not counted. */
static uint64_t threads(unsigned int n, long call, unsigned int turns)
{
	pthread_t thread[THREADS];
	uint64_t start;

	thread_turns = turns;
	thread_call = call;
	pthread_barrier_init(&barrier, NULL, n + 1);
	for (unsigned int t = 0; t < n; t++)
		if (pthread_create(&thread[t], NULL, thread_main, (void *)(uintptr_t)t))
			die("pthread_create");
	start = counter();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	start = counter() - start;
	for (unsigned int t = 0; t < n; t++)
		pthread_join(thread[t], NULL);
	pthread_barrier_destroy(&barrier);
	for (unsigned int t = 0; t < THREADS; t++)
		close(thread_file[t]);
	return start;
}

/* One thread makes as many operations as four threads together. */
#define THREAD_TURNS	8000

static uint64_t by_one_read(void) { return threads(1, SYS_pread64, THREAD_TURNS); }
static uint64_t by_four_read(void) { return threads(4, SYS_pread64, THREAD_TURNS / THREADS); }
static uint64_t by_one_write(void) { return threads(1, SYS_pwrite64, THREAD_TURNS); }
static uint64_t by_four_write(void) { return threads(4, SYS_pwrite64, THREAD_TURNS / THREADS); }

/* --- The list of operations ------------------------------------------------------------------- */

static const struct op {
	const char *name;
	void (*prepare)(unsigned int all);
	int (*run)(unsigned int i);
	unsigned int warm, count;
	uint64_t (*whole)(void);	/* in place of @run: counts @count operations itself */
} ops[] = {
	{ "call", with_empty, do_call, 50, 1000, NULL },
	{ "memcpy-4k", with_empty, do_memcpy_4k, 50, 500, NULL },
	{ "memcpy-1m", with_empty, do_memcpy_1m, 2, 6, NULL },
	{ "memcpy-4m", with_empty, do_memcpy_4m, 2, 6, NULL },
	{ "libc-4k", with_empty, do_libc_4k, 50, 500, NULL },
	{ "libc-1m", with_empty, do_libc_1m, 2, 6, NULL },
	{ "libc-4m", with_empty, do_libc_4m, 2, 6, NULL },
	{ "read-1", with_data, do_read_1, 50, 500, NULL },
	{ "read-4k", with_data, do_read_4k, 50, 500, NULL },
	{ "read-1m", with_data, do_read_1m, 2, 6, NULL },
	{ "read-64k", with_data, do_read_64k, 8, 64, NULL },
	{ "read-4m", with_large, do_read_4m, 2, 6, NULL },
	{ "read-hole-4k", with_hole, do_read_4k, 50, 500, NULL },
	{ "write-1", with_data, do_write_1, 50, 500, NULL },
	{ "write-4k", with_data, do_write_4k, 50, 500, NULL },
	{ "write-1m", with_data, do_write_1m, 2, 6, NULL },
	{ "write-16k", with_data, do_write_16k, 16, 128, NULL },
	{ "write-64k", with_data, do_write_64k, 8, 64, NULL },
	{ "write-4m", with_large, do_write_4m, 2, 6, NULL },
	{ "write-64", with_data, do_write_64, 50, 500, NULL },
	{ "write-1k", with_data, do_write_1k, 50, 500, NULL },
	{ "write-odd-4k", with_data, do_write_odd_4k, 50, 500, NULL },
	{ "write-odd-16k", with_data, do_write_odd_16k, 16, 128, NULL },
	{ "write-64-fsync", with_data, do_write_64_fsync, 20, 100, NULL },
	{ "write-1k-fsync", with_data, do_write_1k_fsync, 20, 100, NULL },
	{ "write-4k-fsync", with_data, do_write_4k_fsync, 20, 100, NULL },
	{ "write-16k-fsync", with_data, do_write_16k_fsync, 16, 60, NULL },
	{ "write-64k-fsync", with_data, do_write_64k_fsync, 4, 16, NULL },
	{ "write-odd-4k-fsync", with_data, do_write_odd_4k_fsync, 20, 100, NULL },
	{ "write-odd-16k-fsync", with_data, do_write_odd_16k_fsync, 16, 60, NULL },
	{ "append-64", with_append, do_append_64, 64, 256, NULL },
	{ "append-4k", with_append, do_append_4k, 50, 200, NULL },
	{ "append-1m", with_append, do_append_1m, 2, 6, NULL },
	{ "append-4k-fsync", with_append, do_append_4k_fsync, 20, 100, NULL },
	{ "fsync", with_data, do_fsync, 50, 500, NULL },
	{ "fstat", with_data, do_fstat, 50, 500, NULL },
	{ "stat", with_empty, do_stat, 50, 400, NULL },
	{ "stat-absent", with_empty, do_stat_absent, 50, 400, NULL },
	{ "lookup", with_forgotten_names, do_lookup, 20, 200, NULL },
	{ "open-close", with_empty, do_open_close, 50, 300, NULL },
	{ "create", with_empty, do_create, 20, 150, NULL },
	{ "create-fsync", with_empty, do_create_fsync, 20, 100, NULL },
	{ "unlink", with_names, do_unlink, 20, 150, NULL },
	{ "mkdir", with_empty, do_mkdir, 20, 100, NULL },
	{ "rmdir", with_folders, do_rmdir, 20, 100, NULL },
	{ "rename", with_empty, do_rename, 20, 150, NULL },
	{ "rename-over", with_names, do_rename_over, 20, 100, NULL },
	{ "rename-across", with_other_folder, do_rename_across, 20, 100, NULL },
	{ "link", with_empty, do_link, 20, 150, NULL },
	{ "symlink", with_empty, do_symlink, 20, 100, NULL },
	{ "readlink", with_symlink, do_readlink, 50, 300, NULL },
	{ "list-100", with_listing, do_list, 5, 50, NULL },
	{ "grow-and-cut", with_empty, do_grow_and_cut, 64, 640, NULL },
	{ "allocate-1m", with_empty, do_allocate, 2, 6, NULL },
	{ "write-and-punch", with_data, do_punch, 20, 100, NULL },
	{ "seek-data", with_data, do_seek_data, 50, 500, NULL },
	{ "map-read", with_data, do_map_read, 20, 150, NULL },
	{ "map-write", with_data, do_map_write, 20, 150, NULL },
	{ "map-huge", with_huge, do_map_huge, 20, 150, NULL },
	{ "setxattr", with_xattr, do_setxattr, 20, 150, NULL },
	{ "getxattr", with_xattr, do_getxattr, 50, 300, NULL },
	{ "chmod", with_empty, do_chmod, 20, 150, NULL },
	{ "utimens", with_empty, do_utimens, 20, 300, NULL },
	{ "flock", with_empty, do_flock, 20, 150, NULL },
	{ "posix-lock", with_empty, do_posix_lock, 20, 150, NULL },
	{ "read-4k-by-1", with_thread_files, NULL, 0, THREAD_TURNS, by_one_read },
	{ "read-4k-by-4", with_thread_files, NULL, 0, THREAD_TURNS, by_four_read },
	{ "write-4k-by-1", with_thread_files, NULL, 0, THREAD_TURNS, by_one_write },
	{ "write-4k-by-4", with_thread_files, NULL, 0, THREAD_TURNS, by_four_write },
};

static bool where;

static uint64_t loop(const char *name, int (*run)(unsigned int), unsigned int from, unsigned int to)
{
	uint64_t start = counter();

	for (unsigned int i = from; i < to; i++)
		if (run(i)) {
			printf("%s: the operation failed\n", name);
			fflush(stdout);
			exit(1);
		}
	return counter() - start;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	return at->level ? remove(path) : 0;
}

static void empty_folder(void)
{
	if (file >= 0)
		close(file);
	file = -1;
	if (nftw(".", remove_one, 8, FTW_DEPTH | FTW_PHYS))
		die("emptying the folder");
}

static void sampled(const struct op *op, unsigned int turn)
{
	unsigned int all = op->warm + op->count;

	settle();
	op->prepare(all);
	loop(op->name, op->run, 0, op->warm);
	settle();
	samples_open(turn);
	samples_on();
	loop(op->name, op->run, op->warm, all);
	samples_close();
	empty_folder();
}

static uint64_t once(const struct op *op)
{
	unsigned int all = op->warm + op->count;
	uint64_t took, empty;

	settle(); /* frees pages that the previous repeat has removed */
	op->prepare(all);
	if (!op->whole)
		loop(op->name, op->run, 0, op->warm);
	settle();
	if (op->whole) {
		took = op->whole();
		empty = 0;
	} else {
		took = loop(op->name, op->run, op->warm, all);
		empty = loop(op->name, do_nothing, op->warm, all);
	}
	empty_folder();
	return (took - empty) / op->count;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *name, unsigned int repeats)
{
	uint64_t took[REPEATS_MAX];

	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
		if (strcmp(name, ops[o].name))
			continue;
		if (where && ops[o].whole)
			break;	/* the samples do not include other threads */
		for (unsigned int r = 0; where && r < repeats; r++)
			sampled(&ops[o], r);
		if (where) {
			samples_print(name);
			return;
		}
		for (unsigned int r = 0; r < repeats; r++)
			took[r] = once(&ops[o]);
		qsort(took, repeats, sizeof(took[0]), by_size);
		printf("%s %llu %llu\n", name, (unsigned long long)took[0],
		       (unsigned long long)((took[repeats / 2] - took[0]) * 10000 / took[0]));
		return;
	}
	fprintf(stderr, "cost: unknown operation %s\n", name);
	exit(2);
}

/* Allocates memory and touches each page, so that no count includes page faults. */
static char *memory(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("memory");
	memset(p, 0x5a, len);
	return p;
}

int main(int argc, char **argv)
{
	unsigned int repeats;

	where = argc > 1 && !strcmp(argv[1], "--where");
	argc -= where;
	argv += where;
	repeats = argc > 3 ? (unsigned int)atoi(argv[2]) : 0;
	if (!repeats || (!where && repeats > REPEATS_MAX) || chdir(argv[1])) {
		fprintf(stderr, "usage: cost [--where] DIR REPEATS OPERATION...\n");
		return 2;
	}
	must_count();
	if (mkdir(FOLDER, 0700) || chdir(FOLDER))
		die(FOLDER);
	buffer = memory(MIB);
	other = memory(MIB);
	mapped = (char *)(((uintptr_t)memory(2 * HUGE) + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	large = memory(LARGE);
	large_other = memory(LARGE);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		snprintf(names[i], sizeof(names[i]), "name-%06zu", i);
	for (int i = 3; i < argc; i++)
		measure(argv[i], repeats);
	if (chdir("..") || rmdir(FOLDER))
		die(FOLDER);
	return 0;
}
