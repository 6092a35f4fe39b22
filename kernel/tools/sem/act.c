// SPDX-License-Identifier: Apache-2.0
/* Commands that create and remove, wait and post. */
#include <errno.h>
#include "tool.h"
#include "sem.h"

int cmd_create(struct call *c)
{
	const struct stargate_new what = {
		.type = c->type, .flags = c->o.flags, .mode = c->o.mode, .initial = c->value,
	};
	stargate_sem *s;
	int err = stargate_create(&s, c->o.volume, c->o.name, &what, c->o.how);

	if (err)
		return trouble(c, err, 1);
	stargate_close(s);
	return 0;
}

int cmd_rm(struct call *c)
{
	int err = stargate_remove(c->o.volume, c->o.name);

	return err ? trouble(c, err, 1) : 0;
}

int cmd_reset(struct call *c)
{
	int err = stargate_reset(c->o.volume, c->o.name);

	return err ? trouble(c, err, 1) : 0;
}

/* @type: the object's type. `wait` and `post` accept the same types. */
static int open_any(struct call *c, stargate_sem **s, enum stargate_type *type)
{
	struct stargate_stat st;
	int err = stargate_open(s, c->o.volume, c->o.name, STARGATE_ANY, STARGATE_BY_KERNEL);

	if (err)
		return err;
	err = stargate_fstat(*s, &st);
	*type = st.type;
	if (err)
		stargate_close(*s);
	return err;
}

/*
 * Waits for a later signal. The state that the condition describes is elsewhere, for example in a
 * file.
 */
static int wait_signal(struct call *c, stargate_sem *s)
{
	uint64_t seen;
	int err = stargate_cond_look(s, &seen);

	return err ? err : stargate_cond_wait_from(s, seen, c->o.until);
}

static int wait_for(struct call *c, stargate_sem *s, enum stargate_type type)
{
	uint64_t at = c->at;
	int err = 0;

	switch (type) {
	case STARGATE_SEMAPHORE:
		return stargate_sem_wait(s, c->o.until);
	case STARGATE_BARRIER:
		return stargate_barrier_wait(s, c->o.until, NULL);
	case STARGATE_CONDITION:
		return wait_signal(c, s);
	case STARGATE_EVENT:
		if (!c->has_count)
			err = stargate_event_read(s, &at);
		return err ? err : stargate_event_await(s, at + !c->has_count, c->o.until);
	default:
		return EPROTOTYPE;
	}
}

int cmd_wait(struct call *c)
{
	enum stargate_type type;
	stargate_sem *s;
	int err = open_any(c, &s, &type);

	if (err)
		return trouble(c, err, 1);
	err = wait_for(c, s, type);
	stargate_close(s);
	return err ? trouble(c, err, 1) : 0;
}

static int post(struct call *c, stargate_sem *s, enum stargate_type type)
{
	uint64_t i;
	int err = 0;

	switch (type) {
	case STARGATE_SEMAPHORE:
		for (i = 0; i < c->by && !err; i++)
			err = stargate_sem_post(s);
		return err;
	case STARGATE_EVENT:
		return stargate_event_advance(s, c->by);
	case STARGATE_CONDITION:
		return c->all ? stargate_cond_broadcast(s) : stargate_cond_signal(s);
	default:
		return EPROTOTYPE;
	}
}

int cmd_post(struct call *c)
{
	enum stargate_type type;
	stargate_sem *s;
	int err = open_any(c, &s, &type);

	if (err)
		return trouble(c, err, 1);
	err = post(c, s, type);
	stargate_close(s);
	return err ? trouble(c, err, 1) : 0;
}
