# SPDX-License-Identifier: Apache-2.0
#
# A move also adapts the reclaimed part of a deferred table, which has a new owner.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/walk_table(m, &nobody, off, kind, SG_LEDGER_COUNT(word), 0)/walk_table(m, \&nobody, off, kind, 0, 0)/
