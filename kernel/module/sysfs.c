// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/fs/stargatefs/<id>/: properties, state and statistics of a mounted volume; holders of its
 * memory; fencing. Every container of a node sees this folder. So only root can read files about
 * other containers (the place of the memory, its holders, their activity), and files that take long
 * to compute.
 */
#include <linux/kobject.h>
#include <linux/sysfs.h>
#include <linux/uuid.h>

#include "stargatefs.h"

static struct kset *volumes;

struct attribute_of {
	struct attribute attr;
	ssize_t (*show)(struct sgfs *fs, char *buf);
	int (*store)(struct sgfs *fs, const char *text);
};

#define ATTRIBUTE(name) \
	static struct attribute_of name##_attribute = { { #name, 0444 }, sgfs_##name##_show }
#define PRIVATE(name) \
	static struct attribute_of name##_attribute = { { #name, 0400 }, sgfs_##name##_show }
#define SETTING(name) \
	static struct attribute_of name##_attribute = { { #name, 0600 }, sgfs_##name##_show, \
							sgfs_##name##_store }
#define COMMAND(name) \
	static struct attribute_of name##_attribute = { { #name, 0200 }, NULL, sgfs_##name##_store }

/* --- properties ------------------------------------------------------------------------------- */

/*
 * Tools use this to find the mount of a device, because any member can change the description in
 * the volume.
 */
static ssize_t sgfs_dev_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "%u:%u\n", MAJOR(fs->sb->s_dev), MINOR(fs->sb->s_dev));
}
ATTRIBUTE(dev);

static ssize_t sgfs_uuid_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "%pUb\n", fs->vol.sb.uuid);
}
ATTRIBUTE(uuid);

static ssize_t sgfs_label_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "%.*s\n", (int)sizeof(fs->vol.sb.label), fs->vol.sb.label);
}
ATTRIBUTE(label);

static ssize_t sgfs_phys_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "0x%llx\n", (u64)fs->mem.phys);
}
PRIVATE(phys);

static ssize_t sgfs_size_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "%llu\n", sg_size_now(&fs->vol));
}
ATTRIBUTE(size);

/* Show the largest size that `stargatectl grow` could give the volume. */
static ssize_t sgfs_max_size_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "%llu\n", sg_grow_limit(&fs->vol));
}
ATTRIBUTE(max_size);

static ssize_t sgfs_slot_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "%d\n", fs->joined ? fs->vol.slot : -1);
}
ATTRIBUTE(slot);

static ssize_t sgfs_map_show(struct sgfs *fs, char *buf)
{
	return sysfs_emit(buf, "%s\n", sgfs_map_name(fs->opt.map));
}
ATTRIBUTE(map);

static ssize_t sgfs_flush_show(struct sgfs *fs, char *buf)
{
	const char *because = fs->opt.flush == SGFS_FLUSH_AUTO ? "device" : "option";

	return sysfs_emit(buf, "%s %s\n", fs->flushes ? "on" : "off", because);
}
ATTRIBUTE(flush);

static ssize_t sgfs_state_show(struct sgfs *fs, char *buf)
{
	const char *state = fs->vol.shut_down ? "shut down" :
			    fs->vol.read_only ? "read-only" : "writable";

	return sysfs_emit(buf, "%s\n", state);
}
ATTRIBUTE(state);

/* --- state ------------------------------------------------------------------------------------ */

static ssize_t sgfs_free_show(struct sgfs *fs, char *buf)
{
	struct sg_statfs s;
	int err = sg_statfs(&fs->vol, &s);

	if (err)
		return err;
	return sysfs_emit(buf, "pages %llu\nfree_pages %llu\nlargest_free %llu\nused_inodes %llu\n",
			  s.pages, s.free_pages, sg_largest_free(&fs->vol), s.used_inodes);
}
PRIVATE(free);

static ssize_t sgfs_epoch_show(struct sgfs *fs, char *buf)
{
	struct sg_health h;
	int err = sg_health(&fs->vol, &h);

	if (err)
		return err;
	return sysfs_emit(buf, "volume %llu\nacknowledged %llu\n", h.epoch, h.acknowledged);
}
PRIVATE(epoch);

static ssize_t sgfs_errors_show(struct sgfs *fs, char *buf)
{
	struct sg_health h;
	int err = sg_health(&fs->vol, &h);

	if (err)
		return err;
	return sysfs_emit(buf, "count %llu\nlast_ino %llu\n", h.errors, h.error_ino);
}
ATTRIBUTE(errors);

/* --- statistics ------------------------------------------------------------------------------- */

static ssize_t sgfs_operations_show(struct sgfs *fs, char *buf)
{
	static const char *const names[SGFS_COUNTS] = {
		[SGFS_READS] = "reads", [SGFS_READ_BYTES] = "read_bytes",
		[SGFS_WRITES] = "writes", [SGFS_WRITE_BYTES] = "write_bytes",
		[SGFS_WALKED_BYTES] = "walked_bytes", [SGFS_WINDOW_BYTES] = "window_bytes",
		[SGFS_FAULTS] = "faults", [SGFS_HUGE_FAULTS] = "huge_faults",
		[SGFS_LOOKUPS] = "lookups", [SGFS_CREATES] = "creates",
		[SGFS_REMOVES] = "removes", [SGFS_RENAMES] = "renames",
		[SGFS_FSYNCS] = "fsyncs",
	};
	ssize_t len = 0;
	int i, cpu;

	for (i = 0; i < SGFS_COUNTS; i++) {
		u64 n = 0;

		for_each_possible_cpu(cpu)
			n += per_cpu_ptr(fs->counts, cpu)->n[i];
		len += sysfs_emit_at(buf, len, "%s %llu\n", names[i], n);
	}
	return len;
}
PRIVATE(operations);

static ssize_t sgfs_journal_show(struct sgfs *fs, char *buf)
{
	struct sg_counters c = sg_counters(&fs->vol);

	return sysfs_emit(buf, "commits %llu\nwords %llu\naborts %llu\nreplays %llu\n"
			  "pages_allocated %llu\npages_freed %llu\nlock_waits %llu\n"
			  "quiesces %llu\n"
			  "atomic_replaced_bytes %llu\natomic_logged_bytes %llu\n",
			  c.commits, c.commit_words, c.aborts, c.replays, c.pages_allocated,
			  c.pages_freed, c.lock_waits, c.quiesces, c.atomic_replaced,
			  c.atomic_logged);
}
ATTRIBUTE(journal);

static ssize_t sgfs_windows_show(struct sgfs *fs, char *buf)
{
	static const char *const sizes[SG_WINDOW_HEIGHTS] = { "2M", "1G", "512G" };
	struct sg_windows *ws = smp_load_acquire(&fs->windows);
	struct sg_windows_stats st = {};
	ssize_t len = 0;
	int i;

	if (ws)
		sg_windows_stats(ws, &st);
	for (i = 0; i < SG_WINDOW_HEIGHTS; i++)
		len += sysfs_emit_at(buf, len, "slots_%s %u\nused_%s %u\n", sizes[i], st.slots[i],
				     sizes[i], st.used[i]);
	len += sysfs_emit_at(buf, len, "hooks %llu\nflushes %llu\nrefused %llu\nshorts %llu\n",
			     st.hooks, st.flushes, st.refused, st.shorts);
	return len;
}
ATTRIBUTE(windows);

PRIVATE(bells);		/* bells.c */

/* --- holders of its memory -------------------------------------------------------------------- */

PRIVATE(holders);	/* region_holders.c */

/*
 * Parse "SLOT INCARNATION", with "unheld" to fence the system even if no process here holds region
 * for it.
 */
static int sgfs_fence_store(struct sgfs *fs, const char *text)
{
	unsigned int slot, incarnation;
	int end = 0;

	if (sscanf(text, "%u %u%n", &slot, &incarnation, &end) != 2)
		return -EINVAL;
	if (sysfs_streq(text + end, ""))
		return sgfs_fence(fs, slot, incarnation, false);
	return sysfs_streq(text + end, " unheld") ? sgfs_fence(fs, slot, incarnation, true) :
	       -EINVAL;
}
COMMAND(fence);

/* --- bad pages -------------------------------------------------------------------------------- */

static ssize_t sgfs_bad_show(struct sgfs *fs, char *buf)
{
	return sgfs_poison_show(fs, buf);
}

static int sgfs_bad_store(struct sgfs *fs, const char *text)
{
	return sgfs_poison_store(fs, text);
}
SETTING(bad);

static struct attribute *volume_attrs[] = {
	&dev_attribute.attr, &uuid_attribute.attr, &label_attribute.attr, &phys_attribute.attr,
	&size_attribute.attr, &max_size_attribute.attr, &slot_attribute.attr,
	&map_attribute.attr, &state_attribute.attr, &free_attribute.attr, &flush_attribute.attr,
	&epoch_attribute.attr, &errors_attribute.attr, &operations_attribute.attr,
	&journal_attribute.attr, &windows_attribute.attr, &holders_attribute.attr,
	&fence_attribute.attr, &bad_attribute.attr, &bells_attribute.attr,
	NULL
};
ATTRIBUTE_GROUPS(volume);

/* --- the folder ------------------------------------------------------------------------------- */

static ssize_t sgfs_sysfs_show(struct kobject *kobj, struct attribute *attr, char *buf)
{
	struct sgfs *fs = container_of(kobj, struct sgfs, kobj);

	return container_of(attr, struct attribute_of, attr)->show(fs, buf);
}

static ssize_t sgfs_store(struct kobject *kobj, struct attribute *attr, const char *buf, size_t len)
{
	struct sgfs *fs = container_of(kobj, struct sgfs, kobj);

	return container_of(attr, struct attribute_of, attr)->store(fs, buf) ?: len;
}

static void sgfs_sysfs_release(struct kobject *kobj)
{
	complete(&container_of(kobj, struct sgfs, kobj)->kobj_gone);
}

static const struct sysfs_ops ops = { .show = sgfs_sysfs_show, .store = sgfs_store };

static const struct kobj_type volume_type = {
	.default_groups = volume_groups,
	.sysfs_ops	= &ops,
	.release	= sgfs_sysfs_release,
};

int sgfs_sysfs_add(struct sgfs *fs)
{
	int err;

	init_completion(&fs->kobj_gone);
	fs->kobj.kset = volumes;
	err = kobject_init_and_add(&fs->kobj, &volume_type, NULL, "%s", fs->sb->s_id);
	if (err) {
		kobject_put(&fs->kobj);
		wait_for_completion(&fs->kobj_gone);
	}
	return err;
}

void sgfs_sysfs_remove(struct sgfs *fs)
{
	kobject_del(&fs->kobj);
	kobject_put(&fs->kobj);
	wait_for_completion(&fs->kobj_gone);
}

int sgfs_sysfs_init(void)
{
	volumes = kset_create_and_add(SGFS_NAME, NULL, fs_kobj);
	return volumes ? 0 : -ENOMEM;
}

void sgfs_sysfs_exit(void)
{
	kset_unregister(volumes);
}
