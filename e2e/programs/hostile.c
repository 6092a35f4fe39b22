// SPDX-License-Identifier: Apache-2.0
/*
 * Acts as a hostile guest against a host kernel.
 *
 *   hostile attack FILE OFFSET SIZE SEED SECONDS
 *	stores into words of every structure of the volume that FILE has at OFFSET. The new values
 *	are random, slightly changed, copied from other words, restored, or valid for the structure
 *   hostile seize FILE OFFSET SIZE NAME SECONDS
 *	makes every transaction area of all systems look locked by the live system NAME, and locks
 *	an area once more whenever another system releases it
 *   hostile hold FILE OFFSET SIZE NAME SECONDS WHAT...
 *	makes locks look held by the live system NAME, and releases them after SECONDS. WHAT is
 *	`areas` (all transaction areas), `chunks` (all chunks), `chains` (all chains of users'
 *	locks), `semaphores` (their file), or the number of an inode. With NUMBER:unlinked, the
 *	inode also looks unlinked while its lock is held
 *   hostile use DIR SEED SECONDS BOUND
 *	runs processes with usual operations of users. Any operation may fail. After BOUND seconds
 *	an operation is killed, and must then end
 *
 * The same seed repeats the stores, but not their times.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include "../../kernel/core/format/format.h"

static u64 state;

static u64 rnd(void)
{
	u64 z = state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static u64 below(u64 n)
{
	return n ? rnd() % n : 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* --- The attack ------------------------------------------------------------------------------- */

#define PLACES	512
#define OLD	128

static u8 *mem;
static u64 size;
static struct sg_super sb;	/* a copy from before the attack */

/* Pages by the kind of their content, which the program guesses from the content. */
static struct places {
	u64 page[PLACES];
	unsigned int n;
} dirs, tables, xattrs, inodes, others;

static struct {
	u64 off, val;
} old[OLD];
static u64 stores;

static u64 load(u64 off)
{
	return __atomic_load_n((u64 *)(mem + (off & ~7ULL) % size), __ATOMIC_RELAXED);
}

static u8 *page_at(u64 off)
{
	return mem + (off & ~(SG_PAGE - 1)) % size;
}

static void store(u64 off, u64 val)
{
	off = (off & ~7ULL) % size;
	old[stores % OLD].off = off;
	old[stores++ % OLD].val = load(off);
	__atomic_store_n((u64 *)(mem + off), val, __ATOMIC_RELAXED);
}

static void place(struct places *p, u64 off)
{
	p->page[p->n < PLACES ? p->n++ : below(PLACES)] = off;
}

static bool is_entry(u64 e)
{
	u64 at = (e & SG_PTE_ADDR) - sb.phys;

	return (e & SG_PTE_TABLE) == SG_PTE_TABLE && at < size;
}

static void classify(u64 off)
{
	unsigned int i, entries = 0, modes = 0;

	if ((u32)load(off) == SG_BUCKET_MAGIC)
		return place(&dirs, off);
	if ((u32)load(off) == SG_XATTR_MAGIC)
		return place(&xattrs, off);
	for (i = 0; i < 64; i++)
		entries += is_entry(load(off + i * 8));
	for (i = 0; i < SG_INODES_PER_PAGE; i++) {
		u64 mode = load(off + i * SG_INODE_SIZE + offsetof(struct sg_inode, mode));

		modes += (mode & 0170000) && !(mode >> 48) && !(mode & 0xffff0000);
	}
	if (entries)
		place(&tables, off);
	else if (modes > 2)
		place(&inodes, off);
	else if (load(off) && !below(16))
		place(&others, off);
}

static void look_around(void)
{
	u64 off;

	dirs.n = tables.n = xattrs.n = inodes.n = others.n = 0;
	for (off = sb.data_off; off < size - SG_PAGE; off += SG_PAGE)
		classify(off);
}

static u64 in(const struct places *p, u64 words)
{
	return p->n ? p->page[below(p->n)] + 8 * below(words) : below(size);
}

/* Chooses a slot. Mostly it is one of the first three, which include the host's slot. */
static u64 slot(void)
{
	return below(below(4) ? 3 : SG_SLOTS);
}

static u64 target(bool gentle)
{
	switch (below(gentle ? 8 : 16)) {
	case 0:
		return in(&dirs, 512);
	case 1:
		return in(&tables, below(2) ? 16 : 512);
	case 2:
	case 3:
		return in(&inodes, 512);
	case 4:
		return in(&xattrs, 16);
	case 5:
		return in(&others, 512);
	case 6:
		return sb.chunk_off + 8 * below(size / SG_CHUNK * sizeof(struct sg_chunk) / 8);
	case 7:
		return sb.hint_off + 8 * below(16);
	case 8:
		return 8 * below(64) + (below(2) ? size - SG_PAGE : 0);
	case 9:
		return size - SG_PAGE + offsetof(struct sg_last, sys) + 8 * below(12);
	case 10:
		return SG_PAGE + 8 * below(18);
	case 11:
		return SG_PAGE + offsetof(struct sg_hot, sys) + 8 * below(SG_SYS_COUNT * 32);
	case 12:
		return sb.slot_off + slot() * sizeof(struct sg_slot) + 8 * below(23);
	case 13:
		return sb.journal_off + (slot() * sb.areas + below(sb.areas)) * SG_PAGE +
		       8 * below(below(2) ? 7 : 512);
	case 14:
		return sb.ledger_off + slot() * SG_PAGE + 8 * below(below(2) ? 8 : 512);
	default:
		return below(size);
	}
}

static u64 a_page(void)
{
	const struct places *all[] = { &dirs, &tables, &xattrs, &inodes, &others };

	switch (below(4)) {
	case 0:
		return below(sb.data_off) & ~(SG_PAGE - 1);
	case 1:
		return size - 2 * SG_PAGE + below(4) * SG_PAGE;
	default:
		return in(all[below(5)], 1) & ~(SG_PAGE - 1);
	}
}

static u64 fitting(void)
{
	u64 inc = SG_SLOT_INC(load(sb.slot_off + slot() * sizeof(struct sg_slot)));
	static const u64 flags[] = { SG_PTE_TABLE, SG_PTE_LEAF, SG_PTE_LEAF_HUGE };
	u64 e;

	switch (below(9)) {
	case 0:
		return SG_LOCK_WORD(slot(), inc) | (below(3) ? 0 : SG_LOCK_HANDED << below(3));
	case 1:
		return SG_SLOT_WORD(below(5), inc + below(2)) |
		       (below(2) ? SG_SLOT_BY_WORD(slot(), inc) : 0);
	case 2:
		e = flags[below(3)];
		e |= sb.phys + (a_page() & (e & SG_PTE_HUGE ? ~(SG_CHUNK - 1) : ~0ULL));
		return below(2) ? SG_ROOT(e, below(8)) : e;
	case 3:
		return a_page() | below(4);
	case 4:
		return SG_LEDGER_ENTRY(below(8), a_page() >> SG_PAGE_SHIFT, below(0x400), below(4));
	case 5:
		return SG_LEDGER_ENTRY(SG_LEDGER_INODE, below(200), 0, below(4));
	case 6:
		return SG_REF(below(200), below(256), below(16));
	case 7:
		return SG_AREA_HEAD(1, below(260)) | SG_AREA_SEQS(below(8)) |
		       (below(4) ? 0 : SG_AREA_LOGS(below(256)));
	default:
		return below(5) << 32 | below(16) << 12 | 0600;
	}
}

static u64 value(u64 off)
{
	static const u64 limits[] = { 0, 1, ~0ULL, 1ULL << 63, (1ULL << 63) - 1, SG_FILE_MAX,
		SG_FILE_MAX + 1, 1ULL << 32, SG_CHUNK, 511, 512, 0xffff };
	u64 was = load(off);

	switch (below(9)) {
	case 0:
		return rnd();
	case 1:
		return below(4096);
	case 2:
		return was ^ 1ULL << below(64);
	case 3:
		return load(target(false));
	case 4:
		return was + (below(2) ? 1ULL : -1ULL) * (1ULL << below(14));
	case 5:
		return was | 1;
	case 6:
		return limits[below(sizeof(limits) / sizeof(limits[0]))];
	case 7:
		return old[below(OLD)].val;
	default:
		return fitting();
	}
}

/*
 * Stores a word, several adjacent words, a word that changes repeatedly, an earlier value, or a
 * page.
 */
static void attack_once(bool gentle)
{
	u64 off = target(gentle), i, n, v[2];

	switch (below(20)) {
	case 0:
		for (i = 0, n = below(8); i < n; i++)
			store(off + 8 * i, value(off + 8 * i));
		break;
	case 1:
	case 2:
		v[0] = load(off);
		v[1] = value(off);
		for (i = below(below(4) ? 1000 : 1000000); i; i--)
			store(off, v[i & 1]);
		break;
	case 3:
	case 4:
	case 5:
		i = below(OLD);
		store(old[i].off, old[i].val);
		break;
	case 6:
		if (!gentle && off > SG_PAGE)
			memmove(page_at(off), page_at(target(false)), SG_PAGE);
		break;
	default:
		store(off, value(off));
	}
}

/* Ends the process when the host has revoked the memory. */
static void revoked(int sig)
{
	static const char said[] = "the host has revoked the memory\n";

	(void)sig;
	_exit(write(1, said, sizeof(said) - 1) < 0);
}

/* Maps the volume. @argv has FILE, OFFSET and SIZE. */
static void map_volume(char **argv)
{
	int fd = open(argv[0], O_RDWR);
	u64 at = strtoull(argv[1], NULL, 0);

	size = strtoull(argv[2], NULL, 0);
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
	if (mem == MAP_FAILED)
		die(argv[0]);
	memcpy(&sb, mem, sizeof(sb));
	if (sb.magic != SG_MAGIC || sb.data_off >= size || !sb.areas || sb.chunk_off >= size) {
		fprintf(stderr, "%s: no volume at this offset\n", argv[0]);
		exit(2);
	}
	signal(SIGBUS, revoked);
}

/*
 * Returns the word that a lock has while the live system @who holds it, or 0 if there is no such
 * system.
 */
static u64 word_of(const char *who)
{
	const struct sg_slot *slot = (const void *)(mem + sb.slot_off);
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (SG_SLOT_STATE(slot[i].state) == SG_SLOT_LIVE && !strcmp(slot[i].name, who))
			return SG_LOCK_WORD(i, SG_SLOT_INC(slot[i].state));
	return 0;
}

static int seize(char **argv)
{
	double end = now() + atof(argv[4]);
	u64 word, i, areas;

	map_volume(argv);
	word = word_of(argv[3]);
	if (!word) {
		fprintf(stderr, "no live system has the name %s\n", argv[3]);
		return 2;
	}
	areas = (u64)SG_SLOTS * sb.areas;
	for (; now() < end; usleep(500))
		for (i = 0; i < areas; i++)
			store(sb.journal_off + i * SG_PAGE + offsetof(struct sg_area, lock), word);
	printf("%llu areas were seized repeatedly\n", (unsigned long long)areas);
	return 0;
}

/* --- Locks that look held --------------------------------------------------------------------- */

/* Returns the offset of page @nr of a system file, or 0 if there is no such page. */
static u64 page_of(unsigned int which, u64 nr)
{
	u64 root = load(SG_PAGE + offsetof(struct sg_hot, sys) + which * SG_INODE_SIZE +
			offsetof(struct sg_inode, table));
	unsigned int height = SG_ROOT_HEIGHT(root);
	u64 at = root & SG_PTE_ADDR, e;

	if (!root || nr >> (9 * height))
		return 0;
	for (; height; height--) {
		e = load(at - sb.phys + (nr >> (9 * (height - 1)) & 511) * 8);
		if (!(e & SG_PTE_PRESENT))
			return 0;
		at = e & SG_PTE_ADDR;
		if (e & SG_PTE_HUGE)
			return at - sb.phys + (nr & ((1ULL << (9 * (height - 1))) - 1)) * SG_PAGE;
	}
	return at - sb.phys;
}

/* Takes a lock if it is free, or releases it. The caller retries while another system holds it. */
static void hold_lock(u64 off, u64 word, bool on)
{
	u64 seen = on ? 0 : word;
	u64 asked = word | SG_LOCK_ASKED;

	if (off)
		__atomic_compare_exchange_n((u64 *)(mem + off), &seen, on ? word : 0, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	if (off && !on)
		__atomic_compare_exchange_n((u64 *)(mem + off), &asked, 0, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void hold_what(const char *what, u64 word, bool on)
{
	u64 ino, i, rec, mode;
	char *rest;

	if (!strcmp(what, "areas")) {
		for (i = 0; i < (u64)SG_SLOTS * sb.areas; i++)
			hold_lock(sb.journal_off + i * SG_PAGE + offsetof(struct sg_area, lock),
				  word, on);
		return;
	}
	if (!strcmp(what, "chunks")) {
		for (i = 0; i < sb.size >> SG_CHUNK_SHIFT; i++)
			hold_lock(sb.chunk_off + i * sizeof(struct sg_chunk) +
				  offsetof(struct sg_chunk, lock), word, on);
		return;
	}
	if (!strcmp(what, "chains")) {
		for (i = 0; i < SG_USERLOCK_CHAINS; i++)
			hold_lock(page_of(SG_SYS_LOCKS, i), word, on);
		return;
	}
	if (!strcmp(what, "semaphores")) {
		rec = SG_PAGE + offsetof(struct sg_hot, sys) + SG_SYS_SEMS * SG_INODE_SIZE;
		hold_lock(rec + offsetof(struct sg_inode, lock), word, on);
		return;
	}
	ino = strtoull(what, &rest, 0);
	rec = page_of(SG_SYS_INODES, ino / SG_INODES_PER_PAGE);
	if (!rec) {
		fprintf(stderr, "the volume has no inode %s\n", what);
		exit(2);
	}
	rec += ino % SG_INODES_PER_PAGE * SG_INODE_SIZE;
	mode = (u32)load(rec + offsetof(struct sg_inode, mode));
	if (!strcmp(rest, ":unlinked") && mode && !on)
		store(rec + offsetof(struct sg_inode, mode), mode | 1ULL << 32);
	hold_lock(rec + offsetof(struct sg_inode, lock), word, on);
	if (!strcmp(rest, ":unlinked") && mode && on)
		store(rec + offsetof(struct sg_inode, mode), mode);
}

static int hold(int argc, char **argv)
{
	double end = now() + atof(argv[4]);
	bool said = false;
	u64 word;
	int i;

	map_volume(argv);
	word = word_of(argv[3]);
	if (!word) {
		fprintf(stderr, "no live system has the name %s\n", argv[3]);
		return 2;
	}
	for (; now() < end; usleep(500)) {
		for (i = 5; i < argc; i++)
			hold_what(argv[i], word, true);
		if (!said)
			printf("held\n");
		said = true;
	}
	for (i = 5; i < argc; i++)
		hold_what(argv[i], word, false);
	return 0;
}

static int attack(char **argv)
{
	double seconds = atof(argv[4]), end, next = 0;
	unsigned int pause;
	bool gentle;

	map_volume(argv);
	state = strtoull(argv[3], NULL, 0);
	gentle = below(2);
	pause = (unsigned int)(1 << below(15));
	for (end = now() + seconds; now() < end;) {
		if (now() > next) {
			look_around();
			next = now() + 1;
		}
		attack_once(gentle);
		usleep((unsigned int)below(pause));
	}
	printf("%llu stores, %s, up to %u us apart\n", (unsigned long long)stores, gentle ? "files only" : "anywhere",
	       pause);
	return 0;
}

/* --- Users ------------------------------------------------------------------------------------ */

#define USERS	4
#define BUF	(1u << 18)

static struct user {
	volatile const char *op;
	volatile u64 done;
} *users;

static char names[16][300];
static sigjmp_buf hit;
static u8 *buf;

static void on_fault(int sig)
{
	siglongjmp(hit, sig);
}

static const char *name(void)
{
	return names[below(16)];
}

static void list_dir(void)
{
	DIR *d = opendir(name());
	unsigned int n = 0;

	while (d && readdir(d) && n++ < 5000)
		;
	if (d)
		closedir(d);
}

static void read_file(int flags)
{
	int fd = open(name(), O_RDONLY | O_NONBLOCK | flags);

	if (fd < 0)
		return;
	if (pread(fd, buf, BUF, below(4) ? 0 : (off_t)(below(1 << 20) & ~511ULL)) < 0 || below(2))
		lseek(fd, 0, below(2) ? SEEK_HOLE : SEEK_DATA);
	close(fd);
}

static void write_file(int flags)
{
	int fd = open(name(), O_RDWR | O_CREAT | O_NONBLOCK | flags, 0600);
	ssize_t n = 0;

	if (fd < 0)
		return;
	n += pwrite(fd, buf, (below(BUF) | 511) + 1 - 512, (off_t)(below(1 << 20) & ~511ULL));
	if (!below(4))
		n += fsync(fd);
	if (!below(4))
		n += ftruncate(fd, (off_t)below(1 << 21));
	if (!below(4))	/* allocate, punch a hole, collapse or insert */
		n += fallocate(fd, (int[]){ 0, 3, 8, 0x20 }[below(4)], (off_t)below(512) << 12,
			       (off_t)(1 + below(600)) << 12);
	close(fd);
}

/* Accesses a mapping. If the mapping has lost its pages, the access raises a signal. */
static void map_file(void)
{
	int fd = open(name(), O_RDWR | O_NONBLOCK);
	volatile u8 *p;
	u64 i;

	if (fd < 0)
		return;
	p = mmap(NULL, BUF, PROT_READ | PROT_WRITE, below(4) ? MAP_SHARED : MAP_PRIVATE, fd, 0);
	if (p != MAP_FAILED) {
		if (!sigsetjmp(hit, 1))
			for (i = 0; i < BUF; i += 4096)
				p[i + below(4096)] = (u8)(p[i] + 1);
		if (!below(3))
			msync((void *)p, BUF, MS_SYNC);
		munmap((void *)p, BUF);
	}
	close(fd);
}

static void lock_file(void)
{
	struct flock l = { .l_type = below(2) ? F_WRLCK : F_RDLCK, .l_len = 5 };
	int fd = open(name(), O_RDWR | O_NONBLOCK);

	if (fd < 0)
		return;
	if (!fcntl(fd, F_SETLK, &l) || flock(fd, LOCK_EX | LOCK_NB))
		fcntl(fd, F_GETLK, &l);
	close(fd);
}

static void change_names(void)
{
	char path[320];
	int err = 0;

	snprintf(path, sizeof(path), "%s/new-%llu", names[0], (unsigned long long)below(30));
	switch (below(7)) {
	case 0:
		err = mkdir(path, 0700);
		break;
	case 1:
		err = rename(name(), path);
		break;
	case 2:
		err = unlink(path) ? rmdir(path) : 0;
		break;
	case 3:
		err = link(name(), path);
		break;
	case 4:
		err = symlink("target", path);
		break;
	case 5:
		err = rename(path, name());
		break;
	default:
		err = unlink(name());
	}
	(void)err;
}

static void look_at(void)
{
	struct statvfs fs;
	struct stat st;

	if (lstat(name(), &st) || !below(4))
		statvfs(names[0], &fs);
	if (readlink(name(), (char *)buf, BUF) < 0 && listxattr(name(), (char *)buf, 65536) > 0)
		getxattr(name(), "user.k", buf, 65536);
	if (!below(3))
		setxattr(name(), "user.k", buf, below(9000), 0);
	if (!chmod(name(), 0700) && !below(4))
		utimensat(AT_FDCWD, name(), NULL, 0);
}

static void use_once(struct user *u)
{
	switch (below(9)) {
	case 0:
		u->op = "readdir";
		list_dir();
		break;
	case 1:
		u->op = "read";
		read_file(0);
		break;
	case 2:
		u->op = "read O_DIRECT";
		read_file(O_DIRECT);
		break;
	case 3:
		u->op = "write";
		write_file(below(3) ? 0 : O_APPEND);
		break;
	case 4:
		u->op = "write O_DIRECT";
		write_file(O_DIRECT);
		break;
	case 5:
		u->op = "mmap";
		map_file();
		break;
	case 6:
		u->op = "lock";
		lock_file();
		break;
	case 7:
		u->op = "names";
		change_names();
		break;
	default:
		u->op = "stat";
		look_at();
	}
	u->done++;
}

static void use_loop(struct user *u, u64 seed, double seconds)
{
	struct sigaction sa = { .sa_handler = on_fault };
	double end = now() + seconds;

	state = seed;
	buf = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaction(SIGBUS, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	while (now() < end)
		use_once(u);
	u->op = NULL;
	_exit(0);
}

/* Prints the kernel stack of a process that SIGKILL does not end. */
static void show_stack(pid_t pid)
{
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stdout);
}

static bool gone_within(pid_t pid, double seconds)
{
	double end = now() + seconds;

	while (now() < end) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		usleep(20000);
	}
	return false;
}

/*
 * Runs the users' processes. Returns 0 if all of them have ended. Prints a line for each process
 * that does not end after SIGKILL.
 */
static int use(char **argv)
{
	double seconds = atof(argv[2]), bound = atof(argv[3]), since[USERS];
	u64 seed = strtoull(argv[1], NULL, 0), seen[USERS] = { 0 }, all = 0;
	static const char *const leaf[] = { "", "dir", "dir/sub", "one", "table", "large", "sparse", "short",
		"many", "many/x-7", "many/x-90", "fresh", "dir/fresh", "fifo", "dir/link", "new" };
	int i, late = 0, hung = 0;
	pid_t pid[USERS];

	for (i = 0; i < 16; i++)
		snprintf(names[i], sizeof(names[i]), "%s/%s", argv[0], leaf[i]);
	users = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < USERS; i++) {
		since[i] = now();
		pid[i] = fork();
		if (!pid[i])
			use_loop(&users[i], seed * 31 + (u64)i, seconds);
	}
	for (bool some = true; some; usleep(50000)) {
		some = false;
		for (i = 0; i < USERS; i++) {
			if (!pid[i])
				continue;
			if (waitpid(pid[i], NULL, WNOHANG) == pid[i]) {
				all += users[i].done;
				pid[i] = 0;
				continue;
			}
			some = true;
			if (users[i].done != seen[i]) {
				seen[i] = users[i].done;
				since[i] = now();
			} else if (now() - since[i] > bound) {
				late++;
				kill(pid[i], SIGKILL);
				if (!gone_within(pid[i], bound)) {
					printf("HANGS: %s, killed %.0f s ago\n", (const char *)users[i].op, bound);
					show_stack(pid[i]);
					hung++;
				}
				pid[i] = 0;
			}
		}
	}
	printf("%llu operations, %d killed after %.0f s\n", (unsigned long long)all, late, bound);
	return hung ? 1 : 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 7 && !strcmp(argv[1], "attack"))
		return attack(argv + 2);
	if (argc == 7 && !strcmp(argv[1], "seize"))
		return seize(argv + 2);
	if (argc >= 8 && !strcmp(argv[1], "hold"))
		return hold(argc - 2, argv + 2);
	if (argc == 6 && !strcmp(argv[1], "use"))
		return use(argv + 2);
	fprintf(stderr, "hostile attack FILE OFFSET SIZE SEED SECONDS | hostile seize FILE OFFSET SIZE NAME SECONDS |\n"
		"hostile hold FILE OFFSET SIZE NAME SECONDS WHAT... |\n"
		"hostile use DIR SEED SECONDS BOUND\n");
	return 2;
}
