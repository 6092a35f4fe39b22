/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for the tests of shared semaphores: systems that listen for bells, objects made in one
 * line.
 */
#ifndef SG_SEM_UTIL_H
#define SG_SEM_UTIL_H

#include <pthread.h>
#include <unistd.h>
#include "sem/sem.h"
#include "systems.h"

#define MS	1000000ULL
#define SEC	1000000000ULL

/**
 * struct listener - a system's thread that listens for bells, which a doorbell would replace.
 */
struct listener {
	struct sg_vol *v;
	pthread_t thread;
	u64 stop;
};

static inline void *listen_thread(void *arg)
{
	struct listener *l = arg;

	while (!sg_load64(&l->stop))
		sg_sem_poll(l->v);
	return NULL;
}

static inline void listen_begin(struct listener *l, struct sg_vol *v)
{
	*l = (struct listener){ .v = v };
	sg_sem_poll_begin(v, true);
	CHECK_OK(pthread_create(&l->thread, NULL, listen_thread, l));
}

static inline void listen_end(struct listener *l)
{
	sg_store64(&l->stop, 1);
	sg_sem_poll_begin(l->v, false);
	CHECK_OK(pthread_join(l->thread, NULL));
}

/* --- objects ---------------------------------------------------------------------------------- */

static inline struct sg_sem_new new_of(unsigned int type, unsigned int flags, u64 initial)
{
	return (struct sg_sem_new){ .type = type, .flags = flags, .initial = initial, .mode = 0600,
		.uid = 7, .gid = 8, .now = 1234 };
}

static inline int try_create(struct sg_vol *v, const char *name, struct sg_sem_new new,
			     bool exclusive, struct sg_sem *out)
{
	return sg_sem_create(v, name, (u32)strlen(name), &new, exclusive, false, out);
}

static inline struct sg_sem sem_make(struct sg_vol *v, const char *name, unsigned int type,
				     unsigned int flags, u64 initial)
{
	struct sg_sem sem;

	CHECK_OK(try_create(v, name, new_of(type, flags, initial), true, &sem));
	return sem;
}

static inline int try_open(struct sg_vol *v, const char *name, unsigned int type, bool user,
			   struct sg_sem *out)
{
	return sg_sem_open(v, name, (u32)strlen(name), type, user, out);
}

static inline struct sg_sem sem_of(struct sg_vol *v, const char *name)
{
	struct sg_sem sem;

	CHECK_OK(try_open(v, name, 0, false, &sem));
	return sem;
}

static inline int sem_rm(struct sg_vol *v, const char *name)
{
	return sg_sem_unlink(v, name, (u32)strlen(name), SG_SEM_ANY);
}

static inline struct sg_sem_stat stat_of(struct sg_vol *v, const char *name)
{
	struct sg_sem_stat st;

	CHECK_OK(sg_sem_stat(v, name, (u32)strlen(name), &st));
	return st;
}

static inline bool sem_there(struct sg_vol *v, const char *name)
{
	struct sg_sem_stat st;
	int err = sg_sem_stat(v, name, (u32)strlen(name), &st);

	CHECK(!err || err == -ENOENT);
	return !err;
}

static inline struct sg_sem_caller *caller_of(struct sg_vol *v, u32 tid)
{
	struct sg_sem_caller *c = sg_alloc(sizeof(*c));

	CHECK_OK(sg_sem_enter(v, (u32)getpid(), tid, "tester", c));
	return c;
}

static inline void caller_end(struct sg_vol *v, struct sg_sem_caller *c)
{
	sg_sem_exit(v, c);
	sg_free(c);
}

static inline u64 in_ms(u64 ms)
{
	return sg_ticks() + ms * MS;
}

#endif
