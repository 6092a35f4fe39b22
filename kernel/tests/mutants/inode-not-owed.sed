# SPDX-License-Identifier: Apache-2.0
#
# An inode without a name is not in the ledger, so a crash loses it.
# file: kernel/core/dir/dir_ops.c
# test: crash_test
/^void sg_drop_link/,/^}/s/sg_defer_inode(tx, ref);/(void)0;/
