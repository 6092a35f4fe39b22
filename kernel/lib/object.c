// SPDX-License-Identifier: Apache-2.0
/* Objects by name: creating, opening, removing, listing. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib.h"

#define PAGE		4096
#define LIST_ROOM	32

void sgl_put_name(char to[SG_SEM_NAME_ROOM], const char *name)
{
	memset(to, 0, SG_SEM_NAME_ROOM);
	memcpy(to, name, strnlen(name, SG_SEM_NAME_ROOM));
}

/* --- handles ---------------------------------------------------------------------------------- */

static int map_words(struct stargate_sem *s, unsigned int cell)
{
	s->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->page == MAP_FAILED) {
		s->page = NULL;
		return errno;
	}
	s->cell = cell ? s->page + cell : NULL;
	return 0;
}

int sgl_get_object(struct stargate_sem *s, struct sg_ioc_sem_open *o, unsigned int how)
{
	int err;

	if (ioctl(s->fd, SG_IOC_SEM_OPEN, o))
		return errno;
	s->type = o->type;
	s->flags = o->flags;
	err = sgl_add(s);
	if (!err && o->type != SG_SEM_RING && o->flags & SG_SEM_MAPPED &&
	    !(how & (STARGATE_LOOK | STARGATE_BY_KERNEL))) {
		err = map_words(s, o->cell);
		if (err)
			sgl_remove(s);
	}
	return err;
}

static unsigned int face_of(unsigned int how)
{
	return (how & STARGATE_LOOK ? SG_SEM_LOOK : 0) |
	       (how & STARGATE_BY_KERNEL ? SG_SEM_BY_KERNEL : 0);
}

static int open_handle(stargate_sem **out, const char *volume, struct sg_ioc_sem_open *o,
		       unsigned int how)
{
	struct stargate_sem *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return ENOMEM;
	err = sgl_open_volume(volume, false, &s->fd);
	if (!err) {
		err = sgl_get_object(s, o, how);
		if (err)
			sgl_close(s->fd);
	}
	if (err)
		free(s);
	else
		*out = s;
	return err;
}

API int stargate_create(stargate_sem **out, const char *volume, const char *name,
			const struct stargate_new *what, unsigned int how)
{
	struct sg_ioc_sem_open o = {
		.type = what->type, .mode = what->mode, .initial = what->initial,
		.how = SG_SEM_CREATE | (how & STARGATE_EXCLUSIVE ? SG_SEM_EXCL : 0) | face_of(how),
		.flags = (what->flags & STARGATE_RECURSIVE ? SG_SEM_RECURSIVE : 0) |
			 (what->flags & STARGATE_GUARDED ? 0 : SG_SEM_MAPPED),
		.life = !!(what->flags & STARGATE_LAST_USER),
	};

	if (what->type == STARGATE_RING || what->flags & ~7u || how & ~7u)
		return EINVAL;
	sgl_put_name(o.name, name);
	return open_handle(out, volume, &o, how);
}

API int stargate_open(stargate_sem **out, const char *volume, const char *name,
		      enum stargate_type type, unsigned int how)
{
	struct sg_ioc_sem_open o = {
		.type = type, .how = face_of(how),
	};

	if (how & ~6u)
		return EINVAL;
	sgl_put_name(o.name, name);
	return open_handle(out, volume, &o, how);
}

API void stargate_close(stargate_sem *s)
{
	if (!s)
		return;
	sgl_remove(s);
	if (s->page)
		munmap(s->page, PAGE);
	sgl_close(s->fd);
	free(s);
}

/* --- by name ---------------------------------------------------------------------------------- */

static int by_name(const char *volume, const char *name, unsigned long what)
{
	struct sg_ioc_sem_name n;
	int fd, err = sgl_open_volume(volume, false, &fd);

	if (err)
		return err;
	sgl_put_name(n.name, name);
	err = ioctl(fd, what, &n) ? errno : 0;
	sgl_close(fd);
	return err;
}

API int stargate_remove(const char *volume, const char *name)
{
	return by_name(volume, name, SG_IOC_SEM_REMOVE);
}

API int stargate_reset(const char *volume, const char *name)
{
	return by_name(volume, name, SG_IOC_SEM_RESET);
}

/* --- state of objects ------------------------------------------------------------------------- */

static void show(struct stargate_stat *out, const struct sg_ioc_sem_stat *st)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->name, st->name, sizeof(out->name));
	out->type = (enum stargate_type)st->type;
	out->flags = (st->flags & SG_SEM_RECURSIVE ? STARGATE_RECURSIVE : 0) |
		     (st->flags & SG_SEM_MAPPED ? 0 : STARGATE_GUARDED) |
		     (st->flags & SG_SEM_SINGLE ? STARGATE_SINGLE : 0) |
		     (st->life ? STARGATE_LAST_USER : 0);
	out->mode = st->mode;
	out->uid = st->uid;
	out->gid = st->gid;
	out->slot = st->slot;
	out->died = !!st->died;
	out->lost = !!st->lost;
	out->created = st->created;
	out->users = st->users;
	out->waiters = st->waiters;
	out->initial = st->initial;
	out->value = st->value;
	out->since = st->since;
	out->pid = (pid_t)st->pid;
	out->tid = (pid_t)st->tid;
	memcpy(out->comm, st->comm, sizeof(out->comm));
	memcpy(out->system, st->system, sizeof(out->system));
}

int sgl_stat(const char *volume, const char *name, struct sg_ioc_sem_stat *st)
{
	int fd, err = *name ? sgl_open_volume(volume, true, &fd) : EINVAL;

	if (err)
		return err;
	sgl_put_name(st->name, name);
	err = ioctl(fd, SG_IOC_SEM_STAT, st) ? errno : 0;
	sgl_close(fd);
	return err;
}

API int stargate_stat(const char *volume, const char *name, struct stargate_stat *out)
{
	struct sg_ioc_sem_stat st = { 0 };
	int err = sgl_stat(volume, name, &st);

	if (!err)
		show(out, &st);
	return err;
}

API int stargate_fstat(stargate_sem *s, struct stargate_stat *out)
{
	struct sg_ioc_sem_stat st = { 0 };

	if (ioctl(s->fd, SG_IOC_SEM_STAT, &st))
		return errno;
	show(out, &st);
	return 0;
}

API int stargate_list(const char *volume, int (*fn)(void *ctx, const struct stargate_stat *st),
		      void *ctx)
{
	struct sg_ioc_sem_stat found[LIST_ROOM];
	struct sg_ioc_sem_list l = { .buffer = (uintptr_t)found, .room = LIST_ROOM };
	struct stargate_stat st;
	int fd, err = sgl_open_volume(volume, true, &fd);
	unsigned int i;

	if (err)
		return err;
	do {
		err = ioctl(fd, SG_IOC_SEM_LIST, &l) ? errno : 0;
		for (i = 0; i < l.count && !err; i++) {
			show(&st, &found[i]);
			err = fn(ctx, &st);
		}
	} while (!err && l.count);
	sgl_close(fd);
	return err;
}
