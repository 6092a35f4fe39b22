# SPDX-License-Identifier: Apache-2.0
#
# The generation of an inode wraps to 0, which means any.
# file: kernel/core/inode/inode_record.c
# test: crash_reach_test
/^static void fill_record/,/^}/s/ + 1 ?: 1;/ + 1;/
