// SPDX-License-Identifier: Apache-2.0
/*
 * sem ROLE NAME FACE ...: uses shared semaphores through libstargate. With the FACE `user`, the
 * process itself changes the object. With the FACE `kernel`, the kernel does. The program exits
 * with 0 on success. Otherwise it prints the error.
 *
 *   count NAME FACE FILE N	adds 1 to two words of FILE under a mutex, N times; the words must
 *				be equal before each step
 *   forever NAME FACE FILE	as count, without end
 *   words FILE			prints the two words
 *   hold NAME FACE		locks a mutex, prints "held", and waits for a signal
 *   hold-read, hold-write	as hold, for a reader-writer lock
 *   thread NAME FACE		a thread locks a mutex and ends; the next owner must get EOWNERDEAD
 *   fork NAME FACE		a child that inherits the handle must be another owner
 *   exec NAME FACE		locks a mutex, and becomes `sleep`
 *   errors NAME		each invalid call on a mutex must return its own error
 *   write NAME FACE FILE N	adds 1 to two words of FILE under a reader-writer lock, N times
 *   read NAME FACE FILE N	reads both words under that lock, N times; they must be equal
 *   meet NAME FACE FILE I N	meets another process at a barrier N times; the process has the
 *				number I (0 or 1), which selects its word in FILE
 *   produce, consume NAME FACE FILE BYTES	uses a ring in FILE; prints the sum of all bytes
 *   put, get NAME FACE FILE BYTES BLOCK	as in P1 5.3: put writes FILE, which has four
 *				blocks; get reads it; two semaphores order them; both print the
 *				sum of all bytes, and the time in ms
 *   forge NAME			stores invalid words, and then uses and resets the object
 *   deny NAME			a map of the object must fail
 *   handle NAME		a descriptor must own its locks for all threads, until its close
 *   late NAME FACE		a wait of 200 ms must not end earlier, or much later
 *   signal NAME FACE		a signal must end a wait, unless its handler has SA_RESTART
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "uapi/semctl.h"
#include "stargate.h"

#define VOLUME	"/mnt/sg"
#define MS	1000000ULL

static void fail(const char *what, int err)
{
	printf("%s: %s (%d)\n", what, stargate_why(err), err);
	exit(1);
}

static void must(const char *what, int err)
{
	if (err)
		fail(what, err);
}

/* Fails unless the call returned exactly the expected error. */
static void gives(const char *what, int expected, int err)
{
	if (err != expected) {
		printf("%s: expected %d, got %d (%s)\n", what, expected, err, stargate_why(err));
		exit(1);
	}
}

static stargate_sem *have(const char *name, const char *face, enum stargate_type type)
{
	stargate_sem *s;

	must(name, stargate_open(&s, VOLUME, name, type,
				 strcmp(face, "user") ? STARGATE_BY_KERNEL : 0));
	return s;
}

static volatile uint64_t *words_of(const char *path)
{
	struct stargate_map m;

	must(path, stargate_map_file(&m, path, O_RDWR | O_CREAT, 0666, 65536));
	return m.base;
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* --- the mutex -------------------------------------------------------------------------------- */

/*
 * Locks the mutex, and adds 1 to both words. If a process dies between the two stores, the first
 * word is greater by 1. No other difference may occur.
 */
static void step(stargate_sem *s, volatile uint64_t *w)
{
	int err = stargate_mutex_lock(s, STARGATE_FOREVER);

	if (err == EOWNERDEAD) {
		if (w[0] != w[1] && w[0] != w[1] + 1)
			fail("more than one owner had the mutex", 0);
		w[1] = w[0];
		must("consistent", stargate_consistent(s));
	} else if (err) {
		fail("lock", err);
	}
	if (w[0] != w[1])
		fail("the words differ, so another process has the mutex too", 0);
	w[0]++;
	w[1]++;
	must("unlock", stargate_mutex_unlock(s));
}

static void count(const char *name, const char *face, const char *file, uint64_t n)
{
	stargate_sem *s = have(name, face, STARGATE_MUTEX);
	volatile uint64_t *w = words_of(file);
	uint64_t i;

	for (i = 0; i < n; i++)
		step(s, w);
}

static void hold(const char *role, const char *name, const char *face)
{
	stargate_sem *s = have(name, face, STARGATE_ANY);
	int err = !strcmp(role, "hold-read") ? stargate_read_lock(s, STARGATE_FOREVER) :
		  !strcmp(role, "hold-write") ? stargate_write_lock(s, STARGATE_FOREVER) :
		  stargate_mutex_lock(s, STARGATE_FOREVER);

	if (err && err != EOWNERDEAD)
		fail("lock", err);
	say("held");
	pause();
}

static void *lock_and_end(void *s)
{
	return (void *)(intptr_t)stargate_mutex_lock(s, STARGATE_TRY);
}

static void thread(const char *name, const char *face)
{
	stargate_sem *s = have(name, face, STARGATE_MUTEX);
	pthread_t t;
	void *err;

	pthread_create(&t, NULL, lock_and_end, s);
	pthread_join(t, &err);
	must("the thread locks", (int)(intptr_t)err);
	gives("lock after the owner's end", EOWNERDEAD,
	      stargate_mutex_lock(s, stargate_in(3000 * MS)));
	must("consistent", stargate_consistent(s));
	must("unlock", stargate_mutex_unlock(s));
}

static void fork_with(const char *name, const char *face)
{
	stargate_sem *s = have(name, face, STARGATE_MUTEX);
	int status;

	must("lock", stargate_mutex_lock(s, STARGATE_TRY));
	if (!fork()) {
		gives("the child of the owner unlocks", EPERM, stargate_mutex_unlock(s));
		gives("the child of the owner locks", EAGAIN, stargate_mutex_lock(s, STARGATE_TRY));
		exit(0);
	}
	wait(&status);
	if (status)
		exit(1);
	must("the parent unlocks after the child's attempts", stargate_mutex_unlock(s));
	if (!fork()) {
		must("the child locks", stargate_mutex_lock(s, STARGATE_TRY));
		_exit(0);
	}
	wait(&status);
	gives("the parent locks after the death of the owner, a child", EOWNERDEAD,
	      stargate_mutex_lock(s, stargate_in(3000 * MS)));
	must("consistent", stargate_consistent(s));
	must("unlock", stargate_mutex_unlock(s));
}

static void exec_with(const char *name, const char *face)
{
	must("lock", stargate_mutex_lock(have(name, face, STARGATE_MUTEX), STARGATE_TRY));
	say("held");
	execlp("sleep", "sleep", "600", NULL);
}

static void errors(const char *name)
{
	stargate_sem *s = have(name, "user", STARGATE_MUTEX);
	stargate_sem *k = have(name, "kernel", STARGATE_MUTEX);

	gives("unlock without a lock", EPERM, stargate_mutex_unlock(s));
	must("lock by one face", stargate_mutex_lock(s, STARGATE_TRY));
	gives("lock by the other face", EDEADLK, stargate_mutex_lock(k, STARGATE_TRY));
	gives("mark as consistent, although no owner has died", EINVAL, stargate_consistent(k));
	must("unlock by the other face", stargate_mutex_unlock(k));
	gives("unlock a second time", EPERM, stargate_mutex_unlock(s));
	gives("post a mutex", EINVAL, stargate_sem_post(s));
	gives("advance a mutex", EINVAL, stargate_event_advance(k, 1));
	stargate_close(k);
	gives("open for reading", EBADF,
	      stargate_open(&k, VOLUME, name, STARGATE_ANY, STARGATE_LOOK) ?:
	      stargate_mutex_lock(k, STARGATE_TRY));
}

/* --- other objects ---------------------------------------------------------------------------- */

static void rewrite(const char *name, const char *face, const char *file, uint64_t n)
{
	stargate_sem *s = have(name, face, STARGATE_RWLOCK);
	volatile uint64_t *w = words_of(file);
	uint64_t i;

	for (i = 0; i < n; i++) {
		must("write", stargate_write_lock(s, stargate_in(60000 * MS)));
		w[0]++;
		w[1]++;
		must("unlock", stargate_write_unlock(s));
	}
}

static void reread(const char *name, const char *face, const char *file, uint64_t n)
{
	stargate_sem *s = have(name, face, STARGATE_RWLOCK);
	volatile uint64_t *w = words_of(file);
	uint64_t i, a, b;

	for (i = 0; i < n; i++) {
		must("read", stargate_read_lock(s, stargate_in(60000 * MS)));
		a = w[0];
		b = w[1];
		must("unlock", stargate_read_unlock(s));
		if (a != b)
			fail("a reader saw the words of an unfinished writer", 0);
	}
}

static void meet(const char *name, const char *face, const char *file, uint64_t me, uint64_t n)
{
	stargate_sem *s = have(name, face, STARGATE_BARRIER);
	volatile uint64_t *w = words_of(file);
	uint64_t i, other;

	for (i = 1; i <= n; i++) {
		w[8 * me] = i;
		must("barrier", stargate_barrier_wait(s, stargate_in(60000 * MS), NULL));
		other = w[8 * !me];
		if (other != i && other != i + 1)
			fail("the barrier opened without the other process", 0);
	}
}

static uint64_t next_byte(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 56;
}

static void ring(bool put, const char *name, const char *file, uint64_t bytes)
{
	uint64_t at, n, i, done = 0, sum = 0, seed = 1;
	stargate_cursor *c;
	struct stargate_map m;
	uint8_t *base;

	must(file, stargate_map_file(&m, file, O_RDWR | O_CREAT, 0666, 65536));
	base = m.base;
	must("cursor", stargate_cursor_open(&c, VOLUME, name, 65536));
	for (; done < bytes; done += n) {
		must("at", put ? stargate_publish_at(c, &at, &n, stargate_in(60000 * MS)) :
				 stargate_consume_at(c, &at, &n, stargate_in(60000 * MS)));
		n = n < bytes - done ? n : bytes - done;
		for (i = 0; i < n; i++) {
			if (put)
				base[at + i] = (uint8_t)next_byte(&seed);
			sum = sum * 31 + base[at + i];
		}
		must("done", put ? stargate_publish(c, n) : stargate_consume(c, n));
	}
	printf("%016llx\n", (unsigned long long)sum);
}

/* --- a stream of blocks, as in P1 5.3 --------------------------------------------------------- */

#define SLOTS	4

static uint64_t word(uint64_t i)
{
	i *= 0x9e3779b97f4a7c15ULL;
	return i ^ i >> 29;
}

/* Returns a sum of a block's words that depends on their order. */
static uint64_t sum_of(const uint64_t *block, uint64_t words, uint64_t sum)
{
	uint64_t i;

	for (i = 0; i < words; i++)
		sum = (sum << 1 | sum >> 63) ^ block[i];
	return sum;
}

static void stream(bool put, const char *name, const char *face, const char *file, uint64_t bytes,
		   uint64_t block)
{
	stargate_sem *room, *full, *wait, *post;
	uint64_t done, sum = 0, i, start = stargate_in(0), *buffer = malloc(block);
	char of[256];
	ssize_t n;
	int fd = open(file, O_RDWR);

	snprintf(of, sizeof(of), "%s.room", name);
	room = have(of, face, STARGATE_SEMAPHORE);
	snprintf(of, sizeof(of), "%s.full", name);
	full = have(of, face, STARGATE_SEMAPHORE);
	if (fd < 0 || !buffer)
		fail(file, errno);
	wait = put ? room : full;
	post = put ? full : room;
	for (done = 0; done < bytes; done += block) {
		off_t at = (off_t)(done / block % SLOTS * block);

		for (i = 0; put && i < block / 8; i++)
			buffer[i] = word(done / 8 + i);
		must("wait", stargate_sem_wait(wait, stargate_in(60000 * MS)));
		n = put ? pwrite(fd, buffer, block, at) : pread(fd, buffer, block, at);
		if (n != (ssize_t)block)
			fail(file, n < 0 ? errno : EIO);
		must("post", stargate_sem_post(post));
		if (buffer[0] != word(done / 8) ||
		    buffer[block / 8 - 1] != word((done + block) / 8 - 1))
			fail("the block has the content of another block", 0);
		sum = sum_of(buffer, block / 8, sum);
	}
	printf("%016llx %llu\n", (unsigned long long)sum,
	       (unsigned long long)((stargate_in(0) - start) / MS));
}

/* --- misuse ----------------------------------------------------------------------------------- */

static uint64_t *map_raw(const char *name, int *fd, uint32_t how)
{
	struct sg_ioc_sem_open o = { .how = how };

	*fd = open(VOLUME "/" SG_SEM_FILE, O_RDWR);
	strcpy(o.name, name);
	if (*fd < 0 || ioctl(*fd, SG_IOC_SEM_OPEN, &o))
		fail(name, errno);
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

/*
 * The mapping must not consist of bare page frames (VM_PFNMAP, "pf"). VFIO would let a device use
 * such frames without a pin, even after the kernel has given the object's page to another owner.
 */
static void is_mixed(void)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	char line[512];
	bool words = false, seen = false;

	while (maps && fgets(line, sizeof(line), maps)) {
		words |= strstr(line, "/semaphores") != NULL;
		if (!words || strncmp(line, "VmFlags:", 8) != 0)
			continue;
		if (strstr(line, " pf ") || !strstr(line, " mm "))
			fail(line, EFAULT);
		seen = true;
		break;
	}
	if (!seen)
		fail("/proc/self/smaps shows no mapping of the object", ENOENT);
	fclose(maps);
}

static void forge(const char *name)
{
	uint64_t seed = 5, i, k;
	stargate_sem *s = have(name, "kernel", STARGATE_ANY);
	struct stargate_stat st;
	uint64_t *page;
	int fd;

	page = map_raw(name, &fd, 0);
	if (page == MAP_FAILED)
		fail("mmap", errno);
	is_mixed();
	for (i = 0; i < 300; i++) {
		for (k = 0; k < 512; k++) {
			uint64_t b = next_byte(&seed), x = next_byte(&seed) << 56 |
				next_byte(&seed) << 40 | next_byte(&seed) << 20 | next_byte(&seed);

			__atomic_store_n(&page[k], b & 1 ? x : b & 2 ? ~0ULL : 0, __ATOMIC_SEQ_CST);
		}
		for (k = SG_SEM_OP_LOCK; k < SG_SEM_OPS; k++) {
			struct sg_ioc_sem_op op = { .op = (uint32_t)k, .until = stargate_in(MS),
				.value = i };

			ioctl(fd, SG_IOC_SEM_OP, &op);
		}
	}
	must("reset", stargate_reset(VOLUME, name));
	must("stat", stargate_fstat(s, &st));
	if (st.type == STARGATE_RWLOCK) {
		must("a write lock after the reset", stargate_write_lock(s, STARGATE_TRY));
		must("unlock", stargate_write_unlock(s));
		return;
	}
	must("a lock after the reset", stargate_mutex_lock(s, STARGATE_TRY));
	must("unlock", stargate_mutex_unlock(s));
}

static void deny(const char *name)
{
	int fd;

	if (map_raw(name, &fd, 0) != MAP_FAILED || errno != EACCES)
		fail("a guarded object can be mapped", errno);
}

static int ask(int fd, uint32_t what, uint64_t until)
{
	struct sg_ioc_sem_op op = { .op = what, .until = until };

	return ioctl(fd, SG_IOC_SEM_OP, &op) ? errno : 0;
}

static uint64_t who(int fd)
{
	uint64_t me;

	must("who", ioctl(fd, SG_IOC_SEM_ME, &me) ? errno : 0);
	return me;
}

static void *wait_by(void *fd)
{
	return (void *)(intptr_t)ask((int)(intptr_t)fd, SG_SEM_OP_LOCK, stargate_in(3000 * MS));
}

static void *unlock_by(void *fd)
{
	return (void *)(intptr_t)ask((int)(intptr_t)fd, SG_SEM_OP_UNLOCK, 0);
}

static void by_handle(const char *name)
{
	stargate_sem *s = have(name, "kernel", STARGATE_MUTEX);
	int a, b, looks, tries;
	uint64_t *page = map_raw(name, &a, SG_SEM_BY_HANDLE), mine;
	pthread_t t;
	void *err;

	munmap(map_raw(name, &b, SG_SEM_BY_HANDLE), 4096);	/* another descriptor */
	looks = open(VOLUME "/" SG_SEM_FILE, O_RDONLY);
	gives("the owner's word of a descriptor for reading", EBADF,
	      looks < 0 ? errno : ioctl(looks, SG_IOC_SEM_ME, &mine) ? errno : 0);
	close(looks);
	mine = who(a);
	if (mine == who(b) || mine != who(a))
		fail("the owner is not the descriptor", 0);
	must("lock by the descriptor", ask(a, SG_SEM_OP_LOCK, 0));
	if ((page[0] & SG_SEMW_OWNER) != mine)
		fail("the word names another owner", 0);
	gives("lock again by the same descriptor", EDEADLK, ask(a, SG_SEM_OP_LOCK, 0));
	gives("lock by another descriptor", EAGAIN, ask(b, SG_SEM_OP_LOCK, 0));
	gives("unlock by another descriptor", EPERM, ask(b, SG_SEM_OP_UNLOCK, 0));
	gives("unlock by the thread", EPERM, stargate_mutex_unlock(s));
	/*
	 * While one thread waits by a descriptor, no other thread can wait by the same descriptor.
	 * The others may query and release the lock.
	 */
	pthread_create(&t, NULL, wait_by, (void *)(intptr_t)b);
	for (tries = 0; tries < 200 && ask(b, SG_SEM_OP_LOCK, 0) != EBUSY; tries++)
		usleep(10000);
	gives("lock by a descriptor whose thread waits", EBUSY, ask(b, SG_SEM_OP_LOCK, 0));
	gives("unlock by the descriptor that waits", EPERM, ask(b, SG_SEM_OP_UNLOCK, 0));
	must("unlock by the owner", ask(a, SG_SEM_OP_UNLOCK, 0));
	pthread_join(t, &err);
	must("the waiter has the lock", (int)(intptr_t)err);
	/* The waiting thread has ended, but its descriptor still has the lock. */
	pthread_create(&t, NULL, unlock_by, (void *)(intptr_t)b);
	pthread_join(t, &err);
	must("unlock by another thread", (int)(intptr_t)err);
	if (__sync_val_compare_and_swap(page, 0, mine))
		fail("the mutex is not free after the unlock", 0);
	gives("lock by the thread, while a descriptor has the mutex", EAGAIN,
	      stargate_mutex_lock(s, STARGATE_TRY));
	munmap(page, 4096);
	close(a);
	gives("lock after the owner's close", EOWNERDEAD, stargate_mutex_lock(s, STARGATE_TRY));
	must("consistent", stargate_consistent(s));
	must("unlock", stargate_mutex_unlock(s));
	must("lock by a descriptor again", ask(b, SG_SEM_OP_LOCK, 0));
	close(b);
	gives("lock after the second owner's close", EOWNERDEAD,
	      stargate_mutex_lock(s, STARGATE_TRY));
	must("consistent", stargate_consistent(s));
	must("unlock", stargate_mutex_unlock(s));
}

static void late(const char *name, const char *face)
{
	stargate_sem *s = have(name, face, STARGATE_SEMAPHORE);
	uint64_t start = stargate_in(0), took;

	gives("an attempt without a wait", EAGAIN, stargate_sem_wait(s, STARGATE_TRY));
	gives("a wait of 200 ms", ETIMEDOUT, stargate_sem_wait(s, start + 200 * MS));
	took = stargate_in(0) - start;
	if (took < 200 * MS || took > 1500 * MS)
		fail("the wait did not take between 200 and 1500 ms", 0);
}

static volatile int rang;

static void ring_us(int sig)
{
	rang = sig;
}

static void with_signal(const char *name, const char *face, int flags, int expected)
{
	const struct itimerval timer = { .it_value = { .tv_usec = 50000 } };
	struct sigaction act = { .sa_handler = ring_us, .sa_flags = flags };
	stargate_sem *s = have(name, face, STARGATE_SEMAPHORE);

	rang = 0;
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	gives("a wait with a signal", expected, stargate_sem_wait(s, stargate_in(400 * MS)));
	if (!rang)
		fail("no signal arrived during the wait", 0);
	stargate_close(s);
}

int main(int argc, char **argv)
{
	const char *role = argc > 2 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
	const char *face = argc > 3 ? argv[3] : "user", *file = argc > 4 ? argv[4] : "";
	uint64_t n = argc > 5 ? strtoull(argv[5], NULL, 10) : ~0ULL;

	if (!strcmp(role, "count") || !strcmp(role, "forever"))
		count(name, face, file, n);
	else if (!strcmp(role, "words"))
		printf("%llu %llu\n", (unsigned long long)words_of(name)[0],
		       (unsigned long long)words_of(name)[1]);
	else if (!strncmp(role, "hold", 4))
		hold(role, name, face);
	else if (!strcmp(role, "thread"))
		thread(name, face);
	else if (!strcmp(role, "fork"))
		fork_with(name, face);
	else if (!strcmp(role, "exec"))
		exec_with(name, face);
	else if (!strcmp(role, "errors"))
		errors(name);
	else if (!strcmp(role, "write"))
		rewrite(name, face, file, n);
	else if (!strcmp(role, "read"))
		reread(name, face, file, n);
	else if (!strcmp(role, "meet"))
		meet(name, face, file, n, strtoull(argv[6], NULL, 10));
	else if (!strcmp(role, "produce") || !strcmp(role, "consume"))
		ring(!strcmp(role, "produce"), name, file, n);
	else if ((!strcmp(role, "put") || !strcmp(role, "get")) && argc > 6)
		stream(*role == 'p', name, face, file, n, strtoull(argv[6], NULL, 10));
	else if (!strcmp(role, "forge"))
		forge(name);
	else if (!strcmp(role, "deny"))
		deny(name);
	else if (!strcmp(role, "handle"))
		by_handle(name);
	else if (!strcmp(role, "late"))
		late(name, face);
	else if (!strcmp(role, "signal")) {
		with_signal(name, face, 0, EINTR);
		with_signal(name, face, SA_RESTART, ETIMEDOUT);
	} else {
		fprintf(stderr, "usage: sem ROLE NAME ... (sem.c lists the roles)\n");
		return 2;
	}
	return 0;
}
