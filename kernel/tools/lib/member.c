// SPDX-License-Identifier: Apache-2.0
/*
 * Makes a tool one of the systems: its identity, its heartbeat, joining and leaving the mount
 * table.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "tool.h"

#define BEAT_MS		100
#define DEVICE_BEATS 5 /* number of heartbeats for each heartbeat on a device (device.c) */

/* --- identity ------------------------------------------------------------------------------ */

void member_identity(struct sg_identity *id)
{
	memset(id, 0, sizeof(*id));
	if (!uuid_from("/sys/class/dmi/id/product_uuid", id->machine))
		uuid_from("/etc/machine-id", id->machine);
	process_boot(id->boot);
	gethostname(id->name, sizeof(id->name) - 1);
	snprintf(id->version, sizeof(id->version), "%s", TOOL_VERSION);
	id->pid = process_self();
	id->beat_ns = BEAT_MS * 1000000ULL;
}

/* --- live systems -------------------------------------------------------------------------- */

static int read_slots(const struct target *t, const struct sg_super *sb, struct sg_slot *slots)
{
	return target_read_now(t, sb->slot_off, slots, SG_SLOTS * sizeof(*slots));
}

static bool changed(const struct sg_slot *a, const struct sg_slot *b)
{
	return SG_SLOT_STATE(b->state) != SG_SLOT_FREE &&
	       (a->heartbeat != b->heartbeat || a->guard != b->guard || a->state != b->state);
}

int member_watch(const struct target *t, const struct sg_super *sb, unsigned int wait_ms,
		 char why[200])
{
	static struct sg_slot then[SG_SLOTS], now[SG_SLOTS];
	unsigned int i, waited, taken = 0;

	if (read_slots(t, sb, then)) {
		snprintf(why, 200, "its mount table cannot be read");
		return -EIO;
	}
	for (i = 0; i < SG_SLOTS; i++)
		taken += SG_SLOT_STATE(then[i].state) != SG_SLOT_FREE;
	for (waited = 0; taken && waited < wait_ms; waited += BEAT_MS) {
		usleep(BEAT_MS * 1000);
		if (read_slots(t, sb, now)) {
			snprintf(why, 200, "its mount table cannot be read");
			return -EIO;
		}
		for (i = 0; i < SG_SLOTS; i++) {
			if (!changed(&then[i], &now[i]))
				continue;
			snprintf(why, 200, "in use by %.63s (slot %u); %s", now[i].name, i,
				 now[i].pid ? "wait until its tool ends" :
				 "unmount it there first");
			return -EBUSY;
		}
	}
	if (!device_watch(t, sb, then, !wait_ms))
		return 0;
	snprintf(why, 200, "its hot page cannot be read");
	return -EIO;
}

/* --- joining ------------------------------------------------------------------------------- */

static void *beat(void *arg)
{
	struct beater *b = arg;
	unsigned int beats;

	for (beats = 1; !__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE); beats++) {
		sg_beat(b->vol);
		if (!(beats % DEVICE_BEATS))
			device_beat(b->target);
		usleep(BEAT_MS * 1000);
	}
	return NULL;
}

void beater_start(struct beater *b, struct sg_vol *vol, const struct target *t)
{
	*b = (struct beater){ .vol = vol, .target = t };
	b->running = !pthread_create(&b->thread, NULL, beat, b);
	if (!b->running)
		tool_warn("no thread for the heartbeat: other systems may fence this one");
}

void beater_stop(struct beater *b)
{
	if (!b->running)
		return;
	__atomic_store_n(&b->stop, true, __ATOMIC_RELEASE);
	pthread_join(b->thread, NULL);
	b->running = false;
}

static int join(struct member *m, bool look, bool force)
{
	struct sg_identity id;
	int err = 0;

	member_identity(&id);
	if (!look && m->target.kind == TARGET_BLOCK) {
		err = member_watch(&m->target, &m->vol.sb, force ? 0 : MEMBER_WAIT_MS, m->vol.why);
		force = true;	/* heartbeats do not change in the mapping */
	}
	if (!err)
		err = sg_join_alone(&m->vol, &id, MEMBER_WAIT_MS, look || force);
	if (!err && !look) {
		err = device_hold(&m->target, &m->vol, m->vol.why);
		if (err)
			sg_leave(&m->vol);
	}
	m->joined = !err;
	if (!err && !look)
		beater_start(&m->beater, &m->vol, &m->target);
	return err;
}

/* The private copy of a correct volume needs no recovery, so the tool does not join. */
static int start(struct member *m, bool change, bool force)
{
	int err = change ? sg_open(&m->vol, m->target.base, m->target.size, false, NULL) :
		  sg_open_to_look(&m->vol, m->target.base, m->target.size, NULL);

	m->vol.alone = !change && !sg_needs_recovery(&m->vol);
	if (err || m->vol.alone)
		return err;
	if (change)
		return join(m, false, force);
	if (m->target.use == TARGET_READ) {
		tool_warn("%s: not cleanly unmounted; shown without recovery", m->target.path);
		return 0;
	}
	tool_warn("%s: in use or not cleanly unmounted; shown as it would be after recovery",
		  m->target.path);
	m->vol.read_only = false;
	return join(m, true, true);
}

/* Prints no advice to run mkfs, because the user may have wanted to examine another file system. */
static void refuse(const struct target *t, const struct sg_vol *vol, int err)
{
	const char *other = foreign_signature(t->base, t->size);
	struct sg_probe probe;

	sg_probe(t->base, t->size, &probe);
	if (!probe.stargate && other)
		tool_error("%s: holds %s, not a StargateFS", t->path, other);
	else
		tool_error("%s: %s", t->path, vol->why[0] ? vol->why : strerror(-err));
}

int member_look_on(struct target *t, struct sg_vol *vol, const char *path)
{
	int err = target_open(t, path, TARGET_READ);

	if (err)
		return err;
	err = sg_open_to_look(vol, t->base, t->size, NULL);
	if (err) {
		refuse(t, vol, err);
		target_close(t);
	}
	return err;
}

int member_open(struct member *m, const char *path, bool change, bool force)
{
	struct target probe;
	int err;

	memset(m, 0, sizeof(*m));
	err = target_open(&probe, path, TARGET_READ);
	if (err)
		return err;
	if (change || probe.kind != TARGET_DAX) {
		target_close(&probe);
		err = target_open(&m->target, path, change ? TARGET_HOLD : TARGET_LOOK);
	} else {
		m->target = probe;
	}
	if (err)
		return err;
	err = start(m, change, force);
	if (err) {
		refuse(&m->target, &m->vol, err);
		target_close(&m->target);
	}
	return err;
}

int member_join(struct member *m, const char *path)
{
	struct sg_identity id;
	int err;

	memset(m, 0, sizeof(*m));
	err = target_open(&m->target, path, TARGET_CHANGE);
	if (err)
		return err;
	member_identity(&id);
	err = sg_open(&m->vol, m->target.base, m->target.size, false, NULL);
	if (!err)
		err = sg_join(&m->vol, &id, MEMBER_WAIT_MS, false);
	m->joined = !err;
	if (m->joined) {
		beater_start(&m->beater, &m->vol, &m->target);
	} else {
		refuse(&m->target, &m->vol, err);
		target_close(&m->target);
	}
	return err;
}

int member_close(struct member *m)
{
	if (m->joined)
		device_drain(&m->target);	/* may take longer than other systems wait for a
						 * heartbeat */
	beater_stop(&m->beater);
	if (m->joined)
		sg_leave(&m->vol);
	return target_close(&m->target);
}
