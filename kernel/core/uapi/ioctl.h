/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/* What can be asked of a mounted volume. */
#ifndef SG_IOCTL_H
#define SG_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>
#ifndef __KERNEL__
#include <sys/ioctl.h>
#endif

#include "magic.h"

/**
 * struct sg_ioc_grow - sg_grow() (engine.h); of any of its directories, for CAP_SYS_ADMIN
 * @size: wanted, 0: the largest. Then: what it is; if refused, the largest that is possible.
 * @was: what it was.
 * @wait_ms: for the others; 0: default.
 * @flags: SG_GROW_ASK: only whether the others have memory for that, sg_grow_ask().
 * @why: if refused, in one line.
 */
struct sg_ioc_grow {
	__u64 size, was;
	__u32 wait_ms, flags;
	char why[200];
};
#define SG_GROW_ASK	1u
#define SG_IOC_GROW	_IOWR(SG_IOC_MAGIC, 1, struct sg_ioc_grow)

/**
 * struct sg_ioc_freeze - sg_freeze() (engine.h); of any of its directories, for CAP_SYS_ADMIN
 * @limit_ms: for that long at most.
 * @why: if refused, in one line.
 */
struct sg_ioc_freeze {
	__u32 limit_ms, reserved;
	char why[200];
};
#define SG_IOC_FREEZE	_IOWR(SG_IOC_MAGIC, 4, struct sg_ioc_freeze)
/* sg_thaw(). EAGAIN: somebody has not stood still all the time. */
#define SG_IOC_THAW	_IO(SG_IOC_MAGIC, 5)

/**
 * struct sg_ioc_kvm_open - the volume is opened to a VM, for identity slots; of .stargate/region
 * @vm_fd: which one.
 * @read_only: for reading only; as it is if the file is open for that.
 */
struct sg_ioc_kvm_open {
	__s32 vm_fd;
	__u32 read_only;
};
#define SG_IOC_KVM_OPEN		_IOW(SG_IOC_MAGIC, 2, struct sg_ioc_kvm_open)
/* It is taken back, from the VMs of this process (0: of all); returns of how many. CAP_SYS_ADMIN */
#define SG_IOC_KVM_REVOKE	_IO(SG_IOC_MAGIC, 3)

#endif
