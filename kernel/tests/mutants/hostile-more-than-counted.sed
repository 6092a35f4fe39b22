# SPDX-License-Identifier: Apache-2.0
#
# A build of a table stores more entries than were counted, outside the table.
# file: kernel/core/data/collapse.c
# test: hostile
s/^	if (b->pool \&\& (level > SG_MAX(b->height, 1u) || page >> (9 \* b->height)))/	if (0)/
