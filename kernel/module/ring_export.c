// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of a volume for other modules (stargate_ring.h). They are objects like those of processes:
 * the receiver has a cell, and the sender owns the ring's lock as long as it has the ring open. So
 * the rules for dead owners, fenced systems and the lapse (docs/channels.md) are true for them.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/rculist.h>

#include "stargatefs.h"
#include "stargate_ring.h"

/**
 * struct stargate_volume - a use of a mounted volume by another module
 * @node: in sgfs.uses; @ended: completed by its end.
 * @self: the owner of the locks of all rings into which the module sends.
 * @permit: the object of stargate_permit(); @permitted: it is open.
 * @leaves: stargate_volume_leave() was called.
 */
struct stargate_volume {
	struct sgfs *fs;
	const struct stargate_volume_ops *ops;
	void *ctx;
	struct list_head node;
	struct completion ended;
	refcount_t refs;
	bool owns, permitted, leaves;
	struct sg_sem_caller self;
	struct sg_sem permit;
};

struct stargate_ring_object {
	struct sg_sem sem;
	bool locked;
};

static DEFINE_MUTEX(sgfs_uses_lock);	/* of sgfs.uses of all mounts */

/* --- use of a volume -------------------------------------------------------------------------- */

/*
 * Two uses for one service would have rings of the same names, so the second one would receive what
 * is meant for the first one.
 */
static bool sgfs_is_used(const struct sgfs *fs, const struct stargate_volume_ops *ops)
{
	const struct stargate_volume *v;

	list_for_each_entry(v, &fs->uses, node)
		if (v->ops == ops && !v->leaves)
			return true;
	return false;
}

static int sgfs_use(const struct path *path, struct stargate_volume *v)
{
	struct super_block *sb = path->dentry->d_sb;
	int err = 0;

	if (sb->s_type->owner != THIS_MODULE)
		return -ENODEV;
	/* rings take space, so a bind mount without the right to write gives no right to rings */
	if (!SGFS(sb)->joined || __mnt_is_readonly(path->mnt))
		return -EROFS;
	v->fs = SGFS(sb);
	/* the path keeps the mount until this use is in the list */
	mutex_lock(&sgfs_uses_lock);
	if (sgfs_is_used(v->fs, v->ops))
		err = -EBUSY;
	else
		list_add_rcu(&v->node, &v->fs->uses);
	mutex_unlock(&sgfs_uses_lock);
	return err;
}

struct stargate_volume *stargate_volume_use(const char *path,
					    const struct stargate_volume_ops *ops, void *ctx)
{
	struct stargate_volume *v = kzalloc(sizeof(*v), GFP_KERNEL);
	struct path found;
	int err;

	if (!v)
		return ERR_PTR(-ENOMEM);
	v->ops = ops;
	v->ctx = ctx;
	init_completion(&v->ended);
	refcount_set(&v->refs, 1);
	err = kern_path(path, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &found);
	if (!err) {
		err = sgfs_use(&found, v);
		path_put(&found);
	}
	if (!err)
		return v;
	kfree(v);
	return ERR_PTR(err);
}
SGFS_EXPORT(stargate_volume_use);

static void sgfs_use_put(struct stargate_volume *v)
{
	if (refcount_dec_and_test(&v->refs))
		kfree(v);
}

void stargate_volume_leave(struct stargate_volume *v)
{
	mutex_lock(&sgfs_uses_lock);
	v->leaves = true;
	mutex_unlock(&sgfs_uses_lock);
}
SGFS_EXPORT(stargate_volume_leave);

void stargate_volume_end(struct stargate_volume *v)
{
	if (v->owns)
		sg_sem_exit(&v->fs->vol, &v->self);
	mutex_lock(&sgfs_uses_lock);
	list_del_rcu(&v->node);
	mutex_unlock(&sgfs_uses_lock);
	synchronize_rcu();	/* interrupts that still call @rung */
	/* from now on the mount may end */
	complete(&v->ended);
	sgfs_use_put(v);
}
SGFS_EXPORT(stargate_volume_end);

static struct stargate_volume *sgfs_next_use(struct sgfs *fs)
{
	struct stargate_volume *v;

	mutex_lock(&sgfs_uses_lock);
	v = list_first_entry_or_null(&fs->uses, struct stargate_volume, node);
	if (v) {
		refcount_inc(&v->refs);
		v->ops->gone(v->ctx);
	}
	mutex_unlock(&sgfs_uses_lock);
	return v;
}

void sgfs_uses_end(struct sgfs *fs)
{
	struct stargate_volume *v;

	while ((v = sgfs_next_use(fs))) {
		wait_for_completion(&v->ended);
		sgfs_use_put(v);
	}
}

/* --- systems ---------------------------------------------------------------------------------- */

/* A use does not keep the mount writable, as an open file would, so the module asks each time. */
bool stargate_volume_alive(const struct stargate_volume *v)
{
	return sgfs_alive(v->fs->sb) && !sb_rdonly(v->fs->sb) && !READ_ONCE(v->fs->failed);
}
SGFS_EXPORT(stargate_volume_alive);

unsigned int stargate_volume_slot(const struct stargate_volume *v)
{
	return v->fs->vol.slot;
}
SGFS_EXPORT(stargate_volume_slot);

u32 stargate_volume_incarnation(const struct stargate_volume *v)
{
	return v->fs->vol.incarnation;
}
SGFS_EXPORT(stargate_volume_incarnation);

bool stargate_slot_live(const struct stargate_volume *v, unsigned int slot, u32 *incarnation,
			char name[STARGATE_NAME_ROOM])
{
	struct sg_slot s;

	if (slot >= SG_SLOTS || sg_slot_read(&v->fs->vol, slot, &s) ||
	    SG_SLOT_STATE(s.state) != SG_SLOT_LIVE)
		return false;
	*incarnation = SG_SLOT_INC(s.state);
	strscpy(name, s.name, STARGATE_NAME_ROOM);
	return true;
}
SGFS_EXPORT(stargate_slot_live);

/* --- doorbells -------------------------------------------------------------------------------- */

void stargate_bell_ring(const struct stargate_volume *v, unsigned int slot)
{
	sg_doorbell_ring(&v->fs->vol, slot);
}
SGFS_EXPORT(stargate_bell_ring);

bool stargate_bell_covers(const struct stargate_volume *v)
{
	return sg_doorbell_covers(&v->fs->vol);
}
SGFS_EXPORT(stargate_bell_covers);

/* Called from the interrupt, under rcu_read_lock(). */
void sgfs_uses_rung(struct sgfs *fs)
{
	const struct stargate_volume *v;

	list_for_each_entry_rcu(v, &fs->uses, node)
		if (v->ops->rung)
			v->ops->rung(v->ctx);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* A close, or an open, is a change: a frozen mount makes it later. */
static bool sgfs_use_begin(const struct stargate_volume *v)
{
	return sb_start_write_trylock(v->fs->sb);
}

static void sgfs_use_done(const struct stargate_volume *v)
{
	sb_end_write(v->fs->sb);
}

static void sgfs_use_close(const struct stargate_volume *v, struct sg_sem *sem)
{
	if (sgfs_use_begin(v)) {
		sg_sem_close(&v->fs->vol, sem);
		sgfs_use_done(v);
	} else {
		sg_sem_close_later(&v->fs->vol, sem);
	}
}

/* Objects of other users do not count, because any user who may create files can make them. */
static bool sgfs_is_roots(const struct stargate_volume *v, const struct sg_sem *sem)
{
	struct sg_sem_stat st;

	return !sg_sem_fstat(&v->fs->vol, sem, &st) && !st.uid && !(st.mode & 077) &&
	       !(st.flags & SG_SEM_REMOVED);
}

/* Opens an object of root; type 0: any. The mount may be changed. */
static int sgfs_open_roots(struct stargate_volume *v, const char *name, unsigned int type,
			   struct sg_sem *sem)
{
	int err = sg_sem_open(&v->fs->vol, name, strlen(name), type, false, sem);

	if (err || sgfs_is_roots(v, sem))
		return err;
	sg_sem_close(&v->fs->vol, sem);
	return -EACCES;
}

int stargate_permit(struct stargate_volume *v, const char *name)
{
	int err;

	if (!sgfs_use_begin(v))
		return -EBUSY;
	err = sgfs_open_roots(v, name, 0, &v->permit);
	sgfs_use_done(v);
	v->permitted = !err;
	return err;
}
SGFS_EXPORT(stargate_permit);

u64 stargate_permit_users(const struct stargate_volume *v)
{
	struct sg_sem_stat st;

	if (!v->permitted || !sgfs_is_roots(v, &v->permit) ||
	    sg_sem_fstat(&v->fs->vol, &v->permit, &st))
		return 0;
	return st.users;
}
SGFS_EXPORT(stargate_permit_users);

void stargate_permit_end(struct stargate_volume *v)
{
	if (v->permitted)
		sgfs_use_close(v, &v->permit);
	v->permitted = false;
}
SGFS_EXPORT(stargate_permit_end);

/* --- rings ------------------------------------------------------------------------------------ */

/* The addresses stay valid while the ring is open: the memory of a mount does not move. */
static int sgfs_find_pieces(const struct sg_vol *vol, const struct sg_sem *sem,
			    struct stargate_ring *ring)
{
	u64 n = sem->size >> PAGE_SHIFT, i, off;

	ring->page = (u64 *)(vol->base + sem->words);
	ring->grains = sem->size / SG_RING_GRAIN;
	ring->piece = kvmalloc_array(n, sizeof(*ring->piece), GFP_KERNEL);
	if (!ring->piece)
		return -ENOMEM;
	ring->flat = NULL;
	for (i = 0; i < n; i++) {
		off = sg_sem_ring_at(vol, sem, i);
		if (!off)
			return -EIO;
		ring->piece[i] = vol->base + off;
		if (!i)
			ring->flat = ring->piece[0];
		else if (ring->piece[i] != ring->piece[i - 1] + PAGE_SIZE)
			ring->flat = NULL;
	}
	return 0;
}

/* Prepares the memory of a ring that was just opened; after an error the ring is closed. */
static int sgfs_ring_ready(struct stargate_volume *v, struct sg_sem *sem,
			   struct stargate_ring *ring, bool locked)
{
	int err = sgfs_find_pieces(&v->fs->vol, sem, ring);

	ring->object = err ? NULL : kmalloc(sizeof(*ring->object), GFP_KERNEL);
	if (ring->object) {
		*ring->object = (struct stargate_ring_object){ .sem = *sem, .locked = locked };
		return 0;
	}
	kvfree(ring->piece);
	ring->piece = NULL;
	return err ?: -ENOMEM;
}

static int sgfs_make_ring(struct stargate_volume *v, const char *name, u64 size,
			  struct sg_sem *sem)
{
	struct sg_vol *vol = &v->fs->vol;
	struct sg_sem_new new = { .type = SG_SEM_RING, .life = SG_SEM_LAST_USER,
		.flags = SG_SEM_MAPPED | SG_SEM_SINGLE, .mode = 0600, .initial = size,
		.now = ktime_get_real_ns() };
	size_t len = strlen(name);
	int err = sg_sem_create(vol, name, len, &new, true, false, sem);

	if (err != -EEXIST)
		return err;
	/* of an earlier life of this module, or of a user who wants to be in the way */
	return sg_sem_unlink(vol, name, len, SG_SEM_ANY) ?:
	       sg_sem_create(vol, name, len, &new, true, false, sem);
}

#define SGFS_RING_WAIT_NS	(200 * NSEC_PER_MSEC)	/* for the lock of the objects' file */

int stargate_ring_make(struct stargate_volume *v, const char *name, u64 size,
		       struct stargate_ring *ring)
{
	struct sg_sem sem;
	int err;

	if (!sgfs_use_begin(v))
		return -EBUSY;
	err = sgfs_make_ring(v, name, size, &sem);
	if (!err) {
		err = sg_sem_ring_reader(&v->fs->vol, &sem, sg_ticks() + SGFS_RING_WAIT_NS) ?:
		      sgfs_ring_ready(v, &sem, ring, false);
		if (err)
			sg_sem_close(&v->fs->vol, &sem);
	}
	sgfs_use_done(v);
	return err;
}
SGFS_EXPORT(stargate_ring_make);

/* The module is one owner of locks, in whichever thread it runs. */
static int sgfs_use_be_owner(struct stargate_volume *v)
{
	int err;

	if (v->owns)
		return 0;
	err = sg_sem_enter(&v->fs->vol, 0, 0, "module", &v->self);
	v->owns = !err;
	return err;
}

/* Takes a ring's lock until the ring is closed. */
static int sgfs_be_sender(struct stargate_volume *v, const struct sg_sem *sem)
{
	struct sg_vol *vol = &v->fs->vol;
	struct sg_sem lock;
	int err = sg_sem_ring_part(sem, SG_RING_LOCK, &lock) ?: sgfs_use_be_owner(v) ?:
		  sg_sem_lock(vol, &lock, &v->self, 0);

	/* bytes behind the tail, which the dead sender may have left, are no record */
	return err == -EOWNERDEAD ? sg_sem_consistent(vol, &lock, &v->self) : err;
}

static void sgfs_be_no_sender(struct stargate_volume *v, const struct sg_sem *sem)
{
	struct sg_sem lock;

	if (!sg_sem_ring_part(sem, SG_RING_LOCK, &lock))
		sg_sem_unlock(&v->fs->vol, &lock, &v->self);
}

int stargate_ring_open(struct stargate_volume *v, const char *name, struct stargate_ring *ring)
{
	struct sg_sem sem;
	int err;

	if (!sgfs_use_begin(v))
		return -EBUSY;
	err = sgfs_open_roots(v, name, SG_SEM_RING, &sem);
	if (!err) {
		err = sgfs_be_sender(v, &sem);
		if (!err) {
			err = sgfs_ring_ready(v, &sem, ring, true);
			if (err)
				sgfs_be_no_sender(v, &sem);
		}
		if (err)
			sg_sem_close(&v->fs->vol, &sem);
	}
	sgfs_use_done(v);
	return err;
}
SGFS_EXPORT(stargate_ring_open);

bool stargate_ring_received(struct stargate_volume *v, const struct stargate_ring *ring)
{
	struct sg_sem_stat st;

	return !sg_sem_fstat(&v->fs->vol, &ring->object->sem, &st) && st.receivers &&
	       !(st.flags & SG_SEM_REMOVED);
}
SGFS_EXPORT(stargate_ring_received);

void stargate_ring_close(struct stargate_volume *v, struct stargate_ring *ring)
{
	if (!ring->object)
		return;
	if (ring->object->locked)
		sgfs_be_no_sender(v, &ring->object->sem);
	sgfs_use_close(v, &ring->object->sem);
	kfree(ring->object);
	kvfree(ring->piece);
	memset(ring, 0, sizeof(*ring));
}
SGFS_EXPORT(stargate_ring_close);
