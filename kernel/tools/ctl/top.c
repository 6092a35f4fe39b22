// SPDX-License-Identifier: Apache-2.0
/*
 * top: lists the shared semaphores of a volume mounted on this host that are locked, or for which
 * threads wait. It prints the owners, the owners' systems, and for how long each owner has held the
 * lock.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include "ctl.h"
#include "stargate.h"

/** struct contended - objects that are locked, or for which threads wait */
struct contended {
	struct stargate_stat *all;
	size_t n, room;
};

static int keep(void *ctx, const struct stargate_stat *st)
{
	struct contended *l = ctx;
	void *more;

	if (!st->waiters && st->slot < 0 && !st->died && !st->lost)
		return 0;
	if (l->n == l->room) {
		more = realloc(l->all, (2 * l->room + 16) * sizeof(*l->all));
		if (!more)
			return ENOMEM;
		l->all = more;
		l->room = 2 * l->room + 16;
	}
	l->all[l->n++] = *st;
	return 0;
}

static int systems_waiting(const struct stargate_stat *st)
{
	return __builtin_popcountll(st->waiters);
}

/* Objects with the most waiting systems come first. */
static int by_waiters(const void *a, const void *b)
{
	const struct stargate_stat *x = a, *y = b;
	int more = systems_waiting(y) - systems_waiting(x);

	return more ? more : strcmp(x->name, y->name);
}

static u64 age(const struct stargate_stat *st)
{
	struct timespec now;
	s64 ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (s64)now.tv_sec * 1000000000 + now.tv_nsec - (s64)st->since;
	return ns > 0 ? (u64)ns / 1000000000 : 0;
}

static const char *state(const struct stargate_stat *st)
{
	if (st->lost)
		return "lost";
	if (st->slot >= 0)
		return st->died ? "inconsistent" : "locked";
	return st->died ? "owner died" : "waited for";
}

static void put_line(const struct stargate_stat *st)
{
	printf("%7d %-12s ", systems_waiting(st), state(st));
	if (st->slot >= 0) {
		printf("%4d %8d %7llus ", st->slot, (int)st->pid, (unsigned long long)age(st));
		put_text(stdout, st->comm, strlen(st->comm));
		printf("@");
		put_text(stdout, st->system, strlen(st->system));
	} else {
		printf("%4s %8s %8s -", "-", "-", "-");
	}
	printf("  ");
	put_text(stdout, st->name, strlen(st->name));
	putchar('\n');
}

static void put_json(struct json *j, const struct stargate_stat *st)
{
	json_row(j, NULL);
	json_str(j, "name", st->name);
	json_str(j, "state", state(st));
	json_u64(j, "systems_waiting", (u64)systems_waiting(st));
	if (st->slot >= 0) {
		json_s64(j, "owner_slot", st->slot);
		json_str(j, "owner_system", st->system);
		json_s64(j, "owner_pid", st->pid);
		json_s64(j, "owner_tid", st->tid);
		json_str(j, "owner_command", st->comm);
		json_u64(j, "owner_age_s", age(st));
	}
	json_close(j, '}');
}

static void show(struct call *c, const struct contended *l)
{
	size_t i;

	if (!c->json)
		printf("WAITING STATE        SLOT      PID      AGE OWNER  NAME\n");
	for (i = 0; i < l->n && !c->json; i++)
		put_line(&l->all[i]);
	if (!c->json)
		return;
	json_begin(&c->j, stdout, false);
	json_array(&c->j, "semaphores");
	for (i = 0; i < l->n; i++)
		put_json(&c->j, &l->all[i]);
	json_close(&c->j, ']');
	json_end(&c->j);
}

static int table(struct call *c, const char *mount)
{
	struct contended l = { 0 };
	int err = stargate_list(mount, keep, &l);

	if (err)
		tool_error("%s: %s", c->volume, stargate_why(err));
	if (l.n)
		qsort(l.all, l.n, sizeof(*l.all), by_waiters);
	if (!err)
		show(c, &l);
	free(l.all);
	return err ? 1 : 0;
}

/* Finds the mount of a device. Any other argument is a path on a mount. */
int cmd_top(struct call *c)
{
	const char *mount = c->volume;
	char where[PATH_MAX];
	struct stat st;
	int status;

	if (!stat(mount, &st) && S_ISBLK(st.st_mode) && mounted_at(st.st_rdev, where))
		mount = where;
	status = table(c, mount);
	while (!status && c->watch && !fflush(stdout)) {
		sg_sleep_us((unsigned int)SG_MIN(c->watch, 3600ULL) * 1000000);
		status = table(c, mount);
	}
	return status;
}
