/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * What an exchange of doorbells tells its systems (docs/doorbells.md). A program outside the
 * systems runs the exchange. A VM finds this page in the memory of its ivshmem device.
 */
#ifndef SG_BELLS_H
#define SG_BELLS_H

#include <linux/types.h>

#define SG_BELLS_MAGIC		0x534c4c4542475321ULL	/* "!SGBELLS" */
#define SG_BELLS_VERSION	1
#define SG_BELLS_PEERS_MAX	64	/* a volume has as many slots */
#define SG_BELLS_PEERS		16	/* unless the user says otherwise */

/**
 * struct sg_bells_page - the description of an exchange
 * @exchange: its number, random and not 0. Two systems ring each other only at the same exchange.
 * @peers: the number of systems that it connects: their numbers are below it.
 * @uuid: of the volume whose systems use it; all zero: any volume.
 */
struct sg_bells_page {
	__u64 magic;
	__u16 version, exchange, peers, reserved;
	__u8 uuid[16];
};

#endif
