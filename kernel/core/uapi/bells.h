/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The description of an exchange of doorbells (docs/doorbells.md). A program outside the systems
 * runs the exchange. A VM finds this page in the memory of its ivshmem device.
 */
#ifndef SG_BELLS_H
#define SG_BELLS_H

#include <linux/ioctl.h>
#include <linux/types.h>
#ifndef __KERNEL__
#include <sys/ioctl.h>
#endif

#include "magic.h"

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

/**
 * struct sg_ioc_bells - connects the mount of the host with an exchange; on any directory of the
 * mounted volume, for CAP_SYS_ADMIN. Returns a descriptor; the connection ends when it is closed.
 * @exchange, @peers: as in the page. @id: number of this system.
 * @rung_by: eventfds by which each other system rings this one, as many as @peers.
 */
struct sg_ioc_bells {
	__u16 exchange, id, peers, reserved;
	__s32 rung_by[SG_BELLS_PEERS_MAX];
};
#define SG_IOC_BELLS	_IOW(SG_IOC_MAGIC, 48, struct sg_ioc_bells)

/**
 * struct sg_ioc_bell - how to ring another system, for the descriptor of a connection
 * @id: its number. @fd: an eventfd; -1: it has left.
 */
struct sg_ioc_bell {
	__u32 id;
	__s32 fd;
};
#define SG_IOC_BELL	_IOW(SG_IOC_MAGIC, 49, struct sg_ioc_bell)

#endif
