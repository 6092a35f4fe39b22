# SPDX-License-Identifier: Apache-2.0
#
# A table is built on in pages of one who has been fenced, which are others' by then.
# file: kernel/core/data/collapse.c
# test: systems_range_test
s/^	if (b->pool \&\& !sg_is_ours(b->pool->vol))/	if (false)/
