/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that the module's files share. Names of the engine begin with sg_, those of the
 * module with sgfs_.
 *
 * The engine's inode is the truth. The VFS inode is a cache of it. sgfs_refresh() brings it up to
 * date after each operation of this system, and wherever a change by another system may matter
 * (D9).
 *
 * Locks, outermost first: the VFS's own (i_rwsem: shared to read data, exclusive to change it),
 * mapping->invalidate_lock (the pages of a file, against faults: shared to enter a mapping,
 * exclusive while pages are removed or a hole is filled), the engine's.
 */
#ifndef STARGATEFS_H
#define STARGATEFS_H

#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/list_bl.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "compat.h"
#include "engine.h"
#include "window.h"

#define SGFS_NAME	"stargatefs"

/*
 * The length of one copy, limited because locks of the engine may be held meanwhile, and other
 * tasks wait for the processor.
 */
#define SGFS_PIECE	SZ_2M

enum sgfs_map { SGFS_MAP_WALK, SGFS_MAP_SPLICE, SGFS_MAP_SHADOW, SGFS_MAPS };
/* auto: as the device says; always, never: the option says */
enum sgfs_flush { SGFS_FLUSH_AUTO, SGFS_FLUSH_ALWAYS, SGFS_FLUSH_NEVER };
enum sgfs_data { SGFS_DATA_INPLACE, SGFS_DATA_ATOMIC };
enum sgfs_errors { SGFS_ERRORS_CONTINUE, SGFS_ERRORS_REMOUNT_RO, SGFS_ERRORS_PANIC };

/**
 * struct sgfs_options - the options of a mount
 * @map: map=
 * @errors: errors=
 * @data: data=
 * @phys: phys=, when there is no block device
 * @size: size=, likewise
 * @relocate: relocate: for this mount only; it does not apply to the next one
 * @nojoin: nojoin: no member of the volume, as if its memory could not be written
 * @region_uid, @region_gid, @region_mode: region_uid= and so on: owner and mode of the files in
 *	.stargate
 * @region_marked: region_nodiratime: region can be opened only through mounts with that attribute
 * @set: which options were given (a remount keeps the others)
 */
struct sgfs_options {
	enum sgfs_map map;
	enum sgfs_errors errors;
	enum sgfs_data data;
	enum sgfs_flush flush;
	u64 phys, size;
	bool relocate, nojoin;
	kuid_t region_uid;
	kgid_t region_gid;
	umode_t region_mode;
	bool region_marked;
	unsigned int set;
};
#define SGFS_SET_MAP	1u
#define SGFS_SET_ERRORS	2u
#define SGFS_SET_PHYS	4u
#define SGFS_SET_SIZE	8u
#define SGFS_SET_UID	16u
#define SGFS_SET_GID	32u
#define SGFS_SET_MODE	64u
#define SGFS_SET_DATA	128u
#define SGFS_SET_FLUSH	256u
#define SGFS_REGION_MODE	0600	/* mode without the option; root owns the files */

/* Counters per CPU; a read in sysfs.c sums them up. */
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
 * @pages: its struct pages, with a reference: the driver waits for this mount before it removes the
 *	pages and the memory
 * @going: the wait of the driver has been logged
 * @resource: a bare range, claimed
 * @base: linear mapping
 * @phys: physical address of the first byte
 * @start: where that is in @dax, in bytes
 * @size: bytes
 * @read_only: may not be written to
 */
struct sgfs_memory {
	struct dax_device *dax;
	struct dev_pagemap *pages;
	struct resource *resource;
	void *base;
	phys_addr_t phys;
	u64 start, size;
	bool read_only, going;
};

/* --- flush.c: write-back of cache lines ------------------------------------------------------- */

struct sgfs;
/* Report whether stores to this memory must be written back to survive a loss of power. */
bool sgfs_flush_needed(const struct sgfs_memory *mem, enum sgfs_flush flush);
/* Make sg_wb() write back for this mount as well, or only for other mounts. */
void sgfs_flush_use(struct sgfs *fs, bool needed);

/**
 * struct sgfs_sems - this system's users of shared semaphores
 * @start: starts
 * @listener, once
 * @lock: protects @threads
 * @threads: threads that can own locks, by hash
 * @listener: the thread that polls this system's bell; @stop: it must end
 */
#define SGFS_SEM_THREAD_BITS	6
struct sgfs_sems {
	struct mutex start;
	spinlock_t lock;
	struct hlist_head threads[1 << SGFS_SEM_THREAD_BITS];
	struct task_struct *listener;
	bool stop;
};

/**
 * struct sgfs_due_work - starts of a work item by rings (bells.c)
 * @last: when a ring last started it at once (ns)
 * @started: a ring has started it, and it has not begun
 */
struct sgfs_due_work {
	u64 last;
	bool started;
};

/**
 * struct sgfs_bells - doorbells of a mount (bells.c)
 * @exchange: the exchange that it uses, or NULL
 * @all: in the list of all joined mounts; @at: in the list of the exchange
 * @runs: the threads that a ring starts are running
 * @acknowledge, @freeze, @watch: starts of these threads
 */
struct sgfs_exchange;
struct sgfs_bells {
	struct sgfs_exchange __rcu *exchange;
	struct list_head all, at;
	bool runs;
	struct sgfs_due_work acknowledge, freeze, watch;
};

#define SGFS_AWAITING	16	/* by inode number */
#define SGFS_UNITS	4	/* by processor */
#define SGFS_PLACE_BITS	5

/**
 * struct sgfs - a mounted volume; sb->s_fs_info
 * @vol: the engine's part
 * @sb: the VFS's part
 * @opt: options in force
 * @mem: where the volume is
 * @joined: has a place in the mount table
 * @damaged: damage was found
 * @failed: damage was found since the volume was last made writable, and errors=remount-ro has made
 *	it read-only
 * @watcher, @acknowledger: each for one work item of that name, which no other item delays
 * @waiter: for work items that may wait for other systems, or that must not wait for such items:
 * @settle,
 *	@freeze_watch, @release
 * @watch, @acknowledge: periodic work of a member of the volume (membership.c)
 * @settle: work that may wait for locks: frees what was deleted; @settle_lock: held while it runs
 * @release: makes releases of users' locks that other systems have held up; @release_ms: until it
 *	runs again
 * @death: runs after this system was fenced
 * @freeze_watch: freezes the mount while a volume is copied (snapshot_freeze.c)
 * @snapshot_frozen: that freeze is in effect
 * @freeze_lock: serializes that freeze and freezes by users
 * @pinned: the freeze holds a reference on the mount; @unpin: drops it
 * @creations: inodes without a name that the VFS does not know yet
 * @faults: page faults between the read of a file's table and the entry of the page
 * @places: locks of page-table places, by hash, for large entries and tables (mmap.c)
 * @mappers_lock: guards @mappers, and sgfs_inode.vmas
 * @mappers: inodes that processes of this system map
 * @windows: pool of windows, or NULL (no map= has needed them yet)
 * @windows_lock: held to make @windows, once
 * @windows_age: incremented when windows may be out of date; each is checked before its next use
 * @mapped_lock: guards @mapped
 * @mapped: inodes with pages that user space may be writing to (mmap_dirty.c)
 * @flush_lock: only one task at a time walks @mapped
 * @deferred_times: number of inodes in @mapped with a deferred time
 * @awaiting: held by the one task that waits for another system's file lock (filelock.c)
 * @lock_waiters: tasks that wait for a users' lock, by inode number; @lock_rings: rings of other
 *	systems, one of which may have released it
 * @kept_lock: guards the two lists
 * @kept_young, @kept_old: inodes that sgfs_keep() has kept since the last second, and before
 * @virtual_dir: .stargate (region.c)
 * @region: the file of that name in it, or NULL
 * @about: volume.json
 * @semaphores: the file of that name; @sems: its users in this system (sem_thread.c)
 * @bells: doorbells of other systems
 * @identity: VMs to which the volume is open, or NULL (kvm_grant.c)
 * @holders_lock: guards @holders
 * @holders: holders of @region (region_holders.c)
 * @lent: a file of @region that keeps the mount while pages are pinned that no process maps
 * (region_pins.c); @look_lent: checks, and drops it
 * @guarded_at: when this system last confirmed their machines (jiffies)
 * @kobj: /sys/fs/stargatefs/<id>
 * @kobj_gone: completed when it has no reader any more
 * @counts: statistics
 * @volumes: in the list of volumes that get reports of bad pages (poison.c)
 * @bad: removes mappings that show bad pages, and after damage those that allow stores
 * @uses: by other modules (ring_export.c)
 * @units: memory for units of atomic writes, or NULL (file_atomic.c)
 */
struct sgfs {
	struct sg_vol vol;
	struct super_block *sb;
	struct sgfs_options opt;
	struct sgfs_memory mem;
	bool joined;
	bool damaged, failed;
	struct workqueue_struct *watcher, *acknowledger, *waiter;
	struct delayed_work watch, acknowledge, settle, freeze_watch, release;
	int release_ms;
	struct work_struct death, unpin;
	struct mutex freeze_lock, settle_lock;
	bool snapshot_frozen, pinned, flushes;
	atomic_t creations;
	struct srcu_struct faults;
	struct mutex places[1 << SGFS_PLACE_BITS];
	struct mutex mappers_lock;
	struct list_head mappers;
	struct sg_windows *windows;
	struct mutex windows_lock;
	u64 windows_age;
	spinlock_t mapped_lock;
	struct list_head mapped;
	struct mutex flush_lock;
	atomic_t deferred_times;
	struct mutex awaiting[SGFS_AWAITING];
	wait_queue_head_t lock_waiters[SGFS_AWAITING];
	atomic_t lock_rings;
	spinlock_t kept_lock;
	struct list_head kept_young, kept_old;
	struct inode *virtual_dir, *region, *about, *semaphores;
	struct sgfs_sems sems;
	struct sgfs_bells bells;
	struct sgfs_identity *identity;
	spinlock_t holders_lock;
	struct list_head holders;
	struct file *lent;
	struct delayed_work look_lent;
	unsigned long guarded_at;
	struct kobject kobj;
	struct completion kobj_gone;
	struct sgfs_counts __percpu *counts;
	struct list_head volumes;
	struct work_struct bad;
	struct list_head uses;
	void *units[SGFS_UNITS];
};

/**
 * struct sgfs_layout - identifies the positions of a file's pages, which are unchanged while both
 * fields are
 * @root: root of its table, or 1: it has none
 * @cuts: how often pages have been cut out of the file
 */
struct sgfs_layout {
	u64 root, cuts;
};

/**
 * struct sgfs_inode - an inode in use
 * @ref: the engine's name for it
 * @seq: change counter that the VFS inode shows; 0: none yet
 * @btime: birth, ns
 * @flags: SG_FL_*
 * @has_xattr: there are extended attributes
 * @known: directory: its change counter at the last check (dcache.c)
 * @base: directory: names looked up since this counter are still valid
 * @changing: directory: this system is changing it
 * @kept: counts as open: it was made without links, or is about to be opened
 * @kept_at: in one of sgfs.kept_*, if sgfs_keep() set @kept
 * @vmas: mappings; @mappers depends on it (mmap.c, region.c)
 * @mappers: in sgfs.mappers
 * @cuts: of the file, when its mappings were last removed
 * @holer: pages of zeroes are mapped where it has holes
 * @hole_seq: change counter before the first of these was mapped
 * @zap: mappings are about to be removed
 * @written: pages that mappings may write to, and extents of 2 MiB (mmap_dirty.c)
 * @written_in: the file's layout before the first page was marked; @root 0: no page is marked
 * @moved: pages have changed their places since then
 * @mapped: in sgfs.mapped
 * @deferred_time: of the last store by a mapping whose time could not be stored; 0: none.
 *	Another value keeps a reference of the inode.
 * @window_lock: opens and closes, growth of the window (data_path.c)
 * @opens: open files
 * @tables: held while users' locks of the file change; @changes: counts these changes (filelock.c)
 * @map: the data path for which @window was made
 * @map_age, @map_cuts, @map_root: sgfs.windows_age, cuts and root of the table when the window was
 *	made, or last found to be valid
 * @window: a spliced window, or NULL
 * @shadow: a private table and its window, or NULL
 * @vfs: the VFS inode
 */
struct sgfs_inode {
	struct sg_iref ref;
	u64 seq;
	s64 btime;
	u32 flags;
	/*
	 * small members are adjacent, because the size determines how many inodes fit into a slab
	 */
	unsigned int vmas, opens;
	bool has_xattr, changing, kept, holer, zap, moved;
	u64 known, base;
	struct list_head kept_at;
	struct list_head mappers;
	u64 cuts, hole_seq;
	struct xarray written[2];
	struct sgfs_layout written_in;
	struct list_head mapped;
	s64 deferred_time;
	struct mutex window_lock;
	struct mutex tables;
	atomic_t changes;
	enum sgfs_map map;
	u64 map_age, map_cuts, map_root;
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

/*
 * Report whether the inode belongs to this mount, and not to the volume (region.c): then it has no
 * record.
 */
static inline bool sgfs_is_virtual(const struct inode *inode)
{
	return !sgfs_ref(inode)->ino;
}

/* Return the inode's record in the volume, whose words other systems may change at any time. */
static inline struct sg_inode *sgfs_record(const struct inode *inode)
{
	return (struct sg_inode *)(sgfs_vol(inode)->base + sgfs_ref(inode)->off);
}

/* Report whether the record is in a bad page: then the inode can only be evicted. */
static inline bool sgfs_is_lost(const struct inode *inode)
{
	return sg_is_lost(sgfs_vol(inode), sgfs_ref(inode)->off);
}

/*
 * Report whether this system is live. False: it was fenced, and its view of the volume is no longer
 * valid.
 */
static inline bool sgfs_alive(const struct super_block *sb)
{
	const struct sg_vol *vol = &SGFS(sb)->vol;

	return !vol->state || likely(READ_ONCE(*vol->state) == vol->alive);
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
/*
 * The queue of all mounts, for work items that do not wait for other systems, except at an unmount.
 */
extern struct workqueue_struct *sgfs_wq;
void sgfs_identify(struct sg_identity *id);
/* After damage: show users that the mount is read-only, as soon as possible. */
void sgfs_show_failed(struct sgfs *fs);

/* membership.c */
int sgfs_membership_init(struct sgfs *fs);
void sgfs_membership_exit(struct sgfs *fs);
void sgfs_membership_prepare(struct sgfs *fs);
void sgfs_membership_start(struct sgfs *fs);
void sgfs_membership_stop(struct sgfs *fs);
void sgfs_membership_end(struct sgfs *fs);
/* Check the slots immediately, because a system has just died. Does not sleep. */
void sgfs_watch_now(struct sgfs *fs);
/* Stop and restart settling, for the time of a freeze. */
int sgfs_settle_pause(struct sgfs *fs);	/* -EBUSY: settling does not end in time */
void sgfs_settle_resume(struct sgfs *fs);
void sgfs_settle_end(struct sgfs *fs);		/* permanently */

/* bells.c */
void sgfs_bells_prepare(struct sgfs *fs);
void sgfs_bells_start(struct sgfs *fs);
void sgfs_bells_stop(struct sgfs *fs);
/* Called first by each work item that rings start. */
void sgfs_due_begins(struct sgfs_due_work *d);
ssize_t sgfs_bells_show(struct sgfs *fs, char *buf);

/* ring_export.c: wait until other modules have ended their use of the volume. */
void sgfs_uses_end(struct sgfs *fs);
void sgfs_uses_rung(struct sgfs *fs);	/* tells them of a doorbell */

/* pin_recent.c: make an inode count as open for a second or two. Releasing may sleep. */
void sgfs_kept_init(struct sgfs *fs);
int sgfs_keep(struct inode *inode);
void sgfs_kept_evict(struct inode *inode);
void sgfs_kept_settle(struct sgfs *fs);

/* snapshot_freeze.c */
void sgfs_snapshot_init(struct sgfs *fs);
void sgfs_snapshot_start(struct sgfs *fs);
void sgfs_snapshot_stop(struct sgfs *fs);
long sgfs_snapshot_ioctl(struct file *file, unsigned int cmd, void __user *user);

/* options.c */
extern const struct fs_parameter_spec sgfs_parameters[];
int sgfs_parse(struct fs_context *fc, struct fs_parameter *param);
/*
 * Refuse a mount of a volume that is already mounted with options @now, if other options were
 * requested.
 */
/* Check whether atomic writes can be the default of this volume's mount. */
int sgfs_data_usable(struct fs_context *fc, const struct sgfs *fs, enum sgfs_data data);
int sgfs_options_agree(struct fs_context *fc, const struct sgfs_options *now);
/* Report whether a remount changes owner or mode of region. */
bool sgfs_region_differs(const struct sgfs_options *asked, const struct sgfs_options *now);
int sgfs_show_options(struct seq_file *m, struct dentry *root);
const char *sgfs_map_name(enum sgfs_map map);

/* device.c: reports errors to the user through fc */
int sgfs_memory_of_device(struct fs_context *fc, struct super_block *sb, struct sgfs_memory *mem);
int sgfs_memory_of_range(struct fs_context *fc, u64 phys, u64 size, bool read_only,
			 struct sgfs_memory *mem);
void sgfs_memory_release(struct sgfs_memory *mem);
void sgfs_memory_watch(struct sgfs *fs);

/* grow.c */
/* returns its size in bytes; the device may have become larger */
u64 sgfs_memory_follow(struct sgfs *fs);
long sgfs_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
/* ioctls of directories, for requests that concern the complete volume. */
#define SGFS_IOCTL_OPS	.unlocked_ioctl = sgfs_ioctl, .compat_ioctl = compat_ptr_ioctl

/* inode.c */
int sgfs_refresh_slow(struct inode *inode);
/* Report whether the VFS inode shows the current state of the volume's inode. */
static inline bool sgfs_is_fresh(const struct inode *inode)
{
	return likely(!sgfs_is_lost(inode)) &&
	       likely(smp_load_acquire(&sgfs_record(inode)->seq) == SGFS_I(inode)->seq) &&
	       sgfs_alive(inode->i_sb);
}
static inline int sgfs_refresh(struct inode *inode)
{
	return sgfs_is_fresh(inode) ? 0 : sgfs_refresh_slow(inode);
}
/* The identity of a VFS inode: number and generation. */
int sgfs_is_inode(struct inode *inode, void *ref);
/* -ESTALE: no such inode exists, or the number now belongs to another inode. */
struct inode *sgfs_iget(struct super_block *sb, const struct sg_iref *ref);
struct inode *sgfs_iget_number(struct super_block *sb, u64 ino, u32 generation);
int sgfs_permission(struct mnt_idmap *idmap, struct inode *inode, int mask);
/* Called at the first open and at the last close. */
int sgfs_open(struct inode *inode);
void sgfs_close(struct inode *inode);
void sgfs_forget_names(struct inode *inode);
int sgfs_drop_inode(struct inode *inode);
void sgfs_set_operations(struct inode *inode, dev_t rdev);
int sgfs_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr);
int sgfs_getattr(struct mnt_idmap *idmap, const struct path *path, struct kstat *stat, u32 mask,
		 unsigned int flags);
int sgfs_remove_privs(struct file *file);
int sgfs_fileattr_get(struct dentry *dentry, struct file_kattr *fa);
int sgfs_fileattr_set(struct mnt_idmap *idmap, struct dentry *dentry, struct file_kattr *fa);
struct inode *sgfs_alloc_inode(struct super_block *sb);
void sgfs_free_inode(struct inode *inode);
void sgfs_evict_inode(struct inode *inode);
int sgfs_inode_cache_init(void);
void sgfs_inode_cache_exit(void);

/* inode_new.c: creation of inodes */
struct sgfs_creation {
	struct sg_new new;
	struct inode *inode;
};
int sgfs_creation_begin(struct mnt_idmap *idmap, struct inode *dir, const struct qstr *name,
			umode_t mode, dev_t rdev, struct sgfs_creation *c);
int sgfs_creation_end(struct sgfs_creation *c, const struct sg_iref *ref);
void sgfs_creation_abort(struct sgfs_creation *c);

/* dcache.c: cached names, and checks that they are still valid (D9) */
extern const struct dentry_operations sgfs_dentry_operations;
/*
 * Return the directory's change counter. Names looked up before it changed must be looked up again.
 */
u64 sgfs_dir_look(struct inode *dir);
/*
 * Between these two calls this system changes a directory, with i_rwsem held exclusively; @commits:
 * how often. The second call returns its change counter. It returns 0 if another system has also
 * changed the directory, because the VFS then has not seen all changes.
 */
void sgfs_dir_begin(struct inode *dir);
u64 sgfs_dir_end(struct inode *dir, unsigned int commits);
/*
 * Store in a dentry the directory's counter for which the name was valid; the counter may have
 * changed since. 0: look up again.
 */
void sgfs_name_known(struct dentry *dentry, u64 seq);

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

/* region.c: inodes that are not in the volume */
int sgfs_virtual_make(struct sgfs *fs);
void sgfs_virtual_release(struct sgfs *fs);
void sgfs_virtual_resize(struct sgfs *fs);	/* the caller holds windows_lock */
void sgfs_virtual_give(struct sgfs *fs);
/* Return the machine for which region was opened, from the name used; zeroes: none. */
void sgfs_region_machine(const struct file *file, u8 machine[16]);
/*
 * Look up a virtual file. Return its dentry, usually @dentry. NULL: the name in @dir belongs to the
 * volume.
 */
struct dentry *sgfs_virtual_lookup(struct inode *dir, struct dentry *dentry);

/* region_pins.c: pages of region that are in use although no process maps them */
void sgfs_lent_init(struct sgfs *fs);
bool sgfs_is_lent(struct inode *region);	/* invalidate_lock is held */
/* Called after the last mapping of @file: keeps the mount while pages of the file are pinned. */
void sgfs_keep_lent(struct sgfs *fs, struct file *file);
void sgfs_lent_report(struct sgfs *fs);
void sgfs_lent_end(struct sgfs *fs);

/* volume_json.c */
extern const struct file_operations sgfs_about_operations;
loff_t sgfs_about_size(const struct super_block *sb);

/*
 * region_holders.c: holders of region, each for a machine (zeroes: unknown). A holder without a
 * mapping (kvm_grant.c) is counted in the same way, and keeps @mm.
 */
struct sgfs_holder;
void sgfs_holders_init(struct sgfs *fs);
void sgfs_holders_end(struct sgfs *fs);
/* Add a mapping, or a grant, of @mm. Errors: -EPERM, the holder has been revoked; -ENOMEM. */
struct sgfs_holder *sgfs_hold(struct sgfs *fs, struct mm_struct *mm, const u8 machine[16],
			      bool writable);
/* Add a mapping of the same kind as @h for @mm, which usually is the address space of @h. */
struct sgfs_holder *sgfs_hold_again(struct sgfs *fs, struct sgfs_holder *h, struct mm_struct *mm,
				    bool writable);
/* Remove a mapping or grant. After the last writable one of a machine, fence its systems. */
void sgfs_let_go(struct sgfs *fs, struct sgfs_holder *h, bool writable);
/* Report whether the holder is revoked. For a mapping, invalidate_lock of region is held. */
bool sgfs_is_revoked(const struct sgfs_holder *h);
/*
 * Fence a live system, after revoking its machine's memory. -ENXIO: no process here holds region
 * for it; with @unheld it is still fenced. -ESTALE: it is not in the slot any more.
 */
int sgfs_fence(struct sgfs *fs, unsigned int slot, u32 incarnation, bool unheld);
/* Confirm in the volume that the holders' machines exist, at most twice a second. */
void sgfs_holders_guard(struct sgfs *fs);
/* Check whether map=splice is possible. False, or -EPERM: @why has the reason. */
bool sgfs_may_splice(struct sgfs *fs, const char **why);
int sgfs_set_map(struct sgfs *fs, enum sgfs_map map, const char **why);
ssize_t sgfs_holders_show(struct sgfs *fs, char *buf);
void sgfs_holders_report(struct sgfs *fs);

/* kvm_grant.c: the region's ioctls */
long sgfs_identity_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
/* Revoke the grants of the VMs of @machine whose holders are revoked. */
void sgfs_identity_revoke_held(struct sgfs *fs, const u8 machine[16]);
void sgfs_identity_release(struct sgfs *fs);

/* sem_file.c, sem_thread.c: shared semaphores */
extern const struct file_operations sgfs_sem_operations;
void sgfs_sems_init(struct sgfs *fs);
void sgfs_sems_stop(struct sgfs *fs);
/* Remove all entries of mappings of words. */
void sgfs_sems_revoke(struct sgfs *fs);

/* filelock.c */
void sgfs_userlocks_init(struct sgfs *fs);
void sgfs_userlocks_rung(struct sgfs *fs);
int sgfs_lock(struct file *file, int cmd, struct file_lock *fl);
int sgfs_flock(struct file *file, int cmd, struct file_lock *fl);

/* file_atomic.c: atomic writes (docs/atomic-data.md) */
#define SGFS_ATOMIC_MIN	512	/* bytes of a write with RWF_ATOMIC */
bool sgfs_knows_atomic(const struct super_block *sb);
static inline bool sgfs_writes_atomic(const struct kiocb *iocb, const struct inode *inode)
{
	return unlikely(SGFS_I(inode)->flags & SG_FL_ATOMIC) || sgfs_iocb_is_atomic(iocb) ||
	       SGFS(inode->i_sb)->opt.data == SGFS_DATA_ATOMIC;
}
int sgfs_atomic_refusal(const struct kiocb *iocb, const struct iov_iter *from, size_t asked);
/* Check for RWF_ATOMIC whether the bytes that remain of @asked can be one atomic write. */
static inline int sgfs_atomic_allowed(const struct kiocb *iocb, const struct iov_iter *from,
				      size_t asked)
{
	return sgfs_iocb_is_atomic(iocb) ? sgfs_atomic_refusal(iocb, from, asked) : 0;
}
/*
 * Take memory for one unit of an atomic write, and give it back. The mount keeps some of this
 * memory, because kernels fill new memory with zeroes.
 */
void *sgfs_unit_take(struct sgfs *fs);
void sgfs_unit_give(struct sgfs *fs, void *unit);
void sgfs_units_free(struct sgfs *fs);
ssize_t sgfs_write_atomic(struct inode *inode, u64 pos, struct iov_iter *from);
ssize_t sgfs_append_unit(struct inode *inode, u64 pos, struct iov_iter *from, void *buf, s64 now);
static inline bool sgfs_is_read_whole(const struct inode *inode)
{
	return unlikely(SGFS_I(inode)->flags & (SG_FL_ATOMIC | SG_FL_WHOLE));
}

/*
 * Report whether the file has changed since change counter @seq, and has atomic writes.
 */
static inline bool sgfs_is_torn(const struct inode *inode, u64 seq)
{
	return sgfs_is_read_whole(inode) && READ_ONCE(SGFS_I(inode)->seq) != seq;
}
ssize_t sgfs_read_alone(struct inode *inode, u64 pos, struct iov_iter *to);
long sgfs_atomic_ioctl(struct file *file, void __user *user);

/* file_seal.c: sealed files (docs/sealed-files.md) */
static inline bool sgfs_is_sealed(const struct inode *inode)
{
	return unlikely(SGFS_I(inode)->flags & SG_FL_SEALED);
}
/* The file has just been opened to write to it. If that fails, it is closed. */
int sgfs_open_to_write(struct inode *inode);
/* The requests of regular files. */
long sgfs_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* file.c: called after holes were filled that mappings may show as zeroes. */
void sgfs_show_filled(struct inode *inode, u64 pos, size_t len);

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
void sgfs_mmap_prepare(struct sgfs *fs);
/*
 * Remove [pos, pos + len) from all mappings, before its pages are freed, or after holes in it were
 * filled.
 */
void sgfs_unmap(struct inode *inode, loff_t pos, loff_t len, bool cows);
/* Remove from all mappings of this system pages that have been cut off (D7). */
void sgfs_mmap_quiesce(struct sgfs *fs);
/* Remove all entries of all mappings of this system. */
void sgfs_mmap_revoke(struct sgfs *fs);

/* mmap_wait.c */
/*
 * The longest wait for other systems with mmap_lock, or in a first attempt with invalidate_lock.
 */
#define SGFS_BRIEF_NS	(20 * NSEC_PER_MSEC)
#define SGFS_ANY_NS	U64_MAX
/**
 * struct sgfs_waiting - a thread that may be about to wait; on its stack
 * @left: how long it may still wait (ns), all waits together; SGFS_ANY_NS: without a limit
 * @last: when @left was last computed (ktime_get_ns())
 * @room_in: the lock of the chunk to whose holder it has given way; SG_ROOM_OTHERS: it has given
 *   way to systems with deferred frees; 0: to none
 */
struct sgfs_waiting {
	struct hlist_bl_node node;
	const struct sgfs *fs;
	const struct task_struct *task;
	u64 left, last, room_in;
};
void sgfs_begin_waiting(const struct sgfs *fs, struct sgfs_waiting *w, u64 ns);
void sgfs_end_waiting(struct sgfs_waiting *w);
/* Do not wait for a lock that was held for long, because it will not be released soon. */
static inline u64 sgfs_brief_ns(const struct sgfs *fs)
{
	return READ_ONCE(fs->vol.stuck) ? 0 : SGFS_BRIEF_NS;
}
/**
 * struct sgfs_attempts - brief attempts of one call. {} at first.
 * @turns: how many. @nospace: of those that needed pages. @blocks: of the file, after the last one.
 */
struct sgfs_attempts {
	unsigned int turns;
	struct sg_nospace nospace;
	u64 blocks;
};
/*
 * Waits for other systems after a brief attempt that ended with -EINTR. The caller holds no lock
 * for which page faults wait. @room_in: of its struct sgfs_waiting. 0: try again. -ENOSPC: for 2 s
 * in total, no other system has freed pages.
 */
int sgfs_wait_outside(struct inode *inode, struct sgfs_attempts *a, u64 room_in);
/*
 * Call @change, which changes the file's pages, with invalidate_lock held exclusively. @change
 * waits only briefly for other systems, and is called again after -EINTR. It has then changed
 * nothing, or continues what it has begun. Each attempt may wait twice as long as the one before,
 * up to 320 ms. If the only free pages are in a locked chunk, the attempts wait for that chunk for
 * @room_ns in total, then return -ENOSPC.
 */
#define SGFS_ROOM_NS	NSEC_PER_SEC
int sgfs_change_pages(struct inode *inode, int (*change)(struct inode *inode, void *arg),
		      void *arg, u64 room_ns);
/* Store, or defer, the time of a coming store by a mapping. */
void sgfs_note_store(struct file *file);
/*
 * Callback of the engine: reports whether other tasks of this system now wait for a lock that the
 * waiting thread holds.
 */
bool sgfs_gives_way(const struct sg_vol *vol);
/*
 * Callback of the engine: stores the chunk's lock to which the waiting thread has given way (struct
 * sgfs_waiting).
 */
void sgfs_room_locked(const struct sg_vol *vol, u64 lock);
int sgfs_store_deferred_time(struct inode *inode);
void sgfs_store_time_soon(struct inode *inode);	/* or later, if another system holds a lock */
/* Store the deferred time, unless there is a later one. The caller has a reference to the inode. */
void sgfs_forget_time(struct inode *inode, s64 time);
static inline int sgfs_store_time(struct inode *inode)
{
	if (likely(!READ_ONCE(SGFS_I(inode)->deferred_time)))
		return 0;
	return sgfs_store_deferred_time(inode);
}

/* mmap_dirty.c */
struct sgfs_layout sgfs_layout_of(const struct inode *inode);
/*
 * Mark pages to which a mapping may store from now on. @seen: the layout before they were looked
 * up.
 */
int sgfs_written_mark(struct inode *inode, u64 first, u64 pages, const struct sgfs_layout *seen);
/* Called before a page that has left the file may be used again (D7). */
void sgfs_written_look(struct inode *inode);
/* Write back stores through mappings to these pages; durable on return. */
int sgfs_written_sync(struct inode *inode, u64 first, u64 last);
/*
 * Write back stores through mappings; without @wait it waits for no other system, because memory
 * reclaim may call it.
 */
int sgfs_written_flush(struct inode *inode, u64 first, u64 last, bool wait);
/*
 * Write back stores through mappings of all inodes; @revoke: each further store needs a fault
 * first.
 */
int sgfs_written_flush_all(struct sgfs *fs, bool revoke);
void sgfs_written_track(struct inode *inode);	/* adds the inode to sgfs.mapped */
void sgfs_written_store_times(struct sgfs *fs);	/* each second */
void sgfs_written_forget_times(struct sgfs *fs);	/* the last attempt, for an unmount */
void sgfs_written_forget(struct inode *inode);

/* data_path.c: the data paths (D5) */
int sgfs_map_usable(struct sgfs *fs, enum sgfs_map map, const char **why);
/* The caller holds window_lock. */
void sgfs_map_attach(struct inode *inode);
void sgfs_map_detach(struct inode *inode);
/* Called after the file got longer, or pages of it were cut off; i_rwsem is held exclusively. */
void sgfs_map_grown(struct inode *inode);
void sgfs_map_cut(struct inode *inode, u64 pos, u64 len);
void sgfs_map_evict(struct inode *inode);
void sgfs_map_quiesce(struct sgfs *fs);
/* Return the bytes that went through a window: the caller walks the rest. */
size_t sgfs_map_read(struct inode *inode, u64 pos, size_t len, struct iov_iter *to, bool nowait);
size_t sgfs_map_write(struct inode *inode, u64 pos, size_t len, struct iov_iter *from);

/* poison.c: bad pages, and how this system detects them */
extern const struct dax_holder_operations sgfs_dax_holder;
void sgfs_poison_init(void);
void sgfs_poison_exit(void);
void sgfs_poison_prepare(struct sgfs *fs);
void sgfs_poison_start(struct sgfs *fs);
void sgfs_poison_stop(struct sgfs *fs);
void sgfs_poison_end(struct sgfs *fs);
bool sgfs_poison_met(struct sgfs *fs, u64 off, size_t len);
ssize_t sgfs_poison_show(struct sgfs *fs, char *buf);
int sgfs_poison_store(struct sgfs *fs, const char *text);

/* sysfs.c */
int sgfs_sysfs_init(void);
void sgfs_sysfs_exit(void);
int sgfs_sysfs_add(struct sgfs *fs);
void sgfs_sysfs_remove(struct sgfs *fs);

#endif
