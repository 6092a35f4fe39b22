# SPDX-License-Identifier: Apache-2.0
#
# The part of a budget that a lower table has used can be used again.
# file: kernel/core/volume/slot_usage.c
# test: hostile
s/i < SG_TABLE_ENTRIES \&\& c->budget; i++/i < SG_TABLE_ENTRIES; i++/
