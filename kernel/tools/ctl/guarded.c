// SPDX-License-Identifier: Apache-2.0
/*
 * The guard's actions in a volume: it changes its word in the slots of its machine's systems, and
 * fences these systems when the machine has ended. See docs/protocol.md, sections 1 and 3.
 *
 * The volume may be created, formatted again, grow or shrink during the guard's life, so each check
 * opens it again. The guard trusts only the words of the slots. It treats a system that claims to
 * belong to this machine as such, and fences it with the machine (D10).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include "ctl.h"

#define LATE_MS		2000	/* four ticks of another guard, if one runs */
#define LATE_STEP_MS	50

/* --- a volume that is truncated during a read ---------------------------------------------- */

static sigjmp_buf cut_short;

static void bus_error(int sig)
{
	(void)sig;
	siglongjmp(cut_short, 1);
}

/* Runs @look. The guard continues even if the memory that @look reads is removed. */
static void with_volume(struct guarded *v, void (*look)(struct guarded *v, void *ctx), void *ctx)
{
	if (!target_follow(&v->target))
		return;
	signal(SIGBUS, bus_error);
	if (!sigsetjmp(cut_short, 1)) {
		if (!sg_open(&v->vol, v->target.base, v->target.size, false, NULL))
			look(v, ctx);
	} else if (!v->lost) {
		v->lost = true;
		tool_warn("%s: cannot be read completely now", v->target.path);
	}
	signal(SIGBUS, SIG_DFL);
}

static void is_there(struct guarded *v, void *ctx)
{
	(void)v;
	*(bool *)ctx = true;
}

/*
 * The file may be formatted later. Still prints a message now, because the user may have named a
 * wrong file.
 */
int guarded_open(struct guarded *v, const char *path)
{
	bool there = false;
	int err = target_open(&v->target, path, TARGET_SHARE);

	if (err)
		return err;
	with_volume(v, is_there, &there);
	if (!there && !v->lost)
		tool_warn("%s: holds no mountable StargateFS yet; trying again", path);
	return 0;
}

/* --- while the machine runs ---------------------------------------------------------------- */

/* @inc: incarnation of a live system of that machine. */
static bool of_machine(const struct sg_slot *s, const u8 machine[16], u32 *inc)
{
	*inc = SG_SLOT_INC(s->state);
	return sg_slot_of_machine(s, machine);
}

struct look {
	const u8 *machine;
	bool *any, *moved;
};

static void guard_slots(struct guarded *v, void *ctx)
{
	struct look *l = ctx;
	struct sg_slot s;
	unsigned int i;
	u32 inc;

	for (i = 0; i < SG_SLOTS; i++) {
		struct sg_slot *slot = sg_at(&v->vol, sg_slot_off(&v->vol, i));

		sg_slot_read(&v->vol, i, &s);
		v->seen[i] = 0;
		if (!of_machine(&s, l->machine, &inc))
			continue;
		sg_store64(&slot->guard, s.guard + 1);
		*l->moved |= s.heartbeat != v->beat[i];
		*l->any = true;
		v->beat[i] = s.heartbeat;
		v->seen[i] = inc;
	}
}

void guarded_look(struct guarded *v, const u8 machine[16], bool *any, bool *moved)
{
	struct look l = { machine, any, moved };

	memset(v->seen, 0, sizeof(v->seen));
	with_volume(v, guard_slots, &l);
}

void guarded_confirm(struct guarded *v)
{
	memcpy(v->known, v->seen, sizeof(v->known));
}

/* --- the end of the machine ---------------------------------------------------------------- */

static void declare_dead(struct guarded *v, unsigned int i, u32 inc)
{
	struct sg_slot s;

	sg_slot_read(&v->vol, i, &s);
	if (!sg_fence_slot(&v->vol, i, inc))
		tool_warn("%s: %s (slot %u) had not left when its VM ended: fenced",
			  v->target.path, s.name, i);
}

static u64 life_of(const struct sg_slot *s)
{
	return s->heartbeat + s->guard;
}

/*
 * Handles systems that the guard did not see while the machine ran. Either the machine has mounted
 * the volume just before its end. Or it runs again, and the systems belong to its next life, for
 * which another guard changes the guard's word.
 */
static void fence_late(struct guarded *v, const u8 machine[16], u64 late)
{
	struct sg_slot then[SG_SLOTS], now;
	unsigned int i, waited;
	u32 inc, inc_now;

	for (i = 0; i < SG_SLOTS; i++)
		sg_slot_read(&v->vol, i, &then[i]);
	for (waited = 0; late && waited < LATE_MS; waited += LATE_STEP_MS) {
		usleep(LATE_STEP_MS * 1000);
		for (i = 0; i < SG_SLOTS; i++) {
			sg_slot_read(&v->vol, i, &now);
			of_machine(&then[i], machine, &inc);
			if (!of_machine(&now, machine, &inc_now) || inc != inc_now ||
			    life_of(&now) != life_of(&then[i]))
				late &= ~(1ULL << i);
		}
	}
	for (i = 0; i < SG_SLOTS; i++)
		if (late >> i & 1)
			declare_dead(v, i, SG_SLOT_INC(then[i].state));
}

static void end(struct guarded *v, void *ctx)
{
	const u8 *machine = ctx;
	struct sg_slot s;
	unsigned int i;
	u64 late = 0;
	u32 inc;

	for (i = 0; i < SG_SLOTS; i++) {
		sg_slot_read(&v->vol, i, &s);
		if (!of_machine(&s, machine, &inc))
			continue;
		if (inc == v->known[i])
			declare_dead(v, i, inc);
		else
			late |= 1ULL << i;
	}
	fence_late(v, machine, late);
}

void guarded_fence(struct guarded *v, const u8 machine[16])
{
	with_volume(v, end, (void *)machine);
	target_close(&v->target);
}
