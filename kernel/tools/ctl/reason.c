// SPDX-License-Identifier: Apache-2.0
/*
 * Reports to programs why a command failed: by the exit status, and with --json by an object on
 * standard output. This covers commands about zones and volumes, and commands that freeze systems.
 * The message on standard error is for people.
 *
 * The content of these two tables is in stargatectl(8), and the CSI driver relies on it. You may
 * add kinds of reasons, but no kind may change its meaning.
 */
#define _GNU_SOURCE
#include "volume.h"

static const struct {
	int err, status;
	const char *word;
} kinds[] = {
	{ EINVAL, 2, "bad-argument" },
	{ ENOENT, 3, "not-found" },
	{ EEXIST, 4, "exists" },
	{ ENOSPC, 5, "no-room" },
	{ EBUSY, STATUS_IN_USE, "in-use" },
	{ EAGAIN, STATUS_BUSY, "busy" },
	/* Status 8 is used by a volume check that cannot run. */
	{ ENODEV, 9, "no-zone" },
	{ EUCLEAN, 10, "unusable" },
};

static void tell(struct json *j, const char *word, const struct refusal *why)
{
	unsigned int i;

	json_begin(j, stdout, false);
	json_str(j, "reason", word);
	if (why->sized)
		json_u64(j, "largest", why->largest);
	if (why->systems) {
		json_array(j, "systems");
		for (i = 0; i < why->systems; i++) {
			json_row(j, NULL);
			json_u64(j, "slot", why->system[i].slot);
			json_str(j, "name", why->system[i].name);
			json_close(j, '}');
		}
		json_close(j, ']');
	}
	json_end(j);
}

int refused(struct call *c, int err, const struct refusal *why)
{
	static const struct refusal nothing;
	const char *word = "failed";
	unsigned int i, status = 1;

	if (!err)
		return 0;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].err == -err) {
			status = (unsigned int)kinds[i].status;
			word = kinds[i].word;
		}
	if (c->json)
		tell(&c->j, word, why ? why : &nothing);
	return (int)status;
}

int refused_now(struct call *c, int err)
{
	return err == -EAGAIN || err == -EBUSY ? refused(c, err, NULL) : err ? 1 : 0;
}

void refusal_systems(struct refusal *why, const struct target *t, const struct sg_super *sb)
{
	static struct sg_slot slots[SG_SLOTS];
	unsigned int i;

	why->systems = 0;
	if (target_read_now(t, sb->slot_off, slots, sizeof(slots)))
		return;
	for (i = 0; i < SG_SLOTS; i++) {
		if (SG_SLOT_STATE(slots[i].state) == SG_SLOT_FREE)
			continue;
		why->system[why->systems].slot = i;
		snprintf(why->system[why->systems].name, sizeof(why->system[0].name), "%.*s",
			 (int)sizeof(slots[i].name), slots[i].name);
		why->systems++;
	}
}
