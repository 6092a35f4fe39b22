# SPDX-License-Identifier: Apache-2.0
#
# A system checks that it does not use an inode, then opens the inode, and frees it nevertheless.
# file: kernel/core/deferred/evict.c
# test: systems_opens_test
s/(settles && sg_open_here(vol, ref))/(settles \&\& !vol)/
