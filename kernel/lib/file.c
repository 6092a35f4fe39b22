// SPDX-License-Identifier: Apache-2.0
/*
 * Shared files: mapping a complete file, waiting for a size, and a ring between a producer and a
 * consumer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib.h"

#define NAP_MIN_NS	20000ULL
#define NAP_MAX_NS	2000000ULL

static u64 now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}

API uint64_t stargate_in(uint64_t ns)
{
	u64 t = now();

	return ns < STARGATE_FOREVER - t ? t + ns : STARGATE_FOREVER;
}

/* --- mapping ---------------------------------------------------------------------------------- */

static bool may_write(int fd)
{
	return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

/*
 * Makes the file longer, never shorter. It allocates, because ftruncate() could undo the growth by
 * another process.
 */
static int lengthen(int fd, size_t size)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if ((size_t)st.st_size >= size || !may_write(fd))
		return 0;
	return posix_fallocate(fd, 0, (off_t)size);
}

static int map_all(struct stargate_map *m)
{
	int prot = PROT_READ | (may_write(m->fd) ? PROT_WRITE : 0);
	struct stat st;
	void *base;

	if (fstat(m->fd, &st))
		return errno;
	if (!st.st_size)
		return EINVAL;
	base = mmap(NULL, (size_t)st.st_size, prot, MAP_SHARED, m->fd, 0);
	if (base == MAP_FAILED)
		return errno;
	if (m->base)
		munmap(m->base, m->size);
	m->base = base;
	m->size = (size_t)st.st_size;
	return 0;
}

API int stargate_map_file(struct stargate_map *m, const char *path, int flags, mode_t mode,
			  size_t size)
{
	SGL_UNCANCELLED;
	int err;

	*m = (struct stargate_map){ .fd = open(path, flags | O_CLOEXEC, mode) };
	if (m->fd < 0)
		return errno;
	err = lengthen(m->fd, size);
	if (!err)
		err = map_all(m);
	if (err)
		close(m->fd);
	return err;
}

API int stargate_map_again(struct stargate_map *m)
{
	return map_all(m);
}

API void stargate_unmap(struct stargate_map *m)
{
	munmap(m->base, m->size);
	sgl_close(m->fd);
}

/* Polls with growing pauses, because no system rings a bell when a file grows. */
API int stargate_await_size(int fd, uint64_t size, uint64_t until)
{
	SGL_UNCANCELLED;
	u64 nap = NAP_MIN_NS, t;
	struct stat st;

	for (;;) {
		struct timespec ts = { 0 };

		if (fstat(fd, &st))
			return errno;
		if ((uint64_t)st.st_size >= size)
			return 0;
		if (!until)
			return EAGAIN;
		t = now();
		if (t >= until)
			return ETIMEDOUT;
		ts.tv_nsec = (long)(nap < until - t ? nap : until - t);
		if (nanosleep(&ts, NULL) && errno == EINTR)
			return EINTR;
		nap = nap * 2 < NAP_MAX_NS ? nap * 2 : NAP_MAX_NS;
	}
}

/* --- a ring ----------------------------------------------------------------------------------- */

struct stargate_cursor {
	stargate_sem *published, *consumed;
	u64 room;
};

static int open_end(stargate_sem **out, const char *volume, const char *name, const char *end)
{
	const struct stargate_new what = { .type = STARGATE_EVENT, .mode = 0666 };
	char full[SG_SEM_NAME_ROOM + 16];

	snprintf(full, sizeof(full), "%s.%s", name, end);
	return stargate_create(out, volume, full, &what, 0);
}

API int stargate_cursor_open(stargate_cursor **out, const char *volume, const char *name,
			     uint64_t room)
{
	struct stargate_cursor *c;
	int err;

	if (!room)
		return EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return ENOMEM;
	c->room = room;
	err = open_end(&c->published, volume, name, "published");
	if (!err)
		err = open_end(&c->consumed, volume, name, "consumed");
	if (err)
		stargate_cursor_close(c);
	else
		*out = c;
	return err;
}

API void stargate_cursor_close(stargate_cursor *c)
{
	if (!c)
		return;
	stargate_close(c->published);
	stargate_close(c->consumed);
	free(c);
}

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

/*
 * Each count only grows, and only one side changes it. So room or bytes that the caller has seen
 * are still available.
 */
static int read_both(stargate_cursor *c, u64 *published, u64 *consumed)
{
	int err = stargate_event_read(c->published, published);

	if (!err)
		err = stargate_event_read(c->consumed, consumed);
	if (!err && (*published < *consumed || *published - *consumed > c->room))
		err = EUCLEAN;
	return err;
}

API int stargate_publish_at(stargate_cursor *c, uint64_t *at, uint64_t *room, uint64_t until)
{
	u64 put, got;
	int err = read_both(c, &put, &got);

	if (!err && put - got == c->room) {
		err = stargate_event_await(c->consumed, got + 1, until);
		if (!err)
			err = read_both(c, &put, &got);
	}
	if (err)
		return err;
	*at = put % c->room;
	*room = least(c->room - (put - got), c->room - *at);
	return 0;
}

API int stargate_publish(stargate_cursor *c, uint64_t bytes)
{
	u64 put, got;
	int err = read_both(c, &put, &got);

	if (err)
		return err;
	return bytes > c->room - (put - got) ? EINVAL : stargate_event_advance(c->published, bytes);
}

API int stargate_consume_at(stargate_cursor *c, uint64_t *at, uint64_t *bytes, uint64_t until)
{
	u64 put, got;
	int err = read_both(c, &put, &got);

	if (!err && put == got) {
		err = stargate_event_await(c->published, got + 1, until);
		if (!err)
			err = read_both(c, &put, &got);
	}
	if (err)
		return err;
	*at = got % c->room;
	*bytes = least(put - got, c->room - *at);
	return 0;
}

API int stargate_consume(stargate_cursor *c, uint64_t bytes)
{
	u64 put, got;
	int err = read_both(c, &put, &got);

	if (err)
		return err;
	return bytes > put - got ? EINVAL : stargate_event_advance(c->consumed, bytes);
}
