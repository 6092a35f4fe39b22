/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module's files share. The names of the engine begin with sg_, ours with sgfs_.
 *
 * The engine's inode is the truth; the VFS inode is a cache of it, brought up to date by
 * sgfs_refresh() after each operation of ours and wherever somebody else's may matter (D9).
 *
 * Locks, outermost first: the VFS's own (i_rwsem: shared to read data, exclusive to change it),
 * mapping->invalidate_lock (what a page of a file is, against faults: shared to enter a mapping,
 * exclusive while pages are taken away or a hole is filled), the engine's.
 */
#ifndef STARGATEFS_H
#define STARGATEFS_H

#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "compat.h"
#include "engine.h"
#include "window.h"

#define SGFS_NAME	"stargatefs"

/* Copied at once: the engine's locks may be held meanwhile, and others wait for the processor. */
#define SGFS_PIECE	SZ_2M

enum sgfs_map { SGFS_MAP_WALK, SGFS_MAP_SPLICE, SGFS_MAP_SHADOW, SGFS_MAPS };
enum sgfs_errors { SGFS_ERRORS_CONTINUE, SGFS_ERRORS_REMOUNT_RO, SGFS_ERRORS_PANIC };

/**
 * struct sgfs_options - what a mount was asked for
 * @map: map=
 * @errors: errors=
 * @phys: phys=, when there is no block device
 * @size: size=, likewise
 * @set: which of them were given (a remount keeps the others)
 */
struct sgfs_options {
	enum sgfs_map map;
	enum sgfs_errors errors;
	u64 phys, size;
	unsigned int set;
};
#define SGFS_SET_MAP	1u
#define SGFS_SET_ERRORS	2u
#define SGFS_SET_PHYS	4u
#define SGFS_SET_SIZE	8u

/* Counted per CPU: summed up when somebody looks (sysfs.c). */
enum sgfs_count {
	SGFS_READS, SGFS_READ_BYTES, SGFS_WRITES, SGFS_WRITE_BYTES, SGFS_WALKED_BYTES,
	SGFS_WINDOW_BYTES, SGFS_FAULTS, SGFS_HUGE_FAULTS, SGFS_LOOKUPS, SGFS_CREATES, SGFS_REMOVES,
	SGFS_RENAMES, SGFS_FSYNCS, SGFS_COUNTS
};
struct sgfs_counts {
	u64 n[SGFS_COUNTS];
};

/**
 * struct sgfs_memory - the volume's bytes in this system
 * @dax: the block device's memory, or NULL for a bare range
 * @resource: a bare range, claimed
 * @base: linear mapping
 * @phys: physical address of the first byte
 * @size: bytes
 * @read_only: may not be written to
 */
struct sgfs_memory {
	struct dax_device *dax;
	struct resource *resource;
	void *base;
	phys_addr_t phys;
	u64 size;
	bool read_only;
};

/**
 * struct sgfs - a mounted volume; sb->s_fs_info
 * @vol: the engine's part
 * @sb: the VFS's part
 * @opt: options in force
 * @mem: where the volume is
 * @joined: has a place in the mount table
 * @damaged: something was found that makes no sense
 * @beat: heartbeat
 * @reclaim: frees what was deleted
 * @windows: pool of windows, or NULL (no map= that needs them yet)
 * @windows_lock: makes @windows once
 * @mapped_lock: guards @mapped
 * @mapped: inodes with pages that user space may be writing to (written.c)
 * @flush_lock: one at a time goes through @mapped
 * @kobj: /sys/fs/stargatefs/<id>
 * @kobj_gone: nobody looks into it any more
 * @counts: statistics
 */
struct sgfs {
	struct sg_vol vol;
	struct super_block *sb;
	struct sgfs_options opt;
	struct sgfs_memory mem;
	bool joined;
	bool damaged;
	struct delayed_work beat;
	struct delayed_work reclaim;
	struct sg_windows *windows;
	struct mutex windows_lock;
	spinlock_t mapped_lock;
	struct list_head mapped;
	struct mutex flush_lock;
	struct kobject kobj;
	struct completion kobj_gone;
	struct sgfs_counts __percpu *counts;
};

/**
 * struct sgfs_inode - an inode in use
 * @ref: the engine's name for it
 * @seq: change counter that the VFS inode shows; 0: none yet
 * @btime: birth, ns
 * @flags: SG_FL_*
 * @has_xattr: there are extended attributes
 * @written: pages that mappings may write to (written.c)
 * @mapped: in sgfs.mapped
 * @window_lock: opens and closes, growth of the window (map.c)
 * @opens: open files that may read or write
 * @map: how @window was made
 * @window: a spliced window, or NULL
 * @shadow: a private table and its window, or NULL
 * @vfs: the VFS inode
 */
struct sgfs_inode {
	struct sg_iref ref;
	u64 seq;
	s64 btime;
	u32 flags;
	bool has_xattr;
	struct xarray written;
	struct list_head mapped;
	struct mutex window_lock;
	unsigned int opens;
	enum sgfs_map map;
	struct sg_window *window;
	struct sg_shadow *shadow;
	struct inode vfs;
};

static inline struct sgfs *SGFS(const struct super_block *sb)
{
	return sb->s_fs_info;
}

static inline struct sgfs_inode *SGFS_I(const struct inode *inode)
{
	return container_of(inode, struct sgfs_inode, vfs);
}

static inline struct sg_vol *sgfs_vol(const struct inode *inode)
{
	return &SGFS(inode->i_sb)->vol;
}

static inline const struct sg_iref *sgfs_ref(const struct inode *inode)
{
	return &SGFS_I(inode)->ref;
}

static inline void sgfs_add(const struct super_block *sb, enum sgfs_count what, u64 n)
{
	this_cpu_add(SGFS(sb)->counts->n[what], n);
}

/* The engine's times are signed ns since the epoch. */
static inline struct timespec64 sgfs_ts(s64 ns)
{
	return ns_to_timespec64(ns);
}

static inline s64 sgfs_ns(struct timespec64 ts)
{
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static inline s64 sgfs_now(struct inode *inode)
{
	return sgfs_ns(current_time(inode));
}

/* super.c */
extern struct workqueue_struct *sgfs_wq;
void sgfs_reclaim_soon(struct sgfs *fs);

/* options.c */
extern const struct fs_parameter_spec sgfs_parameters[];
int sgfs_parse(struct fs_context *fc, struct fs_parameter *param);
/* The volume is mounted already, with options @now: were others asked for? Then it is refused. */
int sgfs_options_agree(struct fs_context *fc, const struct sgfs_options *now);
int sgfs_show_options(struct seq_file *m, struct dentry *root);
const char *sgfs_map_name(enum sgfs_map map);

/* device.c: errors are told to the user through fc */
int sgfs_memory_of_device(struct fs_context *fc, struct super_block *sb, struct sgfs_memory *mem);
int sgfs_memory_of_range(struct fs_context *fc, u64 phys, u64 size, bool read_only,
			 struct sgfs_memory *mem);
void sgfs_memory_release(struct sgfs_memory *mem);

/* inode.c */
int sgfs_refresh_slow(struct inode *inode);
/* Makes the VFS inode show what the volume says now. */
static inline int sgfs_refresh(struct inode *inode)
{
	if (likely(sg_seq(sgfs_vol(inode), sgfs_ref(inode)) == SGFS_I(inode)->seq))
		return 0;
	return sgfs_refresh_slow(inode);
}
struct inode *sgfs_iget(struct super_block *sb, const struct sg_iref *ref);
void sgfs_set_operations(struct inode *inode, dev_t rdev);
int sgfs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int sgfs_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		 unsigned int flags);
int sgfs_fileattr_get(struct dentry *dentry, struct file_kattr *fa);
int sgfs_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa);
struct inode *sgfs_alloc_inode(struct super_block *sb);
void sgfs_free_inode(struct inode *inode);
void sgfs_evict_inode(struct inode *inode);
int sgfs_inode_cache_init(void);
void sgfs_inode_cache_exit(void);

/* new.c: making inodes */
struct sgfs_creation {
	struct sg_new new;
	struct inode *inode;
};
int sgfs_creation_begin(struct mnt_idmap *idmap, struct inode *dir, const struct qstr *name,
			umode_t mode, dev_t rdev, struct sgfs_creation *c);
int sgfs_creation_end(struct sgfs_creation *c, const struct sg_iref *ref);
void sgfs_creation_abort(struct sgfs_creation *c);

/* namei.c, dir.c, file.c, mmap.c, symlink.c, xattr.c, export.c */
extern const struct inode_operations sgfs_dir_inode_operations;
extern const struct inode_operations sgfs_file_inode_operations;
extern const struct inode_operations sgfs_special_inode_operations;
extern const struct inode_operations sgfs_symlink_inode_operations;
extern const struct file_operations sgfs_dir_operations;
extern const struct file_operations sgfs_file_operations;
extern const struct address_space_operations sgfs_address_operations;
extern sgfs_xattr_table sgfs_xattr_handlers[];
extern const struct export_operations sgfs_export_operations;

int sgfs_readlink_cache(struct inode *inode);
int sgfs_fsync(struct file *file, loff_t start, loff_t end, int datasync);
loff_t sgfs_llseek(struct file *file, loff_t offset, int whence);
long sgfs_fallocate(struct file *file, int mode, loff_t pos, loff_t len);
int sgfs_fiemap(struct inode *inode, struct fiemap_extent_info *fi, u64 start, u64 len);
ssize_t sgfs_listxattr(struct dentry *dentry, char *list, size_t size);
int sgfs_mmap(struct file *file, struct vm_area_struct *vma);

/* xattr.c: a payload of struct sg_xattr_entry under construction */
struct sgfs_payload {
	void *data;
	u32 len;
};
int sgfs_payload_add(struct sgfs_payload *p, unsigned int space, const char *name,
		     const void *value, size_t len);

/* mmap.c */
int sgfs_mmap_init(void);
void sgfs_mmap_exit(void);
/* Pages of [pos, pos + len) are about to go, or holes of it were filled: no mapping keeps them. */
void sgfs_unmap(struct inode *inode, loff_t pos, loff_t len, bool cows);

/* written.c */
/* Where a mapping may write from now on. */
int sgfs_written_mark(struct inode *inode, u64 first, u64 pages);
/* Write-back of what mappings may have stored in these pages; durable when it returns. */
int sgfs_written_flush(struct inode *inode, u64 first, u64 last);
/* ... of all inodes; @revoke: and each further store has to come by a fault again. */
int sgfs_written_flush_all(struct sgfs *fs, bool revoke);
void sgfs_written_forget(struct inode *inode);

/* map.c: the data paths (D5) */
int sgfs_map_usable(struct sgfs *fs, enum sgfs_map map, const char **why);
int sgfs_map_open(struct inode *inode);
void sgfs_map_close(struct inode *inode);
/* i_rwsem is held exclusively: the file got longer, or pages of it were cut off. */
void sgfs_map_grown(struct inode *inode);
void sgfs_map_cut(struct inode *inode, u64 pos, u64 len);
void sgfs_map_evict(struct inode *inode);
void sgfs_map_quiesce(struct sg_vol *vol);
/* Bytes that went through a window: the caller walks the rest. */
size_t sgfs_map_read(struct inode *inode, u64 pos, size_t len, struct iov_iter *to);
size_t sgfs_map_write(struct inode *inode, u64 pos, size_t len, struct iov_iter *from);

/* sysfs.c */
int sgfs_sysfs_init(void);
void sgfs_sysfs_exit(void);
int sgfs_sysfs_add(struct sgfs *fs);
void sgfs_sysfs_remove(struct sgfs *fs);

#endif
