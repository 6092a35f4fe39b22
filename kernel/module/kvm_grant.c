// SPDX-License-Identifier: GPL-2.0
/*
 * The volume as identity memory of VMs (D3), where KVM has the project's patches. Through
 * .stargate/region, a VMM can request that the volume is opened to its VM without a mapping. The
 * host can also revoke the volume from a running VM immediately, which fences the VM (D6). With a
 * stock KVM this file does nothing, and VMMs map the file.
 *
 * A grant holds the file through which it was requested, so the volume remains mounted, as with a
 * mapping of the VMM. As with a mapping, the VMM counts as a holder (region_holders.c) for the
 * machine for which the file was opened.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/refcount.h>
#include <linux/sched/mm.h>

#include "uapi/ioctl.h"
#include "kvm_identity.h"
#include "stargatefs.h"

/* KVM's functions; either all of them are found or none. */
struct kvm_functions {
	typeof(&kvm_identity_register) reg;
	typeof(&kvm_identity_extend) extend;
	typeof(&kvm_identity_unregister) unregister;
	typeof(&kvm_identity_open) open;
	typeof(&kvm_identity_revoke) revoke;
};

struct sgfs_identity {
	struct kvm_functions kvm;
	struct kvm_identity_range *range;
	u64 size;			/* operations of @range */
	u64 opened;			/* number of grants so far; protected by identity_lock */
	spinlock_t lock;		/* protects @grants */
	struct list_head grants;
};

/* A grant: a VM to which the volume is open. */
struct grant {
	struct list_head node;
	/* references of KVM, and of each task that revokes the grant */
	refcount_t refs;
	struct sgfs_identity *identity;
	u64 number;			/* its number, from @opened */
	struct file *file;
	struct pid *pid;		/* of the VMM */
	struct mm_struct *mm;		/* address space of the VMM; its pages are not held */
	struct sgfs_holder *holder;	/* the VMM, as a holder of the volume */
	u8 machine[16];			/* the machine for which @file was opened */
	bool writable;
	bool revoked;			/* a task is revoking it */
	struct completion over;		/* KVM has ended the grant */
};

/*
 * Held while the volume is opened to a VM, and while grants to revoke are searched, so that each
 * sees what the other has begun. One lock serves all mounts, because both are rare.
 * sgfs_grant_ended() does not take it, because KVM may call that function at any time. No task
 * holds it while KVM revokes: a revocation waits for one VM, and must not delay the others.
 */
static DEFINE_MUTEX(identity_lock);

static void sgfs_put_functions(struct kvm_functions *kvm)
{
	if (kvm->reg)
		symbol_put(kvm_identity_register);
	if (kvm->extend)
		symbol_put(kvm_identity_extend);
	if (kvm->unregister)
		symbol_put(kvm_identity_unregister);
	if (kvm->open)
		symbol_put(kvm_identity_open);
	if (kvm->revoke)
		symbol_put(kvm_identity_revoke);
}

static int sgfs_get_functions(struct kvm_functions *kvm)
{
	kvm->reg = symbol_get(kvm_identity_register);
	kvm->extend = symbol_get(kvm_identity_extend);
	kvm->unregister = symbol_get(kvm_identity_unregister);
	kvm->open = symbol_get(kvm_identity_open);
	kvm->revoke = symbol_get(kvm_identity_revoke);
	if (kvm->reg && kvm->extend && kvm->unregister && kvm->open && kvm->revoke)
		return 0;
	sgfs_put_functions(kvm);
	return -EOPNOTSUPP;
}

static void sgfs_put_grant(struct grant *grant)
{
	if (!refcount_dec_and_test(&grant->refs))
		return;
	put_pid(grant->pid);
	mmdrop(grant->mm);
	kfree(grant);
}

/*
 * Drop a grant; this is KVM's last call for it. The VM cannot store into the volume any more, so
 * its machine may have ended. Drop the file last, because that may end the mount.
 */
static void sgfs_grant_ended(void *data)
{
	struct grant *grant = data;

	spin_lock(&grant->identity->lock);
	list_del_init(&grant->node);
	spin_unlock(&grant->identity->lock);
	sgfs_let_go(SGFS(file_inode(grant->file)->i_sb), grant->holder, grant->writable);
	fput(grant->file);
	complete_all(&grant->over);
	sgfs_put_grant(grant);
}

static const struct kvm_identity_owner owner = {
	.version	= KVM_IDENTITY_VERSION,
	.ended		= sgfs_grant_ended,
};

static struct sgfs_identity *sgfs_make_identity(const struct sgfs_memory *mem)
{
	struct sgfs_identity *id = kzalloc(sizeof(*id), GFP_KERNEL);
	int err;

	if (!id)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&id->lock);
	INIT_LIST_HEAD(&id->grants);
	err = sgfs_get_functions(&id->kvm);
	if (err)
		goto no_functions;
	id->size = READ_ONCE(mem->size);
	id->range = id->kvm.reg(mem->phys, id->size, mem->base, &owner);
	if (!IS_ERR(id->range))
		return id;
	err = PTR_ERR(id->range);
	sgfs_put_functions(&id->kvm);
no_functions:
	kfree(id);
	return ERR_PTR(err);
}

/* The mount's state, made by the first request. It holds kvm.ko until the volume is unmounted. */
static struct sgfs_identity *sgfs_get_identity(struct sgfs *fs)
{
	struct sgfs_identity *id = fs->identity;

	if (!id) {
		id = sgfs_make_identity(&fs->mem);
		if (!IS_ERR(id))
			fs->identity = id;
	}
	return id;
}

/*
 * Update the end of the volume for KVM, because the volume may have grown. Existing grants keep
 * their size.
 */
static int sgfs_follow_growth(struct sgfs_identity *id, u64 size)
{
	int err;

	if (size <= id->size)
		return 0;
	err = id->kvm.extend(id->range, size);
	if (!err)
		id->size = size;
	return err;
}

static struct grant *sgfs_make_grant(struct sgfs_identity *id, struct file *file, bool writable)
{
	struct grant *grant = kzalloc(sizeof(*grant), GFP_KERNEL);
	struct sgfs_holder *holder;

	if (!grant)
		return ERR_PTR(-ENOMEM);
	sgfs_region_machine(file, grant->machine);
	holder = sgfs_hold(SGFS(file_inode(file)->i_sb), current->mm, grant->machine, writable);
	if (IS_ERR(holder)) {
		kfree(grant);
		return ERR_CAST(holder);
	}
	refcount_set(&grant->refs, 1);
	grant->identity = id;
	grant->number = id->opened++;
	grant->file = get_file(file);
	grant->pid = get_pid(task_tgid(current));
	grant->mm = current->mm;
	mmgrab(grant->mm);
	grant->holder = holder;
	grant->writable = writable;
	init_completion(&grant->over);
	spin_lock(&id->lock);
	list_add_tail(&grant->node, &id->grants);
	spin_unlock(&id->lock);
	return grant;
}

/*
 * Add the grant to the list before KVM gets the grant, because from then on it may end at any time.
 * A grant that KVM refuses ends like a mapping that failed. A process that named a machine still
 * counts as its holder.
 */
static int sgfs_open_to_vm(struct file *file, struct file *vm, bool read_only)
{
	struct sgfs *fs = SGFS(file_inode(file)->i_sb);
	struct sgfs_identity *id = sgfs_get_identity(fs);
	u64 size = READ_ONCE(fs->mem.size);
	struct grant *grant;
	int err;

	if (IS_ERR(id))
		return PTR_ERR(id);
	err = sgfs_follow_growth(id, size);
	if (err)
		return err;
	grant = sgfs_make_grant(id, file, !read_only);
	if (IS_ERR(grant))
		return PTR_ERR(grant);
	err = id->kvm.open(id->range, vm, fs->mem.phys, size,
			   read_only ? KVM_IDENTITY_READONLY : 0, grant);
	if (err)
		sgfs_grant_ended(grant);
	return err;
}

static int sgfs_open_to(struct file *file, const struct sg_ioc_kvm_open *args)
{
	bool read_only = args->read_only || !(file->f_mode & FMODE_WRITE);
	struct file *vm = fget(args->vm_fd);
	int err;

	if (!vm)
		return -EBADF;
	mutex_lock(&identity_lock);
	err = sgfs_open_to_vm(file, vm, read_only);
	mutex_unlock(&identity_lock);
	fput(vm);
	return err;
}

/*
 * Selects the grants to revoke: of a machine that no longer holds region, of any process (0), or of
 * one process.
 */
struct victim {
	const u8 *machine;
	pid_t pid;
	u64 before;			/* revoke only grants with a lower number */
};

static bool sgfs_is_meant(const struct grant *grant, const struct victim *of)
{
	if (grant->number >= of->before)
		return false;
	if (of->machine)
		return sgfs_is_revoked(grant->holder) &&
		       !memcmp(grant->machine, of->machine, sizeof(grant->machine));
	return !of->pid || pid_vnr(grant->pid) == of->pid;
}

/* Find a grant that still exists, and take a reference. @ours: no other task is revoking it. */
static struct grant *sgfs_find_victim(struct sgfs_identity *id, const struct victim *of, bool *ours)
{
	struct grant *grant, *found = NULL;

	spin_lock(&id->lock);
	list_for_each_entry(grant, &id->grants, node) {
		if (!sgfs_is_meant(grant, of))
			continue;
		*ours = !grant->revoked;
		grant->revoked = true;
		refcount_inc(&grant->refs);
		found = grant;
		break;
	}
	spin_unlock(&id->lock);
	return found;
}

static struct grant *sgfs_next_to_revoke(struct sgfs *fs, const struct victim *of, bool *ours)
{
	struct grant *grant = NULL;

	mutex_lock(&identity_lock);
	if (fs->identity)
		grant = sgfs_find_victim(fs->identity, of, ours);
	mutex_unlock(&identity_lock);
	return grant;
}

/* The lock is free only after a new grant has reached KVM and the list. */
static u64 sgfs_opened(struct sgfs *fs)
{
	u64 n;

	mutex_lock(&identity_lock);
	n = fs->identity ? fs->identity->opened : 0;
	mutex_unlock(&identity_lock);
	return n;
}

/*
 * Revoke the selected grants. On return none of those that existed at the call remains, whichever
 * task ended it. The result counts the grants that this call revoked. A VMM that opens the volume
 * again and again cannot keep this loop busy.
 */
static long sgfs_kvm_grant_revoke(struct sgfs *fs, struct victim of)
{
	struct grant *grant;
	long n = 0;
	bool ours;

	of.before = sgfs_opened(fs);
	while ((grant = sgfs_next_to_revoke(fs, &of, &ours))) {
		struct sgfs_identity *id = grant->identity;

		if (ours)
			n += !id->kvm.revoke(id->range, grant);
		wait_for_completion(&grant->over);
		sgfs_put_grant(grant);
	}
	return n;
}

/* Revoke the grants of revoked holders. Such a holder gets no new grant, so no grant is missed. */
void sgfs_identity_revoke_held(struct sgfs *fs, const u8 machine[16])
{
	sgfs_kvm_grant_revoke(fs, (struct victim){ .machine = machine });
}

long sgfs_identity_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct sg_ioc_kvm_open open;

	switch (cmd) {
	case SG_IOC_KVM_OPEN:
		if (!(file->f_mode & FMODE_READ))
			return -EBADF;
		if (copy_from_user(&open, (void __user *)arg, sizeof(open)))
			return -EFAULT;
		return sgfs_open_to(file, &open);
	case SG_IOC_KVM_REVOKE:
		if (!capable(CAP_SYS_ADMIN))
			return -EPERM;
		if ((pid_t)arg < 0)
			return -EINVAL;
		return sgfs_kvm_grant_revoke(SGFS(file_inode(file)->i_sb),
					     (struct victim){ .pid = arg });
	default:
		return -ENOTTY;
	}
}

/*
 * Release the mount's state at the unmount. No process has the file open, so no grant is open, but
 * a grant may be ending now.
 */
void sgfs_identity_release(struct sgfs *fs)
{
	struct sgfs_identity *id = fs->identity;

	if (!id)
		return;
	id->kvm.unregister(id->range);
	sgfs_put_functions(&id->kvm);
	kfree(id);
	fs->identity = NULL;
}
