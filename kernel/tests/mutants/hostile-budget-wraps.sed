# SPDX-License-Identifier: Apache-2.0
#
# What a table below has spent of the budget is spent once more.
# file: kernel/core/volume/slot_usage.c
# test: hostile
s/i < SG_TABLE_ENTRIES \&\& c->budget; i++/i < SG_TABLE_ENTRIES; i++/
