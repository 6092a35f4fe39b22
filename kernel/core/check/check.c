// SPDX-License-Identifier: GPL-2.0
/* The checker: its passes and their order. check.h explains how it works. */
#include "check.h"

/* --- findings ------------------------------------------------------------------------------ */

/* A finding that remains occurs in each pass, but is reported only once. */
static bool said_before(struct sg_ck *c, u64 ino, u64 off)
{
	u64 where[2] = { ino, off };
	u32 sum = sg_crc32c(sg_crc32c(~0u, where, sizeof(where)), c->line, strlen(c->line));
	unsigned int i;

	for (i = 0; i < c->nsaid; i++)
		if (c->said[i] == sum)
			return true;
	if (c->nsaid < SG_ARRAY_SIZE(c->said))
		c->said[c->nsaid++] = sum;
	return false;
}

bool ck_report(struct sg_ck *c, enum ck_cure cure, u64 ino, u64 off)
{
	enum sg_check_mode mode = c->opts->mode;
	bool fix = !c->looking && ((mode == SG_CHECK_REPAIR && cure != CK_NEVER) ||
				   (mode == SG_CHECK_PREEN && cure == CK_SAFE));

	fix = fix && ck_is_ours(c);
	c->found++;
	c->unfixed += !fix;
	c->beyond += cure == CK_NEVER;
	if (c->looking && mode != SG_CHECK_ONLY)
		return false;	/* the next pass finds it again, and then repairs it */
	if (c->opts->report && (fix || !said_before(c, ino, off)))
		c->opts->report(c->opts->ctx, c->line, ino, off, fix);
	return fix;
}

enum ck_cure ck_giving(const struct sg_ck *c)
{
	return c->unfixed ? CK_ASK : CK_SAFE;
}

void ck_progress(struct sg_ck *c, const char *phase, u64 done, u64 total)
{
	sg_beat(&c->vol);
	if (c->opts->progress)
		c->opts->progress(c->opts->ctx, phase, done, total);
}

void ck_note(struct sg_ck *c, struct ck_list *list, u64 ino, u64 arg)
{
	if (list->n == list->room) {
		u64 room = list->room ? 2 * list->room : 64;
		struct ck_work *item = sg_alloc(room * sizeof(*item));

		if (!item) {
			c->no_memory = true;
			return;
		}
		if (list->n)
			memcpy(item, list->item, list->n * sizeof(*item));
		sg_free(list->item);
		list->item = item;
		list->room = room;
	}
	list->item[list->n++] = (struct ck_work){ ino, arg };
}

/* --- passes -------------------------------------------------------------------------------- */

static bool any_slot_taken(const struct sg_ck *c)
{
	unsigned int slot;

	for (slot = 0; slot < SG_SLOTS; slot++)
		if (ck_slot_taken(c, slot))
			return true;
	return false;
}

/*
 * Makes one pass. Metadata claims pages first, so it keeps a page that two owners claim. Deferred
 * frees claim last, so they lose such a page.
 */
static int pass(struct sg_ck *c)
{
	int err;

	c->found = 0;
	c->unfixed = 0;
	c->beyond = 0;
	c->ring_pages = 0;
	c->ring_reported = 0;
	c->recovering = any_slot_taken(c);
	c->hold_pages = false;
	c->retyped = false;
	c->orphans.n = 0;
	c->rebuild.n = 0;
	c->strays.n = 0;
	c->settle.n = 0;
	c->holes.n = 0;
	c->res->files = c->res->directories = c->res->others = 0;
	ck_inode_free_arrays(c);
	err = ck_space_begin(c) ?: ck_image_begin(c);
	if (err)
		return err;
	ck_super(c);
	ck_slots(c);
	ck_hot(c);
	ck_areas(c);
	ck_chunk_locks(c);
	err = ck_inode_file(c);
	if (!err && c->looking)
		err = ck_loss_begin(c);
	if (err)
		return err;
	ck_records(c);
	ck_deferred_of_inodes(c);
	ck_dirs(c);
	ck_files(c);
	ck_deferred(c);
	ck_free_lists(c);
	ck_root_strays(c);
	ck_tree(c);
	ck_space(c);
	sg_fence();
	if (c->no_memory)
		return -ENOMEM;
	if (c->looking)
		ck_loss_before(c);
	else if (!ck_is_ours(c))
		return -EIO;
	return ck_image_finish(c);
}

/*
 * Reports a fenced system that continues to store, so that the volume is not reported as clean.
 */
static void not_recovered(struct sg_ck *c)
{
	sg_snprintf(c->line, sizeof(c->line), "a system could not be recovered");
	if (c->opts->report)
		c->opts->report(c->opts->ctx, c->line, 0, c->vol.sb.slot_off, false);
	c->res->found++;
}

/* Repeats passes. Ends after a pass that finds nothing, or that can repair none of its findings. */
static int repair(struct sg_ck *c)
{
	u64 repaired = 0, before = 0;
	int err;

	for (c->pass = 0; c->pass < CK_PASSES; c->pass++) {
		err = pass(c);
		if (err)
			return err;
		c->res->found = repaired + c->found;
		c->res->fixed = repaired;
		if (c->found == c->unfixed && !ck_engine_needed(c))
			break;
		if (c->no_space && c->found == before)
			break;	/* further passes would not find room either */
		before = c->found;
		repaired += c->found - c->unfixed;
		err = ck_engine_needed(c) ? ck_engine(c) : 0;
		if (err)
			return err;
	}
	if (!ck_is_ours(c))
		return -EIO;
	if (ck_engine_needed(c) && c->res->found == c->res->fixed)
		not_recovered(c);
	sg_space_rebuild_hints(&c->vol);
	return 0;
}

/* --- sg_check() ---------------------------------------------------------------------------- */

/*
 * Makes the first pass, which stores nothing. So a clean volume remains unchanged, down to the last
 * byte.
 */
static int look(struct sg_ck *c, void *base, u64 size)
{
	int err = c->opts->mode == SG_CHECK_ONLY ?
		  sg_open_to_look(&c->vol, base, size, c->opts->owner) :
		  sg_open(&c->vol, base, size, false, c->opts->owner);

	err = err ?: sg_bad_refuse(&c->vol);
	if (err)
		return err;
	c->vol.steady = true;
	c->looking = true;
	c->recovering = any_slot_taken(c);
	err = ck_view_recovered(c);
	if (!err)
		err = sg_size_take(&c->vol, ck_get(c, SG_HOT(size)));
	if (!err)
		err = pass(c);
	ck_view_free(c);
	c->looking = false;
	c->res->found = c->found;
	c->res->unclean = c->recovering;
	return err;
}

static int may_store(struct sg_ck *c)
{
	return c->opts->change ? c->opts->change(c->opts->ctx, c->vol.why) : 0;
}

/*
 * A volume whose relocation is incomplete cannot be checked. A check that may change the volume
 * first completes the relocation.
 */
static int look_where_it_is(struct sg_ck *c, void *base, u64 size)
{
	int err = look(c, base, size);

	if (!err || c->opts->mode == SG_CHECK_ONLY || !sg_is_moving(&c->vol))
		return err;
	return may_store(c) ?: ck_end_move(c, base, size) ?: look(c, base, size);
}

static int check(struct sg_ck *c, void *base, u64 size)
{
	int err = look_where_it_is(c, base, size);

	if (err || c->opts->mode == SG_CHECK_ONLY || (!c->found && !c->recovering))
		return err;
	err = may_store(c) ?: ck_hold(c);
	if (err)
		return err;
	err = repair(c);
	if (!ck_is_ours(c)) {
		err = -EIO;
		sg_snprintf(c->vol.why, sizeof(c->vol.why),
			    "this tool stopped for seconds and was fenced by another system: unmount the volume everywhere and check it again");
	}
	ck_release(c);
	return err;
}

static void conclude(struct sg_ck *c)
{
	c->res->beyond = c->beyond;
	c->res->found += c->was_moving;
	c->res->fixed += c->was_moving;
	c->res->no_space = c->no_space && c->res->found > c->res->fixed;
	ck_loss_after(c);
}

static void forget(struct sg_ck *c)
{
	struct ck_list *lists[] = { &c->orphans, &c->rebuild, &c->strays, &c->settle, &c->holes,
				    &c->cut };
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(lists); i++)
		sg_free(lists[i]->item);
	ck_inode_free_arrays(c);
	ck_view_free(c);
	ck_image_free(c);
	sg_free(c->map);
	sg_free(c->knew);
}

int sg_check(void *base, u64 size, const struct sg_check_opts *opts, struct sg_check_result *res)
{
	struct sg_ck *c = sg_alloc(sizeof(*c));
	int err;

	memset(res, 0, sizeof(*res));
	if (!c)
		return -ENOMEM;
	c->opts = opts;
	c->res = res;
	err = check(c, base, size);
	if (err)
		memcpy(res->why, c->vol.why, sizeof(res->why));
	else
		conclude(c);
	forget(c);
	sg_free(c);
	return err;
}
