// SPDX-License-Identifier: GPL-2.0
/*
 * Who holds .stargate/region: the processes that map it, or have had it opened to a virtual machine
 * (kvm_grant.c), each for a machine or for none that is known. So the host is the fence of its
 * machines (D6; docs/protocol.md, section 3): as long as a machine's process holds region it stands
 * by the machine's systems, and when the last hold through which the machine could store has gone,
 * it declares them dead.
 *
 * A hold ends when nothing stores through it any more. Of a mapping the kernel has taken the
 * entries out of the page tables, and KVM's with them, before vm_ops->close() is called; of a grant
 * KVM says that it has ended when it has taken its own.
 */
#include <linux/ctype.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sysfs.h>

#include "stargatefs.h"

#define STAND_BY_MS	500
/* Holders: one look goes through all of them, with a lock held that a machine's end needs. */
#define MOST		(4 * SG_SLOTS)
#define MOST_OF_ONE	16u	/* of one address space: its machines */

/**
 * struct sgfs_holder - an address space that holds region, for one machine
 * @list: in sgfs.holders
 * @mm: which; not held here: its mappings end before it does, a grant sees to it that it stays
 * @machine: that it runs; zeroes: nobody has said
 * @pid, @comm: its process when it began
 * @maps: its mappings, and grants
 * @writable: those of them through which may be stored, now or after mprotect()
 * @revoked: it gets no page any more
 * @kept: revoked, and stays listed until its address space has ended: @mm is held. So it cannot
 *	begin anew by letting go of all that it had, while its guest still runs.
 * @inherited: made by fork(), which cannot be refused: not counted in MOST.
 * @surplus: one of those beyond MOST of them. It is in no list, and gets no page.
 */
struct sgfs_holder {
	struct list_head list;
	struct mm_struct *mm;
	u8 machine[16];
	struct pid *pid;
	char comm[TASK_COMM_LEN];
	unsigned int maps, writable;
	bool revoked, kept, inherited, surplus;
};

void sgfs_holders_init(struct sgfs *fs)
{
	spin_lock_init(&fs->holders_lock);
	INIT_LIST_HEAD(&fs->holders);
}

bool sgfs_is_revoked(const struct sgfs_holder *h)
{
	return READ_ONCE(h->revoked);
}

/* --- map=splice ------------------------------------------------------------------------------- */

/* Its guests may say where its host's processor looks (D5). */
static bool made_for_splice(const struct sgfs *fs)
{
	return fs->vol.sb.params & SG_PARAM_HOST_SPLICE;
}

static bool has_machines(const struct sgfs *fs)
{
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		if (h->writable && sg_machine_known(h->machine))
			return true;
	return false;
}

/*
 * A table that guests may write is followed by the host's MMU only if the volume was made so. A
 * kernel that is no guest may be a host; one that has given the volume to machines is.
 */
static bool may_splice(const struct sgfs *fs, const char **why)
{
	*why = "on a host, the volume must have been made for it "
	       "(mkfs.stargatefs --param host-splice)";
	return made_for_splice(fs) ||
	       (boot_cpu_has(X86_FEATURE_HYPERVISOR) && !has_machines(fs));
}

bool sgfs_may_splice(struct sgfs *fs, const char **why)
{
	bool may;

	spin_lock(&fs->holders_lock);
	may = may_splice(fs, why);
	spin_unlock(&fs->holders_lock);
	return may;
}

int sgfs_set_map(struct sgfs *fs, enum sgfs_map map, const char **why)
{
	int err = 0;

	spin_lock(&fs->holders_lock);
	if (map == SGFS_MAP_SPLICE && !may_splice(fs, why))
		err = -EPERM;
	else
		WRITE_ONCE(fs->opt.map, map);
	spin_unlock(&fs->holders_lock);
	return err;
}

/* --- beginning -------------------------------------------------------------------------------- */

static struct sgfs_holder *make(struct mm_struct *mm, const u8 machine[16], gfp_t gfp)
{
	struct sgfs_holder *h = kzalloc(sizeof(*h), gfp | __GFP_ACCOUNT);
	unsigned int i;

	if (!h)
		return NULL;
	INIT_LIST_HEAD(&h->list);
	h->mm = mm;
	memcpy(h->machine, machine, sizeof(h->machine));
	h->pid = get_pid(task_tgid(current));
	strscpy(h->comm, current->group_leader->comm, sizeof(h->comm));
	for (i = 0; h->comm[i]; i++)	/* it is shown as one line */
		if (!isprint(h->comm[i]))
			h->comm[i] = '?';
	return h;
}

static void unmake(struct sgfs_holder *h)
{
	if (h->kept)
		mmdrop(h->mm);
	put_pid(h->pid);
	kfree(h);
}

/* What is kept, and need not be any more. @all: the mount ends, and nobody can hold its region. */
static void forget_kept(struct sgfs *fs, bool all)
{
	struct sgfs_holder *h, *next;
	LIST_HEAD(gone);

	spin_lock(&fs->holders_lock);
	list_for_each_entry_safe(h, next, &fs->holders, list)
		if (h->kept && !h->maps && (all || !atomic_read(&h->mm->mm_users)))
			list_move(&h->list, &gone);
	spin_unlock(&fs->holders_lock);
	list_for_each_entry_safe(h, next, &gone, list)
		unmake(h);
}

void sgfs_holders_end(struct sgfs *fs)
{
	forget_kept(fs, true);
}

static struct sgfs_holder *find(struct sgfs *fs, const struct mm_struct *mm, const u8 machine[16])
{
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		if (h->mm == mm && !memcmp(h->machine, machine, sizeof(h->machine)))
			return h;
	return NULL;
}

/* One more hold: of a holder who is there already, or of @fresh. The lock is held. */
static struct sgfs_holder *hold(struct sgfs *fs, struct sgfs_holder *fresh, bool writable)
{
	struct sgfs_holder *h = find(fs, fresh->mm, fresh->machine);

	if (!h) {
		h = fresh;
		list_add_tail(&h->list, &fs->holders);
	}
	h->maps++;
	h->writable += writable;
	return h;
}

/* There is room for one more. The lock is held. */
static bool may_begin(struct sgfs *fs, const struct sgfs_holder *fresh)
{
	unsigned int all = 0, own = 0;
	struct sgfs_holder *h;

	if (find(fs, fresh->mm, fresh->machine))
		return true;
	list_for_each_entry(h, &fs->holders, list) {
		all += !h->inherited;
		own += h->mm == fresh->mm;
	}
	return all < MOST && own < MOST_OF_ONE;
}

/* Not while our processor follows tables that the machine could write. */
static bool is_trusted(const struct sgfs *fs, const u8 machine[16], bool writable)
{
	return !writable || !sg_machine_known(machine) || made_for_splice(fs) ||
	       fs->opt.map != SGFS_MAP_SPLICE;
}

static int not_trusted(struct sgfs *fs, struct sgfs_holder *h)
{
	sg_log(fs->sb, SG_WARN, "region@%pUb: not for a machine that may store, while files are "
	       "spliced here: remount with map=walk, or see --param host-splice of "
	       "mkfs.stargatefs(8)", h->machine);
	unmake(h);
	return -EPERM;
}

struct sgfs_holder *sgfs_hold(struct sgfs *fs, struct mm_struct *mm, const u8 machine[16],
			      bool writable)
{
	struct sgfs_holder *fresh = make(mm, machine, GFP_KERNEL), *h = NULL;
	bool room;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	forget_kept(fs, false);
	spin_lock(&fs->holders_lock);
	room = may_begin(fs, fresh);
	if (room && is_trusted(fs, machine, writable))
		h = hold(fs, fresh, writable);
	spin_unlock(&fs->holders_lock);
	if (!room) {
		unmake(fresh);
		return ERR_PTR(-ENOSPC);
	}
	if (!h)
		return ERR_PTR(not_trusted(fs, fresh));
	if (h != fresh)
		unmake(fresh);
	if (!sgfs_is_revoked(h))
		return h;
	sgfs_let_go(fs, h, writable);
	return ERR_PTR(-EPERM);
}

/* The list stays short, however often somebody forks. The lock is held. */
static bool is_surplus(struct sgfs *fs, const struct sgfs_holder *parent)
{
	unsigned int inherited = 0;
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		inherited += h->inherited;
	return parent->surplus || inherited >= MOST;
}

/* For the mappings of a child, as they were made for its parent. The lock is held. */
static struct sgfs_holder *inherit(struct sgfs *fs, struct sgfs_holder *parent,
				   struct sgfs_holder *fresh, bool writable)
{
	struct sgfs_holder *h;

	fresh->inherited = true;
	fresh->surplus = !find(fs, fresh->mm, fresh->machine) && is_surplus(fs, parent);
	if (!fresh->surplus) {
		h = hold(fs, fresh, writable);
		if (parent->revoked)
			WRITE_ONCE(h->revoked, true);
		return h;
	}
	fresh->maps = 1;
	fresh->writable = writable;
	fresh->revoked = true;
	return fresh;
}

/*
 * One who has forked is still there when only his child is: it maps for the same machine. A child
 * begins without entries (region has none that fork() copies), so it stores nothing before a fault,
 * and that asks whether it has been revoked.
 */
struct sgfs_holder *sgfs_hold_again(struct sgfs *fs, struct sgfs_holder *h, struct mm_struct *mm,
				    bool writable)
{
	struct sgfs_holder *fresh = NULL;

	if (h->mm != mm)
		fresh = make(mm, h->machine, GFP_KERNEL | __GFP_NOFAIL);
	spin_lock(&fs->holders_lock);
	if (fresh) {	/* before the lock is free again the child is revoked as well */
		h = inherit(fs, h, fresh, writable);
	} else {
		h->maps++;
		h->writable += writable;
	}
	spin_unlock(&fs->holders_lock);
	if (fresh && h != fresh)
		unmake(fresh);
	return h;
}

/* --- end -------------------------------------------------------------------------------------- */

/* Somebody holds region for the machine, and may store. */
static bool is_held(struct sgfs *fs, const u8 machine[16])
{
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		if (h->writable && !h->revoked && !memcmp(h->machine, machine, sizeof(h->machine)))
			return true;
	return false;
}

/* Nothing of the machine stores any more. The lock is held, so that no next life of it begins. */
static void machine_gone(struct sgfs *fs, const u8 machine[16])
{
	if (!sg_machine_known(machine) || fs->mem.read_only || is_held(fs, machine))
		return;
	if (sg_fence_machine(&fs->vol, machine))
		sgfs_watch_now(fs);
}

void sgfs_let_go(struct sgfs *fs, struct sgfs_holder *h, bool writable)
{
	bool last;

	spin_lock(&fs->holders_lock);
	h->writable -= writable;
	if (writable && !h->writable && !h->revoked)
		machine_gone(fs, h->machine);
	last = !--h->maps;
	if (last && h->revoked && !h->kept && !h->surplus && atomic_read(&h->mm->mm_users)) {
		mmgrab(h->mm);
		h->kept = true;
	}
	last &= !h->kept;
	if (last)
		list_del(&h->list);
	spin_unlock(&fs->holders_lock);
	if (last)
		unmake(h);
}

/*
 * 1: there was somebody to revoke. The caller keeps faults away, and takes the pages. -ESTALE: the
 * machine's system is not in the slot any more. It has ended, and who holds region now may run the
 * machine's next life: a machine's end is noted in its slot with this lock held (machine_gone()).
 */
static int revoke_holders(struct sgfs *fs, unsigned int slot, const struct sg_slot *was)
{
	struct sgfs_holder *h;
	struct sg_slot now;
	int ret = 0;

	spin_lock(&fs->holders_lock);
	if (sg_slot_read(&fs->vol, slot, &now) || now.state != was->state)
		ret = -ESTALE;
	list_for_each_entry(h, &fs->holders, list) {
		if (ret < 0 || !h->writable || memcmp(h->machine, was->machine, sizeof(h->machine)))
			continue;
		WRITE_ONCE(h->revoked, true);
		ret = 1;
	}
	spin_unlock(&fs->holders_lock);
	return ret;
}

/*
 * The machine lives, but may store no more: its process keeps its mappings, and gets SIGBUS for
 * each access to them; the machine's next access ends in its VMM, as an error. All who map region
 * lose their entries; those who may have them come again by faults. Grants of the revoked end here.
 */
static int revoke(struct sgfs *fs, unsigned int slot, const struct sg_slot *was)
{
	struct address_space *mapping = fs->region->i_mapping;
	int ret;

	filemap_invalidate_lock(mapping);
	ret = revoke_holders(fs, slot, was);
	if (ret > 0)
		unmap_mapping_range(mapping, 0, 0, 0);
	filemap_invalidate_unlock(mapping);
	if (ret > 0)
		sgfs_identity_revoke_held(fs, was->machine);
	return ret;
}

int sgfs_fence(struct sgfs *fs, unsigned int slot, u32 incarnation, bool unheld)
{
	struct sg_slot s;
	int revoked = 0, err;

	if (fs->mem.read_only)
		return -EROFS;
	err = sg_slot_read(&fs->vol, slot, &s);
	if (err)
		return err;
	if ((int)slot == fs->vol.slot && s.state == fs->vol.alive)
		return -EINVAL;
	if (SG_SLOT_STATE(s.state) != SG_SLOT_LIVE || SG_SLOT_INC(s.state) != incarnation)
		return -ESTALE;
	if (fs->region && sg_machine_known(s.machine) && s.named == incarnation)
		revoked = revoke(fs, slot, &s);
	if (revoked < 0)
		return revoked;
	if (!revoked && !unheld)
		return -ENXIO;
	err = sg_fence_slot(&fs->vol, slot, incarnation);
	if (!err)
		sg_log(fs->sb, SG_WARN, "%.60s (slot %u): declared dead as was asked for%s", s.name,
		       slot, revoked ? ", its machine's memory taken away" : "");
	if (revoked && !err)
		sg_fence_machine(&fs->vol, s.machine);
	sgfs_watch_now(fs);
	return err;
}

/* --- meanwhile -------------------------------------------------------------------------------- */

/*
 * By the thread that beats: slot by slot, as each machine has one at most, however many hold region
 * for it; the lock is free in between.
 */
void sgfs_holders_stand_by(struct sgfs *fs)
{
	struct sg_slot slot;
	unsigned int i;
	bool held;

	if (time_before(jiffies, fs->stood_by + msecs_to_jiffies(STAND_BY_MS)))
		return;
	fs->stood_by = jiffies;
	for (i = 0; i < SG_SLOTS; i++) {
		if (sg_slot_read(&fs->vol, i, &slot) || !sg_machine_known(slot.machine) ||
		    !sg_slot_of_machine(&slot, slot.machine))
			continue;
		spin_lock(&fs->holders_lock);
		held = is_held(fs, slot.machine);
		spin_unlock(&fs->holders_lock);
		if (held)
			sg_stand_by_slot(&fs->vol, i, slot.machine);
	}
}

static const char *mode_of(const struct sgfs_holder *h)
{
	return h->revoked ? "revoked" : h->writable ? "rw" : "ro";
}

/* What does not fit into one page is counted in the last line. */
ssize_t sgfs_holders_show(struct sgfs *fs, char *buf)
{
	struct sgfs_holder *h;
	unsigned int more = 0;
	char machine[37];
	ssize_t len = 0;

	spin_lock(&fs->holders_lock);
	list_for_each_entry(h, &fs->holders, list) {
		if (!h->maps)	/* nothing of it is left but that it gets nothing any more */
			continue;
		if (len > PAGE_SIZE - 128) {
			more++;
			continue;
		}
		snprintf(machine, sizeof(machine), "%pUb", h->machine);
		len += sysfs_emit_at(buf, len, "%d %s %s %s\n", pid_vnr(h->pid), mode_of(h),
				     sg_machine_known(h->machine) ? machine : "-", h->comm);
	}
	spin_unlock(&fs->holders_lock);
	if (more)
		len += sysfs_emit_at(buf, len, "0 and %u more\n", more);
	return len;
}

void sgfs_holders_report(struct sgfs *fs)
{
	struct sgfs_holder *h;

	spin_lock(&fs->holders_lock);
	list_for_each_entry(h, &fs->holders, list)
		if (h->maps)
			sg_log(fs->sb, SG_WARN,
			       "stays mounted: process %d (%s) holds .stargate/region",
			       pid_nr(h->pid), h->comm);
	spin_unlock(&fs->holders_lock);
}
