// SPDX-License-Identifier: Apache-2.0
/* Names: look up, create, link, remove, rename. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "fuse.h"

#define TURNS		100	/* look-ups of a name that gets another file each time */
#define VIRTUAL		".stargate"	/* in the root: control files of a mount by the module */

static int name_length(const char *name, u32 *len)
{
	size_t n = name ? strlen(name) : 0;

	if (!n)
		return -EINVAL;
	if (n > SG_NAME_MAX)
		return -ENAMETOOLONG;
	*len = (u32)n;
	return 0;
}

/* Checks a new name. Refuses a name that a mount by the module would hide. */
static int new_name(const struct sg_iref *dir, const char *name, u32 *len)
{
	int err = name_length(name, len);

	if (!err && is_fixed(dir, SG_FL_IMMUTABLE))
		err = -EPERM;
	if (!err && dir->ino == SG_INO_ROOT && !strcmp(name, VIRTUAL))
		err = -EPERM;
	return err;
}

int entry_of(const struct sg_iref *ref, struct fuse_entry_out *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	err = attr_of(ref, &out->attr);
	if (err)
		return err;
	out->nodeid = node_id(ref);
	out->generation = (u32)ref->generation;
	valid_for(&out->entry_valid, &out->entry_valid_nsec);
	valid_for(&out->attr_valid, &out->attr_valid_nsec);
	return 0;
}

static int reply_entry(const struct sg_iref *ref)
{
	struct fuse_entry_out out;
	int err = entry_of(ref, &out);

	if (err)
		return err;
	node_known(out.nodeid);
	return reply(&out, sizeof(out));
}

/*
 * Replies to a look-up of "." or "..", which file handles of NFS need: the node, or its parent
 * directory.
 */
static int reply_relative(const struct sg_iref *ref, bool up)
{
	struct sg_iref there = *ref;
	struct sg_attr attr;
	int err = sg_getattr(VOL, ref, &attr);

	if (!err && !attr.nlink)
		err = -ESTALE;
	if (!err && up && !S_ISDIR(attr.mode))
		err = -ENOTDIR;
	if (!err && up && ref->ino != SG_INO_ROOT)
		err = node_of(attr.special, &there);
	return err ? err : reply_entry(&there);
}

int op_lookup(void)
{
	const char *name = call_name(0, NULL);
	struct sg_iref dir, ref;
	unsigned int turn;
	u32 len;
	int err = name_length(name, &len);

	if (!err)
		err = node_ref(IN->nodeid, &dir);
	if (err)
		return err;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return reply_relative(&dir, name[1]);
	for (turn = 0; turn < TURNS; turn++) {
		u64 seq = sg_seq(VOL, &dir);

		err = sg_lookup(VOL, &dir, name, len, &ref, NULL);
		if (!err)
			err = node_keep(&ref);
		if (!err)
			err = reply_entry(&ref);
		/* -ESTALE: the file was removed after the look-up of its name */
		if (err != -ESTALE || sg_seq(VOL, &dir) == seq)
			break;
	}
	return err;
}

/* --- making --------------------------------------------------------------------------------- */

static u32 inherited_flags(const struct sg_iref *dir, u32 mode)
{
	u32 flags = node_flags(dir) & (SG_FL_NOATIME | SG_FL_NODUMP | SG_FL_SYNC | SG_FL_DIRSYNC);

	if (!S_ISDIR(mode))
		flags &= ~SG_FL_DIRSYNC;
	if (!S_ISDIR(mode) && !S_ISREG(mode))
		flags &= SG_FL_NOATIME | SG_FL_NODUMP;
	return flags;
}

/* Determines owner, mode and ACLs of a new inode before it is created. */
static int prepare(const struct sg_iref *dir, u32 mode, u32 umask, struct sg_new *new,
		   struct payload *p)
{
	u32 dir_mode = (u32)sg_load64(&node_record(dir)->mode);
	int err;

	*new = (struct sg_new){ .uid = IN->uid, .gid = IN->gid, .now = call_time() };
	*p = (struct payload){ 0 };
	if (dir_mode & S_ISGID) {
		new->gid = (u32)(sg_load64(&node_record(dir)->owner) >> 32);
		if (S_ISDIR(mode))
			mode |= S_ISGID;
	}
	err = S_ISLNK(mode) ? 0 : acl_inherit(dir, &mode, umask, p);
	new->mode = mode;
	new->flags = inherited_flags(dir, mode);
	new->xattrs = p->data;
	new->xattrs_len = p->len;
	return err;
}

/*
 * Checks whether the last server has created this file for the same call: then the file has the
 * time of the call. Otherwise returns -EEXIST.
 */
static int made_before(const struct sg_iref *dir, const char *name, u32 len, struct sg_iref *ref)
{
	struct sg_attr attr;

	if (!is_repeated() || sg_lookup(VOL, dir, name, len, ref, NULL) ||
	    sg_getattr(VOL, ref, &attr) || attr.btime != call_time() || attr.uid != IN->uid)
		return -EEXIST;
	return 0;
}

static int make(const struct sg_iref *dir, const char *name, u32 mode, u32 umask, u64 rdev,
		const char *target, struct sg_iref *ref)
{
	struct payload p;
	struct sg_new new;
	u32 len;
	int err = new_name(dir, name, &len);

	if (err)
		return err;
	err = prepare(dir, mode, umask, &new, &p);
	if (!err) {
		new.rdev = rdev;
		new.target = target;
		new.target_len = target ? (u32)strlen(target) : 0;
		err = sg_create(VOL, dir, name, len, &new, ref);
		if (err == -EEXIST)
			err = made_before(dir, name, len, ref);
	}
	free(p.data);
	return err;
}

static int make_and_reply(const char *name, u32 mode, u32 umask, u64 rdev, const char *target)
{
	struct sg_iref dir, ref;
	int err = node_ref(IN->nodeid, &dir);

	if (!err)
		err = make(&dir, name, mode, umask, rdev, target, &ref);
	return err ? err : reply_entry(&ref);
}

int op_mknod(void)
{
	const struct fuse_mknod_in *in = ARG(struct fuse_mknod_in);

	return in ? make_and_reply(call_name(sizeof(*in), NULL), in->mode, in->umask, in->rdev,
				   NULL) : -EINVAL;
}

int op_mkdir(void)
{
	const struct fuse_mkdir_in *in = ARG(struct fuse_mkdir_in);

	return in ? make_and_reply(call_name(sizeof(*in), NULL), S_IFDIR | (in->mode & 07777),
				   in->umask, 0, NULL) : -EINVAL;
}

int op_symlink(void)
{
	size_t at;
	const char *name = call_name(0, &at), *target = name ? call_name(at, NULL) : NULL;

	if (!target)
		return -EINVAL;
	if (strlen(target) > SG_SYMLINK_MAX)
		return -ENAMETOOLONG;
	return make_and_reply(name, S_IFLNK | 0777, 0, 0, target);
}

struct created {
	struct fuse_entry_out entry;
	struct fuse_open_out open;
};

static int reply_opened(struct created *out)
{
	out->open.open_flags = FOPEN_DIRECT_IO;
	node_known(out->entry.nodeid);
	return reply(out, sizeof(*out));
}

/*
 * Replies with the file that the last server has created and opened. -ENOENT: it did not do so.
 */
static int reply_created_before(void)
{
	struct created out = { 0 };
	struct sg_iref ref;
	u64 id = handle_of_last(&out.open.fh);
	int err = id ? node_ref(id, &ref) : -ENOENT;

	if (!err)
		err = entry_of(&ref, &out.entry);
	return err ? err : reply_opened(&out);
}

/* Replies with a new file, which is open. @made: the engine already counts the file as open. */
static int reply_created(const struct sg_iref *ref, bool made)
{
	struct created out = { 0 };
	int err = entry_of(ref, &out.entry);

	if (!err)
		err = node_open(node_id(ref), ref, true, made);
	if (err) {
		if (made)
			sg_close_inode(VOL, ref);	/* sg_settle() frees the file */
		return err;
	}
	/* O_CREAT with O_RDONLY counts as open for writing, too: it only delays a seal */
	err = handle_new(node_id(ref), HANDLE_WRITES, &out.open.fh);
	if (err) {
		node_close(node_id(ref));
		return err;
	}
	return reply_opened(&out);
}

int op_create(void)
{
	const struct fuse_create_in *in = ARG(struct fuse_create_in);
	struct sg_iref dir, ref;
	int err = reply_created_before();

	if (err != -ENOENT)
		return err;
	err = in ? node_ref(IN->nodeid, &dir) : -EINVAL;
	if (!err)
		err = make(&dir, call_name(sizeof(*in), NULL), S_IFREG | (in->mode & 07777),
			   in->umask, 0, NULL, &ref);
	/*
	 * Another system has just created the file. The kernel looks the file up, and checks
	 * permissions.
	 */
	if (err == -EEXIST && !(in->flags & O_EXCL))
		return -ESTALE;
	return err ? err : reply_created(&ref, false);
}

int op_tmpfile(void)
{
	const struct fuse_create_in *in = ARG(struct fuse_create_in);
	struct sg_iref dir, ref;
	struct payload p;
	struct sg_new new;
	int err = reply_created_before();

	if (err != -ENOENT)
		return err;
	err = in ? node_ref(IN->nodeid, &dir) : -EINVAL;
	if (!err && is_fixed(&dir, SG_FL_IMMUTABLE))
		err = -EPERM;
	if (err)
		return err;
	err = prepare(&dir, S_IFREG | (in->mode & 07777), in->umask, &new, &p);
	if (!err)
		err = sg_tmpfile(VOL, &new, &ref);
	free(p.data);
	return err ? err : reply_created(&ref, true);
}

static int linked_before(const struct sg_iref *ref, const struct sg_iref *dir, const char *name,
			 u32 len)
{
	struct sg_iref there;

	if (!is_repeated() || sg_lookup(VOL, dir, name, len, &there, NULL) ||
	    there.ino != ref->ino)
		return -EEXIST;
	return 0;
}

int op_link(void)
{
	const struct fuse_link_in *in = ARG(struct fuse_link_in);
	const char *name = in ? call_name(sizeof(*in), NULL) : NULL;
	struct sg_iref dir, ref;
	u32 len = 0;
	int err = in ? node_ref(IN->nodeid, &dir) : -EINVAL;

	if (!err)
		err = node_ref(in->oldnodeid, &ref);
	if (!err)
		err = new_name(&dir, name, &len);
	if (!err && is_fixed(&ref, SG_FL_IMMUTABLE | SG_FL_APPEND))
		err = -EPERM;
	if (!err)
		err = sg_link(VOL, &ref, &dir, name, len, call_time());
	if (err == -EEXIST)
		err = linked_before(&ref, &dir, name, len);
	return err ? err : reply_entry(&ref);
}

/* --- removing ------------------------------------------------------------------------------- */

/*
 * Finds and notes the file whose name is to be removed. So a repeated call removes the name of no
 * other file. Returns 0 and sets *gone if the last server has removed the name.
 */
static int victim(const struct sg_iref *dir, const char *name, u32 len, struct sg_iref *ref,
		  bool *gone)
{
	u64 *note = self->call->note;
	int err;

	*gone = false;
	if (is_fixed(dir, SG_FL_IMMUTABLE | SG_FL_APPEND))
		return -EPERM;
	err = sg_lookup(VOL, dir, name, len, ref, NULL);
	if (is_repeated() && note[0] &&
	    (err == -ENOENT || (!err && (ref->ino != note[0] || ref->generation != note[1])))) {
		*gone = true;
		return 0;
	}
	if (err)
		return err;
	note[1] = ref->generation;
	note[0] = ref->ino;
	return is_fixed(ref, SG_FL_IMMUTABLE | SG_FL_APPEND) ? -EPERM : 0;
}

static int remove_name(bool is_dir)
{
	const char *name = call_name(0, NULL);
	struct sg_iref dir, ref;
	bool gone = false;
	u32 len;
	int err = name_length(name, &len);

	if (!err)
		err = node_ref(IN->nodeid, &dir);
	if (!err)
		err = victim(&dir, name, len, &ref, &gone);
	if (!err && !gone)
		err = is_dir ? sg_rmdir_seen(VOL, &dir, name, len, &ref, call_time()) :
		      sg_unlink_seen(VOL, &dir, name, len, &ref, false, call_time());
	return err ? err : reply(NULL, 0);
}

int op_unlink(void)
{
	return remove_name(false);
}

int op_rmdir(void)
{
	return remove_name(true);
}

/* --- renaming ------------------------------------------------------------------------------- */

static int may_lose(const struct sg_iref *dir, const char *name, u32 len, struct sg_iref *ref)
{
	int err;

	if (is_fixed(dir, SG_FL_IMMUTABLE | SG_FL_APPEND))
		return -EPERM;
	err = sg_lookup(VOL, dir, name, len, ref, NULL);
	if (!err && is_fixed(ref, SG_FL_IMMUTABLE | SG_FL_APPEND))
		err = -EPERM;
	return err;
}

/*
 * Reports whether the last server has done this rename: the new name leads to the file that had the
 * old name.
 */
static bool renamed_before(const struct sg_iref *ndir, const char *nname, u32 nlen)
{
	const u64 *note = self->call->note;
	struct sg_iref there;

	return is_repeated() && note[0] && !sg_lookup(VOL, ndir, nname, nlen, &there, NULL) &&
	       there.ino == note[0] && there.generation == note[1];
}

static int rename_them(const struct sg_iref *odir, const char *oname, const struct sg_iref *ndir,
		       const char *nname, unsigned int flags)
{
	struct sg_new whiteout = {
		.mode = S_IFCHR, .uid = IN->uid, .gid = IN->gid, .now = call_time(),
	};
	struct sg_iref what, replaced;
	u32 olen, nlen;
	int err = name_length(oname, &olen);

	if (!err)
		err = new_name(ndir, nname, &nlen);
	if (err)
		return err;
	if (renamed_before(ndir, nname, nlen))
		return 0;
	err = may_lose(odir, oname, olen, &what);
	if (err)
		return err;
	err = may_lose(ndir, nname, nlen, &replaced);
	if (err && err != -ENOENT)
		return err;
	self->call->note[1] = what.generation;
	self->call->note[0] = what.ino;
	return sg_rename(VOL, odir, oname, olen, ndir, nname, nlen, flags,
			 flags & SG_RENAME_WHITEOUT ? &whiteout : NULL, call_time());
}

static int rename_call(u64 newdir, size_t at, unsigned int flags)
{
	const char *oname = call_name(at, &at), *nname = oname ? call_name(at, NULL) : NULL;
	struct sg_iref odir, ndir;
	int err = nname ? node_ref(IN->nodeid, &odir) : -EINVAL;

	if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
		return -EINVAL;
	if (!err)
		err = node_ref(newdir, &ndir);
	if (!err)
		err = rename_them(&odir, oname, &ndir, nname, flags);
	return err ? err : reply(NULL, 0);
}

int op_rename(void)
{
	const struct fuse_rename_in *in = ARG(struct fuse_rename_in);

	return in ? rename_call(in->newdir, sizeof(*in), 0) : -EINVAL;
}

int op_rename2(void)
{
	const struct fuse_rename2_in *in = ARG(struct fuse_rename2_in);

	return in ? rename_call(in->newdir, sizeof(*in), in->flags) : -EINVAL;
}

/* --- symbolic links ------------------------------------------------------------------------- */

int op_readlink(void)
{
	char target[SG_SYMLINK_MAX + 1];
	struct sg_iref ref;
	int n = node_ref(IN->nodeid, &ref);

	if (!n)
		n = sg_readlink(VOL, &ref, target, sizeof(target));
	if (n < 0)
		return n;
	if (n > SG_SYMLINK_MAX)
		return -EUCLEAN;
	touch_atime(&ref);
	return reply_large(target, (size_t)n);
}
