// SPDX-License-Identifier: Apache-2.0
/*
 * A ring that a hostile process has mapped as well. The target runs the operations of a sender and
 * a receiver without a kernel (uapi/ringword.h). An input is a list of steps of 12 bytes: forged
 * words and data, and records that are sent and received in between. Each step returns, and
 * accesses only the ring's memory, which lies between inaccessible pages.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"
#include "uapi/ringword.h"

#define RING	SG_RING_MIN
#define MOST	(RING / 2 - SG_RING_GRAIN)
#define BATCH	8u

struct step {
	u8 op, word;
	u16 len;
	u64 value;
} __attribute__((packed));

enum { STORE, SPOIL, SEND, BATCH_SEND, RECV, BATCH_RECV, GIVE, WANT, OPS };

static u8 *base;	/* the page of words, then the data, mapped twice */

static void map_ring(void)
{
	u8 *at = mmap(NULL, 3 * SG_PAGE + 2 * RING, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int prot = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_FIXED;
	int fd = memfd_create("ring", MFD_CLOEXEC);

	CHECK(at != MAP_FAILED && fd >= 0 && !ftruncate(fd, SG_PAGE + RING));
	base = at + SG_PAGE;
	CHECK(mmap(base, SG_PAGE + RING, prot, how, fd, 0) != MAP_FAILED);
	CHECK(mmap(base + SG_PAGE + RING, RING, prot, how, fd, SG_PAGE) != MAP_FAILED);
	close(fd);
}

static void forge(const struct sg_ring *r, const struct step *s)
{
	static const unsigned int words[] = { SG_RING_WORD(SG_RING_TAIL), SG_RING_WORD(SG_RING_ROOM),
		SG_RING_HEAD, SG_RING_FREED, SG_RING_SENT, SG_SEM_CELL_FIRST, SG_SEM_CELL_FIRST + 1,
		SG_SEM_CELLS - 1 };
	u64 *at = r->page + (s->word & 128 ? s->word * 4u % SG_SEM_CELLS : words[s->word % 8]);

	sg_ringw_store(at, s->word & 64 ? sg_ringw_load(at) + s->value - (1u << 20) : s->value);
}

static void send(const struct sg_ring *r, const struct step *s, unsigned int count)
{
	u64 tail = sg_ringw_tail(r), pos = tail, len = s->len % (MOST + 1), n, sent = 0;

	for (; count; count--, len = (len * 7 + s->value) % (MOST + 1)) {
		n = sg_ringw_grains(len);
		if (sg_ringw_room(r, tail, pos + n - tail) != SG_RING_OK)
			break;
		memset(sg_ringw_record(r, pos) + 1, (int)s->value, len);
		sg_ringw_head(r, pos, len, (u32)s->value);
		pos += n;
		sent++;
	}
	if (sent)
		sg_ringw_publish(r, tail, pos - tail, sent);
}

static void look(const struct sg_ring *r, const struct sg_ring_claim *c)
{
	u64 i;

	CHECK(c->len <= MOST && c->data >= r->data && c->data + c->len <= r->data + 2 * RING);
	for (i = 0; i < c->len; i++)
		(void)*(const volatile u8 *)&c->data[i];
}

static void receive(const struct sg_ring *r, const struct step *s, unsigned int most)
{
	struct sg_ring_claim c[BATCH];
	enum sg_ring_result res;
	unsigned int n = 0, i;
	u64 all = 0;

	res = sg_ringw_claim_many(r, s->value, c, most, &n);
	CHECK(res == SG_RING_OK || res == SG_RING_NONE || res == SG_RING_LARGE || res == SG_RING_BAD);
	for (i = 0; i < n && res == SG_RING_OK; i++) {
		look(r, &c[i]);
		all += c[i].len;
	}
	CHECK(all <= RING && (res == SG_RING_OK || !n) && all <= s->value);
	if (s->len & 1 && sg_ringw_release(r))
		sg_ringw_tell(r);
}

static void take_step(struct sg_ring *r, const struct step *s)
{
	switch (s->op % OPS) {
	case STORE:
		forge(r, s);
		break;
	case SPOIL:
		memcpy(r->data + (s->len * 8u) % RING, &s->value, sizeof(s->value));
		break;
	case SEND:
		send(r, s, 1);
		break;
	case BATCH_SEND:
		send(r, s, BATCH);
		break;
	case RECV:
		receive(r, s, 1);
		break;
	case BATCH_RECV:
		receive(r, s, BATCH);
		break;
	case GIVE:
		if (sg_ringw_release(r))
			sg_ringw_tell(r);
		r->cell = SG_SEM_CELL_FIRST + s->word % 3;
		break;
	case WANT:
		sg_ringw_want_room(r);
		break;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct sg_ring r = { .grains = RING / SG_RING_GRAIN, .cell = SG_SEM_CELL_FIRST };
	struct step s;

	if (!base)
		map_ring();
	memset(base, 0, SG_PAGE + RING);
	r.page = (u64 *)base;
	r.data = base + SG_PAGE;
	r.single = size && data[0] & 1;
	for (size -= !!size, data++; size >= sizeof(s); size -= sizeof(s), data += sizeof(s)) {
		memcpy(&s, data, sizeof(s));
		take_step(&r, &s);
	}
	return 0;
}
