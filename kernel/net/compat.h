/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This file, and no other of this folder, contains the differences between the supported kernels.
 * The code is written for the newest kernel.
 */
#ifndef SGN_COMPAT_H
#define SGN_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/version.h>
#include <net/rtnetlink.h>

#define SGN_KERNEL_AT_LEAST(major, minor) (LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0))

#if SGN_KERNEL_AT_LEAST(6, 13)
#define SGN_IMPORT	MODULE_IMPORT_NS("STARGATE")
#else
#define SGN_IMPORT	MODULE_IMPORT_NS(STARGATE)

static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

/* ->newlink(): its arguments are in a struct since 6.15. */
int sgn_newlink_common(struct net_device *dev, struct nlattr *data[],
		       struct netlink_ext_ack *extack);

#if SGN_KERNEL_AT_LEAST(6, 15)
static inline int sgn_newlink(struct net_device *dev, struct rtnl_newlink_params *params,
			      struct netlink_ext_ack *extack)
{
	return sgn_newlink_common(dev, params->data, extack);
}
#else
static inline int sgn_newlink(struct net *net, struct net_device *dev, struct nlattr *tb[],
			      struct nlattr *data[], struct netlink_ext_ack *extack)
{
	return sgn_newlink_common(dev, data, extack);
}
#endif

#endif
