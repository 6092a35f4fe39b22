/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface that a KVM with kvm-patches offers to an owner of memory for VMs. It repeats
 * <linux/kvm_identity.h> of that KVM, because stock headers do not have this file. The module is
 * not linked with KVM: kvm_grant.c looks up the functions.
 */
#ifndef SGFS_KVM_IDENTITY_H
#define SGFS_KVM_IDENTITY_H

#include <linux/bits.h>
#include <linux/types.h>

struct file;
struct kvm_identity_range;

#define KVM_IDENTITY_VERSION	1
#define KVM_IDENTITY_READONLY	BIT(0)

struct kvm_identity_owner {
	unsigned int version;
	void (*ended)(void *data);
};

struct kvm_identity_range *kvm_identity_register(phys_addr_t start, size_t size, void *addr,
						 const struct kvm_identity_owner *owner);
int kvm_identity_extend(struct kvm_identity_range *range, size_t size);
void kvm_identity_unregister(struct kvm_identity_range *range);
int kvm_identity_open(struct kvm_identity_range *range, struct file *vm, phys_addr_t start,
		      size_t size, unsigned long flags, void *data);
int kvm_identity_revoke(struct kvm_identity_range *range, void *data);

#endif
