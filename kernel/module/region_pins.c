// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of region that no process maps any more, but that are still pinned (get_user_pages): by
 * direct I/O in progress into a former mapping, or by a pipe. Such a pin outlives the mapping. Its
 * owner reads and writes these addresses, even if another volume then has them. So the mount
 * remains as long as the pin: the memory under it is not unmounted, unloaded, deleted or recreated
 * (D10).
 */
#include <linux/file.h>

#include "stargatefs.h"

#define LOOK_MS	100

/* invalidate_lock of @region is held, because a page fault would change the pages examined here. */
bool sgfs_is_lent(struct inode *region)
{
	struct xarray *pages = &region->i_mapping->i_pages;
	unsigned long first = PHYS_PFN(SGFS(region->i_sb)->mem.phys), index, i, n;
	void *entry;

	xa_for_each(pages, index, entry) {
		n = 1UL << xa_get_order(pages, index);
		for (i = round_down(index, n); n; i++, n--)
			if (sgfs_page_is_pinned(pfn_to_page(first + i)))
				return true;
		cond_resched();
	}
	return false;
}

static void sgfs_region_pins_look(struct work_struct *work)
{
	struct sgfs *fs = container_of(to_delayed_work(work), struct sgfs, look_lent);
	struct file *file = fs->lent;
	struct inode *region = file_inode(file);
	bool stays;

	filemap_invalidate_lock(region->i_mapping);
	stays = !SGFS_I(region)->vmas && sgfs_is_lent(region);
	if (!stays)
		fs->lent = NULL;
	filemap_invalidate_unlock(region->i_mapping);
	if (stays)
		queue_delayed_work(sgfs_wq, &fs->look_lent, msecs_to_jiffies(LOOK_MS));
	else
		/* in a kernel thread, fput() defers the release to another thread */
		fput(file);
}

/* Called after the last mapping has ended. */
void sgfs_keep_lent(struct sgfs *fs, struct file *file)
{
	struct inode *region = file_inode(file);

	filemap_invalidate_lock(region->i_mapping);
	if (!SGFS_I(region)->vmas && !fs->lent && sgfs_is_lent(region)) {
		fs->lent = get_file(file);
		queue_delayed_work(sgfs_wq, &fs->look_lent, msecs_to_jiffies(LOOK_MS));
	}
	filemap_invalidate_unlock(region->i_mapping);
}

void sgfs_lent_report(struct sgfs *fs)
{
	if (READ_ONCE(fs->lent))
		sg_log(fs->sb, SG_WARN,
		       "stays mounted: no process maps .stargate/region, but pages of it are still in use (direct I/O, a pipe)");
}

void sgfs_lent_init(struct sgfs *fs)
{
	INIT_DELAYED_WORK(&fs->look_lent, sgfs_region_pins_look);
}

/*
 * Called when nothing keeps the mount any more; the last user that kept it may still be returning.
 */
void sgfs_lent_end(struct sgfs *fs)
{
	cancel_delayed_work_sync(&fs->look_lent);
}
