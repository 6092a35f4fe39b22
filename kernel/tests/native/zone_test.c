// SPDX-License-Identifier: Apache-2.0
/*
 * Zones as LVM reports them: parsing of reports, and the placement of volumes in physical memory.
 * e2e/scenarios/zone.sh uses LVM and DAX devices of a real kernel.
 */
#include <stdio.h>
#include <stdlib.h>
#include "test.h"
#include "zone.h"

#define MIB	(1ULL << 20)
#define GIB	(1ULL << 30)

/* A report in the format of lvm2 2.03. '@' marks a row's end. */
static const char real[] =
"  {\n      \"report\": [\n          {\n              \"pvseg\": [\n"
"  {\"vg_name\":\"z\", \"vg_uuid\":\"Ab-1\", \"vg_tags\":\"a,stargate\", \"vg_extent_size\":\"2097152\","
" \"pv_name\":\"/dev/pmem0\", \"pe_start\":\"3670016\", \"pvseg_start\":\"0\","
" \"pvseg_size\":\"10\", \"lv_name\":\"\", \"lv_tags\":\"\", \"segtype\":\"free\"},\n"
"  {\"vg_name\":\"z\", \"vg_uuid\":\"Ab-1\", \"vg_tags\":\"a,stargate\", \"vg_extent_size\":\"2097152\","
" \"pv_name\":\"/dev/pmem0\", \"pe_start\":\"3670016\", \"pvseg_start\":\"10\","
" \"pvseg_size\":\"30\", \"lv_name\":\"one\", \"lv_tags\":\"stargate\","
" \"segtype\":\"linear\"},\n"
"  {\"vg_name\":\"other\", \"vg_tags\":\"stargate2\", \"vg_extent_size\":\"4194304\","
" \"pv_name\":\"/dev/vdz\", \"pe_start\":\"1048576\", \"pvseg_start\":\"0\","
" \"pvseg_size\":\"10\", \"lv_name\":\"x\", \"lv_tags\":\"\", \"segtype\":\"linear\"},\n"
"  {\"vg_name\":\"z\", \"vg_uuid\":\"Ab-1\", \"vg_tags\":\"a,stargate\", \"vg_extent_size\":\"2097152\","
" \"pv_name\":\"/dev/pmem0\", \"pe_start\":\"3670016\", \"pvseg_start\":\"40\","
" \"pvseg_size\":\"4\", \"lv_name\":\"two\", \"lv_tags\":\"foo,stargate.wiping\","
" \"segtype\":\"linear\"}\n"
"              ]\n          }\n      ]\n      ,\n      \"log\": [\n      ]\n  }\n";

/* Describes the devices: /dev/pmem0 begins half a MiB before 16 GiB, /dev/pmem1 at 64 GiB. */
static void look(const char *path, struct zone_device *dev)
{
	dev->known = dev->dax = !strncmp(path, "/dev/pmem", 9);
	dev->phys = !dev->known ? 0 : path[9] == '0' ? 16 * GIB - MIB / 2 : 64 * GIB;
}

static char *copy(const char *text)
{
	char *s = strdup(text);

	CHECK(s);
	return s;
}

static void read_it(struct zones *z, const char *text)
{
	memset(z, 0, sizeof(*z));
	CHECK(report_read(&z->report, copy(text)));
	CHECK_EQ(zones_read(z, look), 0);
}

/* --- reports -------------------------------------------------------------------------------- */

static void test_real(void)
{
	struct zones z;
	struct zone *zone;

	read_it(&z, real);
	CHECK_EQ(z.report.rows, 4);
	CHECK_EQ(z.zones, 1);	/* the other volume group's tag only has the same beginning */
	zone = zones_find(&z, "z", 1);
	CHECK(zone && !zones_find(&z, "other", 5) && !zones_find(&z, "zz", 2));
	CHECK_EQ(zone->devices, 1);
	CHECK_EQ(zone->pieces, 3);
	CHECK(!strcmp(zone->uuid, "Ab-1"));
	CHECK_EQ(zone->extent, ZONE_EXTENT);
	CHECK_EQ(zone->device[0].start, 16 * GIB + 3 * MIB);
	CHECK_EQ(zone_size(zone), 88 * MIB);
	CHECK_EQ(zone_free(zone), 20 * MIB);
	CHECK_EQ(zone_find(zone, "one")->base, 16 * GIB + 23 * MIB);
	CHECK(!zone_find(zone, "on") && !zone_find(zone, "none"));
	CHECK(zone_tagged(zone_find(zone, "two")->tags, WIPING_TAG));
	CHECK(!zone_tagged(zone_find(zone, "two")->tags, ZONE_TAG));
	zones_free(&z);
}

/*
 * Reports that are truncated anywhere, or have one changed byte: each is read or refused (ASan
 * checks).
 */
static void test_broken(void)
{
	size_t i, refused = 0, n = strlen(real);
	struct report r;
	char *text;

	for (i = 0; i < n - 4; i++) {
		text = copy(real);
		text[i] = 0;
		if (report_read(&r, text))
			report_free(&r);
		else
			refused++;
	}
	CHECK_EQ(refused, n - 4);
	for (i = 0; i < n; i++) {
		text = copy(real);
		text[i] = "{}[]\",:\\x0"[i % 10];
		if (report_read(&r, text))
			report_free(&r);
	}
}

static void test_odd(void)
{
	static const char *const none[] = { "", "x", "{", "[[[[[[[[[[[]]]]]]]]]]]", "{\"a\":1}",
		"{\"a\":\"\\u0041\"}", "{} {}", "{\"a\" \"b\"}", "[\"a\",]", "\"\\" };
	struct zones z = { 0 };
	unsigned int i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CHECK(!report_read(&z.report, copy(none[i])));
	read_it(&z, "{\"report\": [{\"pvseg\": []}], \"log\": []}");
	CHECK_EQ(z.zones, 0);
	zones_free(&z);
	/* an invalid number */
	CHECK(report_read(&z.report, copy("{\"report\":[{\"pvseg\":[{\"vg_name\":\"z\","
		"\"vg_tags\":\"stargate\",\"vg_extent_size\":\"-1\",\"pv_name\":\"p\","
		"\"pe_start\":\"0\",\"pvseg_start\":\"0\",\"pvseg_size\":\"1\"}]}]}")));
	CHECK_EQ(zones_read(&z, look), -EUCLEAN);
	zones_free(&z);
	CHECK(report_read(&z.report, copy("{\"report\":[{\"x\":[{\"k\":\"a\\\\b\\\"c\"}]}]}")));
	CHECK(!strcmp(report_text(&z.report, 0, "k"), "a\\b\"c"));
	CHECK(!strcmp(report_text(&z.report, 0, "l"), "") &&
	      !strcmp(report_text(&z.report, 1, "k"), ""));
	zones_free(&z);
}

/* --- places --------------------------------------------------------------------------------- */

static struct zone_device devices[] = {
	{ .path = "/dev/pmem0", .known = true, .start = 16 * GIB + 2 * MIB },
	{ .path = "/dev/pmem1", .known = true, .start = 64 * GIB + 4 * MIB },
	{ .path = "[unknown]", .known = false },
};

#define PIECE(dev, name, mib, n) { .device = dev, .volume = name, .tags = "stargate", \
	.type = "linear", .first = (mib) / 2, .extents = (n) / 2, \
	.base = (dev ? 64 * GIB + 4 * MIB : 16 * GIB + 2 * MIB) + (mib) * MIB, .size = (n) * MIB }

static struct zone_piece pieces[] = {
	PIECE(0, NULL, 0, 64), PIECE(0, "a", 64, 16), PIECE(0, NULL, 80, 32), PIECE(0, "b", 112, 16),
	PIECE(0, NULL, 128, 2500), PIECE(0, "c", 2628, 16), PIECE(0, "b", 2644, 16),
	PIECE(0, NULL, 2660, 2),
	PIECE(1, NULL, 0, 48), PIECE(2, NULL, 0, 90000),
};

static const struct zone map = {
	.name = "z", .extent = ZONE_EXTENT, .device = devices, .devices = 3,
	.piece = pieces, .pieces = sizeof(pieces) / sizeof(pieces[0]),
};

static void fits(u64 mib, u64 align, unsigned int device, u64 base)
{
	struct zone_place p;

	CHECK(zone_fit(&map, mib * MIB, align, &p));
	CHECK_EQ(p.device, device);
	CHECK_EQ(p.base, base);
	CHECK_EQ(p.base % align, 0);
	CHECK_EQ(p.extents, mib / 2);
	CHECK_EQ(p.first * ZONE_EXTENT + devices[device].start, base);
}

static void test_places(void)
{
	struct zone_place p;

	fits(16, 2 * MIB, 0, 16 * GIB + 82 * MIB);	/* the smallest free range that fits */
	fits(32, 2 * MIB, 0, 16 * GIB + 82 * MIB);
	fits(34, 2 * MIB, 1, 64 * GIB + 4 * MIB);	/* a range on another device */
	fits(50, 2 * MIB, 0, 16 * GIB + 2 * MIB);
	fits(66, 2 * MIB, 0, 16 * GIB + 130 * MIB);
	fits(2500, 2 * MIB, 0, 16 * GIB + 130 * MIB);
	/* the largest free range is on a device with an unknown address, and not used */
	CHECK(!zone_fit(&map, 2502 * MIB, 2 * MIB, &p));
	CHECK_EQ(zone_largest(&map, 2 * MIB), 2500 * MIB);
	fits(64, GIB, 0, 17 * GIB);
	fits(1606, GIB, 0, 17 * GIB);
	CHECK(!zone_fit(&map, 1608 * MIB, GIB, &p));
	CHECK_EQ(zone_largest(&map, GIB), 1606 * MIB);
	CHECK_EQ(zone_alignment(17 * GIB), GIB);
	CHECK_EQ(zone_alignment(16 * GIB + 82 * MIB), 2 * MIB);
	CHECK_EQ(zone_alignment(4096), 4096);
}

static void test_behind(void)
{
	CHECK_EQ(zone_behind(&map, zone_find(&map, "a")), 32 * MIB);
	CHECK_EQ(zone_behind(&map, zone_find(&map, "c")), 0);
	CHECK(zone_contiguous(&map, zone_find(&map, "a")));
	CHECK(!zone_contiguous(&map, zone_find(&map, "b")));
	CHECK_EQ(zone_find(&map, "b")->base, 16 * GIB + 114 * MIB);
}

/* --- names ---------------------------------------------------------------------------------- */

static void test_tags(void)
{
	CHECK(zone_tagged("stargate", ZONE_TAG) && zone_tagged("a,stargate,b", ZONE_TAG));
	CHECK(zone_tagged("a,stargate.wiping", WIPING_TAG));
	CHECK(!zone_tagged("", ZONE_TAG) && !zone_tagged("star", ZONE_TAG));
	CHECK(!zone_tagged("stargates,stargate.wiping", ZONE_TAG));
}

static void test_names(void)
{
	static const char *const good[] = { "a", "0", "pvc-7b1c", "A.b-c", "snap", "zone1" };
	static const char *const bad[] = { "", ".", "..", "-a", ".a", "a_b", "a/b", "a b", "a\n",
		"snapshot", "snapshot1", "pvmove0", "\xc3\xa9", "a;b", "$(x)", "a'", "%s", "@tag" };
	char long_name[80];
	unsigned int i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(zone_name_valid(good[i], strlen(good[i])));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!zone_name_valid(bad[i], strlen(bad[i])));
	memset(long_name, 'n', sizeof(long_name));
	CHECK(zone_name_valid(long_name, 63));
	CHECK(!zone_name_valid(long_name, 64));
}

int main(void)
{
	test_real();
	test_broken();
	test_odd();
	test_places();
	test_behind();
	test_tags();
	test_names();
	return test_done();
}
