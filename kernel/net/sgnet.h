/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stargate_net.ko: a network device whose packets go through memory of a volume (P4,
 * docs/network.md).
 *
 *   link.c	the kind of link; beginning and end of a device
 *   device.c	the device's operations, queues, counters
 *   transmit.c	packets into rings
 *   receive.c	packets out of rings; the timers that look for them
 *   memory.c	the bytes of a ring
 *   control.c	the work that finds peers, opens rings, and exchanges addresses
 *   address.c	the addresses of this system and of its peers
 *   route.c	routes to peers
 *   status.c	peers in sysfs
 *   wire.h	the bytes that systems exchange, and their checks
 *
 * A control work of each device changes peers and addresses. Transmission and reception read them
 * under RCU.
 */
#ifndef SGNET_H
#define SGNET_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "stargate_ring.h"
#include "uapi/netlink.h"
#include "uapi/ringword.h"
#include "wire.h"

/**
 * struct sgn_ring - a ring, in one direction
 * @words: the ring as ringword.h has it, without @data.
 * @lock: of the senders in this system.
 * @pos: sender: the position of the next record; receiver: the position up to which it has read.
 *	The peer cannot change it.
 * @bad: the words were impossible, so this system does not use the ring any more.
 * @asked: sender: the receiver sleeps until a doorbell rings for this record.
 * @full: there was no room, since @full_since (jiffies).
 */
struct sgn_ring {
	struct stargate_ring mem;
	struct sg_ring words;
	spinlock_t lock;
	u64 pos;
	bool bad, full, asked;
	unsigned long full_since;
};

/** struct sgn_side - the rings of one direction, one for each queue of the receiver */
struct sgn_side {
	unsigned int n;
	struct sgn_ring ring[SG_NET_QUEUES];
};

/**
 * struct sgn_peer - a system with the same permission
 * @tx: rings of the peer, into which this system sends, or NULL. @rx: rings of this system.
 * @lock: of @heard and @news: the peer's last hello, and whether the control has not yet seen it.
 * @said: what the control has last seen of @heard. @told: the last hello that the peer got.
 * @accepted: one bit for each address of @said that is in the table of addresses.
 */
struct sgn_peer {
	unsigned int slot;
	u32 incarnation;
	char name[STARGATE_NAME_ROOM];
	struct sgn_side __rcu *tx;
	struct sgn_side *rx;
	spinlock_t lock;
	struct sgn_hello heard, said, told;
	bool news;
	u32 accepted;
};

/**
 * struct sgn_entry - an address of a peer
 * @routed: there is a route to it through the device; @source: its preferred source.
 */
struct sgn_entry {
	struct hlist_node node;
	struct rcu_head rcu;
	struct sgn_address address, source;
	struct sgn_peer *peer;
	bool routed;
};

enum sgn_count {
	SGN_TX_PACKETS, SGN_TX_BYTES, SGN_TX_NO_PEER, SGN_TX_MALFORMED, SGN_TX_FULL, SGN_TX_STALLED,
	SGN_RX_PACKETS, SGN_RX_BYTES, SGN_RX_SPOOFED, SGN_RX_MALFORMED, SGN_RX_NO_MEMORY,
	SGN_RX_LOOKS,
	SGN_COUNTS
};

/**
 * struct sgn_queue - a queue for packets in each direction
 * @timer: looks for packets, while the device is up. @on: it may be started.
 * @busy_at: time of the last packet in either direction (ktime_get_ns()).
 * @waits_slot, @waits_ring: the ring for whose room the queue is stopped.
 * @count: those of transmission change under the transmit lock, the others in the poll.
 */
struct sgn_queue {
	struct sgn *net;
	unsigned int index;
	struct napi_struct napi;
	struct hrtimer timer;
	bool on;
	u64 busy_at;
	unsigned int waits_slot, waits_ring;
	u64 count[SGN_COUNTS];
} ____cacheline_aligned;

#define SGN_HASH_BITS	6
#define SGN_LOCALS	512	/* addresses of this system that the module considers */

/**
 * struct sgn_local - an address of this system
 * @prefix: length of its network's prefix. @own: of the device itself. @loop: not to be published.
 */
struct sgn_local {
	struct sgn_address address;
	u8 prefix;
	bool own, loop;
};

/**
 * struct sgn - a device's state, which ends after the device
 * @dev: NULL when the device is being unregistered.
 * @present: one bit for each slot that has a peer.
 * @ran_at: when the control ran last (jiffies).
 * @up: the device is up; @flushed: the kernel has removed the device's routes.
 * @permitted: the object of the permission is open.
 * @control: finds peers; @gone: removes the device, as the volume is about to be unmounted; @end:
 *	frees everything after the device.
 * @shunned: until this time (jiffies) a slot is no peer, because its rings were bad; or 0.
 * @hello: what this system publishes. @local: all addresses of this system; @crowded: there are
 *	more.
 * @ns: the device's network namespace while the control runs, with a reference. @home: the cookie
 *	of the namespace in which the control has made routes.
 * @refreshed_at: when the control has last made all routes again (jiffies).
 */
struct sgn {
	struct net_device __rcu *dev;
	struct stargate_volume *volume;
	char *path;
	unsigned int nqueues;
	u32 ring_bytes;
	u8 publish;
	bool up, flushed, permitted, crowded;
	u64 present;
	unsigned long ran_at, refreshed_at;
	struct delayed_work control;
	struct work_struct gone, end;
	struct sgn_peer __rcu *peer[STARGATE_SLOTS];
	unsigned long shunned[STARGATE_SLOTS];
	DECLARE_HASHTABLE(entries, SGN_HASH_BITS);
	struct sgn_hello hello;
	struct sgn_local local[SGN_LOCALS];
	unsigned int nlocals;
	struct net *ns;
	u64 home;
	struct sgn_queue queue[SG_NET_QUEUES];
};

struct sgn_priv {
	struct sgn *net;
};

static inline struct sgn *sgn_of(const struct net_device *dev)
{
	return ((struct sgn_priv *)netdev_priv(dev))->net;
}

static inline void sgn_add(struct sgn_queue *q, enum sgn_count what, u64 n)
{
	WRITE_ONCE(q->count[what], q->count[what] + n);
}

/* link.c */
extern struct workqueue_struct *sgn_wq;
/* Returns the device with a reference, or NULL when it is being unregistered. */
struct net_device *sgn_dev_get(struct sgn *net);

/* device.c */
void sgn_setup(struct net_device *dev);

/* memory.c */
/* Begins the use of a ring that was just opened. -EUCLEAN: its words are impossible. */
int sgn_ring_begin(struct sgn_ring *r);
/* Returns the memory of a ring at that byte, and the number of contiguous bytes from there on. */
void *sgn_ring_at(const struct sgn_ring *r, u64 byte, u32 *n);
/* Copies out of a ring. -EIO: the memory is bad. */
int sgn_ring_get(const struct sgn_ring *r, u64 byte, void *to, u32 len);
/*
 * Sends one record: @head, then the skb's bytes, or none. The caller holds the ring's lock.
 * -ENOBUFS: no room. -EIO: the ring is bad.
 */
int sgn_ring_send(struct sgn_ring *r, unsigned int tag, const void *head, u32 head_len,
		  const struct sk_buff *skb);
/* Receiver: asks the sender to ring a doorbell for its next record. False: there is one. */
bool sgn_ring_ask(struct sgn_ring *r);
/* Reports whether the largest record fits; also true if the ring is bad. */
bool sgn_ring_has_room(struct sgn_ring *r);

/* transmit.c */
netdev_tx_t sgn_xmit(struct sk_buff *skb, struct net_device *dev);
netdev_features_t sgn_features_check(struct sk_buff *skb, struct net_device *dev,
				     netdev_features_t features);
/* Starts a stopped queue again, if there is room. Called in its poll. */
void sgn_xmit_resume(struct sgn_queue *q);

/* receive.c */
void sgn_queue_init(struct sgn *net, unsigned int index, struct net_device *dev);
void sgn_queue_start(struct sgn_queue *q);
void sgn_queues_stop(struct sgn *net);
/* Looks for packets now. Called from an interrupt. */
void sgn_queue_rung(struct sgn_queue *q);
/* Starts the timer for the queue's next look. */
void sgn_queue_arm(struct sgn_queue *q);
/* Looks for packets soon, because one was sent, and an answer is probable. */
void sgn_queue_hurry(struct sgn_queue *q, u64 now);

/* control.c */
void sgn_control(struct work_struct *work);
/*
 * Runs the control at once, or some milliseconds after its last run, as peers cause news. Neither
 * sleeps.
 */
void sgn_control_now(struct sgn *net);
void sgn_control_soon(struct sgn *net);
/* Ends all peers; the control does not run any more. */
void sgn_control_end(struct sgn *net);

/* address.c */
/* Returns the entry of an address of a peer, under RCU; or NULL. */
struct sgn_entry *sgn_entry_find(const struct sgn *net, u8 family, const u8 *byte);
/* Finds the addresses of this system. Returns true if its hello has changed. */
bool sgn_address_scan(struct sgn *net, const struct net_device *dev);
/* Decides which addresses of the peer's last hello this system accepts. */
void sgn_address_accept(struct sgn *net, struct sgn_peer *p);
/* Makes and removes routes to the peer's addresses, and forgets addresses of an ended peer. */
void sgn_address_route(struct sgn *net, struct sgn_peer *p, const struct net_device *dev);
/* Makes each route again that the kernel or a program has removed. */
void sgn_address_refresh(struct sgn *net, const struct net_device *dev);
void sgn_address_forget(struct sgn *net, struct sgn_peer *p, const struct net_device *dev);

/* status.c */
extern const struct attribute_group sgn_status_group;

/* route.c */
enum sgn_route_how {
	SGN_ROUTE_SET,		/* replaces a route to the address */
	SGN_ROUTE_KEEP,		/* changes nothing if there is one */
	SGN_ROUTE_REMOVE
};
int sgn_route(const struct net_device *dev, const struct sgn_entry *e, enum sgn_route_how how);

#endif
