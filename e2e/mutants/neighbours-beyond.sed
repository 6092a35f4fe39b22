# SPDX-License-Identifier: Apache-2.0
#
# A fault also maps pages behind the end of the file.
# file: kernel/module/mmap.c
# scenario: posix
# maps: walk
s/while (n > 1 && sgfs_beyond_end(inode, vmf->pgoff + n - 1))/while (n > 16)/
