// SPDX-License-Identifier: Apache-2.0
/* Commands that list all objects, and show one of them. */
#include <errno.h>
#include <stdlib.h>
#include "tool.h"
#include "sem.h"

static bool is_lock(const struct stargate_stat *st)
{
	return st->type == STARGATE_MUTEX || st->type == STARGATE_RWLOCK;
}

/* Describes the state in a few words. */
static void put_state(const struct stargate_stat *st, char *buf, size_t room)
{
	if (!is_lock(st))
		snprintf(buf, room, "%llu", (unsigned long long)st->value);
	else if (st->lost)
		snprintf(buf, room, "lost");
	else if (st->slot >= 0)
		snprintf(buf, room, "locked%s", st->died ? ", inconsistent" : "");
	else if (st->type == STARGATE_RWLOCK && st->value)
		snprintf(buf, room, "%llu readers", (unsigned long long)st->value);
	else
		snprintf(buf, room, "%s", st->died ? "free, its owner died" : "free");
}

static void put_json(struct json *j, const struct stargate_stat *st)
{
	json_str(j, "name", st->name);
	json_str(j, "type", type_name(st->type));
	json_u64(j, "value", st->value);
	json_bool(j, "recursive", st->flags & STARGATE_RECURSIVE);
	json_bool(j, "guarded", st->flags & STARGATE_GUARDED);
	json_bool(j, "last_user", st->flags & STARGATE_LAST_USER);
	json_u64(j, "mode", st->mode);
	json_u64(j, "uid", st->uid);
	json_u64(j, "gid", st->gid);
	json_time(j, "created", (s64)st->created);
	json_u64(j, "initial", st->initial);
	json_u64(j, "systems_using", (u64)__builtin_popcountll(st->users));
	json_u64(j, "systems_waiting", (u64)__builtin_popcountll(st->waiters));
	json_bool(j, "died", st->died);
	json_bool(j, "lost", st->lost);
	if (st->slot < 0)
		return;
	json_s64(j, "owner_slot", st->slot);
	json_str(j, "owner_system", st->system);
	json_s64(j, "owner_pid", st->pid);
	json_s64(j, "owner_tid", st->tid);
	json_str(j, "owner_command", st->comm);
	json_time(j, "owner_since", (s64)st->since);
}

int cmd_show(struct call *c)
{
	struct stargate_stat st;
	struct json j;
	int err = stargate_stat(c->o.volume, c->o.name, &st);

	if (err)
		return trouble(c, err, 1);
	json_begin(&j, stdout, !c->o.json);
	put_json(&j, &st);
	json_end(&j);
	return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool is_any(const struct stargate_stat *st)
{
	(void)st;
	return true;
}

static void put_line(const struct stargate_stat *st)
{
	char state[64];

	put_state(st, state, sizeof(state));
	printf("%-10s %03o %-22s ", type_name(st->type), st->mode, state);
	put_text(stdout, st->name, strlen(st->name));
	if (st->slot >= 0) {
		fputs("  (", stdout);
		put_text(stdout, st->comm, strlen(st->comm));
		printf(" %d on ", (int)st->pid);
		put_text(stdout, st->system, strlen(st->system));
		putchar(')');
	}
	putchar('\n');
}

int cmd_list(struct call *c)
{
	return object_list(&c->o, &(struct object_list){ "objects", is_any, put_json, put_line });
}
