/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * Attributes of a link of the kind SG_NET_KIND (docs/network.md), in IFLA_INFO_DATA of RTM_NEWLINK.
 */
#ifndef SG_NETLINK_H
#define SG_NETLINK_H

#define SG_NET_KIND	"stargate"
/* The object of a volume that permits networks: root's, and no other user may open it. */
#define SG_NET_PERMIT	"sgnet"
#define SG_NET_PROTOCOL	115	/* rtm_protocol of the routes that the module makes */
#define SG_NET_QUEUES	8u	/* the most queues of a link */
#define SG_NET_RING_MIN	(256u << 10)	/* bytes: two of the largest packets */
#define SG_NET_RING_MAX	(16u << 20)

enum {
	SG_NET_UNSPEC,
	SG_NET_VOLUME,		/* string: the mount point. Needed. */
	SG_NET_NQUEUES,		/* u32: 1 to SG_NET_QUEUES; default: processors, at most 4 */
	SG_NET_RING,		/* u32: bytes of each ring, a power of two; default: 1 MiB */
	SG_NET_PUBLISH,		/* u8: SG_NET_PUBLISH_OWN or _ALL; default: _OWN */
	SG_NET_ATTRIBUTES
};

enum {
	SG_NET_PUBLISH_OWN,	/* the addresses of the link itself */
	SG_NET_PUBLISH_ALL,	/* of all interfaces in its network namespace */
};

#endif
