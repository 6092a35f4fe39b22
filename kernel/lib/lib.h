/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations inside libstargate. uapi/semword.h describes how words are taken and released. The
 * kernel waits and detects dead owners (uapi/semctl.h): this library has no protocol between
 * systems.
 *
 *   volume.c	which volume a path is on; who the calling thread is there
 *   object.c	objects by name
 *   lock.c	mutexes, reader-writer locks
 *   count.c	semaphores, conditions, barriers, event counters
 *   ring.c	rings: records between systems
 *   stream.c	pairs of rings as streams
 *   file.c	shared files
 *   why.c	errors in words
 */
#ifndef STARGATE_LIB_H
#define STARGATE_LIB_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include "uapi/semctl.h"
#include "uapi/ringword.h"
#include "uapi/semword.h"
#include "stargate.h"

#define API	__attribute__((visibility("default")))

/**
 * struct stargate_sem - a handle
 * @page: the object's words, or NULL if they are not mapped. @cell: readers of this process, or
 * NULL.
 * @volume: a number of its volume, which this process never uses for another volume.
 */
struct stargate_sem {
	u64 *page, *cell;
	u64 volume;
	unsigned int type, flags;
	int fd;
	struct stargate_sem *before, *after;
};

/**
 * struct stargate_ring - a handle
 * @object: its descriptor and lock. Without a page, this process has inherited the handle by
 *	fork().
 * @tail, @reserved: used by the thread that has the lock: the position of its record, and the
 *	reserved room.
 * @swept: the time of the last check for dead receivers.
 * @receives: a thread receives with this handle. @claimed: that thread has a record.
 */
struct stargate_ring {
	struct stargate_sem object;
	struct sg_ring w;
	void *base;
	u64 size, tail, reserved, swept;
	int receives;
	bool claimed;
};

/*
 * No function of the library is a cancellation point, because a thread that ended inside would
 * leave a handle or a lock behind. But some functions that the library calls are cancellation
 * points. This call switches cancellation off until the end of the block.
 */
static inline int sgl_uncancelled(void)
{
	int was;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	return was;
}
static inline void sgl_cancelled_as(const int *was)
{
	pthread_setcancelstate(*was, NULL);
}
#define SGL_UNCANCELLED \
	const int sgl_was __attribute__((cleanup(sgl_cancelled_as), unused)) = sgl_uncancelled()

void sgl_close(int fd);
/* Opens the semaphores of the volume. Returns EROFS on a read-only mount, except with @look. */
int sgl_open_volume(const char *path, bool look, int *fd);
/* Adds a handle, and removes it. While a handle exists, threads keep their names in its volume. */
int sgl_add(struct stargate_sem *s);
void sgl_remove(struct stargate_sem *s);
u64 sgl_me_slow(const struct stargate_sem *s);

struct sgl_mine {
	u64 volume, me;
};
extern __thread struct sgl_mine sgl_mine __attribute__((tls_model("initial-exec")));

/* Returns the name of the calling thread. 0: it has no name, and the kernel returns the reason. */
static inline u64 sgl_me(const struct stargate_sem *s)
{
	return sgl_mine.volume == s->volume ? sgl_mine.me : sgl_me_slow(s);
}

/* object.c, for rings. Cuts off a name that is too long; the kernel then refuses it. */
void sgl_put_name(char to[SG_SEM_NAME_ROOM], const char *name);
int sgl_get_object(struct stargate_sem *s, struct sg_ioc_sem_open *o, unsigned int how);
int sgl_stat(const char *volume, const char *name, struct sg_ioc_sem_stat *st);

/*
 * ring.c: the handle receives from now on. EBUSY: another handle receives from this ring, which
 * permits only one receiver.
 */
int sgl_receive_by(struct stargate_ring *r, u64 until);

/* Requests to the kernel. */
int sgl_ask_part(const struct stargate_sem *s, unsigned int op, unsigned int flags, u64 *value,
		 u64 until);
int sgl_ask(const struct stargate_sem *s, unsigned int op, u64 *value, u64 until);
int sgl_do(const struct stargate_sem *s, unsigned int op, u64 until);

static inline bool sgl_is_mapped(const struct stargate_sem *s, unsigned int type)
{
	return s->page && s->type == type;
}

#endif
