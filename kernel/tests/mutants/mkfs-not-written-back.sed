# SPDX-License-Identifier: Apache-2.0
#
# What a new volume's superblock leads to has not left the cache.
# file: kernel/core/volume/mkfs.c
# test: crash_mkfs_test
s/for_made_parts(vol, write_back);/write_back(vol->base + SG_PAGE, vol->sb.chunk_off - SG_PAGE);/
