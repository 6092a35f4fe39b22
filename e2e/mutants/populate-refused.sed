# SPDX-License-Identifier: Apache-2.0
#
# The kernel refuses to populate a VM's memory in advance, so QEMU stores to each page.
# file: kernel/module/region.c
# scenario: libvirt
# maps: walk
/^static int sgfs_map_region(/,/^}/s/^\tvma->vm_ops = &vm_operations;/\tvm_flags_set(vma, VM_IO);\n&/
