# SPDX-License-Identifier: Apache-2.0
#
# A VM whose last mapping has gone is not fenced.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static void sgfs_machine_gone(/,/^}/s/if (sg_fence_machine(&fs->vol, machine))/if (0)/
