// SPDX-License-Identifier: GPL-2.0
/*
 * Members: threads that can own locks. A word names slot, member and generation. The member's
 * record shows whether that owner still exists, and the incarnation of its system. Only that system
 * stores the record. So one store releases everything that a thread, a process or a system owned,
 * and no search is needed.
 */
#include "sem/sem.h"

#define SAY_NS	1000000000ULL

static u64 page_of(unsigned int slot, unsigned int member)
{
	return SG_SEM_MEMBERS_PAGE + (u64)slot * (SG_SEM_MEMBERS / SG_SEM_PER_PAGE) +
	       member / SG_SEM_PER_PAGE;
}

/* Pages of members are permanent. */
static struct sg_sem_member *member_at(const struct sg_vol *vol, unsigned int slot,
				       unsigned int member)
{
	u64 off;
	int err;

	off = sg_sem_page_at(vol, page_of(slot, member), &err);
	return off ? (struct sg_sem_member *)sg_at(vol, off) + member % SG_SEM_PER_PAGE : NULL;
}

/* --- own members ------------------------------------------------------------------------------ */

static int take_number(struct sg_sems *s)
{
	unsigned int i;
	int n = -EAGAIN;

	sg_spin_lock(&s->spin);
	for (i = 0; i < SG_ARRAY_SIZE(s->member) && n < 0; i++)
		if (~s->member[i])
			n = (int)(i * 64 + sg_ctz64(~s->member[i]));
	if (n >= 0)
		s->member[n / 64] |= 1ULL << (n & 63);
	sg_spin_unlock(&s->spin);
	return n;
}

static void give_number(struct sg_sems *s, unsigned int n)
{
	sg_spin_lock(&s->spin);
	s->member[n / 64] &= ~(1ULL << (n & 63));
	sg_spin_unlock(&s->spin);
}

static void copy_comm(struct sg_sem_member *m, const char *comm)
{
	u64 text[sizeof(m->comm) / 8] = { 0 };
	size_t len = strlen(comm);
	unsigned int i;

	memcpy(text, comm, SG_MIN(len, sizeof(text) - 1));
	for (i = 0; i < SG_ARRAY_SIZE(text); i++)
		sg_store64((u64 *)m->comm + i, text[i]);
}

/*
 * Assigns a generation that no word has yet. It is stored before the record marks the member as
 * existing.
 */
static u64 sem_member_introduce(struct sg_vol *vol, struct sg_sem_member *m, u32 pid, u32 tid,
				const char *comm)
{
	u32 gen = SG_MAX((u32)sg_load64(&m->given) + 1, 1u);	/* no member has generation 0 */

	sg_store64(&m->id, 0);
	sg_store64(&m->given, gen);
	sg_store64(&m->who, pid | (u64)tid << 32);
	sg_store64(&m->since, sg_now());
	copy_comm(m, comm);
	sg_store64_release(&m->id, gen | (u64)vol->incarnation << 32);
	return gen;
}

static bool is_bad_page(struct sg_vol *vol, u64 page)
{
	int err;

	return sg_has_bad(vol) && !sg_sem_page_at(vol, page, &err) && err == -EIO &&
	       !sg_is_member(vol);
}

/*
 * Finds a free record of this system. A record on a bad page remains taken, and is never used.
 * -EAGAIN: the record's page does not exist yet, and may not be made (@make).
 */
static int take_member(struct sg_vol *vol, bool make, struct sg_sem_member **m)
{
	const struct sg_iref file = sg_sem_file();
	unsigned int slot = (unsigned int)vol->slot;
	u64 page;
	int n, err;

	do {
		n = take_number(vol->sems);
		if (n < 0)
			return n;
		page = page_of(slot, (unsigned int)n);
	} while (is_bad_page(vol, page));
	*m = member_at(vol, slot, (unsigned int)n);
	if (*m)
		return n;
	err = make ? sg_allocate(vol, &file, page, 1) : -EAGAIN;
	*m = member_at(vol, slot, (unsigned int)n);
	if (*m)
		return n;
	give_number(vol->sems, (unsigned int)n);
	return err ? err : -EUCLEAN;
}

static int sem_member_enter(struct sg_vol *vol, bool make, u32 pid, u32 tid,
			    const char *comm, struct sg_sem_caller *caller)
{
	struct sg_sem_member *m = NULL;
	int n;

	if (vol->slot < 0)
		return -EROFS;
	n = take_member(vol, make, &m);
	if (n < 0)
		return n;
	if (sg_is_silenced(vol)) {
		give_number(vol->sems, (unsigned int)n);
		return -EIO;
	}
	memset(caller, 0, sizeof(*caller));
	caller->record = (u64)((u8 *)m - vol->base);
	caller->me = SG_SEMW_ID(vol->slot, n, sem_member_introduce(vol, m, pid, tid, comm));
	sg_bell_init(&caller->bell);
	return 0;
}

int sg_sem_enter(struct sg_vol *vol, u32 pid, u32 tid, const char *comm,
		 struct sg_sem_caller *caller)
{
	return sem_member_enter(vol, true, pid, tid, comm, caller);
}

int sg_sem_enter_as_is(struct sg_vol *vol, u32 pid, u32 tid, const char *comm,
		       struct sg_sem_caller *caller)
{
	return sem_member_enter(vol, false, pid, tid, comm, caller);
}

void sg_sem_exit(struct sg_vol *vol, struct sg_sem_caller *caller)
{
	struct sg_sem_member *m = sg_at(vol, caller->record);

	/* a fenced system owns nothing any more */
	if (!sg_is_silenced(vol) && !sg_is_lost(vol, caller->record))
		sg_store64_release(&m->id, 0);
	give_number(vol->sems, SG_SEMW_MEMBER(caller->me));
	sg_bell_end(&caller->bell);
}

void sg_sem_cancel(struct sg_sem_caller *caller)
{
	sg_store64(&caller->cancelled, 1);
	sg_bell_ring(&caller->bell);
}

/* --- other systems' members ------------------------------------------------------------------- */

bool sg_sem_member_read(const struct sg_vol *vol, u64 word, struct sg_sem_member *out)
{
	const struct sg_sem_member *m;
	unsigned int i;

	if (SG_SEMW_SLOT(word) >= SG_SLOTS)
		return false;
	m = member_at(vol, SG_SEMW_SLOT(word), SG_SEMW_MEMBER(word));
	if (!m)
		return false;
	for (i = 0; i < sizeof(*m) / 8; i++)
		((u64 *)out)[i] = sg_load64((const u64 *)m + i);
	out->comm[sizeof(out->comm) - 1] = 0;
	return (u32)out->id == SG_SEMW_GEN(word) && out->id;
}

/*
 * Reports whether the owner's system counts: until its slot has been recovered, even if it is dead,
 * as with a lock's holder (lock.c).
 */
static bool system_there(const struct sg_vol *vol, unsigned int slot, u32 inc)
{
	u64 state = sg_load64_acquire(sg_state_word(vol, slot));

	return SG_SLOT_STATE(state) != SG_SLOT_FREE && SG_SLOT_INC(state) == inc;
}

enum sg_sem_life sg_sem_owner(struct sg_vol *vol, u64 word)
{
	unsigned int slot = SG_SEMW_SLOT(word);
	const struct sg_sem_member *m;
	u64 id;

	m = slot < SG_SLOTS ? member_at(vol, slot, SG_SEMW_MEMBER(word)) : NULL;
	if (!m)
		return SG_SEM_UNKNOWN;
	id = sg_load64_acquire(&m->id);
	if (!id || (u32)id != SG_SEMW_GEN(word)) {
		u32 ago = (u32)sg_load64(&m->given) - SG_SEMW_GEN(word);

		return SG_SEMW_GEN(word) && ago < 1u << 31 ? SG_SEM_DEAD : SG_SEM_UNKNOWN;
	}
	if (system_there(vol, slot, (u32)(id >> 32)))
		sg_help(vol, SG_LOCK_WORD(slot, (u32)(id >> 32)));
	return system_there(vol, slot, (u32)(id >> 32)) ? SG_SEM_LIVE : SG_SEM_DEAD;
}

/*
 * Reports whether to log a line: only now and then, because a process that maps a word could fill
 * the log.
 */
static bool worth_a_line(struct sg_sems *s)
{
	u64 now = sg_ticks(), said = sg_load64(&s->said);

	return (!said || now - said > SAY_NS) && sg_cas64(&s->said, said, now) == said;
}

/*
 * Reports whether the owner may still store without its lock. A ring's lock protects data that its
 * owner stores directly. A process of a fenced system can store there until its mapping is removed,
 * at the position where the next owner's record begins.
 */
bool sg_sem_owner_may_store(const struct sg_vol *vol, const struct sg_sem *sem, u64 word)
{
	return word & SG_SEMW_OWNER && sem->size &&
	       sg_sem_cell_lapses(vol, SG_LOCK_WORD(SG_SEMW_SLOT(word), 1));
}

bool sg_sem_is_left(struct sg_vol *vol, const struct sg_sem *sem, u64 word)
{
	enum sg_sem_life life = sg_sem_owner(vol, word);

	if (life == SG_SEM_UNKNOWN && worth_a_line(vol->sems))
		sg_log(vol->owner, SG_WARN,
		       "semaphore at 0x%llx: its owner never existed (0x%llx): treated as dead",
		       (unsigned long long)sem->rec, (unsigned long long)word);
	return life != SG_SEM_LIVE && !sg_sem_owner_may_store(vol, sem, word);
}
