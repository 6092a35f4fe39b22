# SPDX-License-Identifier: Apache-2.0
#
# The kernel does not give the memory of a machine in advance: QEMU stores to each page.
# file: kernel/module/region.c
# scenario: libvirt
# maps: walk
s/vm_flags_set(vma, VM_HUGEPAGE);/vm_flags_set(vma, VM_HUGEPAGE | VM_IO);/
