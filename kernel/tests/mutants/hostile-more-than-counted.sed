# SPDX-License-Identifier: Apache-2.0
#
# The second run of a collapse stores entries that do not fit into the height that the first run
# counted. It stores them to tables that do not exist.
# file: kernel/core/data/collapse.c
# test: hostile
s/^	if (b->pool \&\& (level > SG_MAX(b->height, 1u) || page >> (9 \* b->height)))/	if (0)/
