# SPDX-License-Identifier: Apache-2.0
#
# The new pages are not counted as free.
# file: kernel/core/member/volume_grow.c
# test: grow_test
/tx->free_pages += (s64)((g->to/d
