// SPDX-License-Identifier: Apache-2.0
/*
 * image: writes only a volume's metadata to a sparse file, for the analysis of damage. The file
 * gets its name when it is complete. The engine's check fills it (check_image.c).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
#include "copy.h"

/**
 * struct image - an incomplete image. @found: number of findings of the check. @said: why the image
 * cannot be stored.
 */
struct image {
	struct target target;
	struct part part;
	u64 size, found;
	bool said;
};

static int put_page(void *ctx, u64 off, const void *page)
{
	struct image *m = ctx;
	ssize_t n = pwrite(m->part.fd, page, SG_PAGE, (off_t)off);
	int err = n < 0 ? -errno : n == SG_PAGE ? 0 : -ENOSPC;

	if (err)
		tool_error("%s: cannot be written: %s", m->part.path, strerror(-err));
	m->said |= err != 0;
	return err;
}

static int get_page(void *ctx, u64 off, void *page)
{
	struct image *m = ctx;

	if (pread(m->part.fd, page, SG_PAGE, (off_t)off) == SG_PAGE)
		return 0;
	tool_error("%s: cannot be read back", m->part.path);
	m->said = true;
	return -EIO;
}

static void count(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	struct image *m = ctx;

	(void)what;
	(void)ino;
	(void)off;
	(void)fixed;
	m->found++;
}

static void show(struct call *c, const struct image *m)
{
	struct json *j = &c->j;
	struct stat st;
	char stored[32], size[32];

	if (fstat(m->part.fd, &st))
		st.st_blocks = 0;
	if (c->json) {
		json_begin(j, stdout, false);
		json_str(j, "file", c->argv[0]);
		json_size(j, "size", m->size);
		json_size(j, "stored", (u64)st.st_blocks * 512);
		json_bool(j, "names_hidden", !c->plain);
		json_u64(j, "found", m->found);
		json_end(j);
		return;
	}
	print_text(c->volume);
	fputs(": metadata copied to ", stdout);
	print_text(c->argv[0]);
	printf(", %s of %s; %llu findings of a check, names %s\n",
	       show_size((u64)st.st_blocks * 512, stored), show_size(m->size, size),
	       (unsigned long long)m->found, c->plain ? "kept" : "hidden");
}

/*
 * Warns if another system uses the volume, because a change during the copy looks like damage in
 * the image.
 */
static void warn_of_users(const struct image *m, const struct sg_super *sb)
{
	char why[200] = "";

	if (member_watch(&m->target, sb, MEMBER_WAIT_MS, why) == -EBUSY)
		tool_warn("%s: is in use, so the image may look damaged; make an image of a snapshot instead",
			  m->target.path);
}

static int copy_metadata(struct call *c, struct image *m)
{
	const struct sg_check_image to = { .put = put_page, .get = get_page, .plain = c->plain,
					   .ctx = m };
	const struct sg_check_opts opts = { .mode = SG_CHECK_ONLY, .image = &to, .report = count,
					    .ctx = m };
	struct sg_check_result res;
	bool quiet = tool_quiet;
	int err;

	tool_quiet = true;	/* suppresses the engine's messages, which are among the findings */
	err = sg_check(m->target.base, m->size, &opts, &res);
	tool_quiet = quiet;
	if (err && res.why[0])
		tool_error("%s: %s", c->volume, res.why);
	else if (err && !m->said)
		tool_error("%s: no image can be made: %s", c->volume, strerror(-err));
	return err;
}

static int make_image(struct call *c, struct image *m)
{
	struct sg_probe probe;
	int err;

	m->size = sg_search(m->target.base, m->target.size, &probe);
	if (!probe.valid) {
		tool_error("%s: %s", c->volume, probe.whole ? "is cut short: give it its full size again" :
			   probe.stargate ? "superblock and backup are damaged: nothing says where its "
			   "metadata is" : "holds no StargateFS");
		return -EUCLEAN;
	}
	err = part_open(&m->part, c->argv[0], m->size, false);
	if (err)
		return err;
	warn_of_users(m, &probe.sb);
	err = copy_metadata(c, m);
	if (!err)
		err = part_finish(&m->part);
	if (!err)
		show(c, m);
	part_close(&m->part);
	return err;
}

int cmd_image(struct call *c)
{
	static struct image m;
	int err = target_open(&m.target, c->volume, TARGET_READ);

	if (err)
		return 1;
	err = make_image(c, &m);
	return refused_now(c, target_close(&m.target) ?: err);
}
