// SPDX-License-Identifier: Apache-2.0
/* Makes a map of physical memory from LVM's report of zones, and searches it for a place. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "lvm.h"
#include "zone.h"

/* The report has one row for each run of extents, also for free ones. */
const char *const zone_report[] = {
	"pvs", "--segments", "--reportformat", "json", "--units", "b", "--nosuffix", "-o",
	"vg_name,vg_uuid,vg_tags,vg_extent_size,pv_name,pe_start,pvseg_start,pvseg_size,lv_name,lv_tags,"
	"segtype", NULL
};

/* --- names --------------------------------------------------------------------------------- */

/*
 * Accepts the names that LVM accepts, without those that it uses itself: LVM's internal volumes
 * have '_' in their names.
 */
bool zone_name_valid(const char *name, size_t len)
{
	static const char *const kept[] = { "snapshot", "pvmove" };
	size_t i;

	if (!len || len > ZONE_NAME_MAX || !isalnum((unsigned char)*name))
		return false;
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '.' && name[i] != '-')
			return false;
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (len >= strlen(kept[i]) && !memcmp(name, kept[i], strlen(kept[i])))
			return false;
	return true;
}

bool zone_tagged(const char *tags, const char *tag)
{
	size_t n, len = strlen(tag);

	for (; *tags; tags += n + (tags[n] == ',')) {
		n = strcspn(tags, ",");
		if (n == len && !memcmp(tags, tag, n))
			return true;
	}
	return false;
}

const char *zone_tag_value(const char *tags, const char *prefix, char *to, size_t room)
{
	size_t n, len = strlen(prefix);

	*to = 0;
	for (; *tags; tags += n + (tags[n] == ',')) {
		n = strcspn(tags, ",");
		if (n < len || n - len >= room || memcmp(tags, prefix, len))
			continue;
		memcpy(to, tags + len, n - len);
		to[n - len] = 0;
		break;
	}
	return to;
}

/* --- the report ---------------------------------------------------------------------------- */

struct zone *zones_find(const struct zones *z, const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < z->zones; i++)
		if (strlen(z->zone[i].name) == len && !memcmp(z->zone[i].name, name, len))
			return &z->zone[i];
	return NULL;
}

/* Returns space for one more element, zeroed, or NULL without memory. */
static void *one_more(void *list, unsigned int *n, size_t size)
{
	void **p = list, *more = realloc(*p, (*n + 1) * size);

	if (!more)
		return NULL;
	*p = more;
	return memset((char *)more + (*n)++ * size, 0, size);
}

static struct zone *zone_of_row(struct zones *z, size_t row)
{
	const char *name = report_text(&z->report, row, "vg_name");
	struct zone *zone = zones_find(z, name, strlen(name));

	if (zone)
		return zone;
	zone = one_more(&z->zone, &z->zones, sizeof(*zone));
	if (zone) {
		zone->name = name;
		zone->uuid = report_text(&z->report, row, "vg_uuid");
	}
	return zone;
}

static int device_of_row(struct zones *z, struct zone *zone, size_t row, zone_look look)
{
	const char *path = report_text(&z->report, row, "pv_name");
	struct zone_device *dev;
	unsigned int i;

	for (i = 0; i < zone->devices; i++)
		if (!strcmp(zone->device[i].path, path))
			return (int)i;
	dev = one_more(&zone->device, &zone->devices, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->path = path;
	look(path, dev);
	if (!report_number(&z->report, row, "pe_start", &dev->start))
		return -EUCLEAN;
	dev->start += dev->phys;
	return (int)i;
}

static int read_row(struct zones *z, size_t row, zone_look look)
{
	struct zone *zone = zone_of_row(z, row);
	struct zone_piece *p;
	int device;

	if (!zone)
		return -ENOMEM;
	device = device_of_row(z, zone, row, look);
	if (device < 0)
		return device;
	p = one_more(&zone->piece, &zone->pieces, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->device = (unsigned int)device;
	p->volume = report_text(&z->report, row, "lv_name");
	p->volume = *p->volume ? p->volume : NULL;
	p->tags = report_text(&z->report, row, "lv_tags");
	p->type = report_text(&z->report, row, "segtype");
	if (!report_number(&z->report, row, "vg_extent_size", &zone->extent) ||
	    !report_number(&z->report, row, "pvseg_start", &p->first) ||
	    !report_number(&z->report, row, "pvseg_size", &p->extents) ||
	    !zone->extent || p->extents > UINT64_MAX / zone->extent)
		return -EUCLEAN;
	p->size = p->extents * zone->extent;
	p->base = zone->device[device].start + p->first * zone->extent;
	zone->device[device].size += p->size;
	return 0;
}

int zones_read(struct zones *z, zone_look look)
{
	size_t row;
	int err = 0;

	for (row = 0; row < z->report.rows && !err; row++)
		if (zone_tagged(report_text(&z->report, row, "vg_tags"), ZONE_TAG))
			err = read_row(z, row, look);
	return err;
}

static void look_at(const char *path, struct zone_device *dev)
{
	struct stat st;

	if (stat(path, &st) || !S_ISBLK(st.st_mode))
		return;
	dev->known = !device_phys(st.st_rdev, &dev->phys);
	dev->dax = device_is_dax(st.st_rdev);
}

int zones_load(struct zones *z)
{
	int err;

	*z = (struct zones){ 0 };
	err = lvm_report(zone_report, &z->report);
	if (err)
		return err;
	err = zones_read(z, look_at);
	if (err) {
		tool_error("LVM's report of zones: %s", err == -ENOMEM ? "no memory" :
			   "a number is missing");
		zones_free(z);
	}
	return err;
}

void zones_free(struct zones *z)
{
	unsigned int i;

	for (i = 0; i < z->zones; i++) {
		free(z->zone[i].device);
		free(z->zone[i].piece);
	}
	free(z->zone);
	report_free(&z->report);
	*z = (struct zones){ 0 };
}

/* --- a zone -------------------------------------------------------------------------------- */

struct zone_piece *zone_find(const struct zone *z, const char *volume)
{
	struct zone_piece *first = NULL;
	unsigned int i;

	for (i = 0; i < z->pieces; i++)
		if (z->piece[i].volume && !strcmp(z->piece[i].volume, volume) &&
		    (!first || z->piece[i].base < first->base))
			first = &z->piece[i];
	return first;
}

/*
 * A volume needs one extent, because the kernel returns memory of two adjacent extents separately
 * (phys.c).
 */
bool zone_contiguous(const struct zone *z, const struct zone_piece *first)
{
	unsigned int i, n = 0;

	for (i = 0; i < z->pieces; i++)
		n += z->piece[i].volume && !strcmp(z->piece[i].volume, first->volume);
	return n == 1 && !strcmp(first->type, "linear");
}

/* @room: the space for a volume with this alignment, or 0. */
static u64 usable(const struct zone *z, const struct zone_piece *p, u64 align, u64 *start)
{
	*start = (p->base + align - 1) & ~(align - 1);
	if (p->volume || !z->device[p->device].known || *start >= p->base + p->size ||
	    (*start - p->base) % z->extent)
		return 0;
	return p->base + p->size - *start;
}

bool zone_fit(const struct zone *z, u64 size, u64 align, struct zone_place *out)
{
	u64 best = UINT64_MAX, start, room;
	const struct zone_piece *p;
	unsigned int i;

	for (i = 0; i < z->pieces; i++) {
		p = &z->piece[i];
		room = usable(z, p, align, &start);
		if (room < size || p->size >= best)
			continue;
		best = p->size;
		*out = (struct zone_place){ p->device, p->first + (start - p->base) / z->extent,
					    size / z->extent, start };
	}
	return best != UINT64_MAX;
}

u64 zone_largest(const struct zone *z, u64 align)
{
	u64 start, most = 0;
	unsigned int i;

	for (i = 0; i < z->pieces; i++)
		if (usable(z, &z->piece[i], align, &start) > most)
			most = usable(z, &z->piece[i], align, &start);
	return most;
}

u64 zone_behind(const struct zone *z, const struct zone_piece *p)
{
	unsigned int i;

	for (i = 0; i < z->pieces; i++)
		if (!z->piece[i].volume && z->piece[i].device == p->device &&
		    z->piece[i].first == p->first + p->extents)
			return z->piece[i].size;
	return 0;
}

u64 zone_free(const struct zone *z)
{
	u64 n = 0;
	unsigned int i;

	for (i = 0; i < z->pieces; i++)
		n += z->piece[i].volume ? 0 : z->piece[i].size;
	return n;
}

u64 zone_size(const struct zone *z)
{
	u64 n = 0;
	unsigned int i;

	for (i = 0; i < z->devices; i++)
		n += z->device[i].size;
	return n;
}

u64 zone_alignment(u64 base)
{
	return base % ZONE_ALIGN_MAX ? base & -base : ZONE_ALIGN_MAX;
}
