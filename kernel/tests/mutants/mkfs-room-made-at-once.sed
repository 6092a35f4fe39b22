# SPDX-License-Identifier: Apache-2.0
#
# The chunk table is formatted for the largest size to grow to.
# file: kernel/core/volume/mkfs.c
# test: space_test
s/sb->chunks \* sizeof(struct sg_chunk));/sb->chunk_cap * sizeof(struct sg_chunk));/
