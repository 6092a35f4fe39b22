// SPDX-License-Identifier: GPL-2.0
/* The status of one object or all objects, and a joining system's work on all objects. */
#include "sem/sem.h"

/* --- status ----------------------------------------------------------------------------------- */

static u64 value_of(struct sg_vol *vol, const struct sg_sem *sem)
{
	u64 word = sg_load64(sg_sem_word(vol, sem)), sum = 0;
	unsigned int i;

	switch (sem->type) {
	case SG_SEM_MUTEX:
		return !!(word & SG_SEMW_OWNER);
	case SG_SEM_COUNT:
		return word & SG_SEMW_VALUE;
	case SG_SEM_RWLOCK:
		for (i = SG_SEM_CELL_KERNEL; i < SG_SEM_CELLS; i++)
			sum += sg_sem_cell_value(vol, sem, i);
		return sum;
	case SG_SEM_BARRIER:
		return sg_sem_arrived(vol, sem);
	case SG_SEM_RING:
		return sg_sem_ring_used(vol, sem);
	default:
		return word & SG_SEMW_COUNT;
	}
}

static void say_owner(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_stat *out)
{
	u64 word = sg_load64(sg_sem_word(vol, sem));
	struct sg_sem_member m;

	out->slot = -1;
	if (sem->type != SG_SEM_MUTEX && sem->type != SG_SEM_RWLOCK && sem->type != SG_SEM_RING)
		return;
	out->died = word & SG_SEMW_DIED;
	out->lost = word & SG_SEMW_LOST;
	if (!(word & SG_SEMW_OWNER))
		return;
	if (SG_SEMW_SLOT(word) < SG_SLOTS)
		out->slot = (int)SG_SEMW_SLOT(word);
	if (!sg_sem_member_read(vol, word, &m))
		return;
	out->pid = (u32)m.who;
	out->tid = (u32)(m.who >> 32);
	out->since = m.since;
	memcpy(out->comm, m.comm, sizeof(out->comm));
}

static void say_ring(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_stat *out)
{
	const struct sg_sem_record *r = sg_sem_record(vol, sem);
	const struct sg_sem_side *side = sg_at(vol, sem->side);
	unsigned int i;

	for (i = 0; i < SG_RING_PARTS - 1; i++)
		out->waiters |= sg_load64(&r->part[i].waiters);
	out->claims_lost = sg_load64(&side->own[SG_RING_LOST_AT]);
	out->sent = sg_load64((u64 *)sg_at(vol, sem->words) + SG_RING_SENT);
	for (i = SG_SEM_CELL_FIRST; i < SG_SEM_CELLS; i++)
		out->receivers += sg_sem_cell_counts(vol, sg_load64(&side->own[i]));
}

int sg_sem_fstat(struct sg_vol *vol, const struct sg_sem *sem, struct sg_sem_stat *out)
{
	const struct sg_sem_record *r = sg_sem_record(vol, sem);
	u64 head, owner;

	if (sg_sem_lost(vol, sem))
		return -EIO;
	head = sg_load64(&r->head);
	owner = sg_load64(&r->owner);
	if (!sg_sem_head_known(head))
		head = sem->head;	/* the state when the object was opened */
	memset(out, 0, sizeof(*out));
	out->type = sem->type;
	out->life = SG_SEM_LIFE(head);
	out->flags = SG_SEM_FLAGS(head);
	out->serial = SG_SEM_SERIAL(head);
	out->uid = (u32)owner;
	out->gid = (u32)(owner >> 32);
	out->mode = (u32)sg_load64(&r->mode);
	out->created = sg_load64(&r->created);
	out->users = sg_load64(&r->users);
	out->waiters = sg_load64(&r->waits.waiters);
	if (sem->type == SG_SEM_RING)
		say_ring(vol, sem, out);
	out->initial = sg_load64(&r->initial);
	out->value = value_of(vol, sem);
	say_owner(vol, sem, out);
	return 0;
}

/* Locks the file, if it returns 0. */
static int begin_with(struct sg_vol *vol, const char *name, u32 len, u64 serial,
		      struct sg_sem *sem)
{
	struct sg_sem_search q;
	int err = sg_sem_begin(vol, name, len, &q);

	if (err)
		return err;
	if (!q.has || sg_sem_is_over(vol, &q.found))
		err = -ENOENT;
	else if (!sg_sem_is_meant(vol, &q.found, serial))
		err = -ESTALE;
	else
		err = sg_sem_look_at(vol, &q.found, sem);
	if (err)
		sg_sem_end(vol);
	return err;
}

int sg_sem_stat(struct sg_vol *vol, const char *name, u32 len, struct sg_sem_stat *out)
{
	struct sg_sem sem;
	int err = begin_with(vol, name, len, SG_SEM_ANY, &sem);

	if (err)
		return err;
	err = sg_sem_fstat(vol, &sem, out);
	sg_sem_end(vol);
	return err;
}

int sg_sem_reset(struct sg_vol *vol, const char *name, u32 len, u64 serial)
{
	struct sg_sem sem, part;
	unsigned int i;
	int err = begin_with(vol, name, len, serial, &sem);

	if (err)
		return err;
	sg_sem_reset_words(vol, &sem, true);
	sg_sem_wake_all(vol, &sem);
	for (i = SG_RING_TAIL; i < SG_RING_PARTS; i++)
		if (!sg_sem_ring_part(&sem, i, &part))
			sg_sem_wake_all(vol, &part);
	sg_sem_end(vol);
	return 0;
}

/** struct listing - @next: the record at which the listing continues: page * 8 + number */
struct listing {
	sg_sem_emit emit;
	void *ctx;
	u64 next;
};

/* Checks a copy of the name, because the volume's bytes may change meanwhile (D10). */
static bool read_name(const struct sg_vol *vol, const struct sg_sem_spot *s, char *name, u32 len)
{
	memcpy(name, sg_at(vol, SG_SEM_FIELD(s, name)), len);
	return !sg_sem_name_fits(name, len);
}

static int list_one(struct sg_vol *vol, const struct sg_sem_spot *s, void *ctx)
{
	struct listing *l = ctx;
	u64 head = sg_get(vol, SG_SEM_FIELD(s, head));
	u64 len = sg_get(vol, SG_SEM_FIELD(s, mode)) >> 32;
	char name[SG_SEM_NAME_MAX];
	struct sg_sem_stat st;
	struct sg_sem sem;

	if (!head || SG_SEM_FLAGS(head) & SG_SEM_REMOVED || sg_sem_is_over(vol, s) ||
	    s->page * 8 + s->i < l->next)
		return 0;
	if (len > SG_SEM_NAME_MAX || !read_name(vol, s, name, (u32)len)) {
		sg_damaged(vol, 0, s->off, "name of a semaphore");
		return 0;
	}
	if (sg_sem_look_at(vol, s, &sem) || sg_sem_fstat(vol, &sem, &st))
		return 0;	/* damage, which has been reported, or a bad page */
	if (l->emit(l->ctx, name, (u32)len, &st))
		return 0;
	l->next = s->page * 8 + s->i;
	return 1;
}

/* Calls @fn for a page of records, with the file locked. */
static int with_page(struct sg_vol *vol, u64 page, sg_sem_on_spot fn, void *ctx)
{
	const struct sg_iref file = sg_sem_file();
	int err = sg_may_write(vol) ?: sg_ilock(vol, &file);

	if (err)
		return err;
	err = sg_may_change(vol, &file) ?: sg_sem_each_in_page(vol, page, fn, ctx);
	sg_iunlock(vol, &file);
	return err;
}

/* Visits all existing pages of records, except bad pages. */
static int each_page(struct sg_vol *vol, u64 *page, sg_sem_on_spot fn, void *ctx)
{
	const u64 end = (u64)SG_SEM_CHAINS * SG_SEM_CHAIN_PAGES;
	const struct sg_iref file = sg_sem_file();
	struct sg_run run;
	int err = 0;

	while (*page < end && !err) {
		err = sg_walk(vol, &file, *page, end - *page, &run);
		if (!err && !run.off) {
			*page += run.pages;
			continue;
		}
		if (!err)
			err = with_page(vol, *page, fn, ctx);
		if (sg_is_bad_memory(vol, err))
			err = 0;
		if (!err)
			++*page;
	}
	return err;
}

int sg_sem_list(struct sg_vol *vol, u64 *cookie, sg_sem_emit emit, void *ctx)
{
	struct listing l = { emit, ctx, *cookie };
	u64 page = *cookie / 8;
	int err = each_page(vol, &page, list_one, &l);

	*cookie = err == 1 ? l.next : page * 8;
	return err < 0 ? err : 0;
}

/* --- join ------------------------------------------------------------------------------------- */

static int withdraw_one(struct sg_vol *vol, const struct sg_sem_spot *s, void *ctx)
{
	u64 bit = 1ULL << vol->slot;
	unsigned int i;

	(void)ctx;
	if (!sg_get(vol, SG_SEM_FIELD(s, head)))
		return 0;
	if (sg_get(vol, SG_SEM_FIELD(s, users)) & bit) {
		sg_sem_set_durably(vol, SG_SEM_FIELD(s, unclean), 1);
		sg_and64(sg_at(vol, SG_SEM_FIELD(s, users)), ~bit);
		sg_and64(sg_at(vol, SG_SEM_FIELD(s, waits.waiters)), ~bit);
		for (i = 0; i < SG_RING_PARTS - 1; i++)
			sg_and64(sg_at(vol, SG_SEM_FIELD(s, part[i].waiters)), ~bit);
	}
	if (sg_sem_is_over(vol, s))
		/* if the removal fails, the next system that finds the object tries again */
		sg_sem_destroy(vol, s);
	return 0;
}

/* Clears the bits of this system's slot in all objects. Damage here does not prevent the join. */
int sg_sem_withdraw(struct sg_vol *vol)
{
	u64 page = 0;
	int err = each_page(vol, &page, withdraw_one, NULL);

	return err == -EUCLEAN ? 0 : err;
}
