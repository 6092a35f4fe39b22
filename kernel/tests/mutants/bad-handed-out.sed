# SPDX-License-Identifier: Apache-2.0
#
# The allocator gives a bad page to a file.
# file: kernel/core/alloc/alloc.c
# test: bad_test
s/^	sg_bad_mask(tx->vol, chunk, m->w);$//
