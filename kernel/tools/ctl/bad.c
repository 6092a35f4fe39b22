// SPDX-License-Identifier: Apache-2.0
/*
 * bad: shows or changes a volume's list of bad pages (docs/bad-memory.md), and shows the files with
 * data in these pages. If the volume is mounted here, its module changes the list, because it may
 * have unmapped the page. Otherwise this tool makes the change with one store, and systems may use
 * the volume at the same time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "ctl.h"

/* --- showing ------------------------------------------------------------------------------- */

/*
 * struct piece_of - an extent of the list. struct hit: inode @ino has data in the extents @pieces.
 *
 */
struct piece_of {
	u64 page, pages;
};
struct hit {
	u64 ino, pieces[2];
};
struct look {
	struct piece_of piece[SG_BAD_MAX];
	unsigned int pieces;
	struct hit *hit;
	size_t n, room;
	u64 steps, most;
};

static int add_hit(struct look *l, u64 ino, const u64 pieces[2])
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct hit *more = realloc(l->hit, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->hit = more;
		l->room = room;
	}
	l->hit[l->n++] = (struct hit){ ino, { pieces[0], pieces[1] } };
	return 0;
}

static void touches(const struct look *l, const struct sg_run *run, u64 pieces[2])
{
	u64 first = run->off / SG_PAGE;
	unsigned int i;

	for (i = 0; run->off && i < l->pieces; i++)
		if (first < l->piece[i].page + l->piece[i].pages &&
		    l->piece[i].page < first + run->pages)
			pieces[i / 64] |= 1ULL << i % 64;
}

/*
 * If no two files share a table, there are at most as many data runs, and as many hole runs, as
 * pages of all tables and files. The search takes no more steps than that, even in a hostile volume
 * (D10).
 */
static int look_at(struct look *l, struct sg_vol *vol, const struct sg_iref *ref)
{
	u64 page = 0, end, pieces[2] = { 0 };
	struct sg_attr attr;
	struct sg_run run;

	if (sg_getattr(vol, ref, &attr) || !sg_is_reg(attr.mode))
		return 0;
	end = sg_pages_of(attr.size);
	for (; page < end; page += run.pages) {
		if (l->steps++ >= l->most)
			return -EUCLEAN;
		if (sg_walk_bad(vol, ref, page, end - page, &run) || !run.pages)
			break;
		touches(l, &run, pieces);
	}
	return pieces[0] | pieces[1] ? add_hit(l, ref->ino, pieces) : 0;
}

/* Finds the inodes with data in bad pages. */
static int look(struct look *l, struct sg_vol *vol)
{
	/* Any member can store any count in the volume. */
	u64 ino, most = SG_MIN(sg_get(vol, SG_HOT(inodes)), vol->size / sizeof(struct sg_inode));
	struct sg_iref ref;
	int err = 0;

	l->most = 4 * (vol->size / SG_PAGE) + most;
	for (ino = SG_INO_ROOT; l->pieces && ino < most && !err; ino++)
		if (!sg_iref(vol, ino, &ref))
			err = look_at(l, vol, &ref);
	return err;
}

static void show_files(struct call *c, const struct look *l, unsigned int piece)
{
	size_t i;

	if (c->json)
		json_array(&c->j, "files");
	for (i = 0; i < l->n; i++) {
		if (!(l->hit[i].pieces[piece / 64] >> piece % 64 & 1))
			continue;
		if (c->json)
			json_u64(&c->j, NULL, l->hit[i].ino);
		else
			printf(" <%llu>", (unsigned long long)l->hit[i].ino);
	}
	if (c->json)
		json_close(&c->j, ']');
}

static void show_piece(struct call *c, struct sg_vol *vol, const struct look *l, unsigned int piece)
{
	u64 page = l->piece[piece].page, pages = l->piece[piece].pages;
	const char *role = sg_page_role(vol, page * SG_PAGE);
	u64 phys = vol->sb.phys + page * SG_PAGE;
	char size[32];

	if (c->json) {
		json_object(&c->j, NULL);
		json_hex(&c->j, "phys", phys);
		json_u64(&c->j, "offset", page * SG_PAGE);
		json_u64(&c->j, "bytes", pages * SG_PAGE);
		json_str(&c->j, "what", role);
		show_files(c, l, piece);
		json_close(&c->j, '}');
		return;
	}
	printf("0x%llx  %s  %s", (unsigned long long)phys, show_size(pages * SG_PAGE, size), role);
	show_files(c, l, piece);
	putchar('\n');
}

static int show(struct call *c)
{
	struct look l = { .pieces = 0 };
	struct sg_vol vol;
	struct target t;
	u64 page, pages;
	unsigned int i;
	int err;

	if (member_look_on(&t, &vol, c->volume))
		return 1;
	tool_quiet = true;
	for (i = 0; l.pieces < SG_BAD_MAX && sg_bad_entry(&vol, i, &page, &pages); i++)
		if (pages)
			l.piece[l.pieces++] = (struct piece_of){ page, pages };
	err = path_error(c->volume, look(&l, &vol));
	if (c->json) {
		json_begin(&c->j, stdout, false);
		json_array(&c->j, "bad");
	}
	for (i = 0; i < l.pieces; i++)
		show_piece(c, &vol, &l, i);
	if (c->json) {
		json_close(&c->j, ']');
		json_end(&c->j);
	} else if (!sg_bad_pages(&vol)) {
		printf("none\n");
	}
	free(l.hit);
	return target_close(&t) || err;
}

/* --- changing ------------------------------------------------------------------------------ */

/**
 * struct change - a change of the list, for a range of bytes. @off, @bytes: the range, relative to
 * the volume's start.
 */
struct change {
	bool add;
	u64 off, bytes;
};

static int refused(const struct call *c, int err)
{
	switch (-err) {
	case 0:
		return 0;
	case EBUSY:
		tool_error("%s: this system's kernel has found that memory to be bad, and does not use it before the next boot",
			   c->volume);
		break;
	case ENOSPC:
		tool_error("%s: the list is full (%u ranges)", c->volume, SG_BAD_MAX);
		break;
	case EINVAL:
		tool_error("%s: these addresses are outside the volume", c->volume);
		break;
	default:
		path_error(c->volume, err);
	}
	return 1;
}

static int ask_module(const char *dir, const struct change *ch)
{
	char path[PATH_MAX + 8];
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/bad", dir);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	fprintf(f, "%s %llu %llu\n", ch->add ? "add" : "remove",
		(unsigned long long)(ch->off / SG_PAGE),
		(unsigned long long)sg_pages_of(ch->off % SG_PAGE + ch->bytes));
	if (fflush(f))
		err = -errno;
	fclose(f);
	return err;
}

static int change_list(struct sg_vol *vol, const struct change *ch)
{
	int err = ch->add ? sg_bad_add(vol, ch->off, ch->bytes) :
			    sg_bad_remove(vol, ch->off, ch->bytes);

	return SG_MIN(err, 0);
}

/*
 * The list is in a page with words that all systems change. Other systems do not see stores through
 * a block device, so the tool changes the list in the same way as a label. If bad pages are in
 * structures that all systems need (@vital), no system can join. So the tool does not need
 * exclusive access in this case.
 */
static int store_alone(struct call *c, const struct change *ch, bool vital)
{
	int err;

	if (!vital) {
		if (member_open(&c->m, c->volume, true, false))
			return 1;
		err = refused(c, change_list(&c->m.vol, ch));
		return member_close(&c->m) ? 1 : err;
	}
	if (target_open(&c->m.target, c->volume, TARGET_HOLD))
		return 1;
	err = sg_open(&c->m.vol, c->m.target.base, c->m.target.size, false, NULL) ?:
	      member_watch(&c->m.target, &c->m.vol.sb, MEMBER_WAIT_MS, c->m.vol.why) ?:
	      device_hold(&c->m.target, NULL, c->m.vol.why);
	if (err)
		tool_error("%s: %s", c->volume, c->m.vol.why);
	else
		err = refused(c, change_list(&c->m.vol, ch));
	return target_close(&c->m.target) || err;
}

static int store(struct call *c, const struct change *ch, bool vital)
{
	struct target t;
	struct sg_vol vol;
	struct stat st;
	int err;

	if (!stat(c->volume, &st) && S_ISBLK(st.st_mode))
		return store_alone(c, ch, vital);
	if (target_open(&t, c->volume, TARGET_SHARE))
		return 1;
	err = t.base ? sg_open(&vol, t.base, t.size, false, NULL) : -EINVAL;
	if (!err)
		err = change_list(&vol, ch);
	if (refused(c, err)) {
		target_close(&t);
		return 1;
	}
	return target_close(&t) ? 1 : 0;
}

static int read_change(struct call *c, const struct sg_vol *vol, struct change *ch)
{
	u64 phys;

	ch->add = !strcmp(c->argv[0], "add");
	ch->bytes = SG_PAGE;
	if (!parse_number(c->argv[1], 0, ~0ULL, &phys))
		return tool_usage_error("bad: '%s' is not a physical address", c->argv[1]);
	if (c->argc == 3 && (!parse_size(c->argv[2], &ch->bytes) || !ch->bytes))
		return tool_usage_error("bad: '%s' is not a size: give a whole number of bytes, or one with K, M, G or T",
					c->argv[2]);
	ch->off = phys - vol->sb.phys;
	if (phys >= vol->sb.phys && ch->off < vol->sb.size && ch->bytes <= vol->sb.size - ch->off)
		return 0;
	tool_error("%s: lies at 0x%llx to 0x%llx", c->volume, (unsigned long long)vol->sb.phys,
		   (unsigned long long)(vol->sb.phys + vol->sb.size - 1));
	return 1;
}

static int change(struct call *c)
{
	struct change ch = { 0 };
	struct sg_vol vol;
	struct target t;
	char dir[PATH_MAX];
	bool vital;
	u64 off;
	int err;

	if (member_look_on(&t, &vol, c->volume))
		return 1;
	err = read_change(c, &vol, &ch);
	vital = sg_bad_vital(&vol, &off);
	target_close(&t);
	if (err)
		return err;
	return mounted_here(c->volume, dir, sizeof(dir)) ? refused(c, ask_module(dir, &ch)) :
						       store(c, &ch, vital);
}

int before_bad(struct call *c)
{
	if (!c->argc || (c->argc > 1 && !c->json &&
			 (!strcmp(c->argv[0], "add") || !strcmp(c->argv[0], "remove"))))
		return 0;
	return tool_usage_error("bad: takes " BAD_TAKES);
}

int cmd_bad(struct call *c)
{
	return c->argc ? change(c) : show(c);
}
