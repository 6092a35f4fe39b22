# SPDX-License-Identifier: Apache-2.0
#
# A read takes the inode's lock two more times than necessary. Only the cost of the read is wrong.
# file: kernel/module/file.c
# scenario: gate
# maps: walk
s/^\tn = sgfs_file_look(inode, nowait);$/\tinode_unlock_shared(inode);\n\tinode_lock_shared(inode);\n\tinode_unlock_shared(inode);\n\tinode_lock_shared(inode);\n&/
