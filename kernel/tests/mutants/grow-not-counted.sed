# SPDX-License-Identifier: Apache-2.0
#
# The new pages are not among the free ones.
# file: kernel/core/member/volume_grow.c
# test: grow_test
/tx->free_pages += (s64)((g->to/d
