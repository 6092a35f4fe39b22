// SPDX-License-Identifier: GPL-2.0
/*
 * Bad pages: how this system detects them (docs/bad-memory.md).
 *
 *	memory_failure() calls the holder of a DAX device: this module, if no other device is
 *	in between.
 *	The notifier chain of machine checks reports every memory error with an address. It covers
 *	memory without struct pages, and memory below LVM.
 *	A copy out of the volume ends early (file.c).
 *	Another system enters the page in the list of the volume.
 *
 * In the first three cases this system enters the page in the list, so that all systems see it.
 * Then it removes the mappings of the page: a process that accesses the page again gets SIGBUS.
 */
#include <linux/dax.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#ifdef CONFIG_X86_MCE
#include <asm/mce.h>
#endif

#include "stargatefs.h"

/* Mounted volumes. The lock is held during the call to one of them, so that it stays mounted. */
static DEFINE_MUTEX(volumes_lock);
static LIST_HEAD(volumes);

/*
 * Bad pages found since the module was loaded. The kernel may have unmapped them permanently, and
 * members can change the list of a volume. A new mount therefore starts with these pages.
 */
struct found {
	struct list_head list;
	phys_addr_t phys;
	u64 bytes;
};
static LIST_HEAD(found);

static void sgfs_remember(phys_addr_t phys, u64 bytes)
{
	struct found *f;

	list_for_each_entry(f, &found, list)
		if (phys >= f->phys && phys + bytes <= f->phys + f->bytes)
			return;
	f = kmalloc(sizeof(*f), GFP_KERNEL);
	if (!f)
		return;		/* the volume keeps the page in its list until the unmount */
	f->phys = phys;
	f->bytes = bytes;
	list_add(&f->list, &found);
}

/* Compute the part of [phys, phys + bytes) that is in the volume, as a volume offset. */
static bool sgfs_in_volume(const struct sgfs *fs, phys_addr_t phys, u64 bytes, u64 *off, u64 *len)
{
	u64 low = max(phys, fs->mem.phys);
	u64 high = min(phys + bytes, fs->mem.phys + READ_ONCE(fs->vol.size));

	*off = low - fs->mem.phys;
	*len = high - low;
	return low < high;
}

/* --- reactions -------------------------------------------------------------------------------- */

static void sgfs_poison_take_away(struct work_struct *work)
{
	struct sgfs *fs = container_of(work, struct sgfs, bad);

	sgfs_mmap_revoke(fs);
	sgfs_sems_revoke(fs);
	sgfs_map_quiesce(fs);
}

/* Handle a bad page, reported by any source. */
static void sgfs_on_bad(struct sg_vol *vol)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);

	queue_work(sgfs_wq, &fs->bad);
}

/*
 * A process that maps region maps the page itself. The kernel signals each such process, as for any
 * memory.
 */
static void sgfs_tell_holders(struct sgfs *fs, u64 off, u64 len, int flags)
{
#if defined(CONFIG_MEMORY_FAILURE) && defined(CONFIG_FS_DAX)
	if (fs->region)
		mf_dax_kill_procs(fs->region->i_mapping, off >> PAGE_SHIFT,
				  DIV_ROUND_UP(offset_in_page(off) + len, PAGE_SIZE), flags);
#endif
}

/*
 * Handle bad memory at @phys that this system has found. volumes_lock is held. Return true if a
 * volume contains it.
 */
static bool sgfs_note(phys_addr_t phys, u64 bytes, int flags)
{
	bool ours = false;
	struct sgfs *fs;
	u64 off, len;

	list_for_each_entry(fs, &volumes, volumes) {
		if (!sgfs_in_volume(fs, phys, bytes, &off, &len))
			continue;
		sg_bad_add(&fs->vol, off, len);
		flush_work(&fs->bad);
		if (flags >= 0)
			sgfs_tell_holders(fs, off, len, flags);
		ours = true;
	}
	if (ours)
		sgfs_remember(phys, bytes);
	return ours;
}

/* --- from the device -------------------------------------------------------------------------- */

/*
 * Find the physical address of @dax from a volume on it: the device is one contiguous range.
 */
static bool sgfs_poison_place_of(struct dax_device *dax, u64 offset, phys_addr_t *phys)
{
	struct sgfs *fs;

	list_for_each_entry(fs, &volumes, volumes) {
		if (fs->mem.dax != dax || offset < fs->mem.start ||
		    offset - fs->mem.start >= fs->mem.size)
			continue;
		*phys = fs->mem.phys + (offset - fs->mem.start);
		return true;
	}
	return false;
}

/* -EOPNOTSUPP: the kernel handles the page as memory without a holder. */
static int sgfs_notify_failure(struct dax_device *dax, u64 offset, u64 len, int flags)
{
	int err = -EOPNOTSUPP;
	phys_addr_t phys;

	if (len == U64_MAX)	/* the device is being removed, but its memory is good (device.c) */
		return err;
	mutex_lock(&volumes_lock);
	if (sgfs_poison_place_of(dax, offset, &phys) && sgfs_note(phys, len, flags))
		err = 0;
	mutex_unlock(&volumes_lock);
	return err;
}

const struct dax_holder_operations sgfs_dax_holder = { .notify_failure = sgfs_notify_failure };

/* --- from the processor ----------------------------------------------------------------------- */

#ifdef CONFIG_X86_MCE
/*
 * Return the length of the bad range. Intel's processors report it; other reports concern one line.
 */
static u64 sgfs_extent_of(const struct mce *m)
{
	unsigned int lsb = MCI_MISC_ADDR_LSB(m->misc);

	if (m->cpuvendor != X86_VENDOR_INTEL || !(m->status & MCI_STATUS_MISCV) ||
	    lsb < PAGE_SHIFT || lsb > PUD_SHIFT)
		return PAGE_SIZE;
	return 1ULL << lsb;
}

static int sgfs_machine_check(struct notifier_block *nb, unsigned long val, void *data)
{
	struct mce *m = data;
	u64 addr, bytes;

	if (!m || !mce_is_memory_error(m) || mce_is_correctable(m) || !mce_usable_address(m))
		return NOTIFY_DONE;
	bytes = sgfs_extent_of(m);
	addr = m->addr & GENMASK_ULL(boot_cpu_data.x86_phys_bits - 1, 0) & ~(bytes - 1);
	mutex_lock(&volumes_lock);
	/* the kernel has already signalled its mappers, if it can */
	sgfs_note(addr, bytes, -1);
	mutex_unlock(&volumes_lock);
	return NOTIFY_DONE;
}

static struct notifier_block checks = {
	.notifier_call	= sgfs_machine_check,
	.priority	= MCE_PRIO_NFIT,	/* called after the kernel's own notifiers */
};
#endif

void sgfs_poison_init(void)
{
#ifdef CONFIG_X86_MCE
	mce_register_decode_chain(&checks);
#endif
}

void sgfs_poison_exit(void)
{
	struct found *f, *next;

#ifdef CONFIG_X86_MCE
	mce_unregister_decode_chain(&checks);
#endif
	list_for_each_entry_safe(f, next, &found, list)
		kfree(f);
}

/* --- from a copy ------------------------------------------------------------------------------ */

#define LINE	64

/*
 * Called after a copy ended early. Return true if bad memory was the reason; it has then been
 * recorded.
 */
bool sgfs_poison_met(struct sgfs *fs, u64 off, size_t len)
{
	u64 at = off, end = off + min_t(size_t, len, PAGE_SIZE - offset_in_page(off));
	char line[LINE];
	size_t n;

	if (sg_is_bad(&fs->vol, off & PAGE_MASK, 1))
		return true;
	for (; at < end; at += n) {
		n = min_t(u64, LINE - at % LINE, end - at);
		if (copy_mc_to_kernel(line, fs->vol.base + at, n))
			break;
	}
	if (at >= end)
		return false;
	mutex_lock(&volumes_lock);
	sgfs_note(fs->mem.phys + round_down(at, PAGE_SIZE), PAGE_SIZE, -1);
	mutex_unlock(&volumes_lock);
	return true;
}

/* --- by an operator --------------------------------------------------------------------------- */

ssize_t sgfs_poison_show(struct sgfs *fs, char *buf)
{
	u64 page, pages;
	ssize_t len = 0;
	unsigned int i;

	for (i = 0; sg_bad_entry(&fs->vol, i, &page, &pages); i++)
		if (pages)
			len += sysfs_emit_at(buf, len, "%llu %llu %s\n", page, pages,
					     sg_page_role(&fs->vol, page << PAGE_SHIFT));
	return len;
}

/*
 * The kernel does not access these pages again before the next boot, so the module must not either.
 */
static bool sgfs_is_poisoned(const struct sgfs *fs, u64 page, u64 pages)
{
	phys_addr_t start = fs->mem.phys + (page << PAGE_SHIFT);
	struct found *f;

	list_for_each_entry(f, &found, list)
		if (f->phys < start + (pages << PAGE_SHIFT) && start < f->phys + f->bytes)
			return true;
	return false;
}

static int sgfs_poison_forget(struct sgfs *fs, u64 page, u64 pages)
{
	if (sgfs_is_poisoned(fs, page, pages))
		return -EBUSY;
	return min(sg_bad_remove(&fs->vol, page << PAGE_SHIFT, pages << PAGE_SHIFT), 0);
}

/* "add PAGE PAGES" or "remove PAGE PAGES" */
int sgfs_poison_store(struct sgfs *fs, const char *text)
{
	const u64 most = SG_VOLUME_MAX >> PAGE_SHIFT;
	u64 page, pages;
	char verb[8];
	int err, end = 0;

	if (sscanf(text, "%7s %llu %llu%n", verb, &page, &pages, &end) != 3 ||
	    !sysfs_streq(text + end, "") || page > most || !pages || pages > most)
		return -EINVAL;
	if (!strcmp(verb, "add"))
		return min(sg_bad_add(&fs->vol, page << PAGE_SHIFT, pages << PAGE_SHIFT), 0);
	if (strcmp(verb, "remove"))
		return -EINVAL;
	mutex_lock(&volumes_lock);
	err = pages <= READ_ONCE(fs->vol.size) >> PAGE_SHIFT ? sgfs_poison_forget(fs, page, pages) :
		-EINVAL;
	mutex_unlock(&volumes_lock);
	return err;
}

/* --- with the mount --------------------------------------------------------------------------- */

void sgfs_poison_prepare(struct sgfs *fs)
{
	INIT_WORK(&fs->bad, sgfs_poison_take_away);
	INIT_LIST_HEAD(&fs->volumes);
}

/* Called when the volume is open but not yet in use: marks the pages known here as bad. */
void sgfs_poison_start(struct sgfs *fs)
{
	struct found *f;
	u64 off, len;

	fs->vol.on_bad = sgfs_on_bad;
	mutex_lock(&volumes_lock);
	list_for_each_entry(f, &found, list)
		if (sgfs_in_volume(fs, f->phys, f->bytes, &off, &len))
			sg_bad_add(&fs->vol, off, len);
	list_add(&fs->volumes, &volumes);
	mutex_unlock(&volumes_lock);
}

void sgfs_poison_stop(struct sgfs *fs)
{
	mutex_lock(&volumes_lock);
	list_del_init(&fs->volumes);
	mutex_unlock(&volumes_lock);
}

/* Called after the leave: no source reports bad pages of this volume any more. */
void sgfs_poison_end(struct sgfs *fs)
{
	cancel_work_sync(&fs->bad);
}
