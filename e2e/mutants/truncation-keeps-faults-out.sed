# SPDX-License-Identifier: Apache-2.0
#
# A call that changes a file's pages holds invalidate_lock while it waits for another system,
# without a time limit.
# file: kernel/module/mmap_wait.c
# scenario: held-up
# maps: walk
/^int sgfs_change_pages/,/^}/s/SGFS_BRIEF_NS/SGFS_ANY_NS/
