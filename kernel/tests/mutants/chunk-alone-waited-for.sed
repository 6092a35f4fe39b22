# SPDX-License-Identifier: Apache-2.0
#
# The wait for a locked chunk does not see that another chunk has room.
# file: kernel/core/alloc/alloc.c
# test: space_test
s/^#define BUSY_SLICE_NS	50000000ULL/#define BUSY_SLICE_NS	2000000000ULL/
