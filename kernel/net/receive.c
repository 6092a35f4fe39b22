// SPDX-License-Identifier: GPL-2.0
/*
 * Packets out of rings. Each queue looks into its ring of each peer, in its own softirq, so queues
 * receive on several processors at once (P4). A timer of each queue looks for packets: often while
 * packets come, rarely after a pause. If peers can ring a doorbell, a queue asks for that after a
 * short pause, and then looks only in case the ring is lost.
 *
 * All bytes in a ring are hostile input (D10): the receiver copies a packet, checks the copy, and
 * compares the source address with those that the ring's sender has published.
 */
#include <linux/etherdevice.h>
#include <linux/skbuff.h>
#include <net/ip.h>

#include "sgnet.h"

/* --- the timer -------------------------------------------------------------------------------- */

/* The interval between two looks, by the time without a packet. */
static const struct {
	u64 quiet, interval;
} sgn_pace[] = {
	{ 500 * NSEC_PER_USEC, 25 * NSEC_PER_USEC },
	{ 50 * NSEC_PER_MSEC, 200 * NSEC_PER_USEC },
	{ 2 * NSEC_PER_SEC, NSEC_PER_MSEC },
	{ U64_MAX, 4 * NSEC_PER_MSEC },
};

#define SGN_FLOOR	(20 * NSEC_PER_MSEC)	/* between looks for records whose ring was lost */

static u64 sgn_interval(u64 quiet)
{
	unsigned int i = 0;

	while (quiet > sgn_pace[i].quiet)
		i++;
	return sgn_pace[i].interval;
}

/* Ask all peers for a doorbell. False: there is a record already. */
static bool sgn_queue_ask(struct sgn_queue *q)
{
	struct sgn *net = q->net;
	u64 left = READ_ONCE(net->present);
	bool asked = true;

	rcu_read_lock();
	for (; left && asked; left &= left - 1) {
		struct sgn_peer *p = rcu_dereference(net->peer[__ffs64(left)]);

		if (p && q->index < p->rx->n && !READ_ONCE(p->rx->ring[q->index].bad))
			asked = sgn_ring_ask(&p->rx->ring[q->index]);
	}
	rcu_read_unlock();
	return asked;
}

/* Return the time without a packet. Another processor may have stored a time after @now. */
static u64 sgn_quiet(const struct sgn_queue *q, u64 now)
{
	s64 quiet = now - READ_ONCE(q->busy_at);

	return max(quiet, 0);
}

static void sgn_queue_arm_in(struct sgn_queue *q, u64 ns)
{
	if (!READ_ONCE(q->on))
		return;
	hrtimer_start(&q->timer, ns_to_ktime(ns), HRTIMER_MODE_REL);
	/* the last start counts, and that of sgn_queue_hurry() may have been before this one */
	if (ns > sgn_pace[0].interval && sgn_quiet(q, ktime_get_ns()) <= sgn_pace[0].quiet)
		hrtimer_start(&q->timer, ns_to_ktime(sgn_pace[0].interval), HRTIMER_MODE_REL);
}

void sgn_queue_arm(struct sgn_queue *q)
{
	sgn_queue_arm_in(q, sgn_interval(sgn_quiet(q, ktime_get_ns())));
}

/* After a look that found nothing. A stopped queue waits for room, for which no peer rings. */
static void sgn_queue_rest(struct sgn_queue *q)
{
	if (sgn_quiet(q, ktime_get_ns()) <= sgn_pace[0].quiet ||
	    !stargate_volume_alive(q->net->volume) ||
	    netif_tx_queue_stopped(netdev_get_tx_queue(q->napi.dev, q->index)) ||
	    !stargate_bell_covers(q->net->volume))
		sgn_queue_arm(q);
	else
		sgn_queue_arm_in(q, sgn_queue_ask(q) ? SGN_FLOOR : sgn_pace[0].interval);
}

void sgn_queue_rung(struct sgn_queue *q)
{
	if (READ_ONCE(q->on))
		napi_schedule(&q->napi);
}

static enum hrtimer_restart sgn_look(struct hrtimer *timer)
{
	struct sgn_queue *q = container_of(timer, struct sgn_queue, timer);

	napi_schedule(&q->napi);
	return HRTIMER_NORESTART;
}

void sgn_queue_hurry(struct sgn_queue *q, u64 now)
{
	bool slow = sgn_quiet(q, now) > sgn_pace[0].quiet;
	struct sgn *net = q->net;
	unsigned int i;

	WRITE_ONCE(q->busy_at, now);
	if (!slow)
		return;
	/* the answer may come to any queue */
	for (i = 0; i < net->nqueues; i++) {
		WRITE_ONCE(net->queue[i].busy_at, now);
		sgn_queue_arm(&net->queue[i]);
	}
}

/* --- a packet --------------------------------------------------------------------------------- */

#define SGN_LINEAR	1600u	/* shorter packets have no fragments */
#define SGN_ORDER	3	/* of a fragment's pages, at most */

static struct sk_buff *sgn_skb_alloc(struct napi_struct *napi, u32 len)
{
	u32 rest = len > SGN_LINEAR ? len - SGN_HEAD_MAX : 0;
	struct sk_buff *skb;
	int err;

	if (!rest) {
		skb = napi_alloc_skb(napi, len);
		if (skb)
			skb_put(skb, len);
		return skb;
	}
	skb = alloc_skb_with_frags(NET_SKB_PAD + SGN_HEAD_MAX, rest, SGN_ORDER, &err,
				   GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	skb_reserve(skb, NET_SKB_PAD);
	skb_put(skb, SGN_HEAD_MAX);
	skb->data_len = rest;
	skb->len += rest;
	skb->dev = napi->dev;
	return skb;
}

static int sgn_skb_fill(struct sk_buff *skb, const struct sgn_ring *r, u64 byte)
{
	unsigned int i;
	int err = sgn_ring_get(r, byte, skb->data, skb_headlen(skb));

	byte += skb_headlen(skb);
	for (i = 0; i < skb_shinfo(skb)->nr_frags && !err; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		err = sgn_ring_get(r, byte, skb_frag_address(frag), skb_frag_size(frag));
		byte += skb_frag_size(frag);
	}
	return err;
}

static void sgn_skb_describe(struct sk_buff *skb, const struct sgn_frame *f,
			     const struct sgn_ip *ip)
{
	struct skb_shared_info *info = skb_shinfo(skb);

	skb->protocol = ip->version == 4 ? htons(ETH_P_IP) : htons(ETH_P_IPV6);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, ip->l4);
	if (f->flags & SGN_CSUM_VALID)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (f->gso == SGN_GSO_NONE)
		return;
	info->gso_size = f->gso_size;
	info->gso_type = SKB_GSO_DODGY |
			 (f->gso == SGN_GSO_TCP4 ? SKB_GSO_TCPV4 : SKB_GSO_TCPV6);
	if (f->flags & SGN_GSO_ECN)
		info->gso_type |= SKB_GSO_TCP_ECN;
	/* the stack computes the number itself, as for each sender that it does not trust */
	info->gso_segs = 0;
}

/* Check a packet, and prepare it for the stack. Return what to count if that fails. */
static int sgn_packet_check(struct sgn *net, const struct sgn_peer *p, struct sk_buff *skb,
			    const struct sgn_frame *f)
{
	const struct sgn_entry *e;
	struct sgn_ip ip;

	if (sgn_frame_check(f, skb->data, skb_headlen(skb), skb->len, &ip))
		return SGN_RX_MALFORMED;
	e = sgn_entry_find(net, ip.version, skb->data + ip.source);
	if (!e || e->peer != p)
		return SGN_RX_SPOOFED;
	sgn_skb_describe(skb, f, &ip);
	if (f->flags & SGN_NEEDS_CSUM && !skb_partial_csum_set(skb, f->csum_start, f->csum_offset))
		return SGN_RX_MALFORMED;
	return SGN_COUNTS;
}

/* Receive the packet whose frame is at @byte. */
static void sgn_packet(struct sgn_queue *q, const struct sgn_peer *p, const struct sgn_ring *r,
		       u64 byte, u32 len)
{
	struct sgn_frame f;
	struct sk_buff *skb;
	int fault = SGN_RX_MALFORMED;

	len -= sizeof(f);
	if (!len || sgn_ring_get(r, byte, &f, sizeof(f))) {
		sgn_add(q, fault, 1);
		return;
	}
	skb = sgn_skb_alloc(&q->napi, len);
	if (!skb) {
		sgn_add(q, SGN_RX_NO_MEMORY, 1);
		return;
	}
	if (!sgn_skb_fill(skb, r, byte + sizeof(f)))
		fault = sgn_packet_check(q->net, p, skb, &f);
	if (fault != SGN_COUNTS) {
		sgn_add(q, fault, 1);
		kfree_skb(skb);
		return;
	}
	sgn_add(q, SGN_RX_PACKETS, 1);
	sgn_add(q, SGN_RX_BYTES, len);
	skb_record_rx_queue(skb, q->index);
	napi_gro_receive(&q->napi, skb);
}

/* --- a ring ----------------------------------------------------------------------------------- */

static void sgn_hear(struct sgn_queue *q, struct sgn_peer *p, const struct sgn_ring *r, u64 byte,
		     u32 len)
{
	struct sgn_hello hello = {};

	if (len > sizeof(hello) || sgn_ring_get(r, byte, &hello, len) ||
	    sgn_hello_check(&hello, len)) {
		sgn_add(q, SGN_RX_MALFORMED, 1);
		return;
	}
	spin_lock(&p->lock);
	p->heard = hello;
	p->news = true;
	spin_unlock(&p->lock);
	sgn_control_soon(q->net);
}

/* Receive one record at the ring's position. False: the ring is bad. */
static bool sgn_record(struct sgn_queue *q, struct sgn_peer *p, struct sgn_ring *r, u64 tail)
{
	u64 byte = r->pos * SG_RING_GRAIN, len_tag, at;
	const struct sg_ring_record *rec;
	u32 n;

	rec = sgn_ring_at(r, byte, &n);
	len_tag = READ_ONCE(rec->len_tag);
	at = READ_ONCE(rec->at);
	if (sgn_record_check(len_tag, at, r->pos, tail, r->mem.grains)) {
		r->bad = true;
		return false;
	}
	byte += sizeof(*rec);
	if (len_tag >> 32 == SGN_PACKET)
		sgn_packet(q, p, r, byte, (u32)len_tag);
	else if (len_tag >> 32 == SGN_HELLO)
		sgn_hear(q, p, r, byte, (u32)len_tag);
	else
		sgn_add(q, SGN_RX_MALFORMED, 1);
	r->pos += sgn_grains((u32)len_tag);
	return true;
}

/* The sender may overwrite everything before the head, so the store follows all loads. */
static void sgn_free(struct sgn_ring *r)
{
	sg_ringw_store(sg_ringw_at(&r->words, SG_RING_HEAD), SG_RING_HEAD_AT(r->pos, 0));
}

#define SGN_FREE_BYTES	(64u << 10)	/* the sender learns of freed memory at least so often */

static int sgn_receive(struct sgn_queue *q, struct sgn_peer *p, struct sgn_ring *r, int budget)
{
	u64 tail = sg_ringw_tail(&r->words), freed = r->pos;
	int done = 0;

	if (tail == r->pos || r->bad)
		return 0;
	if (tail - r->pos > r->mem.grains) {
		r->bad = true;
		return 0;
	}
	while (done < budget && r->pos != tail && sgn_record(q, p, r, tail)) {
		done++;
		if ((r->pos - freed) * SG_RING_GRAIN >= SGN_FREE_BYTES) {
			freed = r->pos;
			sgn_free(r);
		}
	}
	sgn_free(r);
	return done;
}

/* --- a queue ---------------------------------------------------------------------------------- */

static int sgn_poll(struct napi_struct *napi, int budget)
{
	struct sgn_queue *q = container_of(napi, struct sgn_queue, napi);
	struct sgn *net = q->net;
	u64 left = stargate_volume_alive(net->volume) ? READ_ONCE(net->present) : 0;
	int done = 0;

	sgn_add(q, SGN_RX_LOOKS, 1);
	rcu_read_lock();
	/* a peer that floods this queue leaves at least one packet to each of the others */
	for (; left; left &= left - 1) {
		struct sgn_peer *p = rcu_dereference(net->peer[__ffs64(left)]);

		if (p && q->index < p->rx->n)
			done += sgn_receive(q, p, &p->rx->ring[q->index],
					    max(budget - done, min(budget, 1)));
	}
	sgn_xmit_resume(q);
	rcu_read_unlock();
	if (done)
		WRITE_ONCE(q->busy_at, ktime_get_ns());
	if (done >= budget)
		return budget;
	if (napi_complete_done(napi, done))
		sgn_queue_rest(q);
	return done;
}

void sgn_queue_init(struct sgn *net, unsigned int index, struct net_device *dev)
{
	struct sgn_queue *q = &net->queue[index];

	q->net = net;
	q->index = index;
	hrtimer_setup(&q->timer, sgn_look, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	netif_napi_add(dev, &q->napi, sgn_poll);
}

void sgn_queue_start(struct sgn_queue *q)
{
	napi_enable(&q->napi);
	WRITE_ONCE(q->on, true);
	sgn_queue_arm(q);
}

/*
 * napi_disable() does not wait for sgn_queue_rest(), which may have found the queue on, and then
 * starts the timer. It runs in a softirq, as the transmission does, and both are readers of RCU.
 */
void sgn_queues_stop(struct sgn *net)
{
	unsigned int i;

	for (i = 0; i < net->nqueues; i++) {
		WRITE_ONCE(net->queue[i].on, false);
		napi_disable(&net->queue[i].napi);
	}
	synchronize_net();
	for (i = 0; i < net->nqueues; i++)
		hrtimer_cancel(&net->queue[i].timer);
}
