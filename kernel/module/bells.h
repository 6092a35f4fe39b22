/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Doorbells in the module (docs/doorbells.md): the interface between mounts and drivers.
 *
 *   bells.c	    mounts: which exchange a mount uses; rings sent and received
 *   bells_ivshmem.c the driver for QEMU's ivshmem-doorbell device
 *   bells_host.c    the same for the host of VMs, by eventfds
 */
#ifndef SGFS_BELLS_H
#define SGFS_BELLS_H

#include "uapi/bells.h"
#include "stargatefs.h"

/**
 * struct sgfs_exchange - this system's connection to an exchange; a part of the driver's own struct
 * @kind: for users: the kind of the driver.
 * @uuid: of the volume that it is for; all zero: any volume.
 * @number: of the exchange. @id: of this system there.
 * @ring: sends an interrupt to another system there; called under rcu_read_lock(). That number is
 *	hostile input.
 * @node: in the list of all exchanges. @mounts: that use it.
 * @muted: senders ignored now, which each mount has as well. @lock: guards changes of both.
 */
struct sgfs_exchange {
	const char *kind;
	u8 uuid[16];
	u16 number, id;
	void (*ring)(struct sgfs_exchange *x, u16 id);
	struct list_head node, mounts;
	spinlock_t lock;
	unsigned int muted;
};

/* Called before the first interrupt is possible. */
static inline void sgfs_exchange_init(struct sgfs_exchange *x)
{
	INIT_LIST_HEAD(&x->node);
	INIT_LIST_HEAD(&x->mounts);
	spin_lock_init(&x->lock);
}

/* Offers an exchange to mounts, also to present ones. */
void sgfs_exchange_add(struct sgfs_exchange *x);
/* On return, no mount uses it. The driver then frees it. */
void sgfs_exchange_remove(struct sgfs_exchange *x);
/* Called from the interrupt: another system has rung. */
void sgfs_exchange_rung(struct sgfs_exchange *x);
/* Called from anywhere: the driver begins to ignore a sender (1), or ends that (-1). */
void sgfs_exchange_mute(struct sgfs_exchange *x, int by);

/* bells_host.c: SG_IOC_BELLS; returns a descriptor */
long sgfs_bells_ioctl(struct file *dir, const void __user *user);

#ifdef CONFIG_PCI_MSI
int sgfs_ivshmem_init(void);
void sgfs_ivshmem_exit(void);
#else
static inline int sgfs_ivshmem_init(void)
{
	return 0;
}

static inline void sgfs_ivshmem_exit(void)
{
}
#endif

#endif
