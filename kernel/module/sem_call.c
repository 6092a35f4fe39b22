// SPDX-License-Identifier: GPL-2.0
/*
 * Operations on an object, for processes (ioctls, sem_file.c) and for other modules
 * (stargate_sem.h).
 */
#include <linux/delay.h>
#include <linux/export.h>
#include <linux/file.h>

#include "sem_priv.h"
#include "stargate_sem.h"

/*
 * Report whether a caller that opened an object only to read (SG_SEM_LOOK) may use this operation:
 * one that changes nothing for others.
 */
static bool sgfs_is_for_looking(u32 op)
{
	switch (op) {
	case SG_SEM_OP_READ:
	case SG_SEM_OP_READ_END:
	case SG_SEM_OP_COND_LOOK:
	case SG_SEM_OP_COND_WAIT:
	case SG_SEM_OP_AWAIT:
		return true;
	default:
		return false;
	}
}

/* Execute operations that do not wait, and that own nothing. */
static int sgfs_do_at_once(struct sgfs_sem *s, struct sg_sem *sem, struct sg_ioc_sem_op *op)
{
	struct sg_vol *vol = &s->fs->vol;

	switch (op->op) {
	case SG_SEM_OP_POST:
		return sg_sem_post(vol, sem);
	case SG_SEM_OP_READ_END:
		return sg_sem_read_unlock(vol, sem);
	case SG_SEM_OP_RING:
		sg_sem_ring(vol, sem);
		return 0;
	case SG_SEM_OP_COND_LOOK:
		return sg_sem_cond_prepare(vol, sem, &op->value);
	case SG_SEM_OP_SIGNAL:
		return sg_sem_cond_signal(vol, sem, false);
	case SG_SEM_OP_BROADCAST:
		return sg_sem_cond_signal(vol, sem, true);
	case SG_SEM_OP_ADVANCE:
		return sg_sem_advance(vol, sem, op->value);
	default:
		return 1;
	}
}

static int sgfs_do_as(struct sgfs_sem *s, struct sg_sem *sem, struct sg_ioc_sem_op *op,
		      struct sg_sem_caller *c)
{
	struct sg_vol *vol = &s->fs->vol;
	int ret;

	switch (op->op) {
	case SG_SEM_OP_LOCK:
		return sg_sem_lock(vol, sem, c, op->until);
	case SG_SEM_OP_UNLOCK:
		return sg_sem_unlock(vol, sem, c);
	case SG_SEM_OP_CONSISTENT:
		return sg_sem_consistent(vol, sem, c);
	case SG_SEM_OP_WAIT:
		return sg_sem_wait(vol, sem, c, op->until);
	case SG_SEM_OP_READ:
		return sg_sem_read_lock(vol, sem, c, op->until);
	case SG_SEM_OP_WRITE:
		return sg_sem_write_lock(vol, sem, c, op->until);
	case SG_SEM_OP_WRITE_END:
		return sg_sem_write_unlock(vol, sem, c);
	case SG_SEM_OP_DRAIN:
		return sg_sem_drain(vol, sem, c, op->until);
	case SG_SEM_OP_COND_WAIT:
		return sg_sem_cond_wait(vol, sem, c, op->value, op->until);
	case SG_SEM_OP_MEET:
		ret = sg_sem_meet(vol, sem, c, op->until);
		op->value = ret == 1;
		return min(ret, 0);
	case SG_SEM_OP_AWAIT:
		return sg_sem_await(vol, sem, c, op->value, op->until);
	default:
		return -EINVAL;
	}
}

/* Execute operations that make the caller an owner, or that only an owner may use. */
static bool sgfs_is_owners(u32 op)
{
	switch (op) {
	case SG_SEM_OP_LOCK:
	case SG_SEM_OP_UNLOCK:
	case SG_SEM_OP_CONSISTENT:
	case SG_SEM_OP_WRITE:
	case SG_SEM_OP_WRITE_END:
	case SG_SEM_OP_DRAIN:
		return true;
	default:
		return false;
	}
}

/*
 * Execute an operation with the descriptor as owner. Only one call for it may wait at a time; an
 * unlock does not wait.
 */
static int sgfs_do_as_itself(struct sgfs_sem *s, struct sg_sem *sem, struct sg_ioc_sem_op *op)
{
	bool waits = op->op == SG_SEM_OP_LOCK || op->op == SG_SEM_OP_WRITE ||
		     op->op == SG_SEM_OP_DRAIN;
	int ret;

	if (!waits)
		return sgfs_do_as(s, sem, op, &s->self);
	if (test_and_set_bit_lock(0, &s->busy))
		return -EBUSY;
	s->self.urgent = op->flags & SG_SEM_URGENT;
	ret = sgfs_do_as(s, sem, op, &s->self);
	clear_bit_unlock(0, &s->busy);
	return ret;
}

#define FROZEN_LOOK_MS	20	/* between checks for the thaw */

/* -EINPROGRESS: the volume is frozen, so no system can be recovered, and no cell assigned. */
static int sgfs_take_cell(struct sgfs_sem *s, u64 until)
{
	int err;

	if (!s->mapped)
		return -EBADF;
	if (!sb_start_write_trylock(s->fs->sb))
		return -EINPROGRESS;
	err = sg_sem_ring_reader(&s->fs->vol, &s->sem, until);
	sb_end_write(s->fs->sb);
	return err;
}

/*
 * Assign the descriptor's cell, once until the file is closed; @lock protects it. A thread does not
 * sleep with @lock held during a freeze, because the freeze may wait for a task that waits for
 * @lock (sgfs_sem_bind()).
 */
static int sgfs_be_reader(struct sgfs_sem *s, u64 *cell, u64 until)
{
	for (;;) {
		int err = mutex_lock_killable(&s->lock);

		if (err)
			return err;
		err = sgfs_take_cell(s, until);
		if (!err)
			*cell = s->sem.cell;
		mutex_unlock(&s->lock);
		if (err != -EINPROGRESS)
			return err;
		if (ktime_get_ns() >= until)
			return until ? -ETIMEDOUT : -EAGAIN;
		if (msleep_interruptible(FROZEN_LOOK_MS))
			return -EINTR;
	}
}

/*
 * Sweep a ring. It needs recovery of dead systems, so it does nothing during a freeze; the caller
 * calls again.
 */
static int sgfs_sweep(struct sgfs_sem *s)
{
	int err;

	if (!sb_start_write_trylock(s->fs->sb))
		return 0;
	err = sg_sem_ring_sweep(&s->fs->vol, &s->sem);
	sb_end_write(s->fs->sb);
	return err;
}

static int sgfs_do(struct sgfs_sem *s, struct sg_sem *sem, struct sg_ioc_sem_op *op)
{
	struct sg_sem_caller *c;
	int ret = sgfs_do_at_once(s, sem, op);

	if (ret <= 0)
		return ret;
	if (s->owns && sgfs_is_owners(op->op))
		return sgfs_do_as_itself(s, sem, op);
	c = sgfs_sem_me(s->fs);
	if (IS_ERR(c))
		return PTR_ERR(c);
	c->urgent = op->flags & SG_SEM_URGENT;
	return sgfs_do_as(s, sem, op, c);
}

int sgfs_sem_do(struct sgfs_sem *s, struct sg_ioc_sem_op *op)
{
	struct sg_sem part;
	int err;

	if (op->flags & ~SG_SEM_OP_FLAGS_KNOWN || op->reserved)
		return -EINVAL;
	if (!smp_load_acquire(&s->bound))
		return -ENOTCONN;
	if (s->look && !sgfs_is_for_looking(op->op))
		return -EBADF;
	if (op->op == SG_SEM_OP_READER)
		return sgfs_be_reader(s, &op->value, op->until);
	if (op->op == SG_SEM_OP_SWEEP)
		return sgfs_sweep(s);
	if (s->sem.type != SG_SEM_RING)
		return SG_SEM_PART_OF(op->flags) ? -EINVAL : sgfs_do(s, &s->sem, op);
	err = sg_sem_ring_part(&s->sem, SG_SEM_PART_OF(op->flags), &part);
	return err ?: sgfs_do(s, &part, op);
}

/* Execute operations for callers that opened the object for more than reading. */
static bool sgfs_is_done_at_once(struct sgfs_sem *s, unsigned int op, const struct sg_sem_caller *c)
{
	struct sg_vol *vol = &s->fs->vol;

	switch (op) {
	case SG_SEM_OP_WAIT:
		return sg_sem_wait_at_once(vol, &s->sem);
	case SG_SEM_OP_POST:
		return sg_sem_post_at_once(vol, &s->sem);
	case SG_SEM_OP_LOCK:
		return sg_sem_lock_at_once(vol, &s->sem, c);
	case SG_SEM_OP_UNLOCK:
		return sg_sem_unlock_at_once(vol, &s->sem, c);
	default:
		return false;
	}
}

int sgfs_sem_at_once(struct sgfs_sem *s, unsigned int op)
{
	const struct sg_sem_caller *c = NULL;

	if (!smp_load_acquire(&s->bound) || s->look)
		return -EAGAIN;
	if (op == SG_SEM_OP_LOCK || op == SG_SEM_OP_UNLOCK)
		c = s->owns ? &s->self : sgfs_sem_me(s->fs);
	return !IS_ERR(c) && sgfs_is_done_at_once(s, op, c) ? 0 : -EAGAIN;
}

/* --- other modules ---------------------------------------------------------------------------- */

struct stargate_sem {
	struct file *file;
};

struct stargate_sem *stargate_sem_open(const char *volume, struct sg_ioc_sem_open *how)
{
	char *path = kasprintf(GFP_KERNEL, "%s/" SG_SEM_FILE, volume);
	struct stargate_sem *s = kzalloc(sizeof(*s), GFP_KERNEL);
	int err = -ENOMEM;

	if (!path || !s)
		goto out;
	s->file = filp_open(path, O_RDWR, 0);
	err = PTR_ERR_OR_ZERO(s->file);
	if (err)
		goto out;
	err = s->file->f_op == &sgfs_sem_operations ? sgfs_sem_bind(s->file, how) : -ENODEV;
	if (err)
		fput(s->file);
out:
	kfree(path);
	if (!err)
		return s;
	kfree(s);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(stargate_sem_open);

int stargate_sem_op(struct stargate_sem *s, struct sg_ioc_sem_op *op)
{
	return sgfs_sem_do(s->file->private_data, op);
}
EXPORT_SYMBOL_GPL(stargate_sem_op);

void stargate_sem_close(struct stargate_sem *s)
{
	fput(s->file);
	kfree(s);
}
EXPORT_SYMBOL_GPL(stargate_sem_close);
