// SPDX-License-Identifier: Apache-2.0
/*
 * Copies a volume's state at one moment, while other systems use it (docs/snapshots.md). The first
 * pass copies the complete volume while the systems work. The second pass copies the pages that
 * have changed since, and its duration predicts that of the third pass. All systems freeze for the
 * third pass. If the volume is mounted on this host, the module makes the systems freeze. On a file
 * or device-dax node this tool joins as one of the systems. The tool opens a block device without a
 * mount here exclusively.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "copy.h"
#include "uapi/ioctl.h"

#define STALL_MS	2000
#define TRIES		3
#define AGAIN		1	/* some system did not freeze in time */

/* --- passes --------------------------------------------------------------------------------- */

static int write_all(struct copy *s, const u8 *from, size_t len, u64 at)
{
	s->wrote += len;
	if (s->to)
		return 0;
	while (len) {
		ssize_t n = pwrite(s->fd, from, len, (off_t)at);

		if (n <= 0)
			return n ? -errno : -EIO;
		from += n;
		at += (u64)n;
		len -= (size_t)n;
	}
	return 0;
}

static size_t same(const u8 *a, const u8 *b, size_t from, size_t len)
{
	while (from < len && !memcmp(a + from, b + from, SG_PAGE))
		from += SG_PAGE;
	return from;
}

static size_t different(const u8 *a, const u8 *b, size_t from, size_t len)
{
	while (from < len && memcmp(a + from, b + from, SG_PAGE))
		from += SG_PAGE;
	return from;
}

/*
 * Does not write bytes that are equal on both sides, such as zeroes. Reads and writes of a device
 * bypass the page cache, and need aligned memory.
 */
static int copy_some(struct copy *s, u64 at, size_t len)
{
	static u8 bounce[SG_CHUNK] __attribute__((aligned(SG_PAGE)));
	u8 *had = s->to ? s->to + at : bounce;
	const u8 *is = s->from + at;
	size_t i, end;
	int err = 0;

	if (!s->to && pread(s->fd, had, len, (off_t)at) != (ssize_t)len)
		return -EIO;
	for (i = same(is, had, 0, len); i < len && !err; i = same(is, had, end, len)) {
		end = different(is, had, i, len);
		memcpy(had + i, is + i, end - i);
		err = write_all(s, had + i, end - i, at + i);
	}
	return err;
}

/*
 * Reports whether to copy a page. Free pages are not copied, because an allocation zeroes them
 * first. In a locked chunk, however, a free page may hold the log of a write (docs/atomic-data.md).
 * Bad pages cannot be read, so the tool does not copy them. It copies their list, so a read of such
 * a page fails in the copy, too.
 */
static bool in_use(const struct copy *s, u64 at)
{
	const struct sg_chunk *chunk = (const void *)(s->from + s->sb.chunk_off);
	u64 page = at >> SG_PAGE_SHIFT & (SG_CHUNK_PAGES - 1);

	chunk += at >> SG_CHUNK_SHIFT;
	if (at >= s->sb.data_off && at + SG_PAGE != s->size && !sg_load64(&chunk->lock.word) &&
	    !(sg_load64(&chunk->map[page / 64]) >> page % 64 & 1))
		return false;
	return !sg_bad_listed(s->from, at);
}

/* Returns the end of the run of pages that have the same state as @at, within its chunk. */
static u64 run_end(const struct copy *s, u64 at, bool used)
{
	u64 end = at;

	do
		end += SG_PAGE;
	while (end & (SG_CHUNK - 1) && in_use(s, end) == used);
	return end;
}

static int pass(struct copy *s)
{
	u64 start = sg_ticks(), at, end;
	int err = 0;

	s->wrote = 0;
	for (at = 0; at < s->size && !err; at = end) {
		bool used = in_use(s, at);

		end = run_end(s, at, used);
		if (used)
			err = copy_some(s, at, end - at);
	}
	s->took = sg_ticks() - start;
	return err;
}

static int copy_error(const struct copy *s, int err)
{
	tool_error("%s: cannot be written: %s", s->name, strerror(-err));
	return err;
}

static int has_grown(const struct copy *s)
{
	tool_error("%s: the volume has grown meanwhile: try again", s->path);
	return -EAGAIN;
}

/* --- one moment ----------------------------------------------------------------------------- */

static int too_slow(const struct copy *s)
{
	tool_error("%s: the copy would pause all systems for about %llu ms (limit %u ms): raise "
		   "--stall, or reduce the load", s->path, (unsigned long long)(s->took / 1000000) + 1,
		   s->stall_ms);
	return -EAGAIN;
}

/* The volume may have grown by calls that began before the freeze. */
static bool is_larger(const struct copy *s)
{
	return sg_load64((const u64 *)(s->from + SG_HOT(size))) > s->size;
}

static int at_one_moment(struct copy *s)
{
	u64 start = sg_ticks();
	int err = s->freeze(s, s->stall_ms), void_err;
	bool grown;

	if (err) {
		tool_error("%s: %s", s->path, s->why[0] ? s->why : strerror(-err));
		return err == -EBUSY ? -EAGAIN : err; /* a second request may succeed */
	}
	err = pass(s);
	grown = is_larger(s);
	void_err = s->thaw(s);
	s->stalled = sg_ticks() - start;
	if (err)
		return copy_error(s, err);
	if (grown)
		return has_grown(s);
	if (void_err == -EAGAIN)
		return AGAIN;
	if (void_err)
		tool_error("%s: %s", s->path, strerror(-void_err));
	return void_err;
}

/* Makes passes without a freeze; the last of them predicts the duration of the next one. */
static int approach(struct copy *s)
{
	unsigned int i;
	int err;

	for (i = 0; i < TRIES; i++) {
		err = pass(s);
		if (err || s->took <= s->stall_ms * 1000000ULL / 2)
			return err;
	}
	return 0;
}

static int copy_in_use(struct copy *s)
{
	int err;

	for (s->tries = 1; s->tries <= TRIES; s->tries++) {
		err = approach(s);
		if (err)
			return copy_error(s, err);
		if (s->took > s->stall_ms * 1000000ULL / 2)
			return too_slow(s);
		err = at_one_moment(s);
		if (err != AGAIN)
			return err;
	}
	tool_error("%s: in each of %d attempts a system joined, left, or did not pause for long enough: "
		   "try again", s->path, TRIES);
	return -EAGAIN;
}

/* --- no system uses it ---------------------------------------------------------------------- */

static int read_now(struct copy *s, u64 at, void *to, size_t len)
{
	if (s->how == COPY_LEFT)
		return target_read_now(&s->member.target, at, to, len);
	memcpy(to, s->from + at, len);
	return 0;
}

static int read_table(struct copy *s, struct sg_slot *slots, u64 *incarnation)
{
	int err;

	sg_full_fence();
	err = read_now(s, s->sb.slot_off, slots, sizeof(s->slots)) ?:
	      read_now(s, SG_HOT(incarnation), incarnation, sizeof(*incarnation));
	if (err)
		tool_error("%s: cannot be read: %s", s->path, strerror(-err));
	return err;
}

/*
 * Returns -EAGAIN if a system has begun to use the volume meanwhile. A joining system first takes
 * an incarnation. A live system that was silent changes the heartbeat in its slot.
 */
static int still_left(struct copy *s)
{
	static struct sg_slot now[SG_SLOTS];
	u64 incarnation;
	int err = read_table(s, now, &incarnation);

	if (err || (incarnation == s->incarnation && !memcmp(now, s->slots, sizeof(now))))
		return err;
	tool_error("%s: a system began to use it during the copy: try again", s->path);
	return -EAGAIN;
}

/* Finds the slots of systems that were fenced for silence, and whose processes may still store. */
static int lapsing(struct copy *s, u64 *bits)
{
	static struct sg_slot slots[SG_SLOTS];
	unsigned int i;
	u64 incarnation;
	int err = read_table(s, slots, &incarnation) ?:
		  read_now(s, SG_HOT(lapsed), bits, sizeof(*bits));

	for (i = 0; i < SG_SLOTS && !err; i++)
		if (SG_SLOT_STATE(slots[i].state) == SG_SLOT_LIVE)
			*bits &= ~(1ULL << i);
	return err;
}

#define LAPSE_LOOK_MS	100

/*
 * Waits for the end of a lapse (docs/protocol.md, section 3). Without a freeze no other system
 * waits for it, and no live system may exist that ends the lapse. So the tool measures the time
 * itself.
 */
static int wait_for_lapse(struct copy *s)
{
	unsigned int ms;
	u64 bits;
	int err = lapsing(s, &bits);

	if (!err && bits)
		tool_warn("%s: a system that was fenced for its silence may still store: waiting for up to %u s",
			  s->path, SG_LAPSE_MS / 1000);
	for (ms = 0; !err && bits && ms < SG_LAPSE_MS; ms += LAPSE_LOOK_MS) {
		usleep(LAPSE_LOOK_MS * 1000);
		err = lapsing(s, &bits);
	}
	return err;
}

int copy_refuse_own(const struct copy *s, const char *name)
{
	size_t n = strlen(name) - strlen(last_name(name));
	char *dir = n ? strndup(name, n) : strdup(".");
	struct stat of, to;
	bool own;

	own = s->how == COPY_MOUNTED && dir && !fstat(s->dir, &of) && !stat(dir, &to) &&
	      of.st_dev == to.st_dev;
	free(dir);
	if (!own)
		return 0;
	tool_error("%s: lies on the volume that is to be copied: name a file elsewhere", name);
	return -EINVAL;
}

int copy_run(struct copy *s)
{
	int err = s->freeze ? 0 : wait_for_lapse(s);

	if (err)
		return err;
	err = pass(s);
	if (err)
		return copy_error(s, err);
	if (s->freeze)
		return copy_in_use(s);
	return s->how == COPY_JOINED ? 0 : still_left(s);
}

int copy_size(const struct copy *s, u64 *size)
{
	u64 most = s->sb.chunk_cap * SG_CHUNK;
	char a[32], b[32];

	if (!*size)
		*size = s->size;
	if (*size < s->size) {
		tool_error("%s: has %s, and a copy cannot be smaller: the least size is %llu bytes, not %s",
			   s->path, show_size(s->size, a), (unsigned long long)s->size,
			   show_size(*size, b));
		return -EINVAL;
	}
	if (*size <= most)
		return 0;
	tool_error("%s: the volume and its copies can grow to %s at most (--max-size of mkfs.stargatefs); that is the largest possible size (%llu bytes)",
		   s->path,
		   show_size(most, a), (unsigned long long)most);
	return -EINVAL;
}

/* --- opening: mounted here -------------------------------------------------------------------- */

static int freeze_mounted(struct copy *s, unsigned int limit_ms)
{
	struct sg_ioc_freeze f = { .limit_ms = limit_ms };
	int err = ioctl(s->dir, SG_IOC_FREEZE, &f) ? -errno : 0;

	snprintf(s->why, sizeof(s->why), "%.199s", err == -ENOTTY ?
		 "the module here is too old to pause other systems" : f.why);
	return err;
}

static int thaw_mounted(struct copy *s)
{
	return ioctl(s->dir, SG_IOC_THAW) ? -errno : 0;
}

/* Maps the volume's memory through .stargate/region in the mount. */
static int map_region(struct copy *s, const char *dir)
{
	int fd = openat(s->dir, ".stargate/region", O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st))
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		err = -errno;
		tool_error("%s: its memory cannot be read: %s (needs .stargate/region in it, which is "
			   "there where the memory has struct pages)", dir, strerror(-err));
	} else {
		s->from = p;
		s->mapped = (u64)st.st_size;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* Reads volume.json. Older modules, which cannot mount with `nojoin`, do not write this key. */
static bool is_member(int dir)
{
	int fd = openat(dir, ".stargate/volume.json", O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t len = 0;

	if (fd >= 0) {
		len = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[len > 0 ? len : 0] = 0;
	return !strstr(text, "\"joined\": false");
}

/*
 * Checks that no system uses the volume, because a mount with `nojoin` cannot make other systems
 * freeze.
 */
static int nobody_stores(struct copy *s)
{
	unsigned int i;
	int err = read_table(s, s->slots, &s->incarnation);

	for (i = 0; i < SG_SLOTS && !err; i++) {
		if (SG_SLOT_STATE(s->slots[i].state) == SG_SLOT_FREE)
			continue;
		tool_error("%s: is in use or needs recovery, but its mount here does not join (nojoin): copy it on a system that uses it, or unmount it",
			   s->path);
		err = -EBUSY;
	}
	return err;
}

static int open_mounted(struct copy *s, const char *dir)
{
	int err;

	s->how = COPY_MOUNTED;
	s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0) {
		err = -errno;
		tool_error("%s: cannot be opened: %s", dir, strerror(-err));
		return err;
	}
	if (is_member(s->dir)) {
		s->freeze = freeze_mounted;
		s->thaw = thaw_mounted;
	}
	err = map_region(s, dir);
	if (err)
		close(s->dir);
	return err;
}

/* --- opening: not mounted here ---------------------------------------------------------------- */

static int freeze_joined(struct copy *s, unsigned int limit_ms)
{
	return sg_freeze(&s->member.vol, limit_ms, s->why);
}

static int thaw_joined(struct copy *s)
{
	return sg_thaw(&s->member.vol);
}

static int open_joined(struct copy *s, bool alone)
{
	struct member *m = &s->member;
	int err = alone ? member_open(m, s->path, true, false) : member_join(m, s->path);

	if (err)
		return err;
	s->how = COPY_JOINED;
	s->from = m->vol.base;
	s->mapped = m->target.size;
	if (!alone) {
		s->freeze = freeze_joined;
		s->thaw = thaw_joined;
	}
	return 0;
}

/* Returns -EBUSY, without a message, if a live system uses the volume. */
static int open_left(struct copy *s)
{
	struct member *m = &s->member;
	int err = member_look_on(&m->target, &m->vol, s->path);

	if (err)
		return err;
	s->how = COPY_LEFT;
	s->from = m->target.base;
	s->mapped = m->target.size;
	s->sb = m->vol.sb;
	err = member_watch(&m->target, &s->sb, MEMBER_WAIT_MS, s->why);
	if (err && err != -EBUSY)
		tool_error("%s: cannot be read: %s", s->path, strerror(-err));
	err = err ?: read_table(s, s->slots, &s->incarnation);
	if (err)
		target_close(&m->target);
	return err;
}

static int open_unmounted(struct copy *s, bool block, bool left)
{
	int err = left ? open_left(s) : -EBUSY;

	return err == -EBUSY ? open_joined(s, block) : err;
}

static int find_super(struct copy *s)
{
	struct sg_probe found;

	sg_search(s->from, s->mapped, &found);
	s->sb = found.sb;
	s->size = found.sb.size;
	if (found.valid)
		return 0;
	tool_error("%s: its superblock is damaged: run fsck.stargatefs", s->path);
	return -EUCLEAN;
}

int copy_open(struct copy *s, const char *path, u64 stall_ms, bool left)
{
	char where[PATH_MAX];
	struct stat st;
	int err;

	memset(s, 0, sizeof(*s));
	s->path = path;
	s->stall_ms = stall_ms ? (unsigned int)stall_ms : STALL_MS;
	if (stat(path, &st)) {
		err = -errno;
		tool_error("%s: cannot be opened: %s", path, strerror(-err));
		return err;
	}
	if (S_ISDIR(st.st_mode))
		err = open_mounted(s, path);
	else if (S_ISBLK(st.st_mode) && mounted_at(st.st_rdev, where))
		err = open_mounted(s, where);
	else
		err = open_unmounted(s, S_ISBLK(st.st_mode), left);
	if (err)
		return err;
	err = find_super(s);
	if (!err && s->how == COPY_MOUNTED && !s->freeze)
		err = nobody_stores(s);
	if (err)
		copy_close(s);
	return err;
}

int copy_close(struct copy *s)
{
	if (s->how == COPY_JOINED)
		return member_close(&s->member);
	if (s->how == COPY_LEFT)
		return target_close(&s->member.target);
	munmap((void *)s->from, s->mapped);
	close(s->dir);
	return 0;
}
