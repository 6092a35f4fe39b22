// SPDX-License-Identifier: Apache-2.0
/* Attributes: reading them, changing them, and the set-ID bits that a change clears. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include "fuse.h"
#include "uapi/ioctl.h"

#define NS		1000000000LL
#define DAY_NS		(24 * 60 * 60 * NS)

/* --- to the kernel -------------------------------------------------------------------------- */

static u64 seconds(s64 ns, u32 *nsec)
{
	s64 sec = ns / NS, rest = ns % NS;

	if (rest < 0) {
		sec--;
		rest += NS;
	}
	*nsec = (u32)rest;
	return (u64)sec;
}

/* Reads the attributes of this file. Returns -ESTALE if another file has its inode number now. */
static int read_attr(const struct sg_iref *ref, struct sg_attr *attr)
{
	int err = sg_getattr(VOL, ref, attr);

	if (!err && attr->generation != (u32)ref->generation)
		err = -ESTALE;
	return err;
}

static void show(const struct sg_attr *a, struct fuse_attr *out)
{
	*out = (struct fuse_attr){
		.ino = a->ino,
		.size = a->size,
		.blocks = a->blocks * (SG_PAGE / 512),
		.mode = a->mode,
		.nlink = a->nlink,
		.uid = a->uid,
		.gid = a->gid,
		.blksize = SG_PAGE,
	};
	if (S_ISCHR(a->mode) || S_ISBLK(a->mode))
		out->rdev = (u32)a->special;
	out->atime = seconds(a->atime, &out->atimensec);
	out->mtime = seconds(a->mtime, &out->mtimensec);
	out->ctime = seconds(a->ctime, &out->ctimensec);
}

int attr_of(const struct sg_iref *ref, struct fuse_attr *out)
{
	struct sg_attr attr;
	int err = read_attr(ref, &attr);

	if (!err)
		show(&attr, out);
	return err;
}

void valid_for(u64 *sec, u32 *nsec)
{
	*sec = fs.opt.cache_ns / (u64)NS;
	*nsec = (u32)(fs.opt.cache_ns % (u64)NS);
}

static int reply_attr(const struct sg_iref *ref)
{
	struct fuse_attr_out out = { 0 };
	int err = attr_of(ref, &out.attr);

	if (err)
		return err;
	valid_for(&out.attr_valid, &out.attr_valid_nsec);
	return reply(&out, sizeof(out));
}

int op_getattr(void)
{
	struct sg_iref ref;
	int err = node_ref(IN->nodeid, &ref);

	return err ? err : reply_attr(&ref);
}

static struct wire_time wire_time(s64 ns)
{
	struct wire_time t = { 0 };

	t.sec = (int64_t)seconds(ns, &t.nsec);
	return t;
}

static uint64_t statx_attributes(u32 flags)
{
	return (flags & SG_FL_IMMUTABLE ? STATX_ATTR_IMMUTABLE : 0) |
	       (flags & SG_FL_APPEND ? STATX_ATTR_APPEND : 0) |
	       (flags & SG_FL_NODUMP ? STATX_ATTR_NODUMP : 0);
}

int op_statx(void)
{
	struct wire_statx_out out = {
		.mask = STATX_BASIC_STATS | STATX_BTIME,
		.blksize = SG_PAGE,
		.attributes_mask = STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP,
	};
	struct sg_attr a;
	struct sg_iref ref;
	int err = node_ref(IN->nodeid, &ref);

	if (!err)
		err = read_attr(&ref, &a);
	if (err)
		return err;
	valid_for(&out.attr_valid, &out.attr_valid_nsec);
	out.attributes = statx_attributes(a.flags);
	out.nlink = a.nlink;
	out.uid = a.uid;
	out.gid = a.gid;
	out.mode = (uint16_t)a.mode;
	out.ino = a.ino;
	out.size = a.size;
	out.blocks = a.blocks * (SG_PAGE / 512);
	out.atime = wire_time(a.atime);
	out.btime = wire_time(a.btime);
	out.ctime = wire_time(a.ctime);
	out.mtime = wire_time(a.mtime);
	if (S_ISCHR(a.mode) || S_ISBLK(a.mode)) {
		u32 dev = (u32)a.special;

		out.rdev_major = dev >> 8 & 0xfff;
		out.rdev_minor = (dev & 0xff) | (dev >> 12 & 0xfff00);
	}
	return reply(&out, sizeof(out));
}

/* --- rules that a kernel's file system leaves to the VFS ------------------------------------- */

bool is_fixed(const struct sg_iref *ref, u32 flags)
{
	return node_flags(ref) & flags;
}

/* Updates the time of the last access by the rules of the mount option `relatime`. */
void touch_atime(const struct sg_iref *ref)
{
	const struct sg_inode *rec = node_record(ref);
	s64 atime = (s64)sg_load64(&rec->atime), now;

	if (fs.opt.noatime || fs.vol.read_only || node_flags(ref) & SG_FL_NOATIME)
		return;
	now = (s64)sg_now();
	if (atime > (s64)sg_load64(&rec->mtime) && atime > (s64)sg_load64(&rec->ctime) &&
	    now - atime < DAY_NS)
		return;
	if (!change_try())
		return;
	sg_touch(VOL, ref, SG_SET_ATIME, 0, 0, now);
	change_end();
}

static u32 mode_of(const struct sg_iref *ref)
{
	return (u32)sg_load64(&node_record(ref)->mode);
}

/*
 * Clears the set-ID bits of a mode. Set-group-ID stays if the group may not execute the file: then
 * the bit has another meaning.
 */
static u32 without_ids(u32 mode)
{
	mode &= ~(u32)S_ISUID;
	return mode & S_IXGRP ? mode & ~(u32)S_ISGID : mode;
}

static int drop_capabilities(const struct sg_iref *ref, s64 now)
{
	int err;

	if (!sg_load64(&node_record(ref)->xattr))
		return 0;
	err = sg_xattr_set(VOL, ref, SG_XATTR_SECURITY, "capability", 10, NULL, 0, 0, now);
	return err == -ENODATA ? 0 : err;
}

int drop_privileges(const struct sg_iref *ref, bool ids, s64 now)
{
	struct sg_attr attr = { .mode = mode_of(ref), .ctime = now };
	u32 mode = without_ids(attr.mode);
	int err = drop_capabilities(ref, now);

	if (err || !ids || mode == attr.mode || !S_ISREG(mode))
		return err;
	attr.mode = mode;
	return sg_setattr(VOL, ref, SG_SET_MODE | SG_SET_CTIME, &attr);
}

int truncate_to(const struct sg_iref *ref, u64 size, bool ids, s64 now)
{
	int err;

	if (is_fixed(ref, SG_FL_IMMUTABLE | SG_FL_APPEND | SG_FL_SEALED))
		return -EPERM;
	err = drop_privileges(ref, ids, now);
	if (!err)
		err = sg_resize(VOL, ref, size, now);
	sg_wait_mappers(VOL, ref, false);
	return err;
}

/* --- changing ------------------------------------------------------------------------------- */

static s64 time_of(u64 sec, u32 nsec)
{
	return (s64)sec * NS + nsec;
}

/* Checks whether the flags of the file (chattr) allow these changes. */
static int may_set(const struct sg_iref *ref, const struct fuse_setattr_in *in)
{
	u32 flags = node_flags(ref);

	if (flags & SG_FL_IMMUTABLE)
		return -EPERM;
	if (flags & SG_FL_APPEND &&
	    (in->valid & (FATTR_MODE | FATTR_UID | FATTR_GID) ||
	     (in->valid & FATTR_ATIME && !(in->valid & FATTR_ATIME_NOW)) ||
	     (in->valid & FATTR_MTIME && !(in->valid & FATTR_MTIME_NOW))))
		return -EPERM;
	return 0;
}

static unsigned int gather(const struct sg_iref *ref, const struct fuse_setattr_in *in, s64 now,
			   struct sg_attr *attr)
{
	unsigned int set = SG_SET_CTIME;
	u32 mode = mode_of(ref);

	attr->ctime = now;
	attr->mode = in->valid & FATTR_MODE ? (mode & S_IFMT) | (in->mode & 07777) : mode;
	if (in->valid & (FATTR_UID | FATTR_GID) && !(in->valid & FATTR_MODE) && !S_ISDIR(mode))
		attr->mode = without_ids(mode);
	if (attr->mode != mode || in->valid & FATTR_MODE)
		set |= SG_SET_MODE;
	if (in->valid & FATTR_UID)
		set |= SG_SET_UID;
	if (in->valid & FATTR_GID)
		set |= SG_SET_GID;
	attr->uid = in->uid;
	attr->gid = in->gid;
	if (in->valid & FATTR_ATIME)
		set |= SG_SET_ATIME;
	if (in->valid & FATTR_MTIME)
		set |= SG_SET_MTIME;
	attr->atime = in->valid & FATTR_ATIME_NOW ? now : time_of(in->atime, in->atimensec);
	attr->mtime = in->valid & FATTR_MTIME_NOW ? now : time_of(in->mtime, in->mtimensec);
	return set;
}

static int set_others(const struct sg_iref *ref, const struct fuse_setattr_in *in, s64 now)
{
	struct sg_attr attr = { 0 };
	unsigned int set = gather(ref, in, now, &attr);
	bool done = false;
	int err = 0;

	if (in->valid & (FATTR_UID | FATTR_GID))
		err = drop_capabilities(ref, now);
	if (!err && in->valid & FATTR_MODE)
		err = acl_chmod(ref, attr.mode, now, &done);
	if (done)	/* acl_chmod() has set the mode with the ACL, in one transaction */
		set &= ~SG_SET_MODE;
	if (!err && set & ~(SG_SET_ATIME | SG_SET_MTIME | SG_SET_CTIME))
		err = sg_setattr(VOL, ref, set, &attr);
	else if (!err)
		err = sg_touch(VOL, ref, set, attr.mtime, attr.ctime, attr.atime);
	return err;
}

int op_setattr(void)
{
	const struct fuse_setattr_in *in = ARG(struct fuse_setattr_in);
	const u32 others = FATTR_MODE | FATTR_UID | FATTR_GID | FATTR_ATIME | FATTR_MTIME;
	s64 now = call_time();
	struct sg_iref ref;
	int err = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (!err)
		err = may_set(&ref, in);
	if (!err && in->valid & FATTR_SIZE)
		err = truncate_to(&ref, in->size, in->valid & FATTR_KILL_SUIDGID, now);
	if (!err && (in->valid & others || !(in->valid & FATTR_SIZE)))
		err = set_others(&ref, in, now);
	return err ? err : reply_attr(&ref);
}

/* --- the file system as a whole -------------------------------------------------------------- */

int op_statfs(void)
{
	struct fuse_statfs_out out = { 0 };
	struct sg_statfs st;
	int err = sg_statfs(VOL, &st);

	if (err)
		return err;
	out.st.blocks = st.pages;
	out.st.bfree = st.free_pages;
	out.st.bavail = st.free_pages;
	out.st.files = st.inodes;
	out.st.ffree = st.inodes - st.used_inodes;
	out.st.bsize = SG_PAGE;
	out.st.frsize = SG_PAGE;
	out.st.namelen = SG_NAME_MAX;
	return reply(&out, sizeof(out));
}

/* --- flags (chattr) -------------------------------------------------------------------------- */

static const struct {
	u32 sg, ioctl, fsx;
} flag_table[] = {
	{ SG_FL_IMMUTABLE, FS_IMMUTABLE_FL, FS_XFLAG_IMMUTABLE },
	{ SG_FL_APPEND, FS_APPEND_FL, FS_XFLAG_APPEND },
	{ SG_FL_NOATIME, FS_NOATIME_FL, FS_XFLAG_NOATIME },
	{ SG_FL_NODUMP, FS_NODUMP_FL, FS_XFLAG_NODUMP },
	{ SG_FL_SYNC, FS_SYNC_FL, FS_XFLAG_SYNC },
	{ SG_FL_DIRSYNC, FS_DIRSYNC_FL, 0 },
};
#define FLAGS	(sizeof(flag_table) / sizeof(flag_table[0]))

static u32 flags_out(u32 sg, bool fsx)
{
	u32 out = 0;
	size_t i;

	for (i = 0; i < FLAGS; i++)
		if (sg & flag_table[i].sg)
			out |= fsx ? flag_table[i].fsx : flag_table[i].ioctl;
	return out;
}

static int flags_in(u32 in, bool fsx, u32 *out)
{
	size_t i;

	*out = 0;
	for (i = 0; i < FLAGS; i++) {
		u32 bit = fsx ? flag_table[i].fsx : flag_table[i].ioctl;

		if (in & bit)
			*out |= flag_table[i].sg;
		in &= ~bit;
	}
	return in ? -EOPNOTSUPP : 0;
}

static int set_flags(const struct sg_iref *ref, u32 flags)
{
	struct sg_attr attr = {
		.flags = flags | (node_flags(ref) & SG_FL_CUTTING), .ctime = call_time(),
	};

	return sg_setattr(VOL, ref, SG_SET_FLAGS | SG_SET_CTIME, &attr);
}

/* Linux 5.13 and later, with FUSE_SETXATTR_EXT, check that the caller may set these flags. */
static int ioctl_set(const struct sg_iref *ref, const struct fuse_ioctl_in *in, const void *data)
{
	struct fuse_ioctl_out out = { 0 };
	const struct fsxattr *x = data;
	u32 flags;
	int err;

	if (!(fs.kept->flags & FUSE_SETXATTR_EXT))
		return -EOPNOTSUPP;
	if (in->cmd == FS_IOC_FSSETXATTR) {
		if (x->fsx_extsize || x->fsx_cowextsize || x->fsx_projid)
			return -EOPNOTSUPP;
		err = flags_in(x->fsx_xflags, true, &flags);
		flags |= node_flags(ref) & SG_FL_DIRSYNC;	/* no such bit in fsxattr */
	} else {
		err = flags_in(*(const u32 *)data, false, &flags);
	}
	if (!err)
		err = set_flags(ref, flags);
	return err ? err : reply(&out, sizeof(out));
}

static int ioctl_get(const struct sg_iref *ref, const struct fuse_ioctl_in *in)
{
	struct {
		struct fuse_ioctl_out out;
		union {
			u32 flags;
			struct fsxattr x;
		};
	} a = { { 0 }, { 0 } };

	if (in->cmd == FS_IOC_FSGETXATTR)
		a.x.fsx_xflags = flags_out(node_flags(ref), true);
	else
		a.flags = flags_out(node_flags(ref), false);
	return reply(&a, sizeof(a.out) + (in->cmd == FS_IOC_FSGETXATTR ? sizeof(a.x) :
					  sizeof(a.flags)));
}

int op_ioctl(void)
{
	const struct fuse_ioctl_in *in = ARG(struct fuse_ioctl_in);
	struct sg_iref ref;
	int err = in ? node_ref(IN->nodeid, &ref) : -EINVAL;

	if (err)
		return err;
	switch (in->cmd) {
	case FS_IOC_GETFLAGS:
		return in->out_size < sizeof(u32) ? -EINVAL : ioctl_get(&ref, in);
	case FS_IOC_FSGETXATTR:
		return in->out_size < sizeof(struct fsxattr) ? -EINVAL : ioctl_get(&ref, in);
	case FS_IOC_SETFLAGS:
		return call_arg(sizeof(*in) + sizeof(u32)) ? ioctl_set(&ref, in, in + 1) : -EINVAL;
	case FS_IOC_FSSETXATTR:
		return call_arg(sizeof(*in) + sizeof(struct fsxattr)) ?
		       ioctl_set(&ref, in, in + 1) : -EINVAL;
	case SG_IOC_SEAL:
		return ioctl_seal(&ref, in);
	}
	return -ENOTTY;
}
