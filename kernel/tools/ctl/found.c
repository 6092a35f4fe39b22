// SPDX-License-Identifier: Apache-2.0
/* Finds the zone and the volume of a command, and locks them against other commands. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
#include "volume.h"

#define LOCK_DIR	"/run/stargatefs"

/* --- names --------------------------------------------------------------------------------- */

/* Returns the start of the volume's name without the zone. */
static const char *own_name(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash ? slash + 1 : name;
}

int volume_named(const char *name)
{
	const char *own = own_name(name);

	if (own != name && !zone_name_valid(name, (size_t)(own - name) - 1))
		return tool_usage_error("'%s': the name of a zone is " ZONE_NAME_RULE, name);
	if (!zone_name_valid(own, strlen(own)))
		return tool_usage_error("'%s': the name of a volume is " ZONE_NAME_RULE, name);
	return 0;
}

int before_volume(struct call *c)
{
	return volume_named(c->volume);
}

/* --- zones --------------------------------------------------------------------------------- */

static void list_zones(const struct zones *z, char *out, size_t room)
{
	unsigned int i;
	size_t len = 0;

	for (i = 0; i < z->zones && len < room; i++)
		len += (size_t)snprintf(out + len, room - len, "%s%s", i ? ", " : "",
					z->zone[i].name);
}

/*
 * Rejects a zone whose extents have another size than 2 MiB. An administrator may have made such a
 * zone.
 */
static int usable_zone(const struct zone *zone)
{
	if (zone->extent == ZONE_EXTENT)
		return 0;
	tool_error("zone %s: its extents have %llu bytes, and not 2 MiB: make it with stargatectl "
		   "zone create", zone->name, (unsigned long long)zone->extent);
	return -EUCLEAN;
}

int zone_pick(const struct zones *z, const char *name, size_t len, struct zone **out)
{
	char names[400] = "";

	*out = len ? zones_find(z, name, len) : z->zones == 1 ? z->zone : NULL;
	list_zones(z, names, sizeof(names));
	if (*out)
		return usable_zone(*out);
	if (!z->zones)
		tool_error("there is no zone: make one with stargatectl zone create ZONE DEVICE");
	else if (len)
		tool_error("there is no zone '%.*s'; there is %s", (int)len, name, names);
	else
		tool_error("there are several zones (%s): write ZONE/VOLUME", names);
	return z->zones && !len ? -EINVAL : -ENODEV;
}

/* --- locks --------------------------------------------------------------------------------- */

/*
 * Does not remove lock files. Otherwise two processes could hold locks on two files with the same
 * name.
 */
static int lock(const char *zone, const char *name, int how)
{
	char path[SHOW_MAX + 40];
	int fd;

	snprintf(path, sizeof(path), LOCK_DIR "/%s", zone);
	mkdir(LOCK_DIR, 0700);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), LOCK_DIR "/%s/%s", zone, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && !flock(fd, how))
		return fd;
	if (fd < 0 || errno != EWOULDBLOCK)
		tool_error("%s: cannot be locked: %s", path, strerror(errno));
	else
		errno = EBUSY;
	if (fd >= 0)
		close(fd);
	return -1;
}

int zone_lock(const char *zone)
{
	return lock(zone, "_", LOCK_EX);	/* no volume has this name */
}

int zones_lock(void)
{
	int fd = lock("_", "_", LOCK_EX | LOCK_NB);	/* no zone has this name */

	if (fd >= 0)
		return fd;
	if (errno != EBUSY)
		return -EIO;
	tool_error("another stargatectl is at work on zones; wait until it ends");
	return -EAGAIN;
}

/* The logical volume that reserves a growth has the same lock as the volume. */
int volume_lock(const char *zone, const char *name)
{
	if (!strncmp(name, GROWTH_PREFIX, strlen(GROWTH_PREFIX)))
		name += strlen(GROWTH_PREFIX);
	return lock(zone, name, LOCK_EX | LOCK_NB);
}

/* --- one volume ---------------------------------------------------------------------------- */

static void name_it(struct volume *v)
{
	snprintf(v->lv, sizeof(v->lv), "%s/%s", v->zone->name, v->name);
	snprintf(v->path, sizeof(v->path), "/dev/%s", v->lv);
	v->piece = zone_find(v->zone, v->name);
}

int volume_open(struct volume *v, const char *name)
{
	const char *own = own_name(name);
	int err;

	*v = (struct volume){ .lock = -1 };
	snprintf(v->name, sizeof(v->name), "%s", own);
	err = lvm_ready();
	if (!err)
		err = zones_load(&v->zones);
	if (!err)
		err = zone_pick(&v->zones, name, own > name ? (size_t)(own - name) - 1 : 0,
				&v->zone);
	if (err)
		zones_free(&v->zones);
	else
		name_it(v);
	return err;
}

int volume_reload(struct volume *v)
{
	char zone[ZONE_NAME_MAX + 1];
	int err;

	snprintf(zone, sizeof(zone), "%s", v->zone->name);
	zones_free(&v->zones);
	v->zone = NULL;
	v->piece = NULL;
	err = zones_load(&v->zones);
	if (!err)
		err = zone_pick(&v->zones, zone, strlen(zone), &v->zone);
	if (!err)
		name_it(v);
	return err;
}

int volume_hold(struct volume *v, const char *name)
{
	int err = volume_open(v, name);

	if (err)
		return err;
	v->finished = v->piece && zone_tagged(v->piece->tags, WIPING_TAG);
	zone_finish(v->zone);
	v->lock = volume_lock(v->zone->name, v->name);
	if (v->lock < 0) {
		err = errno == EBUSY ? -EAGAIN : -EIO;
		if (err == -EAGAIN)
			tool_error("%s: another stargatectl is at work on it; wait until it ends",
				   v->lv);
	} else {
		err = volume_reload(v);
		v->finished &= !v->piece;
	}
	if (err)
		volume_close(v);
	return err;
}

void volume_close(struct volume *v)
{
	zones_free(&v->zones);
	if (v->lock >= 0)
		close(v->lock);
	v->lock = -1;
}

/*
 * The node's system makes the devices of volumes at boot; if it has not, this command makes them.
 * LVM makes no device node for a volume that is already active. So the command also makes missing
 * nodes, for example of a volume that was activated while udev did not run.
 */
int volume_activate(const char *lv, const char *path)
{
	int err = access(path, F_OK) ? LVM("lvchange", "-a", "y", lv) : 0;

	if (!err && access(path, F_OK))
		err = LVM("vgmknodes", lv);
	if (err || !access(path, F_OK))
		return err;
	tool_error("%s: LVM has not created this device: see dmesg and the log of udev", path);
	return -EIO;
}

static bool is_snapshot(const struct volume *v)
{
	return zone_tagged(v->piece->tags, SNAPSHOT_TAG);
}

int volume_need_any(struct volume *v)
{
	if (!v->piece) {
		tool_error("%s: there is no such volume; see stargatectl volume list", v->lv);
		return -ENOENT;
	}
	if (zone_tagged(v->piece->tags, WIPING_TAG)) {
		tool_error("%s: is being made or deleted; wait, or run stargatectl volume delete",
			   v->lv);
		return -EAGAIN;
	}
	if (!zone_tagged(v->piece->tags, ZONE_TAG) && !is_snapshot(v))
		tool_error("%s: is a logical volume that stargatectl has not made; use LVM", v->lv);
	else if (!zone_contiguous(v->zone, v->piece))
		tool_error("%s: is no longer one contiguous extent; copy its files to a new volume",
			   v->lv);
	else
		return volume_activate(v->lv, v->path);
	return -EUCLEAN;
}

int volume_need(struct volume *v)
{
	if (!v->piece || !is_snapshot(v))
		return volume_need_any(v);
	tool_error("%s: is a snapshot, which stays as it is: make a volume of it by stargatectl volume "
		   "clone", v->lv);
	return -EUCLEAN;
}
