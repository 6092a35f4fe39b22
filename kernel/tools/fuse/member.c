// SPDX-License-Identifier: Apache-2.0
/*
 * The server as a system of the volume: its memory, its slot, its heartbeat, and the engine's
 * callbacks. It runs the same threads as the module (kernel/module/membership.c). The first thread
 * never waits, because other systems count its heartbeats.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "fuse.h"

#define SETTLE_MS	1000
#define FREEZE_MS	500		/* a freeze fails if calls take longer */
#define SERVER_BEAT_NS	(SG_MAINTAIN_MS * 1000000ULL)	/* tools send heartbeats less often */
#define TMPFS		0x01021994	/* statfs.f_type */
#define HUGETLBFS	0x958458f6
#define WITNESS		(1LL << 61)	/* file offset of the witness of slot 0 */

/* --- changes, and the freeze ------------------------------------------------------------------ */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	u64 inside;		/* calls that may store into the volume */
	bool frozen;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static struct timespec in_ms(unsigned int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += ms % 1000 * 1000000L;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000L;
	t.tv_nsec %= 1000000000L;
	return t;
}

int change_begin(void)
{
	struct timespec t;
	int err = 0;

	pthread_mutex_lock(&gate.lock);
	while (gate.frozen && !err) {
		t = in_ms(20);
		pthread_cond_timedwait(&gate.changed, &gate.lock, &t);
		if (sg_interrupted())
			err = -EINTR;
	}
	if (!err)
		gate.inside++;
	pthread_mutex_unlock(&gate.lock);
	return err;
}

bool change_try(void)
{
	bool may;

	pthread_mutex_lock(&gate.lock);
	may = !gate.frozen;
	gate.inside += may;
	pthread_mutex_unlock(&gate.lock);
	return may;
}

void change_end(void)
{
	pthread_mutex_lock(&gate.lock);
	if (!--gate.inside && gate.frozen)
		pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

/*
 * Freezes or thaws this mount for the engine. While another system copies the volume, no call of
 * this system stores into it.
 */
static int freeze(struct sg_vol *vol, bool on)
{
	struct timespec t = in_ms(FREEZE_MS);
	int err = 0;

	sg_settle_stop(vol, on);
	pthread_mutex_lock(&gate.lock);
	gate.frozen = on;
	while (on && gate.inside && !err)
		err = pthread_cond_timedwait(&gate.changed, &gate.lock, &t);
	if (err)
		gate.frozen = false;
	if (!gate.frozen)
		pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
	if (err)
		sg_settle_stop(vol, false);
	return err ? -EBUSY : 0;
}

/* --- callbacks of the engine ------------------------------------------------------------------ */

bool system_alive(void)
{
	return fs.vol.state && sg_load64(fs.vol.state) == fs.vol.alive;
}

static void on_damage(struct sg_vol *vol, u64 ino, u64 off)
{
	(void)off;
	if (fs.opt.errors != ERRORS_REMOUNT_RO || __atomic_exchange_n(&fs.damaged, true,
								       __ATOMIC_SEQ_CST))
		return;
	vol->read_only = true;
	tool_error("%s: is damaged at inode %llu, and read-only from now on: unmount it everywhere and run fsck.stargatefs",
		   fs.opt.volume, (unsigned long long)ino);
}

static void on_death(struct sg_vol *vol)
{
	(void)vol;
	tool_error("%s: another system has fenced this server: the server restarts, and joins again",
		   fs.opt.volume);
}

/*
 * Maps the new part of the file if the file has become longer. The new part follows the old one. If
 * several threads detect the new length at the same time, the first one maps the part.
 */
static u64 reach(struct sg_vol *vol)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	u64 size, had;
	struct stat st;

	if (fs.target.kind != TARGET_FILE || fstat(fs.target.fd, &st))
		return sg_load64(&vol->room);
	size = (u64)st.st_size & ~(SG_VOLUME_ALIGN - 1);
	if (size > fs.reserved)
		size = fs.reserved;
	pthread_mutex_lock(&lock);
	had = fs.target.size;
	if (size > had && mmap(vol->base + had, size - had, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, fs.target.fd, (off_t)had) != MAP_FAILED)
		fs.target.size = had = size;
	pthread_mutex_unlock(&lock);
	return had;
}

/* --- threads -------------------------------------------------------------------------------- */

static struct {
	pthread_t thread[4];
	unsigned int n;
	bool stop, settled;	/* settled: the last thread, which frees removed files, shall end */
} threads;

static bool stopped(void)
{
	return __atomic_load_n(&threads.stop, __ATOMIC_RELAXED);
}

static bool settled(void)
{
	return stopped() || __atomic_load_n(&threads.settled, __ATOMIC_RELAXED);
}

static void sleep_ms(int ms)
{
	for (; ms > 0 && !stopped(); ms -= 50)
		usleep(1000 * (unsigned int)(ms < 50 ? ms : 50));
}

/* --- processes of this machine that have died ------------------------------------------------ */

/*
 * Each server locks one byte of the volume's file, its witness. The number of its slot determines
 * the byte. The kernel releases that lock when the process ends. Another server may see the byte
 * locked, and later unlocked while the slot is still live. Then the process has certainly ended,
 * and that server fences the slot immediately. This works only for processes of the same boot, and
 * needs no common PID namespace. A tool locks no byte. In a common PID namespace, a server checks
 * by its PID whether a tool's process still exists.
 */
static u64 seen_locked[SG_SLOTS];	/* state words of slots whose byte was locked */

static struct flock witness_of(unsigned int slot)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = WITNESS + slot, .l_len = 1,
	};
}

static void witness_begin(void)
{
	struct flock l = witness_of((unsigned int)fs.vol.slot);

	if (fs.target.kind == TARGET_FILE)
		fcntl(fs.target.fd, F_OFD_SETLK, &l);
}

/* Reports whether the server of a slot has certainly ended, judged by its witness. */
static bool witness_is_gone(unsigned int i, const struct sg_slot *slot)
{
	struct flock l = witness_of(i);

	if (fs.target.kind != TARGET_FILE || fcntl(fs.target.fd, F_OFD_GETLK, &l))
		return false;
	if (l.l_type != F_UNLCK) {
		seen_locked[i] = slot->state;
		return false;
	}
	return seen_locked[i] == slot->state;
}

/*
 * Another server may go on for the mount of this one. The lapse keeps the files that it has open,
 * until the next server has opened them, and ends the lapse.
 */
static int fence_ended(struct sg_vol *vol, unsigned int i, const struct sg_slot *slot)
{
	if (slot->beat_ns == SERVER_BEAT_NS)
		return sg_fence_lapsed(vol, i, SG_SLOT_INC(slot->state));
	return sg_fence_slot(vol, i, SG_SLOT_INC(slot->state));
}

static void look_at_slot(struct sg_vol *vol, unsigned int i)
{
	struct sg_slot slot;

	if (sg_slot_read(vol, i, &slot) || SG_SLOT_STATE(slot.state) != SG_SLOT_LIVE ||
	    slot.named != SG_SLOT_INC(slot.state) || memcmp(slot.boot, vol->id.boot, 16))
		return;
	if (!witness_is_gone(i, &slot) && !sg_os_has_ended(slot.boot, slot.pid))
		return;
	seen_locked[i] = 0;
	/*
	 * The process may have left the volume before it ended. Then the slot is free, and fencing
	 * fails.
	 */
	if (!fence_ended(vol, i, &slot))
		tool_warn("%s: process %u of this machine (slot %u) has ended without leaving: fenced",
			  fs.opt.volume, SG_SLOT_PID(slot.pid), i);
}

static void look_for_the_dead(struct sg_vol *vol)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if ((int)i != vol->slot)
			look_at_slot(vol, i);
}

static void *watch(void *arg)
{
	int ms = 0;

	while (!stopped()) {
		ms = sg_watch(arg);
		if (ms < 0)
			_exit(STATUS_AGAIN);	/* fenced: the keeper starts another server */
		look_for_the_dead(arg);
		sleep_ms(ms);
	}
	return NULL;
}

static void *acknowledge(void *arg)
{
	int ms;

	while (!stopped()) {
		ms = sg_acknowledge(arg);
		sleep_ms(ms < 0 ? SETTLE_MS : ms);
	}
	return NULL;
}

static void *settle(void *arg)
{
	unsigned int ms;

	while (!settled()) {
		nodes_settle();
		if (change_try()) {
			sg_settle(arg);
			change_end();
		}
		for (ms = 0; ms < SETTLE_MS && !settled(); ms += 50)
			usleep(50000);
	}
	return NULL;
}

static void *freeze_watch(void *arg)
{
	int ms;

	while (!stopped()) {
		ms = sg_freeze_watch(arg);
		sleep_ms(ms < 0 ? SETTLE_MS : ms);
	}
	return NULL;
}

static int start_threads(void)
{
	void *(*const work[])(void *) = { watch, acknowledge, freeze_watch, settle };

	fs.vol.maintained = true;
	fs.vol.freeze_watched = true;
	for (threads.n = 0; threads.n < 4; threads.n++)
		if (pthread_create(&threads.thread[threads.n], NULL, work[threads.n], &fs.vol))
			return -EAGAIN;
	return 0;
}

static void stop_settling(void)
{
	if (threads.n < 4)
		return;
	__atomic_store_n(&threads.settled, true, __ATOMIC_RELAXED);
	sg_settle_stop(VOL, true);
	pthread_join(threads.thread[--threads.n], NULL);
	sg_settle_stop(VOL, false);
}

static void system_stop_threads(void)
{
	__atomic_store_n(&threads.stop, true, __ATOMIC_RELAXED);
	sg_settle_stop(VOL, true);
	while (threads.n)
		pthread_join(threads.thread[--threads.n], NULL);
	fs.vol.maintained = false;
	fs.vol.freeze_watched = false;
	fs.vol.freeze_mount = NULL;
	sg_settle_stop(VOL, false);
}

/* --- memory --------------------------------------------------------------------------------- */

void *reserve_room(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/*
 * Reserves address space for the largest size of the volume. So the volume can grow without a new
 * address.
 */
static int map_with_room(u64 most)
{
	struct target *t = &fs.target;
	u8 *all, *base;

	fs.reserved = t->size;
	if (t->kind != TARGET_FILE || most <= t->size)
		return 0;
	all = mmap(NULL, most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return 0;	/* the volume cannot grow while it is mounted here */
	base = mmap(all, t->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, t->fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	sg_os_unmapped(t->base);
	munmap(t->base, t->size);
	t->base = base;
	sg_os_mapped(t->base, t->size, t->fd);
	fs.reserved = most;
	return 0;
}

/*
 * Checks whether the volume needs write-back. Memory that is lost with the machine needs neither
 * write-back nor fsync().
 */
static void judge_memory(void)
{
	struct statfs st;

	fs.durable = fs.target.kind == TARGET_DAX;
	if (fs.target.kind != TARGET_FILE || fstatfs(fs.target.fd, &st))
		return;
	sg_os_forgets = st.f_type == TMPFS || st.f_type == HUGETLBFS;
	fs.durable = sg_os_forgets;
}

static int open_volume(void)
{
	struct target *t = &fs.target;
	struct sg_probe probe;
	int err = target_open(t, fs.opt.volume, TARGET_SHARE);

	if (err)
		return err;
	if (!t->base) {
		tool_error("%s: is empty: make a volume there with mkfs.stargatefs", t->path);
		return -EINVAL;
	}
	sg_probe(t->base, t->size, &probe);
	if (probe.valid) {
		err = map_with_room(probe.sb.chunk_cap * SG_CHUNK);
		if (err)
			return err;
	}
	judge_memory();
	return sg_open(VOL, t->base, t->size, false, NULL);
}

/* --- joining and leaving ---------------------------------------------------------------------- */

#define LAST_MS		5000	/* servers of a keeper end within this time after it */

static struct {
	unsigned int slot;
	u32 incarnation;
	bool fenced;
} last;		/* the last server of this mount */

/*
 * Reports whether the last server still runs: its slot has the same incarnation, and its witness is
 * locked.
 */
static bool last_is_alive(void)
{
	unsigned int slot = (unsigned int)fs.kept->slot - 1;
	struct flock l = witness_of(slot);
	struct sg_slot s;

	if (fs.target.kind != TARGET_FILE || slot >= SG_SLOTS || sg_slot_read(VOL, slot, &s) ||
	    SG_SLOT_INC(s.state) != (u32)fs.kept->incarnation ||
	    fcntl(fs.target.fd, F_OFD_GETLK, &l))
		return false;
	return l.l_type != F_UNLCK;
}

/* No system joins in a slot during its lapse. */
static bool another_slot_is_free(void)
{
	struct sg_slot s;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (!sg_slot_read(VOL, i, &s) && SG_SLOT_STATE(s.state) == SG_SLOT_FREE)
			return true;
	return false;
}

/*
 * Fences the last server of this mount. The keeper has seen that server end. A keeper that is
 * another program may have died itself, and its successor has not seen the end. Then the witness
 * shows whether the server has ended. The lapse keeps the files that the last server has open until
 * this server has opened them.
 */
static int fence_last(void)
{
	int ms = LAST_MS;

	if (!fs.kept->slot)
		return 0;
	while (fs.opt.kept && last_is_alive()) {
		if (ms <= 0) {
			tool_error("%s: the last server of this mount still runs: end it first",
				   fs.opt.volume);
			return -EINVAL;	/* already reported */
		}
		usleep(10000);
		ms -= 10;
	}
	last.slot = (unsigned int)fs.kept->slot - 1;
	last.incarnation = (u32)fs.kept->incarnation;
	last.fenced = true;
	if (another_slot_is_free()) {
		sg_fence_lapsed(VOL, last.slot, last.incarnation);
	} else {
		sg_fence_slot(VOL, last.slot, last.incarnation);
		sg_end_lapse_of(VOL, last.slot, last.incarnation);
	}
	fs.kept->slot = 0;
	return 0;
}

/* This server has opened the same files. */
static void succeed_last(void)
{
	if (last.fenced)
		sg_end_lapse_of(VOL, last.slot, last.incarnation);
}

static int join(void)
{
	struct sg_identity id;
	int err;

	fs.vol.in_use = node_in_use;
	fs.vol.reach = reach;
	fs.vol.on_death = on_death;
	fs.vol.on_damage = on_damage;
	fs.vol.freeze_mount = freeze;
	member_identity(&id);
	id.beat_ns = SERVER_BEAT_NS;
	err = fence_last();
	if (err)
		return err;
	err = sg_join(VOL, &id, MEMBER_WAIT_MS, false);
	if (err)
		return err;
	witness_begin();	/* must precede kept->slot: see last_is_alive() */
	fs.kept->incarnation = fs.vol.incarnation;
	fs.kept->slot = (u64)fs.vol.slot + 1;
	return start_threads();
}

int system_join(void)
{
	int err = open_volume();

	if (!err)
		err = node_prepare();
	if (!err)
		err = join();
	if (err) {
		if (fs.vol.why[0])
			tool_error("%s: %s", fs.opt.volume, fs.vol.why);
		else if (fs.target.fd >= 0 && err != -EINVAL)
			tool_error("%s: %s", fs.opt.volume, strerror(-err));
		return err;
	}
	node_inherit();
	succeed_last();
	if (fs.opt.read_only)
		fs.vol.read_only = true;
	__atomic_store_n(&fs.joined, true, __ATOMIC_RELEASE);
	return 0;
}

void system_leave(void)
{
	if (!fs.joined)
		return;
	stop_settling();	/* the settling thread uses nodes, too */
	node_close_all();
	system_stop_threads();
	sg_leave(VOL);
	fs.kept->slot = 0;
	target_close(&fs.target);
}
