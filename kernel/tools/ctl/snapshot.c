// SPDX-License-Identifier: Apache-2.0
/*
 * snapshot: a copy of a volume as it is at one moment, whoever uses it, in a file of its own
 * (docs/snapshots.md). All of it is copied while everybody works, and once more what differs by
 * then; that shows how long the third pass will take, for which all stand still. Mounted here, the
 * module asks them to; on a file or device-dax node this tool is one of the systems; a device that
 * nobody has mounted is had by the tool alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ctl.h"
#include "ioctl.h"

#define STALL_MS	2000
#define TRIES		3

/**
 * struct snapshot - a copy being made.
 * @from, @mapped: its memory. @size: of the volume. @sb: its superblock, checked.
 * @fd: the copy, which is called @part until it is whole.
 * @freeze, @thaw: how all are made to stand still, or NULL: there is nobody. -errno, with why.
 * @dir: of the mount, open; or -1.
 * @took, @wrote: of the last pass: ns, bytes. @stalled: for how long all stood still (ns).
 */
struct snapshot {
	struct call *c;
	const u8 *from;
	u64 mapped, size;
	struct sg_super sb;
	int fd, dir;
	char part[PATH_MAX], why[200];
	int (*freeze)(struct snapshot *s, unsigned int limit_ms);
	int (*thaw)(struct snapshot *s);
	u64 took, wrote, stalled, tries;
};

static unsigned int stall_ms(const struct call *c)
{
	return c->stall ? (unsigned int)c->stall : STALL_MS;
}

/* --- passes --------------------------------------------------------------------------------- */

static int write_all(struct snapshot *s, const u8 *from, size_t len, u64 at)
{
	while (len) {
		ssize_t n = pwrite(s->fd, from, len, (off_t)at);

		if (n <= 0)
			return n ? -errno : -EIO;
		from += n;
		at += (u64)n;
		len -= (size_t)n;
		s->wrote += (u64)n;
	}
	return 0;
}

/* Page by page: what is zero on both sides stays a hole. */
static int copy_run(struct snapshot *s, u64 at, size_t len)
{
	static u8 had[SG_CHUNK];
	size_t i;
	int err = 0;

	if (pread(s->fd, had, len, (off_t)at) != (ssize_t)len)
		return -EIO;
	for (i = 0; i < len && !err; i += SG_PAGE)
		if (memcmp(s->from + at + i, had + i, SG_PAGE))
			err = write_all(s, s->from + at + i, SG_PAGE, at + i);
	return err;
}

/* What nobody has is not copied: whoever gets it zeroes it first. */
static bool in_use(const struct snapshot *s, u64 at)
{
	const struct sg_chunk *chunk = (const void *)(s->from + s->sb.chunk_off);
	u64 page = at >> SG_PAGE_SHIFT & (SG_CHUNK_PAGES - 1);

	return at < s->sb.data_off || at + SG_PAGE == s->size ||
	       sg_load64(&chunk[at >> SG_CHUNK_SHIFT].map[page / 64]) >> page % 64 & 1;
}

/* The end of what is in use, or is not, as @at is; within the chunk. */
static u64 run_end(const struct snapshot *s, u64 at, bool used)
{
	u64 end = at;

	do
		end += SG_PAGE;
	while (end & (SG_CHUNK - 1) && in_use(s, end) == used);
	return end;
}

static int pass(struct snapshot *s)
{
	u64 start = sg_ticks(), at, end;
	int err = 0;

	s->wrote = 0;
	for (at = 0; at < s->size && !err; at = end) {
		bool used = in_use(s, at);

		end = run_end(s, at, used);
		if (used)
			err = copy_run(s, at, end - at);
	}
	s->took = sg_ticks() - start;
	return err;
}

static int copy_error(const struct snapshot *s, int err)
{
	tool_error("%s: cannot be written: %s", s->part, strerror(-err));
	return 1;
}

/* It may have grown, in calls that were under way before. */
static bool has_grown(const struct snapshot *s)
{
	return sg_load64((const u64 *)(s->from + SG_HOT(size))) > s->size;
}

/* --- one moment ----------------------------------------------------------------------------- */

static int too_slow(const struct snapshot *s)
{
	tool_error("%s: all would stand still for about %llu ms, and %u are allowed: --stall, or less "
		   "work meanwhile", s->c->volume, (unsigned long long)(s->took / 1000000) + 1,
		   stall_ms(s->c));
	return 1;
}

/* 0; 1: said; -EAGAIN: somebody has not stood still for so long. */
static int at_one_moment(struct snapshot *s)
{
	u64 start = sg_ticks();
	int err = s->freeze(s, stall_ms(s->c)), void_err;
	bool grown;

	if (err) {
		tool_error("%s: %s", s->c->volume, s->why[0] ? s->why : strerror(-err));
		return 1;
	}
	err = pass(s);
	grown = has_grown(s);
	void_err = s->thaw(s);
	s->stalled = sg_ticks() - start;
	if (err)
		return copy_error(s, err);
	if (grown) {
		tool_error("%s: has grown meanwhile: try again", s->c->volume);
		return 1;
	}
	if (void_err && void_err != -EAGAIN) {
		tool_error("%s: %s", s->c->volume, strerror(-void_err));
		return 1;
	}
	return void_err;
}

/* Passes that nobody waits for; the last of them shows what the next one costs. */
static int approach(struct snapshot *s)
{
	unsigned int i;
	int err;

	for (i = 0; i < TRIES; i++) {
		err = pass(s);
		if (err || s->took <= stall_ms(s->c) * 1000000ULL / 2)
			return err;
	}
	return 0;
}

static int copy_all(struct snapshot *s)
{
	int err = pass(s);

	for (s->tries = 1; !err && s->freeze; s->tries++) {
		err = approach(s);
		if (err)
			break;
		if (s->took > stall_ms(s->c) * 1000000ULL / 2)
			return too_slow(s);
		err = at_one_moment(s);
		if (err != -EAGAIN)
			return err;
		if (s->tries == TRIES) {
			tool_error("%s: in %d attempts somebody came, went or did not stand still for "
				   "long enough: try again", s->c->volume, TRIES);
			return 1;
		}
		err = 0;
	}
	return err ? copy_error(s, err) : 0;
}

/* --- the copy ------------------------------------------------------------------------------- */

static int name_taken(const char *path)
{
	tool_error("%s: is there already: a copy goes into a file of its own", path);
	return 1;
}

static int create(struct snapshot *s, const char *path)
{
	if (!access(path, F_OK))
		return name_taken(path);
	if ((size_t)snprintf(s->part, sizeof(s->part), "%s.part", path) >= sizeof(s->part)) {
		tool_error("%s: the name is too long", path);
		return 1;
	}
	s->fd = open(s->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->fd < 0) {
		tool_error("%s: cannot be created: %s", s->part, strerror(errno));
		return 1;
	}
	if (flock(s->fd, LOCK_EX | LOCK_NB)) {
		tool_error("%s: another copy is just being made there", s->part);
		close(s->fd);
		return 1;
	}
	/* what one who was killed has left is begun anew */
	if (!ftruncate(s->fd, 0) && !ftruncate(s->fd, (off_t)s->size))
		return 0;
	tool_error("%s: cannot be made as large as the volume: %s", s->part, strerror(errno));
	unlink(s->part);
	close(s->fd);
	return 1;
}

/* Durable, then it has its name. */
static int finish(struct snapshot *s, const char *path)
{
	if (fsync(s->fd))
		return copy_error(s, -errno);
	if (!renameat2(AT_FDCWD, s->part, AT_FDCWD, path, RENAME_NOREPLACE))
		return 0;
	if (errno == EEXIST)
		return name_taken(path);
	tool_error("%s: cannot be renamed to %s: %s", s->part, path, strerror(errno));
	return 1;
}

static void show(struct snapshot *s, const char *path)
{
	struct call *c = s->c;
	struct stat st;
	char a[32];

	if (!c->json) {
		printf("%s: copied to %s, %s", c->volume, path, show_size(s->size, a));
		printf(s->freeze ? "; all stood still for %.1f ms\n" : "\n", (double)s->stalled / 1e6);
		return;
	}
	json_begin(&c->j, stdout, false);
	json_str(&c->j, "file", path);
	json_size(&c->j, "size", s->size);
	if (!fstat(s->fd, &st))
		json_size(&c->j, "stored", (u64)st.st_blocks * 512);
	json_u64(&c->j, "stall_us", s->stalled / 1000);
	json_u64(&c->j, "tries", s->freeze ? s->tries : 0);
	json_end(&c->j);
}

static int copy_to(struct snapshot *s, const char *path)
{
	struct sg_probe found;
	int status;

	sg_search(s->from, s->mapped, &found);
	if (!found.valid) {
		tool_error("%s: its superblock is damaged: run fsck.stargatefs", s->c->volume);
		return 1;
	}
	s->sb = found.sb;
	s->size = found.sb.size;
	status = create(s, path);
	if (status)
		return status;
	status = copy_all(s) || finish(s, path);
	if (status)
		unlink(s->part);
	else
		show(s, path);
	close(s->fd);
	return status;
}

/* --- mounted here --------------------------------------------------------------------------- */

static int freeze_mounted(struct snapshot *s, unsigned int limit_ms)
{
	struct sg_ioc_freeze f = { .limit_ms = limit_ms };
	int err = ioctl(s->dir, SG_IOC_FREEZE, &f) ? -errno : 0;

	snprintf(s->why, sizeof(s->why), "%.199s", err == -ENOTTY ?
		 "the module here is too old to make others stand still" : f.why);
	return err;
}

static int thaw_mounted(struct snapshot *s)
{
	return ioctl(s->dir, SG_IOC_THAW) ? -errno : 0;
}

/* The volume's memory, as a file of the mount. */
static int map_region(struct snapshot *s, const char *dir)
{
	int fd = openat(s->dir, ".stargate/region", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st))
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		tool_error("%s: its memory cannot be read: %s (needs .stargate/region in it, which is "
			   "there where the memory has struct pages)", dir, strerror(errno));
	} else {
		s->from = p;
		s->mapped = (u64)st.st_size;
	}
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED;
}

static int snapshot_mounted(struct snapshot *s, const char *dir)
{
	int status;

	s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0) {
		tool_error("%s: cannot be opened: %s", dir, strerror(errno));
		return 1;
	}
	status = map_region(s, dir);
	if (!status) {
		s->freeze = freeze_mounted;
		s->thaw = thaw_mounted;
		status = copy_to(s, s->c->argv[0]);
		munmap((void *)s->from, s->mapped);
	}
	close(s->dir);
	return status;
}

/* --- not mounted here ------------------------------------------------------------------------- */

static int freeze_joined(struct snapshot *s, unsigned int limit_ms)
{
	return sg_freeze(&s->c->m.vol, limit_ms, s->why);
}

static int thaw_joined(struct snapshot *s)
{
	return sg_thaw(&s->c->m.vol);
}

static int snapshot_joined(struct snapshot *s, bool alone)
{
	struct call *c = s->c;
	int status;

	if (alone ? member_open(&c->m, c->volume, true, false) : member_join(&c->m, c->volume))
		return 1;
	s->from = c->m.vol.base;
	s->mapped = c->m.target.size;
	if (!alone) {
		s->freeze = freeze_joined;
		s->thaw = thaw_joined;
	}
	status = copy_to(s, c->argv[0]);
	return member_close(&c->m) ? 1 : status;
}

int cmd_snapshot(struct call *c)
{
	struct snapshot s = { .c = c, .dir = -1 };
	char where[PATH_MAX];
	struct stat st;

	if (stat(c->volume, &st)) {
		tool_error("%s: cannot be opened: %s", c->volume, strerror(errno));
		return 1;
	}
	if (S_ISDIR(st.st_mode))
		return snapshot_mounted(&s, c->volume);
	if (!S_ISBLK(st.st_mode))
		return snapshot_joined(&s, false);
	if (mounted_at(st.st_rdev, where))
		return snapshot_mounted(&s, where);
	return snapshot_joined(&s, true);
}
