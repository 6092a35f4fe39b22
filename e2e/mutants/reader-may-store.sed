# SPDX-License-Identifier: Apache-2.0
#
# The module treats a read-only holder as one that stores for the VM.
# file: kernel/module/region.c
# scenario: fence
# maps: walk
/^static bool sgfs_may_store(/,/^}/s/vma->vm_flags & VM_MAYWRITE/true/
