// SPDX-License-Identifier: Apache-2.0
/*
 * volume list, show: prints properties from LVM and from the volumes' superblocks. The commands
 * activate and change nothing.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "volume.h"

/**
 * struct sight - the printed state of a volume. @snapshot: it is a snapshot. @looked: @fs is its
 * content. @mounted: it is mounted on this host, at @where.
 */
struct sight {
	const struct zone *zone;
	const struct zone_piece *piece;
	char path[SHOW_MAX];
	bool snapshot, looked, mounted;
	struct sg_probe fs;
	char where[PATH_MAX];
};

static void look(struct sight *s, const struct zone *z, const struct zone_piece *p)
{
	*s = (struct sight){ .zone = z, .piece = p };
	snprintf(s->path, sizeof(s->path), "/dev/%s/%s", z->name, p->volume);
	s->snapshot = zone_tagged(p->tags, SNAPSHOT_TAG);
	if (!s->snapshot && !zone_tagged(p->tags, ZONE_TAG))
		return;
	s->looked = engine_look(s->path, &s->fs, false);
	s->mounted = engine_mounted(s->path, s->where);
}

static const char *state_of(const struct sight *s)
{
	if (zone_tagged(s->piece->tags, WIPING_TAG))
		/* a command is making or deleting it, or was killed while it did so */
		return "unfinished";
	if (!s->snapshot && !zone_tagged(s->piece->tags, ZONE_TAG))
		return "foreign";
	if (!s->zone->device[s->piece->device].known)
		return "missing";
	if (!zone_contiguous(s->zone, s->piece))
		return "scattered";
	if (s->snapshot)
		return "snapshot";
	if (!s->looked)
		return "inactive";
	if (!s->fs.valid)
		return "damaged";
	if (s->fs.sb.phys != s->piece->base)
		return "moved";
	return s->fs.live ? "in use" : "ready";
}

static u64 lv_size(const struct sight *s)
{
	u64 n = 0;
	unsigned int i;

	for (i = 0; i < s->zone->pieces; i++)
		if (s->zone->piece[i].volume &&
		    !strcmp(s->zone->piece[i].volume, s->piece->volume))
			n += s->zone->piece[i].size;
	return n;
}

/* A volume whose metadata has no space for growth keeps its first size. */
static u64 can_grow_to(const struct sight *s)
{
	u64 most = s->fs.sb.chunk_cap * SG_CHUNK;
	u64 room = s->piece->size + zone_behind(s->zone, s->piece);

	return SG_MAX(SG_MIN(most, room), s->fs.sb.size);
}

/* Prints the source of a copy, and the time of the copy. */
static void show_origin(struct json *j, const struct zone_piece *p)
{
	char text[SHOW_MAX];
	u64 seconds;

	if (*zone_tag_value(p->tags, ORIGIN_TAG, text, sizeof(text)))
		json_str(j, "origin", text);
	zone_tag_value(p->tags, CREATED_TAG, text, sizeof(text));
	if (parse_number(text, 10, INT64_MAX / 1000000000, &seconds))
		json_time(j, "created", (s64)(seconds * 1000000000));
}

static void show_file_system(struct json *j, const struct sight *s)
{
	const struct sg_super *sb = &s->fs.sb;
	char id[37];

	json_str(j, "uuid", show_uuid(sb->uuid, id));
	json_str(j, "label", sb->label);
	if (sb->phys != s->piece->base)
		json_hex(j, "made_for_base", sb->phys);
	if (sb->size != s->piece->size)
		json_size(j, "file_system", sb->size);
	if (!s->snapshot)
		json_size(j, "can_grow_to", can_grow_to(s));
	json_size(j, "max_size", sb->chunk_cap * SG_CHUNK);
	if (!s->snapshot)
		json_u64(j, "systems", s->fs.live);
}

static void show_sight(struct json *j, const struct sight *s)
{
	json_str(j, "zone", s->zone->name);
	json_str(j, "zone_uuid", s->zone->uuid);
	json_str(j, "volume", s->piece->volume);
	json_str(j, "state", state_of(s));
	json_str(j, "device", s->path);
	json_hex(j, "base", s->piece->base);
	json_size(j, "size", lv_size(s));
	json_size(j, "alignment", zone_alignment(s->piece->base));
	show_origin(j, s->piece);
	if (s->looked && s->fs.valid)
		show_file_system(j, s);
	if (s->mounted)
		json_str(j, "mounted", s->where);
}

void show_volume(struct call *c, const struct zone *z, const struct zone_piece *p)
{
	static struct sight s;

	look(&s, z, p);
	show_sight(&c->j, &s);
}

int cmd_volume_show(struct call *c)
{
	struct volume v;
	int err = volume_open(&v, c->volume);

	if (err)
		return refused(c, err, NULL);
	err = v.piece ? 0 : volume_need(&v);
	if (!err) {
		json_begin(&c->j, stdout, !c->json);
		show_volume(c, v.zone, v.piece);
		json_end(&c->j);
	}
	volume_close(&v);
	return refused(c, err, NULL);
}

/* --- list ---------------------------------------------------------------------------------- */

static void line(const struct sight *s)
{
	char name[2 * ZONE_NAME_MAX + 4], size[32], align[32], origin[SHOW_MAX];
	bool copied = *zone_tag_value(s->piece->tags, ORIGIN_TAG, origin, sizeof(origin));

	snprintf(name, sizeof(name), "%s/%s", s->zone->name, s->piece->volume);
	printf("%-28s  %-10s  %-10s  0x%010llx  %-7s  %-12s  ", name, state_of(s),
	       show_size(lv_size(s), size), (unsigned long long)s->piece->base,
	       show_size(zone_alignment(s->piece->base), align), copied ? origin : "-");
	print_text(s->mounted ? s->where : "");
	putchar('\n');
}

static void list(struct call *c, const struct zone *z)
{
	static struct sight s;
	unsigned int i;

	for (i = 0; i < z->pieces; i++) {
		if (!z->piece[i].volume || zone_find(z, z->piece[i].volume) != &z->piece[i])
			continue;
		look(&s, z, &z->piece[i]);
		if (!c->json) {
			line(&s);
			continue;
		}
		json_object(&c->j, NULL);
		show_sight(&c->j, &s);
		json_close(&c->j, '}');
	}
}

static void list_all(struct call *c, const struct zones *z, const struct zone *only)
{
	unsigned int i;

	if (c->json) {
		json_begin(&c->j, stdout, false);
		json_array(&c->j, "volumes");
	} else {
		printf("%-28s  %-10s  %-10s  %-12s  %-7s  %-12s  %s\n", "VOLUME", "STATE", "SIZE",
		       "BASE", "ALIGNED", "ORIGIN", "MOUNTED");
	}
	for (i = 0; i < z->zones; i++)
		if (!only || only == &z->zone[i])
			list(c, &z->zone[i]);
	if (c->json) {
		json_close(&c->j, ']');
		json_end(&c->j);
	}
}

int cmd_volume_list(struct call *c)
{
	struct zone *only = NULL;
	struct zones z;
	int err = lvm_ready() ?: zones_load(&z);

	if (err)
		return refused(c, err, NULL);
	if (c->volume)
		err = zone_pick(&z, c->volume, strlen(c->volume), &only);
	if (!err) {
		mounts_keep();
		list_all(c, &z, only);
	}
	zones_free(&z);
	return refused(c, err, NULL);
}
