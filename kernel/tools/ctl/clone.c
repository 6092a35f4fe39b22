// SPDX-License-Identifier: Apache-2.0
/*
 * clone: make a new volume from a volume, or from a snapshot of one. The clone is made for another
 * base, and has a UUID and label of its own, and an empty mount table (docs/snapshots.md).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include "copy.h"

/* --- identity of the clone ------------------------------------------------------------------ */

/*
 * Joins exclusively. This recovers the slots of dead systems, and frees open files without names.
 */
static int renew(const struct own *o)
{
	static struct member m;
	char why[200] = "";
	int err = member_open(&m, o->path, true, true);

	if (err)
		return err;
	err = sg_renew(&m.vol, o->label, why);
	if (!err && o->size > m.vol.sb.size)
		err = sg_grow(&m.vol, o->size, 0, why);
	if (err)
		tool_error("%s: %s", o->path, why[0] ? why : strerror(-err));
	return member_close(&m) ?: err;
}

int copy_own(const struct own *o)
{
	const struct relocation r = {
		.path = o->path, .base = o->base, .base_given = o->base_given, .force = true,
	};
	struct sg_relocate_result res;

	return relocate_volume(&r, &res) ?: renew(o);
}

/* --- in a file ------------------------------------------------------------------------------ */

int before_clone(struct call *c)
{
	if (!c->base_given)
		return tool_usage_error("--base is missing: the address where VMs map the copy, e.g. --base 16G");
	if (c->size && (c->size < SG_VOLUME_MIN || c->size % SG_VOLUME_ALIGN))
		return tool_usage_error("--size %llu: a volume has 16M to 64T, a multiple of 2M",
					(unsigned long long)c->size);
	return 0;
}

static void show(struct call *c, const struct copy *s, const struct own *o, const char *path)
{
	char a[32], b[32];

	if (!c->json) {
		print_text(c->volume);
		fputs(": copied to ", stdout);
		print_text(path);
		printf(", %s at 0x%llx", show_size(o->size, a), (unsigned long long)o->base);
		if (o->size != s->size)
			printf(" (grown from %s)", show_size(s->size, b));
		printf(s->freeze ? "; all systems paused for %.1f ms\n" : "\n", (double)s->stalled / 1e6);
		return;
	}
	json_begin(&c->j, stdout, false);
	json_str(&c->j, "file", path);
	json_hex(&c->j, "base", o->base);
	json_size(&c->j, "size", o->size);
	json_u64(&c->j, "stall_us", s->stalled / 1000);
	json_u64(&c->j, "tries", s->freeze ? s->tries : 0);
	json_end(&c->j);
}

/* Maps the file, because hugetlbfs does not support write(). */
static int fill(struct copy *s, struct part *part, u64 size)
{
	void *to = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, part->fd, 0);
	int err;

	if (to == MAP_FAILED) {
		err = -errno;
		tool_error("%s: cannot be mapped: %s", part->path, strerror(-err));
		return err;
	}
	s->fd = part->fd;
	s->name = part->path;
	s->to = to;
	err = copy_run(s);
	munmap(to, size);
	return err;
}

static int make(struct call *c, struct copy *s, u64 size)
{
	struct own own = { .label = c->label ?: "", .base = c->base, .base_given = true };
	struct part part;
	int err = copy_refuse_own(s, c->argv[0]) ?: part_open(&part, c->argv[0], size, true);

	if (err)
		return err;
	target_pin(part.path, part.fd);
	own.path = part.path;
	own.size = size;
	err = fill(s, &part, size) ?: copy_own(&own) ?: part_finish(&part);
	if (!err)
		show(c, s, &own, c->argv[0]);
	part_close(&part);
	return err;
}

int cmd_clone(struct call *c)
{
	static struct copy s;
	u64 size = c->size;
	int err = copy_open(&s, c->volume, c->stall, true);

	if (err)
		return refused_now(c, err);
	tool_quiet = true;	/* no messages about dead systems in the copy */
	err = copy_size(&s, &size);
	if (!err && !sg_base_fits(size, c->base)) {
		sg_refuse_base(size, c->base, s.why);
		tool_error("%s: %s", c->argv[0], s.why);
		err = -EINVAL;
	}
	err = err ?: make(c, &s, size);
	return refused_now(c, copy_close(&s) ?: err);
}
