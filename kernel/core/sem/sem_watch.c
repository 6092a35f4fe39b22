// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for a ring without a thread: poll(). A watch is in this system's list of waiters, as a
 * caller is, from a check that found nothing until a check that finds a record or room. Givers ring
 * its bell. The thread that polls the bells also rings it every 20 ms, because a watch cannot check
 * by itself.
 *
 * An edge-triggered poller takes all records without a check, and sleeps until the next ring. So
 * its watch remains in the list after any check.
 *
 * The order is that of all waiters: queue, set the flag in the word, check. A giver stores first,
 * and then loads the flag.
 */
#include "sem/sem.h"

/* attempts to set the flag; an attempt fails only if another caller changes the word meanwhile */
#define LOOKS	100

void sg_sem_watch_begin(struct sg_sem_watch *w, const struct sg_sem *ring, bool room)
{
	memset(w, 0, sizeof(*w));
	w->ring = *ring;
	w->room = room;
	sg_sem_ring_part(ring, room ? SG_RING_ROOM : SG_RING_TAIL, &w->part);
	sg_bell_init(&w->caller.bell);
	w->caller.watch = w;
}

static struct sg_sem_want watch_want_of(struct sg_vol *vol, struct sg_sem_watch *w)
{
	return (struct sg_sem_want){ .vol = vol, .sem = &w->part, .c = &w->caller, .herd = true,
		.queued = w->armed, .others = w->others };
}

static void watch_disarm(struct sg_vol *vol, struct sg_sem_watch *w)
{
	struct sg_sem_want want = watch_want_of(vol, w);

	if (!w->armed)
		return;
	sg_sem_leave(&want);
	sg_add64(&vol->sems->watches, ~0ULL);
	w->armed = w->others = false;
}

/*
 * Wakes waiters that may sleep because of this watch. No giver rings for them any more, so they
 * must check again.
 */
static void watch_dismiss(struct sg_vol *vol, struct sg_sem_watch *w)
{
	if (!w->armed)
		return;
	watch_disarm(vol, w);
	sg_bell_ring(&w->caller.bell);
}

static bool watch_is_ready(const struct sg_vol *vol, const struct sg_sem_watch *w)
{
	return w->room ? sg_sem_ring_has_room(vol, &w->ring) :
			 sg_sem_ring_has_record(vol, &w->ring);
}

/*
 * Makes givers ring from now on; receivers ring only if a sender has requested room. False: check
 * again.
 */
static bool watch_set_flag(struct sg_sem_want *want, bool room)
{
	u64 *at = sg_sem_word(want->vol, want->sem), word = sg_load64_acquire(at);
	u64 flags = SG_SEMW_WAITERS | (room ? SG_SEMW_ASKED : 0);

	return (word & flags) == flags || sg_cas64(at, word, word | flags) == word;
}

static void watch_arm(struct sg_vol *vol, struct sg_sem_watch *w)
{
	struct sg_sem_want want = watch_want_of(vol, w);
	unsigned int i;

	if (!w->armed) {
		sg_sem_queue(&want);
		if (sg_add64(&vol->sems->watches, 1) == 0)
			/* that thread may sleep for longer */
			sg_bell_ring(&vol->sems->poller);
	}
	/* another system has cleared the bit if this one did not take its turn in time */
	sg_or64(&sg_sem_waits(vol, &w->part)->waiters, 1ULL << vol->slot);
	sg_sem_note_others(&want, true);
	w->armed = true;
	w->others = want.others;
	for (i = 0; i < LOOKS && !watch_set_flag(&want, w->room); i++)
		sg_relax();
}

int sg_sem_watch_look(struct sg_vol *vol, struct sg_sem_watch *w, bool edge)
{
	bool ready;

	if (!sg_sem_usable(vol, &w->ring)) {
		watch_dismiss(vol, w);
		return -EIO;
	}
	w->edge |= edge;
	ready = !w->edge && watch_is_ready(vol, w);
	if (!ready) {
		watch_arm(vol, w);
		ready = watch_is_ready(vol, w);
	}
	sg_store64(&w->ready, ready);
	if (ready && !w->edge)
		watch_dismiss(vol, w);
	return ready;
}

bool sg_sem_watch_is_due(struct sg_vol *vol, struct sg_sem_watch *w)
{
	u64 tail;

	if (!sg_load64(&w->ready) || !sg_sem_usable(vol, &w->ring))
		return true;
	tail = sg_sem_ring_tail(vol, &w->ring);
	if (tail == w->tail)
		return false;
	w->tail = tail;
	return true;
}

void sg_sem_watch_end(struct sg_vol *vol, struct sg_sem_watch *w)
{
	watch_disarm(vol, w);
	sg_bell_end(&w->caller.bell);
}
