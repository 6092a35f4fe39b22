// SPDX-License-Identifier: Apache-2.0
/*
 * The checks of packets and hellos that arrive through a ring (kernel/net/wire.h). They refuse a
 * packet with a single forged field, for each field that a peer can forge.
 */
#include "test.h"
#include "../../net/wire.h"

#define LEN	1500u

static u8 packet[LEN];
static struct sgn_frame frame;

static void whole_tcp4(void)
{
	memset(packet, 0, sizeof(packet));
	frame = (struct sgn_frame){ .flags = SGN_NEEDS_CSUM, .gso = SGN_GSO_TCP4, .gso_size = 500,
		.csum_start = 20, .csum_offset = 16 };
	packet[0] = 0x45;
	packet[2] = LEN >> 8;
	packet[3] = LEN & 255;
	packet[9] = 6;
	packet[12] = 10;
	packet[32] = 5 << 4;
}

static void whole_tcp6(void)
{
	memset(packet, 0, sizeof(packet));
	frame = (struct sgn_frame){ .flags = SGN_NEEDS_CSUM | SGN_GSO_ECN, .gso = SGN_GSO_TCP6,
		.gso_size = 500, .csum_start = 40, .csum_offset = 16 };
	packet[0] = 0x60;
	packet[4] = (LEN - 40) >> 8;
	packet[5] = (LEN - 40) & 255;
	packet[6] = 6;
	packet[52] = 8 << 4;
}

static enum sgn_fault check(void)
{
	struct sgn_ip ip;

	return sgn_frame_check(&frame, packet, SGN_HEAD_MAX, LEN, &ip);
}

/* Sets one field of an undamaged packet. */
#define REFUSED(whole, set, fault) do { \
	whole(); \
	CHECK_EQ(check(), SGN_FINE); \
	set; \
	CHECK_EQ(check(), fault); \
} while (0)

static void frames(void)
{
	struct sgn_ip ip;

	REFUSED(whole_tcp4, frame.flags |= 8, SGN_BAD_FRAME);
	REFUSED(whole_tcp4, frame.reserved = 1, SGN_BAD_FRAME);
	REFUSED(whole_tcp4, frame.flags |= SGN_CSUM_VALID, SGN_BAD_CSUM);
	REFUSED(whole_tcp4, frame.csum_start = 19, SGN_BAD_CSUM);
	REFUSED(whole_tcp4, frame.csum_start = 0xffff, SGN_BAD_CSUM);
	REFUSED(whole_tcp4, frame.csum_offset = 0xffff, SGN_BAD_CSUM);
	REFUSED(whole_tcp4, frame.csum_offset = SGN_HEAD_MAX - 21, SGN_BAD_CSUM);
	REFUSED(whole_tcp4, frame.csum_start = 24, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.csum_offset = 6, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.gso = SGN_GSO_TCP6, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.gso = SGN_GSO_KINDS, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.gso = SGN_GSO_NONE, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.gso_size = 0, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.gso_size = SGN_SEGMENT_MIN - 1, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.gso_size = LEN - 40 - 1, SGN_FINE);
	REFUSED(whole_tcp4, frame.gso_size = LEN - 40, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.gso_size = 0xffff, SGN_BAD_GSO);
	REFUSED(whole_tcp4, frame.flags = 0; frame.csum_start = frame.csum_offset = 0, SGN_BAD_GSO);
	whole_tcp4();
	CHECK_EQ(sgn_frame_check(&frame, packet, 0, 0, &ip), SGN_BAD_IP);
	CHECK_EQ(sgn_frame_check(&frame, packet, 19, LEN, &ip), SGN_BAD_IP);
	CHECK_EQ(sgn_frame_check(&frame, packet, SGN_HEAD_MAX, SGN_PACKET_MAX + 1, &ip), SGN_BAD_IP);
}

static void headers(void)
{
	REFUSED(whole_tcp4, packet[0] = 0x44, SGN_BAD_IP);
	REFUSED(whole_tcp4, packet[0] = 0x55, SGN_BAD_IP);
	REFUSED(whole_tcp4, packet[0] = 0x65, SGN_BAD_IP);
	REFUSED(whole_tcp4, packet[3]++, SGN_BAD_IP);
	REFUSED(whole_tcp4, packet[2] = 0, SGN_BAD_IP);
	REFUSED(whole_tcp4, packet[0] = 0x46, SGN_BAD_CSUM);	/* the header reaches into TCP */
	REFUSED(whole_tcp4, packet[9] = 17, SGN_BAD_GSO);
	REFUSED(whole_tcp4, packet[6] = 0x20, SGN_BAD_GSO);	/* more fragments */
	REFUSED(whole_tcp4, packet[7] = 1, SGN_BAD_GSO);
	REFUSED(whole_tcp4, packet[32] = 4 << 4, SGN_BAD_GSO);
	REFUSED(whole_tcp6, packet[5]--, SGN_BAD_IP);
	REFUSED(whole_tcp6, packet[6] = 0, SGN_BAD_GSO);
	REFUSED(whole_tcp6, packet[52] = 0, SGN_BAD_GSO);
	REFUSED(whole_tcp6, frame.gso = SGN_GSO_TCP4, SGN_BAD_GSO);
}

static void records(void)
{
	const u64 grains = 4096, head = 2 * SG_RING_GRAIN;
	u64 pos = 1ULL << 40;

	CHECK_EQ(sgn_record_check(LEN, pos, pos, pos + 95, grains), SGN_FINE);
	CHECK_EQ(sgn_record_check(LEN, pos, pos, pos + 94, grains), SGN_BAD_RECORD);
	CHECK_EQ(sgn_record_check(LEN, pos + 1, pos, pos + 95, grains), SGN_BAD_RECORD);
	CHECK_EQ(sgn_record_check(0, pos, pos, pos + 95, grains), SGN_BAD_RECORD);
	CHECK_EQ(sgn_record_check(0xffffffff, pos, pos, pos + grains, grains), SGN_BAD_RECORD);
	CHECK_EQ(sgn_record_check(grains / 2 * SG_RING_GRAIN - head + 1, pos, pos, pos + grains, grains),
		 SGN_FINE);
	CHECK_EQ(sgn_record_check(grains / 2 * SG_RING_GRAIN + 1, pos, pos, pos + grains, grains),
		 SGN_BAD_RECORD);
	CHECK_EQ(sgn_record_check(sizeof(struct sgn_frame) + SGN_PACKET_MAX + 1, pos, pos,
				  pos + 16 * grains, 16 * grains), SGN_BAD_RECORD);
}

static struct sgn_hello hello_of(u8 family, u8 first, u8 second)
{
	struct sgn_hello h = { .version = SGN_VERSION, .count = 1 };

	h.address[0].family = family;
	h.address[0].byte[0] = first;
	h.address[0].byte[1] = second;
	return h;
}

static enum sgn_fault hello_says(u8 family, u8 first, u8 second)
{
	struct sgn_hello h = hello_of(family, first, second);

	return sgn_hello_check(&h, SGN_HELLO_LEN(1));
}

static void hellos(void)
{
	struct sgn_hello h = hello_of(4, 10, 1);

	CHECK_EQ(hello_says(4, 10, 1), SGN_FINE);
	CHECK_EQ(hello_says(6, 0xfd, 1), SGN_FINE);
	CHECK_EQ(hello_says(5, 10, 1), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(4, 0, 1), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(4, 127, 0), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(4, 169, 254), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(4, 224, 0), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(4, 255, 255), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(6, 0, 0), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(6, 0xff, 2), SGN_BAD_HELLO);
	CHECK_EQ(hello_says(6, 0xfe, 0x80), SGN_BAD_HELLO);
	CHECK_EQ(sgn_hello_check(&h, SGN_HELLO_LEN(1) - 1), SGN_BAD_HELLO);
	CHECK_EQ(sgn_hello_check(&h, SGN_HELLO_LEN(2)), SGN_BAD_HELLO);
	CHECK_EQ(sgn_hello_check(&h, 3), SGN_BAD_HELLO);
	h.count = SGN_ADDRESSES + 1;
	CHECK_EQ(sgn_hello_check(&h, SGN_HELLO_LEN(SGN_ADDRESSES + 1)), SGN_BAD_HELLO);
	h = hello_of(4, 10, 1);
	h.address[0].byte[4] = 1;
	CHECK_EQ(sgn_hello_check(&h, SGN_HELLO_LEN(1)), SGN_BAD_HELLO);
	h = hello_of(4, 10, 1);
	h.address[0].zero[6] = 1;
	CHECK_EQ(sgn_hello_check(&h, SGN_HELLO_LEN(1)), SGN_BAD_HELLO);
	h = hello_of(4, 10, 1);
	h.version++;
	CHECK_EQ(sgn_hello_check(&h, SGN_HELLO_LEN(1)), SGN_BAD_HELLO);
}

int main(void)
{
	frames();
	headers();
	records();
	hellos();
	return test_done();
}
