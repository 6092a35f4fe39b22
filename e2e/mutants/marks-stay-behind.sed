# SPDX-License-Identifier: Apache-2.0
#
# Marks of stores by mappings count for the places that the pages had, also after they have moved.
# file: kernel/module/mmap_dirty.c
# scenario: moved
# maps: walk
/^static bool sgfs_has_moved/,/^}/s/if (!root || sgfs_is_lost(inode))/if (1)/
