// SPDX-License-Identifier: GPL-2.0
/*
 * The three data paths (D5), chosen per mount by map=. walk needs nothing from this file. For
 * splice and shadow a file has a window from its first open to its last close. The height of the
 * file's table determines the size of the window. Reads and writes walk where the window has no
 * page: in a hole, beyond the window's end, and after a fault.
 *
 * Reads and writes run with i_rwsem held, so a task that holds it exclusively may exchange a
 * window. Open and close do not hold i_rwsem, but no task reads a file that is not open. Another
 * system may cut pages off, or set another root. The next user of the window then exchanges it,
 * after a wait for running copies. Each copy counts as a look, like a walk (D7).
 */
#include <linux/pagemap.h>
#include <linux/uio.h>

#include "stargatefs.h"
#include "trace.h"

/* --- the volume's pool ------------------------------------------------------------------------ */

static int sgfs_make_pool(struct sgfs *fs)
{
	struct sg_windows *ws;
	int err = 0;

	mutex_lock(&fs->windows_lock);
	if (!fs->windows) {
		/*
		 * The pool covers all memory into which the volume may grow: the engine's bound is
		 * below its end.
		 */
		ws = sg_windows_create(fs->mem.phys, fs->mem.size, fs->mem.base, 0);
		err = PTR_ERR_OR_ZERO(ws);
		if (!err)
			smp_store_release(&fs->windows, ws);
	}
	mutex_unlock(&fs->windows_lock);
	return err;
}

int sgfs_map_usable(struct sgfs *fs, enum sgfs_map map, const char **why)
{
	if (map == SGFS_MAP_WALK)
		return 0;
	if (!sg_windows_supported(why))
		return -EOPNOTSUPP;
	if (map == SGFS_MAP_SPLICE && !sgfs_may_splice(fs, why))
		return -EPERM;
	*why = "no window could be made";
	return sgfs_make_pool(fs);
}

/* Remove every translation of this system that leads to pages that will be reused (D7). */
void sgfs_map_quiesce(struct sgfs *fs)
{
	struct sg_windows *ws = smp_load_acquire(&fs->windows);

	if (!ws)
		return;
	WRITE_ONCE(fs->windows_age, fs->windows_age + 1);
	synchronize_rcu_expedited();	/* waits for copies that have not seen the change */
	sg_windows_flush(ws);
}

/* --- a file's window -------------------------------------------------------------------------- */

static unsigned int sgfs_height_of(struct inode *inode)
{
	return SG_ROOT_HEIGHT(sg_root(sgfs_vol(inode), sgfs_ref(inode)));
}

static void sgfs_detach(struct sgfs_inode *si)
{
	struct sg_window *window = si->window;
	struct sg_shadow *shadow = si->shadow;

	WRITE_ONCE(si->window, NULL);
	WRITE_ONCE(si->shadow, NULL);
	sg_window_put(window);
	sg_shadow_close(shadow);
}

static int sgfs_walk_for_shadow(void *ctx, u64 page, u64 want, struct sg_shadow_run *out)
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

/* Return the word of the volume that names the file's table. */
static const u64 *sgfs_root_word(const struct inode *inode)
{
	const struct sg_inode *record = (void *)(sgfs_vol(inode)->base + sgfs_ref(inode)->off);

	return &record->table;
}

static void sgfs_attach_splice(struct inode *inode, struct sg_windows *ws)
{
	struct sg_window *w = sg_window_get(ws, sgfs_height_of(inode));

	if (w && sg_window_hook_root(w, sgfs_root_word(inode))) {
		sg_window_put(w);
		w = NULL;
	}
	WRITE_ONCE(SGFS_I(inode)->window, w);
}

void sgfs_map_attach(struct inode *inode)
{
	struct sgfs *fs = SGFS(inode->i_sb);
	struct sgfs_inode *si = SGFS_I(inode);
	struct sg_windows *ws = smp_load_acquire(&fs->windows);
	unsigned int height;

	si->map_age = READ_ONCE(fs->windows_age);
	si->map_cuts = sg_cuts(&fs->vol, &si->ref);
	si->map_root = READ_ONCE(*sgfs_root_word(inode));
	height = sgfs_height_of(inode);
	si->map = READ_ONCE(fs->opt.map);
	/*
	 * Report whether the file has atomic writes. These replace pages, and no system then checks
	 * for windows that show the old pages. A store may not bypass the lock of such a file
	 * either. Either the flag was set after @map_cuts was loaded, or this function sees the
	 * flag.
	 */
	if (si->map == SGFS_MAP_WALK || !ws || sg_is_read_whole(&fs->vol, &si->ref))
		return;
	if (si->map == SGFS_MAP_SPLICE)
		sgfs_attach_splice(inode, ws);
	else
		WRITE_ONCE(si->shadow, sg_shadow_open(ws, height, sgfs_walk_for_shadow, inode));
	trace_sgfs_window(inode, si->map, height, si->window || si->shadow);
}

void sgfs_map_detach(struct inode *inode)
{
	sgfs_detach(SGFS_I(inode));
}

static u64 sgfs_window_size(const struct sgfs_inode *si)
{
	if (si->shadow)
		return sg_window_size(sg_shadow_window(si->shadow));
	return si->window ? sg_window_size(si->window) : 0;
}

/* Take a window that fits, because the table became higher, or the mount got another map=. */
void sgfs_map_grown(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	unsigned int height;

	if (likely(si->map == SGFS_MAP_WALK && READ_ONCE(SGFS(inode->i_sb)->opt.map) == si->map))
		return;
	mutex_lock(&si->window_lock);
	height = sgfs_height_of(inode);
	if (si->opens && (si->map != READ_ONCE(SGFS(inode->i_sb)->opt.map) ||
			  (si->window && sg_window_lost(si->window)) ||
			  (height && sgfs_window_size(si) != SG_WINDOW_SIZE(height)))) {
		sgfs_detach(si);
		sgfs_map_attach(inode);
	}
	mutex_unlock(&si->window_lock);
}

/* A read must find a hole where pages were cut off, so it must not use an old translation. */
void sgfs_map_cut(struct inode *inode, u64 pos, u64 len)
{
	struct sgfs_inode *si = SGFS_I(inode);

	if (likely(si->map == SGFS_MAP_WALK))
		return;
	mutex_lock(&si->window_lock);
	if (si->shadow)
		sg_shadow_clear(si->shadow, pos >> PAGE_SHIFT, U64_MAX);
	if (si->window) {
		sgfs_detach(si);
		sg_windows_flush(SGFS(inode->i_sb)->windows);
		sgfs_map_attach(inode);
	}
	mutex_unlock(&si->window_lock);
	sgfs_map_grown(inode);
}

void sgfs_map_evict(struct inode *inode)
{
	sgfs_detach(SGFS_I(inode));
}

/* --- copies ----------------------------------------------------------------------------------- */

/*
 * Report whether the window still follows the file's table. Every read calls this, so the code only
 * compares words, and does not check their content.
 */
static bool sgfs_data_path_is_same(const struct inode *inode)
{
	const struct sgfs_inode *si = SGFS_I(inode);
	const struct sg_inode *record = (void *)(sgfs_vol(inode)->base + si->ref.off);

	return si->map_cuts == smp_load_acquire(&record->cuts) &&
	       si->map_root == READ_ONCE(record->table);
}

static bool sgfs_data_path_is_current(const struct inode *inode)
{
	return READ_ONCE(SGFS_I(inode)->map_age) == READ_ONCE(SGFS(inode->i_sb)->windows_age) &&
	       sgfs_data_path_is_same(inode);
}

/*
 * Exchange the window. i_rwsem is held shared, so other tasks may be copying. The old window is
 * freed after their copies.
 */
static void sgfs_data_path_exchange(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	struct sg_window *window = si->window;
	struct sg_shadow *shadow = si->shadow;

	WRITE_ONCE(si->window, NULL);
	WRITE_ONCE(si->shadow, NULL);
	synchronize_rcu_expedited();
	sg_window_put(window);
	sg_shadow_close(shadow);
	sg_windows_flush(SGFS(inode->i_sb)->windows);
	sgfs_map_attach(inode);
}

/* Exchange the window if it is out of date. Return false if it was up to date. */
static bool sgfs_catch_up(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	u64 age;

	if (sgfs_data_path_is_current(inode))
		return false;
	mutex_lock(&si->window_lock);
	age = READ_ONCE(SGFS(inode->i_sb)->windows_age);
	smp_rmb();	/* a later cut makes the window out of date again */
	if (!sgfs_data_path_is_same(inode))
		sgfs_data_path_exchange(inode);
	else
		WRITE_ONCE(si->map_age, age);
	mutex_unlock(&si->window_lock);
	return true;
}

/* Return the file's window, unless a remount with another map= has just made it obsolete. */
static struct sg_window *sgfs_window_of(struct inode *inode)
{
	struct sgfs_inode *si = SGFS_I(inode);
	struct sg_window *window = READ_ONCE(si->window);
	struct sg_shadow *shadow = READ_ONCE(si->shadow);

	if (unlikely(si->map != READ_ONCE(SGFS(inode->i_sb)->opt.map)) ||
	    !sgfs_data_path_is_current(inode))
		return NULL;
	if (window)
		return window;
	return shadow ? sg_shadow_window(shadow) : NULL;
}

/*
 * Prepare the next attempt after a copy that ended early. A shadow is filled at first use, so fill
 * the 2 MiB in which the copy ended. A splice cannot be filled.
 */
static void sgfs_fill_shadow(struct inode *inode, u64 pos)
{
	struct sgfs_inode *si = SGFS_I(inode);
	u64 first = round_down(pos, PMD_SIZE) >> PAGE_SHIFT;
	struct sg_run run;

	if (!READ_ONCE(si->shadow))
		return;
	if (sg_walk(sgfs_vol(inode), sgfs_ref(inode), pos >> PAGE_SHIFT, 1, &run) || !run.off)
		return;
	mutex_lock(&si->window_lock);
	if (si->shadow && pos < sgfs_window_size(si))
		sg_shadow_fill(si->shadow, first, PMD_SIZE >> PAGE_SHIFT);
	mutex_unlock(&si->window_lock);
}

struct direction {
	size_t (*copy)(struct sg_window *w, u64 pos, size_t len, struct iov_iter *iter);
	size_t (*fault_in)(const struct iov_iter *iter, size_t len);
};

/* Copy in one look. The user's memory cannot delay it, because an absent page ends the copy. */
static __always_inline size_t sgfs_copy_piece(struct inode *inode, u64 pos, size_t len,
					      struct iov_iter *iter, const struct direction *way,
					      bool *any)
{
	struct sg_window *w;
	size_t n = 0;

	sg_look_begin();
	w = sgfs_window_of(inode);
	*any = w;
	if (w) {
		pagefault_disable();
		n = way->copy(w, pos, len, iter);
		pagefault_enable();
	}
	sg_look_end();
	return n;
}

/*
 * Copy through the window. @nowait: end the copy where the window is not ready; the caller then
 * continues by a walk, which waits for nothing.
 */
static __always_inline size_t sgfs_copy(struct inode *inode, u64 pos, size_t len,
					struct iov_iter *iter, const struct direction *way,
					bool nowait)
{
	bool again = false, late = false, any;
	size_t done = 0, piece, n;

	if (likely(SGFS_I(inode)->map == SGFS_MAP_WALK) || sgfs_iter_allocates(iter) ||
	    SGFS_I(inode)->flags & (SG_FL_ATOMIC | SG_FL_WHOLE))
		return 0;
	if (sg_has_bad(sgfs_vol(inode)))
		return 0;	/* a window still leads to a bad page, but a walk checks for it */
	while (done < len) {
		piece = min_t(size_t, len - done, SGFS_PIECE);
		n = sgfs_copy_piece(inode, pos + done, piece, iter, way, &any);
		if (unlikely(!any)) {
			if (late || nowait || !sgfs_catch_up(inode))
				break;
			late = true;	/* a reader that is late twice walks instead */
			continue;
		}
		done += n;
		if (n)
			again = false;
		if (n < piece) {
			if (again || nowait || way->fault_in(iter, piece - n) == piece - n)
				break;
			sgfs_fill_shadow(inode, pos + done);
			again = true;	/* a second attempt at the same position cannot succeed */
		}
		if (done < len)
			cond_resched();
	}
	if (done)
		sgfs_add(inode->i_sb, SGFS_WINDOW_BYTES, done);
	return done;
}

size_t sgfs_map_read(struct inode *inode, u64 pos, size_t len, struct iov_iter *to, bool nowait)
{
	static const struct direction out = { sg_window_copy_to_iter, fault_in_iov_iter_writeable };

	return sgfs_copy(inode, pos, len, to, &out, nowait);
}

size_t sgfs_map_write(struct inode *inode, u64 pos, size_t len, struct iov_iter *from)
{
	static const struct direction in = { sg_window_copy_from_iter, fault_in_iov_iter_readable };

	return sgfs_copy(inode, pos, len, from, &in, false);
}
