# SPDX-License-Identifier: Apache-2.0
#
# A growth copies a superblock that has changed since the volume was opened.
# file: kernel/core/member/volume_grow.c
# test: grow_test
s/return sg_super_read(vol, off, size, out) && !sg_super_compare(vol, out);/return sg_super_read(vol, off, size, out);/
