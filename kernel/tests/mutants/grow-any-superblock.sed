# SPDX-License-Identifier: Apache-2.0
#
# A joiner takes the superblock at a grown volume's end, whatever base and features it names.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/err = sg_super_compare(vol, &sb);/err = 0 \& sg_super_compare(vol, \&sb);/
