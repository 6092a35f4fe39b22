// SPDX-License-Identifier: Apache-2.0
/*
 * flock, fcntl and open-file locks. They exclude processes of all systems, because each lock is in
 * the volume's table.
 *
 * A second table, in inherited memory, lists the locks of this system. It shows which locks to
 * release when a file is closed. From it, the next server takes the same locks again. A request
 * that waits occupies no thread. One thread retries all waiting requests, soon after a release in
 * this system, and at least every 20 ms. That thread waits for no other system. A second thread,
 * the patient thread, does so to lengthen a full chain of locks.
 *
 * Another system may be paused while it has a chain locked. Then the next server still serves all
 * calls, and takes the locks of that chain again as soon as it can. Until then, each call for a
 * lock of such a file waits. So no process gets a lock that a process of this system already has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include "fuse.h"

#define NAP_MS_MIN	1
#define NAP_MS_MAX	20

struct waiter {
	struct waiter *next;
	struct kept_wait *kept;
	struct sg_userlock want;
	struct sg_userlock_wait wait;
	bool interrupted;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct waiter *first;
	pthread_t thread, patient;
	bool running, patience, stop, again;
	/*
	 * for the patient thread: the node whose chain must grow; the previous such node; its
	 * result
	 */
	pthread_cond_t wanted;
	u64 grow, grown;
	int grow_err;
} waits = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.wanted = PTHREAD_COND_INITIALIZER,
};
static __thread bool is_patient;

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- the locks of this system ---------------------------------------------------------------- */

static bool table_add(const struct kept_lock *l)
{
	struct inherited *k = fs.kept;

	if (k->locks == LOCKS_KEPT)
		return false;
	k->lock[k->locks] = *l;
	__atomic_store_n(&k->locks, k->locks + 1, __ATOMIC_RELEASE);
	return true;
}

static bool same_owner(const struct kept_lock *a, const struct kept_lock *b)
{
	return a->id == b->id && a->owner == b->owner && a->kind == b->kind;
}

/*
 * Removes an entry, by moving the last one there. If the server ends meanwhile, the entry has no
 * node, or the last one occurs twice: the next server ignores both.
 */
static void table_remove(u64 i)
{
	struct inherited *k = fs.kept;
	struct kept_lock moved = k->lock[k->locks - 1];
	u64 id = moved.id;

	__atomic_store_n(&k->lock[i].id, 0, __ATOMIC_SEQ_CST);
	moved.id = 0;
	k->lock[i] = moved;
	__atomic_store_n(&k->lock[i].id, id, __ATOMIC_SEQ_CST);
	__atomic_store_n(&k->locks, k->locks - 1, __ATOMIC_SEQ_CST);
}

/*
 * Removes @range from the locks of its owner. Up to two parts of each lock remain. If the server
 * ends meanwhile, the table has them: the part behind the range is added before the lock ends in
 * front of it.
 */
static void table_cut(const struct kept_lock *range)
{
	struct inherited *k = fs.kept;
	struct kept_lock *l, rest;
	u64 i = 0;

	while (i < k->locks) {
		l = &k->lock[i];
		if (!same_owner(l, range) || l->last < range->start || range->last < l->start) {
			i++;
		} else if (l->start < range->start) {
			rest = *l;
			rest.start = range->last + 1;
			if (range->last < l->last)
				table_add(&rest);
			__atomic_store_n(&l->last, range->start - 1, __ATOMIC_SEQ_CST);
		} else if (range->last < l->last) {
			__atomic_store_n(&l->start, range->last + 1, __ATOMIC_SEQ_CST);
		} else {
			table_remove(i);
		}
	}
}

static struct kept_lock kept_of(u64 id, u64 fh, const struct sg_userlock *want)
{
	return (struct kept_lock){
		.id = id, .fh = fh, .owner = want->owner, .start = want->start, .last = want->last,
		.kind = want->kind, .exclusive = want->exclusive, .pid = want->pid,
	};
}

static void table_note(u64 id, u64 fh, const struct sg_userlock *want, bool held)
{
	struct kept_lock l = kept_of(id, fh, want);

	pthread_mutex_lock(&table_lock);
	table_cut(&l);
	if (held)
		table_add(&l);
	pthread_mutex_unlock(&table_lock);
}

/*
 * Checks, before a lock is taken, that the table has room for it and for the parts of a lock that
 * it splits.
 */
static bool table_has_room(void)
{
	return __atomic_load_n(&fs.kept->locks, __ATOMIC_ACQUIRE) + 2 <= LOCKS_KEPT;
}

/* Finds the first lock of a node that has this owner, or that was taken through the handle @fh. */
static bool table_find(u64 id, unsigned int kind, const u64 *owner, const u64 *fh,
		       struct kept_lock *out)
{
	const struct inherited *k = fs.kept;
	bool found = false;
	u64 i;

	if (!__atomic_load_n(&k->locks, __ATOMIC_ACQUIRE))
		return false;
	pthread_mutex_lock(&table_lock);
	for (i = 0; i < k->locks && !found; i++) {
		*out = k->lock[i];
		found = out->id == id && out->kind == kind && (!owner || out->owner == *owner) &&
			(!fh || out->fh == *fh);
	}
	pthread_mutex_unlock(&table_lock);
	return found;
}

/* --- locks of the last server ----------------------------------------------------------------- */

/*
 * Held while this server takes a lock of the last server again. So no process releases that lock
 * meanwhile. Taken before table_lock.
 */
static pthread_mutex_t behind_lock = PTHREAD_MUTEX_INITIALIZER;
static bool any_behind;

static void note_taken(const struct kept_lock *l)
{
	struct inherited *k = fs.kept;
	u64 i;

	pthread_mutex_lock(&table_lock);
	for (i = 0; i < k->locks; i++)
		if (same_owner(&k->lock[i], l) && k->lock[i].start == l->start &&
		    k->lock[i].last == l->last)
			k->lock[i].behind = 0;
	pthread_mutex_unlock(&table_lock);
}

/*
 * Removes a lock that another system took first, and logs the loss. The process continues without
 * its lock.
 */
static void note_lost(const struct kept_lock *l, bool gone)
{
	pthread_mutex_lock(&table_lock);
	table_cut(l);
	pthread_mutex_unlock(&table_lock);
	if (!gone)
		tool_warn("a lock of process %u on inode %llu is lost: another system took it while the server restarted",
			  l->pid, (unsigned long long)(l->id & SG_INO_MAX));
}

/*
 * Takes a lock of the last server again. Returns -EBUSY or -ENOBUFS if it would have to wait for
 * another system. The caller holds behind_lock.
 */
static int take_again(const struct kept_lock *l)
{
	struct sg_userlock want = {
		.kind = l->kind, .exclusive = l->exclusive, .pid = l->pid, .owner = l->owner,
		.start = l->start, .last = l->last, .slot = -1, .brief = true,
	};
	struct sg_iref ref;
	bool gone = node_ref(l->id, &ref);
	int err = gone ? 0 : sg_userlock_set(VOL, &ref, &want, NULL, NULL);

	if (err == -EBUSY || err == -ENOBUFS || err == -EINTR)
		return err;
	if (err || gone)
		note_lost(l, gone);
	else
		note_taken(l);
	return 0;
}

/*
 * Finds the next lock of the last server, from *@at on. If @id is not 0, only locks of that node
 * count.
 */
static bool next_behind(u64 id, u64 *at, struct kept_lock *l)
{
	const struct inherited *k = fs.kept;
	bool found = false;

	pthread_mutex_lock(&table_lock);
	for (; *at < k->locks && !found; (*at)++) {
		*l = k->lock[*at];
		found = l->behind && l->id && (!id || l->id == id);
	}
	pthread_mutex_unlock(&table_lock);
	return found;
}

static int try_those_of(u64 id, struct kept_lock *l)
{
	int err = 0;
	u64 at = 0;

	pthread_mutex_lock(&behind_lock);
	while (!err && next_behind(id, &at, l)) {
		err = take_again(l);
		at = 0;		/* the removal of a lost lock changes the order */
	}
	pthread_mutex_unlock(&behind_lock);
	return err;
}

/*
 * Takes the last server's locks of a node again, before any other operation on its locks. Returns
 * -EINTR if the caller was interrupted.
 */
static int take_those_of(u64 id)
{
	struct kept_lock l;
	struct sg_iref ref;
	int err;

	if (!__atomic_load_n(&any_behind, __ATOMIC_ACQUIRE))
		return 0;
	while ((err = try_those_of(id, &l))) {
		if (err != -EINTR && node_ref(id, &ref))
			continue;	/* the node has been freed, with its locks */
		if (err != -EINTR)
			err = sg_userlock_await(VOL, &ref, err);
		if (err == -EINTR)
			return err;
		if (err) {	/* the chain is unreadable, or cannot grow */
			pthread_mutex_lock(&behind_lock);
			note_lost(&l, false);
			pthread_mutex_unlock(&behind_lock);
		}
	}
	return 0;
}

/*
 * Takes all locks of the last server again that need no wait. Returns a node whose chain must grow
 * for such a lock, or 0.
 */
static u64 take_some(void)
{
	struct kept_lock l;
	u64 at = 0, full = 0;
	bool left = false;
	int err;

	if (!__atomic_load_n(&any_behind, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&behind_lock);
	while (next_behind(0, &at, &l)) {
		err = take_again(&l);
		left |= err;
		full = err == -ENOBUFS ? l.id : full;
	}
	at = 0;
	if (!left && !next_behind(0, &at, &l))
		__atomic_store_n(&any_behind, false, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&behind_lock);
	return full;
}

/* --- requests ------------------------------------------------------------------------------- */

static struct sg_userlock lock_of(const struct fuse_lk_in *in)
{
	struct sg_userlock l = {
		.kind = in->lk_flags & FUSE_LK_FLOCK ? SG_USERLOCK_FLOCK : SG_USERLOCK_POSIX,
		.exclusive = in->lk.type == F_WRLCK,
		.pid = in->lk.pid,
		.owner = in->owner,
		.start = in->lk.start,
		.last = in->lk.end,
		.slot = -1,
	};

	if (l.kind == SG_USERLOCK_FLOCK) {
		l.start = 0;
		l.last = SG_USERLOCK_MAX;
	}
	if (l.last > SG_USERLOCK_MAX)
		l.last = SG_USERLOCK_MAX;
	return l;
}

static void look_again(void)
{
	if (!__atomic_load_n(&waits.first, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&waits.lock);
	waits.again = true;
	pthread_cond_signal(&waits.changed);
	pthread_mutex_unlock(&waits.lock);
}

static int release(u64 id, const struct sg_iref *ref, u64 fh, const struct sg_userlock *range)
{
	int err = sg_userlock_clear(VOL, ref, range);

	if (!err)
		table_note(id, fh, range, false);
	look_again();
	return err;
}

/* Releases all locks of a process on a file that it has closed. */
static void release_found(const struct kept_lock *l)
{
	struct sg_userlock range = {
		.kind = l->kind, .owner = l->owner, .start = 0, .last = SG_USERLOCK_MAX, .slot = -1,
	};
	struct sg_iref ref;

	/* first in this table: then the server does not take the lock again */
	pthread_mutex_lock(&behind_lock);
	table_note(l->id, l->fh, &range, false);
	pthread_mutex_unlock(&behind_lock);
	if (!node_ref(l->id, &ref) && sg_userlock_clear(VOL, &ref, &range) == -EINTR) {
		range.brief = true;
		sg_userlock_clear_later(VOL, &ref, &range);
	}
	look_again();
}

void locks_release(u64 id, u64 fh, u64 flock_owner, bool flock)
{
	struct kept_lock l;

	if (flock && table_find(id, SG_USERLOCK_FLOCK, &flock_owner, NULL, &l))
		release_found(&l);
	/*
	 * Each process has closed this open file, and lost its own locks by that. Only locks of the
	 * open file itself remain.
	 */
	while (table_find(id, SG_USERLOCK_POSIX, NULL, &fh, &l))
		release_found(&l);
}

int op_flush(void)
{
	const struct fuse_flush_in *in = ARG(struct fuse_flush_in);
	struct kept_lock l;

	if (in && table_find(IN->nodeid, SG_USERLOCK_POSIX, &in->lock_owner, NULL, &l))
		release_found(&l);
	return reply(NULL, 0);
}

int op_getlk(void)
{
	const struct fuse_lk_in *in = ARG(struct fuse_lk_in);
	struct fuse_lk_out out = { 0 };
	struct sg_userlock want, by;
	struct sg_iref ref;
	int err = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (!err)
		err = take_those_of(IN->nodeid);
	if (err)
		return err;
	want = lock_of(in);
	err = sg_userlock_test(VOL, &ref, &want, &by);
	out.lk.type = F_UNLCK;
	if (err == -EAGAIN) {
		out.lk.type = by.exclusive ? F_WRLCK : F_RDLCK;
		out.lk.start = by.start;
		out.lk.end = by.last;
		/* a process of another system has no number in this one */
		out.lk.pid = by.slot < 0 ? by.pid : 0;
		err = 0;
	}
	return err ? err : reply(&out, sizeof(out));
}

/* --- waiting -------------------------------------------------------------------------------- */

static struct kept_wait *keep_wait(u64 unique, u64 id, const struct fuse_lk_in *in)
{
	struct kept_wait *w = fs.kept->wait;

	while (w < fs.kept->wait + WAITS_KEPT && w->unique)
		w++;
	if (w == fs.kept->wait + WAITS_KEPT)
		return NULL;
	w->id = id;
	w->in = *in;
	w->interrupted = 0;
	w->answered = 0;
	__atomic_store_n(&w->unique, unique, __ATOMIC_RELEASE);
	return w;
}

/* Adds a request to those that wait. The caller holds waits.lock. */
static bool stand_by(struct kept_wait *kept, const struct sg_userlock *want,
		     const struct sg_userlock_wait *wait)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->kept = kept;
	w->want = *want;
	w->want.brief = true;
	w->wait = *wait;
	w->interrupted = kept->interrupted;
	w->next = waits.first;
	waits.first = w;
	waits.again = true;
	pthread_cond_signal(&waits.changed);
	return true;
}

static int wait_for_lock(const struct fuse_lk_in *in, const struct sg_iref *ref,
			 const struct sg_userlock *want, struct sg_userlock_wait *wait)
{
	struct kept_wait *kept;
	bool waiting = false;

	pthread_mutex_lock(&waits.lock);
	kept = keep_wait(IN->unique, IN->nodeid, in);
	if (kept)
		waiting = stand_by(kept, want, wait);
	if (kept && !waiting)
		kept->unique = 0;
	if (waiting)
		reply_later();
	pthread_mutex_unlock(&waits.lock);
	if (waiting)
		return 0;
	sg_userlock_give_up(VOL, ref, wait);
	return -ENOLCK;
}

int op_setlk(void)
{
	const struct fuse_lk_in *in = ARG(struct fuse_lk_in);
	bool waits_for = IN->opcode == FUSE_SETLKW;
	struct sg_userlock_wait wait = { 0 };
	struct sg_userlock want;
	struct sg_iref ref;
	int err = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (!err)
		err = take_those_of(IN->nodeid);
	if (err)
		return err;
	want = lock_of(in);
	if (in->lk.type == F_UNLCK) {
		err = release(IN->nodeid, &ref, in->fh, &want);
		return err ? err : reply(NULL, 0);
	}
	if (!table_has_room())
		return -ENOLCK;
	err = sg_userlock_set(VOL, &ref, &want, waits_for ? &wait : NULL, NULL);
	if (!err)
		table_note(IN->nodeid, in->fh, &want, true);
	else if (err == -EAGAIN && want.kind == SG_USERLOCK_FLOCK)	/* it lost its old lock */
		table_note(IN->nodeid, in->fh, &want, false);
	if (err == -EAGAIN && waits_for)
		return wait_for_lock(in, &ref, &want, &wait);
	if (waits_for)
		sg_userlock_give_up(VOL, &ref, &wait);
	look_again();	/* the lock may have become weaker */
	return err ? err : reply(NULL, 0);
}

/* Finds a waiting request. The caller holds waits.lock. */
static struct waiter *find_waiter(u64 unique)
{
	struct waiter *w = waits.first;

	while (w && w->kept->unique != unique)
		w = w->next;
	return w;
}

bool locks_wait(u64 unique)
{
	bool found;

	pthread_mutex_lock(&waits.lock);
	found = find_waiter(unique);
	pthread_mutex_unlock(&waits.lock);
	return found;
}

bool locks_interrupt(u64 unique)
{
	struct waiter *w;

	pthread_mutex_lock(&waits.lock);
	w = find_waiter(unique);
	if (w) {
		w->kept->interrupted = 1;	/* the next server reads this, too */
		w->interrupted = true;
		waits.again = true;
		pthread_cond_signal(&waits.changed);
	}
	pthread_mutex_unlock(&waits.lock);
	return w;
}

/*
 * Lets the patient thread lengthen the chain of a node. Returns -EAGAIN while that thread tries,
 * and the reason if it has failed. The caller holds waits.lock.
 */
static int grow_chain(u64 id)
{
	int err = waits.grown == id ? waits.grow_err : 0;

	waits.grown = waits.grown == id ? 0 : waits.grown;
	if (err || !waits.patience)
		return err ? err : -ENOLCK;
	if (!waits.grow) {
		waits.grow = id;
		pthread_cond_signal(&waits.wanted);
	}
	return -EAGAIN;
}

/* Retries a request that waits. Returns its result, or -EAGAIN if it must wait longer. */
static int try_again(struct waiter *w)
{
	struct sg_iref ref;
	struct kept_lock l;
	int err = node_ref(w->kept->id, &ref);

	if (err)
		return err;
	if (w->interrupted) {
		sg_userlock_give_up(VOL, &ref, &w->wait);
		return -EINTR;
	}
	if (__atomic_load_n(&any_behind, __ATOMIC_ACQUIRE) && try_those_of(w->kept->id, &l))
		return -EAGAIN;
	err = table_has_room() ? sg_userlock_set(VOL, &ref, &w->want, &w->wait, NULL) : -ENOLCK;
	if (err == -EBUSY)
		return -EAGAIN;
	if (err == -ENOBUFS) {
		err = grow_chain(w->kept->id);
		if (err == -EAGAIN)
			return err;
	}
	if (err == -EAGAIN)
		err = sg_userlock_deadlock(VOL, &ref, &w->want, &w->wait);
	if (err == -EAGAIN)
		return err;
	if (!err)
		table_note(w->kept->id, w->kept->in.fh, &w->want, true);
	sg_userlock_give_up(VOL, &ref, &w->wait);
	return err;
}

/*
 * Sends the reply to a request. If the server dies meanwhile, the next server only repeats the
 * reply. It does not take the lock: a process that has the reply may have released it by then.
 */
static void end_wait(struct kept_wait *w)
{
	answer(w->unique, w->err, NULL, 0);
	__atomic_store_n(&w->unique, 0, __ATOMIC_RELEASE);
}

/*
 * Retries all waiting requests. Returns true if it has replied to one. The caller holds waits.lock.
 */
static bool try_all(void)
{
	struct waiter **at = &waits.first, *w;
	bool any = false;
	int err;

	while ((w = *at)) {
		err = try_again(w);
		if (err == -EAGAIN) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->kept->err = err;
		__atomic_store_n(&w->kept->answered, 1, __ATOMIC_RELEASE);
		end_wait(w->kept);
		free(w);
		any = true;
	}
	return any;
}

static void nap(unsigned int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_cond_timedwait(&waits.changed, &waits.lock, &until);
}

bool locks_end_wait(void)
{
	return is_patient && __atomic_load_n(&waits.stop, __ATOMIC_RELAXED);
}

static int grow_patiently(u64 id)
{
	bool behind = __atomic_load_n(&any_behind, __ATOMIC_ACQUIRE);
	struct sg_iref ref;
	int err = node_ref(id, &ref);

	if (!err)
		err = change_begin();
	if (err)
		return 0;	/* the next retry of the request detects a lasting error */
	err = take_those_of(id);
	if (!err && !behind)
		err = sg_userlock_await(VOL, &ref, -ENOBUFS);
	change_end();
	return err == -EINTR ? 0 : err;
}

static void *be_patient(void *arg)
{
	int err;

	(void)arg;
	is_patient = true;
	pthread_mutex_lock(&waits.lock);
	while (!waits.stop) {
		if (!waits.grow) {
			pthread_cond_wait(&waits.wanted, &waits.lock);
			continue;
		}
		pthread_mutex_unlock(&waits.lock);
		err = grow_patiently(waits.grow);
		pthread_mutex_lock(&waits.lock);
		waits.grown = waits.grow;
		waits.grow_err = err;
		waits.grow = 0;
		waits.again = true;
		pthread_cond_signal(&waits.changed);
	}
	pthread_mutex_unlock(&waits.lock);
	return NULL;
}

/*
 * Takes the last server's locks again. The caller holds waits.lock, which this function releases
 * meanwhile.
 */
static void try_those_behind(void)
{
	u64 full;

	pthread_mutex_unlock(&waits.lock);
	full = take_some();
	pthread_mutex_lock(&waits.lock);
	if (full)
		grow_chain(full);
}

static void *serve_waits(void *arg)
{
	unsigned int ms = NAP_MS_MIN;

	(void)arg;
	pthread_mutex_lock(&waits.lock);
	while (!waits.stop) {
		if (!waits.first && !__atomic_load_n(&any_behind, __ATOMIC_ACQUIRE)) {
			pthread_cond_wait(&waits.changed, &waits.lock);
			ms = NAP_MS_MIN;
			continue;
		}
		if (waits.again)
			ms = NAP_MS_MIN;
		waits.again = false;
		if (change_try()) {
			try_those_behind();
			if (try_all())
				ms = NAP_MS_MIN;
			change_end();
		}
		if (!waits.again && !waits.stop)
			nap(ms);
		ms = 2 * ms < NAP_MS_MAX ? 2 * ms : NAP_MS_MAX;
	}
	pthread_mutex_unlock(&waits.lock);
	return NULL;
}

/* --- the next server ------------------------------------------------------------------------- */

void locks_start(void)
{
	struct inherited *k = fs.kept;
	struct sg_userlock_wait none = { 0 };
	struct kept_wait *w;
	u64 i;

	for (i = k->locks; i--;)
		if (!k->lock[i].id)	/* the last server was removing it */
			table_remove(i);
	for (i = 0; i < k->locks; i++)
		k->lock[i].behind = 1;
	any_behind = k->locks;
	if (change_try()) {
		take_some();
		change_end();
	}
	pthread_mutex_lock(&waits.lock);
	for (w = k->wait; w < k->wait + WAITS_KEPT; w++) {
		struct sg_userlock want = lock_of(&w->in);

		if (w->unique && !w->answered && stand_by(w, &want, &none))
			continue;
		if (w->unique && !w->answered)
			w->err = -ENOLCK;
		if (w->unique)
			end_wait(w);
	}
	pthread_mutex_unlock(&waits.lock);
}

void locks_serve(void)
{
	waits.running = !pthread_create(&waits.thread, NULL, serve_waits, NULL);
	waits.patience = !pthread_create(&waits.patient, NULL, be_patient, NULL);
}

void locks_stop(void)
{
	pthread_mutex_lock(&waits.lock);
	__atomic_store_n(&waits.stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&waits.changed);
	pthread_cond_signal(&waits.wanted);
	pthread_mutex_unlock(&waits.lock);
	if (waits.running)
		pthread_join(waits.thread, NULL);
	if (waits.patience)
		pthread_join(waits.patient, NULL);
}
