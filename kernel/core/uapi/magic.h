/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The type of all ioctls of a volume: ioctl.h uses the numbers from 1 on, semctl.h those from 16
 * on.
 */
#ifndef SG_IOC_MAGIC
#define SG_IOC_MAGIC	0xd7
#endif
