/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libstargate over the engine, without a kernel. This file answers the library's system calls as
 * the module does, for two systems whose volume is mounted at two paths. A test that includes it is
 * linked with --wrap (mk/build/engine.mk).
 */
#ifndef SG_SEM_KERNEL_H
#define SG_SEM_KERNEL_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include "uapi/semctl.h"
#include "sem_util.h"
#include "stargate.h"

#define SIZE	(32ULL << 20)
#define SYSTEMS	2
#define FDS	1024

static u8 *mem;
static struct tsys sys[SYSTEMS];
static struct listener ear[SYSTEMS];
static char at[SYSTEMS][64];

/* --- a simulated kernel ---------------------------------------------------------------------- */

static struct opened {
	struct sg_vol *v;	/* NULL: the descriptor belongs to another file */
	struct sg_sem sem;
	bool bound, look;
} opens[FDS];
static __thread struct sg_sem_caller *callers[SYSTEMS];

/* The linker calls __wrap_X() instead of X() (--wrap); __real_X() is the original. */
int __real_open(const char *path, int flags, ...);
int __real_close(int fd);
int __real_ioctl(int fd, unsigned long what, ...);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __real_munmap(void *addr, size_t len);
int __real_stat(const char *path, struct stat *st);
int __real_fstat(int fd, struct stat *st);
int __real_statfs(const char *path, struct statfs *st);
int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off);
int __wrap_munmap(void *addr, size_t len);
int __wrap_stat(const char *path, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_statfs(const char *path, struct statfs *st);
int __wrap_ioctl(int fd, unsigned long what, ...);
int __wrap_posix_fadvise(int fd, off_t off, off_t len, int advice);

static struct opened *opened(int fd)
{
	return fd >= 0 && fd < FDS && opens[fd].v ? &opens[fd] : NULL;
}

static int system_of(const char *path)
{
	int i;

	for (i = 0; i < SYSTEMS; i++)
		if (at[i][0] && !strncmp(path, at[i], strlen(at[i])))
			return i;
	return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
	const char *end = strstr(path, "/" SG_SEM_FILE);
	int sys_of = system_of(path), fd;
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!end || sys_of < 0)
		return __real_open(path, flags, mode);
	fd = __real_open("/dev/null", O_RDWR);
	CHECK(fd >= 0 && fd < FDS);
	opens[fd] = (struct opened){ .v = &sys[sys_of].v };
	return fd;
}

int __wrap_close(int fd)
{
	struct opened *o = opened(fd);

	if (o && o->bound)
		sg_sem_close(o->v, &o->sem);
	if (o)
		o->v = NULL;
	return __real_close(fd);
}

/* Maps the pages of a ring again at @addr: the words, and the data behind them. */
static void *kernel_map_ring(struct opened *o, void *addr, size_t len, off_t off)
{
	u64 page, first = (u64)off / SG_PAGE;

	CHECK(addr && len % SG_PAGE == 0 && first * SG_PAGE + len <= SG_PAGE + o->sem.size);
	for (page = 0; page < len / SG_PAGE; page++) {
		u64 i = first + page, from = i ? sg_sem_ring_at(o->v, &o->sem, i - 1) : o->sem.words;

		CHECK(from);
		CHECK(mremap(sg_at(o->v, from), 0, SG_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			     (u8 *)addr + page * SG_PAGE) != MAP_FAILED);
	}
	return addr;
}

void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	struct opened *o = opened(fd);

	if (!o)
		return __real_mmap(addr, len, prot, flags, fd, off);
	CHECK(o->bound && o->sem.flags & SG_SEM_MAPPED);
	if (o->sem.type == SG_SEM_RING)
		return kernel_map_ring(o, addr, len, off);
	CHECK(len == SG_PAGE && !off);
	return sg_at(o->v, o->sem.words);
}

int __wrap_munmap(void *addr, size_t len)
{
	if (mem && (u8 *)addr >= mem && (u8 *)addr < mem + SIZE && len == SG_PAGE)
		return 0;
	return __real_munmap(addr, len);
}

int __wrap_stat(const char *path, struct stat *st)
{
	int err = __real_stat(path, st);

	if (system_of(path) >= 0)
		st->st_dev = 1000 + (dev_t)system_of(path);
	return err;
}

int __wrap_fstat(int fd, struct stat *st)
{
	int err = __real_fstat(fd, st);

	if (opened(fd))
		st->st_dev = 1000 + (opened(fd)->v == &sys[1].v);
	return err;
}

int __wrap_statfs(const char *path, struct statfs *st)
{
	int err = __real_statfs(path, st);

	if (!err && system_of(path) >= 0)
		st->f_type = SG_FS_MAGIC;
	return err;
}

static struct sg_sem_caller *caller(struct sg_vol *v)
{
	struct sg_sem_caller **c = &callers[v == &sys[1].v];

	if (!*c)
		*c = caller_of(v, (u32)syscall(SYS_gettid));
	return *c;
}

/* Does the work of the kernel when a thread ends. */
static void thread_ends(void)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++) {
		if (callers[i])
			caller_end(&sys[i].v, callers[i]);
		callers[i] = NULL;
	}
}

static int kernel_open(struct opened *o, struct sg_ioc_sem_open *io)
{
	u32 len = (u32)strnlen(io->name, SG_SEM_NAME_ROOM);
	const struct sg_sem_new new = { .type = io->type, .flags = io->flags, .life = io->life,
		.initial = io->initial, .mode = io->mode };
	bool user = !(io->how & (SG_SEM_LOOK | SG_SEM_BY_KERNEL));
	int err;

	CHECK(!o->bound && !io->cell && !io->reserved[0] && !io->reserved[1]);
	if (io->how & SG_SEM_CREATE)
		err = sg_sem_create(o->v, io->name, len, &new, io->how & SG_SEM_EXCL, user, &o->sem);
	else
		err = sg_sem_open(o->v, io->name, len, 0, user, &o->sem);
	if (!err && io->type && io->type != o->sem.type) {
		sg_sem_close(o->v, &o->sem);
		err = -EPROTOTYPE;
	}
	if (err)
		return err;
	o->bound = true;
	io->type = o->sem.type;
	io->flags = o->sem.flags;
	if (o->sem.cell >= SG_SEM_CELL_FIRST)
		io->cell = o->sem.cell;
	return 0;
}

static int kernel_op(struct opened *o, struct sg_ioc_sem_op *op)
{
	struct sg_sem_caller *c = caller(o->v);
	struct sg_sem *s = &o->sem, part;
	struct sg_vol *v = o->v;
	u64 count = op->value;
	int ret;

	CHECK(o->bound && !(op->flags & ~SG_SEM_OP_FLAGS_KNOWN) && !op->reserved);
	if (s->type != SG_SEM_RING)
		CHECK(!op->flags);
	if (op->op == SG_SEM_OP_READER) {
		ret = sg_sem_ring_reader(v, s, op->until);
		op->value = s->cell;
		return ret;
	}
	if (op->op == SG_SEM_OP_SWEEP)
		return sg_sem_ring_sweep(v, s);
	if (s->type == SG_SEM_RING) {
		CHECK_OK(sg_sem_ring_part(s, SG_SEM_PART_OF(op->flags), &part));
		s = &part;
	}
	switch (op->op) {
	case SG_SEM_OP_LOCK: return sg_sem_lock(v, s, c, op->until);
	case SG_SEM_OP_UNLOCK: return sg_sem_unlock(v, s, c);
	case SG_SEM_OP_CONSISTENT: return sg_sem_consistent(v, s, c);
	case SG_SEM_OP_WAIT: return sg_sem_wait(v, s, c, op->until);
	case SG_SEM_OP_POST: return sg_sem_post(v, s);
	case SG_SEM_OP_READ: return sg_sem_read_lock(v, s, c, op->until);
	case SG_SEM_OP_READ_END: return sg_sem_read_unlock(v, s);
	case SG_SEM_OP_WRITE: return sg_sem_write_lock(v, s, c, op->until);
	case SG_SEM_OP_WRITE_END: return sg_sem_write_unlock(v, s, c);
	case SG_SEM_OP_DRAIN: return sg_sem_drain(v, s, c, op->until);
	case SG_SEM_OP_RING: return sg_sem_ring(v, s), 0;
	case SG_SEM_OP_COND_LOOK:
		ret = sg_sem_cond_prepare(v, s, &count);
		op->value = count;
		return ret;
	case SG_SEM_OP_COND_WAIT: return sg_sem_cond_wait(v, s, c, op->value, op->until);
	case SG_SEM_OP_SIGNAL: return sg_sem_cond_signal(v, s, false);
	case SG_SEM_OP_BROADCAST: return sg_sem_cond_signal(v, s, true);
	case SG_SEM_OP_ADVANCE: return sg_sem_advance(v, s, op->value);
	case SG_SEM_OP_AWAIT: return sg_sem_await(v, s, c, op->value, op->until);
	case SG_SEM_OP_MEET:
		ret = sg_sem_meet(v, s, c, op->until);
		op->value = ret == 1;
		return SG_MIN(ret, 0);
	default: return -ENOTTY;
	}
}

int __wrap_posix_fadvise(int fd, off_t off, off_t len, int advice)
{
	struct opened *o = opened(fd);
	bool done = false;

	CHECK(o && o->bound && !off && !len);
	switch (advice - SG_SEM_AT_ONCE) {
	case SG_SEM_OP_LOCK: done = sg_sem_lock_at_once(o->v, &o->sem, caller(o->v)); break;
	case SG_SEM_OP_UNLOCK: done = sg_sem_unlock_at_once(o->v, &o->sem, caller(o->v)); break;
	case SG_SEM_OP_WAIT: done = sg_sem_wait_at_once(o->v, &o->sem); break;
	case SG_SEM_OP_POST: done = sg_sem_post_at_once(o->v, &o->sem); break;
	}
	return done ? 0 : EAGAIN;
}

/* Stores the state of the descriptor's object, or of a named object, in @io. */
static int kernel_stat(struct opened *o, struct sg_ioc_sem_stat *io)
{
	struct sg_sem_stat st;
	int err = 0;

	CHECK(io->name[0] || o->bound);
	if (io->name[0])
		err = sg_sem_stat(o->v, io->name, (u32)strlen(io->name), &st);
	else
		sg_sem_fstat(o->v, &o->sem, &st);
	if (err)
		return err;
	io->type = st.type;
	io->flags = st.flags;
	io->life = st.life;
	io->initial = st.initial;
	io->claims_lost = st.claims_lost;
	io->sent = st.sent;
	io->receivers = st.receivers;
	io->mode = st.mode;
	io->value = st.value;
	io->slot = st.slot;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long what, ...)
{
	struct opened *o = opened(fd);
	int err = -ENOTTY, cancel;
	va_list ap;
	void *arg;

	va_start(ap, what);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!o)
		return __real_ioctl(fd, what, arg);
	/* ioctl() is no cancellation point */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (what == SG_IOC_SEM_OPEN)
		err = kernel_open(o, arg);
	else if (what == SG_IOC_SEM_OP)
		err = kernel_op(o, arg);
	else if (what == SG_IOC_SEM_STAT)
		err = kernel_stat(o, arg);
	else if (what == SG_IOC_SEM_ME)
		err = (*(u64 *)arg = caller(o->v)->me, 0);
	else if (what == SG_IOC_SEM_RESET)
		err = sg_sem_reset(o->v, arg, (u32)strlen(arg), SG_SEM_ANY);
	else if (what == SG_IOC_SEM_REMOVE)
		err = sg_sem_unlink(o->v, arg, (u32)strlen(arg), SG_SEM_ANY);
	pthread_setcancelstate(cancel, NULL);
	errno = -err;
	return err ? -1 : 0;
}

/* --- objects --------------------------------------------------------------------------------- */

static inline void begin(void)
{
	unsigned int i;

	mem = tsys_volume(SIZE);
	for (i = 0; i < SYSTEMS; i++) {
		snprintf(at[i], sizeof(at[i]), "/tmp/libstargate-%d-%u", (int)getpid(), i);
		CHECK_OK(mkdir(at[i], 0700));
		tsys_join(&sys[i], mem, SIZE, i + 1);
		tsys_maintain(&sys[i]);
		listen_begin(&ear[i], &sys[i].v);
	}
}

static inline void end(void)
{
	unsigned int i;

	thread_ends();
	for (i = 0; i < SYSTEMS; i++) {
		listen_end(&ear[i]);
		tsys_leave(&sys[i]);
		rmdir(at[i]);
		at[i][0] = 0;
	}
	test_clean(mem, SIZE);
	test_unmap(mem, SIZE);
	mem = NULL;
}

static inline stargate_sem *make(const char *name, enum stargate_type type, unsigned int flags, u64 initial)
{
	const struct stargate_new what = { .type = type, .flags = flags, .mode = 0600,
					   .initial = initial };
	stargate_sem *s;

	CHECK_OK(stargate_create(&s, at[0], name, &what, STARGATE_EXCLUSIVE));
	return s;
}

/*
 * Opens an object for thread @n. Bits of @n select the system, and whether the kernel does all
 * operations.
 */
static inline stargate_sem *have(unsigned int n, const char *name)
{
	stargate_sem *s;

	CHECK_OK(stargate_open(&s, at[n % 2], name, STARGATE_ANY, n & 2 ? STARGATE_BY_KERNEL : 0));
	return s;
}

#endif
