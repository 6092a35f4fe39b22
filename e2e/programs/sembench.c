// SPDX-License-Identifier: Apache-2.0
/*
 * Measures the cost of taking and releasing a lock: shared semaphores compared with other locks.
 *
 *   sembench cost KIND PATH N
 *	takes and releases a free lock N times: prints "NS", the time of one cycle
 *   sembench rate KIND PATH MS PROCESSES BARRIER
 *	PROCESSES processes take and release one lock for MS milliseconds: prints "TIMES NS
 *	PROCESSOR-NS", the cycles of all processes, the real time, and their processor time
 *   sembench turn KIND PATH WHO COUNT BARRIER
 *	two systems (WHO 0 and 1) follow each other around a ring of three locks: prints "COUNT
 *	MEDIAN P99 LONGEST" in ns, half of the time between two turns of this system, because the
 *	other system has one turn in between
 *   sembench asleep KIND PATH MS
 *	one process has the lock, and another process waits for it: prints "NS", the processor time
 *	of the whole system during MS milliseconds; with the KIND `nothing`, no process waits
 *   sembench serve PORT
 *	serves locks by TCP
 *
 * KIND is one of these locks:
 *   user-mutex, user-semaphore, user-read, user-write, kernel-mutex, kernel-semaphore: objects of
 *	/mnt/sg, whose names begin with the last part of PATH
 *   flock, posix: the files PATH.0, PATH.1, ...
 *   tcp: locks of the server at PATH, which is ADDRESS:PORT
 *   spin, futex, pthread-mutex, pthread-robust, sem_t: words in the file PATH
 *   sysv, sysv-undo: semaphores of System V
 * All processes begin together at the object BARRIER of /mnt/sg. With "-", they do not wait.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "stargate.h"

#define VOLUME	"/mnt/sg"
#define LOCKS	3
#define SECOND	1000000000ull
/* The time limit of all turns. If the turns are slow, the program makes fewer of them. */
#define BUDGET	(10 * SECOND)

__attribute__((noreturn)) static void die(const char *what, int err)
{
	fprintf(stderr, "sembench: %s: %s\n", what, err ? stargate_why(err) : "?");
	exit(1);
}

static void must(const char *what, int err)
{
	if (err)
		die(what, err);
}

static uint64_t clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t now(void)
{
	return clock_of(CLOCK_MONOTONIC);
}

/* --- locks ---------------------------------------------------------------------------------- */

/*
 * Words in a file that all processes map, in one or several systems. No two locks share a cache
 * line.
 */
struct words {
	uint32_t spin, futex, made;
	pthread_mutex_t mutex, robust;
	sem_t sem;
} __attribute__((aligned(512)));

struct lock {
	stargate_sem *s;
	struct words *w;
	int fd, id;
	unsigned int i;
};

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void open_object(struct lock *l, const char *path, enum stargate_type type, unsigned int how)
{
	const struct stargate_new what = { .type = type, .mode = 0600, .initial = 1 };
	char name[256];

	snprintf(name, sizeof(name), "%s-%d-%u", last_part(path), (int)type, l->i);
	must(name, stargate_create(&l->s, VOLUME, name, &what, how));
}

static void open_user_mutex(struct lock *l, const char *p) { open_object(l, p, STARGATE_MUTEX, 0); }
static void open_kernel_mutex(struct lock *l, const char *p)
{
	open_object(l, p, STARGATE_MUTEX, STARGATE_BY_KERNEL);
}
static void open_user_sem(struct lock *l, const char *p)
{
	open_object(l, p, STARGATE_SEMAPHORE, 0);
}
static void open_kernel_sem(struct lock *l, const char *p)
{
	open_object(l, p, STARGATE_SEMAPHORE, STARGATE_BY_KERNEL);
}
static void open_rwlock(struct lock *l, const char *p) { open_object(l, p, STARGATE_RWLOCK, 0); }

static int take_mutex(struct lock *l) { return stargate_mutex_lock(l->s, STARGATE_FOREVER); }
static int give_mutex(struct lock *l) { return stargate_mutex_unlock(l->s); }
static int take_sem(struct lock *l) { return stargate_sem_wait(l->s, STARGATE_FOREVER); }
static int give_sem(struct lock *l) { return stargate_sem_post(l->s); }
static int take_read(struct lock *l) { return stargate_read_lock(l->s, STARGATE_FOREVER); }
static int give_read(struct lock *l) { return stargate_read_unlock(l->s); }
static int take_write(struct lock *l) { return stargate_write_lock(l->s, STARGATE_FOREVER); }
static int give_write(struct lock *l) { return stargate_write_unlock(l->s); }

/* --- files --- */

static int by_errno(int ret)
{
	return ret ? errno : 0;
}

static void open_file(struct lock *l, const char *path)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s.%u", path, l->i);
	l->fd = open(name, O_RDWR | O_CREAT, 0600);
	if (l->fd < 0)
		die(name, errno);
}

static int posix(struct lock *l, short type)
{
	struct flock whole = { .l_type = type };

	return by_errno(fcntl(l->fd, F_SETLKW, &whole));
}

static int take_flock(struct lock *l) { return by_errno(flock(l->fd, LOCK_EX)); }
static int give_flock(struct lock *l) { return by_errno(flock(l->fd, LOCK_UN)); }
static int take_posix(struct lock *l) { return posix(l, F_WRLCK); }
static int give_posix(struct lock *l) { return posix(l, F_UNLCK); }

/* --- words in a file --- */

static void make_words(struct words *w)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&w->mutex, &a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&w->robust, &a);
	sem_init(&w->sem, 1, 1);
}

static void open_words(struct lock *l, const char *path)
{
	struct stargate_map m;
	struct words *w;
	uint32_t none = 0;

	must(path, stargate_map_file(&m, path, O_RDWR | O_CREAT, 0600, LOCKS * sizeof(*l->w)));
	w = l->w = (struct words *)m.base + l->i;
	if (__atomic_compare_exchange_n(&w->made, &none, 1, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST)) {
		make_words(w);
		__atomic_store_n(&w->made, 2, __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&w->made, __ATOMIC_SEQ_CST) != 2)
		usleep(1000);
}

/* A spin lock works between systems that share nothing but memory, for example by ivshmem. */
static int take_spin(struct lock *l)
{
	while (__atomic_exchange_n(&l->w->spin, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&l->w->spin, __ATOMIC_RELAXED))
			__builtin_ia32_pause();
	return 0;
}

static int give_spin(struct lock *l)
{
	__atomic_store_n(&l->w->spin, 0, __ATOMIC_RELEASE);
	return 0;
}

/* The futex's word is 0 if the lock is free, 1 if taken, and 2 if taken and threads may sleep. */
static int take_futex(struct lock *l)
{
	uint32_t *w = &l->w->futex, free = 0;

	if (__atomic_compare_exchange_n(w, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	while (__atomic_exchange_n(w, 2, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, w, FUTEX_WAIT, 2, NULL, NULL, 0);
	return 0;
}

static int give_futex(struct lock *l)
{
	if (__atomic_exchange_n(&l->w->futex, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, &l->w->futex, FUTEX_WAKE, 1, NULL, NULL, 0);
	return 0;
}

static int take_pthread(struct lock *l) { return pthread_mutex_lock(&l->w->mutex); }
static int give_pthread(struct lock *l) { return pthread_mutex_unlock(&l->w->mutex); }
static int take_robust(struct lock *l) { return pthread_mutex_lock(&l->w->robust); }
static int give_robust(struct lock *l) { return pthread_mutex_unlock(&l->w->robust); }
static int take_sem_t(struct lock *l) { return by_errno(sem_wait(&l->w->sem)); }
static int give_sem_t(struct lock *l) { return by_errno(sem_post(&l->w->sem)); }

/* --- System V --- */

static void open_sysv(struct lock *l, const char *path)
{
	key_t key = 0x53540000;

	while (*path)
		key = (key & ~0xffff) | ((key * 31 + *path++) & 0xffff);
	l->id = semget(key + (key_t)l->i, 1, IPC_CREAT | IPC_EXCL | 0600);
	if (l->id >= 0) {
		must("semctl", by_errno(semctl(l->id, 0, SETVAL, 1)));
		return;
	}
	l->id = semget(key + (key_t)l->i, 1, 0600);
	if (l->id < 0)
		die("semget", errno);
}

static int step(struct lock *l, short by, short flags)
{
	struct sembuf op = { .sem_op = by, .sem_flg = flags };

	return by_errno(semop(l->id, &op, 1));
}

static int take_sysv(struct lock *l) { return step(l, -1, 0); }
static int give_sysv(struct lock *l) { return step(l, 1, 0); }
static int take_sysv_undo(struct lock *l) { return step(l, -1, SEM_UNDO); }
static int give_sysv_undo(struct lock *l) { return step(l, 1, SEM_UNDO); }

/* --- a server of locks --- */

/*
 * The client sends a byte that names a lock to take or to release. The server replies with a byte
 * when the lock is taken.
 */
static void open_tcp(struct lock *l, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	char host[64];
	int one = 1, port, tries;

	if (sscanf(address, "%63[^:]:%d", host, &port) != 2)
		die(address, EINVAL);
	to.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, host, &to.sin_addr);
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (tries = 0; connect(l->fd, (struct sockaddr *)&to, sizeof(to)); tries++) {
		if (tries == 100)
			die(address, errno);
		usleep(50000);
	}
	setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static int say(int fd, char byte)
{
	return write(fd, &byte, 1) == 1 ? 0 : EIO;
}

static int take_tcp(struct lock *l)
{
	char got;

	return say(l->fd, (char)(l->i * 2)) || read(l->fd, &got, 1) != 1 ? EIO : 0;
}

static int give_tcp(struct lock *l)
{
	return say(l->fd, (char)(l->i * 2 + 1));
}

#define CLIENTS	64

static struct {
	struct pollfd poll[CLIENTS + 1];
	int owner[LOCKS];		/* the owner's descriptor, or 0 */
	int queue[LOCKS][CLIENTS];
	unsigned int queued[LOCKS], clients;
} server;

static void next_owner(unsigned int lock)
{
	int *queue = server.queue[lock];

	if (server.owner[lock] || !server.queued[lock])
		return;
	server.owner[lock] = queue[0];
	memmove(queue, queue + 1, --server.queued[lock] * sizeof(*queue));
	say(server.owner[lock], 0);
}

static void forget(unsigned int client)
{
	int fd = server.poll[client].fd;
	unsigned int lock, i;

	for (lock = 0; lock < LOCKS; lock++) {
		for (i = 0; i < server.queued[lock]; i++)
			if (server.queue[lock][i] == fd)
				server.queue[lock][i--] = server.queue[lock][--server.queued[lock]];
		if (server.owner[lock] == fd)
			server.owner[lock] = 0;
		next_owner(lock);
	}
	close(fd);
	server.poll[client] = server.poll[server.clients--];
}

static void hear(unsigned int client)
{
	int fd = server.poll[client].fd;
	unsigned int lock;
	char byte;

	if (read(fd, &byte, 1) != 1) {
		forget(client);
		return;
	}
	lock = (unsigned char)byte / 2 % LOCKS;
	if (byte & 1)
		server.owner[lock] = 0;
	else
		server.queue[lock][server.queued[lock]++] = fd;
	next_owner(lock);
}

static void serve(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	unsigned int i;

	signal(SIGPIPE, SIG_IGN);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, CLIENTS))
		die("serve", errno);
	server.poll[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	while (poll(server.poll, server.clients + 1, -1) > 0) {
		for (i = server.clients; i; i--)
			if (server.poll[i].revents)
				hear(i);
		if (server.poll[0].revents && server.clients < CLIENTS) {
			int new = accept(fd, NULL, NULL);

			setsockopt(new, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			server.poll[++server.clients].fd = new;
			server.poll[server.clients].events = POLLIN;
		}
	}
}

/* --- kinds ---------------------------------------------------------------------------------- */

static void open_nothing(struct lock *l, const char *path)
{
	(void)l;
	(void)path;
}
static int nothing(struct lock *l)
{
	(void)l;
	return 0;
}

static const struct kind {
	const char *name;
	void (*open)(struct lock *l, const char *path);
	int (*take)(struct lock *l), (*give)(struct lock *l);
} kinds[] = {
	{ "nothing", open_nothing, nothing, nothing },
	{ "user-mutex", open_user_mutex, take_mutex, give_mutex },
	{ "kernel-mutex", open_kernel_mutex, take_mutex, give_mutex },
	{ "user-semaphore", open_user_sem, take_sem, give_sem },
	{ "kernel-semaphore", open_kernel_sem, take_sem, give_sem },
	{ "user-read", open_rwlock, take_read, give_read },
	{ "user-write", open_rwlock, take_write, give_write },
	{ "flock", open_file, take_flock, give_flock },
	{ "posix", open_file, take_posix, give_posix },
	{ "tcp", open_tcp, take_tcp, give_tcp },
	{ "spin", open_words, take_spin, give_spin },
	{ "futex", open_words, take_futex, give_futex },
	{ "pthread-mutex", open_words, take_pthread, give_pthread },
	{ "pthread-robust", open_words, take_robust, give_robust },
	{ "sem_t", open_words, take_sem_t, give_sem_t },
	{ "sysv", open_sysv, take_sysv, give_sysv },
	{ "sysv-undo", open_sysv, take_sysv_undo, give_sysv_undo },
};

static const struct kind *kind;

static void prepare(struct lock *l, unsigned int i, const char *path)
{
	*l = (struct lock){ .i = i };
	kind->open(l, path);
}

static void begin_together(const char *barrier)
{
	stargate_sem *s;

	if (!strcmp(barrier, "-"))
		return;
	must(barrier, stargate_open(&s, VOLUME, barrier, STARGATE_BARRIER, 0));
	must(barrier, stargate_barrier_wait(s, stargate_in(60 * SECOND), NULL));
	stargate_close(s);
}

/* --- measurements --------------------------------------------------------------------------- */

static uint64_t loop(int (*take)(struct lock *), int (*give)(struct lock *), struct lock *l,
		     uint64_t n)
{
	uint64_t start = now(), i;

	for (i = 0; i < n; i++)
		if (take(l) || give(l))
			die("the lock", EIO);
	return now() - start;
}

static void cost(const char *path, uint64_t n)
{
	struct lock l;
	uint64_t took, empty;

	prepare(&l, 0, path);
	loop(kind->take, kind->give, &l, n / 10 + 1);
	took = loop(kind->take, kind->give, &l, n);
	empty = loop(nothing, nothing, &l, n);
	printf("%llu\n", (unsigned long long)((took - empty) / n));
}

struct shared {
	uint64_t ready, go, times;
};

static void contend(struct shared *sh, const char *path, uint64_t ns)
{
	uint64_t end, times = 0;
	struct lock l;

	prepare(&l, 0, path);
	__atomic_add_fetch(&sh->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&sh->go, __ATOMIC_SEQ_CST))
		usleep(200);
	for (end = now() + ns; now() < end; times++) {
		must("take", kind->take(&l));
		must("give", kind->give(&l));
	}
	__atomic_add_fetch(&sh->times, times, __ATOMIC_SEQ_CST);
	exit(0);
}

static void rate(const char *path, uint64_t ms, unsigned int processes, const char *barrier)
{
	struct shared *sh = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				 -1, 0);
	struct rusage u;
	unsigned int i;
	uint64_t start;
	int status;

	for (i = 0; i < processes; i++)
		if (!fork())
			contend(sh, path, ms * 1000000);
	while (__atomic_load_n(&sh->ready, __ATOMIC_SEQ_CST) < processes)
		if (waitpid(-1, &status, WNOHANG) > 0)
			exit(1);
		else
			usleep(1000);
	begin_together(barrier);
	start = now();
	__atomic_store_n(&sh->go, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < processes; i++)
		if (wait(&status) < 0 || status)
			exit(1);
	start = now() - start;
	getrusage(RUSAGE_CHILDREN, &u);
	printf("%llu %llu %llu\n", (unsigned long long)sh->times, (unsigned long long)start,
	       (unsigned long long)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SECOND +
	       (unsigned long long)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Each process takes the next lock before it releases the previous one. So the other process waits
 * for it, and cannot overtake it.
 */
static void turn(const char *path, unsigned int who, uint64_t count, const char *barrier)
{
	uint64_t *took = calloc(count + 1, sizeof(*took)), start, last, n = 0, i;
	struct lock l[LOCKS];

	for (i = 0; i < LOCKS; i++)
		prepare(&l[i], (unsigned int)i, path);
	must("first", kind->take(&l[who]));
	begin_together(barrier);
	start = last = now();
	for (i = who; n < count && (last - start < BUDGET || n < 3); i++) {
		must("take", kind->take(&l[(i + 1) % LOCKS]));
		must("give", kind->give(&l[i % LOCKS]));
		took[n] = (now() - last) / 2;
		last += 2 * took[n++];
	}
	must("give", kind->give(&l[i % LOCKS]));
	qsort(took, n, sizeof(*took), ascending);
	printf("%llu %llu %llu %llu\n", (unsigned long long)n, (unsigned long long)took[n / 2],
	       (unsigned long long)took[n * 99 / 100], (unsigned long long)took[n - 1]);
}

/*
 * Returns the time since boot in which processors were idle or waited for I/O, added up over all
 * processors.
 */
static uint64_t idle_ns(void)
{
	unsigned long long idle = 0, waiting = 0;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %*u %*u %*u %llu %llu", &idle, &waiting) != 2)
		die("/proc/stat", EIO);
	fclose(f);
	return (idle + waiting) * (SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void asleep(const char *path, uint64_t ms)
{
	uint64_t all = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), start, idle, took, was_idle;
	struct lock l;
	pid_t child;

	prepare(&l, 0, path);
	must("take", kind->take(&l));
	child = fork();
	if (!child) {
		prepare(&l, 0, path);
		kind->take(&l);
		pause();
	}
	usleep(300000);
	start = now();
	idle = idle_ns();
	usleep((useconds_t)ms * 1000);
	was_idle = idle_ns() - idle;
	took = (now() - start) * all;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	must("give", kind->give(&l));
	printf("%llu\n", (unsigned long long)(took > was_idle ? took - was_idle : 0));
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 3 && !strcmp(argv[1], "serve")) {
		serve(atoi(argv[2]));
		return 1;
	}
	for (i = 0; argc > 4 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, argv[2]))
			kind = &kinds[i];
	if (kind && argc == 5 && !strcmp(argv[1], "cost"))
		cost(argv[3], strtoull(argv[4], NULL, 10));
	else if (kind && argc == 7 && !strcmp(argv[1], "rate"))
		rate(argv[3], strtoull(argv[4], NULL, 10), (unsigned int)atoi(argv[5]), argv[6]);
	else if (kind && argc == 7 && !strcmp(argv[1], "turn"))
		turn(argv[3], (unsigned int)atoi(argv[4]), strtoull(argv[5], NULL, 10), argv[6]);
	else if (kind && argc == 5 && !strcmp(argv[1], "asleep"))
		asleep(argv[3], strtoull(argv[4], NULL, 10));
	else {
		fprintf(stderr, "usage: sembench cost|rate|turn|asleep|serve ...: see sembench.c\n");
		return 2;
	}
	return 0;
}
