// SPDX-License-Identifier: Apache-2.0
/*
 * systems VOLUME fence: fences a live system on request of the administrator. On the node that has
 * mounted the volume, the module first revokes the memory of the system's machine, so that the
 * fence is certain (D6). If that is impossible, the fence is only a claim, and needs --force. A
 * system whose heartbeat moves also needs --force, because a mistyped name or number usually
 * belongs to such a system.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "ctl.h"

#define STEP_MS		50
#define WATCH_MS 1100 /* on a busy machine a heartbeat with a period of 50 ms may be a second late
#*/

struct fencing {
	struct call *c;
	struct target target;
	struct sg_vol vol;
	struct sg_slot slot;
	unsigned int number;
};

/* --- which system -------------------------------------------------------------------------- */

/*
 * Reads SLOT, or SLOT/INCARNATION. With the incarnation, the text does not match a system that took
 * the slot later.
 */
static bool is_number(const struct sg_slot *s, unsigned int number, const char *text, bool *meant)
{
	const char *slash = strchrnul(text, '/');
	char slot[8];
	u64 value, inc;

	if ((size_t)(slash - text) >= sizeof(slot))
		return false;
	snprintf(slot, sizeof(slot), "%.*s", (int)(slash - text), text);
	if (!parse_number(slot, 10, SG_SLOTS - 1, &value))
		return false;
	*meant = value == number;
	if (!*slash)
		return true;
	if (!parse_number(slash + 1, 10, UINT32_MAX, &inc))
		return false;
	*meant = *meant && inc == SG_SLOT_INC(s->state);
	return true;
}

static bool is_meant(const struct sg_slot *s, unsigned int number, const char *text)
{
	u8 machine[16];
	bool meant;

	if (is_number(s, number, text, &meant))
		return meant;
	if (s->named != SG_SLOT_INC(s->state))
		return false;
	if (parse_uuid(text, machine) && sg_machine_known(machine) &&
	    !memcmp(machine, s->machine, sizeof(machine)))
		return true;
	return !strcmp(s->name, text);
}

static int read_slots(struct fencing *f, struct sg_slot slot[SG_SLOTS])
{
	unsigned int i;

	if (target_read_now(&f->target, f->vol.sb.slot_off, slot, SG_SLOTS * sizeof(*slot)))
		return path_error(f->c->volume, -EIO);
	for (i = 0; i < SG_SLOTS; i++)
		slot[i].name[sizeof(slot[i].name) - 1] = 0;
	return 0;
}

/* Finds the systems that @text names, with @live the live ones, otherwise those of dead slots. */
static unsigned int find(struct fencing *f, const struct sg_slot slot[SG_SLOTS], const char *text,
			 bool live)
{
	unsigned int i, n = 0;

	for (i = 0; i < SG_SLOTS; i++) {
		u32 state = SG_SLOT_STATE(slot[i].state);

		if (state == SG_SLOT_FREE || (state == SG_SLOT_LIVE) != live ||
		    !is_meant(&slot[i], i, text))
			continue;
		f->slot = slot[i];
		f->number = i;
		n++;
	}
	return n;
}

static int refused(const struct fencing *f, const char *why)
{
	tool_error("%s (slot %u): %s", f->slot.name, f->number, why);
	return -EINVAL;
}

/* Explains that a slot has no live system: who recovers it, and what to do. */
static int refuse_dead(const struct fencing *f, u64 state)
{
	unsigned int by = SG_SLOT_BY(state);
	char why[200];

	if (SG_SLOT_STATE(state) != SG_SLOT_RECOVERING)
		return refused(f, "is fenced already: live systems recover it, or else the next mount does");
	if (by == f->number)
		return refused(f, "is fenced already, and a system that needs the slot recovers it: wait; "
			       "5 s after that system has died, live systems take over, or else the "
			       "next mount does");
	snprintf(why, sizeof(why),
		 "is fenced already, and the system of slot %u recovers it: wait, or fence that system",
		 by);
	return refused(f, why);
}

static int find_system(struct fencing *f, const char *text)
{
	struct sg_slot slot[SG_SLOTS];
	unsigned int n;

	if (read_slots(f, slot))
		return -EIO;
	n = find(f, slot, text, true);
	if (n == 1)
		return 0;
	if (n)
		tool_error("%u systems have the name '%s': give the number of the slot", n, text);
	else if (find(f, slot, text, false))
		return refuse_dead(f, f->slot.state);
	else
		tool_error("there is no live system '%s'", text);
	return -ENOENT;
}

/* --- how to fence it ----------------------------------------------------------------------- */

/* The slot has not been live with this incarnation when it was to be fenced. */
static int refuse_changed(struct fencing *f)
{
	struct sg_slot slot[SG_SLOTS];
	u64 state;

	if (read_slots(f, slot))
		return -EIO;
	state = slot[f->number].state;
	if (SG_SLOT_INC(state) != SG_SLOT_INC(f->slot.state) ||
	    SG_SLOT_STATE(state) == SG_SLOT_FREE || SG_SLOT_STATE(state) == SG_SLOT_LIVE)
		return refused(f, "has left meanwhile");
	return refuse_dead(f, state);
}

/* If the module revokes a machine's memory, it fences all systems of the machine together. */
static bool goes_too(const struct fencing *f, const struct sg_slot *s, unsigned int number)
{
	if (number == f->number || SG_SLOT_STATE(s->state) != SG_SLOT_LIVE)
		return number == f->number;
	return s->named == SG_SLOT_INC(s->state) && f->slot.named == SG_SLOT_INC(f->slot.state) &&
	       sg_machine_known(s->machine) && !memcmp(s->machine, f->slot.machine, 16);
}

static bool has_beaten(const struct sg_slot *then, const struct sg_slot *now)
{
	return now->state == then->state && now->heartbeat != then->heartbeat;
}

/* Watches the slots until their state is clear; refuses to fence a system whose heartbeat moves. */
static int refuse_alive(struct fencing *f)
{
	static struct sg_slot then[SG_SLOTS], now[SG_SLOTS];
	unsigned int i, waited;

	if (read_slots(f, then))
		return -EIO;
	for (waited = 0; waited < WATCH_MS; waited += STEP_MS) {
		usleep(STEP_MS * 1000);
		if (read_slots(f, now))
			return -EIO;
		for (i = 0; i < SG_SLOTS; i++) {
			if (!goes_too(f, &then[i], i) || !has_beaten(&then[i], &now[i]))
				continue;
			if (i == f->number)
				return refused(f, "its heartbeat moves: unmount it there, or end "
					       "it; --force fences it anyway");
			tool_error("%s (slot %u): the heartbeat of its VM's slot %u moves: "
				   "--force fences it anyway", f->slot.name,
				   f->number, i);
			return -EBUSY;
		}
	}
	return 0;
}

/*
 * Reads the present mode of the holder. The module does not list a holder of identity memory that
 * it has revoked.
 */
static const char *mode_of(const struct holder *one, const struct holder now[], unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (now[i].pid == one->pid && now[i].known &&
		    !memcmp(now[i].machine, one->machine, 16))
			return now[i].mode;
	return "revoked";
}

static void say_holder(const struct holder *one, const char *mode)
{
	printf("process %llu (", (unsigned long long)one->pid);
	print_text(one->command);
	printf("), %s\n", mode);
}

/* A system chooses its own name, so two systems may have the same name. */
static void say_dead(const struct fencing *f)
{
	print_text(f->slot.name);
	printf(" (slot %u): fenced\n", f->number);
}

static void say_whose(const struct fencing *f, const struct holder then[], unsigned int n)
{
	struct holder now[HOLDERS];
	unsigned int i, m = read_holders(f->c->volume, now, HOLDERS);

	for (i = 0; i < n; i++)
		if (then[i].known && !memcmp(then[i].machine, f->slot.machine, 16))
			say_holder(&then[i], mode_of(&then[i], now, m));
}

static int fence_here(struct fencing *f, const char *dir)
{
	struct holder then[HOLDERS];
	unsigned int n = read_holders(f->c->volume, then, HOLDERS);
	int err = ask_to_fence(dir, f->number, SG_SLOT_INC(f->slot.state), f->c->force);

	switch (-err) {
	case 0:
		say_dead(f);
		say_whose(f, then, n);
		return 0;
	case ENXIO:
		return refused(f, "no process here is known to hold .stargate/region for its VM, so nothing can stop it: --force fences it anyway");
	case EINVAL:
		return refused(f, "is this system itself: unmount it");
	case ESTALE:
		return refuse_changed(f);
	case EROFS:
		return refused(f, "the volume cannot be written to here");
	}
	return refused(f, strerror(-err));
}

/* Only the system itself can stop its stores, when it reads the fence word in its slot. */
static int declare(struct fencing *f)
{
	struct target shared;
	struct sg_vol vol;
	int err;

	if (!f->c->force)
		return refused(f, "the volume is not mounted on this host, which therefore cannot stop the "
			       "system: --force fences it anyway");
	err = target_open(&shared, f->c->volume, TARGET_SHARE);
	if (err)
		return err;
	err = shared.base ? sg_open(&vol, shared.base, shared.size, false, NULL) : -ENOMEM;
	if (!err)
		err = sg_fence_lapsed(&vol, f->number, SG_SLOT_INC(f->slot.state));
	target_close(&shared);
	if (err == -ESTALE)
		return refuse_changed(f);
	if (err)
		return refused(f, strerror(-err));
	say_dead(f);
	return 0;
}

int before_systems(struct call *c)
{
	if (!c->argc && !c->force && !(c->open && c->watch))
		return 0;
	if (!c->open && c->argc == 2 && !strcmp(c->argv[0], "fence") && !c->json && !c->watch)
		return 0;
	return tool_usage_error("systems: takes " SYSTEMS_TAKES);
}

int fence_system(struct call *c)
{
	struct fencing f = { .c = c };
	char dir[PATH_MAX];
	bool here;
	int err = member_look_on(&f.target, &f.vol, c->volume);

	if (err)
		return 1;
	err = find_system(&f, c->argv[1]);
	here = !err && mounted_here(c->volume, dir, sizeof(dir));
	/* For the system of this module, the module's message has more details. */
	if (!err && !c->force && !(here && own_slot(dir) == (int)f.number))
		err = refuse_alive(&f);
	if (!err)
		err = here ? fence_here(&f, dir) : declare(&f);
	target_close(&f.target);
	return err ? 1 : 0;
}
