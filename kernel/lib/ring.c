// SPDX-License-Identifier: Apache-2.0
/*
 * Rings: records from any sender to one of the receivers. A process performs the operations of
 * uapi/ringword.h itself. The kernel waits, wakes waiters, and ends the claims of dead receivers.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib.h"

#define PAGE		4096u
#define BATCH		STARGATE_BATCH
#define SWEEP_NS	100000000ULL	/* between checks for dead receivers */
#define LOOK_NS		1000000000ULL	/* between checks of an empty ring: a forged word */

static int ask(const struct stargate_ring *r, unsigned int op, unsigned int part, u64 *value,
	       u64 until)
{
	return sgl_ask_part(&r->object, op, SG_SEM_PART(part), value, until);
}

static int ask_to_add(const struct stargate_ring *r, unsigned int part, u64 by)
{
	return ask(r, SG_SEM_OP_ADVANCE, part, &by, 0);
}

static int ask_to_wait(const struct stargate_ring *r, unsigned int part, u64 count, u64 until)
{
	return ask(r, SG_SEM_OP_AWAIT, part, &count, until);
}

/* --- handles ---------------------------------------------------------------------------------- */

/* The data is mapped twice, so each record is contiguous. */
static int map_ring(struct stargate_ring *r)
{
	const int prot = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_FIXED;
	size_t all = PAGE + 2 * (size_t)r->size;
	unsigned char *base = mmap(NULL, all, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (base == MAP_FAILED)
		return errno;
	if (mmap(base, PAGE + r->size, prot, how, r->object.fd, 0) == MAP_FAILED ||
	    mmap(base + PAGE + r->size, r->size, prot, how, r->object.fd, PAGE) == MAP_FAILED) {
		err = errno;
		munmap(base, all);
		return err;
	}
	r->base = base;
	r->object.page = r->w.page = (void *)base;
	r->w.data = base + PAGE;
	r->w.grains = r->size / SG_RING_GRAIN;
	return 0;
}

static int ring_size(struct stargate_ring *r)
{
	struct sg_ioc_sem_stat st = { 0 };

	if (ioctl(r->object.fd, SG_IOC_SEM_STAT, &st))
		return errno;
	if (st.initial < SG_RING_MIN || st.initial > SG_RING_MAX || st.initial & (st.initial - 1))
		return EUCLEAN;
	r->size = st.initial;
	r->w.single = st.flags & SG_SEM_SINGLE;
	return 0;
}

static int get_ring(struct stargate_ring *r, const char *volume, struct sg_ioc_sem_open *o)
{
	int err = sgl_open_volume(volume, false, &r->object.fd);

	if (err)
		return err;
	err = sgl_get_object(&r->object, o, 0);
	if (!err) {
		err = ring_size(r);
		if (!err)
			err = map_ring(r);
		if (err)
			sgl_remove(&r->object);
	}
	if (err)
		sgl_close(r->object.fd);
	return err;
}

static int open_ring(stargate_ring **out, const char *volume, struct sg_ioc_sem_open *o)
{
	struct stargate_ring *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return ENOMEM;
	err = get_ring(r, volume, o);
	if (err)
		free(r);
	else
		*out = r;
	return err;
}

API int stargate_ring_create(stargate_ring **out, const char *volume, const char *name,
			     const struct stargate_new *what, unsigned int how)
{
	u64 size = SG_RING_MIN;
	struct sg_ioc_sem_open o = {
		.type = SG_SEM_RING, .mode = what->mode,
		.how = SG_SEM_CREATE | (how & STARGATE_EXCLUSIVE ? SG_SEM_EXCL : 0),
		.flags = SG_SEM_MAPPED | (what->flags & STARGATE_SINGLE ? SG_SEM_SINGLE : 0),
		.life = !!(what->flags & STARGATE_LAST_USER),
	};

	if (what->type != STARGATE_RING || what->initial > SG_RING_MAX ||
	    how & ~STARGATE_EXCLUSIVE || what->flags & ~(STARGATE_LAST_USER | STARGATE_SINGLE))
		return EINVAL;
	while (size < what->initial)
		size *= 2;
	o.initial = size;
	sgl_put_name(o.name, name);
	return open_ring(out, volume, &o);
}

API int stargate_ring_open(stargate_ring **out, const char *volume, const char *name)
{
	struct sg_ioc_sem_open o = { .type = SG_SEM_RING };

	sgl_put_name(o.name, name);
	return open_ring(out, volume, &o);
}

API void stargate_ring_close(stargate_ring *r)
{
	if (!r)
		return;
	sgl_remove(&r->object);
	if (r->object.page)
		munmap(r->base, PAGE + 2 * (size_t)r->size);
	sgl_close(r->object.fd);
	free(r);
}

API int stargate_ring_fd(const stargate_ring *r)
{
	return r->object.fd;
}

API size_t stargate_ring_most(const stargate_ring *r)
{
	return sg_ringw_most(&r->w);
}

static void show_ring(struct stargate_ring_stat *out, const struct sg_ioc_sem_stat *st)
{
	memset(out, 0, sizeof(*out));
	out->size = st->initial;
	out->used = st->value;
	out->sent = st->sent;
	out->claims_lost = st->claims_lost;
	out->receivers = st->receivers;
	out->single = !!(st->flags & SG_SEM_SINGLE);
}

API int stargate_ring_fstat(stargate_ring *r, struct stargate_ring_stat *out)
{
	struct sg_ioc_sem_stat st = { 0 };

	if (ioctl(r->object.fd, SG_IOC_SEM_STAT, &st))
		return errno;
	show_ring(out, &st);
	return 0;
}

API int stargate_ring_stat(const char *volume, const char *name, struct stargate_ring_stat *out)
{
	struct sg_ioc_sem_stat st = { 0 };
	int err = sgl_stat(volume, name, &st);

	if (!err && st.type != SG_SEM_RING)
		err = EPROTOTYPE;
	if (!err)
		show_ring(out, &st);
	return err;
}

/* --- sending ---------------------------------------------------------------------------------- */

/*
 * The process stays on these paths while no other thread competes. They work with a copy of struct
 * sg_ring: the compiler cannot know that no store to the ring changes the original.
 */
#define FAST	static inline __attribute__((always_inline))
#define SLOW	static __attribute__((noinline, cold))

/*
 * A sender that dies has changed nothing that readers see, so there is nothing to repair. Its bytes
 * lie behind TAIL, where the next record goes.
 */
SLOW int lock_slowly(struct stargate_ring *r, u64 until)
{
	u64 value = 0;
	int err = ask(r, SG_SEM_OP_LOCK, SG_RING_LOCK, &value, until);

	if (err == EOWNERDEAD)
		err = ask(r, SG_SEM_OP_CONSISTENT, SG_RING_LOCK, &value, 0);
	return err;
}

SLOW int unlock_slowly(struct stargate_ring *r)
{
	u64 value = 0;

	return ask(r, SG_SEM_OP_UNLOCK, SG_RING_LOCK, &value, 0);
}

FAST int unlock(struct stargate_ring *r, u64 me)
{
	return me && sg_semw_give(r->w.page, me) ? 0 : unlock_slowly(r);
}

static int no_room(struct stargate_ring *r, u64 until)
{
	u64 now = stargate_in(0), value = 0;

	if (now - r->swept > SWEEP_NS) {
		r->swept = now;
		return ask(r, SG_SEM_OP_SWEEP, SG_RING_LOCK, &value, 0);
	}
	if (!until)
		return EAGAIN;
	return now >= until ? ETIMEDOUT : 0;
}

/*
 * Waits for receivers while it has the lock. So senders get their turns in order, and the sender of
 * a large record does not starve.
 */
static int wait_for_room(struct stargate_ring *r, u64 tail, u64 n, u64 until)
{
	enum sg_ring_result res = SG_RING_NONE;
	int err = 0;

	while (!err && res == SG_RING_NONE) {
		u64 count = sg_ringw_want_room(&r->w), pause = stargate_in(SWEEP_NS);

		res = sg_ringw_room(&r->w, tail, n);
		if (res != SG_RING_NONE)
			break;
		if (until)
			err = ask_to_wait(r, SG_RING_ROOM, count, until < pause ? until : pause);
		if (!err || err == ETIMEDOUT)
			err = no_room(r, until);
	}
	if (err)
		return err;
	return res == SG_RING_OK ? 0 : EUCLEAN;
}

/* Releases the lock if the ring has no room. */
SLOW int room_slowly(struct stargate_ring *r, u64 me, u64 tail, u64 n, u64 until)
{
	enum sg_ring_result res = sg_ringw_room(&r->w, tail, n);
	int err = 0;

	if (res == SG_RING_NONE)
		err = wait_for_room(r, tail, n, until);
	else if (res != SG_RING_OK)
		err = EUCLEAN;
	if (err)
		unlock(r, me);
	return err;
}

/* If it returns 0, the caller has the lock, and *tail is the position of its record. */
FAST int reserve(struct stargate_ring *r, const struct sg_ring *w, u64 me, u64 len, u64 *tail,
		 u64 until)
{
	u64 n = sg_ringw_grains(len);
	int err;

	if (len > sg_ringw_most(w))
		return EMSGSIZE;
	if (!me || !sg_semw_take(w->page, me)) {
		err = lock_slowly(r, until);
		if (err)
			return err;
	}
	*tail = sg_ringw_tail(w);
	return sg_ringw_has_room(w, *tail, n) ? 0 : room_slowly(r, me, *tail, n, until);
}

SLOW int publish_slowly(struct stargate_ring *r, enum sg_ring_result res, u64 n)
{
	return res == SG_RING_ASK ? ask_to_add(r, SG_RING_TAIL, n) : EUCLEAN;
}

FAST int publish(struct stargate_ring *r, const struct sg_ring *w, u64 tail, u64 n, u64 count)
{
	enum sg_ring_result res = sg_ringw_publish(w, tail, n, count);

	return res == SG_RING_OK ? 0 : publish_slowly(r, res, n);
}

/* Publishes the record at @tail, which is complete, and releases the lock. */
FAST int commit(struct stargate_ring *r, const struct sg_ring *w, u64 me, u64 tail, u64 n)
{
	int err = publish(r, w, tail, n, 1), unlocked = unlock(r, me);

	return err ? err : unlocked;
}

API int stargate_ring_send(stargate_ring *r, uint32_t tag, const void *from, size_t len,
			   uint64_t until)
{
	const struct sg_ring w = r->w;
	u64 me, tail;
	int err;

	if (!r->object.page)
		return ENOTCONN;
	me = sgl_me(&r->object);
	err = reserve(r, &w, me, len, &tail, until);
	if (err)
		return err;
	/* before the copy, so that fewer values must survive the copy */
	sg_ringw_head(&w, tail, len, tag);
	if (len)	/* for 0 bytes, @from may be NULL */
		memcpy(sg_ringw_record(&w, tail) + 1, from, len);
	return commit(r, &w, me, tail, sg_ringw_grains(len));
}

/*
 * Stores records behind the tail while there is room, and publishes them together. The caller has
 * checked that the first one has room.
 */
static int put_some(struct stargate_ring *r, const struct stargate_record *rec, size_t most,
		    u64 *tail, size_t *put)
{
	const struct sg_ring w = r->w;
	u64 begin = *tail, pos = begin, n;

	for (*put = 0; *put < most; ++*put, ++rec, pos += n) {
		n = sg_ringw_grains(rec->len);
		if (*put && (pos + n - begin > w.grains ||
			     !sg_ringw_has_room(&w, begin, pos + n - begin)))
			break;
		sg_ringw_head(&w, pos, rec->len, rec->tag);
		if (rec->len)
			memcpy(sg_ringw_record(&w, pos) + 1, rec->data, rec->len);
	}
	*tail = pos;
	return publish(r, &w, begin, pos - begin, *put);
}

static bool all_fit(const struct stargate_ring *r, const struct stargate_record *rec, size_t n)
{
	size_t most = stargate_ring_most(r);

	while (n && rec->len <= most)
		n--, rec++;
	return !n;
}

API int stargate_ring_send_many(stargate_ring *r, const struct stargate_record *rec, size_t n,
				size_t *sent, uint64_t until)
{
	size_t put;
	u64 me, tail;
	int err;

	*sent = 0;
	if (!r->object.page)
		return ENOTCONN;
	if (!n || !all_fit(r, rec, n))
		return n ? EMSGSIZE : 0;
	me = sgl_me(&r->object);
	err = reserve(r, &r->w, me, rec->len, &tail, until);
	while (!err) {
		err = put_some(r, rec + *sent, n - *sent, &tail, &put);
		*sent += err ? 0 : put;
		if (err || *sent == n) {
			int unlocked = unlock(r, me);

			return err ? err : unlocked;
		}
		put = sg_ringw_grains(rec[*sent].len);
		if (!sg_ringw_has_room(&r->w, tail, put))
			err = room_slowly(r, me, tail, put, until);
	}
	return err;
}

API int stargate_ring_reserve(stargate_ring *r, size_t len, void **at, uint64_t until)
{
	const struct sg_ring w = r->w;
	u64 tail;
	int err;

	if (!r->object.page)
		return ENOTCONN;
	err = reserve(r, &w, sgl_me(&r->object), len, &tail, until);
	if (err)
		return err;
	r->tail = tail;
	r->reserved = len;
	*at = sg_ringw_record(&w, tail) + 1;
	return 0;
}

static bool has_lock(const struct stargate_ring *r, u64 me)
{
	return me && (sg_semw_load(r->w.page) & SG_SEMW_OWNER) == me;
}

API int stargate_ring_commit(stargate_ring *r, uint32_t tag, size_t len)
{
	const struct sg_ring w = r->w;
	u64 me, tail = r->tail;

	if (!r->object.page)
		return ENOTCONN;
	me = sgl_me(&r->object);
	if (!has_lock(r, me))
		return EPERM;
	if (len > r->reserved)
		return EINVAL;
	sg_ringw_head(&w, tail, len, tag);
	return commit(r, &w, me, tail, sg_ringw_grains(len));
}

API int stargate_ring_cancel(stargate_ring *r)
{
	u64 me;

	if (!r->object.page)
		return ENOTCONN;
	me = sgl_me(&r->object);
	return has_lock(r, me) ? unlock(r, me) : EPERM;
}

/* --- receiving -------------------------------------------------------------------------------- */

int sgl_receive_by(struct stargate_ring *r, u64 until)
{
	u64 cell = 0;
	int err = ask(r, SG_SEM_OP_READER, SG_RING_LOCK, &cell, until);

	if (err)
		return err;
	if (cell < SG_SEM_CELL_FIRST || cell >= SG_SEM_CELLS)
		return EUCLEAN;
	r->w.cell = (unsigned int)cell;
	return 0;
}

SLOW void tell_slowly(struct stargate_ring *r)
{
	if (!sg_ringw_tell(&r->w))
		ask_to_add(r, SG_RING_ROOM, 1);
}

FAST void put_back(struct stargate_ring *r, const struct sg_ring *w)
{
	if (sg_ringw_release(w))
		tell_slowly(r);
}

/*
 * Waits for a record at @pos, where the ring was empty. If a user has forged this position, no
 * record ever comes there.
 */
static int await_next(struct stargate_ring *r, u64 pos, u64 until)
{
	u64 pause = stargate_in(LOOK_NS);
	int err;

	if (!until)
		return EAGAIN;
	err = ask_to_wait(r, SG_RING_TAIL, pos + 1, until < pause ? until : pause);
	return err == ETIMEDOUT && pause < until ? 0 : err;
}

/*
 * Counts lost races: other readers were first, or a user forges the head. The number of races is
 * limited.
 */
static int lost_race(unsigned int *rounds, u64 until)
{
	if (++*rounds > SG_RING_ROUNDS)
		return EUCLEAN;
	sched_yield();
	if (!until)
		return EAGAIN;
	return stargate_in(0) < until ? 0 : ETIMEDOUT;
}

static int await_record(struct stargate_ring *r, enum sg_ring_result why, u64 pos,
			unsigned int *rounds, u64 until)
{
	switch (why) {
	case SG_RING_LARGE:
		return EMSGSIZE;
	case SG_RING_NONE:
		*rounds = 0;
		return await_next(r, pos, until);
	case SG_RING_BUSY:
		return lost_race(rounds, until);
	default:
		return EUCLEAN;
	}
}

/*
 * This thread starts to receive with the handle, and stops again if it gets no record. @c has room
 * for @most records.
 */
static int claim(struct stargate_ring *r, u64 room, struct sg_ring_claim *c, unsigned int most,
		 unsigned int *n, u64 until)
{
	enum sg_ring_result res;
	unsigned int rounds = 0;
	int err = 0;

	*n = 0;
	c->len = 0;
	if (!r->w.cell)
		err = sgl_receive_by(r, until);
	while (!err) {
		res = sg_ringw_claim_many(&r->w, room, c, most, n);
		if (res == SG_RING_OK)
			return 0;
		if (sg_ringw_load(r->w.page + r->w.cell))
			put_back(r, &r->w);
		err = await_record(r, res, c->at, &rounds, until);
	}
	__atomic_store_n(&r->receives, 0, __ATOMIC_RELEASE);
	return err;
}

FAST bool begins(struct stargate_ring *r)
{
	return !__atomic_exchange_n(&r->receives, 1, __ATOMIC_ACQUIRE);
}

FAST void give_back(struct stargate_ring *r, const struct sg_ring *w)
{
	put_back(r, w);
	__atomic_store_n(&r->receives, 0, __ATOMIC_RELEASE);
}

SLOW int recv_slowly(struct stargate_ring *r, uint32_t *tag, void *to, size_t room, size_t *len,
		     u64 until)
{
	struct sg_ring_claim c;
	unsigned int n;
	int err = claim(r, room, &c, 1, &n, until);

	*len = c.len;
	if (err)
		return err;
	if (tag)
		*tag = c.tag;
	memcpy(to, c.data, c.len);
	give_back(r, &r->w);
	return 0;
}

API int stargate_ring_recv(stargate_ring *r, uint32_t *tag, void *to, size_t room, size_t *len,
			   uint64_t until)
{
	const struct sg_ring w = r->w;
	struct sg_ring_claim c;

	if (!r->object.page)
		return ENOTCONN;
	if (!begins(r))
		return EBUSY;
	if (!w.cell || sg_ringw_try(&w, room, &c) != SG_RING_OK)
		return recv_slowly(r, tag, to, room, len, until);
	*len = c.len;
	if (tag)
		*tag = c.tag;
	memcpy(to, c.data, c.len);
	give_back(r, &w);
	return 0;
}

API int stargate_ring_peek(stargate_ring *r, uint32_t *tag, const void **at, size_t *len,
			   uint64_t until)
{
	const struct sg_ring w = r->w;
	struct sg_ring_claim c;
	unsigned int n;
	int err;

	if (!r->object.page)
		return ENOTCONN;
	if (!begins(r))
		return EBUSY;
	if (!w.cell || sg_ringw_try(&w, SG_RING_MAX, &c) != SG_RING_OK) {
		err = claim(r, SG_RING_MAX, &c, 1, &n, until);
		if (err)
			return err;
	}
	if (tag)
		*tag = c.tag;
	*at = c.data;
	*len = c.len;
	r->claimed = true;
	return 0;
}

/*
 * Starts to receive, and claims records: *n of them, at most BATCH. If it returns 0, the caller has
 * the records.
 */
static int claim_many(stargate_ring *r, u64 room, struct sg_ring_claim c[BATCH], size_t most,
		      unsigned int *n, u64 until)
{
	if (!r->object.page)
		return ENOTCONN;
	if (!most)
		return EINVAL;
	if (!begins(r))
		return EBUSY;
	return claim(r, room, c, most < BATCH ? (unsigned int)most : BATCH, n, until);
}

API int stargate_ring_peek_many(stargate_ring *r, struct stargate_record *out, size_t most,
				size_t *n, uint64_t until)
{
	struct sg_ring_claim c[BATCH];
	unsigned int i, found = 0;
	int err = claim_many(r, SG_RING_MAX, c, most, &found, until);

	*n = 0;
	if (err)
		return err;
	for (i = 0; i < found; i++)
		out[i] = (struct stargate_record){ c[i].data, c[i].len, c[i].tag, 0 };
	*n = found;
	r->claimed = true;
	return 0;
}

API int stargate_ring_recv_many(stargate_ring *r, void *to, size_t room,
				struct stargate_record *out, size_t most, size_t *n,
				uint64_t until)
{
	struct sg_ring_claim c[BATCH];
	unsigned int i, found = 0;
	unsigned char *next = to;
	int err = claim_many(r, room, c, most, &found, until);

	*n = 0;
	if (err == EMSGSIZE)
		out[0] = (struct stargate_record){ NULL, c[0].len, c[0].tag, 0 };
	if (err)
		return err;
	for (i = 0; i < found; i++) {
		memcpy(next, c[i].data, c[i].len);
		out[i] = (struct stargate_record){ next, c[i].len, c[i].tag, 0 };
		next += sg_ringw_step(c[i].len);
	}
	*n = found;
	give_back(r, &r->w);
	return 0;
}

API int stargate_ring_release(stargate_ring *r)
{
	if (!r->object.page)
		return ENOTCONN;
	if (!r->claimed)
		return EPERM;
	r->claimed = false;
	give_back(r, &r->w);
	return 0;
}
