# SPDX-License-Identifier: Apache-2.0
#
# A call that changes a file's pages waits for another system with invalidate_lock for any time.
# file: kernel/module/mmap_wait.c
# scenario: held-up
# maps: walk
/^int sgfs_change_pages/,/^}/s/SGFS_BRIEF_NS/SGFS_ANY_NS/
