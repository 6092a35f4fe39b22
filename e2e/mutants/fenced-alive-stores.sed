# SPDX-License-Identifier: Apache-2.0
#
# A system that was fenced while it runs keeps its access to the volume's memory.
# file: kernel/module/region_holders.c
# scenario: fence
# maps: walk
/^static int sgfs_region_holders_revoke(/,/^}/s/unmap_mapping_range(mapping, 0, 0, 0);/(void)mapping;/
