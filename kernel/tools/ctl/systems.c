// SPDX-License-Identifier: Apache-2.0
/*
 * systems: lists the systems that use the volume, which of them are silent, and how much space each
 * keeps from reuse. The command only reads the volume: it does not join, stores nothing, and
 * compares no clocks. The age of a heartbeat is the time for which the command has read the same
 * value.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <unistd.h>
#include "ctl.h"

#define STEP_MS		50
#define STEP_MOST_MS 200 /* a longer time is a delay of this process, not silence of a system */
#define LEAST_MS 1100 /* a guard changes its word twice in this time */
#define MOST_MS		(SG_SUSPECT_MS + 100)
#define SILENT_MS 1000 /* on a busy machine a heartbeat with a period of 50 ms may be this late */

/**
 * struct sight - the last values of a slot. @inc: incarnation of its system. @beat, @guard: words
 * of system and guard; @still, @alone: milliseconds since their last changes. @beats, @guards: they
 * have changed at least once.
 */
struct sight {
	u32 inc;
	u64 beat, guard, still, alone;
	bool beats, guards;
};

struct watching {
	struct call *c;
	u64 looked;
	struct target target;
	struct sg_vol vol;
	struct sg_slot slot[SG_SLOTS];
	struct sight sight[SG_SLOTS];
	struct sg_holding holding[SG_SLOTS];
	struct holder holder[HOLDERS];
	unsigned int holders;
};

/* --- looking ------------------------------------------------------------------------------- */

static bool taken(const struct sg_slot *s)
{
	return SG_SLOT_STATE(s->state) != SG_SLOT_FREE;
}

static void note_word(u64 *seen, u64 *still, bool *moves, u64 word, u64 passed)
{
	*still = word == *seen ? *still + passed : 0;
	*moves |= word != *seen;
	*seen = word;
}

/* @passed: milliseconds since the previous read. */
static void note(struct sight *seen, const struct sg_slot *s, u64 passed)
{
	if (seen->inc != SG_SLOT_INC(s->state))
		*seen = (struct sight){ .inc = SG_SLOT_INC(s->state), .beat = s->heartbeat,
					.guard = s->guard };
	note_word(&seen->beat, &seen->still, &seen->beats, s->heartbeat, passed);
	note_word(&seen->guard, &seen->alone, &seen->guards, s->guard, passed);
}

static int look(struct watching *w)
{
	u64 now = sg_ticks(), passed = SG_MIN((now - w->looked) / 1000000, (u64)STEP_MOST_MS);
	unsigned int i;

	if (target_read_now(&w->target, w->vol.sb.slot_off, w->slot, sizeof(w->slot)))
		return path_error(w->c->volume, -EIO);
	for (i = 0; i < SG_SLOTS; i++) {
		w->slot[i].name[sizeof(w->slot[i].name) - 1] = 0;
		note(&w->sight[i], &w->slot[i], w->looked ? passed : 0);
	}
	w->looked = now;
	return 0;
}

static bool all_beat(const struct watching *w)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		if (SG_SLOT_STATE(w->slot[i].state) == SG_SLOT_LIVE && !w->sight[i].beats)
			return false;
	return true;
}

/*
 * Watches the slots for @ms milliseconds. With @ms 0, watches them until it is clear which systems
 * are live.
 */
static int watch(struct watching *w, u64 ms)
{
	u64 seen = 0;
	int err = look(w);

	while (!err && seen < (ms ? ms : all_beat(w) ? LEAST_MS : MOST_MS)) {
		usleep(STEP_MS * 1000);
		seen += SG_MIN((sg_ticks() - w->looked) / 1000000, (u64)STEP_MOST_MS);
		err = look(w);
	}
	return err;
}

/* --- showing ------------------------------------------------------------------------------- */

static const char *state_of(const struct watching *w, unsigned int i)
{
	u64 age = w->sight[i].still;

	switch (SG_SLOT_STATE(w->slot[i].state)) {
	case SG_SLOT_LIVE:
		return age < SILENT_MS ? "alive" : age < SG_SUSPECT_MS ? "silent" : "suspected";
	case SG_SLOT_RECOVERING:
		return "recovering";
	}
	return "dead";
}

static bool guarded(const struct watching *w, unsigned int i)
{
	return w->sight[i].guards && w->sight[i].alone < SG_SUSPECT_MS;
}

static u64 behind(const struct watching *w, unsigned int i)
{
	s64 lag = (s64)(sg_get(&w->vol, SG_HOT(epoch)) - w->slot[i].epoch);

	return SG_SLOT_STATE(w->slot[i].state) == SG_SLOT_LIVE && lag > 0 ? (u64)lag : 0;
}

/* Finds the process that runs the system's machine, if this machine's module lists it. */
static const struct holder *holder_of(const struct watching *w, unsigned int i)
{
	const struct sg_slot *s = &w->slot[i];
	unsigned int k;

	for (k = 0; k < w->holders && s->named == SG_SLOT_INC(s->state); k++)
		if (w->holder[k].known && !memcmp(w->holder[k].machine, s->machine, 16))
			return &w->holder[k];
	return NULL;
}

static void show_json(struct watching *w, unsigned int i)
{
	const struct holder *held = holder_of(w, i);
	const struct sg_slot *s = &w->slot[i];
	struct json *j = &w->c->j;
	char id[37];

	json_object(j, NULL);
	json_u64(j, "slot", i);
	json_str(j, "name", s->name);
	json_str(j, "kind", s->pid ? "tool" : "kernel");
	json_u64(j, "pid", SG_SLOT_PID(s->pid));
	json_str(j, "machine", show_uuid(s->machine, id));
	json_str(j, "boot", show_uuid(s->boot, id));
	json_bytes(j, "version", s->version, strnlen(s->version, sizeof(s->version)));
	json_u64(j, "incarnation", SG_SLOT_INC(s->state));
	json_str(j, "state", state_of(w, i));
	if (SG_SLOT_STATE(s->state) == SG_SLOT_RECOVERING)
		json_u64(j, "recoverer", SG_SLOT_BY(s->state));
	json_bool(j, "beats", w->sight[i].beats);
	json_u64(j, "beat_age_ms", w->sight[i].still);
	json_bool(j, "guarded", guarded(w, i));
	json_u64(j, "epoch", s->epoch);
	json_u64(j, "behind", behind(w, i));
	json_u64(j, "held_up", w->holding[i].held_up * SG_PAGE);
	json_u64(j, "deferred", w->holding[i].deferred * SG_PAGE);
	json_u64(j, "open", w->holding[i].open);
	if (held)
		json_u64(j, "held_by", held->pid);
	json_close(j, '}');
}

static void json_holders(struct watching *w)
{
	struct json *j = &w->c->j;
	unsigned int k;
	char id[37];

	json_array(j, "holders");
	for (k = 0; k < w->holders; k++) {
		json_object(j, NULL);
		json_u64(j, "pid", w->holder[k].pid);
		json_str(j, "command", w->holder[k].command);
		json_str(j, "mode", w->holder[k].mode);
		if (w->holder[k].known)
			json_str(j, "machine", show_uuid(w->holder[k].machine, id));
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_table(struct watching *w)
{
	struct json *j = &w->c->j;
	unsigned int i, n = 0;

	json_begin(j, stdout, false);
	json_u64(j, "epoch", sg_get(&w->vol, SG_HOT(epoch)));
	json_u64(j, "lease_ms", sg_lease(&w->vol));
	json_array(j, "systems");
	for (i = 0; i < SG_SLOTS; i++) {
		if (!taken(&w->slot[i]))
			continue;
		show_json(w, i);
		n++;
	}
	json_close(j, ']');
	json_u64(j, "taken", n);
	json_holders(w);
	json_end(j);
}

/* Prints text from another system in a column. */
static void put_cell(const char *text, size_t room, int width)
{
	size_t len = strnlen(text, room);

	if (!len || !text_plain(text, len))
		printf("%-*s  ", width, "-");
	else
		printf("%-*.*s  ", width, (int)len, text);
}

static void show_line(struct watching *w, unsigned int i)
{
	const struct sg_slot *s = &w->slot[i];
	char machine[37], boot[37], beat[24], epoch[48], held[32], deferred[32];

	snprintf(beat, sizeof(beat), "%s%.1f s", w->sight[i].beats ? "" : ">",
		 (double)w->sight[i].still / 1000);
	snprintf(epoch, sizeof(epoch), "%llu%s", (unsigned long long)s->epoch,
		 behind(w, i) ? " late" : "");
	printf("%4u  %-10s  %-8s  %-5s  %-9s  %-9s  %-9s  %5llu  %6u  %.8s  %.8s  ", i,
	       state_of(w, i), beat, guarded(w, i) ? "yes" : "no", epoch,
	       show_size(w->holding[i].held_up * SG_PAGE, held),
	       show_size(w->holding[i].deferred * SG_PAGE, deferred),
	       (unsigned long long)w->holding[i].open, SG_SLOT_INC(s->state),
	       show_uuid(s->machine, machine), show_uuid(s->boot, boot));
	put_cell(s->version, sizeof(s->version), 8);
	put_text(stdout, s->name, strlen(s->name));
	if (s->pid)
		printf(" (process %u)", SG_SLOT_PID(s->pid));
	putchar('\n');
}

static void show_holders(const struct watching *w)
{
	unsigned int k;
	char id[37];

	if (w->holders)
		printf("held by:\n");
	for (k = 0; k < w->holders; k++) {
		printf("%10llu  %-7s  %-36s  ", (unsigned long long)w->holder[k].pid,
		       w->holder[k].mode, w->holder[k].known ?
		       show_uuid(w->holder[k].machine, id) : "for an unnamed VM");
		put_text(stdout, w->holder[k].command, strlen(w->holder[k].command));
		putchar('\n');
	}
}

static void plain_table(struct watching *w)
{
	u64 lease = sg_lease(&w->vol);
	unsigned int i, n = 0;

	for (i = 0; i < SG_SLOTS; i++)
		n += taken(&w->slot[i]);
	printf("%u of %u slots in use; epoch %llu; ", n, SG_SLOTS,
	       (unsigned long long)sg_get(&w->vol, SG_HOT(epoch)));
	if (lease)
		printf("lease %g s\n", (double)lease / 1000);
	else
		printf("no lease\n");
	if (n)
		printf("SLOT  STATE       BEAT      GUARD  EPOCH      HOLDS UP   DEFERRED    OPEN  "
		       "INCARN  MACHINE   BOOT      VERSION   NAME\n");
	for (i = 0; i < SG_SLOTS; i++)
		if (taken(&w->slot[i]))
			show_line(w, i);
	show_holders(w);
}

/* --- the command --------------------------------------------------------------------------- */

/* Called between two tables. */
static void turn_page(const struct call *c)
{
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	else if (!c->json)
		putchar('\n');
}

/* Opens the volume for each table, because a mapping of a block device keeps its first state. */
static int table(struct watching *w, u64 ms)
{
	int err = member_look_on(&w->target, &w->vol, w->c->volume);

	if (err)
		return err;
	err = watch(w, ms);
	if (!err) {
		sg_holdings(&w->vol, w->holding);
		w->holders = read_holders(w->c->volume, w->holder, HOLDERS);
		if (ms)
			turn_page(w->c);
		if (w->c->json)
			json_table(w);
		else
			plain_table(w);
	}
	target_close(&w->target);
	return err;
}

int cmd_systems(struct call *c)
{
	static struct watching w = { 0 };
	static char memory[PATH_MAX];
	int err;

	tool_quiet = true;
	if (mounted_memory(c->volume, memory))
		c->volume = memory;
	if (c->argc)
		return fence_system(c);
	if (c->open)
		return show_opened(c);
	w.c = c;
	err = table(&w, 0);
	while (!err && c->watch && !fflush(stdout))
		err = table(&w, c->watch * 1000);
	return err ? 1 : 0;
}
