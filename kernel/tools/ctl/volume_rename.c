// SPDX-License-Identifier: Apache-2.0
/*
 * volume rename: gives the logical volume another name, in the same zone. Its bytes, label, UUID
 * and address do not change, so its machines and copies are not affected. Mounts, /etc/fstab and
 * Kubernetes use the name: a claim identifies its volume only by name.
 *
 * LVM changes the name in one step. The volume has no device during the command, so a killed
 * command leaves an inactive volume, with the old name or with the new one.
 */
#define _GNU_SOURCE
#include <unistd.h>
#include "volume.h"

/*
 * Reports whether the name has the form that the CSI driver uses
 * (csi-driver/internal/pool/name.go). Only the driver should use it.
 */
static bool of_kubernetes(const char *name)
{
	static const char *const begins[] = { "pvc-", "x-", "e-", "s-", "ds-" };
	unsigned int i;

	for (i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

int before_volume_rename(struct call *c)
{
	const char *own = strchr(c->volume, '/'), *to = c->argv[0];
	int err = before_volume(c);

	if (err)
		return err;
	if (!zone_name_valid(to, strlen(to)))
		return tool_usage_error("'%s': the name of a volume is " ZONE_NAME_RULE
					"; it stays in the same zone", to);
	own = own ? own + 1 : c->volume;
	if (c->force || (!of_kubernetes(own) && !of_kubernetes(to)))
		return 0;
	if (of_kubernetes(own))
		tool_error("%s: has a name of the CSI driver, so a claim or pod would lose it; if no PersistentVolume names it, give --force", c->volume);
	else
		tool_error("'%s': is a name of the CSI driver, so a claim or pod would get this volume; if you want that, give --force", to);
	return refused(c, -EUCLEAN, NULL);
}

/*
 * Checks, as volume delete does, that no system uses the volume. The mount table of a snapshot
 * belongs to the source volume.
 */
static int unused(struct call *c, struct volume *v)
{
	int err = volume_need_any(v), fd;

	if (err)
		return err;
	fd = volume_claim(v->path);
	if (fd < 0)
		return fd;
	err = volume_sole(fd, v->path);
	if (!err && !zone_tagged(v->piece->tags, SNAPSHOT_TAG))
		err = engine_unused(v, c->force);
	close(fd);
	return err;
}

/*
 * Renames the logical volume. If a process has opened the device since the check, LVM cannot
 * deactivate it, and the function fails.
 */
static int rename_it(const struct volume *from, const struct volume *to)
{
	int err = LVM("lvchange", "-q", "-a", "n", from->lv);

	if (err)
		return err;
	err = LVM("lvrename", "-q", from->zone->name, from->name, to->name);
	if (err)
		volume_activate(from->lv, from->path);
	return err ?: volume_activate(to->lv, to->path);
}

static int show(struct call *c, struct volume *v)
{
	if (volume_reload(v) || !v->piece)
		return -EIO;
	json_begin(&c->j, stdout, !c->json);
	show_volume(c, v->zone, v->piece);
	json_end(&c->j);
	return 0;
}

/* The caller has locked the volume and the new name. */
static int rename_to(struct call *c, struct volume *from)
{
	char name[SHOW_MAX];
	struct volume to;
	int err;

	snprintf(name, sizeof(name), "%s/%s", from->zone->name, c->argv[0]);
	if (!strcmp(from->name, c->argv[0])) {
		tool_error("%s: has this name already", from->lv);
		return -EEXIST;
	}
	err = volume_hold(&to, name);
	if (err)
		return err;
	if (to.piece) {
		tool_error("%s: exists already; see stargatectl volume show", to.lv);
		err = -EEXIST;
	}
	err = err ?: unused(c, from) ?: rename_it(from, &to) ?: show(c, &to);
	volume_close(&to);
	return err;
}

int cmd_volume_rename(struct call *c)
{
	struct volume from;
	int err;

	tool_goes_on();
	err = volume_hold(&from, c->volume);
	if (err)
		return refused(c, err, NULL);
	err = from.piece ? rename_to(c, &from) : volume_need_any(&from);
	volume_close(&from);
	return refused(c, err, &from.why);
}
