// SPDX-License-Identifier: Apache-2.0
/*
 * Makes, checks and changes the file system in a volume of a zone. It runs the programs that do
 * this on any device, so options, checks and messages are those of these programs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "uapi/ioctl.h"
#include "run.h"
#include "volume.h"

#define WORDS_MAX	64

/* --- looking ------------------------------------------------------------------------------- */

bool engine_look(const char *path, struct sg_probe *out, bool say)
{
	bool quiet = tool_quiet;
	struct target t;

	if (!say && access(path, R_OK))
		return false;
	if (target_open(&t, path, TARGET_READ))
		return false;
	tool_quiet = true;
	sg_probe(t.base, t.size, out);
	tool_quiet = quiet;
	target_close(&t);
	return true;
}

/* Without a superblock, the users of a volume are unknown. */
static int unused(const struct target *t, struct volume *v, bool force)
{
	struct sg_probe probe;
	char why[200] = "";
	int err;

	sg_probe(t->base, t->size, &probe);
	if (!probe.stargate)
		return 0;
	if (!probe.valid && !force) {
		tool_error("%s: is damaged, so its users are unknown; if it is unused, give --force",
			   v->path);
		return -EUCLEAN;
	}
	err = probe.valid ? member_watch(t, &probe.sb, MEMBER_WAIT_MS, why) : 0;
	if (err)
		tool_error("%s: is %s", v->path, why[0] ? why : "unreadable");
	if (err == -EBUSY)
		refusal_systems(&v->why, t, &probe.sb);
	return err;
}

int engine_unused(struct volume *v, bool force)
{
	struct target t;
	int err = target_open(&t, v->path, TARGET_READ);

	if (err)
		return err;
	err = unused(&t, v, force);
	target_close(&t);
	return err;
}

bool engine_mounted(const char *path, char where[PATH_MAX])
{
	struct stat st;

	return !stat(path, &st) && S_ISBLK(st.st_mode) && mounted_at(st.st_rdev, where);
}

/* --- doing --------------------------------------------------------------------------------- */

/*
 * Runs PROGRAM FIRST... OPTIONS... PATH and returns the exit status. It suppresses the output of
 * stargatectl itself, because the user's command prints the volume afterwards.
 */
static int call(const char *program, const char *const *first, char *const *options, int n,
		const char *path)
{
	const char *words[WORDS_MAX + 1] = { program };
	char file[PATH_MAX];
	int i = 1;

	if (!program_beside(program, file)) {
		tool_error("%s is missing: install it beside stargatectl", program);
		return 1;
	}
	while (*first && i < WORDS_MAX)
		words[i++] = *first++;
	if (n > WORDS_MAX - i - 1) {
		tool_error("%d options are too many for %s", n, program);
		return 1;
	}
	while (n-- > 0)
		words[i++] = *options++;
	words[i++] = path;
	words[i] = NULL;
	return program_show(file, words, !strcmp(program, "stargatectl"));
}

int engine_may_reach(const char *lv, const struct sg_super *sb, u64 memory)
{
	u64 most = sb->chunk_cap * SG_CHUNK;
	char a[32], b[32];

	if (memory <= most)
		return 0;
	tool_error("%s: can grow only to %s (--max-size of mkfs.stargatefs), but its reserve reaches to %s: reduce --reserve, or raise --max-size",
		   lv, show_size(most, a), show_size(memory, b));
	return -EINVAL;
}

int engine_make(const struct volume *v, u64 size, char *const *options, int n, bool dry)
{
	char bytes[32], most[32];
	/* -f ignores the content: LVM has reported the space as free. */
	const char *const first[] = { "-q", "-L", v->name, "-f", "--force-live", "--size", bytes,
				      "--max-size", most, dry ? "-n" : NULL, NULL };
	struct sg_probe made;
	int status;

	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)size);
	/* Without the option: the default, but at most the volume's memory. */
	snprintf(most, sizeof(most), "%llu", (unsigned long long)
		 SG_MIN(SG_MAX(size * SG_MAX_FACTOR, v->piece->size), SG_VOLUME_MAX));
	status = call("mkfs.stargatefs", first, options, n, v->path);
	if (status)
		return dry || status == 2 ? -EINVAL : -EIO;
	if (dry)
		return 0;
	if (engine_look(v->path, &made, true) && made.valid && made.sb.phys == v->piece->base)
		return engine_may_reach(v->lv, &made.sb, v->piece->size);
	tool_error("%s: mkfs.stargatefs has made no file system with these options; omit options "
		   "that only print something", v->lv);
	return -EINVAL;
}

int engine_check(const struct volume *v, char *const *options, int n)
{
	const char *const first[] = { n ? NULL : "-n", NULL };

	return call("fsck.stargatefs", first, options, n, v->path);
}

/* Checks before any change whether the tool would need exclusive access. */
static int had_alone(const struct volume *v)
{
	int fd = open(v->path, O_RDONLY | O_EXCL | O_CLOEXEC);

	if (fd < 0 && errno == EBUSY) {
		tool_error("%s: is in use here, but none of its mounts is visible: files of it are open after umount -l, or it is mounted in another "
			   "mount namespace; end that, or mount it here again", v->lv);
		return -EBUSY;
	}
	if (fd >= 0)
		close(fd);
	return 0;
}

int engine_may_grow(const struct volume *v, u64 size)
{
	struct sg_ioc_grow g = { .size = size, .flags = SG_GROW_ASK };
	char where[PATH_MAX];
	int fd, err = 0;

	if (!engine_mounted(v->path, where))
		return had_alone(v);
	if (mounted_read_only(where)) {
		tool_error("%s: is mounted read-only at %s, and such a mount does not grow it: "
			   "unmount it first, or make a larger clone of it", v->lv, where);
		return -EBUSY;
	}
	fd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && ioctl(fd, SG_IOC_GROW, &g))
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (err != -EBUSY)
		/* for example a release without this query: the growth itself will report it */
		return 0;
	g.why[sizeof(g.why) - 1] = 0;
	tool_error("%s: %s", v->lv, g.why);
	return err;
}

/*
 * Without a size, the tool would grow the volume only as far as all systems have memory for it, and
 * report success.
 */
int engine_grow(const struct volume *v, u64 size)
{
	char bytes[32];
	const char *const first[] = { "grow", "--size", bytes, NULL };

	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)size);
	switch (call("stargatectl", first, NULL, 0, v->path)) {
	case 0:
		return 0;
	case STATUS_IN_USE:
		return -EBUSY;
	case STATUS_BUSY:
		return -EAGAIN;
	}
	return -EIO;
}

int engine_relocate(const struct volume *v)
{
	const char *const first[] = { "relocate", NULL };

	return call("stargatectl", first, NULL, 0, v->path) ? -EIO : 0;
}
