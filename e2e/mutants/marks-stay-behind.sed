# SPDX-License-Identifier: Apache-2.0
#
# Marks of stores through mappings keep the old offset of a page after the page has moved.
# file: kernel/module/mmap_dirty.c
# scenario: moved
# maps: walk
/^static bool sgfs_has_moved/,/^}/s/if (!root || sgfs_is_lost(inode))/if (1)/
