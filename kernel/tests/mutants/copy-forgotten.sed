# SPDX-License-Identifier: Apache-2.0
#
# The inode file grows, but the copy of its root word does not change.
# file: kernel/core/inode/inode_record.c
# test: check_test
/^	sg_sys_copy(tx, SG_SYS_INODES);$/d
