// SPDX-License-Identifier: Apache-2.0
/*
 * Files that count as open for a moment.
 *
 * Another system may remove a file between the kernel's look-up of its name and its open. The open
 * then fails with ESTALE, and the same thread looks the name up again, once. So that its second
 * open succeeds, the files of its look-ups count as open until that open, at most for some seconds.
 * Only these files do: removed files that count as open keep their space.
 *
 * Each such file has a handle, as an open file has: the next server inherits it. It also inherits
 * the list of the threads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include "fuse.h"

#define KEPT_MAX	4096
#define KEEP_NS		5000000000ULL	/* a busy machine may delay a thread for seconds */

/*
 * @since: the first look-up, or the time when nodes_settle() has seen a later one; 0: the thread
 * has opened a file, so that this entry ends.
 */
static struct {
	pthread_mutex_t lock;
	unsigned int n;
	struct {
		u64 id, fh, since;
		u32 pid;
	} node[KEPT_MAX];
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct kept_stale *stale_of(u32 pid)
{
	return &fs.kept->stale[pid % STALE_KEPT];
}

/* Two threads may have the same place in the list. Then the later one is in it. */
void nodes_keep_for_caller(void)
{
	u64 until = sg_ticks() + KEEP_NS;

	pthread_mutex_lock(&kept.lock);
	*stale_of(IN->pid) = (struct kept_stale){ .until = until, .pid = IN->pid };
	sg_store64(&fs.kept->stale_until, until);
	pthread_mutex_unlock(&kept.lock);
}

static bool is_in_time(u64 until)
{
	return sg_ticks() < until;
}

/* Reports whether a call of this thread has failed with ESTALE just before. */
static bool caller_is_stale(void)
{
	bool is;

	if (!is_in_time(sg_load64(&fs.kept->stale_until)))
		return false;
	pthread_mutex_lock(&kept.lock);
	is = stale_of(IN->pid)->pid == IN->pid && is_in_time(stale_of(IN->pid)->until);
	pthread_mutex_unlock(&kept.lock);
	return is;
}

static bool list(u64 id, u64 fh, u32 pid)
{
	bool room;

	pthread_mutex_lock(&kept.lock);
	room = kept.n < KEPT_MAX;
	if (room) {
		kept.node[kept.n].id = id;
		kept.node[kept.n].fh = fh;
		kept.node[kept.n].pid = pid;
		kept.node[kept.n++].since = sg_ticks();
	}
	pthread_mutex_unlock(&kept.lock);
	if (room)
		node_mark(id, KEPT, false);
	return room;
}

static void end(u64 id, u64 fh)
{
	handle_drop(fh);
	node_close(id);
}

/* Two threads may keep one node at the same time: then it counts twice, until both have ended. */
int node_keep(const struct sg_iref *ref)
{
	u64 id = node_id(ref), fh;
	int err;

	if (!caller_is_stale() || fs.vol.read_only || ref->ino == SG_INO_ROOT ||
	    node_mark(id, KEPT_AGAIN, true))
		return 0;
	err = node_open(id, ref, false, false);
	if (err)
		return err;
	if (handle_new(id, HANDLE_KEPT, &fh))
		node_close(id);
	else if (!list(id, fh, IN->pid))
		end(id, fh);
	return 0;
}

void nodes_opened(void)
{
	unsigned int i;

	if (!caller_is_stale())
		return;
	pthread_mutex_lock(&kept.lock);
	stale_of(IN->pid)->until = 0;
	for (i = 0; i < kept.n; i++)
		if (kept.node[i].pid == IN->pid)
			kept.node[i].since = 0;
	pthread_mutex_unlock(&kept.lock);
}

/* The last server has kept this node, which counts as open. It is kept for the same time again. */
void nodes_keep_inherited(u64 id, u64 fh)
{
	if (!list(id, fh, 0))
		end(id, fh);
}

/* Reports whether a thread has looked a kept node up again, which then stays kept. */
static bool stays(u64 id)
{
	bool again = node_mark(id, NOT_KEPT, false) == KEPT_AGAIN;

	if (again)
		node_mark(id, KEPT, false);
	return again;
}

void nodes_settle(void)
{
	u64 now = sg_ticks(), id, fh;
	unsigned int i = 0;

	pthread_mutex_lock(&kept.lock);
	while (i < kept.n) {
		id = kept.node[i].id;
		fh = kept.node[i].fh;
		if (now - kept.node[i].since >= KEEP_NS && stays(id))
			kept.node[i].since = now;
		if (now - kept.node[i].since < KEEP_NS) {
			i++;
			continue;
		}
		kept.node[i] = kept.node[--kept.n];
		pthread_mutex_unlock(&kept.lock);
		end(id, fh);
		pthread_mutex_lock(&kept.lock);
	}
	pthread_mutex_unlock(&kept.lock);
}
