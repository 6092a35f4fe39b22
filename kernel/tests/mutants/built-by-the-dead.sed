# SPDX-License-Identifier: Apache-2.0
#
# A fenced system continues to build a table in pages that belong to other systems meanwhile.
# file: kernel/core/data/collapse.c
# test: systems_range_test
s/^	if (b->pool \&\& !sg_is_ours(b->pool->vol))/	if (false)/
