/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zones in LVM. A zone is a volume group with the tag "stargate" on DAX devices, and a volume is a
 * linear logical volume with that tag. There is no other record of them (D2).
 */
#ifndef SG_ZONE_H
#define SG_ZONE_H

#include "report.h"

#define ZONE_TAG	"stargate"
/*
 * The tag of a logical volume that a command is making or deleting, or that reserves the growth of
 * another one. After a crash, the only repair is to wipe and remove it.
 */
#define WIPING_TAG	"stargate.wiping"
/* Replaces ZONE_TAG for a copy that does not change. No command mounts, repairs or relocates it. */
#define SNAPSHOT_TAG	"stargate.snapshot"
/*
 * Tags with the source of a copy or clone, and with the time of the copy (seconds).
 */
#define ORIGIN_TAG	"stargate.origin="
#define CREATED_TAG	"stargate.created="
#define ZONE_EXTENT (2ULL << 20) /* LVM's extent size, which is the unit of volumes' sizes */
#define ZONE_NAME_MAX	63
#define ZONE_NAME_RULE	"1 to 63 letters, digits, '.' and '-', the first a letter or digit, but " \
			"not 'snapshot...' and 'pvmove...', which are LVM's"
#define ZONE_ALIGN_MAX	(1ULL << 30)

/**
 * struct zone_device - one memory range of a zone. @known: the kernel reports its place: @phys is
 * the address of its first byte, @start that of its first extent.
 */
struct zone_device {
	const char *path;
	bool known, dax;
	u64 phys, start, size;
};

/**
 * struct zone_piece - a run of extents of one device: a volume, part of one, or free.
 * @volume: its name, or NULL. @tags: as LVM lists them.
 * @first, @extents: its extents in the device; @base, @size: its range of physical memory.
 */
struct zone_piece {
	unsigned int device;
	const char *volume, *tags, *type;
	u64 first, extents;
	u64 base, size;
};

/* @uuid: LVM's UUID of the volume group; a later group of the same name has another UUID. */
struct zone {
	const char *name, *uuid;
	u64 extent;
	struct zone_device *device;
	struct zone_piece *piece;
	unsigned int devices, pieces;
};

/** struct zones - all zones of this machine, from one report of LVM. */
struct zones {
	struct report report;
	struct zone *zone;
	unsigned int zones;
};

/* Finds the device that has the name @path in LVM. */
typedef void (*zone_look)(const char *path, struct zone_device *dev);
/* The arguments of LVM for the report that zones_read() needs. */
extern const char *const zone_report[];
/* reads z->report; returns -ENOMEM or -EUCLEAN on errors */
int zones_read(struct zones *z, zone_look look);
/* reads the zones of this machine; reports errors */
int zones_load(struct zones *z);
void zones_free(struct zones *z);
struct zone *zones_find(const struct zones *z, const char *name, size_t len);

bool zone_name_valid(const char *name, size_t len);
bool zone_tagged(const char *tags, const char *tag);
/*
 * Copies the text after @prefix in one of the tags, at most @room bytes; "" if no tag has the
 * prefix.
 */
const char *zone_tag_value(const char *tags, const char *prefix, char *to, size_t room);
/* Returns the extent with which a volume begins. */
struct zone_piece *zone_find(const struct zone *z, const char *volume);
bool zone_contiguous(const struct zone *z, const struct zone_piece *first);

/**
 * struct zone_place - free extents of a device.
 */
struct zone_place {
	unsigned int device;
	u64 first, extents, base;
};
/* Finds the smallest free space for a volume of that size, so that large free extents remain. */
bool zone_fit(const struct zone *z, u64 size, u64 align, struct zone_place *out);
/* returns the largest size for which zone_fit() finds a place */
u64 zone_largest(const struct zone *z, u64 align);
/* Returns the free space behind a volume, or 0. */
u64 zone_behind(const struct zone *z, const struct zone_piece *p);
u64 zone_free(const struct zone *z);
u64 zone_size(const struct zone *z);
u64 zone_alignment(u64 base);	/* returns the alignment of that address: 4 KiB to 1 GiB */

#endif
