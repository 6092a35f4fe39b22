# SPDX-License-Identifier: Apache-2.0
#
# A joiner accepts the superblock at a grown volume's end with any base and features.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/err = sg_super_compare(vol, &sb);/err = 0 \& sg_super_compare(vol, \&sb);/
