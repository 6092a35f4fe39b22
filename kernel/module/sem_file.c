// SPDX-License-Identifier: GPL-2.0
/*
 * The file .stargate/semaphores: a process gives each descriptor one object of the volume
 * (uapi/semctl.h). The object is open as long as the descriptor is open or mapped. So the kernel
 * detects when no process here uses the object any more, however the processes ended. The mount
 * remains meanwhile.
 *
 * Objects have the permissions of files in the volume's root: a user who may create and remove
 * files there may create and remove objects. The owner and mode of an object determine which users
 * may open it.
 */
#include <linux/fs_struct.h>
#include <linux/mount.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "sem_priv.h"
#include "uapi/netlink.h"

#define LIST_MAX	64	/* objects per call */

/* --- permissions ------------------------------------------------------------------------------ */

static bool sgfs_is_owner(struct file *file, u32 uid)
{
	vfsuid_t owner = make_vfsuid(file_mnt_idmap(file), &init_user_ns, KUIDT_INIT(uid));

	return vfsuid_eq_kuid(owner, current_fsuid());
}

static bool sgfs_is_in_group(struct file *file, u32 gid)
{
	return vfsgid_in_group_p(make_vfsgid(file_mnt_idmap(file), &init_user_ns, KGIDT_INIT(gid)));
}

static int sgfs_sem_file_may_open(struct file *file, const struct sg_sem_stat *st, bool look)
{
	u32 want = look ? 4 : 6, mode = st->mode;

	if (sgfs_is_owner(file, st->uid))
		mode >>= 6;
	else if (sgfs_is_in_group(file, st->gid))
		mode >>= 3;
	return (mode & want) == want || capable(CAP_DAC_OVERRIDE) ? 0 : -EACCES;
}

static struct inode *sgfs_root_of(struct file *file)
{
	return d_inode(file_inode(file)->i_sb->s_root);
}

/*
 * The objects of a network (docs/network.md) have the rights of the system, so root of a container
 * has no right to make or to remove them.
 */
static bool sgfs_may_name(const char *name)
{
	size_t len = strlen(SG_NET_PERMIT);

	return strncmp(name, SG_NET_PERMIT, len) || (name[len] && name[len] != '.') ||
	       capable(CAP_SYS_ADMIN);
}

static int sgfs_may_make(struct file *file)
{
	return inode_permission(file_mnt_idmap(file), sgfs_root_of(file), MAY_WRITE | MAY_EXEC);
}

static int sgfs_may_remove(struct file *file, const struct sg_sem_stat *st)
{
	struct inode *root = sgfs_root_of(file);
	int err = sgfs_may_make(file);	/* this check is first, because it refreshes the root */

	if (err)
		return err;
	if (root->i_mode & S_ISVTX && !sgfs_is_owner(file, st->uid) && !capable(CAP_FOWNER) &&
	    !sgfs_is_owner(file, from_kuid(&init_user_ns, root->i_uid)))
		return -EPERM;
	return 0;
}

/* --- one object ------------------------------------------------------------------------------- */

/*
 * Return the length of a name from user space, or an error. The engine itself checks the name.
 */
static int sgfs_length_of(const char name[SG_SEM_NAME_ROOM])
{
	size_t len = strnlen(name, SG_SEM_NAME_ROOM);

	return len < SG_SEM_NAME_ROOM ? (int)len : -ENAMETOOLONG;
}

static struct sg_sem_new sgfs_new_of(struct file *file, const struct sg_ioc_sem_open *o)
{
	struct mnt_idmap *idmap = file_mnt_idmap(file);

	return (struct sg_sem_new){
		.type = o->type, .life = o->life, .flags = o->flags, .initial = o->initial,
		.mode = o->mode & 0777 & ~current_umask(), .now = ktime_get_real_ns(),
		.uid = from_kuid(&init_user_ns, mapped_fsuid(idmap, &init_user_ns)),
		.gid = from_kgid(&init_user_ns, mapped_fsgid(idmap, &init_user_ns)),
	};
}

static int sgfs_make_object(struct file *file, struct sgfs_sem *s, const struct sg_ioc_sem_open *o,
			    int len)
{
	struct sg_sem_new new;

	if (!sgfs_may_name(o->name))
		return -EACCES;
	/*
	 * An object needs an owner, as a file does, so an idmapped mount must map the caller's ids.
	 */
	if (!fsuidgid_has_mapping(file_inode(file)->i_sb, file_mnt_idmap(file)))
		return -EOVERFLOW;
	new = sgfs_new_of(file, o);
	return sgfs_may_make(file) ?:
	       sg_sem_create(&s->fs->vol, o->name, len, &new, true, s->mapped, &s->sem);
}

/*
 * Open first, then check the permission, because the name may belong to another object at any time.
 */
static int sgfs_open_object(struct file *file, struct sgfs_sem *s, const struct sg_ioc_sem_open *o,
			    int len)
{
	struct sg_sem_stat st;
	int err = sg_sem_open(&s->fs->vol, o->name, len, 0, s->mapped, &s->sem);

	if (err)
		return err;
	err = sg_sem_fstat(&s->fs->vol, &s->sem, &st) ?: sgfs_sem_file_may_open(file, &st, s->look);
	if (!err && o->type && o->type != s->sem.type)
		err = -EPROTOTYPE;
	if (err)
		sg_sem_close(&s->fs->vol, &s->sem);
	return err;
}

/* number of attempts, if the object is created and removed in between */
#define FIND_TURNS	100

static int sgfs_find_object(struct file *file, struct sgfs_sem *s, const struct sg_ioc_sem_open *o,
			    int len)
{
	unsigned int turn = 0;
	int err;

	if (o->how & SG_SEM_EXCL)
		return sgfs_make_object(file, s, o, len);
	do {
		err = sgfs_open_object(file, s, o, len);
		if (err != -ENOENT || !(o->how & SG_SEM_CREATE))
			return err;
		err = sgfs_make_object(file, s, o, len);
		if (err == -EEXIST && fatal_signal_pending(current))
			return -EINTR;
	} while (err == -EEXIST && ++turn < FIND_TURNS);
	return err == -EEXIST ? -EBUSY : err;
}

static bool sgfs_makes_sense(const struct sg_ioc_sem_open *o)
{
	if (o->how & ~SG_SEM_HOW_KNOWN || o->reserved[0] || o->reserved[1] || o->cell)
		return false;
	if (o->how & SG_SEM_CREATE)
		return o->type;
	return !(o->how & SG_SEM_EXCL) && !o->flags && !o->life && !o->mode && !o->initial;
}

/* Make the descriptor an owner of locks. No other task sees it yet, and the mount is writable. */
static int sgfs_be_owner(struct sgfs_sem *s)
{
	char comm[TASK_COMM_LEN];
	int err;

	get_task_comm(comm, current);
	err = sg_sem_enter(&s->fs->vol, task_tgid_nr(current), task_pid_nr(current), comm,
			   &s->self);
	s->owns = !err;
	if (err)
		sg_sem_close(&s->fs->vol, &s->sem);
	return err;
}

int sgfs_sem_bind(struct file *file, struct sg_ioc_sem_open *o)
{
	struct sgfs_sem *s = file->private_data;
	int len = sgfs_length_of(o->name), err;

	if (len < 0)
		return len;
	if (!sgfs_makes_sense(o))
		return -EINVAL;
	err = sgfs_sem_listen(s->fs) ?: mnt_want_write_file(file);
	if (err)
		return err;
	/* the holder of s->lock may wait for another system */
	err = mutex_lock_killable(&s->lock);
	if (err) {
		mnt_drop_write_file(file);
		return err;
	}
	err = s->bound ? -EBUSY : 0;
	if (!err) {
		s->look = o->how & SG_SEM_LOOK;
		s->mapped = !(o->how & (SG_SEM_LOOK | SG_SEM_BY_KERNEL));
		err = sgfs_find_object(file, s, o, len);
		if (!err && o->how & SG_SEM_BY_HANDLE)
			err = sgfs_be_owner(s);
	}
	if (!err) {
		o->type = s->sem.type;
		o->flags = s->sem.flags;
		if (s->sem.cell >= SG_SEM_CELL_FIRST)
			o->cell = s->sem.cell;
		smp_store_release(&s->bound, true);
	}
	mutex_unlock(&s->lock);
	mnt_drop_write_file(file);
	return err;
}

/* --- looking ---------------------------------------------------------------------------------- */

static void sgfs_say(struct sg_ioc_sem_stat *out, const struct sg_sem_stat *st)
{
	out->type = st->type;
	out->life = st->life;
	out->flags = st->flags;
	out->serial = st->serial;
	out->uid = st->uid;
	out->gid = st->gid;
	out->mode = st->mode;
	out->died = st->died;
	out->lost = st->lost;
	out->slot = st->slot;
	out->pid = st->pid;
	out->tid = st->tid;
	out->created = st->created;
	out->users = st->users;
	out->waiters = st->waiters;
	out->initial = st->initial;
	out->value = st->value;
	out->claims_lost = st->claims_lost;
	out->sent = st->sent;
	out->receivers = st->receivers;
	out->since = st->since;
	memcpy(out->comm, st->comm, sizeof(out->comm));
}

static void sgfs_say_system(struct sgfs *fs, struct sg_ioc_sem_stat *out)
{
	struct sg_slot slot;

	if (out->slot >= 0 && !sg_slot_read(&fs->vol, out->slot, &slot))
		strscpy(out->system, slot.name, sizeof(out->system));
}

static int sgfs_stat_object(struct sgfs_sem *s, struct sg_ioc_sem_stat *io)
{
	struct sg_sem_stat st;
	char name[SG_SEM_NAME_ROOM];
	int len = sgfs_length_of(io->name), err = 0;

	if (len < 0)
		return len;
	if (len)
		err = sg_sem_stat(&s->fs->vol, io->name, len, &st);
	else if (smp_load_acquire(&s->bound))
		err = sg_sem_fstat(&s->fs->vol, &s->sem, &st);
	else
		err = -ENOTCONN;
	if (err)
		return err;
	memcpy(name, io->name, sizeof(name));
	memset(io, 0, sizeof(*io));
	memcpy(io->name, name, len);
	sgfs_say(io, &st);
	sgfs_say_system(s->fs, io);
	return 0;
}

struct listing {
	struct sg_ioc_sem_stat *to;
	unsigned int n, room;
};

static bool sgfs_sem_file_list_one(void *ctx, const char *name, u32 len,
				   const struct sg_sem_stat *st)
{
	struct listing *l = ctx;

	if (l->n == l->room || len >= SG_SEM_NAME_ROOM)
		return l->n != l->room;
	memcpy(l->to[l->n].name, name, len);
	sgfs_say(&l->to[l->n++], st);
	return true;
}

static int sgfs_list_objects(struct sgfs_sem *s, struct sg_ioc_sem_list *io)
{
	struct listing l = { .room = min_t(u32, io->room, LIST_MAX) };
	unsigned int i;
	int err;

	if (!l.room)
		return -EINVAL;
	l.to = kvcalloc(l.room, sizeof(*l.to), GFP_KERNEL);
	if (!l.to)
		return -ENOMEM;
	err = sg_sem_list(&s->fs->vol, &io->cookie, sgfs_sem_file_list_one, &l);
	for (i = 0; i < l.n; i++)
		sgfs_say_system(s->fs, &l.to[i]);
	io->count = l.n;
	if (!err && copy_to_user(u64_to_user_ptr(io->buffer), l.to, l.n * sizeof(*l.to)))
		err = -EFAULT;
	kvfree(l.to);
	return err;
}

/* --- by name ---------------------------------------------------------------------------------- */

/*
 * Change only the object for which the caller's permission was checked: at any time the name may
 * belong to another user's object. -ESTALE: it does now, so check again.
 */
static int sgfs_remove_object(struct file *file, struct sg_vol *vol, const char *name, int len)
{
	struct sg_sem_stat st;

	if (!sgfs_may_name(name))
		return -EACCES;
	return sg_sem_stat(vol, name, len, &st) ?: sgfs_may_remove(file, &st) ?:
	       sg_sem_unlink(vol, name, len, st.serial);
}

static int sgfs_reset_object(struct file *file, struct sg_vol *vol, const char *name, int len)
{
	struct sg_sem_stat st;
	int err = sg_sem_stat(vol, name, len, &st);

	if (err)
		return err;
	if (!sgfs_may_name(name))
		return -EACCES;
	if (!sgfs_is_owner(file, st.uid) && !capable(CAP_FOWNER))
		return -EPERM;
	return sg_sem_reset(vol, name, len, st.serial);
}

static int sgfs_sem_file_change(struct file *file, unsigned int cmd, const char *name)
{
	struct sgfs_sem *s = file->private_data;
	int len = sgfs_length_of(name), err = len < 0 ? len : mnt_want_write_file(file);

	if (err)
		return err;
	do {
		err = cmd == SG_IOC_SEM_REMOVE ? sgfs_remove_object(file, &s->fs->vol, name, len) :
						 sgfs_reset_object(file, &s->fs->vol, name, len);
	} while (err == -ESTALE && !signal_pending(current));
	if (err == -ESTALE)
		err = -EINTR;
	mnt_drop_write_file(file);
	return err;
}

/* --- ioctls ----------------------------------------------------------------------------------- */

static int sgfs_operate(struct sgfs_sem *s, void __user *user)
{
	struct sg_ioc_sem_op op;
	u64 value;
	int err;

	if (copy_from_user(&op, user, sizeof(op)))
		return -EFAULT;
	value = op.value;
	err = sgfs_sem_do(s, &op);
	if (op.value != value &&
	    put_user(op.value, (u64 __user *)(user + offsetof(struct sg_ioc_sem_op, value))))
		return -EFAULT;
	/*
	 * Choose the error of an interrupted call. All timeouts are absolute, so it can be
	 * restarted. But a caller that stopped waiting for the end of readers has already released
	 * the word.
	 */
	return err == -EINTR && op.op != SG_SEM_OP_DRAIN ? -ERESTARTSYS : err;
}

static int sgfs_who_am_i(struct sgfs_sem *s, u64 __user *user)
{
	const struct sg_sem_caller *c;

	if (smp_load_acquire(&s->bound) && s->owns)
		return put_user(s->self.me, user);
	c = sgfs_sem_me(s->fs);
	return IS_ERR(c) ? PTR_ERR(c) : put_user(c->me, user);
}

/* Execute the other operations: copy a structure in, and the changed structure out. */
static int sgfs_sem_file_exchange(struct file *file, unsigned int cmd, void __user *user)
{
	struct sgfs_sem *s = file->private_data;
	void *io = memdup_user(user, _IOC_SIZE(cmd));
	int err;

	if (IS_ERR(io))
		return PTR_ERR(io);
	switch (cmd) {
	case SG_IOC_SEM_OPEN:
		err = sgfs_sem_bind(file, io);
		break;
	case SG_IOC_SEM_STAT:
		err = sgfs_stat_object(s, io);
		break;
	case SG_IOC_SEM_LIST:
		err = sgfs_list_objects(s, io);
		break;
	default:
		err = sgfs_sem_file_change(file, cmd, io);
	}
	if (!err && _IOC_DIR(cmd) & _IOC_READ && copy_to_user(user, io, _IOC_SIZE(cmd)))
		err = -EFAULT;
	kfree(io);
	return err;
}

static long sgfs_sem_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case SG_IOC_SEM_OP:
		return sgfs_operate(file->private_data, user);
	case SG_IOC_SEM_ME:	/* this registers the thread in the volume, which is a store */
		return file->f_mode & FMODE_WRITE ? sgfs_who_am_i(file->private_data, user) :
		       -EBADF;
	case SG_IOC_SEM_STAT:
	case SG_IOC_SEM_LIST:
		return sgfs_sem_file_exchange(file, cmd, user);
	case SG_IOC_SEM_OPEN:
	case SG_IOC_SEM_REMOVE:
	case SG_IOC_SEM_RESET:
		/* While such a descriptor is open, the mount also remains writable. */
		return file->f_mode & FMODE_WRITE ? sgfs_sem_file_exchange(file, cmd, user) :
		       -EBADF;
	default:
		return -ENOTTY;
	}
}

/*
 * Pass advice that is not StargateFS's own to the generic function, which serves all files.
 */
static int sgfs_advise(struct file *file, loff_t offset, loff_t len, int advice)
{
	if (advice >> 8 != SG_SEM_AT_ONCE >> 8)
		return generic_fadvise(file, offset, len, advice);
	return offset || len ? -EINVAL :
			       sgfs_sem_at_once(file->private_data, advice - SG_SEM_AT_ONCE);
}

/* --- mapping ---------------------------------------------------------------------------------- */

/*
 * Return the volume offset of a page. Page 0 has the words; the data of a ring follows. 0: the page
 * does not exist.
 */
static u64 sgfs_sem_file_page(const struct sgfs_sem *s, pgoff_t i)
{
	return i ? sg_sem_ring_at(&s->fs->vol, &s->sem, i - 1) : s->sem.words;
}

#define AROUND	16	/* number of pages of a ring that one fault enters */

static void sgfs_enter_around(const struct sgfs_sem *s, struct vm_fault *vmf)
{
	unsigned long at = vmf->address & PAGE_MASK;
	unsigned int i;

	for (i = 1; i < AROUND && at + i * PAGE_SIZE < vmf->vma->vm_end; i++) {
		u64 off = sgfs_sem_file_page(s, vmf->pgoff + i);

		if (!off || sg_is_lost(&s->fs->vol, off) ||
		    sgfs_insert_page(vmf->vma, at + i * PAGE_SIZE,
				     PHYS_PFN(s->fs->mem.phys + off)) != VM_FAULT_NOPAGE)
			break;
	}
}

/*
 * Handle a fault. A fenced system gets no page any more, and no system gets a bad page
 * (sgfs_sems_revoke()).
 */
static vm_fault_t sgfs_sem_file_fault(struct vm_fault *vmf)
{
	const struct sgfs_sem *s = vmf->vma->vm_file->private_data;
	unsigned int nofs = memalloc_nofs_save();	/* reclaim may wait here (mmap.c) */
	vm_fault_t ret = VM_FAULT_SIGBUS;
	int srcu = srcu_read_lock(&s->fs->faults);
	u64 off = sgfs_sem_file_page(s, vmf->pgoff);

	if (off && sg_is_lost(&s->fs->vol, off))
		ret = VM_FAULT_HWPOISON;
	else if (off && sgfs_alive(s->fs->sb))
		ret = sgfs_insert_page(vmf->vma, vmf->address, PHYS_PFN(s->fs->mem.phys + off));
	if (ret == VM_FAULT_NOPAGE && vmf->pgoff)
		sgfs_enter_around(s, vmf);
	srcu_read_unlock(&s->fs->faults, srcu);
	memalloc_nofs_restore(nofs);
	return ret;
}

static const struct vm_operations_struct vm_operations = {
	.fault	= sgfs_sem_file_fault,
};

/*
 * Map the page of words of an object, and a ring's data after it. A child does not inherit the
 * mapping, because it would count readers in its parent's cell, and look like one of its parent's
 * threads.
 *
 * The mapping is a mixed map of special entries, as for files: VFIO would map bare frames
 * (VM_PFNMAP) for a device without a pin.
 */
static int sgfs_map_words(struct file *file, struct vm_area_struct *vma)
{
	const struct sgfs_sem *s = file->private_data;
	unsigned long pages;

	if (!smp_load_acquire(&s->bound))
		return -ENOTCONN;
	if (!s->mapped || !(s->sem.flags & SG_SEM_MAPPED))
		return -EACCES;
	pages = 1 + (s->sem.size >> PAGE_SHIFT);
	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff >= pages ||
	    vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;
	vm_flags_set(vma, VM_IO | VM_MIXEDMAP | VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP);
	vma->vm_ops = &vm_operations;
	return 0;
}

void sgfs_sems_revoke(struct sgfs *fs)
{
	synchronize_srcu_expedited(&fs->faults);
	mutex_lock(&fs->windows_lock);
	if (fs->semaphores)
		unmap_mapping_range(fs->semaphores->i_mapping, 0, 0, 1);
	mutex_unlock(&fs->windows_lock);
}

/* --- the file --------------------------------------------------------------------------------- */

static int sgfs_open_file(struct inode *inode, struct file *file)
{
	struct sgfs_sem *s;

	if (!SGFS(inode->i_sb)->joined)
		/* the device is not writable, so other systems would not see this one */
		return -EROFS;
	s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	if (!s)
		return -ENOMEM;
	s->fs = SGFS(inode->i_sb);
	mutex_init(&s->lock);
	file->private_data = s;
	return 0;
}

/*
 * Close a descriptor. Threads that have ended release their locks first, as a dead owner, not by an
 * unlock. The process may be exiting, and cannot be killed, so it does not wait for a thaw.
 */
static int sgfs_close_file(struct inode *inode, struct file *file)
{
	struct sgfs_sem *s = file->private_data;

	sgfs_sem_poll_end(s);
	sgfs_sem_reap(s->fs);
	if (s->owns)
		sg_sem_exit(&s->fs->vol, &s->self);
	if (s->bound && sb_start_write_trylock(inode->i_sb)) {
		sg_sem_close(&s->fs->vol, &s->sem);
		sb_end_write(inode->i_sb);
	} else if (s->bound) {
		sg_sem_close_later(&s->fs->vol, &s->sem);
	}
	kfree(s);
	return 0;
}

const struct file_operations sgfs_sem_operations = {
	.owner		= THIS_MODULE,
	.open		= sgfs_open_file,
	.release	= sgfs_close_file,
	.llseek		= noop_llseek,
	.mmap		= sgfs_map_words,
	.poll		= sgfs_sem_poll,
	.unlocked_ioctl	= sgfs_sem_file_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.fadvise	= sgfs_advise,
};
