// SPDX-License-Identifier: Apache-2.0
/* Several systems on one volume. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "systems.h"

#define SETTLE_US	20000	/* a kernel waits one second */
#define TOO_LONG_NS	60000000000ULL

/* --- joining -------------------------------------------------------------------------------- */

static void damaged(struct sg_vol *vol, u64 ino, u64 off)
{
	test_fail(__FILE__, __LINE__, "damage reported by the system in slot %d: inode %" PRIu64
		  ", offset 0x%" PRIx64, vol->slot, ino, off);
}

u8 *tsys_volume_in(u64 size, u64 memory)
{
	struct tvol t;

	tvol_make_in(&t, size, memory);
	tvol_leave(&t);
	return t.mem;
}

u8 *tsys_volume(u64 size)
{
	return tsys_volume_in(size, size);
}

void tsys_grow(struct sg_vol *v, u64 by)
{
	u64 had = sg_size(v), to = SG_MIN(had + by, sg_grow_limit(v));
	char why[200];
	int err = sg_grow(v, to, 500, why);

	if (err == -EINVAL && sg_size(v) > to)
		return;		/* another system has grown the volume first */
	if (err && err != -EBUSY)
		test_fail(__FILE__, __LINE__, "cannot grow from %" PRIu64 " to %" PRIu64
			  ": %d, %s", had, to, err, why);
	CHECK(sg_size(v) >= (err ? had : to));
}

struct sg_identity tsys_identity(unsigned int machine, unsigned int boot)
{
	struct sg_identity id = { .beat_ns = SG_MAINTAIN_MS * 1000000ULL };

	if (machine)
		snprintf((char *)id.machine, sizeof(id.machine), "m-%u", machine);
	snprintf((char *)id.boot, sizeof(id.boot), "b-%u", boot);
	snprintf(id.name, sizeof(id.name), "system-%u", machine);
	return id;
}

int tsys_try(struct tsys *s, u8 *mem, u64 size, const struct sg_identity *id, unsigned int wait_ms,
	     bool force)
{
	int err;

	memset(s, 0, sizeof(*s));
	CHECK_OK(sg_open(&s->v, mem, size, false, NULL));
	s->v.on_damage = damaged;
	err = sg_join(&s->v, id, wait_ms, force);
	if (!err)
		CHECK_OK(sg_iref(&s->v, SG_INO_ROOT, &s->root));
	return err;
}

void tsys_join(struct tsys *s, u8 *mem, u64 size, unsigned int machine)
{
	struct sg_identity id = tsys_identity(machine, 1);

	if (tsys_try(s, mem, size, &id, 0, false))
		test_fail(__FILE__, __LINE__, "system %u cannot join: %s", machine, s->v.why);
}

/* --- maintaining ---------------------------------------------------------------------------- */

static bool is(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void maintain(struct tkeeper *k, int (*step)(struct sg_vol *vol))
{
	int ms = 0;

	sg_add64(&k->begun, 1);
	while (!is(&k->stop) && ms >= 0) {
		if (!is(&k->paused))
			ms = step(k->v);
		sg_sleep_us((unsigned int)SG_MIN(SG_MAX(ms, 1), 5) * 1000);
	}
	if (ms < 0)
		__atomic_store_n(&k->dead, true, __ATOMIC_RELEASE);
}

static void *watch(void *arg)
{
	maintain(arg, sg_watch);
	return NULL;
}

static void *acknowledge(void *arg)
{
	maintain(arg, sg_acknowledge);
	return NULL;
}

static void *settle(void *arg)
{
	struct tkeeper *k = arg;

	sg_add64(&k->begun, 1);
	while (!is(&k->settled)) {
		if (!is(&k->paused))
			sg_settle(k->v);
		sg_sleep_us(SETTLE_US);
	}
	return NULL;
}

static void *freeze_mount(void *arg)
{
	maintain(arg, sg_freeze_watch);
	return NULL;
}

void tkeeper_start(struct tkeeper *k, struct sg_vol *v)
{
	*k = (struct tkeeper){ .v = v };
	v->maintained = v->freeze_watched = true;
	CHECK_OK(pthread_create(&k->freezer, NULL, freeze_mount, k));
	CHECK_OK(pthread_create(&k->watcher, NULL, watch, k));
	CHECK_OK(pthread_create(&k->acknowledger, NULL, acknowledge, k));
	CHECK_OK(pthread_create(&k->settler, NULL, settle, k));
	/*
	 * A starting thread holds the lock of ASan's allocator. In a process forked meanwhile, this
	 * lock would never be released.
	 */
	while (sg_load64_acquire(&k->begun) < 4)
		sg_yield();
}

/*
 * The settling thread ends before the other threads: while it waits in a freeze, they must detect
 * the end of the freeze.
 */
void tkeeper_end(struct tkeeper *k)
{
	if (!k->v)
		return;
	__atomic_store_n(&k->settled, true, __ATOMIC_RELEASE);
	CHECK_OK(pthread_join(k->settler, NULL));
	__atomic_store_n(&k->stop, true, __ATOMIC_RELEASE);
	CHECK_OK(pthread_join(k->watcher, NULL));
	CHECK_OK(pthread_join(k->acknowledger, NULL));
	CHECK_OK(pthread_join(k->freezer, NULL));
	k->v->maintained = k->v->freeze_watched = false;
	k->v = NULL;
}

static int freeze_calls(struct sg_vol *vol, bool on)
{
	struct tsys *s = (struct tsys *)((char *)vol - offsetof(struct tsys, v));

	return on ? pthread_rwlock_wrlock(&s->calls) : pthread_rwlock_unlock(&s->calls);
}

void tsys_calls(struct tsys *s)
{
	pthread_rwlockattr_t attr;

	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	CHECK_OK(pthread_rwlock_init(&s->calls, &attr));
	s->v.freeze_mount = freeze_calls;
}

void tsys_call(struct tsys *s)
{
	CHECK_OK(pthread_rwlock_rdlock(&s->calls));
}

void tsys_called(struct tsys *s)
{
	CHECK_OK(pthread_rwlock_unlock(&s->calls));
}

void tsys_maintain(struct tsys *s)
{
	tkeeper_start(&s->keeper, &s->v);
}

void tsys_pause(struct tsys *s, bool on)
{
	__atomic_store_n(&s->keeper.paused, on, __ATOMIC_RELEASE);
}

void tsys_rest(struct tsys *s)
{
	tkeeper_end(&s->keeper);
}

void tsys_leave(struct tsys *s)
{
	tsys_rest(s);
	sg_leave(&s->v);
}

void tsys_die(struct tsys *s)
{
	tsys_rest(s);
	sg_abandon(&s->v);
}

void tsys_fence(struct tsys *by, struct tsys *s)
{
	CHECK_OK(sg_fence_slot(&by->v, (unsigned int)s->v.slot, s->v.incarnation));
}

unsigned int tsys_state(const struct tsys *by, unsigned int slot)
{
	return SG_SLOT_STATE(sg_load64(sg_state_word(&by->v, slot)));
}

static void record(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val,
		   unsigned int n)
{
	struct sg_area *a = sg_at(v, sg_area_off(v, slot, area));
	u64 head = SG_AREA_HEAD((u64)v->incarnation, n);
	unsigned int i;

	for (i = 0; i < n; i++)
		a->word[i] = (struct sg_word){ off + 8 * i, val };
	a->crc = sg_crc32c(sg_crc32c(~0u, &head, 8), a->word, n * sizeof(a->word[0]));
	a->head = head;
}

void tsys_record(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val)
{
	record(v, slot, area, off, val, 1);
}

void tsys_record_full(struct sg_vol *v, unsigned int slot, unsigned int area, u64 off, u64 val)
{
	record(v, slot, area, off, val, SG_AREA_WORDS);
}

/* --- processes ------------------------------------------------------------------------------ */

void *tshare(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

pid_t tproc(void (*body)(void *arg), void *arg)
{
	pid_t pid = test_fork();

	if (!pid) {
		body(arg);
		fflush(stdout);
		_exit(0);
	}
	return pid;
}

void tproc_end(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		test_fail(__FILE__, __LINE__, "a process has failed: status 0x%x", status);
}

void tproc_kill(pid_t pid)
{
	int status;

	CHECK_OK(kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		test_fail(__FILE__, __LINE__, "a process has failed: status 0x%x", status);
}

void tawait(const u64 *word, u64 at_least)
{
	u64 start = sg_ticks();

	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < at_least) {
		if (sg_ticks() - start > TOO_LONG_NS)
			test_fail(__FILE__, __LINE__, "the word has not reached %" PRIu64 " in time", at_least);
		sg_sleep_us(200);
	}
}

void tadvance(u64 *word, u64 to)
{
	__atomic_store_n(word, to, __ATOMIC_SEQ_CST);
}

/* --- the log -------------------------------------------------------------------------------- */

static char lines[16384];
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;

static void catch(void *owner, enum sg_level level, const char *line)
{
	size_t have;

	(void)owner;
	(void)level;
	pthread_mutex_lock(&lines_lock);
	have = strlen(lines);
	snprintf(lines + have, sizeof(lines) - have, "%s\n", line);
	pthread_mutex_unlock(&lines_lock);
}

void tlog_catch(void)
{
	sg_log_hook = catch;
	tlog_clear();
}

void tlog_clear(void)
{
	pthread_mutex_lock(&lines_lock);
	lines[0] = 0;
	pthread_mutex_unlock(&lines_lock);
}

bool tlog_has(const char *text)
{
	bool has;

	pthread_mutex_lock(&lines_lock);
	has = strstr(lines, text) != NULL;
	pthread_mutex_unlock(&lines_lock);
	return has;
}
