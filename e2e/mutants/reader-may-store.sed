# SPDX-License-Identifier: Apache-2.0
#
# Who may only read passes for one who stores for the machine.
# file: kernel/module/region.c
# scenario: fence
# maps: walk
/^static bool may_store(/,/^}/s/vma->vm_flags & VM_MAYWRITE/true/
