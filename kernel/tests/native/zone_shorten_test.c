// SPDX-License-Identifier: Apache-2.0
/*
 * A failed growth returns memory to the zone. No system can mount the volume between the tool's
 * check and LVM's truncation. The test acts as LVM, the device and the file system;
 * e2e/scenarios/zone-resize.sh uses the real ones.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include "test.h"

#define DEVICE_FD	77

static int fake_open(const char *path, int flags);
static int fake_close(int fd);
static int fake_lvm(const char *const *words);

#define open(path, flags)	fake_open(path, flags)
#define close(fd)		fake_close(fd)
#define lvm_run			fake_lvm
#include "../../tools/ctl/shorten.c"
#undef open
#undef close

static struct {
	bool mounted, held, readable;
	struct sg_probe probe;
	unsigned int looks, cuts, closes;
} world;

static int fake_open(const char *path, int flags)
{
	CHECK(!strcmp(path, "/dev/z/v"));
	CHECK(flags & O_EXCL);
	if (world.mounted) {
		errno = EBUSY;
		return -1;
	}
	world.held = true;
	return DEVICE_FD;
}

static int fake_close(int fd)
{
	CHECK_EQ(fd, DEVICE_FD);
	CHECK(world.held);
	world.held = false;
	world.closes++;
	return 0;
}

bool engine_look(const char *path, struct sg_probe *out, bool say)
{
	(void)path;
	(void)say;
	CHECK(world.held);
	world.looks++;
	*out = world.probe;
	return world.readable;
}

/*
 * Acts as LVM: afterwards the memory that a mount would have mapped may belong to another volume.
 */
static int fake_lvm(const char *const *words)
{
	CHECK(world.held);
	CHECK(!strcmp(words[0], "lvreduce"));
	CHECK(!strcmp(words[5], "8"));
	CHECK(!strcmp(words[6], "z/v"));
	CHECK(!words[7]);
	world.cuts++;
	return 0;
}

static void run(void)
{
	struct zone_piece piece = { .extents = 8, .size = 16 << 20 };
	struct volume v = { .piece = &piece, .lv = "z/v", .path = "/dev/z/v" };

	world.looks = world.cuts = world.closes = 0;
	volume_shorten(&v);
	CHECK(!world.held);
	CHECK_EQ(world.closes, !world.mounted);
}

int main(void)
{
	tool_name = "stargatectl";
	world.readable = true;
	world.probe.valid = true;
	world.probe.sb.size = 16 << 20;
	run();
	CHECK_EQ(world.cuts, 1);

	/* the volume has grown although the tool reported an error */
	world.probe.sb.size = 32 << 20;
	run();
	CHECK_EQ(world.cuts, 0);
	world.probe.sb.size = 16 << 20;
	world.probe.valid = false;
	run();
	CHECK_EQ(world.cuts, 0);
	world.readable = false;
	run();
	CHECK_EQ(world.cuts, 0);
	world.readable = world.probe.valid = true;
	world.mounted = true;
	run();
	CHECK_EQ(world.looks + world.cuts, 0);
	return test_done();
}
