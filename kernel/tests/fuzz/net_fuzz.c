// SPDX-License-Identifier: Apache-2.0
/*
 * A record that a hostile peer has put into a ring of the network (kernel/net/wire.h). An input is
 * the two words of the record's head, then the payload: a frame with a packet, or a hello. Whatever
 * the checks accept is consistent: all that the receiver computes from it lies in the packet.
 */
#include <string.h>
#include "fuzz.h"
#include "../../net/wire.h"

#define GRAINS	((1u << 20) / SG_RING_GRAIN)

static void packet(const u8 *data, u32 len)
{
	/* a copy of exactly these bytes, so that a sanitizer detects each access behind them */
	u32 rest = len - sizeof(struct sgn_frame), head = rest < SGN_HEAD_MAX ? rest : SGN_HEAD_MAX;
	u8 *ip = malloc(head ? head : 1);
	struct sgn_frame f;
	struct sgn_ip out;

	CHECK(ip);
	memcpy(&f, data, sizeof(f));
	memcpy(ip, data + sizeof(f), head);
	if (sgn_frame_check(&f, ip, head, rest, &out) == SGN_FINE) {
		u32 source = out.source + (out.version == 4 ? 4u : 16u);

		CHECK(out.version == 4 || out.version == 6);
		CHECK(source <= out.dest && out.dest + (source - out.source) <= out.l4);
		CHECK(out.l4 <= head && rest <= SGN_PACKET_MAX);
		if (f.flags & SGN_NEEDS_CSUM)
			CHECK(f.csum_start >= out.l4 && f.csum_start + f.csum_offset + 2u <= head);
		if (f.gso != SGN_GSO_NONE)
			CHECK(f.gso_size >= SGN_SEGMENT_MIN && out.l4 + 20u + f.gso_size < rest &&
			      f.flags & SGN_NEEDS_CSUM);
		else
			CHECK(!f.gso_size);
	}
	free(ip);
}

static void hello(const u8 *data, u32 len)
{
	struct sgn_hello h;
	u32 i;

	memset(&h, 0, sizeof(h));
	if (len > sizeof(h))
		return;
	memcpy(&h, data, len);
	if (sgn_hello_check(&h, len) != SGN_FINE)
		return;
	CHECK(h.count <= SGN_ADDRESSES && SGN_HELLO_LEN(h.count) == len);
	for (i = 0; i < h.count; i++)
		CHECK(h.address[i].family == 4 || h.address[i].family == 6);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	u64 word[2];
	u32 len;

	if (size < sizeof(word))
		return 0;
	memcpy(word, data, sizeof(word));
	data += sizeof(word);
	size -= sizeof(word);
	/* the record's head alone, beside a sender that claims to be a full ring ahead */
	if (sgn_record_check(word[0], word[1], word[1], word[1] + GRAINS, GRAINS) == SGN_FINE)
		CHECK(sgn_grains((u32)word[0]) <= GRAINS / 2 &&
		      (u32)word[0] >= sizeof(struct sgn_frame));
	len = size < SGN_PACKET_MAX ? (u32)size : SGN_PACKET_MAX;
	if (len >= sizeof(struct sgn_frame))
		packet(data, len);
	hello(data, len);
	return 0;
}
