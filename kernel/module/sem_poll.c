// SPDX-License-Identifier: GPL-2.0
/*
 * poll(), epoll and io_uring on a descriptor that has a ring: it is readable while there is a
 * record, and writable while half of the ring is free. The bell of a watch (core/sem/sem_watch.c)
 * is the queue on which they wait. Bells of other systems are polled, so this takes up to 4 ms.
 *
 * There is no poll() for locks and semaphores: one waiter gets a released object, in turn, and a
 * watch would have its turn without taking the object.
 */
#include <linux/poll.h>

#include "sem_priv.h"

/* @lock: allows only one check at a time. */
struct sgfs_sem_watch {
	struct mutex lock;
	struct sg_sem_watch w;
};

static struct sgfs_sem_watch *sgfs_sem_watch_of(struct sgfs_sem *s, bool room)
{
	struct sgfs_sem_watch *w = smp_load_acquire(&s->watch[room]), *first;

	if (w)
		return w;
	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w)
		return NULL;
	mutex_init(&w->lock);
	sg_sem_watch_begin(&w->w, &s->sem, room);
	first = cmpxchg(&s->watch[room], NULL, w);
	if (!first)
		return w;
	kfree(w);
	return first;
}

/* A poller that waits for one event polls again for the next one, and so checks then. */
static bool sgfs_is_edge(const struct poll_table_struct *pt)
{
	return (poll_requested_events(pt) & (EPOLLET | EPOLLONESHOT)) == EPOLLET;
}

static __poll_t sgfs_sem_poll_one(struct file *file, struct poll_table_struct *pt, bool room,
				  __poll_t says)
{
	struct sgfs_sem *s = file->private_data;
	struct sgfs_sem_watch *w = sgfs_sem_watch_of(s, room);
	int ret;

	if (!w)
		return EPOLLERR;
	poll_wait(file, &w->w.caller.bell.q, pt);
	mutex_lock(&w->lock);
	ret = sg_sem_watch_look(&s->fs->vol, &w->w, sgfs_is_edge(pt));
	mutex_unlock(&w->lock);
	return ret < 0 ? EPOLLERR | EPOLLHUP : ret ? says : 0;
}

/* A wait for room needs a request to the readers, so only a caller that wants room makes it. */
__poll_t sgfs_sem_poll(struct file *file, struct poll_table_struct *pt)
{
	struct sgfs_sem *s = file->private_data;
	__poll_t want = poll_requested_events(pt), mask = 0;

	if (!smp_load_acquire(&s->bound))
		return EPOLLERR;
	if (s->sem.type != SG_SEM_RING)
		return DEFAULT_POLLMASK;
	if (want & (EPOLLIN | EPOLLRDNORM))
		mask |= sgfs_sem_poll_one(file, pt, false, EPOLLIN | EPOLLRDNORM);
	if (want & (EPOLLOUT | EPOLLWRNORM) && !s->look)
		mask |= sgfs_sem_poll_one(file, pt, true, EPOLLOUT | EPOLLWRNORM);
	return mask;
}

/* Called when no process polls the descriptor any more. */
void sgfs_sem_poll_end(struct sgfs_sem *s)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(s->watch); i++) {
		if (!s->watch[i])
			continue;
		sg_sem_watch_end(&s->fs->vol, &s->watch[i]->w);
		kfree(s->watch[i]);
	}
}
