# SPDX-License-Identifier: Apache-2.0
#
# A mapping of a file that is open for reading may become writable.
# file: kernel/module/region.c
# scenario: region
# maps: walk
/^static int sgfs_map_region(/,/^}/s/^\tvma->vm_ops = &vm_operations;/\tvm_flags_set(vma, VM_MAYWRITE);\n&/
