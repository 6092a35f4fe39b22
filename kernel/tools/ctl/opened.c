// SPDX-License-Identifier: Apache-2.0
/*
 * systems --open: lists the files that each system has open, from the bits in the inodes. It only
 * reads the volume, as `systems` does. To find the paths it reads the tree, which takes most of the
 * time.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "ctl.h"
#include "paths.h"

#define OPENED_MAX (4u << 20) /* limits memory, also for a hostile volume */

/**
 * struct opened - the open files. @more: there are more than the table can hold. @out: memory ran
 * out.
 */
struct opened {
	struct call *c;
	struct target target;
	struct sg_vol vol;
	struct sg_slot slot[SG_SLOTS];
	struct sg_opened *file;
	size_t n, room;
	bool more, out;
	struct paths *paths;
};

/* --- looking ------------------------------------------------------------------------------- */

static bool taken(const struct sg_slot *s)
{
	return SG_SLOT_STATE(s->state) != SG_SLOT_FREE;
}

static u64 all_taken(const struct opened *w)
{
	u64 bits = 0;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		bits |= (u64)taken(&w->slot[i]) << i;
	return bits;
}

/* Ignores the bits of a free slot, which a dead system has left. */
static bool take(void *ctx, const struct sg_opened *o)
{
	struct opened *w = ctx;

	if (!(o->slots & all_taken(w)))
		return true;
	w->more = w->n == OPENED_MAX;
	if (w->n == w->room && !w->more) {
		size_t room = w->room ? 2 * w->room : 256;
		struct sg_opened *file = realloc(w->file, room * sizeof(*file));

		w->out = !file;
		if (w->out)
			return false;
		w->file = file;
		w->room = room;
	}
	if (!w->more)
		w->file[w->n++] = *o;
	return !w->more;
}

static int look(struct opened *w)
{
	unsigned int i;

	if (target_read_now(&w->target, w->vol.sb.slot_off, w->slot, sizeof(w->slot)))
		return path_error(w->c->volume, -EIO);
	for (i = 0; i < SG_SLOTS; i++)
		w->slot[i].name[sizeof(w->slot[i].name) - 1] = 0;
	sg_opened(&w->vol, take, w);
	w->paths = paths_begin(w->target.base, w->target.size);
	return w->out || !w->paths ? path_error(w->c->volume, -ENOMEM) : 0;
}

/* --- showing ------------------------------------------------------------------------------- */

static const char *state_of(const struct sg_slot *s)
{
	switch (SG_SLOT_STATE(s->state)) {
	case SG_SLOT_LIVE:
		return "live";
	case SG_SLOT_RECOVERING:
		return "recovering";
	}
	return "dead";
}

static void show_json(struct opened *w, unsigned int slot, const struct sg_opened *o)
{
	char *path = o->links ? paths_find(w->paths, o->ino) : NULL;
	struct json *j = &w->c->j;

	json_object(j, NULL);
	json_u64(j, "slot", slot);
	json_str(j, "name", w->slot[slot].name);
	json_str(j, "state", state_of(&w->slot[slot]));
	json_u64(j, "inode", o->ino);
	json_str(j, "type", type_name(o->mode));
	json_u64(j, "links", o->links);
	json_size(j, "size", o->size);
	if (path)
		json_str(j, "path", path);
	json_close(j, '}');
	free(path);
}

/* Prints a path, which begins with a slash even if a name in it has unusual characters. */
static void show_line(struct opened *w, unsigned int slot, const struct sg_opened *o)
{
	char *path = o->links ? paths_find(w->paths, o->ino) : NULL;
	const char *name = w->slot[slot].name;
	size_t len = strlen(name);
	char size[32];

	printf("%4u  ", slot);
	if (len && text_plain(name, len))
		printf("%-16s  ", name);
	else
		printf("%-16s  ", "-");
	printf("%8llu  %-9s  %-9s  ", (unsigned long long)o->ino, type_name(o->mode),
	       show_size(o->size, size));
	if (path)
		print_text(path);
	else
		fputs(o->links ? "(no path leads to it)" : "(removed)", stdout);
	putchar('\n');
	free(path);
}

static void show(struct opened *w)
{
	struct json *j = &w->c->j;
	unsigned int slot;
	size_t i;

	if (w->c->json) {
		json_begin(j, stdout, false);
		json_array(j, "open");
	} else if (w->n) {
		printf("SLOT  SYSTEM               INODE  TYPE       SIZE       PATH\n");
	}
	for (slot = 0; slot < SG_SLOTS; slot++) {
		for (i = 0; i < w->n; i++) {
			if (!(w->file[i].slots >> slot & 1) || !taken(&w->slot[slot]))
				continue;
			if (w->c->json)
				show_json(w, slot, &w->file[i]);
			else
				show_line(w, slot, &w->file[i]);
		}
	}
	if (w->c->json) {
		json_close(j, ']');
		json_bool(j, "truncated", w->more);
		json_end(j);
	}
}

/* --- the command --------------------------------------------------------------------------- */

int show_opened(struct call *c)
{
	static struct opened w;
	int err;

	w.c = c;
	if (member_look_on(&w.target, &w.vol, c->volume))
		return 1;
	err = look(&w);
	if (!err)
		show(&w);
	if (!err && w.more)
		tool_warn("%s: more than %u files are open; the list does not have the rest", c->volume,
			  OPENED_MAX);
	paths_end(w.paths);
	free(w.file);
	target_close(&w.target);
	return err ? 1 : 0;
}
