// SPDX-License-Identifier: Apache-2.0
/*
 * volume snapshot, volume clone: copies a volume's state at one moment to another logical volume
 * (docs/snapshots.md). The target has WIPING_TAG until it is complete, as with volume create. So if
 * a command is killed, a later one wipes and removes the target. A snapshot may also be a file
 * outside of the zone, and a clone may be made from such a file.
 */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include "copy.h"
#include "volume.h"

/**
 * struct copying - a command. @from: the source, unless it is a file (@file). @to: the target: a
 * snapshot, or an independent volume. @path: path of the source. @name: the source, as given by the
 * user. @size: size of @to.
 */
struct copying {
	struct call *c;
	struct volume from, to;
	const char *path, *name;
	bool file;
	struct copy copy;
	bool snapshot;
	u64 size;
};

static bool is_path(const char *name)
{
	return name[0] == '/';
}

static int name_in_zone(const char *name)
{
	if (zone_name_valid(name, strlen(name)))
		return 0;
	return tool_usage_error("'%s': the name of the copy is " ZONE_NAME_RULE
				"; it is in the same zone", name);
}

int before_volume_snapshot(struct call *c)
{
	return (is_path(c->argv[0]) ? 0 : name_in_zone(c->argv[0])) ?: before_volume(c);
}

int before_volume_clone(struct call *c)
{
	if (c->size && (c->size < SG_VOLUME_MIN || c->size % SG_VOLUME_ALIGN))
		return tool_usage_error("--size %llu: a volume has 16M to 64T, a multiple of 2M",
					(unsigned long long)c->size);
	if (is_path(c->volume))
		return volume_named(c->argv[0]);
	return name_in_zone(c->argv[0]) ?: before_volume(c);
}

/* --- the source ----------------------------------------------------------------------------- */

/* A snapshot does not change, and no other system uses it. */
static int open_source(struct copying *k)
{
	bool left = k->file || zone_tagged(k->from.piece->tags, SNAPSHOT_TAG);

	return copy_open(&k->copy, k->path, k->c->stall, left);
}

/*
 * Finds the size of the target. Releases the source until the target has been wiped, which takes a
 * long time. The source's lock prevents other commands from deleting or growing it.
 */
static int look(struct copying *k)
{
	struct sg_probe probe;

	if (!engine_look(k->path, &probe, true))
		return -EIO;
	if (!probe.valid) {
		tool_error("%s: holds no intact StargateFS; run %s", k->name,
			   k->file ? "fsck.stargatefs" : "stargatectl volume check");
		return -EUCLEAN;
	}
	k->copy.path = k->name;
	k->copy.sb = probe.sb;
	k->copy.size = probe.sb.size;
	k->size = k->c->size;
	return copy_size(&k->copy, &k->size) ?: !k->c->reserve ? 0 :
		engine_may_reach(k->to.lv, &probe.sb, k->size + k->c->reserve);
}

/* --- the target ----------------------------------------------------------------------------- */

static int run(struct copying *k)
{
	int fd = volume_claim(k->to.path), err;

	if (fd < 0)
		return fd;
	k->copy.fd = fd;
	k->copy.name = k->to.path;
	err = copy_run(&k->copy);
	if (!err && fsync(fd)) {
		err = -errno;
		tool_error("%s: cannot be written: %s", k->to.path, strerror(-err));
	}
	close(fd);
	return err;
}

static int fill(struct copying *k)
{
	u64 was = k->copy.size;
	int err = volume_wipe(&k->to) ?: open_source(k);

	if (err)
		return err;
	k->copy.path = k->name;
	if (k->copy.size == was) {
		err = run(k);
	} else {
		tool_error("%s: the volume has grown meanwhile: try again", k->name);
		err = -EAGAIN;
	}
	return copy_close(&k->copy) ?: err;
}

static int own(const struct copying *k)
{
	const struct own o = {
		.path = k->to.path, .label = k->c->label ?: k->to.name, .size = k->size,
	};

	return copy_own(&o);
}

/*
 * Returns the name of the origin. For a file it is the name up to an @ or a dot, if a volume can
 * have that name.
 */
static void origin_of(const struct copying *k, char origin[SHOW_MAX])
{
	const char *name = k->file ? strrchr(k->path, '/') + 1 : k->from.name;
	size_t len = strcspn(name, "@.");

	if (zone_name_valid(name, len))
		snprintf(origin, SHOW_MAX, ORIGIN_TAG "%.*s", (int)len, name);
	else
		snprintf(origin, SHOW_MAX, ORIGIN_TAG "file");
}

/* Changes all tags in one step, so that there is no state between incomplete and complete. */
static int give_tags(const struct copying *k)
{
	char origin[SHOW_MAX], created[64];

	origin_of(k, origin);
	snprintf(created, sizeof(created), CREATED_TAG "%lld", (long long)time(NULL));
	return LVM("lvchange", "-q", "--deltag", WIPING_TAG, "--addtag", origin, "--addtag", created,
		   "--addtag", k->snapshot ? SNAPSHOT_TAG : ZONE_TAG, k->to.lv);
}

static int make(struct copying *k)
{
	int err;

	if (k->to.piece) {
		tool_error("%s: exists already; see stargatectl volume show", k->to.lv);
		return -EEXIST;
	}
	err = look(k);
	if (!err)
		err = volume_cut(&k->to, k->size, k->c->reserve,
				 k->c->align ? k->c->align : SG_VOLUME_ALIGN);
	if (err)
		return err;
	err = fill(k);
	if (!err && !k->snapshot)
		err = own(k);
	err = err ?: give_tags(k);
	if (err)
		wipe_and_remove(k->to.zone->name, k->to.name);
	return err;
}

/* --- the commands --------------------------------------------------------------------------- */

static int show(struct copying *k)
{
	struct json *j = &k->c->j;

	if (volume_reload(&k->to))
		return -EIO;
	json_begin(j, stdout, !k->c->json);
	show_volume(k->c, k->to.zone, k->to.piece);
	json_u64(j, "stall_us", k->copy.stalled / 1000);
	json_end(j);
	return 0;
}

/* The file is sparse: unused parts of the volume take no space. */
static int to_file(struct copying *k)
{
	int err = open_source(k);

	if (!err) {
		k->copy.path = k->name;
		err = copy_to_file(k->c, &k->copy, k->c->argv[0]);
		err = copy_close(&k->copy) ?: err;
	}
	return refused(k->c, err, NULL);
}

/* Locks the source, against commands that change it, and the target. */
static int hold_target(struct copying *k)
{
	char name[SHOW_MAX];

	snprintf(name, sizeof(name), "%s/%s", k->from.zone->name, k->c->argv[0]);
	if (strcmp(k->from.name, k->c->argv[0]))
		return volume_hold(&k->to, name);
	tool_error("%s: exists already: give the copy another name", k->from.lv);
	return -EEXIST;
}

/* The caller has locked the target. */
static int make_and_show(struct copying *k)
{
	struct refusal why;
	int err = make(k) ?: show(k);

	why = k->to.why;
	volume_close(&k->to);
	return refused(k->c, err, &why);
}

/* The caller has locked the source, and keeps the lock during the copy. */
static int copy_of_volume(struct copying *k)
{
	int err;

	k->path = k->from.path;
	k->name = k->from.lv;
	err = k->snapshot ? volume_need(&k->from) : volume_need_any(&k->from);
	if (!err && k->snapshot && is_path(k->c->argv[0]))
		return to_file(k);
	err = err ?: hold_target(k);
	return err ? refused(k->c, err, NULL) : make_and_show(k);
}

static int copy_of_file(struct copying *k)
{
	struct stat st;
	int err;

	k->path = k->c->volume;
	k->name = k->c->volume;
	k->file = true;
	err = stat(k->path, &st) ? -errno : 0;
	if (err) {
		tool_error("%s: cannot be opened: %s", k->path, strerror(-err));
	} else if (!S_ISREG(st.st_mode)) {
		tool_error("%s: is not a file; a volume of a zone is ZONE/NAME", k->path);
		err = -EINVAL;
	}
	err = err ?: volume_hold(&k->to, k->c->argv[0]);
	return err ? refused(k->c, err, NULL) : make_and_show(k);
}

static int copying(struct call *c, bool snapshot)
{
	static struct copying k;
	int err;

	k.c = c;
	k.snapshot = snapshot;
	tool_goes_on();
	tool_quiet = true;	/* no messages about dead systems in the copy */
	if (!snapshot && is_path(c->volume))
		return copy_of_file(&k);
	err = volume_hold(&k.from, c->volume);
	if (err)
		return refused(c, err, NULL);
	err = copy_of_volume(&k);
	volume_close(&k.from);
	return err;
}

int cmd_volume_snapshot(struct call *c)
{
	return copying(c, true);
}

int cmd_volume_clone(struct call *c)
{
	return copying(c, false);
}
