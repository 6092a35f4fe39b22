// SPDX-License-Identifier: Apache-2.0
/*
 * Shared semaphores, and SIGKILL.
 *
 * Part 1, processes as systems: each has its own slot, like a virtual machine. A process is killed
 * at any point: with locks held, asleep, or while it creates and removes objects. The program
 * fences it, like a guard, and the other processes continue.
 *
 * Part 2, processes of one system: they have mapped the words, lock and unlock directly, and send
 * each operation that waits to their kernel over a socket. A kill closes the socket, like the files
 * of a process; the kernel then does the remaining work.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "sem_util.h"

#define SIZE	(32ULL << 20)
#define LOCKS	3
#define WORKERS	5
#define TOO_LONG	(20 * SEC)

static u8 *mem;

/*
 * The data that the locks protect, in shared memory. @inside: the worker that holds the lock
 * exclusively; a dead worker stays there until the next owner gets EOWNERDEAD.
 */
static struct shared {
	struct {
		u64 inside, a, b, told, readers[WORKERS + 1];
	} lock[LOCKS];
	u64 done[WORKERS + 1], state[WORKERS + 1], last[WORKERS + 1], stop;
} *sh;

/* --- the work of a worker --------------------------------------------------------------------- */

/**
 * struct hands - the locking functions of a worker, which acts as a system or as a process of a
 * system.
 */
struct hands {
	unsigned int n;
	struct rng rng;
	int (*lock)(struct hands *h, unsigned int i);
	void (*unlock)(struct hands *h, unsigned int i, bool consistent);
	int (*read)(struct hands *h, unsigned int i);
	void (*unread)(struct hands *h, unsigned int i);
	void (*other)(struct hands *h);
	/* for a system */
	struct sg_vol *v;
	struct sg_sem sem[LOCKS];
	struct sg_sem_caller *c;
	/* for a process */
	int fd;
	u64 me;
};

/* Locks 0 and 1 are mutexes, the last one is a reader-writer lock. */
static bool is_rw(unsigned int i)
{
	return i == LOCKS - 1;
}

static void hold(struct hands *h, unsigned int i, bool died)
{
	u64 was = __atomic_exchange_n(&sh->lock[i].inside, h->n + 1, __ATOMIC_SEQ_CST);
	unsigned int k;

	CHECK(!was || died);
	if (is_rw(i))
		for (k = 0; k <= WORKERS; k++)
			CHECK_EQ(__atomic_load_n(&sh->lock[i].readers[k], __ATOMIC_SEQ_CST), 0);
	if (died) {
		sg_add64(&sh->lock[i].told, 1);
		sg_store64(&sh->lock[i].b, sg_load64(&sh->lock[i].a));
	}
	CHECK_EQ(sg_load64(&sh->lock[i].a), sg_load64(&sh->lock[i].b));
	sg_store64(&sh->lock[i].a, sg_load64(&sh->lock[i].a) + 1);
	if (rng_chance(&h->rng, 30))
		sg_sleep_us((unsigned int)rng_below(&h->rng, 200));
	sg_store64(&sh->lock[i].b, sg_load64(&sh->lock[i].b) + 1);
	was = __atomic_exchange_n(&sh->lock[i].inside, 0, __ATOMIC_SEQ_CST);
	CHECK_EQ(was, h->n + 1);
}

/* After a writer's death the protected data may be half changed, so readers do not check it. */
static void hold_to_read(struct hands *h, unsigned int i, bool died)
{
	__atomic_store_n(&sh->lock[i].readers[h->n], 1, __ATOMIC_SEQ_CST);
	if (!died) {
		CHECK_EQ(__atomic_load_n(&sh->lock[i].inside, __ATOMIC_SEQ_CST), 0);
		CHECK_EQ(sg_load64(&sh->lock[i].a), sg_load64(&sh->lock[i].b));
	}
	if (rng_chance(&h->rng, 30))
		sg_sleep_us((unsigned int)rng_below(&h->rng, 200));
	__atomic_store_n(&sh->lock[i].readers[h->n], 0, __ATOMIC_SEQ_CST);
}

static void one_turn(struct hands *h)
{
	unsigned int i = (unsigned int)rng_below(&h->rng, LOCKS);
	int err;

	test_note("worker %u, lock %u", h->n, i);
	if (is_rw(i) && rng_chance(&h->rng, 60)) {
		err = h->read(h, i);
		CHECK(!err || err == -EOWNERDEAD);
		hold_to_read(h, i, err);
		h->unread(h, i);
	} else {
		err = h->lock(h, i);
		CHECK(!err || err == -EOWNERDEAD);
		hold(h, i, err);
		h->unlock(h, i, err);
	}
	if (h->other && rng_chance(&h->rng, 10))
		h->other(h);
	sg_add64(&sh->done[h->n], 1);
	sg_store64(&sh->last[h->n], sg_ticks());
}

static void work(struct hands *h)
{
	while (!sg_load64(&sh->stop))
		one_turn(h);
}

/* --- as a system ------------------------------------------------------------------------------ */

static int sys_lock(struct hands *h, unsigned int i)
{
	return is_rw(i) ? sg_sem_write_lock(h->v, &h->sem[i], h->c, SG_SEM_NEVER) :
			  sg_sem_lock(h->v, &h->sem[i], h->c, SG_SEM_NEVER);
}

static void sys_unlock(struct hands *h, unsigned int i, bool consistent)
{
	if (consistent)
		CHECK_OK(sg_sem_consistent(h->v, &h->sem[i], h->c));
	if (is_rw(i))
		CHECK_OK(sg_sem_write_unlock(h->v, &h->sem[i], h->c));
	else
		CHECK_OK(sg_sem_unlock(h->v, &h->sem[i], h->c));
}

static int sys_read(struct hands *h, unsigned int i)
{
	return sg_sem_read_lock(h->v, &h->sem[i], h->c, SG_SEM_NEVER);
}

static void sys_unread(struct hands *h, unsigned int i)
{
	CHECK_OK(sg_sem_read_unlock(h->v, &h->sem[i]));
}

/* Creates and removes objects. An object's life ends with its last user, which may be killed. */
static void sys_other(struct hands *h)
{
	unsigned int n = (unsigned int)rng_below(&h->rng, 12);
	struct sg_sem_new new = new_of(1 + n % 6, 0, 1);
	struct sg_sem sem;
	char name[8];
	int err;

	sprintf(name, "o%u", n);
	new.life = n & 1;
	err = try_create(h->v, name, new, rng_chance(&h->rng, 50), &sem);
	CHECK(!err || err == -EEXIST);
	if (rng_chance(&h->rng, 50)) {
		int rm = sem_rm(h->v, name);

		CHECK(!rm || rm == -ENOENT);
	}
	if (!err)
		sg_sem_close(h->v, &sem);
}

static const char *const names[LOCKS] = { "first", "second", "rw" };

static void be_system(void *arg)
{
	unsigned int n = (unsigned int)(uintptr_t)arg, i;
	struct hands h = { .n = n, .rng = { sg_ticks() }, .lock = sys_lock, .unlock = sys_unlock,
		.read = sys_read, .unread = sys_unread, .other = sys_other };
	struct listener ear;
	struct tsys s;

	tsys_join(&s, mem, SIZE, n + 1);
	tsys_maintain(&s);
	listen_begin(&ear, &s.v);
	h.v = &s.v;
	h.c = caller_of(&s.v, n);
	sg_store64(&sh->state[n], SG_LOCK_WORD(s.v.slot, s.v.incarnation));
	for (i = 0; i < LOCKS; i++)
		h.sem[i] = sem_of(&s.v, names[i]);
	work(&h);
	caller_end(&s.v, h.c);
	for (i = 0; i < LOCKS; i++)
		sg_sem_close(&s.v, &h.sem[i]);
	listen_end(&ear);
	tsys_leave(&s);
}

static void make_locks(struct sg_vol *v, struct sg_sem sem[LOCKS])
{
	unsigned int i;

	for (i = 0; i < LOCKS; i++)
		sem[i] = sem_make(v, names[i], is_rw(i) ? SG_SEM_RWLOCK : SG_SEM_MUTEX,
				  SG_SEM_MAPPED, 0);
}

/* Checks that all live workers make progress after any death. */
static void all_go_on(unsigned int but)
{
	u64 now = sg_ticks();
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		/* loads the time once, as a second load could return a time after @now */
		u64 last = sg_load64(&sh->last[i]);

		if (i != but && last && now > last)
			CHECK(now - last < TOO_LONG);
	}
}

static void begin(void)
{
	mem = tsys_volume(SIZE);
	sh = tshare(sizeof(*sh));
}

static void say(const char *what, u64 kills)
{
	u64 sum = 0, told = 0;
	unsigned int i;

	for (i = 0; i < WORKERS; i++)
		sum += sh->done[i];
	for (i = 0; i < LOCKS; i++)
		told += sh->lock[i].told;
	printf("%s: %" PRIu64 " killed, %" PRIu64 " turns, %" PRIu64 " times EOWNERDEAD\n",
	       what, kills, sum, told);
	CHECK(sum > kills);
	CHECK(told);
}

/*
 * Waits until a worker has begun. No thread maintains the system: processes are forked without
 * threads.
 */
static void await(struct sg_vol *v, unsigned int k)
{
	u64 start = sg_ticks();

	while (!sg_load64(&sh->state[k])) {
		CHECK(sg_ticks() - start < TOO_LONG);
		sg_maintain(v);
		sg_sleep_us(200);
	}
}

static void systems(void)
{
	u64 kills = test_amount(40, 500, 10000), i;
	struct rng rng = { test_seed() };
	struct sg_sem sem[LOCKS];
	struct sg_sem_caller *c;
	pid_t pid[WORKERS];
	struct tsys guard;
	unsigned int k;

	begin();
	tsys_join(&guard, mem, SIZE, 50);
	make_locks(&guard.v, sem);
	for (k = 0; k < WORKERS; k++)
		pid[k] = tproc(be_system, (void *)(uintptr_t)k);
	for (i = 0; i < kills; i++) {
		u64 word;

		k = (unsigned int)rng_below(&rng, WORKERS);
		await(&guard.v, k);
		sg_sleep_us((unsigned int)rng_below(&rng, 6000));
		tproc_kill(pid[k]);
		word = sg_load64(&sh->state[k]);
		CHECK_OK(sg_fence_slot(&guard.v, SG_LOCK_SLOT(word), SG_LOCK_INC(word)));
		sg_store64(&sh->state[k], 0);
		sg_store64(&sh->last[k], 0);
		/* the dead system holds no read lock any more */
		for (word = 0; word < LOCKS; word++)
			sg_store64(&sh->lock[word].readers[k], 0);
		all_go_on(k);
		pid[k] = tproc(be_system, (void *)(uintptr_t)k);
	}
	sg_store64(&sh->stop, 1);
	for (k = 0; k < WORKERS; k++) {
		siginfo_t info = { .si_pid = 0 };

		while (!waitid(P_PID, (id_t)pid[k], &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid) {
			sg_maintain(&guard.v);
			sg_sleep_us(500);
		}
		tproc_end(pid[k]);
	}
	/* each lock is free */
	c = caller_of(&guard.v, 1);
	for (k = 0; k < LOCKS; k++) {
		int err = is_rw(k) ? sg_sem_write_lock(&guard.v, &sem[k], c, in_ms(2000)) :
				     sg_sem_lock(&guard.v, &sem[k], c, in_ms(2000));

		CHECK(!err || err == -EOWNERDEAD);
		CHECK_OK(is_rw(k) ? sg_sem_write_unlock(&guard.v, &sem[k], c) :
				    sg_sem_unlock(&guard.v, &sem[k], c));
		CHECK_EQ(sg_load64(&sg_sem_record(&guard.v, &sem[k])->waits.waiters), 0);
	}
	caller_end(&guard.v, c);
	say("systems", kills);
	tsys_leave(&guard);
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

/* --- as a process: the kernel's part ---------------------------------------------------------- */

enum call { ENTER, LOCK, UNLOCK, CONSISTENT, READ, UNREAD, WRITE, UNWRITE, DRAIN, RING };

struct request {
	u32 call, i;
};

struct reply {
	s64 err;
	u64 me, words[LOCKS], cell[LOCKS];
};

/**
 * struct file - the kernel's state of a process, like an open file. One thread serves the requests
 * of the process; another thread detects its death.
 */
struct file {
	struct sg_vol *v;
	int fd;
	u32 n;
	struct sg_sem sem[LOCKS];
	struct sg_sem_caller c;
	struct request q;
	struct sg_bell asked;
	bool has, over;
	pthread_t thread;
};

static int answer(struct file *f, const struct request *q)
{
	struct sg_sem *s = &f->sem[q->i % LOCKS];

	switch (q->call) {
	case LOCK:
		return sg_sem_lock(f->v, s, &f->c, SG_SEM_NEVER);
	case UNLOCK:
		return sg_sem_unlock(f->v, s, &f->c);
	case CONSISTENT:
		return sg_sem_consistent(f->v, s, &f->c);
	case READ:
		return sg_sem_read_lock(f->v, s, &f->c, SG_SEM_NEVER);
	case UNREAD:
		return sg_sem_read_unlock(f->v, s);
	case WRITE:
		return sg_sem_write_lock(f->v, s, &f->c, SG_SEM_NEVER);
	case UNWRITE:
		return sg_sem_write_unlock(f->v, s, &f->c);
	case DRAIN:
		return sg_sem_drain(f->v, s, &f->c, SG_SEM_NEVER);
	case RING:
		sg_sem_ring(f->v, s);
		return 0;
	default:
		return 0;
	}
}

static void *serve(void *arg)
{
	struct file *f = arg;
	struct reply r;
	unsigned int i;

	for (;;) {
		sg_bell_wait(&f->asked, SEC);
		if (__atomic_load_n(&f->over, __ATOMIC_ACQUIRE))
			break;
		if (!__atomic_exchange_n(&f->has, false, __ATOMIC_ACQUIRE))
			continue;
		memset(&r, 0, sizeof(r));
		r.err = answer(f, &f->q);
		r.me = f->c.me;
		for (i = 0; i < LOCKS; i++) {
			r.words[i] = f->sem[i].words;
			r.cell[i] = f->sem[i].cell;
		}
		if (send(f->fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
			continue;	/* the process is dead, which the other thread detects */
	}
	return NULL;
}

/* Serves the process while it lives, and then does the work of its file's release(). */
static void *attend(void *arg)
{
	struct file *f = arg;
	pthread_t worker;
	unsigned int i;

	sg_bell_init(&f->asked);
	CHECK_OK(sg_sem_enter(f->v, 1, f->n, "process", &f->c));
	for (i = 0; i < LOCKS; i++)
		CHECK_OK(try_open(f->v, names[i], 0, true, &f->sem[i]));
	CHECK_OK(pthread_create(&worker, NULL, serve, f));
	for (;;) {
		struct request q;

		if (recv(f->fd, &q, sizeof(q), MSG_WAITALL) != sizeof(q))
			break;
		f->q = q;
		__atomic_store_n(&f->has, true, __ATOMIC_RELEASE);
		sg_bell_ring(&f->asked);
	}
	__atomic_store_n(&f->over, true, __ATOMIC_RELEASE);
	sg_sem_cancel(&f->c);
	sg_bell_ring(&f->asked);
	CHECK_OK(pthread_join(worker, NULL));
	sg_sem_exit(f->v, &f->c);
	for (i = 0; i < LOCKS; i++) {
		/* the dead process holds no read lock any more */
		sg_store64(&sh->lock[i].readers[f->n], 0);
		sg_sem_close(f->v, &f->sem[i]);
	}
	sg_bell_end(&f->asked);
	close(f->fd);
	return NULL;
}

/* --- ... and the process's own part ----------------------------------------------------------- */

static struct reply ask(struct hands *h, enum call call, unsigned int i)
{
	struct request q = { call, i };
	struct reply r;

	if (send(h->fd, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q) ||
	    recv(h->fd, &r, sizeof(r), MSG_WAITALL) != sizeof(r))
		_exit(0);	/* the kernel's thread has ended */
	return r;
}

static u64 *word_of(struct hands *h, unsigned int i)
{
	return (u64 *)(mem + h->sem[i].words);
}

static int proc_lock(struct hands *h, unsigned int i)
{
	if (!sg_semw_take(word_of(h, i), h->me))
		return (int)ask(h, is_rw(i) ? WRITE : LOCK, i).err;
	if (!is_rw(i) || sg_semw_no_readers(word_of(h, i)))
		return 0;
	return (int)ask(h, DRAIN, i).err;
}

static void proc_unlock(struct hands *h, unsigned int i, bool consistent)
{
	if (consistent)
		CHECK_OK(ask(h, CONSISTENT, i).err);
	if (!sg_semw_give(word_of(h, i), h->me))
		CHECK_OK(ask(h, is_rw(i) ? UNWRITE : UNLOCK, i).err);
}

static int proc_read(struct hands *h, unsigned int i)
{
	if (sg_semw_read(word_of(h, i), word_of(h, i) + h->sem[i].cell))
		return 0;
	return (int)ask(h, READ, i).err;
}

static void proc_unread(struct hands *h, unsigned int i)
{
	if (!sg_semw_unread(word_of(h, i), word_of(h, i) + h->sem[i].cell))
		ask(h, RING, i);
}

static void be_process(struct hands *h)
{
	struct reply r = ask(h, ENTER, 0);
	unsigned int i;

	h->me = r.me;
	for (i = 0; i < LOCKS; i++) {
		h->sem[i].words = r.words[i];
		h->sem[i].cell = (unsigned int)r.cell[i];
		CHECK(!is_rw(i) || h->sem[i].cell >= SG_SEM_CELL_FIRST);
	}
	sg_store64(&sh->state[h->n], 1);
	work(h);
}

static struct file file_of[WORKERS];

static pid_t start_process(struct sg_vol *v, unsigned int n)
{
	struct hands h = { .n = n, .rng = { sg_ticks() }, .lock = proc_lock, .unlock = proc_unlock,
		.read = proc_read, .unread = proc_unread };
	int fd[2];
	pid_t pid;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	pid = test_fork();
	if (!pid) {
		close(fd[0]);
		/* only its kernel has the other end */
		for (unsigned int i = 0; i < WORKERS; i++)
			if (file_of[i].v)
				close(file_of[i].fd);
		h.fd = fd[1];
		be_process(&h);
		_exit(0);
	}
	close(fd[1]);
	file_of[n] = (struct file){ .v = v, .fd = fd[0], .n = n };
	CHECK_OK(pthread_create(&file_of[n].thread, NULL, attend, &file_of[n]));
	return pid;
}

#define KERNELS	2

static void processes(void)
{
	u64 kills = test_amount(40, 800, 20000), i;
	struct rng rng = { test_seed() };
	struct listener ear[KERNELS];
	struct tsys kernel[KERNELS];
	struct sg_sem sem[LOCKS];
	pid_t pid[WORKERS];
	unsigned int k;

	begin();
	for (k = 0; k < KERNELS; k++) {
		tsys_join(&kernel[k], mem, SIZE, k + 1);
		tsys_maintain(&kernel[k]);
		listen_begin(&ear[k], &kernel[k].v);
	}
	make_locks(&kernel[0].v, sem);
	for (k = 0; k < WORKERS; k++)
		pid[k] = start_process(&kernel[k % KERNELS].v, k);
	for (i = 0; i < kills; i++) {
		k = (unsigned int)rng_below(&rng, WORKERS);
		tawait(&sh->state[k], 1);
		sg_sleep_us((unsigned int)rng_below(&rng, 4000));
		tproc_kill(pid[k]);
		sg_store64(&sh->state[k], 0);
		sg_store64(&sh->last[k], 0);
		CHECK_OK(pthread_join(file_of[k].thread, NULL));
		all_go_on(k);
		pid[k] = start_process(&kernel[k % KERNELS].v, k);
	}
	sg_store64(&sh->stop, 1);
	for (k = 0; k < WORKERS; k++) {
		tproc_end(pid[k]);
		CHECK_OK(pthread_join(file_of[k].thread, NULL));
	}
	for (k = 0; k < LOCKS; k++) {
		CHECK_EQ(sg_load64(&sg_sem_record(&kernel[0].v, &sem[k])->waits.waiters), 0);
		CHECK_EQ(stat_of(&kernel[0].v, names[k]).users, 1ULL << kernel[0].v.slot);
		sg_sem_close(&kernel[0].v, &sem[k]);
	}
	say("processes", kills);
	for (k = 0; k < KERNELS; k++) {
		listen_end(&ear[k]);
		tsys_leave(&kernel[k]);
	}
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
}

#ifdef __SANITIZE_THREAD__
#define TSAN	true	/* TSan allows no threads in a child of a process with threads */
#else
#define TSAN	false
#endif

int main(void)
{
	systems();
	if (!TSAN)
		processes();
	return test_done();
}
