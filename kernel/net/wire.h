/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bytes that systems send each other through rings (docs/network.md), and the checks of these
 * bytes. A peer may store anything at any time. So the caller first copies a record out of the
 * shared memory, and these functions check the copy. They also compile in user space, for
 * kernel/tests/native/net_wire_test.c and kernel/tests/fuzz/net_fuzz.c.
 */
#ifndef SGN_WIRE_H
#define SGN_WIRE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/string.h>
#else
#include <string.h>
#include "sg_os.h"
#endif
#include "uapi/semtype.h"

/* --- records ---------------------------------------------------------------------------------- */

enum { SGN_PACKET = 1, SGN_HELLO };	/* the tag of a record */

#define SGN_PACKET_MAX	65575u	/* the longest IPv6 packet: its head, and a payload of 65,535 */
#define SGN_HEAD_MAX	128u	/* headers up to TCP's end, and the place of the checksum */
#define SGN_MTU_MAX	65520u
/* A sender's TCP must not make more segments of a packet than that; its own limit is 48 bytes. */
#define SGN_SEGMENT_MIN	16u

/**
 * struct sgn_frame - stands before the IP packet in its record
 * @flags: SGN_NEEDS_CSUM, ...; @gso: SGN_GSO_NONE, ...
 * @gso_size: bytes of payload per segment.
 * @csum_start, @csum_offset: with SGN_NEEDS_CSUM: the first byte that the checksum covers, and the
 * place of the checksum after it.
 */
struct sgn_frame {
	u8 flags, gso;
	u16 gso_size, csum_start, csum_offset;
	u64 reserved;
};

#define SGN_NEEDS_CSUM	1u	/* the checksum is not computed, and no system needs it */
#define SGN_CSUM_VALID	2u	/* the sender has checked it */
#define SGN_GSO_ECN	4u	/* segments differ in CWR */
#define SGN_FLAGS_KNOWN	7u

enum { SGN_GSO_NONE, SGN_GSO_TCP4, SGN_GSO_TCP6, SGN_GSO_KINDS };

/* --- checks ----------------------------------------------------------------------------------- */

enum sgn_fault {
	SGN_FINE,
	SGN_BAD_RECORD,		/* the ring's words, or the record's head */
	SGN_BAD_FRAME,		/* the frame's fields */
	SGN_BAD_IP,		/* no IP packet of that length */
	SGN_BAD_CSUM,
	SGN_BAD_GSO,
	SGN_BAD_HELLO,
	SGN_FAULTS
};

/* Returns the positions of a record with this payload, the record's head included. */
static inline u64 sgn_grains(u32 len)
{
	return ((u64)len + 2 * SG_RING_GRAIN - 1) / SG_RING_GRAIN;
}

/*
 * Checks the head of the record at @pos, of which the caller has loaded each word once. @tail: the
 * position behind the last record; the caller has checked that it is at most @grains ahead.
 */
static inline enum sgn_fault sgn_record_check(u64 len_tag, u64 at, u64 pos, u64 tail, u64 grains)
{
	u32 len = (u32)len_tag;
	u64 n = sgn_grains(len);

	if (at != pos || n > tail - pos || n > grains / 2 || len < sizeof(struct sgn_frame) ||
	    len > sizeof(struct sgn_frame) + SGN_PACKET_MAX)
		return SGN_BAD_RECORD;
	return SGN_FINE;
}

/**
 * struct sgn_ip - the result of a check
 * @version: 4 or 6. @l4: length of the IP header. @source, @dest: offsets of the addresses.
 * @proto: the protocol in the IP header. @fragment: a part of a packet.
 */
struct sgn_ip {
	u8 version, proto;
	bool fragment;
	u16 l4, source, dest;
};

static inline u16 sgn_be16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static inline enum sgn_fault sgn_ip4_check(const u8 *ip, u32 head, u32 len, struct sgn_ip *out)
{
	u16 l4 = (ip[0] & 15) * 4;

	if (head < 20 || l4 < 20 || l4 > head || sgn_be16(ip + 2) != len)
		return SGN_BAD_IP;
	*out = (struct sgn_ip){ .version = 4, .proto = ip[9], .l4 = l4, .source = 12, .dest = 16,
		.fragment = sgn_be16(ip + 6) & 0x3fff };
	return SGN_FINE;
}

static inline enum sgn_fault sgn_ip6_check(const u8 *ip, u32 head, u32 len, struct sgn_ip *out)
{
	if (head < 40 || sgn_be16(ip + 4) + 40u != len)
		return SGN_BAD_IP;
	*out = (struct sgn_ip){ .version = 6, .proto = ip[6], .l4 = 40, .source = 8, .dest = 24 };
	return SGN_FINE;
}

/* Checks the IP header. @head bytes of the packet are at @ip; it has @len bytes. */
static inline enum sgn_fault sgn_ip_check(const u8 *ip, u32 head, u32 len, struct sgn_ip *out)
{
	if (!head || head > len || len > SGN_PACKET_MAX)
		return SGN_BAD_IP;
	switch (ip[0] >> 4) {
	case 4:
		return sgn_ip4_check(ip, head, len, out);
	case 6:
		return sgn_ip6_check(ip, head, len, out);
	default:
		return SGN_BAD_IP;
	}
}

#define SGN_TCP		6	/* IPPROTO_TCP */
#define SGN_TCP_CSUM	16	/* offset of TCP's checksum */

/*
 * Checks a packet that is to be divided into segments: TCP right behind the IP header, and more
 * payload than one segment has. So the segment size is never GSO_BY_FRAGS of the kernel, either.
 */
static inline enum sgn_fault sgn_gso_check(const struct sgn_frame *f, const u8 *ip, u32 head,
					   u32 len, const struct sgn_ip *i)
{
	u32 tcp;

	if (f->gso == SGN_GSO_NONE)
		return f->gso_size || f->flags & SGN_GSO_ECN ? SGN_BAD_GSO : SGN_FINE;
	if (f->gso >= SGN_GSO_KINDS || (f->gso == SGN_GSO_TCP4) != (i->version == 4) ||
	    i->proto != SGN_TCP || i->fragment || f->gso_size < SGN_SEGMENT_MIN ||
	    !(f->flags & SGN_NEEDS_CSUM) || f->csum_start != i->l4 ||
	    f->csum_offset != SGN_TCP_CSUM || i->l4 + 20u > head)
		return SGN_BAD_GSO;
	tcp = (ip[i->l4 + 12] >> 4) * 4u;
	if (tcp < 20 || i->l4 + tcp > head || i->l4 + tcp + f->gso_size >= len)
		return SGN_BAD_GSO;
	return SGN_FINE;
}

/*
 * Checks a frame. @ip has the first @head bytes of its packet, at least SGN_HEAD_MAX of them if the
 * packet is so long. Frame and bytes are copies that no peer can change.
 */
static inline enum sgn_fault sgn_frame_check(const struct sgn_frame *f, const u8 *ip, u32 head,
					     u32 len, struct sgn_ip *out)
{
	enum sgn_fault fault;
	u32 at;

	if (f->flags & ~SGN_FLAGS_KNOWN || f->reserved)
		return SGN_BAD_FRAME;
	fault = sgn_ip_check(ip, head, len, out);
	if (fault)
		return fault;
	at = f->csum_start + f->csum_offset + 2u;
	if (f->flags & SGN_NEEDS_CSUM) {
		if (f->flags & SGN_CSUM_VALID || f->csum_start < out->l4 || at > head ||
		    at > SGN_HEAD_MAX)
			return SGN_BAD_CSUM;
	} else if (f->csum_start || f->csum_offset) {
		return SGN_BAD_CSUM;
	}
	return sgn_gso_check(f, ip, head, len, out);
}

/* --- hello ------------------------------------------------------------------------------------ */

#define SGN_ADDRESSES	16u	/* that a system may publish */
#define SGN_VERSION	1u

struct sgn_address {
	u8 family;		/* 4 or 6 */
	u8 zero[7];
	u8 byte[16];		/* an IPv4 address has 4, then zeroes */
};

/**
 * struct sgn_hello - the addresses of a system
 * @serial: changes whenever the system's list of addresses changes.
 * @echo: the serial of the last list that the system has from the receiver; @accepted: one bit for
 * each address in that list that the system accepts as a source.
 */
struct sgn_hello {
	u16 version, count;
	u32 mtu, serial, echo, accepted, zero;
	struct sgn_address address[SGN_ADDRESSES];
};
#define SGN_HELLO_LEN(count) (offsetof(struct sgn_hello, address) + \
			      (count) * sizeof(struct sgn_address))

static inline bool sgn_is_zero(const u8 *p, u32 len)
{
	while (len)
		if (p[--len])
			return false;
	return true;
}

/* Reports whether a system may have this address: no group, no address of every system. */
static inline bool sgn_address_fits(const struct sgn_address *a)
{
	if (!sgn_is_zero(a->zero, sizeof(a->zero)))
		return false;
	if (a->family == 4)
		return sgn_is_zero(a->byte + 4, 12) && a->byte[0] && a->byte[0] != 127 &&
		       a->byte[0] < 224 && (a->byte[0] != 169 || a->byte[1] != 254);
	/* IPv6: no ::/8 (unspecified, loopback, mapped), no fe80::/10, no group */
	return a->family == 6 && a->byte[0] && a->byte[0] != 0xff &&
	       (a->byte[0] != 0xfe || (a->byte[1] & 0xc0) != 0x80);
}

/* Checks a copy of a hello of @len bytes. */
static inline enum sgn_fault sgn_hello_check(const struct sgn_hello *h, u32 len)
{
	u32 i;

	if (len < SGN_HELLO_LEN(0) || h->version != SGN_VERSION || h->zero ||
	    h->count > SGN_ADDRESSES || len != SGN_HELLO_LEN(h->count))
		return SGN_BAD_HELLO;
	for (i = 0; i < h->count; i++)
		if (!sgn_address_fits(&h->address[i]))
			return SGN_BAD_HELLO;
	return SGN_FINE;
}

#endif
