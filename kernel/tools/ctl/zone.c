// SPDX-License-Identifier: Apache-2.0
/*
 * zone: makes a volume group of a node's reserved memory (ZONE_SM, D1). LVM's data area begins
 * where a volume may begin: at a multiple of 2 MiB in physical memory, for any start of the device.
 *
 * New devices, or the new end of longer devices, extend a zone. Existing extents keep their place,
 * so volumes may be in use during the change.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "volume.h"

#define DEVICES_MAX	16
#define LEAST		(SG_VOLUME_MIN + 4 * SG_VOLUME_ALIGN)	/* including LVM's own bytes */

/**
 * struct making - a new zone. @phys: addresses of the devices; @done: number of devices that
 * already belong to LVM. @owners: LVM's state of devices and volume groups before the change, also
 * of those that another system ID hides.
 */
struct making {
	struct call *c;
	const char *name;
	char **device;
	int devices, done;
	u64 phys[DEVICES_MAX];
	struct report owners;
};

static const char *const owner_report[] = {
	"pvs", "--foreign", "--reportformat", "json", "-o", "pv_name,pv_in_use,vg_name,vg_tags", NULL
};

int before_zone(struct call *c)
{
	if (!c->volume || zone_name_valid(c->volume, strlen(c->volume)))
		return 0;
	return tool_usage_error("'%s': the name of a zone is " ZONE_NAME_RULE, c->volume);
}

/* --- checks -------------------------------------------------------------------------------- */

static int refuse_memory(const struct target *t, const char *path, u64 *phys)
{
	if (t->kind == TARGET_DAX)
		tool_error("%s: is device-dax, and no block device, which LVM needs; make an "
			   "fsdax namespace of it: ndctl create-namespace --mode fsdax", path);
	else if (t->kind != TARGET_BLOCK)
		tool_error("%s: is not a block device; give one whose memory the kernel maps, like /dev/pmem0", path);
	else if (!device_is_dax(t->rdev))
		tool_error("%s: is not DAX capable (queue/dax is 0); reserve memory by memmap=, or "
			   "set the namespace up by ndctl create-namespace --mode fsdax", path);
	else if (device_phys(t->rdev, phys))
		tool_error("%s: the kernel does not tell where in physical memory it is; give the "
			   "whole pmem device, or a partition of it", path);
	else if (t->size < LEAST)
		tool_error("%s: has %llu bytes; the smallest zone has %llu", path,
			   (unsigned long long)t->size, LEAST);
	else
		return 0;
	return -EINVAL;
}

static bool same_device(const char *a, const char *b)
{
	struct stat x, y;

	return !strcmp(a, b) || (!stat(a, &x) && !stat(b, &y) && S_ISBLK(x.st_mode) &&
				 S_ISBLK(y.st_mode) && x.st_rdev == y.st_rdev);
}

/* Finds the row of a device in LVM's report. Returns false if LVM does not use the device. */
static bool find_owner(const struct making *m, const char *path, size_t *row)
{
	for (*row = 0; *row < m->owners.rows; (*row)++)
		if (same_device(report_text(&m->owners, *row, "pv_name"), path))
			return true;
	return false;
}

/*
 * Refuses a device of a volume group. Not even --force or LVM removes such a device from its group.
 *
 */
static int refuse_owned(const struct making *m, const char *path)
{
	const char *group;
	size_t row;

	if (!find_owner(m, path, &row))
		return 0;
	group = report_text(&m->owners, row, "vg_name");
	if (!*group)
		return 0;
	if (zone_tagged(report_text(&m->owners, row, "vg_tags"), ZONE_TAG))
		tool_error("%s: belongs to zone %s; see stargatectl zone show (or vgs --foreign), and "
			   "stargatectl zone destroy %s", path, group, group);
	else
		tool_error("%s: belongs to the volume group %s; see vgs --foreign, and vgremove %s", path,
			   group, group);
	return -EBUSY;
}

/* Finds a device with LVM's label but without a volume group, which a killed command leaves. */
static bool bare(const struct making *m, const struct target *t)
{
	size_t row;

	return find_owner(m, t->path, &row) && !*report_text(&m->owners, row, "vg_name") &&
	       !*report_text(&m->owners, row, "pv_in_use") &&
	       !foreign_besides_lvm(t->base, t->size);
}

static int refuse_contents(const struct making *m, const struct target *t, const char *path)
{
	const char *other = foreign_signature(t->base, t->size);
	struct sg_probe probe;
	char why[200] = "";

	sg_probe(t->base, t->size, &probe);
	if (probe.valid && member_watch(t, &probe.sb, MEMBER_WAIT_MS, why)) {
		tool_error("%s: is a StargateFS %s", path, why);
		return -EBUSY;
	}
	if (m->c->force || (!probe.stargate && (!other || bare(m, t))))
		return 0;
	/*
	 * If other data has overwritten the start of the volume, the backup superblock at its end
	 * remains.
	 */
	tool_error("%s: holds %s; give --force to overwrite it", path,
		   probe.stargate && !(other && probe.from_backup) ? "a StargateFS" : other);
	return -EEXIST;
}

/* Opens the device for a change. A mounted device, or one that LVM uses, is busy. */
static int check_device(struct making *m, int i)
{
	const char *path = m->device[i];
	struct target t;
	struct stat st;
	int err;

	if (!stat(path, &st) && !S_ISBLK(st.st_mode)) {
		t = (struct target){ .kind = TARGET_DAX, .rdev = st.st_rdev };
		if (!S_ISCHR(st.st_mode) || target_phys(&t, &m->phys[i]))
			t.kind = TARGET_FILE;
		return refuse_memory(&t, path, &m->phys[i]);
	}
	err = refuse_owned(m, path) ?: target_open(&t, path, TARGET_CHANGE);
	if (err)
		return err;
	err = refuse_memory(&t, path, &m->phys[i]);
	if (!err)
		err = refuse_contents(m, &t, path);
	target_undo(&t);
	return err;
}

/*
 * Checks names first. LVM would refuse them only after it has overwritten the devices.
 */
static int check_name(const struct making *m)
{
	char path[SHOW_MAX];
	size_t row;

	for (row = 0; row < m->owners.rows; row++) {
		if (strcmp(report_text(&m->owners, row, "vg_name"), m->name))
			continue;
		if (zone_tagged(report_text(&m->owners, row, "vg_tags"), ZONE_TAG))
			tool_error("zone %s: exists already; see stargatectl zone show "
				   "(or vgs --foreign)", m->name);
		else
			tool_error("%s: is the name of a volume group that is not a zone; use another name", m->name);
		return -EEXIST;
	}
	snprintf(path, sizeof(path), "/dev/%s", m->name);
	if (access(path, F_OK))
		return 0;
	tool_error("zone %s: its volumes would be in %s, which exists already; take another "
		   "name", m->name, path);
	return -EEXIST;
}

static int check_twice(const struct making *m)
{
	int i, j;

	for (i = 1; i < m->devices; i++)
		for (j = 0; j < i; j++)
			if (same_device(m->device[i], m->device[j])) {
				tool_error("%s: is named twice%s%s", m->device[i],
					   strcmp(m->device[i], m->device[j]) ? ", also as " : "",
					   strcmp(m->device[i], m->device[j]) ? m->device[j] : "");
				return -EINVAL;
			}
	return 0;
}

/* @made: the devices extend an existing zone. */
static int check_devices(struct making *m, bool made)
{
	int i, err;

	if (m->devices > DEVICES_MAX) {
		tool_error("%d devices are too many for a zone", m->devices);
		return -EINVAL;
	}
	err = lvm_report(owner_report, &m->owners);
	if (err)
		return err;
	err = (made ? 0 : check_name(m)) ?: check_twice(m);
	for (i = 0; i < m->devices && !err; i++)
		err = check_device(m, i);
	report_free(&m->owners);
	return err;
}

/* --- the change ---------------------------------------------------------------------------- */

/*
 * Clears both superblocks of a StargateFS that --force overwrites. LVM overwrites only the first
 * superblock. So after the device is removed from the zone, it would again look like a StargateFS.
 */
static int clear_superblocks(const char *path)
{
	struct target t;
	int err = target_open(&t, path, TARGET_CHANGE);

	if (err)
		return err;
	if (t.size >= SG_VOLUME_MIN) {
		memset(t.base, 0, SG_PAGE);
		memset((u8 *)t.base + (t.size & ~(SG_VOLUME_ALIGN - 1)) - SG_PAGE, 0, SG_PAGE);
	}
	return target_close(&t);
}

static int add_device(struct making *m, int i)
{
	u64 skew = -m->phys[i] & (SG_VOLUME_ALIGN - 1);
	int err = m->c->force ? clear_superblocks(m->device[i]) : 0;
	char offset[32];

	if (err)
		return err;
	snprintf(offset, sizeof(offset), "%llub", (unsigned long long)skew);
	return LVM("pvcreate", "-y", "-q", "--dataalignment", "2m", "--dataalignmentoffset", offset,
		   m->device[i]);
}

/* @words: the command line up to the group's name; the devices follow. */
static int with_devices(const struct making *m, const char **words)
{
	int i, n = 0;

	while (words[n])
		n++;
	for (i = 0; i < m->devices; i++)
		words[n++] = m->device[i];
	return lvm_run(words);
}

static int add_group(const struct making *m)
{
	const char *words[DEVICES_MAX + 16] = { "vgcreate", "-q", "-s", "2m", "--alloc",
		"contiguous", "--addtag", ZONE_TAG, m->name };

	return with_devices(m, words);
}

static int extend_group(const struct making *m)
{
	const char *words[DEVICES_MAX + 16] = { "vgextend", "-q", m->name };

	return with_devices(m, words);
}

static int reduce_group(const struct making *m)
{
	const char *words[DEVICES_MAX + 16] = { "vgreduce", "-q", m->name };

	return with_devices(m, words);
}

/* Checks LVM's result: a volume can begin at every extent. */
static int verify(const struct making *m)
{
	const struct zone *zone;
	struct zones z;
	unsigned int i;
	int err = zones_load(&z);

	if (err)
		return err;
	zone = zones_find(&z, m->name, strlen(m->name));
	for (i = 0; zone && i < zone->devices && !err; i++)
		if (!zone->device[i].known || zone->device[i].start % SG_VOLUME_ALIGN)
			err = -EINVAL;
	if (!zone || err) {
		tool_error("zone %s: LVM has not begun its data at a multiple of 2 MiB; see the "
			   "settings of data_alignment in /etc/lvm/lvm.conf", m->name);
		err = -EIO;
	}
	zones_free(&z);
	return err;
}

static void undo_devices(struct making *m)
{
	while (m->done--)
		LVM("pvremove", "-y", "-q", m->device[m->done]);
}

/* @made: the zone exists, and these devices extend it. */
static int make(struct making *m, bool made)
{
	int err = 0;

	while (!err && m->done < m->devices) {
		err = add_device(m, m->done);
		m->done += !err;
	}
	if (!err)
		err = made ? extend_group(m) : add_group(m);
	if (err)
		goto undo;
	err = verify(m);
	if (!err)
		return 0;
	if (made)
		reduce_group(m);
	else
		LVM("vgremove", "-y", "-q", m->name);
undo:
	undo_devices(m);
	return err;
}

/* --- showing ------------------------------------------------------------------------------- */

static void show_devices(struct json *j, const struct zone *z)
{
	unsigned int i;

	json_array(j, "devices");
	for (i = 0; i < z->devices; i++) {
		json_row(j, NULL);
		json_str(j, "path", z->device[i].path);
		if (z->device[i].known) {
			json_hex(j, "base", z->device[i].start);
			json_u64(j, "size", z->device[i].size);
		}
		json_bool(j, "present", z->device[i].known);
		json_bool(j, "dax", z->device[i].dax);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void show_zone(struct json *j, const struct zone *z)
{
	u64 volumes = 0, snapshots = 0, others = 0;
	unsigned int i;

	for (i = 0; i < z->pieces; i++) {
		if (!z->piece[i].volume || zone_find(z, z->piece[i].volume) != &z->piece[i])
			continue;
		if (zone_tagged(z->piece[i].tags, ZONE_TAG))
			volumes++;
		else if (zone_tagged(z->piece[i].tags, SNAPSHOT_TAG))
			snapshots++;
		else
			others++;
	}
	json_object(j, NULL);
	json_str(j, "zone", z->name);
	json_str(j, "uuid", z->uuid);
	json_size(j, "size", zone_size(z));
	json_size(j, "free", zone_free(z));
	json_size(j, "largest_volume", zone_largest(z, SG_VOLUME_ALIGN));
	json_size(j, "largest_volume_1g", zone_largest(z, ZONE_ALIGN_MAX));
	json_u64(j, "volumes", volumes);
	json_u64(j, "snapshots", snapshots);
	json_u64(j, "others", others);
	show_devices(j, z);
	json_close(j, '}');
}

static int show(struct call *c, const struct zones *z, const char *name)
{
	struct zone *zone = NULL;
	unsigned int i;

	if (name) {
		int err = zone_pick(z, name, strlen(name), &zone);

		if (err)
			return err;
	}
	json_begin(&c->j, stdout, !c->json);
	json_array(&c->j, c->json ? "zones" : NULL);
	for (i = 0; i < z->zones; i++)
		if (!zone || zone == &z->zone[i])
			show_zone(&c->j, &z->zone[i]);
	json_close(&c->j, ']');
	json_end(&c->j);
	return 0;
}

/* --- the commands -------------------------------------------------------------------------- */

int cmd_zone_show(struct call *c)
{
	struct zones z;
	int err = lvm_ready() ?: zones_load(&z);

	if (err)
		return refused(c, err, NULL);
	err = show(c, &z, c->volume);
	zones_free(&z);
	return refused(c, err, NULL);
}

int cmd_zone_create(struct call *c)
{
	struct making m = { .c = c, .name = c->volume, .device = c->argv, .devices = c->argc };
	int err = lvm_ready(), lock = -1;

	tool_goes_on();
	if (!err) {
		lock = zones_lock();
		err = lock < 0 ? lock : check_devices(&m, false) ?: make(&m, false);
	}
	if (lock >= 0)
		close(lock);
	return err ? refused(c, err, NULL) : cmd_zone_show(c);
}

static const char *const size_report[] = {
	"pvs", "--reportformat", "json", "--units", "b", "--nosuffix", "-o",
	"pv_name,vg_name,pe_start,pv_size,dev_size", NULL
};

/*
 * Returns by how many bytes, in complete extents, a device exceeds the zone's part of it. Rejects a
 * device that has become shorter, because LVM would make the zone smaller.
 */
static int read_growth(const struct report *r, size_t row, u64 *more)
{
	const char *path = report_text(r, row, "pv_name");
	u64 start, size, all;

	if (!report_number(r, row, "pe_start", &start) || !report_number(r, row, "pv_size", &size) ||
	    !report_number(r, row, "dev_size", &all) || start > all || size > UINT64_MAX - start) {
		tool_error("%s: LVM does not tell how large it is", path);
		return -EIO;
	}
	if (all < start + size) {
		tool_error("%s: has become smaller: it has %llu bytes, and the zone has %llu of it; "
			   "restore its former size", path, (unsigned long long)all,
			   (unsigned long long)(start + size));
		return -EUCLEAN;
	}
	*more = (all - start - size) & ~(ZONE_EXTENT - 1);
	return 0;
}

/* Checks all devices first, so that an invalid device causes an error before any change. */
static int follow_devices(const char *name)
{
	struct report r;
	int err, pass;
	size_t row;
	u64 more;

	err = lvm_report(size_report, &r);
	if (err)
		return err;
	for (pass = 0; pass < 2 && !err; pass++) {
		for (row = 0; row < r.rows && !err; row++) {
			if (strcmp(report_text(&r, row, "vg_name"), name))
				continue;
			err = read_growth(&r, row, &more);
			if (!err && pass && more)
				err = LVM("pvresize", "-q", report_text(&r, row, "pv_name"));
		}
	}
	report_free(&r);
	return err;
}

/* LVM cannot change a zone with a missing device, and its message would be unclear. */
static int refuse_missing(const struct zone *z)
{
	unsigned int i;

	for (i = 0; i < z->devices; i++)
		if (!z->device[i].known || !z->device[i].dax) {
			tool_error("zone %s: its device %s is missing, or is not DAX capable: bring it "
				   "back first", z->name, z->device[i].path);
			return -EUCLEAN;
		}
	return 0;
}

static int extend(struct making *m)
{
	struct zone *zone;
	struct zones z;
	int err = zones_load(&z);

	if (err)
		return err;
	err = zone_pick(&z, m->name, strlen(m->name), &zone) ?: refuse_missing(zone);
	zones_free(&z);
	if (err)
		return err;
	return m->devices ? check_devices(m, true) ?: make(m, true) : follow_devices(m->name);
}

int cmd_zone_extend(struct call *c)
{
	struct making m = { .c = c, .name = c->volume, .device = c->argv, .devices = c->argc };
	int err = lvm_ready(), lock = -1;

	tool_goes_on();
	if (!err) {
		lock = zones_lock();
		err = lock < 0 ? lock : extend(&m);
	}
	if (lock >= 0)
		close(lock);
	return err ? refused(c, err, NULL) : cmd_zone_show(c);
}

static int refuse_volumes(const struct zone *z)
{
	unsigned int i;

	for (i = 0; i < z->pieces; i++)
		if (z->piece[i].volume) {
			tool_error("zone %s: has volumes, %s among them; delete them first",
				   z->name, z->piece[i].volume);
			return -EBUSY;
		}
	return 0;
}

/* Only a zone without volumes can be destroyed, so a user's mistake loses no data. */
static int destroy(struct zone *z)
{
	unsigned int i;
	int err = refuse_volumes(z);

	if (!err)
		err = LVM("vgremove", "-q", z->name);
	for (i = 0; i < z->devices && !err; i++)
		err = LVM("pvremove", "-q", z->device[i].path);
	return err;
}

static int find_and_destroy(const char *name)
{
	struct zone *zone;
	struct zones z;
	int err = zones_load(&z);

	if (err)
		return err;
	err = zone_pick(&z, name, strlen(name), &zone);
	if (!err && zone_finish(zone)) {
		zones_free(&z);
		err = zones_load(&z) ?: zone_pick(&z, name, strlen(name), &zone);
	}
	if (!err)
		err = destroy(zone);
	zones_free(&z);
	return err;
}

int cmd_zone_destroy(struct call *c)
{
	int err = lvm_ready(), lock = -1;

	tool_goes_on();
	if (!err) {
		lock = zones_lock();
		err = lock < 0 ? lock : find_and_destroy(c->volume);
	}
	if (lock >= 0)
		close(lock);
	return refused(c, err, NULL);
}
