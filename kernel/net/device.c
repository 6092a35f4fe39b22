// SPDX-License-Identifier: GPL-2.0
/* The device: its operations, its properties, and its counters. */
#include <linux/ethtool.h>
#include <linux/if_arp.h>
#include <net/addrconf.h>
#include <net/ip.h>

#include "sgnet.h"

/* --- open and stop ---------------------------------------------------------------------------- */

/* An address that no peer knows would only cause packets that are dropped. */
static void sgn_no_link_local(struct net_device *dev)
{
	struct inet6_dev *idev = __in6_dev_get(dev);

	if (idev)
		idev->cnf.addr_gen_mode = IN6_ADDR_GEN_MODE_NONE;
}

static int sgn_open(struct net_device *dev)
{
	struct sgn *net = sgn_of(dev);
	unsigned int i;

	sgn_no_link_local(dev);
	for (i = 0; i < net->nqueues; i++)
		sgn_queue_start(&net->queue[i]);
	netif_tx_start_all_queues(dev);
	WRITE_ONCE(net->up, true);
	sgn_control_now(net);
	return 0;
}

static int sgn_stop(struct net_device *dev)
{
	struct sgn *net = sgn_of(dev);

	WRITE_ONCE(net->up, false);
	/* the kernel removes all routes through a device that goes down */
	WRITE_ONCE(net->flushed, true);
	netif_tx_stop_all_queues(dev);
	sgn_queues_stop(net);
	sgn_control_now(net);
	return 0;
}

static int sgn_init(struct net_device *dev)
{
	struct sgn *net = sgn_of(dev);
	unsigned int i;
	int err = netif_set_real_num_tx_queues(dev, net->nqueues) ?:
		  netif_set_real_num_rx_queues(dev, net->nqueues);

	/* after an error, ->ndo_uninit() is not called */
	for (i = 0; i < net->nqueues && !err; i++)
		sgn_queue_init(net, i, dev);
	return err;
}

static void sgn_uninit(struct net_device *dev)
{
	struct sgn *net = sgn_of(dev);
	unsigned int i;

	RCU_INIT_POINTER(net->dev, NULL);
	stargate_volume_leave(net->volume);
	for (i = 0; i < net->nqueues; i++)
		netif_napi_del(&net->queue[i].napi);
}

/* --- counters --------------------------------------------------------------------------------- */

static u64 sgn_sum(const struct sgn *net, enum sgn_count what)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < net->nqueues; i++)
		sum += READ_ONCE(net->queue[i].count[what]);
	return sum;
}

static void sgn_stats(struct net_device *dev, struct rtnl_link_stats64 *out)
{
	const struct sgn *net = sgn_of(dev);

	out->tx_packets = sgn_sum(net, SGN_TX_PACKETS);
	out->tx_bytes = sgn_sum(net, SGN_TX_BYTES);
	out->tx_dropped = sgn_sum(net, SGN_TX_STALLED);
	out->tx_carrier_errors = sgn_sum(net, SGN_TX_NO_PEER);
	out->tx_errors = out->tx_carrier_errors + sgn_sum(net, SGN_TX_MALFORMED);
	out->rx_packets = sgn_sum(net, SGN_RX_PACKETS);
	out->rx_bytes = sgn_sum(net, SGN_RX_BYTES);
	out->rx_dropped = sgn_sum(net, SGN_RX_NO_MEMORY) + sgn_sum(net, SGN_RX_SPOOFED);
	out->rx_frame_errors = sgn_sum(net, SGN_RX_MALFORMED);
	out->rx_errors = out->rx_frame_errors;
}

static const char sgn_count_names[SGN_COUNTS][ETH_GSTRING_LEN] = {
	[SGN_TX_PACKETS] = "tx_packets", [SGN_TX_BYTES] = "tx_bytes",
	[SGN_TX_NO_PEER] = "tx_no_peer", [SGN_TX_MALFORMED] = "tx_malformed",
	[SGN_TX_FULL] = "tx_full", [SGN_TX_STALLED] = "tx_stalled",
	[SGN_RX_PACKETS] = "rx_packets", [SGN_RX_BYTES] = "rx_bytes",
	[SGN_RX_SPOOFED] = "rx_spoofed", [SGN_RX_MALFORMED] = "rx_malformed",
	[SGN_RX_NO_MEMORY] = "rx_no_memory", [SGN_RX_LOOKS] = "rx_looks",
};

static int sgn_count_number(struct net_device *dev, int set)
{
	return set == ETH_SS_STATS ? SGN_COUNTS * (int)sgn_of(dev)->nqueues : -EOPNOTSUPP;
}

static void sgn_count_strings(struct net_device *dev, u32 set, u8 *data)
{
	unsigned int q, i;

	for (q = 0; q < sgn_of(dev)->nqueues; q++)
		for (i = 0; i < SGN_COUNTS; i++, data += ETH_GSTRING_LEN)
			snprintf(data, ETH_GSTRING_LEN, "q%u_%s", q, sgn_count_names[i]);
}

static void sgn_count_values(struct net_device *dev, struct ethtool_stats *stats, u64 *data)
{
	const struct sgn *net = sgn_of(dev);
	unsigned int q, i;

	for (q = 0; q < net->nqueues; q++)
		for (i = 0; i < SGN_COUNTS; i++)
			*data++ = READ_ONCE(net->queue[q].count[i]);
}

static void sgn_about(struct net_device *dev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, "stargate_net", sizeof(info->driver));
	strscpy(info->bus_info, sgn_of(dev)->path, sizeof(info->bus_info));
}

static const struct ethtool_ops sgn_ethtool_operations = {
	.get_drvinfo		= sgn_about,
	.get_link		= ethtool_op_get_link,
	.get_sset_count		= sgn_count_number,
	.get_strings		= sgn_count_strings,
	.get_ethtool_stats	= sgn_count_values,
	.get_ts_info		= ethtool_op_get_ts_info,
};

/* --- properties ------------------------------------------------------------------------------- */

static const struct net_device_ops sgn_operations = {
	.ndo_init		= sgn_init,
	.ndo_uninit		= sgn_uninit,
	.ndo_open		= sgn_open,
	.ndo_stop		= sgn_stop,
	.ndo_start_xmit		= sgn_xmit,
	.ndo_features_check	= sgn_features_check,
	.ndo_get_stats64	= sgn_stats,
};

void sgn_setup(struct net_device *dev)
{
	const netdev_features_t features = NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM |
					   NETIF_F_HIGHDMA | NETIF_F_TSO | NETIF_F_TSO_ECN |
					   NETIF_F_TSO6 | NETIF_F_RXCSUM;

	dev->netdev_ops = &sgn_operations;
	dev->ethtool_ops = &sgn_ethtool_operations;
	dev->type = ARPHRD_NONE;
	dev->flags = IFF_NOARP;
	dev->mtu = SGN_MTU_MAX;
	dev->min_mtu = ETH_MIN_MTU;
	dev->max_mtu = SGN_MTU_MAX;
	dev->tx_queue_len = 1000;	/* packets wait there while a ring is full */
	dev->features |= features;
	dev->hw_features |= features;
	dev->sysfs_groups[0] = &sgn_status_group;
	dev->needs_free_netdev = true;
	netif_carrier_off(dev);
}
