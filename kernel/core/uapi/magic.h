/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/* The type of all ioctls of a volume: numbers from 1 on are in ioctl.h, from 16 on in semctl.h. */
#ifndef SG_IOC_MAGIC
#define SG_IOC_MAGIC	0xd7
#endif
