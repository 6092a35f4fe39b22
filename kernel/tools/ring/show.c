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
		.type = STARGATE_RING, .flags = c->flags, .mode = c->mode, .initial = c->size,
	};
	stargate_ring *r;
	int err = stargate_ring_create(&r, c->volume, c->name, &what, c->how);

	if (err)
		return trouble(c, err);
	stargate_ring_close(r);
	return 0;
}

/* The functions for any object are meant for a ring only: another kind is refused. */
static int of_ring(struct call *c, int (*change)(const char *volume, const char *name))
{
	struct stargate_ring_stat st;
	int err = stargate_ring_stat(c->volume, c->name, &st);

	if (!err)
		err = change(c->volume, c->name);
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
	int err = stargate_ring_stat(c->volume, c->name, &ring);

	if (!err)
		err = stargate_stat(c->volume, c->name, &st);
	if (err)
		return trouble(c, err);
	json_begin(&j, stdout, !c->json);
	put_json(&j, &st, &ring);
	json_end(&j);
	return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

struct listing {
	struct stargate_stat *all;
	size_t n, room;
};

static int keep(void *ctx, const struct stargate_stat *st)
{
	struct listing *l = ctx;

	if (st->type != STARGATE_RING)
		return 0;
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		void *all = realloc(l->all, room * sizeof(*l->all));

		if (!all)
			return ENOMEM;
		l->all = all;
		l->room = room;
	}
	l->all[l->n++] = *st;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct stargate_stat *)a)->name,
		      ((const struct stargate_stat *)b)->name);
}

static void put_line(const struct call *c, const struct stargate_stat *st)
{
	char size[32], used[32];

	if (!c->names)
		printf("%-8s %03o %-10s %-16s ", show_size(st->initial, size), st->mode,
		       show_size(st->value, used), st->flags & STARGATE_SINGLE ? "single" : "");
	put_text(stdout, st->name, strlen(st->name));
	putchar('\n');
}

static void put_all(const struct listing *l)
{
	struct json j;
	size_t i;

	json_begin(&j, stdout, false);
	json_array(&j, "rings");
	for (i = 0; i < l->n; i++) {
		json_row(&j, NULL);
		put_json(&j, &l->all[i], NULL);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_end(&j);
}

int cmd_list(struct call *c)
{
	struct listing l = { 0 };
	int err = stargate_list(c->volume, keep, &l);
	size_t i;

	if (err) {
		free(l.all);
		return trouble(c, err);
	}
	if (l.n)
		qsort(l.all, l.n, sizeof(*l.all), by_name);
	if (c->json)
		put_all(&l);
	for (i = 0; i < l.n && !c->json; i++)
		put_line(c, &l.all[i]);
	free(l.all);
	return 0;
}
