// SPDX-License-Identifier: GPL-2.0
/*
 * Holders of .stargate/region. A holder is a process that maps region, or has opened it to a VM
 * (kvm_grant.c). It holds region for a machine, if the machine is known. With the holders the host
 * can fence its machines (D6; docs/protocol.md, section 3). As long as a machine's process holds
 * region, the host confirms that the machine's systems may still store. When the last hold through
 * which the machine could store has ended, the host fences these systems.
 *
 * A hold ends when no store is possible through it any more. For a mapping, the kernel has removed
 * the entries from the page tables, and KVM's with them, before it calls vm_ops->close(). For a
 * grant, KVM reports the end when it has removed its own entries.
 */
#include <linux/ctype.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sysfs.h>

#include "stargatefs.h"

#define GUARD_MS	500
/*
 * Bounds on holders, because each search among them holds a lock that the end of a machine needs.
 */
#define MOST		(4 * SG_SLOTS)
#define MOST_OF_ONE	16u	/* number of machines of one address space */

/**
 * struct sgfs_holder - an address space that holds region, for one machine
 * @list: in sgfs.holders
 * @mm: the address space, without a reference: its mappings end before it does, and a grant keeps
 *	it
 * @machine: the machine that it runs; zeroes: unknown
 * @pid, @comm: its process at the beginning
 * @maps: its mappings, and grants
 * @writable: those of them that allow stores, now or after mprotect()
 * @revoked: it gets no page any more
 * @kept: revoked, and listed until its address space has ended (@mm is held). So a process whose
 *   guest still runs cannot start again by dropping all its holds.
 * @inherited: made by fork(), which cannot be refused: not counted in MOST.
 * @surplus: beyond MOST holders. It is in no list, and gets no page.
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

/* Guests of the volume may control which memory their host's processor reads (D5). */
static bool sgfs_made_for_splice(const struct sgfs *fs)
{
	return fs->vol.sb.params & SG_PARAM_HOST_SPLICE;
}

static bool sgfs_has_machines(const struct sgfs *fs)
{
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		if (h->writable && sg_machine_known(h->machine))
			return true;
	return false;
}

/*
 * The host's MMU follows a table that guests may write only if the volume was made for this. A
 * kernel that is no guest may be a host. A kernel that has opened the volume to machines is one.
 */
static bool sgfs_region_holders_may_splice(const struct sgfs *fs, const char **why)
{
	*why = "on a host, the volume must have been made for it "
	       "(mkfs.stargatefs --param host-splice)";
	return sgfs_made_for_splice(fs) ||
	       (boot_cpu_has(X86_FEATURE_HYPERVISOR) && !sgfs_has_machines(fs));
}

bool sgfs_may_splice(struct sgfs *fs, const char **why)
{
	bool may;

	spin_lock(&fs->holders_lock);
	may = sgfs_region_holders_may_splice(fs, why);
	spin_unlock(&fs->holders_lock);
	return may;
}

int sgfs_set_map(struct sgfs *fs, enum sgfs_map map, const char **why)
{
	int err = 0;

	spin_lock(&fs->holders_lock);
	if (map == SGFS_MAP_SPLICE && !sgfs_region_holders_may_splice(fs, why))
		err = -EPERM;
	else
		WRITE_ONCE(fs->opt.map, map);
	spin_unlock(&fs->holders_lock);
	return err;
}

/* --- beginning -------------------------------------------------------------------------------- */

static struct sgfs_holder *sgfs_region_holders_make(struct mm_struct *mm, const u8 machine[16],
						    gfp_t gfp)
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
	for (i = 0; h->comm[i]; i++)	/* the name must be one line */
		if (!isprint(h->comm[i]))
			h->comm[i] = '?';
	return h;
}

static void sgfs_unmake(struct sgfs_holder *h)
{
	if (h->kept)
		mmdrop(h->mm);
	put_pid(h->pid);
	kfree(h);
}

/*
 * Free kept holders that are not needed any more. @all: free all, because the mount ends, and no
 * process can hold its region.
 */
static void sgfs_forget_kept(struct sgfs *fs, bool all)
{
	struct sgfs_holder *h, *next;
	LIST_HEAD(gone);

	spin_lock(&fs->holders_lock);
	list_for_each_entry_safe(h, next, &fs->holders, list)
		if (h->kept && !h->maps && (all || !atomic_read(&h->mm->mm_users)))
			list_move(&h->list, &gone);
	spin_unlock(&fs->holders_lock);
	list_for_each_entry_safe(h, next, &gone, list)
		sgfs_unmake(h);
}

void sgfs_holders_end(struct sgfs *fs)
{
	sgfs_forget_kept(fs, true);
}

static struct sgfs_holder *sgfs_region_holders_find(struct sgfs *fs, const struct mm_struct *mm,
						    const u8 machine[16])
{
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		if (h->mm == mm && !memcmp(h->machine, machine, sizeof(h->machine)))
			return h;
	return NULL;
}

/* Add a hold to an existing holder, or to @fresh. The lock is held. */
static struct sgfs_holder *sgfs_region_holders_hold(struct sgfs *fs, struct sgfs_holder *fresh,
						    bool writable)
{
	struct sgfs_holder *h = sgfs_region_holders_find(fs, fresh->mm, fresh->machine);

	if (!h) {
		h = fresh;
		list_add_tail(&h->list, &fs->holders);
	}
	h->maps++;
	h->writable += writable;
	return h;
}

/* Report whether there is room for one more holder. The lock is held. */
static bool sgfs_may_begin(struct sgfs *fs, const struct sgfs_holder *fresh)
{
	unsigned int all = 0, own = 0;
	struct sgfs_holder *h;

	if (sgfs_region_holders_find(fs, fresh->mm, fresh->machine))
		return true;
	list_for_each_entry(h, &fs->holders, list) {
		all += !h->inherited;
		own += h->mm == fresh->mm;
	}
	return all < MOST && own < MOST_OF_ONE;
}

/*
 * Report whether the machine may hold region: not while this system's processor follows tables that
 * the machine could write.
 */
static bool sgfs_is_trusted(const struct sgfs *fs, const u8 machine[16], bool writable)
{
	return !writable || !sg_machine_known(machine) || sgfs_made_for_splice(fs) ||
	       fs->opt.map != SGFS_MAP_SPLICE;
}

static int sgfs_not_trusted(struct sgfs *fs, struct sgfs_holder *h)
{
	sg_log(fs->sb, SG_WARN, "region@%pUb: cannot be opened for writing while this host has "
	       "map=splice: remount with map=walk, or see --param host-splice of "
	       "mkfs.stargatefs(8)", h->machine);
	sgfs_unmake(h);
	return -EPERM;
}

struct sgfs_holder *sgfs_hold(struct sgfs *fs, struct mm_struct *mm, const u8 machine[16],
			      bool writable)
{
	struct sgfs_holder *fresh = sgfs_region_holders_make(mm, machine, GFP_KERNEL), *h = NULL;
	bool room;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	sgfs_forget_kept(fs, false);
	spin_lock(&fs->holders_lock);
	room = sgfs_may_begin(fs, fresh);
	if (room && sgfs_is_trusted(fs, machine, writable))
		h = sgfs_region_holders_hold(fs, fresh, writable);
	spin_unlock(&fs->holders_lock);
	if (!room) {
		sgfs_unmake(fresh);
		return ERR_PTR(-ENOSPC);
	}
	if (!h)
		return ERR_PTR(sgfs_not_trusted(fs, fresh));
	if (h != fresh)
		sgfs_unmake(fresh);
	if (!sgfs_is_revoked(h))
		return h;
	sgfs_let_go(fs, h, writable);
	return ERR_PTR(-EPERM);
}

/*
 * Report whether a new holder is surplus: the list is limited, however often a process forks. The
 * lock is held.
 */
static bool sgfs_is_surplus(struct sgfs *fs, const struct sgfs_holder *parent)
{
	unsigned int inherited = 0;
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		inherited += h->inherited;
	return parent->surplus || inherited >= MOST;
}

/* Return a holder for the mappings of a child, like that of its parent. The lock is held. */
static struct sgfs_holder *sgfs_inherit(struct sgfs *fs, struct sgfs_holder *parent,
					struct sgfs_holder *fresh, bool writable)
{
	struct sgfs_holder *h;

	fresh->inherited = true;
	fresh->surplus = !sgfs_region_holders_find(fs, fresh->mm, fresh->machine) &&
		sgfs_is_surplus(fs, parent);
	if (!fresh->surplus) {
		h = sgfs_region_holders_hold(fs, fresh, writable);
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
 * Add the mapping of a child. The holder that forked remains listed even if only its child remains,
 * because the child maps for the same machine. A child starts without page table entries, as fork()
 * does not copy those of region. So it cannot store before a fault, and the fault checks for
 * revocation.
 */
struct sgfs_holder *sgfs_hold_again(struct sgfs *fs, struct sgfs_holder *h, struct mm_struct *mm,
				    bool writable)
{
	struct sgfs_holder *fresh = NULL;

	if (h->mm != mm)
		fresh = sgfs_region_holders_make(mm, h->machine, GFP_KERNEL | __GFP_NOFAIL);
	spin_lock(&fs->holders_lock);
	if (fresh) {	/* the child is also revoked before the lock is free */
		h = sgfs_inherit(fs, h, fresh, writable);
	} else {
		h->maps++;
		h->writable += writable;
	}
	spin_unlock(&fs->holders_lock);
	if (fresh && h != fresh)
		sgfs_unmake(fresh);
	return h;
}

/* --- end -------------------------------------------------------------------------------------- */

/* Report whether any process holds region for the machine with the right to store. */
static bool sgfs_is_held(struct sgfs *fs, const u8 machine[16])
{
	struct sgfs_holder *h;

	list_for_each_entry(h, &fs->holders, list)
		if (h->writable && !h->revoked && !memcmp(h->machine, machine, sizeof(h->machine)))
			return true;
	return false;
}

/*
 * Fence a machine that cannot store any more. The lock is held, so that the machine cannot start
 * again.
 */
static void sgfs_machine_gone(struct sgfs *fs, const u8 machine[16])
{
	if (!sg_machine_known(machine) || fs->mem.read_only || sgfs_is_held(fs, machine))
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
		sgfs_machine_gone(fs, h->machine);
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
		sgfs_unmake(h);
}

/*
 * Revoke the holders of a machine. Return 1 if a holder was revoked. The caller blocks faults, and
 * removes the pages. -ESTALE: the machine's system is not in the slot any more. It has ended, and a
 * current holder of region may run the machine's next incarnation. The end of a machine is stored
 * in its slot with this lock held (sgfs_machine_gone()).
 */
static int sgfs_revoke_holders(struct sgfs *fs, unsigned int slot, const struct sg_slot *was)
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
 * Fence a live machine. The process keeps its mappings, and gets SIGBUS for each access to them.
 * The machine's next access causes an error in its VMM. All processes that map region lose their
 * page table entries; those that are not revoked get them again by faults. Grants of the revoked
 * holders end here.
 */
static int sgfs_region_holders_revoke(struct sgfs *fs, unsigned int slot, const struct sg_slot *was)
{
	struct address_space *mapping = fs->region->i_mapping;
	int ret;

	filemap_invalidate_lock(mapping);
	ret = sgfs_revoke_holders(fs, slot, was);
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
		revoked = sgfs_region_holders_revoke(fs, slot, &s);
	if (revoked < 0)
		return revoked;
	if (!revoked && !unheld)
		return -ENXIO;
	/* without a holder nothing stops the system, which may still store for a while */
	err = revoked ? sg_fence_slot(&fs->vol, slot, incarnation) :
			sg_fence_lapsed(&fs->vol, slot, incarnation);
	if (!err)
		sg_log(fs->sb, SG_WARN, "%.60s (slot %u): fenced on request%s", s.name,
		       slot, revoked ? "; its VM's memory was taken away" : "");
	if (revoked && !err)
		sg_fence_machine(&fs->vol, s.machine);
	sgfs_watch_now(fs);
	return err;
}

/* --- meanwhile -------------------------------------------------------------------------------- */

/*
 * Called by the heartbeat's thread for one slot after another: each machine has one slot at most,
 * however many processes hold region for it. The lock is free in between.
 */
void sgfs_holders_guard(struct sgfs *fs)
{
	struct sg_slot slot;
	unsigned int i;
	bool held;

	if (time_before(jiffies, fs->guarded_at + msecs_to_jiffies(GUARD_MS)))
		return;
	fs->guarded_at = jiffies;
	for (i = 0; i < SG_SLOTS; i++) {
		if (sg_slot_read(&fs->vol, i, &slot) || !sg_machine_known(slot.machine) ||
		    !sg_slot_of_machine(&slot, slot.machine))
			continue;
		spin_lock(&fs->holders_lock);
		held = sgfs_is_held(fs, slot.machine);
		spin_unlock(&fs->holders_lock);
		if (held)
			sg_guard_slot(&fs->vol, i, slot.machine);
	}
}

static const char *sgfs_mode_of(const struct sgfs_holder *h)
{
	return h->revoked ? "revoked" : h->writable ? "rw" : "ro";
}

/* List the holders. The last line counts those that do not fit into one page. */
ssize_t sgfs_holders_show(struct sgfs *fs, char *buf)
{
	struct sgfs_holder *h;
	unsigned int more = 0;
	char machine[37];
	ssize_t len = 0;

	spin_lock(&fs->holders_lock);
	list_for_each_entry(h, &fs->holders, list) {
		if (!h->maps)	/* a kept holder, which has no mapping any more */
			continue;
		if (len > PAGE_SIZE - 128) {
			more++;
			continue;
		}
		snprintf(machine, sizeof(machine), "%pUb", h->machine);
		len += sysfs_emit_at(buf, len, "%d %s %s %s\n", pid_vnr(h->pid), sgfs_mode_of(h),
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
