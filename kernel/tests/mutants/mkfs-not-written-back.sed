# SPDX-License-Identifier: Apache-2.0
#
# The contents of a new volume are still in the cache when its superblock is written.
# file: kernel/core/volume/mkfs.c
# test: crash_mkfs_test
s/for_made_parts(vol, mkfs_write_back);/mkfs_write_back(vol->base + SG_PAGE, vol->sb.chunk_off - SG_PAGE);/
