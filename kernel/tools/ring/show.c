// SPDX-License-Identifier: Apache-2.0
/* Commands that create, remove and reset a ring, show it, and list all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tool.h"
#include "ring.h"

int cmd_create(struct call *c)
{
	const struct stargate_new what = {
		.type = STARGATE_RING, .flags = c->o.flags, .mode = c->o.mode, .initial = c->size,
	};
	stargate_ring *r;
	int err = stargate_ring_create(&r, c->o.volume, c->o.name, &what, c->o.how);

	if (err)
		return trouble(c, err);
	stargate_ring_close(r);
	return 0;
}

/* Refuses objects other than rings, because the library's functions work on objects of any kind. */
static int of_ring(struct call *c, int (*change)(const char *volume, const char *name))
{
	struct stargate_ring_stat st;
	int err = stargate_ring_stat(c->o.volume, c->o.name, &st);

	if (!err)
		err = change(c->o.volume, c->o.name);
	return err ? trouble(c, err) : 0;
}

int cmd_rm(struct call *c)
{
	return of_ring(c, stargate_remove);
}

int cmd_reset(struct call *c)
{
	return of_ring(c, stargate_reset);
}

static void put_json(struct json *j, const struct stargate_stat *st,
		     const struct stargate_ring_stat *r)
{
	json_str(j, "name", st->name);
	json_size(j, "size", st->initial);
	json_size(j, "used", st->value);
	json_bool(j, "single", st->flags & STARGATE_SINGLE);
	json_bool(j, "last_user", st->flags & STARGATE_LAST_USER);
	json_u64(j, "mode", st->mode);
	json_u64(j, "uid", st->uid);
	json_u64(j, "gid", st->gid);
	json_time(j, "created", (s64)st->created);
	json_u64(j, "systems_using", (u64)__builtin_popcountll(st->users));
	json_u64(j, "systems_waiting", (u64)__builtin_popcountll(st->waiters));
	if (!r)
		return;
	json_u64(j, "sent", r->sent);
	json_u64(j, "claims_lost", r->claims_lost);
	json_u64(j, "receivers", r->receivers);
	if (st->slot < 0)
		return;
	json_str(j, "sender_system", st->system);
	json_s64(j, "sender_pid", st->pid);
	json_str(j, "sender_command", st->comm);
}

int cmd_show(struct call *c)
{
	struct stargate_ring_stat ring;
	struct stargate_stat st;
	struct json j;
	int err = stargate_ring_stat(c->o.volume, c->o.name, &ring);

	if (!err)
		err = stargate_stat(c->o.volume, c->o.name, &st);
	if (err)
		return trouble(c, err);
	json_begin(&j, stdout, !c->o.json);
	put_json(&j, &st, &ring);
	json_end(&j);
	return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool is_ring(const struct stargate_stat *st)
{
	return st->type == STARGATE_RING;
}

static void put_row(struct json *j, const struct stargate_stat *st)
{
	put_json(j, st, NULL);
}

static void put_line(const struct stargate_stat *st)
{
	char size[32], used[32];

	printf("%-8s %03o %-10s %-16s ", show_size(st->initial, size), st->mode,
	       show_size(st->value, used), st->flags & STARGATE_SINGLE ? "single" : "");
	put_text(stdout, st->name, strlen(st->name));
	putchar('\n');
}

int cmd_list(struct call *c)
{
	return object_list(&c->o, &(struct object_list){ "rings", is_ring, put_row, put_line });
}
