// SPDX-License-Identifier: Apache-2.0
/* tune: what can be changed in a volume, whoever uses it meanwhile. */
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

	if (member_look_on(&t, &vol, c->volume))
		return 1;
	json_begin(j, stdout, !c->json);
	show_lease(j, sg_lease(&vol));
	json_end(j);
	return target_close(&t) ? 1 : 0;
}

/* What is stored through a block device's mapping others do not see: it is set like a label. */
static int set_alone(struct call *c)
{
	if (member_open(&c->m, c->volume, true, false))
		return 1;
	sg_set_lease(&c->m.vol, c->lease_ms);
	return member_close(&c->m) ? 1 : 0;
}

/* One word: who is there reads it at his next look. */
static int set(struct call *c)
{
	struct sg_vol vol;
	struct target t;
	struct stat st;

	if (!stat(c->volume, &st) && S_ISBLK(st.st_mode))
		return set_alone(c);
	if (member_look_on(&t, &vol, c->volume))	/* says what is wrong with it */
		return 1;
	target_close(&t);
	if (target_open(&t, c->volume, TARGET_SHARE))
		return 1;
	if (t.base && !sg_open(&vol, t.base, t.size, false, NULL)) {
		sg_set_lease(&vol, c->lease_ms);
		return target_close(&t) ? 1 : 0;
	}
	tool_error("%s: cannot be changed: %s", c->volume, t.base ? vol.why : "it is gone");
	target_close(&t);
	return 1;
}

int cmd_tune(struct call *c)
{
	return c->lease ? set(c) : show(c);
}
