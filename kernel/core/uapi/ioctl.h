/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/* Requests to a mounted volume. */
#ifndef SG_IOCTL_H
#define SG_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>
#ifndef __KERNEL__
#include <sys/ioctl.h>
#endif

#include "magic.h"

/**
 * struct sg_ioc_grow - sg_grow() (engine.h); on any directory of the volume, for CAP_SYS_ADMIN
 * @size: in: the new size, 0: the largest. Out: the size now; if refused, the largest possible one.
 * @was: out: the size before.
 * @wait_ms: how long to wait for the other systems; 0: default.
 * @flags: SG_GROW_ASK: only ask whether the other systems have the memory, as sg_grow_ask() does.
 * @why: out: if refused, the reason in one line.
 */
struct sg_ioc_grow {
	__u64 size, was;
	__u32 wait_ms, flags;
	char why[200];
};
#define SG_GROW_ASK	1u
#define SG_IOC_GROW	_IOWR(SG_IOC_MAGIC, 1, struct sg_ioc_grow)

/**
 * struct sg_ioc_freeze - sg_freeze() (engine.h); on any directory of the volume, for CAP_SYS_ADMIN
 * @limit_ms: the longest duration.
 * @why: out: if refused, the reason in one line.
 */
struct sg_ioc_freeze {
	__u32 limit_ms, reserved;
	char why[200];
};
#define SG_IOC_FREEZE	_IOWR(SG_IOC_MAGIC, 4, struct sg_ioc_freeze)
/* sg_thaw(). EAGAIN: a system was not frozen during the complete freeze. */
#define SG_IOC_THAW	_IO(SG_IOC_MAGIC, 5)

/*
 * sg_set_atomic() (engine.h); on a regular file or a directory, for its owner. The argument is
 * SG_ATOMIC_CLEAR, SG_ATOMIC_SET or SG_ATOMIC_ASK. The result is 1 if the attribute is set after
 * the call, otherwise 0.
 */
#define SG_IOC_ATOMIC	_IOW(SG_IOC_MAGIC, 6, __u32)
#define SG_ATOMIC_CLEAR	0u
#define SG_ATOMIC_SET	1u
/* only returns the attribute; for every process that can open the file */
#define SG_ATOMIC_ASK	2u

/**
 * struct sg_ioc_seal - sg_seal(), sg_unseal() (engine.h); on a regular file, for its owner
 * @what: SG_SEAL_...
 * @state: out, of SG_SEAL_ASK: SG_SEAL_IS_SET, SG_SEAL_HAS_ROOT.
 * @root: the root of the tree of hashes: in: of SG_SEAL_ROOT; out: of SG_SEAL_ASK.
 * @why: out: if refused, the reason in one line.
 */
struct sg_ioc_seal {
	__u32 what, state;
	__u8 root[32];
	char why[200];
};
#define SG_IOC_SEAL	_IOWR(SG_IOC_MAGIC, 7, struct sg_ioc_seal)
/* only returns the state; for every process that can open the file */
#define SG_SEAL_ASK	0u
/* EBUSY: a process, on any system, has the file open for writing; on other systems: open */
#define SG_SEAL_SET	1u
/* EBUSY: another descriptor is open, on any system */
#define SG_SEAL_CLEAR	2u
/* keeps a root with the seal; EEXIST: there is another one */
#define SG_SEAL_ROOT	3u
/* bits of @state */
#define SG_SEAL_IS_SET	1u
#define SG_SEAL_HAS_ROOT 2u

/**
 * struct sg_ioc_kvm_open - opens the volume to a VM, for identity slots; on .stargate/region
 * @vm_fd: the VM.
 * @read_only: only for reading. A file that is open only for reading implies this flag.
 */
struct sg_ioc_kvm_open {
	__s32 vm_fd;
	__u32 read_only;
};
#define SG_IOC_KVM_OPEN		_IOW(SG_IOC_MAGIC, 2, struct sg_ioc_kvm_open)
/*
 * Ends the access of the VMs of this process (0: of all processes) to the volume; returns their
 * number. Needs CAP_SYS_ADMIN.
 */
#define SG_IOC_KVM_REVOKE	_IO(SG_IOC_MAGIC, 3)

#endif
