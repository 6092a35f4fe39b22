// SPDX-License-Identifier: GPL-2.0
/*
 * The doorbell of a host that mounts the volumes of its VMs (docs/doorbells.md). The exchange
 * (`stargatectl bells`) gives this kernel the same eventfds that VMs have. The host rings by a
 * signal of a VM's eventfd, which is the interrupt of the VM's device. A VM rings by its device,
 * which signals an eventfd of the host; the signal calls a function here.
 *
 * The caller of that function is the thread of the VM that rings, so a storm costs the VM's own
 * time. The driver ignores such a VM nevertheless, because each ring wakes threads here. The
 * function passes a ring on by an interrupt of this processor (irq_work). A user of rings may raise
 * a softirq, which runs at the end of an interrupt. In the VM's thread it would wait for the next
 * interrupt, such as the tick.
 */
#include <linux/anon_inodes.h>
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/irq_work.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "bells.h"

/**
 * struct sgfs_host_line - the rings of one sender
 * @ctx: its eventfd, or NULL. @wait: in the eventfd's queue.
 * @pass_on: an interrupt that passes a ring on.
 * @muted: the sender is ignored, until @unmute runs.
 */
struct sgfs_host_line {
	struct sgfs_host *host;
	struct eventfd_ctx *ctx;
	wait_queue_entry_t wait;
	struct irq_work pass_on;
	struct sg_ring_rate rate;
	struct delayed_work unmute;
	bool muted;
};

/**
 * struct sgfs_host - a connection, which a descriptor represents
 * @peer: eventfds of the other systems; @lock: guards their changes.
 */
struct sgfs_host {
	struct sgfs_exchange x;
	unsigned int peers;
	struct mutex lock;
	struct eventfd_ctx __rcu *peer[SG_BELLS_PEERS_MAX];
	struct sgfs_host_line line[SG_BELLS_PEERS_MAX];
};

static void sgfs_host_ring(struct sgfs_exchange *x, u16 id)
{
	struct sgfs_host *h = container_of(x, struct sgfs_host, x);
	struct eventfd_ctx *ctx;

	if (id >= h->peers)
		return;
	ctx = rcu_dereference(h->peer[id]);
	if (ctx)
		sgfs_eventfd_signal(ctx);
}

/* --- rings of others -------------------------------------------------------------------------- */

/* Rings that come before the interrupt count as one. */
static void sgfs_host_pass_on(struct irq_work *work)
{
	sgfs_exchange_rung(&container_of(work, struct sgfs_host_line, pass_on)->host->x);
}

/* Called with the lock of the eventfd's queue, and with interrupts disabled. */
static int sgfs_host_rung(wait_queue_entry_t *wait, unsigned int mode, int sync, void *key)
{
	struct sgfs_host_line *line = container_of(wait, struct sgfs_host_line, wait);
	unsigned int ms;
	u64 count;

	if (!(key_to_poll(key) & EPOLLIN))
		return 0;
	eventfd_ctx_do_read(line->ctx, &count);
	if (READ_ONCE(line->muted))
		return 0;
	ms = sg_ring_count(&line->rate, ktime_get_ns());
	if (ms) {
		WRITE_ONCE(line->muted, true);
		sgfs_exchange_mute(&line->host->x, 1);
		queue_delayed_work(sgfs_wq, &line->unmute, msecs_to_jiffies(ms));
	}
	irq_work_queue(&line->pass_on);
	return 0;
}

/* Rings that were ignored meanwhile count as one. */
static void sgfs_host_unmute(struct work_struct *work)
{
	struct sgfs_host_line *line = container_of(to_delayed_work(work), struct sgfs_host_line,
						   unmute);

	WRITE_ONCE(line->muted, false);
	sgfs_exchange_mute(&line->host->x, -1);
	irq_work_queue(&line->pass_on);
}

struct sgfs_host_table {
	struct poll_table_struct pt;
	struct sgfs_host_line *line;
};

static void sgfs_host_queue(struct file *file, wait_queue_head_t *queue,
			    struct poll_table_struct *pt)
{
	struct sgfs_host_line *line = container_of(pt, struct sgfs_host_table, pt)->line;

	init_waitqueue_func_entry(&line->wait, sgfs_host_rung);
	add_wait_queue(queue, &line->wait);
}

static int sgfs_host_listen(struct sgfs_host *h, unsigned int i, int fd)
{
	struct sgfs_host_line *line = &h->line[i];
	struct sgfs_host_table table = { .line = line };
	struct file *file = eventfd_fget(fd);

	if (IS_ERR(file))
		return PTR_ERR(file);
	line->host = h;
	INIT_DELAYED_WORK(&line->unmute, sgfs_host_unmute);
	init_irq_work(&line->pass_on, sgfs_host_pass_on);
	line->ctx = eventfd_ctx_fileget(file);
	init_poll_funcptr(&table.pt, sgfs_host_queue);
	vfs_poll(file, &table.pt);
	fput(file);
	return 0;
}

static void sgfs_host_deafen(struct sgfs_host_line *line)
{
	u64 count;

	if (!line->ctx)
		return;
	eventfd_ctx_remove_wait_queue(line->ctx, &line->wait, &count);
	cancel_delayed_work_sync(&line->unmute);
	irq_work_sync(&line->pass_on);
	eventfd_ctx_put(line->ctx);
}

/* --- the descriptor --------------------------------------------------------------------------- */

static void sgfs_host_free(struct sgfs_host *h)
{
	struct eventfd_ctx *ctx;
	unsigned int i;

	for (i = 0; i < h->peers; i++) {
		sgfs_host_deafen(&h->line[i]);
		ctx = rcu_dereference_protected(h->peer[i], true);	/* no mount uses it */
		if (ctx)
			eventfd_ctx_put(ctx);
	}
	kfree(h);
}

static int sgfs_host_release(struct inode *inode, struct file *file)
{
	struct sgfs_host *h = file->private_data;

	sgfs_exchange_remove(&h->x);
	sgfs_host_free(h);
	return 0;
}

/* Set, or remove, the eventfd that rings another system. */
static long sgfs_host_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct sgfs_host *h = file->private_data;
	struct eventfd_ctx *ctx = NULL, *old;
	struct sg_ioc_bell bell;

	if (cmd != SG_IOC_BELL)
		return -ENOTTY;
	if (copy_from_user(&bell, (const void __user *)arg, sizeof(bell)))
		return -EFAULT;
	if (bell.id >= h->peers || bell.id == h->x.id)
		return -EINVAL;
	if (bell.fd >= 0)
		ctx = eventfd_ctx_fdget(bell.fd);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	mutex_lock(&h->lock);
	old = rcu_replace_pointer(h->peer[bell.id], ctx, lockdep_is_held(&h->lock));
	mutex_unlock(&h->lock);
	if (old) {
		synchronize_rcu();
		eventfd_ctx_put(old);
	}
	return 0;
}

static const struct file_operations sgfs_host_operations = {
	.owner		= THIS_MODULE,
	.release	= sgfs_host_release,
	.unlocked_ioctl	= sgfs_host_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.llseek		= noop_llseek,
};

static int sgfs_host_make(const struct sg_ioc_bells *b, const u8 *uuid)
{
	struct sgfs_host *h = kzalloc(sizeof(*h), GFP_KERNEL);
	unsigned int i;
	int err = 0;

	if (!h)
		return -ENOMEM;
	mutex_init(&h->lock);
	h->x.kind = "host";
	h->x.ring = sgfs_host_ring;
	h->x.number = b->exchange;
	h->x.id = b->id;
	memcpy(h->x.uuid, uuid, sizeof(h->x.uuid));
	h->peers = b->peers;
	sgfs_exchange_init(&h->x);
	for (i = 0; i < h->peers && !err; i++)
		if (i != b->id)
			err = sgfs_host_listen(h, i, b->rung_by[i]);
	if (err)
		goto free;
	sgfs_exchange_add(&h->x);
	err = anon_inode_getfd("[stargate-bells]", &sgfs_host_operations, h, O_CLOEXEC);
	if (err >= 0)
		return err;
	sgfs_exchange_remove(&h->x);
free:
	sgfs_host_free(h);
	return err;
}

long sgfs_bells_ioctl(struct file *dir, const void __user *user)
{
	struct sg_ioc_bells b;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (copy_from_user(&b, user, sizeof(b)))
		return -EFAULT;
	if (!b.exchange || b.reserved || b.peers < 2 || b.peers > SG_BELLS_PEERS_MAX ||
	    b.id >= b.peers)
		return -EINVAL;
	return sgfs_host_make(&b, sgfs_vol(file_inode(dir))->sb.uuid);
}
