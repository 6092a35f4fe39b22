# SPDX-License-Identifier: Apache-2.0
#
# A system frees an inode that it has opened since it looked whether it uses the inode.
# file: kernel/core/deferred/evict.c
# test: systems_opens_test
s/(settles && sg_open_here(vol, ref))/(settles \&\& !vol)/
