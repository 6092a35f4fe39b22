# SPDX-License-Identifier: Apache-2.0
#
# The mark that the first superblock is outdated is removed before that superblock is written.
# file: kernel/core/member/volume_grow.c
# test: crash_grow_test
/^static void write_down/,/^}/{/^\tvolume_grow_withdraw(vol);/d;s/^\tsg_super_store(vol, 0, &sb);/\tvolume_grow_withdraw(vol);\n&/}
