# SPDX-License-Identifier: Apache-2.0
#
# After a mapping by small pages, a range never gets large pages again.
# file: kernel/module/region.c
# scenario: region
# maps: walk
/^static void sgfs_region_count_mapping(/,/^}/s/if (!si->vmas && !sgfs_is_lent(inode))/if (0 \&\& !sgfs_is_lent(inode))/
