// SPDX-License-Identifier: Apache-2.0
/*
 * volume create, resize, delete, check, relocate, activate. This code chooses the place of a volume
 * and passes its extents to LVM, because LVM does not consider physical addresses (D2, D3).
 *
 * A crash at any point leaves the old state, or a logical volume with WIPING_TAG. The next change
 * of the zone wipes and removes that logical volume, so no step needs a record of its own.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "volume.h"

#define CANNOT_CHECK	8	/* as in fsck.stargatefs */

/* --- parts of LVM's command lines ---------------------------------------------------------- */

static const char *extents(u64 n, char buf[32])
{
	snprintf(buf, 32, "%llu", (unsigned long long)n);
	return buf;
}

/* Makes "/dev/pmem0:3-9", which includes extents 3 and 9. */
static const char *range(const struct zone *z, const struct zone_place *p, char buf[PATH_MAX])
{
	snprintf(buf, PATH_MAX, "%s:%llu-%llu", z->device[p->device].path,
		 (unsigned long long)p->first, (unsigned long long)(p->first + p->extents - 1));
	return buf;
}

/* Makes a logical volume at exactly this place, with WIPING_TAG. */
static int cut(const struct zone *z, const char *name, const struct zone_place *p)
{
	char at[PATH_MAX], n[32];

	return LVM("lvcreate", "-y", "-q", "-W", "n", "-Z", "n", "-a", "y", "--type", "linear",
		   "--alloc", "contiguous", "--addtag", WIPING_TAG, "-l", extents(p->extents, n),
		   "-n", name, z->name, range(z, p, at));
}

static int wipe_device(const char *path, const char *name)
{
	int fd = volume_claim(path), err;

	if (fd < 0)
		return fd;
	err = wipe(fd, path, name);
	close(fd);
	return err;
}

/* --- create -------------------------------------------------------------------------------- */

static int no_place(const struct zone *z, u64 size, u64 reserve, u64 align, struct refusal *why)
{
	u64 all = zone_largest(z, align), most = all > reserve ? all - reserve : 0;
	char a[32], b[32];

	why->sized = true;
	why->largest = most;
	if (!all)
		tool_error("zone %s: there is no free address that is a multiple of %s; see "
			   "stargatectl zone show", z->name, show_size(align, a));
	else
		tool_error("zone %s: no contiguous %s are free%s; the largest possible volume%s has "
			   "%s (%llu bytes)", z->name, show_size(size + reserve, a),
			   align > SG_VOLUME_ALIGN ? " at such an address" : "",
			   reserve ? ", with so much behind it," : "",
			   show_size(most, b), (unsigned long long)most);
	return -ENOSPC;
}

/* Checks in the kernel's data that LVM's device is in the right place. */
static int verify(const struct volume *v, u64 base)
{
	struct stat st;
	u64 phys;

	if (!v->piece || v->piece->base != base || !zone_contiguous(v->zone, v->piece))
		tool_error("%s: LVM has not allocated it at the requested place", v->lv);
	else if (stat(v->path, &st) || device_phys(st.st_rdev, &phys) || phys != base)
		tool_error("%s: its device is not the memory from 0x%llx on", v->lv,
			   (unsigned long long)base);
	else if (!device_is_dax(st.st_rdev))
		tool_error("%s: its device is not DAX capable, though the zone's is; the kernel's "
			   "dm_mod is too old, or built without DAX", v->lv);
	else
		return 0;
	return -EIO;
}

/* Chooses a place and reserves it under the zone's lock. */
int volume_cut(struct volume *v, u64 size, u64 reserve, u64 align)
{
	struct zone_place place;
	int lock = zone_lock(v->zone->name);
	int err = lock < 0 ? -EIO : volume_reload(v);

	if (!err && !zone_fit(v->zone, size + reserve, align, &place))
		err = no_place(v->zone, size, reserve, align, &v->why);
	if (!err)
		err = cut(v->zone, v->name, &place);
	if (lock >= 0)
		close(lock);
	if (err)
		return err;
	err = volume_reload(v) ?: verify(v, place.base);
	if (err)
		LVM("lvremove", "-y", "-q", v->lv);
	return err;
}

int volume_wipe(const struct volume *v)
{
	return wipe_device(v->path, v->name);
}

/*
 * Checks the options before the wiping, which may take hours. Only a maximum below the reserve
 * cannot be checked before the volume exists.
 */
static int fill(struct call *c, const struct volume *v)
{
	char *const *options = c->argv + c->argc - c->tail;

	return engine_make(v, c->size, options, c->tail, true) ?: volume_wipe(v) ?:
		engine_make(v, c->size, options, c->tail, false) ?:
		LVM("lvchange", "-q", "--deltag", WIPING_TAG, "--addtag", ZONE_TAG, v->lv);
}

static int create(struct call *c, struct volume *v)
{
	int err;

	if (v->piece) {
		tool_error("%s: exists already; see stargatectl volume show", v->lv);
		return -EEXIST;
	}
	err = volume_cut(v, c->size, c->reserve, c->align ? c->align : SG_VOLUME_ALIGN);
	if (err)
		return err;
	err = fill(c, v);
	if (err)
		LVM("lvremove", "-y", "-q", v->lv);
	return err;
}

static int show(struct call *c, struct volume *v)
{
	if (volume_reload(v))
		return -EIO;
	json_begin(&c->j, stdout, !c->json);
	show_volume(c, v->zone, v->piece);
	json_end(&c->j);
	return 0;
}

static int before_size(struct call *c)
{
	if (c->size >= SG_VOLUME_MIN && !(c->size % SG_VOLUME_ALIGN))
		return before_volume(c);
	return tool_usage_error("--size %llu: a volume has 16M to 64T, a multiple of 2M",
				(unsigned long long)c->size);
}

int before_create(struct call *c)
{
	if (c->argc != c->tail || !c->size)
		return tool_usage_error("volume create: takes " CREATE_TAKES);
	return before_size(c);
}

static int change(struct call *c, int (*how)(struct call *c, struct volume *v), bool shows)
{
	struct volume v;
	int err;

	tool_goes_on();
	err = volume_hold(&v, c->volume);
	if (err)
		return refused(c, err, NULL);
	err = how(c, &v);
	if (!err && shows)
		err = show(c, &v);
	volume_close(&v);
	return refused(c, err, &v.why);
}

int cmd_volume_create(struct call *c)
{
	return change(c, create, true);
}

/* --- delete -------------------------------------------------------------------------------- */

/*
 * The claim prevents mounts on this system until the bytes are wiped. Mounts on other systems hold
 * no claim; the mount table lists them. The mount table of a snapshot belongs to another volume.
 * The command makes every check that LVM or the kernel could fail before it sets the tag, because a
 * command cannot remove the tag again.
 */
static int delete(struct call *c, struct volume *v)
{
	bool snapshot;
	int err, fd;

	if (v->finished)
		return 0;
	err = volume_need_any(v);
	if (err)
		return err;
	snapshot = zone_tagged(v->piece->tags, SNAPSHOT_TAG);
	fd = volume_claim(v->path);
	if (fd < 0)
		return fd;
	err = device_writable(fd, v->path) ?: volume_sole(fd, v->path);
	if (!err && !snapshot)
		err = engine_unused(v, c->force);
	if (!err)
		err = LVM("lvchange", "-q", "--deltag", snapshot ? SNAPSHOT_TAG : ZONE_TAG,
			  "--addtag", WIPING_TAG, v->lv);
	if (!err)
		err = wipe(fd, v->path, v->name);
	close(fd);
	return err ?: LVM("lvremove", "-y", "-q", v->lv);
}

int cmd_volume_delete(struct call *c)
{
	return change(c, delete, false);
}

/* --- resize -------------------------------------------------------------------------------- */

/**
 * struct growth - the growth of a volume. @now: the file system's size. @most: the largest size at
 * its place. @name, @lv, @path: those of the logical volume that reserves the growth.
 */
struct growth {
	struct volume *v;
	u64 now, most;
	char name[ZONE_NAME_MAX + 16], lv[SHOW_MAX], path[SHOW_MAX + 8];
};

static int refuse_size(const struct growth *g, u64 size, u64 format_most)
{
	char a[32], b[32];

	if (size < g->now) {
		tool_error("%s: has %s; a volume cannot shrink: copy its files to a smaller one", g->v->lv, show_size(g->now, a));
		return -EINVAL;
	}
	g->v->why.sized = true;
	g->v->why.largest = SG_MIN(format_most, g->most);
	if (size > format_most && format_most <= g->most)
		tool_error("%s: can grow to %s at most (--max-size of mkfs.stargatefs); that is the largest possible size (%llu bytes)",
			   g->v->lv,
			   show_size(format_most, a), (unsigned long long)format_most);
	else if (size > g->most)
		tool_error("%s: cannot grow to %s, because too little is free behind it; the largest "
			   "possible size is %s (%llu bytes)", g->v->lv, show_size(size, a),
			   show_size(g->most, b), (unsigned long long)g->most);
	else
		return 0;
	return -ENOSPC;
}

static int plan_growth(struct growth *g, u64 size)
{
	const struct zone_piece *p = g->v->piece;
	struct sg_probe probe;

	if (!engine_look(g->v->path, &probe, true))
		return -EIO;
	if (!probe.valid) {
		tool_error("%s: holds no intact StargateFS; run stargatectl volume check",
			   g->v->lv);
		return -EUCLEAN;
	}
	if (probe.sb.phys != p->base) {
		tool_error("%s: was made for address 0x%llx and is at 0x%llx; run stargatectl "
			   "volume relocate first", g->v->lv, (unsigned long long)probe.sb.phys,
			   (unsigned long long)p->base);
		return -EUCLEAN;
	}
	g->now = probe.sb.size;
	g->most = p->size + zone_behind(g->v->zone, p);
	return refuse_size(g, size, probe.sb.chunk_cap * SG_CHUNK) ?:
		(size > g->now ? engine_may_grow(g->v, size) : 0);
}

static int writable(const struct volume *v)
{
	int fd = open(v->path, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : 0;

	if (err)
		tool_error("%s: cannot be opened: %s", v->path, strerror(-err));
	else
		err = device_writable(fd, v->path);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Reads the volume again and chooses space, under the zone's lock. */
static int reserve(struct growth *g, u64 size, struct zone_place *behind)
{
	struct volume *v = g->v;
	int lock = zone_lock(v->zone->name);
	int err = lock < 0 ? -EIO : volume_reload(v) ?: volume_need(v) ?: writable(v) ?:
		plan_growth(g, size);
	const struct zone_piece *p = v->piece;

	if (!err && size > p->size) {
		*behind = (struct zone_place){ p->device, p->first + p->extents,
					       (size - p->size) / ZONE_EXTENT, p->base + p->size };
		err = cut(v->zone, g->name, behind);
	}
	if (lock >= 0)
		close(lock);
	return err;
}

/*
 * The command wipes the space behind the volume before it adds the space to the volume, because
 * guests can then read it. Until then the space belongs to a separate logical volume, so that no
 * other volume gets it.
 */
static int extend(struct growth *g, const struct zone_place *behind)
{
	struct volume *v = g->v;
	char at[PATH_MAX], n[32];
	int err = wipe_device(g->path, v->name), lock = zone_lock(v->zone->name);

	if (lock < 0)
		return -EIO;
	err = LVM("lvremove", "-y", "-q", g->lv) ?: err;
	if (!err)
		err = LVM("lvextend", "-q", "--alloc", "contiguous", "-l",
			  extents(v->piece->extents + behind->extents, n), v->lv,
			  range(v->zone, behind, at));
	close(lock);
	return err;
}

/*
 * Grows the file system to the size of its device. So it also completes an earlier run that was
 * killed after it grew the device.
 */
static int resize(struct call *c, struct volume *v)
{
	struct growth g = { .v = v };
	struct zone_place behind = { 0 };
	int err;

	snprintf(g.name, sizeof(g.name), GROWTH_PREFIX "%s", v->name);
	snprintf(g.lv, sizeof(g.lv), "%s/%s", v->zone->name, g.name);
	snprintf(g.path, sizeof(g.path), "/dev/%s", g.lv);
	err = reserve(&g, c->size, &behind);
	if (err || c->size == g.now)
		return err;
	if (behind.extents)
		err = extend(&g, &behind);
	if (err)
		return err;
	err = engine_grow(v, c->size);
	if (err && behind.extents)
		volume_shorten(v);
	return err;
}

int before_resize(struct call *c)
{
	return c->size ? before_size(c) :
		tool_usage_error("volume resize: takes " RESIZE_TAKES);
}

int cmd_volume_resize(struct call *c)
{
	return change(c, resize, true);
}

/* --- check, relocate ----------------------------------------------------------------------- */

int before_check(struct call *c)
{
	return c->argc == c->tail ? before_volume(c) :
		tool_usage_error("volume check: takes " CHECK_TAKES);
}

int cmd_volume_check(struct call *c)
{
	struct volume v;
	int status;

	if (volume_hold(&v, c->volume))
		return CANNOT_CHECK;
	status = (c->tail ? volume_need(&v) : volume_need_any(&v)) ? CANNOT_CHECK :
		engine_check(&v, c->argv + c->argc - c->tail, c->tail);
	volume_close(&v);
	return status;
}

static int relocate(struct call *c, struct volume *v)
{
	(void)c;
	return volume_need(v) ?: engine_relocate(v);
}

int cmd_volume_relocate(struct call *c)
{
	return change(c, relocate, true);
}

/* --- activate ------------------------------------------------------------------------------ */

/* Only creates the device. A volume without a device has no users, so nothing has to wait. */
int cmd_volume_activate(struct call *c)
{
	struct volume v;
	int err = volume_open(&v, c->volume);

	if (err)
		return refused(c, err, NULL);
	err = volume_need_any(&v) ?: show(c, &v);
	volume_close(&v);
	return refused(c, err, NULL);
}
