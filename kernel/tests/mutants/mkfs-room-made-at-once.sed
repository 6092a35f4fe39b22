# SPDX-License-Identifier: Apache-2.0
#
# mkfs formats the chunk table for the maximum size of the volume.
# file: kernel/core/volume/mkfs.c
# test: space_test
s/sb->chunks \* sizeof(struct sg_chunk));/sb->chunk_cap * sizeof(struct sg_chunk));/
