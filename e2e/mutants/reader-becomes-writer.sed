# SPDX-License-Identifier: Apache-2.0
#
# A mapping of a file that is open for reading may become writable.
# file: kernel/module/region.c
# scenario: region
# maps: walk
s/vm_flags_set(vma, VM_HUGEPAGE);/vm_flags_set(vma, VM_HUGEPAGE | VM_MAYWRITE);/
