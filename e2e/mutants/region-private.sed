# SPDX-License-Identifier: Apache-2.0
#
# A VM may map a private copy of the volume's memory, which no other system sees.
# file: kernel/module/region.c
# scenario: region
# maps: walk
/if (!(vma->vm_flags & VM_MAYSHARE))/,/return -EINVAL;/d
