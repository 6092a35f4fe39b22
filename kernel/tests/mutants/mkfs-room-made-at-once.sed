# SPDX-License-Identifier: Apache-2.0
#
# The chunk table is made for the largest size that there may ever be.
# file: kernel/core/volume/mkfs.c
# test: space_test
s/sb->chunks \* sizeof(struct sg_chunk));/sb->chunk_cap * sizeof(struct sg_chunk));/
