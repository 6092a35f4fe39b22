# SPDX-License-Identifier: Apache-2.0
#
# A machine whose last mapping has gone is not declared dead.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static void sgfs_machine_gone(/,/^}/s/if (sg_fence_machine(&fs->vol, machine))/if (0)/
