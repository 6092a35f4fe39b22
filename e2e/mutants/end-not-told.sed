# SPDX-License-Identifier: Apache-2.0
#
# The module does not fence a VM after the VM's last mapping has ended.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static void sgfs_machine_gone(/,/^}/s/if (sg_fence_machine(&fs->vol, machine))/if (0)/
