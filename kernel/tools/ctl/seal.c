// SPDX-License-Identifier: Apache-2.0
/*
 * seal, unseal, verify: makes contents and size of files final, ends that, and compares the
 * contents with the digest that was kept with the seal (docs/sealed-files.md). In a mount, the
 * module or stargatefs-fuse does it; otherwise this tool, on a volume that nobody uses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "ctl.h"
#include "uapi/ioctl.h"

#define BUSY_MS		2000	/* a close may reach the volume late */
#define BUSY_STEP_MS	50

/**
 * struct sealed - the file of one path
 * @dir: of the mount, or -1: the volume is not mounted. @fd: the file, in a mount.
 * @bad: where a read failed.
 */
struct sealed {
	struct call *c;
	const char *path;
	int dir, fd;
	struct sg_iref ref;
	u64 size, bad;
};

/* --- one request ----------------------------------------------------------------------------- */

static int request_once(const struct sealed *f, struct sg_ioc_seal *s)
{
	struct sg_vol *vol = call_vol(f->c);
	u64 root[SG_DIGEST_SIZE / 8];
	int err;

	if (f->dir >= 0)
		return ioctl(f->fd, SG_IOC_SEAL, s) ? -errno : 0;
	switch (s->what) {
	case SG_SEAL_SET:
		return sg_seal(vol, &f->ref, (s64)sg_now(), s->why);
	case SG_SEAL_CLEAR:
		return sg_unseal(vol, &f->ref, (s64)sg_now(), s->why);
	case SG_SEAL_ROOT:
		memcpy(root, s->root, sizeof(root));
		return sg_seal_set_root(vol, &f->ref, root);
	}
	err = sg_seal_root(vol, &f->ref, root);
	s->state = (sg_is_sealed(vol, &f->ref) ? SG_SEAL_IS_SET : 0) | (err ? 0 : SG_SEAL_HAS_ROOT);
	memcpy(s->root, root, sizeof(root));
	return err == -ENODATA ? 0 : err;
}

/* Makes the request, and reports its failure. */
static int request(const struct sealed *f, struct sg_ioc_seal *s, u32 what)
{
	unsigned int ms;
	int err;

	for (ms = 0;; ms += BUSY_STEP_MS) {
		s->what = what;
		s->why[0] = 0;
		err = request_once(f, s);
		if (err != -EBUSY || ms >= BUSY_MS)
			break;
		sg_sleep_us(BUSY_STEP_MS * 1000);
	}
	s->why[sizeof(s->why) - 1] = 0;
	if (err == -ENOTTY)
		tool_error("%s: is not a regular file of a mounted StargateFS that supports sealed files",
			   f->path);
	else if (err && s->why[0])
		tool_error("%s: %s", f->path, s->why);
	else if (err == -EINVAL)
		tool_error("%s: is not a regular file", f->path);
	else if (err == -EEXIST)
		tool_error("%s: the seal has another digest: unseal the file first", f->path);
	else if (err)
		path_error(f->path, err);
	return err;
}

/*
 * A sealed file has no holes, so it is not larger than its volume. Without this check, a hostile
 * member could make the tool read zeroes for days.
 */
static int check_size(const struct sealed *f)
{
	struct statvfs st;
	u64 most = 0;

	if (f->dir < 0)
		most = sg_size(call_vol(f->c));
	else if (!fstatvfs(f->fd, &st))
		most = (u64)st.f_blocks * st.f_frsize;
	if (f->size <= most)
		return 0;
	tool_error("%s: is larger than its volume: unmount it everywhere and run fsck.stargatefs",
		   f->path);
	return -EUCLEAN;
}

/*
 * Reads the state of the seal, and then the size, which is final if the file is sealed: a writer
 * may have changed it until then.
 */
static int ask(struct sealed *f, struct sg_ioc_seal *s)
{
	struct stat st;
	int err = request(f, s, SG_SEAL_ASK);

	if (!err && f->dir >= 0) {
		if (fstat(f->fd, &st))
			return path_error(f->path, -errno);
		f->size = (u64)st.st_size;
	}
	return err ? err : check_size(f);
}

/* --- digests --------------------------------------------------------------------------------- */

static s64 read_file(void *from, u64 pos, void *buf, u64 len)
{
	struct sealed *f = from;
	u64 done = 0;
	ssize_t n;

	f->bad = pos;
	if (f->dir < 0)
		return sg_read(call_vol(f->c), &f->ref, pos, buf, len);
	while (done < len) {
		n = pread(f->fd, (u8 *)buf + done, len - done, (off_t)(pos + done));
		if (n <= 0)
			return n ? -errno : (s64)done;
		done += (u64)n;
		f->bad = pos + done;
	}
	return (s64)done;
}

static int compute(struct sealed *f, u8 root[32])
{
	int err = digest_root(read_file, f, f->size, root);

	if (err)
		tool_error("%s: cannot be read near byte %llu: %s", f->path,
			   (unsigned long long)f->bad, strerror(-err));
	return err;
}

static void show_digest(const struct sealed *f, const u8 root[32], const bool *ok)
{
	struct json *j = &f->c->j;
	u8 digest[32];
	char text[80] = "sha256:";
	unsigned int i;

	digest_of(root, f->size, digest);
	for (i = 0; i < 32; i++)
		snprintf(text + 7 + 2 * i, 3, "%02x", digest[i]);
	if (f->c->json) {
		json_row(j, NULL);
		json_str(j, "path", f->path);
		json_str(j, "digest", text);
		if (ok)
			json_bool(j, "ok", *ok);
		json_close(j, '}');
		return;
	}
	printf("%s  ", text);
	print_text(f->path);
	putchar('\n');
}

/* --- the commands, for one file -------------------------------------------------------------- */

/* Seals the file first, so that nothing changes while its digest is computed. */
static int seal_one(struct sealed *f)
{
	struct sg_ioc_seal s = { 0 };
	int err = request(f, &s, SG_SEAL_SET);

	if (err || !f->c->digest)
		return err;
	err = ask(f, &s);
	if (!err && !(s.state & SG_SEAL_HAS_ROOT)) {
		err = compute(f, s.root);
		err = err ? err : request(f, &s, SG_SEAL_ROOT);
	}
	if (!err)
		show_digest(f, s.root, NULL);
	return err;
}

static int unseal_one(struct sealed *f)
{
	struct sg_ioc_seal s = { 0 };

	return request(f, &s, SG_SEAL_CLEAR);
}

static int verify_one(struct sealed *f)
{
	struct sg_ioc_seal s = { 0 };
	u8 root[32];
	bool ok;
	int err = ask(f, &s);

	if (err)
		return err;
	if (!(s.state & SG_SEAL_HAS_ROOT)) {
		tool_error(s.state & SG_SEAL_IS_SET ?
			   "%s: was sealed without a digest: stargatectl seal --digest adds one" :
			   "%s: is not sealed", f->path);
		return -ENODATA;
	}
	err = compute(f, root);
	if (err)
		return err;
	ok = !memcmp(root, s.root, sizeof(root));
	if (ok || f->c->json)
		show_digest(f, s.root, &ok);
	if (!ok)
		tool_error("%s: the contents differ from the digest of the seal", f->path);
	return ok ? 0 : -EILSEQ;
}

/* --- all files ------------------------------------------------------------------------------- */

static int open_mounted(struct sealed *f)
{
	const char *path = f->path;

	while (*path == '/')
		path++;
	f->fd = openat(f->dir, *path ? path : ".", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return f->fd < 0 ? outside_error(f->path) : 0;
}

static int open_inside(struct sealed *f, bool change)
{
	struct sg_attr attr;
	int err = path_find(call_vol(f->c), f->path, true, &f->ref, &attr);

	f->size = attr.size;
	return err || !change ? err : attr_allows(f->path, &attr);
}

static int each(struct call *c, int dir, int (*run)(struct sealed *f))
{
	int err = 0, e, i;

	for (i = 0; i < c->argc; i++) {
		struct sealed f = { .c = c, .path = c->argv[i], .dir = dir, .fd = -1 };

		e = dir >= 0 ? open_mounted(&f) : open_inside(&f, run != verify_one);
		e = e ? e : run(&f);
		if (f.fd >= 0)
			close(f.fd);
		err = err ? err : e;
	}
	return err;
}

static int each_mounted(struct call *c, const char *where, int (*run)(struct sealed *f))
{
	int dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	if (dir < 0)
		return outside_error(where);
	err = each(c, dir, run);
	close(dir);
	return err;
}

static int seal_files(struct call *c, int (*run)(struct sealed *f))
{
	char where[PATH_MAX];
	struct stat st;
	int err, e;

	if (stat(c->volume, &st))
		return outside_error(c->volume);
	if (S_ISDIR(st.st_mode))
		return each_mounted(c, c->volume, run);
	if (S_ISBLK(st.st_mode) && mounted_at(st.st_rdev, where))
		return each_mounted(c, where, run);
	err = member_open(&c->m, c->volume, run != verify_one, c->force);
	if (err)
		return err;
	err = each(c, -1, run);
	e = member_close(&c->m);
	return err ? err : e;
}

static int seal_run(struct call *c, int (*run)(struct sealed *f))
{
	int err;

	if (c->json) {
		json_begin(&c->j, stdout, false);
		json_array(&c->j, "files");
	}
	err = seal_files(c, run);
	if (c->json) {
		json_close(&c->j, ']');
		json_end(&c->j);
	}
	return tool_end(err ? 1 : 0);
}

int cmd_seal(struct call *c)
{
	return seal_run(c, seal_one);
}

int cmd_unseal(struct call *c)
{
	return seal_run(c, unseal_one);
}

int cmd_verify(struct call *c)
{
	return seal_run(c, verify_one);
}
