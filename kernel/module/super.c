// SPDX-License-Identifier: GPL-2.0
/* Mount, remount, unmount; the identity of this system; the reaction to damage. */
#include <linux/blkdev.h>
#include <linux/cc_platform.h>
#include <linux/dmi.h>
#include <linux/fs_context.h>
#include <linux/module.h>
#include <linux/statfs.h>
#include <linux/utsname.h>
#include <linux/uuid.h>
#include <asm/cpufeature.h>

#include "bells.h"
#include "format/version.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* time to find out whether the slot's owner with this machine's id is live */
#define PATIENCE_MS	1000
/* time to find out whether any system is live, before a relocation */
#define RELOCATE_MS	5000

struct workqueue_struct *sgfs_wq;

/* The id of this boot. Modules cannot read the kernel's own boot id. */
static u8 boot_id[16];

/* --- identity of this system ------------------------------------------------------------------ */

void sgfs_identify(struct sg_identity *id)
{
	const char *machine = dmi_get_system_info(DMI_PRODUCT_UUID);
	uuid_t uuid;

	memset(id, 0, sizeof(*id));
	if (machine && !uuid_parse(machine, &uuid))
		export_uuid(id->machine, &uuid);
	memcpy(id->boot, boot_id, sizeof(id->boot));
	strscpy(id->name, init_uts_ns.name.nodename, sizeof(id->name));
	strscpy(id->version, SG_RELEASE, sizeof(id->version));
	id->beat_ns = SG_MAINTAIN_MS * NSEC_PER_MSEC;
}

/* --- damage ----------------------------------------------------------------------------------- */

/*
 * The VFS also reads SB_RDONLY at the thaw. With this flag, the VFS treats the superblock as
 * read-only since before the freeze. It then never releases the writers, and does not call the
 * module. So the flag may be set only while no freeze is in effect or about to begin, or by the
 * thaw itself (sgfs_unfreeze_fs()). This function does not sleep: if s_umount is held, the next
 * settling sets the flag. Until then the engine refuses changes.
 */
void sgfs_show_failed(struct sgfs *fs)
{
	struct super_block *sb = fs->sb;

	if (!READ_ONCE(fs->failed) || sb_rdonly(sb) || !down_write_trylock(&sb->s_umount))
		return;
	if (fs->failed && sb->s_writers.frozen == SB_UNFROZEN)
		sb->s_flags |= SB_RDONLY;
	up_write(&sb->s_umount);
}

/*
 * Handle damage whose place the engine has already logged. Engine locks may be held, so this code
 * does not sleep.
 */
static void sgfs_on_damage(struct sg_vol *vol, u64 ino, u64 off)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);

	trace_sgfs_damage(fs->sb, ino, off);
	fs->damaged = true;
	switch (fs->opt.errors) {
	case SGFS_ERRORS_CONTINUE:
		return;
	case SGFS_ERRORS_PANIC:
		panic("%s (%s): damaged, and errors=panic\n", SGFS_NAME, fs->sb->s_id);
	case SGFS_ERRORS_REMOUNT_RO:
		break;
	}
	/*
	 * Several tasks may find damage at the same time. A mount that was read-only before remains
	 * read-only.
	 */
	if (xchg(&fs->failed, true))
		return;
	/*
	 * Set this before the check: in a remount to writable the VFS still has the read-only flag.
	 */
	WRITE_ONCE(vol->read_only, true);
	/* set again, because sgfs_let_engine_write() may have cleared it */
	WRITE_ONCE(fs->failed, true);
	queue_work(sgfs_wq, &fs->bad);	/* stores by mappings now need faults, which fail */
	if (sb_rdonly(fs->sb))
		return;		/* sgfs_show_failed() does the rest if it becomes writable */
	sgfs_show_failed(fs);
	sg_log(fs->sb, SG_ERR, "now read-only (errors=remount-ro); run fsck.stargatefs");
}

/* --- super block operations ------------------------------------------------------------------- */

static int sgfs_statfs(struct dentry *dentry, struct kstatfs *st)
{
	struct super_block *sb = dentry->d_sb;
	struct sgfs *fs = SGFS(sb);
	struct sg_statfs s;
	u64 *id = (u64 *)fs->vol.sb.uuid;
	int err = sgfs_alive(sb) ? sg_statfs(&fs->vol, &s) : -EIO;

	if (err)
		return err;
	st->f_type = SG_FS_MAGIC;
	st->f_bsize = PAGE_SIZE;
	st->f_blocks = s.pages;
	st->f_bfree = s.free_pages;
	st->f_bavail = s.free_pages;
	st->f_files = s.inodes;
	st->f_ffree = s.inodes - s.used_inodes;
	st->f_namelen = SG_NAME_MAX;
	st->f_fsid = u64_to_fsid(id[0] ^ id[1]);
	return 0;
}

/*
 * Sync the volume. All changes except stores through mappings are durable when their system call
 * returns.
 */
static int sgfs_sync_fs(struct super_block *sb, int wait)
{
	return wait ? sgfs_written_flush_all(SGFS(sb), false) : 0;
}

/*
 * Freeze the mount. The VFS blocks writers by system call; stores through mappings need a new
 * fault. The engine's own changes (a reclaim in statfs, for example) must wait, too. For a brief
 * freeze they wait at a separate gate (snapshot_freeze.c).
 */
static int sgfs_freeze_fs(struct super_block *sb)
{
	struct sgfs *fs = SGFS(sb);
	int err = sgfs_written_flush_all(fs, true);

	if (err || fs->snapshot_frozen)
		return err;
	err = sgfs_settle_pause(fs);
	if (err)
		return err;
	WRITE_ONCE(fs->vol.read_only, true);
	return 0;
}

/*
 * Let the engine write again. Damage may be found at any time; it makes the engine read-only even
 * during this call.
 */
static void sgfs_let_engine_write(struct sgfs *fs)
{
	WRITE_ONCE(fs->vol.read_only, false);
	smp_mb();	/* pairs with the xchg() of sgfs_on_damage() */
	if (READ_ONCE(fs->failed))
		WRITE_ONCE(fs->vol.read_only, true);
}

static int sgfs_unfreeze_fs(struct super_block *sb)
{
	struct sgfs *fs = SGFS(sb);

	if (!fs->snapshot_frozen && !READ_ONCE(fs->failed))
		sgfs_let_engine_write(fs);
	if (READ_ONCE(fs->failed))
		sb->s_flags |= SB_RDONLY;
	if (fs->snapshot_frozen)
		return 0;
	sgfs_settle_resume(fs);
	return 0;
}

static void sgfs_unmount(struct sgfs *fs)
{
	sgfs_poison_stop(fs);
	sgfs_virtual_release(fs);
	sgfs_holders_end(fs);
	sgfs_sems_stop(fs);
	sgfs_membership_stop(fs);
	if (fs->joined && fs->vol.shut_down)
		sg_abandon(&fs->vol);
	else if (fs->joined)
		sg_leave(&fs->vol);
	fs->joined = false;
	sgfs_membership_end(fs);
	sgfs_poison_end(fs);
	sg_windows_destroy(fs->windows);
	fs->windows = NULL;
	synchronize_rcu();	/* path walks without a reference may still be comparing counters */
	sgfs_memory_release(&fs->mem);
	sgfs_flush_use(fs, false);
}

static void sgfs_put_super(struct super_block *sb)
{
	sgfs_sysfs_remove(SGFS(sb));
	sgfs_unmount(SGFS(sb));
}

/* umount -f: log the processes that keep the mount, because the error cannot name them. */
static void sgfs_umount_begin(struct super_block *sb)
{
	sgfs_holders_report(SGFS(sb));
	sgfs_lent_report(SGFS(sb));
}

static const struct super_operations super_operations = {
	.alloc_inode	= sgfs_alloc_inode,
	.free_inode	= sgfs_free_inode,
	.drop_inode	= sgfs_drop_inode,
	.evict_inode	= sgfs_evict_inode,
	.put_super	= sgfs_put_super,
	.umount_begin	= sgfs_umount_begin,
	.sync_fs	= sgfs_sync_fs,
	.freeze_super	= sgfs_freeze_super,
	.thaw_super	= sgfs_thaw_super,
	.freeze_fs	= sgfs_freeze_fs,
	.unfreeze_fs	= sgfs_unfreeze_fs,
	.statfs		= sgfs_statfs,
	.show_options	= sgfs_show_options,
};

/* --- mounting --------------------------------------------------------------------------------- */

static int sgfs_check_platform(struct fs_context *fc)
{
	if (cpu_feature_enabled(X86_FEATURE_XENPV))
		return invalfc(fc, "a Xen PV guest does not know the physical addresses of "
			       "its memory");
	if (cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT))
		return invalfc(fc, "the memory of this guest is encrypted (SEV or TDX): it cannot "
			       "be shared");
	return 0;
}

static int sgfs_open_here(struct sgfs *fs)
{
	struct sg_vol *vol = &fs->vol;
	int err = sg_open(vol, fs->mem.base, fs->mem.size, fs->mem.read_only, fs->sb);

	if (err != -EROFS || !sb_rdonly(fs->sb) || fs->mem.read_only)
		return err;
	/* Report whether the volume has features that only writers must support. */
	fs->mem.read_only = true;
	return sg_open(vol, fs->mem.base, fs->mem.size, true, fs->sb);
}

/* Report whether the volume was made for another address, or a relocation of it has begun. */
static bool sgfs_is_displaced(const struct sgfs *fs, int err)
{
	const struct sg_super *vol = &fs->vol.sb;

	return err ? err == -EUCLEAN && vol->incompat & SG_INCOMPAT_MOVING :
		     vol->phys != fs->mem.phys;
}

/* Return the reason why the mount cannot store. */
static const char *sgfs_unwritable(const struct sgfs *fs)
{
	return fs->opt.nojoin ? "this mount does not join (nojoin)" : "the device is read-only";
}

/*
 * Relocate the volume at the user's request. All systems that had the volume mounted must have
 * left, or be dead.
 */
static int sgfs_relocate(struct fs_context *fc, struct sgfs *fs)
{
	struct sg_relocate_result res;
	struct sg_identity id;
	const struct sg_relocate_opts opts = {
		.phys = fs->mem.phys, .id = &id, .wait_ms = RELOCATE_MS, .owner = fs->sb,
	};
	int err;

	if (fs->mem.read_only) {
		errorfc(fc, "relocate: the volume has another base, but %s", sgfs_unwritable(fs));
		return -EINVAL;	/* after EROFS mount(8) would retry read-only */
	}
	sgfs_identify(&id);
	err = sg_relocate(fs->mem.base, fs->mem.size, &opts, &res);
	if (err)
		errorfc(fc, "relocate: %s", res.why);
	return err;
}

static int sgfs_open_volume(struct fs_context *fc, struct sgfs *fs)
{
	struct sg_vol *vol = &fs->vol;
	int err = sgfs_open_here(fs);

	if (fs->opt.relocate && sgfs_is_displaced(fs, err)) {
		err = sgfs_relocate(fc, fs);
		if (err)
			return err;
		err = sgfs_open_here(fs);
	}
	if (err) {
		errorfc(fc, "%s", vol->why);
		/*
		 * After EROFS mount(8) would silently mount read-only, which only the user may
		 * request.
		 */
		return err == -EROFS ? -EINVAL : err;
	}
	if (vol->sb.phys != fs->mem.phys) {
		errorfc(fc, "wrong base: the volume was made for physical address 0x%llx, but lies "
			"at 0x%llx (place it there, or move it here: -o relocate)",
			vol->sb.phys, (u64)fs->mem.phys);
		return -EINVAL;
	}
	vol->on_damage = sgfs_on_damage;
	sgfs_membership_prepare(fs);
	sgfs_poison_start(fs);
	err = sg_bad_refuse(vol);
	if (err)
		errorfc(fc, "%s", vol->why);
	return err;
}

/*
 * A read-only mount takes a slot in the mount table too, if the device can be written. So it does
 * necessary recovery, and no system reuses a page that it may be reading. With a device that cannot
 * be written, or with nojoin, the mount sees changes by other systems, but they do not see the
 * mount. On a node, nojoin serves a volume that all systems only read: machines have its memory
 * read-only.
 */
static int sgfs_join(struct fs_context *fc, struct sgfs *fs)
{
	struct sg_identity id;
	int err;

	if (fs->mem.read_only) {
		if (!sg_needs_recovery(&fs->vol))
			return 0;
		errorfc(fc, "the volume is in use or needs recovery, but %s: "
			"other systems would not wait for its readers", sgfs_unwritable(fs));
		return -EROFS;
	}
	sgfs_identify(&id);
	err = sg_join(&fs->vol, &id, PATIENCE_MS, false);
	if (err) {
		errorfc(fc, "%s", fs->vol.why);
		return err;
	}
	fs->joined = true;
	WRITE_ONCE(fs->vol.read_only, fs->sb->s_flags & SB_RDONLY);
	sgfs_membership_start(fs);
	return 0;
}

static void sgfs_super_describe(struct super_block *sb, const struct sg_super *vol)
{
	sb->s_magic = SG_FS_MAGIC;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_maxbytes = SG_FILE_MAX;
	sb->s_time_gran = 1;
	sb->s_time_min = div_s64(S64_MIN, NSEC_PER_SEC) + 1;
	sb->s_time_max = div_s64(S64_MAX, NSEC_PER_SEC) - 1;
	sb->s_flags |= SB_POSIXACL | SB_I_VERSION | SB_NOSEC;
	sb->s_op = &super_operations;
	sb->s_xattr = sgfs_xattr_handlers;
	sb->s_export_op = &sgfs_export_operations;
	set_default_d_op(sb, &sgfs_dentry_operations);
	sgfs_super_set_uuid(sb, vol->uuid);
}

static int sgfs_make_root(struct super_block *sb)
{
	struct inode *inode = sgfs_iget_number(sb, SG_INO_ROOT, 0);

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	if (!S_ISDIR(inode->i_mode)) {
		iput(inode);
		return -EUCLEAN;
	}
	sb->s_root = d_make_root(inode);
	return sb->s_root ? 0 : -ENOMEM;
}

static int sgfs_find_memory(struct fs_context *fc, struct sgfs *fs)
{
	struct super_block *sb = fs->sb;
	int err;

	if (sb->s_bdev) {
		err = sgfs_memory_of_device(fc, sb, &fs->mem);
		fs->mem.read_only |= fs->opt.nojoin;
		return err;
	}
	snprintf(sb->s_id, sizeof(sb->s_id), "0x%llx", fs->opt.phys);
	return sgfs_memory_of_range(fc, fs->opt.phys, fs->opt.size, sb_rdonly(sb), &fs->mem);
}

static int sgfs_map_refused(struct fs_context *fc, enum sgfs_map map, const char *why)
{
	return invalfc(fc, "map=%s is not possible: %s", sgfs_map_name(map), why);
}

static int sgfs_fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct sgfs *fs = SGFS(sb);
	const char *why;
	int err;

	fs->sb = sb;
	err = sgfs_check_platform(fc) ?: sgfs_find_memory(fc, fs);
	if (err)
		return err;
	sgfs_flush_use(fs, sgfs_flush_needed(&fs->mem, fs->opt.flush));
	err = sgfs_open_volume(fc, fs);
	if (err)
		goto out;
	sgfs_super_describe(sb, &fs->vol.sb);
	if (fs->mem.read_only)
		sb->s_flags |= SB_RDONLY;
	err = sgfs_data_usable(fc, fs, fs->opt.data) ?: sgfs_join(fc, fs);
	if (err)
		goto out;
	err = sgfs_map_usable(fs, fs->opt.map, &why);
	if (err) {
		sgfs_map_refused(fc, fs->opt.map, why);
		goto out;
	}
	err = sgfs_virtual_make(fs);
	if (err)
		goto out;
	err = sgfs_make_root(sb);
	if (err) {
		errorfc(fc, "the root directory cannot be read: run fsck.stargatefs");
		goto out;
	}
	err = sgfs_sysfs_add(fs);
	if (!err)
		return 0;
	dput(sb->s_root);	/* no put_super: its work is done here */
	sb->s_root = NULL;
out:
	sgfs_unmount(fs);
	return err;
}

/*
 * Compare a superblock with the device. A search may find it until sgfs_kill_sb() has returned, but
 * its sgfs is freed before that. The superblock has the device's number from the beginning, but the
 * device itself only if that could be opened.
 */
static int sgfs_test_range(struct super_block *sb, struct fs_context *fc)
{
	const struct sgfs *a, *b = fc->s_fs_info;

	if (MAJOR(sb->s_dev))
		return 0;
	a = SGFS(sb);
	return a->opt.set & SGFS_SET_PHYS && a->opt.phys == b->opt.phys;
}

static int sgfs_get_tree_range(struct fs_context *fc)
{
	struct super_block *sb = sget_fc(fc, sgfs_test_range, set_anon_super_fc);
	int err;

	if (IS_ERR(sb))
		return PTR_ERR(sb);
	if (!sb->s_root) {
		err = sgfs_fill_super(sb, fc);
		if (err) {
			deactivate_locked_super(sb);
			return err;
		}
		sb->s_flags |= SB_ACTIVE;
	} else if ((fc->sb_flags ^ sb->s_flags) & SB_RDONLY) {
		deactivate_locked_super(sb);
		return invalfc(fc, "mounted already, %s", sb_rdonly(sb) ? "read-only" : "writable");
	}
	fc->root = dget(sb->s_root);
	return 0;
}

static void sgfs_free_fs(struct sgfs *fs)
{
	if (!fs)
		return;
	sgfs_membership_exit(fs);
	sgfs_units_free(fs);
	cleanup_srcu_struct(&fs->faults);
	free_percpu(fs->counts);
	kfree(fs);
}

static struct sgfs *sgfs_alloc_fs(const struct sgfs_options *opt)
{
	struct sgfs *fs = kzalloc(sizeof(*fs), GFP_KERNEL);

	if (!fs)
		return NULL;
	if (init_srcu_struct(&fs->faults)) {
		kfree(fs);
		return NULL;
	}
	fs->opt = *opt;
	fs->counts = alloc_percpu(struct sgfs_counts);
	if (!fs->counts || sgfs_membership_init(fs)) {
		sgfs_free_fs(fs);
		return NULL;
	}
	sgfs_mmap_prepare(fs);
	mutex_init(&fs->mappers_lock);
	INIT_LIST_HEAD(&fs->mappers);
	INIT_LIST_HEAD(&fs->uses);
	mutex_init(&fs->windows_lock);
	mutex_init(&fs->flush_lock);
	sgfs_userlocks_init(fs);
	spin_lock_init(&fs->mapped_lock);
	INIT_LIST_HEAD(&fs->mapped);
	sgfs_poison_prepare(fs);
	sgfs_kept_init(fs);
	sgfs_holders_init(fs);
	sgfs_lent_init(fs);
	sgfs_sems_init(fs);
	return fs;
}

/*
 * Handle a second mount of a mounted volume: both share the options, so it cannot have different
 * ones.
 */
static int sgfs_join_mount(struct fs_context *fc)
{
	struct super_block *sb = fc->root->d_sb;
	int err = sgfs_options_agree(fc, &SGFS(sb)->opt);

	if (!err)
		return 0;
	dput(fc->root);
	fc->root = NULL;
	deactivate_locked_super(sb);
	return err;
}

static int sgfs_get_tree(struct fs_context *fc)
{
	const struct sgfs_options *opt = fc->fs_private;
	unsigned int range = opt->set & (SGFS_SET_PHYS | SGFS_SET_SIZE);
	int err;

	if (range && range != (SGFS_SET_PHYS | SGFS_SET_SIZE))
		return invalfc(fc, "phys= and size= belong together");
	if (fc->sb_flags & SB_MANDLOCK)
		return invalfc(fc, "mandatory locks are not supported");
	if (opt->nojoin && !(fc->sb_flags & SB_RDONLY))
		return invalfc(fc, "nojoin: a mount that does not join cannot write: mount "
			       "it with ro,nojoin");
	fc->s_fs_info = sgfs_alloc_fs(opt);
	if (!fc->s_fs_info)
		return -ENOMEM;
	err = range ? sgfs_get_tree_range(fc) : get_tree_bdev(fc, sgfs_fill_super);
	if (err)
		return err;
	return fc->s_fs_info ? sgfs_join_mount(fc) : 0;	/* a new superblock has taken it */
}

/* --- remounting ------------------------------------------------------------------------------- */

static int sgfs_super_make_writable(struct fs_context *fc, struct sgfs *fs)
{
	if (fs->vol.shut_down) {
		errorfc(fc, "another system has fenced this one: unmount and mount again");
		return -EROFS;
	}
	if (!fs->joined) {
		errorfc(fc, "%s", sgfs_unwritable(fs));
		return -EROFS;
	}
	WRITE_ONCE(fs->failed, false);
	sgfs_let_engine_write(fs);
	return 0;
}

/* mount(8) repeats the options of the mount; a mount of a device has neither. */
static bool sgfs_elsewhere(const struct sgfs_options *asked, const struct sgfs_options *now)
{
	unsigned int place = asked->set & (SGFS_SET_PHYS | SGFS_SET_SIZE);

	return place & ~now->set || asked->phys != now->phys || asked->size != now->size;
}

static int sgfs_reconfigure(struct fs_context *fc)
{
	struct super_block *sb = fc->root->d_sb;
	const struct sgfs_options *opt = fc->fs_private;
	struct sgfs *fs = SGFS(sb);
	bool ro = fc->sb_flags & SB_RDONLY;
	const char *why;
	int err = 0;

	if (sgfs_elsewhere(opt, &fs->opt))
		return invalfc(fc, "phys= and size= cannot be changed by a remount");
	if (opt->relocate && !fs->opt.relocate)	/* mount(8) may repeat the option from fstab */
		return invalfc(fc, "relocate: a remount does not move a volume; unmount it, and "
			       "mount it with this option");
	if (opt->nojoin && !fs->opt.nojoin)
		return invalfc(fc, "nojoin: a remount does not leave the volume; unmount it, and "
			       "mount it with this option");
	if (opt->set & SGFS_SET_FLUSH && opt->flush != fs->opt.flush)
		return invalfc(fc, "flush: a remount does not change it; unmount the volume, and mount "
			       "it with this option (changes made without write-back stay in caches)");
	if (opt->set & SGFS_SET_MAP && sgfs_map_usable(fs, opt->map, &why))
		return sgfs_map_refused(fc, opt->map, why);
	err = sgfs_data_usable(fc, fs, opt->set & SGFS_SET_DATA ? opt->data : SGFS_DATA_INPLACE);
	if (err)
		return err;
	sync_filesystem(sb);
	if (!ro && sb_rdonly(sb))
		err = sgfs_super_make_writable(fc, fs);
	if (err)
		return err;
	/* A VM may have opened region in the meantime. */
	if (opt->set & SGFS_SET_MAP && sgfs_set_map(fs, opt->map, &why)) {
		if (sb_rdonly(sb))
			WRITE_ONCE(fs->vol.read_only, true);
		return sgfs_map_refused(fc, opt->map, why);
	}
	if (ro)
		WRITE_ONCE(fs->vol.read_only, true);
	if (opt->set & SGFS_SET_ERRORS)
		fs->opt.errors = opt->errors;
	if (opt->set & SGFS_SET_DATA)
		WRITE_ONCE(fs->opt.data, opt->data);
	if (sgfs_region_differs(opt, &fs->opt)) {
		fs->opt.region_uid = opt->region_uid;
		fs->opt.region_gid = opt->region_gid;
		fs->opt.region_mode = opt->region_mode;
		sgfs_virtual_give(fs);
	}
	if (opt->region_marked)
		WRITE_ONCE(fs->opt.region_marked, true);
	return 0;
}

static void sgfs_free_fc(struct fs_context *fc)
{
	kfree(fc->fs_private);
	sgfs_free_fs(fc->s_fs_info);
}

static const struct fs_context_operations context_operations = {
	.parse_param	= sgfs_parse,
	.get_tree	= sgfs_get_tree,
	.reconfigure	= sgfs_reconfigure,
	.free		= sgfs_free_fc,
};

static int sgfs_init_fs_context(struct fs_context *fc)
{
	struct sgfs_options *opt = kzalloc(sizeof(*opt), GFP_KERNEL);

	if (!opt)
		return -ENOMEM;
	opt->errors = SGFS_ERRORS_REMOUNT_RO;
	opt->region_uid = GLOBAL_ROOT_UID;
	opt->region_gid = GLOBAL_ROOT_GID;
	opt->region_mode = SGFS_REGION_MODE;
	if (fc->purpose == FS_CONTEXT_FOR_RECONFIGURE) {
		*opt = SGFS(fc->root->d_sb)->opt;
		opt->set = 0;
	}
	fc->fs_private = opt;
	fc->ops = &context_operations;
	return 0;
}

static void sgfs_kill_sb(struct super_block *sb)
{
	struct sgfs *fs = SGFS(sb);

	/*
	 * Unmount. The maintenance and deferred times hold inodes, which must be evicted now. The
	 * maintenance may wait for a system that does not release a lock.
	 */
	WRITE_ONCE(fs->vol.hurry, true);
	sgfs_uses_end(fs);
	sgfs_settle_end(fs);
	/*
	 * A mount that was made read-only stores its deferred times and reclaims its deferred frees
	 * too, but not in a damaged volume.
	 */
	if (!fs->damaged)
		WRITE_ONCE(fs->vol.read_only, fs->mem.read_only);
	sgfs_written_forget_times(fs);
	if (fs->opt.set & SGFS_SET_PHYS)
		kill_anon_super(sb);
	else
		kill_block_super(sb);
	sgfs_free_fs(fs);
}

static struct file_system_type fs_type = {
	.owner			= THIS_MODULE,
	.name			= SGFS_NAME,
	.init_fs_context	= sgfs_init_fs_context,
	.parameters		= sgfs_parameters,
	.kill_sb		= sgfs_kill_sb,
	.fs_flags		= FS_REQUIRES_DEV | FS_ALLOW_IDMAP,
};
MODULE_ALIAS_FS(SGFS_NAME);

/* --- the module ------------------------------------------------------------------------------- */

static int __init sgfs_init(void)
{
	int err;

	get_random_bytes(boot_id, sizeof(boot_id));
	sgfs_wq = alloc_workqueue(SGFS_NAME,
				  WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_SYSFS, 0);
	if (!sgfs_wq)
		return -ENOMEM;
	err = sgfs_inode_cache_init();
	if (err)
		goto no_cache;
	err = sgfs_mmap_init();
	if (err)
		goto no_mmap;
	err = sgfs_sysfs_init();
	if (err)
		goto no_sysfs;
	sgfs_poison_init();
	err = sgfs_ivshmem_init();
	if (err)
		goto no_bells;
	err = register_filesystem(&fs_type);
	if (!err)
		return 0;
	sgfs_ivshmem_exit();
no_bells:
	sgfs_poison_exit();
	sgfs_sysfs_exit();
no_sysfs:
	sgfs_mmap_exit();
no_mmap:
	sgfs_inode_cache_exit();
no_cache:
	destroy_workqueue(sgfs_wq);
	return err;
}

static void __exit sgfs_exit(void)
{
	unregister_filesystem(&fs_type);
	sgfs_ivshmem_exit();
	sgfs_poison_exit();
	sgfs_sysfs_exit();
	sgfs_mmap_exit();
	sgfs_inode_cache_exit();
	destroy_workqueue(sgfs_wq);
}

module_init(sgfs_init);
module_exit(sgfs_exit);
MODULE_DESCRIPTION("StargateFS: a file system in memory that several systems share");
MODULE_VERSION(SG_RELEASE);
MODULE_LICENSE("GPL");
