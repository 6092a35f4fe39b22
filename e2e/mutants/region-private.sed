# SPDX-License-Identifier: Apache-2.0
#
# A machine may get a copy of the volume's memory that nobody else ever sees.
# file: kernel/module/region.c
# scenario: region
# maps: walk
/if (!(vma->vm_flags & VM_MAYSHARE))/,/return -EINVAL;/d
