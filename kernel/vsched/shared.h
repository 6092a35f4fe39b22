/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/* Messages of the BPF programs to the daemon, in addition to the tables of policy.h. */
#ifndef SG_VSCHED_SHARED_H
#define SG_VSCHED_SHARED_H

/* A vCPU that has entered its guest. */
struct vs_found {
	u64 vcpu;	/* its struct kvm_vcpu */
	u32 tgid, id;
};

/* The reason for which the kernel ended our scheduler. */
struct vs_exit {
	u32 kind;
	char reason[128], message[256];
};

#endif
