// SPDX-License-Identifier: GPL-2.0
/*
 * The bytes of a ring. This system is its only sender or its only receiver, so it keeps its own
 * position in private memory, and never reads that position from the shared words. It checks the
 * peer's position against its own (docs/network.md).
 */
#include <linux/skbuff.h>
#include <linux/uaccess.h>

#include "sgnet.h"

int sgn_ring_begin(struct sgn_ring *r)
{
	u64 tail, head;

	spin_lock_init(&r->lock);
	r->words = (struct sg_ring){ .page = r->mem.page, .grains = r->mem.grains, .single = true };
	tail = sg_ringw_tail(&r->words);
	head = SG_RING_HEAD_POS(sg_ringw_load(sg_ringw_at(&r->words, SG_RING_HEAD)));
	r->pos = tail;
	if (tail - head > r->mem.grains ||
	    2 * sgn_grains(sizeof(struct sgn_frame) + SGN_PACKET_MAX) > r->mem.grains)
		return -EUCLEAN;
	return 0;
}

void *sgn_ring_at(const struct sgn_ring *r, u64 byte, u32 *n)
{
	u64 size = r->mem.grains * SG_RING_GRAIN, at = byte & (size - 1);

	if (r->mem.flat) {
		*n = size - at;
		return r->mem.flat + at;
	}
	*n = PAGE_SIZE - offset_in_page(at);
	return r->mem.piece[at >> PAGE_SHIFT] + offset_in_page(at);
}

int sgn_ring_get(const struct sgn_ring *r, u64 byte, void *to, u32 len)
{
	while (len) {
		u32 n;
		const void *from = sgn_ring_at(r, byte, &n);

		n = min(n, len);
		if (copy_mc_to_kernel(to, from, n))
			return -EIO;
		to += n;
		byte += n;
		len -= n;
	}
	return 0;
}

static void sgn_ring_put(struct sgn_ring *r, u64 byte, const void *from, u32 len)
{
	while (len) {
		u32 n;
		void *to = sgn_ring_at(r, byte, &n);

		n = min(n, len);
		memcpy(to, from, n);
		from += n;
		byte += n;
		len -= n;
	}
}

static int sgn_ring_put_skb(struct sgn_ring *r, u64 byte, const struct sk_buff *skb)
{
	u32 done = 0;

	while (done < skb->len) {
		u32 n;
		void *to = sgn_ring_at(r, byte + done, &n);

		n = min(n, skb->len - done);
		if (skb_copy_bits(skb, done, to, n))
			return -EFAULT;
		done += n;
	}
	return 0;
}

#define SGN_PUBLISH_TURNS	100	/* of a peer that changes the flags of the tail */

/*
 * Make the record visible to the receiver. Nobody else stores the tail's count. If the receiver has
 * asked for a doorbell by the flag, the same swap clears the flag. So the receiver either sees the
 * record when it sets the flag, or gets the ring.
 */
static int sgn_ring_publish(struct sgn_ring *r, u64 n)
{
	u64 *word = sg_ringw_at(&r->words, SG_RING_WORD(SG_RING_TAIL));
	unsigned int turn;

	for (turn = 0; turn < SGN_PUBLISH_TURNS; turn++) {
		u64 seen = sg_ringw_load(word);

		if ((seen & SG_SEMW_COUNT) != r->pos)
			break;
		if (!sg_ringw_swap(word, seen, (seen & ~SG_SEMW_WAITERS) + n))
			continue;
		r->pos += n;
		r->asked = seen & SG_SEMW_WAITERS;
		return 0;
	}
	r->bad = true;
	return -EIO;
}

bool sgn_ring_ask(struct sgn_ring *r)
{
	u64 *word = sg_ringw_at(&r->words, SG_RING_WORD(SG_RING_TAIL)), seen = sg_ringw_load(word);

	if (!(seen & SG_SEMW_WAITERS))
		seen = __atomic_fetch_or(word, SG_SEMW_WAITERS, __ATOMIC_SEQ_CST);
	return (seen & SG_SEMW_COUNT) == r->pos;
}

static bool sgn_ring_fits(struct sgn_ring *r, u64 n)
{
	enum sg_ring_result res = sg_ringw_room(&r->words, r->pos, n);

	if (res == SG_RING_BAD)
		r->bad = true;
	return res == SG_RING_OK;
}

bool sgn_ring_has_room(struct sgn_ring *r)
{
	return sgn_ring_fits(r, sgn_grains(sizeof(struct sgn_frame) + SGN_PACKET_MAX)) || r->bad;
}

int sgn_ring_send(struct sgn_ring *r, unsigned int tag, const void *head, u32 head_len,
		  const struct sk_buff *skb)
{
	u32 len = head_len + (skb ? skb->len : 0), n;
	u64 grains = sgn_grains(len), at = r->pos * SG_RING_GRAIN;
	struct sg_ring_record *rec;

	if (r->bad)
		return -EIO;
	if (!sgn_ring_fits(r, grains))
		return r->bad ? -EIO : -ENOBUFS;
	/* a grain is never divided between pages */
	rec = sgn_ring_at(r, at, &n);
	at += sizeof(*rec);
	sgn_ring_put(r, at, head, head_len);
	if (skb && sgn_ring_put_skb(r, at + head_len, skb))
		return -EFAULT;
	WRITE_ONCE(rec->len_tag, len | (u64)tag << 32);
	WRITE_ONCE(rec->at, r->pos);
	return sgn_ring_publish(r, grains);
}
