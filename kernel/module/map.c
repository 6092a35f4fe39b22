// SPDX-License-Identifier: GPL-2.0
/*
 * The three ways to the data (D5), chosen per mount by map=: walk needs nothing here. For splice
 * and shadow a file has a window from its first open to its last close, as large as its table is
 * high. What a window cannot give (a hole, the part behind its end, a fault) is walked.
 *
 * Reads and writes run with i_rwsem held, so whoever holds it exclusively may exchange a window.
 * Opening and closing does not hold it: but nobody reads a file that nobody has open.
 */
#include <linux/pagemap.h>
#include <linux/uio.h>

#include "stargatefs.h"
#include "trace.h"

/* --- the volume's pool ------------------------------------------------------------------------ */

static int make_pool(struct sgfs *fs)
{
	struct sg_windows *ws;
	int err = 0;

	mutex_lock(&fs->windows_lock);
	if (!fs->windows) {
		ws = sg_windows_create(fs->mem.phys, fs->vol.size, fs->mem.base, 0);
		err = PTR_ERR_OR_ZERO(ws);
		if (!err)
			smp_store_release(&fs->windows, ws);
	}
	mutex_unlock(&fs->windows_lock);
	return err;
}

/* A table that guests may write is followed by the host's MMU only if the volume was made so. */
static bool splice_allowed(const struct sgfs *fs)
{
	return boot_cpu_has(X86_FEATURE_HYPERVISOR) ||
	       fs->vol.sb.params & SG_PARAM_HOST_SPLICE;
}

int sgfs_map_usable(struct sgfs *fs, enum sgfs_map map, const char **why)
{
	if (map == SGFS_MAP_WALK)
		return 0;
	if (!sg_windows_supported(why))
		return -EOPNOTSUPP;
	if (map == SGFS_MAP_SPLICE && !splice_allowed(fs)) {
		*why = "on a host, the volume must have been made for it "
		       "(mkfs.stargatefs --param host-splice)";
		return -EPERM;
	}
	*why = "no window could be made";
	return make_pool(fs);
}

/* Pages are about to be used again: no translation of ours leads there any more (D7). */
void sgfs_map_quiesce(struct sg_vol *vol)
{
	struct sgfs *fs = container_of(vol, struct sgfs, vol);
	struct sg_windows *ws = smp_load_acquire(&fs->windows);

	synchronize_rcu_expedited();	/* walks: sg_look_begin() */
	if (ws)
		sg_windows_flush(ws);
}

/* --- a file's window -------------------------------------------------------------------------- */

static unsigned int height_of(struct inode *inode)
{
	return SG_ROOT_HEIGHT(sg_root(sgfs_vol(inode), sgfs_ref(inode)));
}

static void detach(struct sgfs_inode *si)
{
	struct sg_window *window = si->window;
	struct sg_shadow *shadow = si->shadow;

	WRITE_ONCE(si->window, NULL);
	WRITE_ONCE(si->shadow, NULL);
	sg_window_put(window);
	sg_shadow_close(shadow);
}

static int walk_for_shadow(void *ctx, u64 page, u64 want, struct sg_shadow_run *out)
{
	struct inode *inode = ctx;
	struct sg_run run;
	int err = sg_walk(sgfs_vol(inode), sgfs_ref(inode), page, want, &run);

	if (err)
		return err;
	out->phys = run.off ? SGFS(inode->i_sb)->mem.phys + run.off : 0;
	out->pages = run.pages;
	return 0;
}

/* Where the volume says what the file's table is. */
static const u64 *root_word(const struct inode *inode)
{
	const struct sg_inode *record = (void *)(sgfs_vol(inode)->base + sgfs_ref(inode)->off);

	return &record->table;
}

static void attach_splice(struct inode *inode, struct sg_windows *ws)
{
	struct sg_window *w = sg_window_get(ws, height_of(inode));

	if (w && sg_window_hook_root(w, root_word(inode))) {
		sg_window_put(w);
		w = NULL;
	}
	WRITE_ONCE(SGFS_I(inode)->window, w);
}

static void attach(struct inode *inode)
{
	struct sgfs *fs = SGFS(inode->i_sb);
	struct sgfs_inode *si = SGFS_I(inode);
	struct sg_windows *ws = smp_load_acquire(&fs->windows);
	unsigned int height = height_of(inode);

	si->map = READ_ONCE(fs->opt.map);
	if (si->map == SGFS_MAP_WALK || !ws)
		return;
	if (si->map == SGFS_MAP_SPLICE)
		attach_splice(inode, ws);
	else
		WRITE_ONCE(si->shadow, sg_shadow_open(ws, height, walk_for_shadow, inode));
	trace_sgfs_window(inode, si->map, height, si->window || si->shadow);
}

int sgfs_map_open(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);

	mutex_lock(&si->window_lock);
	if (!si->opens++)
		attach(inode);
	mutex_unlock(&si->window_lock);
	return 0;
}

void sgfs_map_close(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);

	mutex_lock(&si->window_lock);
	if (!--si->opens)
		detach(si);
	mutex_unlock(&si->window_lock);
}

static u64 window_size(const struct sgfs_inode *si)
{
	if (si->shadow)
		return sg_window_size(sg_shadow_window(si->shadow));
	return si->window ? sg_window_size(si->window) : 0;
}

/* The table got higher (or the mount another map=): a window that fits. */
void sgfs_map_grown(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	unsigned int height;

	if (likely(si->map == SGFS_MAP_WALK && READ_ONCE(SGFS(inode->i_sb)->opt.map) == si->map))
		return;
	mutex_lock(&si->window_lock);
	height = height_of(inode);
	if (si->opens && (si->map != READ_ONCE(SGFS(inode->i_sb)->opt.map) ||
			  (si->window && sg_window_lost(si->window)) ||
			  (height && window_size(si) != SG_WINDOW_SIZE(height)))) {
		detach(si);
		attach(inode);
	}
	mutex_unlock(&si->window_lock);
}

/* What was cut off must not be read through an old translation: it has to read as a hole. */
void sgfs_map_cut(struct inode *inode, u64 pos, u64 len)
{
	struct sgfs_inode *si = SGFS_I(inode);

	if (likely(si->map == SGFS_MAP_WALK))
		return;
	mutex_lock(&si->window_lock);
	if (si->shadow)
		sg_shadow_clear(si->shadow, pos >> PAGE_SHIFT, U64_MAX);
	if (si->window) {
		detach(si);
		sg_windows_flush(SGFS(inode->i_sb)->windows);
		attach(inode);
	}
	mutex_unlock(&si->window_lock);
	sgfs_map_grown(inode);
}

void sgfs_map_evict(struct inode *inode)
{
	detach(SGFS_I(inode));
}

/* --- copies ----------------------------------------------------------------------------------- */

/* The file's window if the mount still wants it: a remount with another map= counts at once. */
static struct sg_window *window_of(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);

	if (likely(si->map == SGFS_MAP_WALK) ||
	    unlikely(si->map != READ_ONCE(SGFS(inode->i_sb)->opt.map)))
		return NULL;
	if (si->window)
		return si->window;
	return si->shadow ? sg_shadow_window(si->shadow) : NULL;
}

/*
 * The copy ended early. A shadow is filled where it is first used: fill the 2 MiB in which it
 * ended, and say whether to try again. In a splice there is nothing that we could do.
 */
static bool fill_shadow(struct inode *inode, u64 pos)
{
	struct sgfs_inode *si = SGFS_I(inode);
	u64 first = round_down(pos, PMD_SIZE) >> PAGE_SHIFT;
	struct sg_run run;
	bool again = false;

	if (!si->shadow || pos >= window_size(si))
		return false;
	if (sg_walk(sgfs_vol(inode), sgfs_ref(inode), pos >> PAGE_SHIFT, 1, &run) || !run.off)
		return false;
	mutex_lock(&si->window_lock);
	if (si->shadow)
		again = !sg_shadow_fill(si->shadow, first, PMD_SIZE >> PAGE_SHIFT);
	mutex_unlock(&si->window_lock);
	return again;
}

typedef size_t copy_fn(struct sg_window *w, u64 pos, size_t len, struct iov_iter *iter);

static size_t copy(struct inode *inode, u64 pos, size_t len, struct iov_iter *iter, copy_fn *fn)
{
	struct sg_window *w = window_of(inode);
	size_t done = 0, piece, n;
	bool filled = false;

	if (likely(!w))
		return 0;
	while (done < len) {
		piece = min_t(size_t, len - done, SGFS_PIECE);
		n = fn(w, pos + done, piece, iter);
		done += n;
		if (n)
			filled = false;
		if (n < piece) {
			if (filled || !fill_shadow(inode, pos + done))
				break;
			filled = true;	/* a second time at the same place is no use */
		}
		if (done < len)
			cond_resched();
	}
	if (done)
		sgfs_add(inode->i_sb, SGFS_WINDOW_BYTES, done);
	return done;
}

size_t sgfs_map_read(struct inode *inode, u64 pos, size_t len, struct iov_iter *to)
{
	return copy(inode, pos, len, to, sg_window_copy_to_iter);
}

size_t sgfs_map_write(struct inode *inode, u64 pos, size_t len, struct iov_iter *from)
{
	return copy(inode, pos, len, from, sg_window_copy_from_iter);
}
