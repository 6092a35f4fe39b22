// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of the kernel, and the threads that handle them.
 *
 * At least one thread reads /dev/fuse at any time, so that an INTERRUPT always reaches the server.
 * A thread that takes a call, and leaves no reader behind, starts another thread. If the maximum
 * number of threads runs, because all wait for another system, the thread queues the call and reads
 * the next one.
 *
 * Calls are in memory that the next server inherits. If this server is killed, the next server
 * handles the calls that this server had begun. Their callers only wait a moment longer. A killed
 * server may already have made the change of a call. Most calls can be done twice. For the other
 * calls, the handler checks whether the change was made:
 *
 *   a new name exists           the file has the time of this very call, to the nanosecond
 *   a name to remove is gone    or it leads to another file than the one that the call noted
 *   an attribute is as wanted   the inode has the time of this very call
 *   a renaming                  the new name leads to the file that the call noted
 *   an append                   the noted place has these bytes, or the first of them
 *
 * A killed server may have read only a part of a request. So the next server asks the kernel for
 * which of these calls it waits (is_waited_for()), and drops the others.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "fuse.h"

#define STACK_BYTES	(512u << 10)
#define READERS		3	/* further readers end: the kernel wakes them all in turn */
#define HEED_NS		100000000ULL	/* a shorter call is not interrupted */

extern bool (*sg_interrupt_hook)(void);

__thread struct worker *self;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct worker worker[WORKERS_MAX];
	unsigned int running, reading, busy;
	bool closed;		/* no further call is begun */
	bool taken[CALLS];	/* calls in use */
	struct call *queue[CALLS];
	unsigned int queued;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER };

static const struct fuse_in_header *head_of(const struct call *c)
{
	return (const struct fuse_in_header *)c->in;
}

/* --- the request --------------------------------------------------------------------------- */

const void *call_arg(size_t len)
{
	return IN->len < sizeof(*IN) + len ? NULL : (const u8 *)IN + sizeof(*IN);
}

const char *call_name(size_t at, size_t *next)
{
	const char *start = (const char *)IN + sizeof(*IN) + at;
	const char *end = (const char *)IN + IN->len, *zero;

	if (start >= end)
		return NULL;
	zero = memchr(start, 0, (size_t)(end - start));
	if (!zero)
		return NULL;
	if (next)
		*next = at + (size_t)(zero - start) + 1;
	return start;
}

s64 call_time(void)
{
	if (!self->call->now)
		self->call->now = sg_now();
	return (s64)self->call->now;
}

static bool interrupted(void)
{
	if (sg_load64(&fs.stopping) || locks_end_wait())
		return true;
	return self && self->unique && sg_load64(&self->call->interrupted) == self->unique &&
	       sg_ticks() - self->since > HEED_NS;
}

/* --- the reply ------------------------------------------------------------------------------ */

static void put(u64 unique, int err, const void *data, size_t len)
{
	struct fuse_out_header out = {
		.len = (u32)(sizeof(out) + len), .error = err, .unique = unique,
	};
	struct iovec v[2] = { { &out, sizeof(out) }, { (void *)data, len } };

	/*
	 * ENOENT means that the caller was killed, and no longer waits. Other errors are ignored:
	 * the server can do nothing more for the call.
	 */
	if (writev(fs.fd, v, len ? 2 : 1) < 0 && errno == EINVAL)
		tool_warn("the kernel has refused the reply to its request %llu",
			  (unsigned long long)unique);
}

void answer(u64 unique, int err, const void *data, size_t len)
{
	put(unique, err, data, len);
}

static void finished(void)
{
	__atomic_store_n(&self->call->state, CALL_FREE, __ATOMIC_RELEASE);
	sg_store64(&self->unique, 0);
}

/*
 * Keeps a reply, and sends it. If this server ends in between, the next server sends the same
 * reply.
 */
static void keep(int err, const void *data, size_t len)
{
	struct call *c = self->call;
	struct fuse_out_header *out = (void *)c->reply;

	*out = (struct fuse_out_header){
		.len = (u32)(sizeof(*out) + len), .error = err, .unique = IN->unique,
	};
	memcpy(out + 1, data, len);
	c->reply_len = out->len;
	__atomic_store_n(&c->state, CALL_DONE, __ATOMIC_RELEASE);
	if (write(fs.fd, c->reply, c->reply_len) < 0 && errno == EINVAL)
		tool_warn("the kernel has refused the reply to a request of operation %u", IN->opcode);
	finished();
}

int reply(const void *data, size_t len)
{
	if (len > REPLY_KEPT - sizeof(struct fuse_out_header))
		return reply_large(data, len);
	keep(0, data, len);
	return 0;
}

int reply_large(const void *data, size_t len)
{
	put(IN->unique, 0, data, len);
	finished();
	return 0;
}

void reply_none(void)
{
	finished();
}

void reply_later(void)
{
	finished();
}

u8 *out_room(void)
{
	if (!self->out) {
		self->out = mmap(NULL, CALL_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (self->out == MAP_FAILED)
			self->out = NULL;
	}
	return self->out;
}

/* --- what a call asks for ------------------------------------------------------------------- */

static int op_forget(void)
{
	const struct fuse_forget_in *f = ARG(struct fuse_forget_in);

	if (f)
		node_forget(IN->nodeid, f->nlookup);
	reply_none();
	return 0;
}

static int op_batch_forget(void)
{
	const struct fuse_batch_forget_in *b = ARG(struct fuse_batch_forget_in);
	const struct fuse_forget_one *one = (const void *)(b + 1);
	u32 i;

	for (i = 0; b && i < b->count && (const u8 *)&one[i + 1] <= (const u8 *)IN + IN->len; i++)
		node_forget(one[i].nodeid, one[i].nlookup);
	reply_none();
	return 0;
}

static int op_destroy(void)
{
	return reply(NULL, 0);
}

/* Refuses an operation that the kernel can do without. The kernel then does not send it again. */
static int op_unsupported(void)
{
	return -ENOSYS;
}

static const struct op {
	int (*run)(void);
	bool changes;		/* the volume */
} ops[] = {
	[FUSE_LOOKUP] = { op_lookup, false },
	[FUSE_FORGET] = { op_forget, false },
	[FUSE_BATCH_FORGET] = { op_batch_forget, false },
	[FUSE_GETATTR] = { op_getattr, false },
	[OP_STATX] = { op_statx, false },
	[FUSE_SETATTR] = { op_setattr, true },
	[FUSE_READLINK] = { op_readlink, false },
	[FUSE_SYMLINK] = { op_symlink, true },
	[FUSE_MKNOD] = { op_mknod, true },
	[FUSE_MKDIR] = { op_mkdir, true },
	[FUSE_UNLINK] = { op_unlink, true },
	[FUSE_RMDIR] = { op_rmdir, true },
	[FUSE_RENAME] = { op_rename, true },
	[FUSE_RENAME2] = { op_rename2, true },
	[FUSE_LINK] = { op_link, true },
	[FUSE_OPEN] = { op_open, true },
	[FUSE_CREATE] = { op_create, true },
	[OP_TMPFILE] = { op_tmpfile, true },
	[FUSE_READ] = { op_read, false },
	[FUSE_WRITE] = { op_write, true },
	[FUSE_RELEASE] = { op_release, true },
	[FUSE_FLUSH] = { op_flush, true },
	[FUSE_FSYNC] = { op_fsync, false },
	[FUSE_FSYNCDIR] = { op_fsync, false },
	[FUSE_STATFS] = { op_statfs, true },
	[FUSE_GETXATTR] = { op_getxattr, false },
	[FUSE_LISTXATTR] = { op_listxattr, false },
	[FUSE_SETXATTR] = { op_setxattr, true },
	[FUSE_REMOVEXATTR] = { op_removexattr, true },
	[FUSE_OPENDIR] = { op_opendir, true },
	[FUSE_READDIR] = { op_readdir, false },
	[FUSE_READDIRPLUS] = { op_readdirplus, false },
	[FUSE_RELEASEDIR] = { op_release, true },
	[FUSE_GETLK] = { op_getlk, true },
	[FUSE_SETLK] = { op_setlk, true },
	[FUSE_SETLKW] = { op_setlk, true },
	[FUSE_FALLOCATE] = { op_fallocate, true },
	[FUSE_LSEEK] = { op_lseek, false },
	[FUSE_COPY_FILE_RANGE] = { op_copy, true },
	[FUSE_IOCTL] = { op_ioctl, true },
	[FUSE_DESTROY] = { op_destroy, false },
	[FUSE_ACCESS] = { op_unsupported, false },
	[FUSE_BMAP] = { op_unsupported, false },
	[FUSE_POLL] = { op_unsupported, false },
	[OP_SYNCFS] = { op_fsync, false },
};

static int run(const struct op *op)
{
	int err;

	if (!system_alive() && op->run != op_forget && op->run != op_batch_forget)
		return -EIO;
	err = op->changes ? change_begin() : 0;
	if (err)
		return err;
	err = op->run();
	if (op->changes)
		change_end();
	return err;
}

static void handle(void)
{
	u32 opcode = IN->opcode;
	const struct op *op = opcode < sizeof(ops) / sizeof(ops[0]) ? &ops[opcode] : NULL;
	int err;

	self->since = sg_ticks();
	sg_store64(&self->unique, IN->unique);
	__atomic_store_n(&self->call->state, CALL_RUNNING, __ATOMIC_RELEASE);
	err = op && op->run ? run(op) : -ENOSYS;
	if (err == -ESTALE)
		nodes_keep_for_caller();
	if (err)
		keep(err < -511 ? -EIO : err, NULL, 0);
}

/* --- interrupts ----------------------------------------------------------------------------- */

static struct call *take_queued(u64 unique)
{
	struct call *c = NULL;
	unsigned int i;

	for (i = 0; i < pool.queued; i++) {
		if (unique && head_of(pool.queue[i])->unique != unique)
			continue;
		c = pool.queue[i];
		memmove(&pool.queue[i], &pool.queue[i + 1], (--pool.queued - i) * sizeof(c));
		break;
	}
	return c;
}

static void give_call(struct call *c)
{
	c->state = CALL_FREE;
	pool.taken[c - fs.kept->call] = false;
}

/*
 * Interrupts a queued call. A call that an earlier server has begun may be finished: only its
 * handler can check that, so the call stays queued.
 */
static bool interrupt_queued(u64 unique)
{
	bool repeated = false;
	struct call *c;
	unsigned int i;

	pthread_mutex_lock(&pool.lock);
	for (i = 0; i < pool.queued && head_of(pool.queue[i])->unique != unique; i++)
		;
	c = i < pool.queued ? pool.queue[i] : NULL;
	repeated = c && c->repeated;
	if (repeated)
		sg_store64(&c->interrupted, unique);
	else if (c)
		take_queued(unique);
	pthread_mutex_unlock(&pool.lock);
	if (!c || repeated)
		return c;
	/* the call ends after its reply: if this server dies in between, the next one replies */
	put(unique, -EINTR, NULL, 0);
	pthread_mutex_lock(&pool.lock);
	give_call(c);
	pthread_mutex_unlock(&pool.lock);
	return true;
}

/*
 * Interrupts a call. If no thread has that call yet, the reply is -EAGAIN. Then the kernel repeats
 * the interrupt unless the call has ended.
 */
static void interrupt(void)
{
	const struct fuse_interrupt_in *i = ARG(struct fuse_interrupt_in);
	unsigned int k;

	if (!i)
		return;
	for (k = 0; k < WORKERS_MAX; k++) {
		if (sg_load64(&pool.worker[k].unique) == i->unique) {
			sg_store64(&pool.worker[k].call->interrupted, i->unique);
			return;
		}
	}
	if (!interrupt_queued(i->unique) && !locks_interrupt(i->unique))
		put(IN->unique, -EAGAIN, NULL, 0);
}

/* --- threads -------------------------------------------------------------------------------- */

static void *work(void *arg);

/* Takes an unused call of the inherited memory. The caller holds pool.lock. */
static struct call *free_call(void)
{
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		if (!pool.taken[i]) {
			pool.taken[i] = true;
			return &fs.kept->call[i];
		}
	}
	return NULL;
}

/* Starts another thread, if there may be one. The caller holds pool.lock. */
static bool start_worker(void)
{
	struct worker *w = pool.worker;
	pthread_attr_t attr;
	int err;

	while (w < pool.worker + WORKERS_MAX && w->used)
		w++;
	if (w == pool.worker + WORKERS_MAX || pool.running >= fs.opt.workers)
		return false;
	w->call = free_call();
	if (!w->call)
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&w->thread, &attr, work, w);
	pthread_attr_destroy(&attr);
	if (err) {
		give_call(w->call);
		return false;
	}
	w->used = true;
	pool.running++;
	pool.reading++;
	return true;
}

static bool is_release(u32 opcode)
{
	return opcode == FUSE_RELEASE || opcode == FUSE_RELEASEDIR;
}

static unsigned int queue_room(u32 opcode)
{
	return is_release(opcode) ? SPARE_CALLS + SPARE_RELEASES : SPARE_CALLS;
}

/*
 * Decides whether this thread may handle its call: another thread must read meanwhile. If no other
 * thread can, returns false. Then the call is queued or refused, and this thread reads.
 */
static bool may_handle(void)
{
	struct call *c = NULL;
	bool may, full = false;

	pthread_mutex_lock(&pool.lock);
	may = --pool.reading || start_worker();
	if (!may) {
		pool.reading++;
		full = pool.queued >= queue_room(IN->opcode);
		c = full ? NULL : free_call();
		if (c) {
			self->call->state = CALL_QUEUED;
			pool.queue[pool.queued++] = self->call;
			self->call = c;
		}
	}
	pthread_mutex_unlock(&pool.lock);
	if (!may && !c)
		put(IN->unique, -EBUSY, NULL, 0);
	return may;
}

/* Takes a call from the queue, if there is one, for this thread to handle before it reads again. */
static bool take_waiting(void)
{
	struct call *c;

	if (!__atomic_load_n(&pool.queued, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&pool.lock);
	c = pool.closed ? NULL : take_queued(0);
	if (c) {
		give_call(self->call);
		self->call = c;
	}
	pthread_mutex_unlock(&pool.lock);
	return c;
}

static void count_reading(int n)
{
	pthread_mutex_lock(&pool.lock);
	pool.reading += (unsigned int)n;
	pthread_mutex_unlock(&pool.lock);
}

static bool is_quick(u32 opcode)
{
	return opcode == FUSE_INTERRUPT || opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET;
}

/* Reads a call. Returns false if the mount has ended. *got is set to whether there is a call. */
static bool read_call(bool *got)
{
	struct call *c = self->call;
	ssize_t n;

	c->now = 0;
	c->repeated = 0;
	c->interrupted = 0;
	memset(c->note, 0, sizeof(c->note));
	((struct fuse_in_header *)c->in)->len = 0;
	c->state = CALL_READING;
	n = read(fs.fd, c->in, CALL_BYTES);
	*got = n >= (ssize_t)sizeof(*IN) && IN->len == (u32)n;
	if (*got)
		return true;
	c->state = CALL_FREE;
	return n >= 0 || errno == EINTR || errno == ENOENT || errno == EAGAIN;
}

/*
 * Stops this thread while another thread ends the server (session_stop()). The caller holds
 * pool.lock.
 */
static void stay_out(void)
{
	pthread_mutex_unlock(&pool.lock);
	for (;;)
		pause();
}

static void busy_begin(void)
{
	pthread_mutex_lock(&pool.lock);
	if (pool.closed)
		stay_out();
	pool.busy++;
	pthread_mutex_unlock(&pool.lock);
}

static void busy_end(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.busy--;
	if (pool.closed)
		pthread_cond_broadcast(&pool.ended);
	pthread_mutex_unlock(&pool.lock);
}

bool session_stop(unsigned int seconds)
{
	struct timespec until;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	sg_store64(&fs.stopping, 1);	/* ends waits for other systems with EINTR */
	pthread_mutex_lock(&pool.lock);
	pool.closed = true;
	while (pool.busy && !err)
		err = pthread_cond_timedwait(&pool.ended, &pool.lock, &until);
	pthread_mutex_unlock(&pool.lock);
	return !err;
}

static void serve_one(void)
{
	busy_begin();
	if (IN->opcode == FUSE_INTERRUPT) {
		interrupt();
		self->call->state = CALL_FREE;
	} else if (is_quick(IN->opcode)) {
		handle();
	} else if (may_handle()) {
		handle();
		while (take_waiting())
			handle();
		count_reading(1);
	}
	busy_end();
}

/* Handles unfinished calls of an earlier server, if another thread can read meanwhile. */
static void serve_left(void)
{
	bool may;

	pthread_mutex_lock(&pool.lock);
	may = pool.queued && (--pool.reading || start_worker() || !++pool.reading);
	pthread_mutex_unlock(&pool.lock);
	if (!may)
		return;
	busy_begin();
	while (take_waiting())
		handle();
	count_reading(1);
	busy_end();
}

/*
 * Reports whether this thread shall end, because enough other threads read after a burst of calls.
 * A thread that shall end no longer counts as a reader.
 */
static bool is_spare(void)
{
	bool spare;

	if (__atomic_load_n(&pool.reading, __ATOMIC_RELAXED) <= READERS)
		return false;
	pthread_mutex_lock(&pool.lock);
	spare = pool.reading > READERS;
	pool.reading -= spare;
	pthread_mutex_unlock(&pool.lock);
	return spare;
}

static void *work(void *arg)
{
	bool got, spare = false;

	self = arg;
	serve_left();
	while (!sg_load64(&fs.stopping) && !(spare = is_spare()) && read_call(&got))
		if (got)
			serve_one();
	pthread_mutex_lock(&pool.lock);
	if (self->out)
		munmap(self->out, CALL_BYTES);
	self->out = NULL;
	give_call(self->call);
	self->used = false;
	pool.reading -= !spare;
	pool.running--;
	pthread_cond_broadcast(&pool.ended);
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

/* --- the beginning -------------------------------------------------------------------------- */

#define WANTED (FUSE_ASYNC_READ | FUSE_POSIX_LOCKS | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES | \
		FUSE_EXPORT_SUPPORT | FUSE_DONT_MASK | FUSE_FLOCK_LOCKS | \
		FUSE_PARALLEL_DIROPS | FUSE_ASYNC_DIO | \
		FUSE_POSIX_ACL | FUSE_MAX_PAGES | FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT | \
		INIT_EXT)
#define NEEDED (FUSE_DONT_MASK | FUSE_POSIX_LOCKS | FUSE_ATOMIC_O_TRUNC | FUSE_MAX_PAGES)

static int greet(const struct fuse_in_header *in)
{
	const struct wire_init_in *i = (const void *)(in + 1);
	struct wire_init_out out = {
		.major = 7, .minor = 39, .max_background = SPARE_RELEASES,
		.congestion_threshold = SPARE_RELEASES / 4 * 3,
		.max_write = IO_MAX, .time_gran = 1, .max_pages = IO_MAX / 4096,
	};
	u32 flags2 = 0;

	if (in->opcode != FUSE_INIT || in->len < sizeof(*in) + 16)
		return -EPROTO;
	if (i->flags & INIT_EXT && in->len >= sizeof(*in) + sizeof(*i))
		flags2 = i->flags2;
	out.max_readahead = i->max_readahead;
	out.flags = i->flags & WANTED;
	if (fs.opt.cache_ns)
		out.flags |= i->flags & (FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO);
	if (fs.opt.mappings)
		out.flags2 = flags2 & INIT2_DIRECT_MMAP;
	if (i->major != 7 || ~i->flags & NEEDED) {
		put(in->unique, -EPROTO, NULL, 0);
		tool_error("this kernel's FUSE (7.%u) is too old: Linux 5.1 or later is needed",
			   i->minor);
		return -EPROTO;
	}
	if (fs.opt.mappings && !out.flags2)
		tool_warn("--shared-mmap has no effect on this kernel: it needs Linux 6.6 or later");
	put(in->unique, 0, &out, sizeof(out));
	fs.kept->flags = out.flags | (u64)out.flags2 << 32;
	__atomic_store_n(&fs.kept->begun, 1, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Handles INIT. The kernel sends INIT once, and other requests only after the reply. So INIT is
 * kept like any call. If a server ends before it has set `begun`, the next server sends the same
 * reply, possibly for the second time.
 */
static int begin(void)
{
	struct call *c = &fs.kept->call[0];
	const struct fuse_in_header *in = head_of(c);
	ssize_t n;
	int err;

	if (c->state != CALL_READING || in->len < sizeof(*in) || in->opcode != FUSE_INIT) {
		((struct fuse_in_header *)c->in)->len = 0;
		c->state = CALL_READING;
		do
			n = read(fs.fd, c->in, CALL_BYTES);
		while (n < 0 && errno == EINTR);
		if (n < (ssize_t)sizeof(*in) || in->len != (u32)n)
			return -EIO;
	}
	err = greet(in);
	c->state = CALL_FREE;
	return err;
}

/*
 * Reports whether the kernel waits for the reply to a request. It does so from the time when all of
 * the request has been copied to a server. A server that is killed during this copy leaves a
 * request with old bytes at its end, and the kernel has ended that call with EIO. If it was already
 * answered, the kernel does not wait either.
 *
 * The question is a reply to an interrupt of the request, without an error: the kernel looks the
 * request up, and does nothing.
 */
static bool is_waited_for(u64 unique)
{
	struct fuse_out_header out = { .len = sizeof(out), .unique = unique | REPLY_TO_INTERRUPT };

	return write(fs.fd, &out, sizeof(out)) >= 0 || errno != ENOENT;
}

/* Reports whether the last server had this call, and has not ended it. */
static bool is_left(const struct call *c)
{
	return c->state == CALL_QUEUED || c->state == CALL_RUNNING ||
	       (c->state == CALL_READING && head_of(c)->len &&
		!is_quick(head_of(c)->opcode) && head_of(c)->opcode != FUSE_INIT);
}

/*
 * Interrupts an unfinished call of an earlier server. That server had read the interrupt, too, but
 * not handled it.
 */
static void interrupt_left(u64 unique)
{
	unsigned int i;

	locks_interrupt(unique);
	for (i = 0; i < CALLS; i++)
		if (is_left(&fs.kept->call[i]) && head_of(&fs.kept->call[i])->unique == unique)
			fs.kept->call[i].interrupted = unique;
}

static void take_interrupts(void)
{
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		const struct call *c = &fs.kept->call[i];
		const struct fuse_interrupt_in *in = (const void *)(head_of(c) + 1);

		if (c->state == CALL_READING && head_of(c)->opcode == FUSE_INTERRUPT &&
		    head_of(c)->len >= sizeof(*head_of(c)) + sizeof(*in))
			interrupt_left(in->unique);
	}
}

/* Sends the replies that an earlier server has kept, and queues the calls that it had begun. */
static void take_over(void)
{
	unsigned int i;

	take_interrupts();
	for (i = 0; i < CALLS; i++) {
		struct call *c = &fs.kept->call[i];

		if (c->state == CALL_DONE && write(fs.fd, c->reply, c->reply_len) < 0 &&
		    errno != ENOENT)
			tool_warn("cannot send a reply that the last server has left: %s",
				  strerror(errno));
		if (is_left(c) && !locks_wait(head_of(c)->unique) &&
		    is_waited_for(head_of(c)->unique)) {
			c->repeated = 1;
			pool.taken[i] = true;
			pool.queue[pool.queued++] = c;
		} else {
			c->state = CALL_FREE;
		}
	}
}

void session_prepare(void)
{
	sg_interrupt_hook = interrupted;
}

int session_run(void)
{
	int err = fs.kept->begun ? 0 : begin();

	if (err)
		return err;
	busy_begin();
	locks_start();
	take_over();
	locks_serve();
	busy_end();
	pthread_mutex_lock(&pool.lock);
	start_worker();
	while (pool.running)
		pthread_cond_wait(&pool.ended, &pool.lock);
	if (pool.closed)
		stay_out();
	pthread_mutex_unlock(&pool.lock);
	return 0;
}
