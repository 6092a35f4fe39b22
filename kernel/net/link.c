// SPDX-License-Identifier: GPL-2.0
/*
 * The kind of link "stargate" (uapi/netlink.h), and the life of a device.
 *
 * A device's state (struct sgn) outlives the device: the work @end closes the rings and frees the
 * state, because this waits for locks of the volume, and the caller of a removal holds the rtnl
 * lock. If the volume is about to be unmounted, the work @gone removes the device.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/rtnetlink.h>

#include "sgnet.h"

#define SGN_RING_DEFAULT	(1u << 20)
#define SGN_QUEUES_DEFAULT	4u

struct workqueue_struct *sgn_wq;

struct net_device *sgn_dev_get(struct sgn *net)
{
	struct net_device *dev;

	rcu_read_lock();
	dev = rcu_dereference(net->dev);
	dev_hold(dev);
	rcu_read_unlock();
	return dev;
}

/* --- end -------------------------------------------------------------------------------------- */

static void sgn_free(struct sgn *net)
{
	kfree(net->path);
	kfree(net);
}

static void sgn_end(struct work_struct *work)
{
	struct sgn *net = container_of(work, struct sgn, end);

	cancel_delayed_work_sync(&net->control);
	sgn_control_end(net);
	stargate_volume_end(net->volume);
	/* no call of sgn_gone() follows */
	cancel_work_sync(&net->gone);
	sgn_free(net);
}

static void sgn_destructor(struct net_device *dev)
{
	queue_work(sgn_wq, &sgn_of(dev)->end);
}

/* The volume is about to be unmounted, and the caller holds a lock. */
static void sgn_gone(void *ctx)
{
	struct sgn *net = ctx;

	queue_work(sgn_wq, &net->gone);
}

static void sgn_remove(struct work_struct *work)
{
	struct sgn *net = container_of(work, struct sgn, gone);
	struct net_device *dev;

	rtnl_lock();
	dev = rtnl_dereference(net->dev);
	if (dev)
		unregister_netdevice(dev);
	rtnl_unlock();
}

/* A doorbell does not name a queue. */
static void sgn_rung(void *ctx)
{
	struct sgn *net = ctx;
	unsigned int i;

	for (i = 0; i < net->nqueues; i++)
		sgn_queue_rung(&net->queue[i]);
}

static const struct stargate_volume_ops sgn_volume_operations = {
	.gone = sgn_gone,
	.rung = sgn_rung,
};

/* --- beginning -------------------------------------------------------------------------------- */

static const struct nla_policy sgn_policy[SG_NET_ATTRIBUTES] = {
	[SG_NET_VOLUME]		= { .type = NLA_NUL_STRING, .len = PATH_MAX - 1 },
	[SG_NET_NQUEUES]	= NLA_POLICY_RANGE(NLA_U32, 1, SG_NET_QUEUES),
	[SG_NET_RING]		= { .type = NLA_U32 },
	[SG_NET_PUBLISH]	= NLA_POLICY_MAX(NLA_U8, SG_NET_PUBLISH_ALL),
};

static int sgn_validate(struct nlattr *tb[], struct nlattr *data[],
			struct netlink_ext_ack *extack)
{
	u32 bytes;

	if (!data || !data[SG_NET_VOLUME]) {
		NL_SET_ERR_MSG(extack, "name the mount point of the volume: use stargate-net up");
		return -EINVAL;
	}
	bytes = data[SG_NET_RING] ? nla_get_u32(data[SG_NET_RING]) : SGN_RING_DEFAULT;
	if (bytes < SG_NET_RING_MIN || bytes > SG_NET_RING_MAX || bytes & (bytes - 1)) {
		NL_SET_ERR_MSG(extack, "the size of a ring is a power of two from 256 KiB to 16 MiB");
		return -EINVAL;
	}
	return 0;
}

static int sgn_use_volume(struct sgn *net, struct netlink_ext_ack *extack)
{
	int err;

	net->volume = stargate_volume_use(net->path, &sgn_volume_operations, net);
	err = PTR_ERR_OR_ZERO(net->volume);
	switch (err) {
	case 0:
		return 0;
	case -ENODEV:
		NL_SET_ERR_MSG(extack, "no volume of StargateFS is mounted there");
		return err;
	case -EROFS:
		NL_SET_ERR_MSG(extack, "the volume is mounted read-only, so it has no rings");
		return err;
	case -EBUSY:
		NL_SET_ERR_MSG(extack, "this system already has a network on that volume");
		return err;
	default:
		NL_SET_ERR_MSG(extack, "the mount point of the volume cannot be opened");
		return err;
	}
}

static struct sgn *sgn_alloc(struct nlattr *data[])
{
	struct sgn *net = kzalloc(sizeof(*net), GFP_KERNEL);

	if (!net)
		return NULL;
	net->path = nla_strdup(data[SG_NET_VOLUME], GFP_KERNEL);
	if (!net->path) {
		kfree(net);
		return NULL;
	}
	net->nqueues = min(num_online_cpus(), SGN_QUEUES_DEFAULT);
	if (data[SG_NET_NQUEUES])
		net->nqueues = nla_get_u32(data[SG_NET_NQUEUES]);
	net->ring_bytes = SGN_RING_DEFAULT;
	if (data[SG_NET_RING])
		net->ring_bytes = nla_get_u32(data[SG_NET_RING]);
	if (data[SG_NET_PUBLISH])
		net->publish = nla_get_u8(data[SG_NET_PUBLISH]);
	/* peers must not take the first list of this device for one of an earlier device */
	net->hello.serial = get_random_u32();
	hash_init(net->entries);
	INIT_DELAYED_WORK(&net->control, sgn_control);
	INIT_WORK(&net->gone, sgn_remove);
	INIT_WORK(&net->end, sgn_end);
	return net;
}

/*
 * The device uses a volume of the whole system, so rights in a namespace do not suffice. A
 * container may have CAP_NET_ADMIN of the system, and a program may write to the socket of another
 * one.
 */
static bool sgn_may_use_volumes(const struct net_device *dev)
{
	return capable(CAP_NET_ADMIN) && capable(CAP_SYS_ADMIN) &&
	       dev_net(dev)->user_ns == &init_user_ns;
}

int sgn_newlink_common(struct net_device *dev, struct nlattr *data[],
		       struct netlink_ext_ack *extack)
{
	struct sgn *net;
	int err;

	if (!sgn_may_use_volumes(dev)) {
		NL_SET_ERR_MSG(extack, "only root of the system may make a network on a volume");
		return -EPERM;
	}
	net = sgn_alloc(data);
	if (!net)
		return -ENOMEM;
	if (net->nqueues > min(dev->num_tx_queues, dev->num_rx_queues)) {
		NL_SET_ERR_MSG(extack, "the device has not so many queues");
		sgn_free(net);
		return -EINVAL;
	}
	err = sgn_use_volume(net, extack);
	if (err) {
		sgn_free(net);
		return err;
	}
	((struct sgn_priv *)netdev_priv(dev))->net = net;
	rcu_assign_pointer(net->dev, dev);
	err = register_netdevice(dev);
	if (err) {
		/* the caller frees the device now, perhaps without a call of ->ndo_uninit() */
		RCU_INIT_POINTER(net->dev, NULL);
		stargate_volume_leave(net->volume);
		queue_work(sgn_wq, &net->end);
		return err;
	}
	dev->priv_destructor = sgn_destructor;
	netif_carrier_off(dev);
	sgn_control_now(net);
	return 0;
}

/* --- the kind --------------------------------------------------------------------------------- */

static size_t sgn_info_size(const struct net_device *dev)
{
	return nla_total_size(strlen(sgn_of(dev)->path) + 1) + 2 * nla_total_size(sizeof(u32)) +
	       nla_total_size(sizeof(u8));
}

static int sgn_info(struct sk_buff *skb, const struct net_device *dev)
{
	const struct sgn *net = sgn_of(dev);

	if (nla_put_string(skb, SG_NET_VOLUME, net->path) ||
	    nla_put_u32(skb, SG_NET_NQUEUES, net->nqueues) ||
	    nla_put_u32(skb, SG_NET_RING, net->ring_bytes) ||
	    nla_put_u8(skb, SG_NET_PUBLISH, net->publish))
		return -EMSGSIZE;
	return 0;
}

static unsigned int sgn_num_queues(void)
{
	return SG_NET_QUEUES;
}

static struct rtnl_link_ops sgn_link_operations __read_mostly = {
	.kind			= SG_NET_KIND,
	.priv_size		= sizeof(struct sgn_priv),
	.setup			= sgn_setup,
	.maxtype		= SG_NET_ATTRIBUTES - 1,
	.policy			= sgn_policy,
	.validate		= sgn_validate,
	.newlink		= sgn_newlink,
	.get_size		= sgn_info_size,
	.fill_info		= sgn_info,
	.get_num_tx_queues	= sgn_num_queues,
	.get_num_rx_queues	= sgn_num_queues,
};

static int __init sgn_module_init(void)
{
	int err;

	sgn_wq = alloc_workqueue("stargate_net", WQ_UNBOUND, 0);
	if (!sgn_wq)
		return -ENOMEM;
	err = rtnl_link_register(&sgn_link_operations);
	if (err)
		destroy_workqueue(sgn_wq);
	return err;
}

/* All devices end here, and destroy_workqueue() waits for the end of their states. */
static void __exit sgn_module_exit(void)
{
	rtnl_link_unregister(&sgn_link_operations);
	rcu_barrier();
	destroy_workqueue(sgn_wq);
}

module_init(sgn_module_init);
module_exit(sgn_module_exit);
MODULE_ALIAS_RTNL_LINK(SG_NET_KIND);
SGN_IMPORT;
MODULE_DESCRIPTION("Network between systems of one StargateFS volume (experimental)");
MODULE_LICENSE("GPL");
