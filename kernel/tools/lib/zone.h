/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zones in LVM: a zone is a volume group with the tag "stargate" on DAX devices, a volume is a
 * linear logical volume with that tag. There is no other record of them (D2).
 */
#ifndef SG_ZONE_H
#define SG_ZONE_H

#include "report.h"

#define ZONE_TAG	"stargate"
/*
 * The tag of a logical volume that is to be wiped and removed: it is being made, or deleted, or
 * reserves the growth of another one. So wipe and removal are the only repair after a crash.
 */
#define WIPING_TAG	"stargate.wiping"
/* Instead of ZONE_TAG: a copy that does not change. No command mounts, repairs or moves it. */
#define SNAPSHOT_TAG	"stargate.snapshot"
/*
 * The source of a copy, also of a volume that was made as one; and the time of the copy (seconds).
 */
#define ORIGIN_TAG	"stargate.origin="
#define CREATED_TAG	"stargate.created="
#define ZONE_EXTENT	(2ULL << 20)	/* of LVM: the unit of volumes' sizes */
#define ZONE_NAME_MAX	63
#define ZONE_NAME_RULE	"1 to 63 letters, digits, '.' and '-', the first a letter or digit, but " \
			"not 'snapshot...' and 'pvmove...', which are LVM's"
#define ZONE_ALIGN_MAX	(1ULL << 30)

/**
 * struct zone_device - one of the memory ranges of a zone.
 * @known: the kernel knows its place: @phys is its first byte, @start its first extent's.
 */
struct zone_device {
	const char *path;
	bool known, dax;
	u64 phys, start, size;
};

/**
 * struct zone_piece - a run of extents of one device: a volume, part of one, or free.
 * @volume: its name, or NULL. @tags: as LVM lists them.
 * @first, @extents: within the device; @base, @size: in physical memory.
 */
struct zone_piece {
	unsigned int device;
	const char *volume, *tags, *type;
	u64 first, extents;
	u64 base, size;
};

/* @uuid: LVM's, of the volume group: a later group of the same name has another one. */
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

/* For the device that LVM calls @path. */
typedef void (*zone_look)(const char *path, struct zone_device *dev);
/* The arguments of the report that zones_read() needs. */
extern const char *const zone_report[];
int zones_read(struct zones *z, zone_look look);	/* of z->report; -ENOMEM, -EUCLEAN */
int zones_load(struct zones *z);			/* of this machine; reported */
void zones_free(struct zones *z);
struct zone *zones_find(const struct zones *z, const char *name, size_t len);

bool zone_name_valid(const char *name, size_t len);
bool zone_tagged(const char *tags, const char *tag);
/* The text after @prefix in one of the tags, up to @room; "" if there is none. */
const char *zone_tag_value(const char *tags, const char *prefix, char *to, size_t room);
/* The extent with which a volume begins. */
struct zone_piece *zone_find(const struct zone *z, const char *volume);
bool zone_contiguous(const struct zone *z, const struct zone_piece *first);

/**
 * struct zone_place - free extents of a device.
 */
struct zone_place {
	unsigned int device;
	u64 first, extents, base;
};
/* The tightest place for a volume of that size, so that large free extents stay. */
bool zone_fit(const struct zone *z, u64 size, u64 align, struct zone_place *out);
u64 zone_largest(const struct zone *z, u64 align);	/* for which zone_fit() finds a place */
/* The free space behind a volume; 0: none. */
u64 zone_behind(const struct zone *z, const struct zone_piece *p);
u64 zone_free(const struct zone *z);
u64 zone_size(const struct zone *z);
u64 zone_alignment(u64 base);	/* of that address: 4 KiB to 1 GiB */

#endif
