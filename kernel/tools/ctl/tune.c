// SPDX-License-Identifier: Apache-2.0
/* tune: changes properties of a volume in use, and UUID and label of an unused one. */
#define _GNU_SOURCE
#include "ctl.h"

void show_lease(struct json *j, u64 ms)
{
	char text[32] = "never";

	if (!j->plain) {
		json_u64(j, "lease_ms", ms);
		return;
	}
	if (ms)
		snprintf(text, sizeof(text), "%g s", (double)ms / 1000);
	json_str(j, "lease", text);
}

static int show(struct call *c)
{
	struct json *j = &c->j;
	struct sg_vol vol;
	struct target t;
	char id[37];

	if (member_look_on(&t, &vol, c->volume))
		return 1;
	json_begin(j, stdout, !c->json);
	json_str(j, "uuid", show_uuid(vol.sb.uuid, id));
	json_str(j, "label", vol.sb.label);
	show_lease(j, sg_lease(&vol));
	json_end(j);
	return target_close(&t) ? 1 : 0;
}

/* Makes the change that can fail first. If it fails, nothing has changed. */
static int set_alone(struct call *c)
{
	char why[200] = "";
	int err = member_open(&c->m, c->volume, true, false);

	if (err)
		return 1;
	if (c->uuid || c->label)
		err = sg_relabel(&c->m.vol, c->uuid ? c->uuid_id : NULL, c->label, why);
	if (err)
		tool_error("%s: %s", c->volume, why[0] ? why : strerror(-err));
	else if (c->lease)
		sg_set_lease(&c->m.vol, c->lease_ms);
	return member_close(&c->m) || err ? 1 : 0;
}

/*
 * Needs exclusive access: all systems that use the volume have copies of UUID and label. In
 * addition, they do not see stores through the mapping of a block device.
 */
static bool only_alone(const struct call *c)
{
	struct stat st;

	return c->uuid || c->label || (!stat(c->volume, &st) && S_ISBLK(st.st_mode));
}

/* The change is one word, which each system reads when it next checks the slots. */
static int set(struct call *c)
{
	struct sg_vol vol;
	struct target t;

	if (only_alone(c))
		return set_alone(c);
	if (member_look_on(&t, &vol, c->volume))	/* reports errors */
		return 1;
	target_close(&t);
	if (target_open(&t, c->volume, TARGET_SHARE))
		return 1;
	if (t.base && !sg_open(&vol, t.base, t.size, false, NULL)) {
		sg_set_lease(&vol, c->lease_ms);
		return target_close(&t) ? 1 : 0;
	}
	tool_error("%s: cannot be changed: %s", c->volume, t.base ? vol.why : "the volume is gone");
	target_close(&t);
	return 1;
}

int cmd_tune(struct call *c)
{
	return c->lease || c->uuid || c->label ? set(c) : show(c);
}
